//! What the Performance Schema counted: most of all, and by the instances of a lock.

use serde::Serialize;

use crate::cells::Cell;
use crate::journal::{LockEvenness, StartRecord, Top};

/// Where the time went in the cell that counted most.
const EVENTS: &str = "pfs_events_per_s";
const TIMED: &str = "pfs_timer_percent";

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tops {
    /// Of the cell.
    pub name: String,
    pub tops: Vec<Top>,
}

/// One lock in one cell at one number of users, as means over the starts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evenness {
    pub name: String,
    pub starts: u32,
    #[serde(flatten)]
    pub even: LockEvenness,
}

/// Of the timed cell with the most events per second, or of the one with the most where none is timed.
pub(super) fn tops(cells: &[Cell], done: &[StartRecord]) -> Option<Tops> {
    let most = |done: &StartRecord, name: &str| {
        let values = done.levels.iter().filter_map(|level| level.measures.get(name).copied());
        values.fold(0.0_f64, f64::max)
    };
    let busiest = done.iter().filter(|record| !record.tops.is_empty()).max_by(|first, second| {
        let key = |record: &StartRecord| (most(record, TIMED) > 0.0, most(record, EVENTS));
        let (first, second) = (key(first), key(second));
        first.0.cmp(&second.0).then(first.1.total_cmp(&second.1))
    })?;
    Some(Tops { name: cells.get(busiest.start.cell)?.name(), tops: busiest.tops.clone() })
}

pub(super) fn evenness(cells: &[Cell], done: &[StartRecord]) -> Vec<Evenness> {
    let mut by_cell: Vec<(usize, Vec<&LockEvenness>)> = Vec::new();
    for record in done.iter().filter(|record| !record.start.pair) {
        for even in &record.evenness {
            let same = |(cell, evens): &&mut (usize, Vec<&LockEvenness>)| {
                *cell == record.start.cell
                    && evens.iter().all(|other| (&other.lock, other.users) == (&even.lock, even.users))
            };
            match by_cell.iter_mut().find(same) {
                Some((_, evens)) => evens.push(even),
                None => by_cell.push((record.start.cell, vec![even])),
            }
        }
    }
    by_cell.sort_by_key(|(cell, evens)| (evens[0].users, evens[0].lock.clone(), *cell));
    let mean = |(cell, evens): (usize, Vec<&LockEvenness>)| {
        let count = evens.len() as f64;
        let of = |value: fn(&LockEvenness) -> f64| evens.iter().map(|even| value(even)).sum::<f64>() / count;
        let timed: Option<Vec<f64>> = evens.iter().map(|even| even.ms_per_s).collect();
        Some(Evenness {
            name: cells.get(cell)?.name(),
            starts: evens.len() as u32,
            even: LockEvenness {
                users: evens[0].users,
                lock: evens[0].lock.clone(),
                instances: of(|even| f64::from(even.instances)).round() as u32,
                per_s: of(|even| even.per_s),
                ms_per_s: timed.map(|timed| timed.iter().sum::<f64>() / count),
                busiest_percent: of(|even| even.busiest_percent),
                even: of(|even| even.even),
            },
        })
    };
    by_cell.into_iter().filter_map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::finished_starts;
    use super::*;
    use crate::Spec;

    #[test]
    fn what_was_counted_is_of_the_cell_that_counted_most_and_the_mean_over_starts() {
        let text = "title = 't'\nquestion = 'q'\nbaseline = 'a'\nrepeats = 2\npair = false\n[[variant]]\nname = 'a'\n[[variant]]\nname = 'b'\n";
        let spec = Spec::parse(text, false).unwrap();
        let mut found = finished_starts(&spec, &spec.all_starts(), |_, _| Some(1.0));
        for record in &mut found {
            let events = if record.start.cell == 1 { 5e6 } else { 9e6 };
            record.levels[0].measures.insert(EVENTS.to_string(), events);
            if record.start.cell == 1 {
                record.levels[0].measures.insert(TIMED.to_string(), 11.4);
            }
            record.tops = vec![Top { view: "waits".to_string(), ..Top::default() }];
            let instances = if record.start.block == 0 { 6 } else { 8 };
            record.evenness = vec![LockEvenness {
                users: 1,
                lock: "MDL_map".to_string(),
                instances,
                even: 0.9,
                ..LockEvenness::default()
            }];
        }
        let answer = super::super::answer(&spec, &found, &[]);
        assert_eq!(answer.tops.unwrap().name, "b", "it is timed");
        assert_eq!(answer.evenness.len(), 2);
        assert_eq!((answer.evenness[0].starts, answer.evenness[0].even.instances), (2, 7));
        assert_eq!(answer.evenness[0].even.ms_per_s, None);
    }
}
