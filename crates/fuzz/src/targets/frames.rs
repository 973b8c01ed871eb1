//! Frames that another host sent.

use std::sync::{Arc, LazyLock, Mutex};

use whyso_hub::Frame;
use whyso_record::data::{
    Event, Kind, ProgramWait, Reading, SeriesId, SeriesKey, StackSample, StatesInterval, Status, TextRows,
    ThreadStates, Value,
};
use whyso_record::run::Window;
use whyso_record::{Entry, EntryTap, Options, Recorder, Recording, Replay};

use super::change::damage;
use super::folders;
use crate::choices::Choices;

const CHANGES_MAX: usize = 5;
const HOST: &str = "db";

/// What a recorder of another host hands over.
static HANDED_OVER: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let folder = folders::temporary();
    let options = Options { reserve_bytes: 0, own_cost: false, ..Options::default() };
    let there = Recorder::create(&folder.path().join("there"), options).expect("a folder of this test's own");
    let bytes: Arc<Mutex<Vec<u8>>> = Arc::default();
    let received = Arc::clone(&bytes);
    there.tap(Arc::new(EntryTap::new(move |entry: Entry| {
        let mut bytes = received.lock().expect("no thread panics with it");
        entry.append_to(&mut bytes).expect("entries of a recorder are encoded");
    })));
    let key = |host: &str| SeriesKey {
        host: host.to_string(),
        source: "cpu".to_string(),
        metric: "user_ns".to_string(),
        instance: "all".to_string(),
        kind: Kind::Counter,
        unit: "ns".to_string(),
    };
    let id = there.series(&key("server"));
    for second in 1..4 {
        let values = vec![(id, Value::Int(second)), (id, Value::Float(0.5))];
        let (begin_ns, source) = (second * 1_000_000_000, "cpu".to_string());
        there.reading(Reading { source, begin_ns, end_ns: begin_ns + 9, status: Status::Ok, values });
    }
    there.rows(TextRows {
        source: "digests".to_string(),
        t_ns: 7,
        columns: vec!["text".to_string(), "born_ns".to_string()],
        rows: vec![vec![Some("SELECT".to_string()), Some("12".to_string())]],
    });
    there.event(Event { t_ns: 3, host: HOST.to_string(), kind: "note".to_string(), text: "x".to_string() });
    let thread = ThreadStates { tid: 4, states_ms: vec![3], ..ThreadStates::default() };
    there.states(&StatesInterval {
        begin_ns: 1,
        t_ns: 9,
        states: vec!["cpu".to_string()],
        threads: vec![thread],
    });
    there.stacks(&[StackSample { t_ns: 77, tid: 3, role: "connection".to_string(), stack: 4, weight_ns: 9 }]);
    there.program_waits(&[ProgramWait {
        t_ns: 77,
        tid: 3,
        program: "php".to_string(),
        state: "lock".to_string(),
        length_ns: 1,
        weight_ns: 9,
        stack: 4,
    }]);
    // Its recording is of no use: it goes with the folder.
    let _ = there.discard();
    let bytes = bytes.lock().expect("no thread panics with it");
    bytes.clone()
});

/// Any frame and any entries of it are recorded or refused, and what was recorded is read.
pub fn frames(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let mut entries = HANDED_OVER.clone();
    let is_frame_damaged = choices.byte().is_multiple_of(4);
    for _ in 0..choices.below(CHANGES_MAX) {
        damage(&mut choices, &mut entries);
    }
    let Ok(mut sent) = (Frame { number: 1, is_last: false, lost: 0, entries }).to_bytes() else { return };
    if is_frame_damaged {
        damage(&mut choices, &mut sent);
    }
    let Ok(frame) = Frame::from_bytes(HOST, &sent) else { return };
    let folder = folders::temporary();
    let dir = folder.path().join("here");
    let options = Options { reserve_bytes: 0, own_cost: false, ..Options::default() };
    let here = Recorder::create(&dir, options).expect("a folder of this test's own");
    let of_host = choices.byte();
    let mut replay = Replay::new(here.clone(), HOST, false, of_host.is_multiple_of(2));
    if of_host.is_multiple_of(3) {
        replay = replay.with_programs(u32::from(of_host));
    }
    let shift = choices.number() as i64;
    for entry in frame.entries(HOST).flatten() {
        // What is no entry of a recorder's is refused.
        let _ = replay.entry(entry, |t_ns| t_ns.saturating_add(shift));
    }
    let _ = here.finish();
    let outside = std::fs::read_dir(folder.path()).expect("it is there").count();
    assert_eq!(outside, 1, "something was written outside the recording");
    if let Ok(recording) = Recording::open(&dir) {
        let ids: Vec<SeriesId> = recording.series().iter().map(|info| info.id).collect();
        for id in ids {
            // A program of the host is called by both names.
            let is_of_host = |host: &str| host == HOST || host.starts_with(&Replay::program_name(HOST, ""));
            assert!(recording.info(id).is_some_and(|info| is_of_host(&info.key.host)));
            let _ = recording.samples(id, None);
        }
        let _ = recording.events();
        let _ = recording.program_wait_sums(Window { begin_ns: i64::MIN, end_ns: i64::MAX });
    }
}
