//! A damaged recording is read as far as it goes: never a panic, never without a word.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use proptest::prelude::*;
use whyso_record::data::{Event, Kind, LoadInterval, Reading, SeriesId, SeriesKey, Status, TextRows, Value};
use whyso_record::run::Window;
use whyso_record::{Options, Recorder, Recording};

const S: i64 = 1_000_000_000;
const MANIFEST: &str = "manifest.jsonl";

/// Three sealed segments, the first two compacted, and a write-ahead one: written once, copied for each case.
fn whole() -> &'static [(String, Vec<u8>)] {
    static WHOLE: OnceLock<Vec<(String, Vec<u8>)>> = OnceLock::new();
    WHOLE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("run");
        let options = Options { reserve_bytes: 0, own_cost: false, flush_ms: 20, ..Options::default() };
        let recorder = Recorder::create(&dir, options).unwrap();
        let series: Vec<SeriesId> = (0..5).map(|n| recorder.series(&key(n))).collect();
        for second in 0..200 {
            let value = |n: usize| {
                if n == 4 { Value::Float(second as f64 / 7.0) } else { Value::Int(second * n as i64) }
            };
            let values = series.iter().enumerate().map(|(n, id)| (*id, value(n))).collect();
            recorder.reading(Reading {
                source: "a".into(),
                begin_ns: second * S,
                end_ns: second * S + 9,
                status: Status::Ok,
                values,
            });
            recorder.event(Event {
                t_ns: second * S,
                host: "client".into(),
                kind: "note".into(),
                text: "x".into(),
            });
            recorder.rows(TextRows {
                source: "r".into(),
                t_ns: second * S,
                columns: vec!["c".into()],
                rows: vec![vec![None]],
            });
            recorder.load(LoadInterval {
                begin_ns: second * S,
                end_ns: second * S + S,
                level: 0,
                measured: true,
                statement: "commit".into(),
                count: 1,
                rows: 0,
                errors: Vec::new(),
                response_sum_ns: 1,
                service_sum_ns: 1,
                response_max_ns: 1,
                response: vec![(1, 1)],
                service: vec![(1, 1)],
            });
            if second % 60 == 59 {
                recorder.seal().unwrap();
            }
        }
        drop(recorder);
        let wanted = 200;
        while Recording::open(&dir).unwrap().info(series[0]).map_or(0, |info| info.samples) < wanted
            || Recording::open(&dir).unwrap().live()
        {
            std::thread::yield_now();
        }
        let files = fs::read_dir(&dir).unwrap().map(|file| file.unwrap());
        let mut files: Vec<(String, Vec<u8>)> = files
            .map(|file| (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap()))
            .collect();
        files.sort();
        files
    })
}

fn key(n: usize) -> SeriesKey {
    let [host, source, unit] = ["server", "a", "1"].map(str::to_string);
    let kind = if n == 0 { Kind::Counter } else { Kind::Gauge };
    SeriesKey { host, source, metric: format!("m{n}"), instance: String::new(), kind, unit }
}

fn copy(dir: &Path) -> Vec<PathBuf> {
    let write = |(name, bytes): &(String, Vec<u8>)| {
        let path = dir.join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    whole().iter().map(write).collect()
}

/// Reads all there is; errors are fine, panics are not.
fn read_all(dir: &Path) -> Option<u64> {
    let recording = Recording::open(dir).ok()?;
    let ids: Vec<SeriesId> = recording.series().iter().map(|info| info.id).collect();
    let mut samples = 0;
    // Its result is that it ends.
    let _ = recording.samples_each(&ids, None, |_, read| samples += read.len() as u64);
    let short = Window { begin_ns: 50 * S, end_ns: 130 * S };
    let _ = recording.window_values(&ids, &[short, Window { begin_ns: 0, end_ns: 2000 * S }], |_, _| {});
    for id in ids {
        let _ = recording.samples(id, Some(Window { begin_ns: 50 * S, end_ns: 130 * S }));
        let _ = recording.envelope(id, Window { begin_ns: 0, end_ns: 200 * S }, 2);
    }
    let _ = (recording.events().is_ok(), recording.load(None).is_ok(), recording.rows("r").is_ok());
    Some(samples)
}

/// All that a reader gives, and what is wrong with it; `None` where it can't be opened.
fn everything_in(dir: &Path) -> Option<(String, Vec<String>)> {
    let recording = Recording::open(dir).ok()?;
    let mut content = format!("{:?}", recording.run());
    for info in recording.series() {
        content += &format!("{info:?} {:?}", recording.samples(info.id, None).ok()?);
        content +=
            &format!("{:?}", recording.envelope(info.id, Window { begin_ns: 0, end_ns: 200 * S }, 2).ok()?);
    }
    content += &format!("{:?} {:?}", recording.events().ok()?, recording.rows("r").ok()?);
    content += &format!("{:?}", recording.load(None).ok()?);
    Some((content, recording.problems().to_vec()))
}

fn of_whole() -> &'static (String, Vec<String>) {
    static CONTENT: OnceLock<(String, Vec<String>)> = OnceLock::new();
    CONTENT.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        copy(folder.path());
        everything_in(folder.path()).unwrap()
    })
}

fn whole_content() -> &'static str {
    &of_whole().0
}

/// It was not finished, which is reported.
fn whole_problems() -> usize {
    of_whole().1.len()
}

#[test]
fn undamaged_it_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    copy(folder.path());
    assert_eq!(read_all(folder.path()), Some(1000));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn changed_bytes_never_panic(file in any::<prop::sample::Index>(), changes in prop::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..4)) {
        let folder = tempfile::tempdir().unwrap();
        let files = copy(folder.path());
        // Digests would keep the decoders from what is damaged.
        fs::remove_file(folder.path().join(MANIFEST)).unwrap();
        let files: Vec<&PathBuf> = files.iter().filter(|file| !file.ends_with(MANIFEST)).collect();
        let file = files[file.index(files.len())];
        let mut bytes = fs::read(file).unwrap();
        for (at, change) in changes {
            let at = at.index(bytes.len());
            bytes[at] ^= change;
        }
        fs::write(file, bytes).unwrap();
        prop_assert!(read_all(folder.path()).unwrap_or(0) <= 1000);
    }

    #[test]
    fn a_flipped_bit_changes_nothing_or_is_warned_of(file in any::<prop::sample::Index>(), bit in any::<prop::sample::Index>()) {
        let folder = tempfile::tempdir().unwrap();
        let files = copy(folder.path());
        let file = &files[file.index(files.len())];
        let mut bytes = fs::read(file).unwrap();
        let bit = bit.index(bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(file, bytes).unwrap();
        let read = everything_in(folder.path());
        let is_warned = read.as_ref().is_none_or(|(_, problems)| problems.len() > whole_problems());
        prop_assert!(is_warned || read.unwrap().0 == whole_content(), "bit {bit} of {}", file.display());
    }

    #[test]
    fn truncated_files_never_panic(file in any::<prop::sample::Index>(), length in any::<prop::sample::Index>()) {
        let folder = tempfile::tempdir().unwrap();
        let files = copy(folder.path());
        let file = &files[file.index(files.len())];
        let bytes = fs::read(file).unwrap();
        fs::write(file, &bytes[..length.index(bytes.len())]).unwrap();
        prop_assert!(read_all(folder.path()).unwrap_or(0) < 1001);
    }
}

#[test]
fn a_recording_that_can_not_be_begun_leaves_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let more_than_there_is = Options { reserve_bytes: 1 << 60, ..Options::default() };
    assert!(Recorder::create(&dir, more_than_there_is.clone()).is_err());
    assert!(!dir.exists());
    // One that was there stays.
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("mine"), "mine").unwrap();
    assert!(Recorder::create(&dir, more_than_there_is).is_err());
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
}
