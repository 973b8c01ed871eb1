use std::sync::Mutex;

use super::*;
use crate::data::{Event, Kind, Reading, StackSample, Status, Value};
use crate::{EntryTap, Options, Recording};

const SHIFT_NS: i64 = 1_000_000_000_000;

fn key(host: &str, source: &str, metric: &str) -> SeriesKey {
    SeriesKey {
        host: host.to_string(),
        source: source.to_string(),
        metric: metric.to_string(),
        instance: String::new(),
        kind: Kind::Counter,
        unit: "1".to_string(),
    }
}

fn reading(id: SeriesId, t_ns: i64, value: i64) -> Reading {
    let values = vec![(id, Value::Int(value))];
    Reading { source: "cpu".to_string(), begin_ns: t_ns, end_ns: t_ns + 10, status: Status::Ok, values }
}

/// What a recorder of another host received.
fn received() -> Vec<Entry> {
    let folder = tempfile::tempdir().unwrap();
    let there =
        Recorder::create(&folder.path().join("there"), Options { own_cost: false, ..Options::default() })
            .unwrap();
    let entries: Arc<Mutex<Vec<Entry>>> = Arc::default();
    let kept = Arc::clone(&entries);
    there.tap(Arc::new(EntryTap::new(move |entry| kept.lock().unwrap().push(entry))));
    let left_out = there.series(&key("client", "trace", "answers"));
    let id = there.series(&key("server", "cpu", "busy_ns"));
    there.reading(reading(left_out, 5, 1));
    for second in 1..=10 {
        there.reading(reading(id, second * 1_000_000_000, second * 7));
    }
    there.stacks(&[StackSample { t_ns: 77, tid: 3, role: "connection".to_string(), stack: 4, weight_ns: 9 }]);
    there.event(Event {
        t_ns: 99,
        host: "client".to_string(),
        kind: "note".to_string(),
        text: "x".to_string(),
    });
    there.finish().unwrap();
    let entries = entries.lock().unwrap();
    entries.clone()
}

#[test]
fn what_another_host_recorded_is_recorded_here_on_this_clock_and_under_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("here");
    let here = Recorder::create(&dir, Options { own_cost: false, ..Options::default() }).unwrap();
    // Its numbers are taken by others here.
    here.series(&key("client", "load", "backlog"));
    let mut replay = Replay::new(here.clone(), "db", false, true);
    for entry in received() {
        assert_eq!(replay.entry(entry, |t_ns| t_ns + SHIFT_NS).unwrap(), None);
    }
    here.finish().unwrap();
    let recording = Recording::open(&dir).unwrap();
    let hosts: Vec<(&str, &str)> =
        recording.series().iter().map(|info| (info.key.host.as_str(), info.key.source.as_str())).collect();
    assert_eq!(hosts, [("client", "load"), ("db", "cpu")]);
    let samples = recording.samples(SeriesId(1), None).unwrap();
    assert_eq!(samples.value, (1..=10).map(|second| f64::from(second) * 7.0).collect::<Vec<_>>());
    assert_eq!(samples.t_begin_ns[0], SHIFT_NS + 1_000_000_000);
    let event = &recording.events().unwrap()[0];
    assert_eq!((event.t_ns, event.host.as_str()), (SHIFT_NS + 99, "db"));
}

/// A table of stacks as a recorder hands it over.
fn stacks() -> Vec<u8> {
    let found = received().into_iter().find_map(|entry| match entry {
        Entry::Batch { ipc, .. } => Some(ipc),
        _ => None,
    });
    found.unwrap()
}

#[test]
fn what_no_recorder_makes_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let here = Recorder::create(&folder.path().join("here"), Options::default()).unwrap();
    let mut replay = Replay::new(here.clone(), "db", false, true);
    let rows = |source: &str, row: &[&str]| TextRows {
        source: source.to_string(),
        t_ns: 1,
        columns: vec!["a".to_string()],
        rows: vec![row.iter().map(|cell| Some(cell.to_string())).collect()],
    };
    let mut states = StatesInterval { states: vec!["cpu".to_string()], ..StatesInterval::default() };
    states.threads.push(crate::data::ThreadStates::default());
    let forged = [
        Entry::Reading(reading(SeriesId(4), 1, 1)),
        Entry::Rows(rows("../run", &["1"])),
        Entry::Rows(rows("digests", &["1", "2"])),
        Entry::States(states),
        Entry::Batch { stream: layout::STACKS.to_string(), ipc: Vec::new() },
        Entry::Batch { stream: "samples".to_string(), ipc: stacks() },
        Entry::Batch { stream: layout::STACKS.to_string(), ipc: b"no table".to_vec() },
    ];
    for entry in forged {
        let text = format!("{entry:?}");
        assert!(replay.entry(entry, |t_ns| t_ns).is_err(), "{text}");
    }
    // A host without the server sends no threads of it, not even true ones.
    let mut other = Replay::new(here.clone(), "load", false, false);
    let batch = Entry::Batch { stream: layout::STACKS.to_string(), ipc: stacks() };
    let of_programs = Entry::Batch { stream: layout::PROGRAM_STACKS.to_string(), ipc: stacks() };
    for entry in [Entry::States(StatesInterval::default()), batch, of_programs] {
        assert!(other.entry(entry, |t_ns| t_ns).is_err());
    }
    here.discard().unwrap();
}

#[test]
fn stacks_of_programs_of_two_hosts_have_names_and_numbers_that_differ() {
    let folder = tempfile::tempdir().unwrap();
    let (sender, entries) = std::sync::mpsc::channel();
    let there = Recorder::create(&folder.path().join("there"), Options::default()).unwrap();
    there.tap(Arc::new(crate::EntryTap::new(move |entry: Entry| drop(sender.send(entry)))));
    there.program_waits(&[crate::data::ProgramWait {
        t_ns: 77,
        tid: 3,
        program: "php".to_string(),
        state: "lock".to_string(),
        length_ns: 1,
        weight_ns: 9,
        stack: 4,
    }]);
    there.finish().unwrap();
    let waits: Vec<Entry> = entries
        .try_iter()
        .filter(|entry| matches!(entry, Entry::Batch { stream, .. } if stream == layout::PROGRAM_WAITS))
        .collect();
    assert_eq!(waits.len(), 1);
    let dir = folder.path().join("here");
    let here = Recorder::create(&dir, Options { own_cost: false, ..Options::default() }).unwrap();
    for (place, host) in [(1, "web1"), (2, "web2")] {
        let mut replay = Replay::new(here.clone(), host, false, false).with_programs(place);
        replay.entry(waits[0].clone(), |t_ns| t_ns + 1).unwrap();
    }
    here.finish().unwrap();
    let sums =
        Recording::open(&dir).unwrap().program_wait_sums(crate::run::Window { begin_ns: 78, end_ns: 79 });
    let sums: Vec<_> = sums.unwrap().iter().map(|sum| (sum.program.to_string(), sum.stack)).collect();
    assert_eq!(sums, [("web1/php".to_string(), 10_000_004), ("web2/php".to_string(), 20_000_004)]);
}
