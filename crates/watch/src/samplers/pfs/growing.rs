//! Lines that are recorded while they grow: the greatest of a table of which most lines stand still.

use std::collections::HashMap;

use whyso_record::data::Value;

use super::own_lines::Count;
use super::views::Column;
use crate::sink::Batch;

/// Lines that are recorded at one reading: those whose time grew most.
const RECORDED_MAX: usize = 200;

/// A line as it was read.
pub(crate) struct Line {
    pub(crate) instance: String,
    /// By column, of which the first is a count and the second its time.
    pub(crate) values: Vec<Option<i64>>,
}

/// The lines that a reading recorded.
#[derive(Debug, Default)]
pub(crate) struct RecordedLine {
    /// Those that were never recorded before.
    pub(crate) new: Vec<String>,
    /// How often the statement of each was executed.
    pub(crate) counts: Vec<Count>,
}

/// What was read of a line last.
#[derive(Default)]
struct KnownLine {
    values: Vec<Option<i64>>,
    /// The reading at which it was recorded last, from 1; 0 for never.
    recorded_at: u64,
}

#[derive(Default)]
pub(crate) struct Growing {
    readings: u64,
    last_read: HashMap<String, KnownLine>,
}

impl Growing {
    /// Records the lines that grew most since the last reading.
    pub(crate) fn record(
        &mut self,
        batch: &mut Batch<'_>,
        columns: &[&'static Column],
        lines: Vec<Line>,
    ) -> RecordedLine {
        self.readings += 1;
        let grown_of = |line: &Line| {
            let before = self.last_read.get(&line.instance).map_or(&[][..], |line| &line.values);
            grown(&line.values, before)
        };
        let mut lines: Vec<(i64, Line)> = lines.into_iter().map(|line| (grown_of(&line), line)).collect();
        lines.retain(|(grown, _)| *grown > 0);
        lines.sort_by_key(|(grown, _)| std::cmp::Reverse(*grown));
        let mut recorded = RecordedLine::default();
        for (place, (_, line)) in lines.into_iter().enumerate() {
            let line_before = self.last_read.entry(line.instance.clone()).or_default();
            if place < RECORDED_MAX {
                if line_before.recorded_at == 0 {
                    recorded.new.push(line.instance.clone());
                }
                let was_recorded = line_before.recorded_at + 1 == self.readings;
                put(
                    batch,
                    columns,
                    &line,
                    (!was_recorded && self.readings > 1).then_some(&line_before.values),
                );
                line_before.recorded_at = self.readings;
                if let Some(count) = line.values.first().copied().flatten() {
                    let before = line_before.values.first().copied().flatten().unwrap_or(0);
                    let before = (self.readings > 1).then_some(before);
                    recorded.counts.push(Count { instance: line.instance.clone(), count, before });
                }
            }
            line_before.values = line.values;
        }
        recorded
    }
}

/// By how much its time grew in nanoseconds, with its executions: of an untimed statement only those grow.
fn grown(values: &[Option<i64>], before: &[Option<i64>]) -> i64 {
    let at = |values: &[Option<i64>], place: usize| values.get(place).copied().flatten().unwrap_or(0);
    (0..2).map(|place| (at(values, place) - at(before, place)).max(0)).sum()
}

/// `before`: what it was at the reading before, where that did not record it; nothing where the line was not there.
fn put(batch: &mut Batch<'_>, columns: &[&'static Column], line: &Line, before: Option<&Vec<Option<i64>>>) {
    for (place, (column, value)) in columns.iter().zip(&line.values).enumerate() {
        let Some(value) = *value else { continue };
        if let Some(before) = before {
            let before = before.get(place).copied().flatten().unwrap_or(0);
            batch.put_before(&column.metric, &line.instance, Value::Int(before));
        }
        batch.put_value(&column.metric, &line.instance, Value::Int(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samplers::pfs::views::STATEMENTS;
    use crate::sink::SeriesCache;
    use crate::sink::memory::MemorySink;

    fn line(instance: &str, count: i64, time_ns: i64) -> Line {
        Line { instance: instance.to_string(), values: vec![Some(count), Some(time_ns)] }
    }

    #[test]
    fn a_line_grows_by_its_time_and_its_executions() {
        assert_eq!(grown(&[Some(3), Some(100)], &[]), 103);
        assert_eq!(grown(&[Some(3), Some(100)], &[Some(1), Some(40)]), 62);
        assert_eq!(grown(&[Some(3), None], &[Some(1), None]), 2);
        assert_eq!(grown(&[Some(1), Some(5)], &[Some(9), Some(50)]), 0);
    }

    #[test]
    fn what_comes_later_was_what_it_had_at_the_reading_before() {
        let columns = [&STATEMENTS[0], &STATEMENTS[1]];
        let sink = MemorySink::default();
        let mut growing = Growing::default();
        let mut read = |lines: Vec<Line>| {
            let mut cache = SeriesCache::default();
            let mut batch = Batch::new(&sink, "h", "s", &mut cache);
            let new = growing.record(&mut batch, &columns, lines).new;
            let parts = batch.into_parts();
            let recorded = |values: Vec<(_, Value)>| {
                values.into_iter().map(|(_, value)| value.as_f64()).collect::<Vec<_>>()
            };
            (new, recorded(parts.values), recorded(parts.before))
        };
        assert_eq!(read(vec![line("a", 1, 10)]), (vec!["a".to_string()], vec![1.0, 10.0], vec![]));
        let (new, values, before) = read(vec![line("a", 1, 10), line("b", 4, 40)]);
        assert_eq!((new, values, before), (vec!["b".to_string()], vec![4.0, 40.0], vec![0.0, 0.0]));
        // "a" stood still at the second reading, whose value is recorded now that it grows.
        let (new, values, before) = read(vec![line("a", 2, 20), line("b", 5, 50)]);
        assert_eq!((new, values), (vec![], vec![2.0, 20.0, 5.0, 50.0]));
        assert_eq!(before, [1.0, 10.0]);
    }
}
