//! The tracer's table of long waits by thread: how it is written, and what it holds of a window.

use std::collections::{BTreeMap, HashMap};

use whyso_explain::model::{LevelInput, Moments, Pauses};
use whyso_record::Recording;
use whyso_record::data::TextRows;
use whyso_record::run::Window;
use whyso_series::{ThreadTable, ThreadTime};
use whyso_trace::state::name_of_syscall;

use crate::Error;

const SOURCE: &str = "pauses";

const COLUMNS: [&str; 14] = [
    "tid",
    "name",
    "role",
    "state",
    "call",
    "in_request",
    "client",
    "count",
    "mean_ns",
    "spread_ns",
    "periods",
    "period_ns",
    "period_spread_ns",
    "born_ns",
];

/// Waits of a thread, of which neither the requests nor the connection are known yet.
pub(crate) fn told(one: &whyso_trace::Pauses) -> Pauses {
    let call = one.call.map_or(String::new(), |call| {
        name_of_syscall(i64::from(call)).map_or_else(|| format!("system call {call}"), str::to_string)
    });
    let moments = |of: &whyso_trace::Moments| Moments {
        count: of.count as f64,
        mean_ns: of.mean_ns(),
        spread_ns: of.spread_ns(),
    };
    Pauses {
        tid: one.tid,
        name: one.name.clone(),
        role: one.role.name().to_string(),
        connection: None,
        state: one.state.name().to_string(),
        call,
        in_request: one.in_request,
        client: one.client.name().to_string(),
        requests: 0.0,
        length: moments(&one.length),
        period: moments(&one.period),
    }
}

/// What was counted since the table before.
pub(crate) fn table(t_ns: i64, pauses: &[whyso_trace::Pauses]) -> TextRows {
    let row = |one: &whyso_trace::Pauses| {
        let Pauses { tid, name, role, state, call, in_request, client, length, period, .. } = told(one);
        let [tid, in_request] = [tid, u32::from(in_request)].map(|number| number.to_string());
        let numbers =
            [length, period].map(|of| [of.count, of.mean_ns, of.spread_ns].map(|one| format!("{one:.0}")));
        let words = [tid, name, role, state, call, in_request, client];
        let cells = words.into_iter().chain(numbers.into_iter().flatten()).chain([one.born_ns.to_string()]);
        cells.map(Some).collect()
    };
    let columns = COLUMNS.map(str::to_string).to_vec();
    TextRows { source: SOURCE.to_string(), t_ns, columns, rows: pauses.iter().map(row).collect() }
}

/// # Errors
/// Where the recording's files can't be read.
pub(crate) fn add(recording: &Recording, levels: &mut [LevelInput]) -> Result<(), Error> {
    let tables = tables(recording)?;
    if tables.is_empty() {
        return Ok(());
    }
    let threads = recording.threads()?;
    for level in levels {
        level.pauses = within(&tables, &threads, level.begin_ns, level.end_ns);
    }
    Ok(())
}

/// The long waits of these threads between two looks at them.
pub(crate) fn of(
    recording: &Recording,
    window: Window,
    threads: &[ThreadTime],
) -> Result<Vec<Pauses>, Error> {
    let mut pauses = between(&tables(recording)?, window);
    learn(&mut pauses, threads);
    Ok(pauses)
}

/// Adds what is known of the threads that waited.
pub(crate) fn learn(pauses: &mut [Pauses], threads: &[ThreadTime]) {
    let by_tid: HashMap<u32, &ThreadTime> = threads.iter().map(|thread| (thread.tid, thread)).collect();
    for one in pauses {
        if let Some(thread) = by_tid.get(&one.tid) {
            one.role.clone_from(&thread.role);
            one.connection = thread.connection;
            one.requests = thread.requests as f64;
        }
    }
}

fn tables(recording: &Recording) -> Result<Vec<TextRows>, Error> {
    let is_there = recording.row_sources().iter().any(|source| source == SOURCE);
    Ok(if is_there { recording.rows(SOURCE)? } else { Vec::new() })
}

/// Between the looks at the threads nearest to a window's ends: both tables are written at a look, this one only where there
/// is something to tell.
fn within(tables: &[TextRows], threads: &ThreadTable, begin_ns: i64, end_ns: i64) -> Vec<Pauses> {
    let Some((from, to)) = threads.covering(begin_ns, end_ns) else { return Vec::new() };
    let window = Window { begin_ns: threads.t_ns[from], end_ns: threads.t_ns[to] };
    let mut pauses = between(tables, window);
    learn(&mut pauses, &threads.between(from, to));
    pauses
}

fn between(tables: &[TextRows], window: Window) -> Vec<Pauses> {
    let mut all: BTreeMap<Key, Pauses> = BTreeMap::new();
    for table in tables.iter().filter(|table| table.t_ns > window.begin_ns && table.t_ns <= window.end_ns) {
        add_rows(&mut all, table);
    }
    all.into_values().collect()
}

/// Number of the thread, when it was seen first, state, call, whether in a request, client.
type Key = (u32, u64, String, String, bool, String);

fn add_rows(all: &mut BTreeMap<Key, Pauses>, table: &TextRows) {
    let places = COLUMNS.map(|name| table.columns.iter().position(|column| column == name));
    for row in &table.rows {
        let text = |name: &str| {
            let place = COLUMNS.iter().position(|column| *column == name).and_then(|at| places[at]);
            place.and_then(|place| row.get(place)?.clone()).unwrap_or_default()
        };
        let number =
            |name: &str| text(name).parse::<f64>().ok().filter(|number| (0.0..1e18).contains(number));
        let moments = |count: &str, mean: &str, spread: &str| {
            Some(Moments { count: number(count)?, mean_ns: number(mean)?, spread_ns: number(spread)? })
        };
        let (Ok(tid), Some(length), Some(period)) = (
            text("tid").parse(),
            moments("count", "mean_ns", "spread_ns"),
            moments("periods", "period_ns", "period_spread_ns"),
        ) else {
            continue;
        };
        let in_request = text("in_request") == "1";
        let born_ns = text("born_ns").parse().unwrap_or(0);
        let key = (tid, born_ns, text("state"), text("call"), in_request, text("client"));
        let one = all.entry(key).or_insert_with(|| Pauses {
            tid,
            state: text("state"),
            call: text("call"),
            in_request,
            client: text("client"),
            ..Pauses::default()
        });
        // A thread may bear its name, and show its role, only later.
        one.name = text("name");
        one.role = text("role");
        one.length = one.length.and(length);
        one.period = one.period.and(period);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyso_series::{Look, Seen};
    use whyso_trace::{Client, Role, State};

    fn pauses(tid: u32, born_ns: u64, lengths_us: &[u64]) -> whyso_trace::Pauses {
        let length = whyso_trace::Moments {
            count: lengths_us.len() as u64,
            sum_us: lengths_us.iter().sum(),
            squares_us2: lengths_us.iter().map(|us| us * us).sum(),
        };
        whyso_trace::Pauses {
            tid,
            born_ns,
            name: "one_connection".to_string(),
            role: Role::Connection,
            state: State::NetReceive,
            call: Some(u16::MAX - 1),
            in_request: false,
            client: Client::Load,
            length,
            period: whyso_trace::Moments::default(),
        }
    }

    fn looks(requests: &[(i64, u64)]) -> ThreadTable {
        let look = |&(t_ns, requests): &(i64, u64)| {
            let name = "one_connection".to_string();
            let states_ns = vec![t_ns as u64];
            Look {
                t_ns,
                threads: vec![Seen { tid: 7, born_ns: 1, name, requests, states_ns, ..Seen::default() }],
            }
        };
        ThreadTable::new(vec!["cpu".to_string()], requests.iter().map(look).collect(), &[])
    }

    #[test]
    fn a_window_has_what_was_told_at_the_looks_within_it() {
        let tables = [
            table(10, &[pauses(7, 1, &[90_000])]),
            table(20, &[pauses(7, 1, &[400_000, 400_000])]),
            table(30, &[pauses(7, 1, &[700_000]), pauses(7, 25, &[50_000])]),
            table(40, &[pauses(7, 1, &[90_000])]),
        ];
        let found = within(&tables, &looks(&[(10, 100), (20, 150), (30, 190)]), 11, 29);
        let [first, second] = &found[..] else { panic!("{found:?}") };
        assert_eq!((first.length.count, first.length.mean_ns, first.requests), (3.0, 500e6, 90.0));
        assert!((first.length.spread_ns - 141.42e6).abs() < 0.01e6, "{first:?}");
        assert_eq!((first.call.as_str(), first.client.as_str()), ("system call 65534", "load"));
        assert_eq!(second.length.mean_ns, 50e6, "another thread of the same number");
    }

    #[test]
    fn tables_that_are_not_what_they_should_be_give_nothing() {
        let mut odd = table(20, &[pauses(7, 1, &[90_000])]);
        odd.columns[7] = "number".to_string();
        let mut broken = table(20, &[pauses(7, 1, &[90_000])]);
        broken.rows[0][8] = Some("NaN".to_string());
        assert_eq!(within(&[odd, broken], &looks(&[(10, 0), (30, 0)]), 10, 30), []);
        assert_eq!(within(&[table(20, &[pauses(7, 1, &[90_000])])], &looks(&[]), 10, 30), []);
    }
}
