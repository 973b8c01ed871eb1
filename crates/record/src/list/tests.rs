//! A list is the same with and without a catalogue, whatever happened to the runs and to the catalogue.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::thread;
use std::time::SystemTime;

use proptest::prelude::*;
use proptest::sample::Index;
use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;
use whyso_clock::Anchor;

use super::*;
use crate::folder::FileIdentity;
use crate::run::{Level, LevelResult, Purpose, RunEnd, Window};
use crate::{Options, Recorder};

/// Longer than a tick of the kernel's clock, by which files get their times.
const SHORT_QUIET: Duration = Duration::from_millis(25);
/// Catalogues each run that has been quiet.
const EAGER: CataloguePolicy = CataloguePolicy { uncatalogued_max: 0, quiet: SHORT_QUIET };

fn settle() {
    thread::sleep(SHORT_QUIET * 2);
}

fn run_info(number: i64, transactions_per_s: f64, text: &str) -> RunInfo {
    let mut run = RunInfo {
        id: format!("run {number}"),
        command: vec!["whyso".to_string(), text.to_string()],
        ended: Some(RunEnd::CutShort { at_ns: number, why: text.to_string() }),
        ..RunInfo::default()
    };
    run.spec.workload = (number % 2 == 0).then(|| text.to_string());
    run.server.flavor = text.to_string();
    run.host.hostname = format!("host {number}");
    run.anchors = (0..2)
        .map(|minute| Anchor {
            monotonic_ns: minute * 60_000_000_000,
            wall_ns: number * 1_000_000,
            boot_id: String::new(),
        })
        .collect();
    run.levels.push(Level {
        index: 0,
        users: 4,
        purpose: Purpose::Sweep,
        warmup: Window::default(),
        warmup_steady: true,
        window: Window { begin_ns: 1, end_ns: 2 },
        result: LevelResult {
            transactions_per_s,
            transactions: 7,
            rate_per_s: Some(transactions_per_s / 3.0),
            ..LevelResult::default()
        },
        ended: RunEnd::Complete { at_ns: 2 },
    });
    run
}

fn add(runs: &Path, name: &str, run: &RunInfo) {
    let dir = runs.join(name);
    fs::create_dir_all(&dir).unwrap();
    let json = serde_json::to_vec(run).unwrap();
    fs::write(dir.join(layout::MANIFEST), crate::manifest::line(layout::RUN, &json).unwrap()).unwrap();
    fs::write(dir.join(layout::RUN), json).unwrap();
}

/// A folder with runs that have been quiet.
fn folder_of(count: i64) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..count {
        add(folder.path(), &format!("run-{number}"), &run_info(number, 0.1 * number as f64, "oltp"));
    }
    settle();
    folder
}

fn loaded(runs: &Path) -> Vec<RunSummary> {
    load_runs(runs).unwrap().into_iter().map(|run| run.summary).collect()
}

fn read_by(runs: &Path, policy: CataloguePolicy) -> usize {
    list(runs, policy).unwrap().read
}

fn catalogue_of(runs: &Path) -> PathBuf {
    runs.join(layout::CATALOGUE)
}

#[test]
fn a_second_list_reads_no_run_and_a_third_only_what_is_new_changed_or_live() {
    let folder = folder_of(20);
    let runs = folder.path();
    assert_eq!(read_by(runs, EAGER), 20);
    assert_eq!(fs::metadata(catalogue_of(runs)).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(read_by(runs, EAGER), 0);

    add(runs, "new", &run_info(99, 5.0, "tpcc"));
    add(runs, "run-3", &run_info(3, 6.0, "changed"));
    fs::write(runs.join("run-4").join(layout::NOTES), "{}\n").unwrap();
    let recorder = File::open(runs.join("run-5")).unwrap();
    flock(&recorder, FlockOperation::LockExclusive).unwrap();
    settle();
    assert_eq!(list(runs, EAGER).unwrap().runs, loaded(runs));
    assert_eq!(read_by(runs, EAGER), 1, "the live run");
    drop(recorder);
    // It was in no catalogue while it was live.
    assert_eq!((read_by(runs, EAGER), read_by(runs, EAGER)), (1, 0));
}

#[test]
fn the_shipped_policy_writes_no_catalogue_for_a_few_runs_or_for_runs_that_have_just_changed() {
    let few = folder_of(UNCATALOGUED_MAX as i64);
    let shipped = CataloguePolicy { uncatalogued_max: UNCATALOGUED_MAX, quiet: SHORT_QUIET };
    assert_eq!((read_by(few.path(), shipped), catalogue_of(few.path()).exists()), (UNCATALOGUED_MAX, false));
    add(few.path(), "one more", &run_info(50, 1.0, "oltp"));
    settle();
    assert_eq!(
        (read_by(few.path(), shipped), catalogue_of(few.path()).exists()),
        (UNCATALOGUED_MAX + 1, true)
    );

    let many = folder_of(30);
    let cautious = CataloguePolicy { quiet: Duration::from_secs(3_600), ..shipped };
    assert_eq!((read_by(many.path(), cautious), read_by(many.path(), cautious)), (30, 30));
    assert!(!catalogue_of(many.path()).exists(), "they may still change within one tick of the clock");
    assert_eq!(list_runs(many.path()).unwrap(), loaded(many.path()));
    // A clock that was set back: nothing is settled.
    let scan = FolderScan::of(&many.path().join("run-1"));
    assert!(!scan.run.unwrap().is_settled(SystemTime::UNIX_EPOCH, QUIET));
}

#[test]
fn no_damage_to_the_catalogue_changes_the_list() {
    let folder = folder_of(2);
    let runs = folder.path();
    let expected = loaded(runs);
    list(runs, EAGER).unwrap();
    let catalogue = catalogue_of(runs);
    let whole = fs::read(&catalogue).unwrap();
    // It is not written again.
    let policy = CataloguePolicy { uncatalogued_max: usize::MAX, quiet: SHORT_QUIET };
    assert_eq!(read_by(runs, policy), 0);
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        fs::write(&catalogue, &damaged).unwrap();
        let listing = list(runs, policy).unwrap();
        assert_eq!(listing.runs, expected, "byte {at}");
        assert!(listing.read > 0, "byte {at} is not checked");
    }
    for length in (0..whole.len()).step_by(5) {
        fs::write(&catalogue, &whole[..length]).unwrap();
        assert_eq!(list(runs, policy).unwrap().runs, expected, "{length} bytes");
    }
    for foreign in [&b"\0\xff\n\n"[..], b"PAR1PAR1", &[whole.clone(), whole.clone()].concat()] {
        fs::write(&catalogue, foreign).unwrap();
        assert_eq!(list(runs, EAGER).unwrap().runs, expected);
        // A damaged one was replaced by then.
        assert_eq!(read_by(runs, EAGER), 0);
    }
}

/// The catalogue with its rows changed, and with the right checksum.
fn forge(runs: &Path, change: impl Fn(&mut Entry)) {
    let mut entries = Catalogue::read(runs).into_entries();
    entries.iter_mut().for_each(change);
    catalogue::write(runs, &entries.iter().collect::<Vec<_>>()).unwrap();
}

/// The identity of a file with another part.
fn with_part(identity: FileIdentity, part: &str, add: i64) -> FileIdentity {
    let mut json = serde_json::to_value(identity).unwrap();
    let place = if part == "changed" { &mut json[part][1] } else { &mut json[part] };
    *place = (place.as_i64().unwrap() + add).into();
    serde_json::from_value(json).unwrap()
}

#[test]
fn a_catalogue_from_elsewhere_claims_nothing() {
    let folder = folder_of(3);
    let runs = folder.path();
    let expected = loaded(runs);
    let policy = CataloguePolicy { uncatalogued_max: usize::MAX, quiet: SHORT_QUIET };
    let forged = |change: &dyn Fn(&mut Entry)| {
        fs::remove_file(catalogue_of(runs)).unwrap_or(());
        list(runs, EAGER).unwrap();
        forge(runs, |entry| {
            entry.facts.hostname = "forged".into();
            change(entry);
        });
        list(runs, policy).unwrap()
    };
    // What this test forges is believed if everything else is right: otherwise it would test nothing.
    let believed = forged(&|_| {});
    assert_eq!((believed.read, believed.runs[0].facts.hostname.as_str()), (0, "forged"));

    // An archive can't choose these.
    for part in ["inode", "device", "changed", "bytes"] {
        let listing = forged(&|entry| entry.run = with_part(entry.run, part, 1));
        assert_eq!((listing.read, listing.runs), (3, expected.clone()), "{part}");
        let listing =
            forged(&|entry| entry.manifest = entry.manifest.map(|manifest| with_part(manifest, part, 1)));
        assert_eq!((listing.read, listing.runs), (3, expected.clone()), "{part} of the manifest");
    }

    // Another folder, by a path.
    let other = folder_of(1);
    for name in ["../run-0", "/", "..", "", &other.path().join("run-0").to_string_lossy()] {
        assert_eq!(forged(&|entry| entry.name = name.into()).runs, expected, "{name}");
    }

    // Another user's, in a folder that both may write to. Only root can make one.
    let as_root = rustix::process::geteuid().is_root();
    if as_root {
        list(runs, EAGER).unwrap();
        forge(runs, |entry| entry.facts.hostname = "forged".into());
        chown(catalogue_of(runs), Some(12_345), None).unwrap();
        assert_eq!(list(runs, policy).unwrap().runs, expected);
    }

    // A link: neither read nor written through.
    forged(&|_| {});
    let elsewhere = other.path().join("elsewhere");
    fs::rename(catalogue_of(runs), &elsewhere).unwrap();
    let before = fs::read(&elsewhere).unwrap();
    symlink(&elsewhere, catalogue_of(runs)).unwrap();
    assert_eq!(list(runs, EAGER).unwrap().runs, expected);
    assert_eq!(fs::read(&elsewhere).unwrap(), before);
    assert!(fs::symlink_metadata(catalogue_of(runs)).unwrap().is_file());
}

#[test]
fn segments_are_read_again_once_a_file_of_the_run_has_changed() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path();
    let dir = runs.join("run");
    Recorder::create(&dir, Options::default()).unwrap().finish().unwrap();
    settle();
    let files = || {
        let mut listing = list(runs, EAGER).unwrap();
        listing.read_segments();
        let segments = listing.entries.remove(0).entry.of_folder.segments.unwrap();
        segments.into_iter().map(|segment| segment.file).collect::<Vec<_>>()
    };
    let before = files();
    assert!(before.contains(&layout::SERIES.to_string()), "{before:?}");
    // As `whyso runs prune` does, which leaves the run.json and the manifest as they are.
    fs::remove_file(dir.join(layout::SERIES)).unwrap();
    let after = files();
    assert_eq!(after.len() + 1, before.len(), "{after:?}");
}

#[test]
fn a_catalogue_is_written_on_request_however_few_runs_there_are() {
    let folder = folder_of(2);
    let runs = folder.path();
    // They have been quiet for less than the shipped bound: it waits.
    assert_eq!(write_catalogue(runs).unwrap(), (catalogue_of(runs), 2));
    assert_eq!(read_by(runs, SHIPPED), 0);
    assert!(write_catalogue(&runs.join("nowhere")).is_err());
}

#[test]
fn a_folder_that_cannot_be_written_is_listed_without_a_catalogue() {
    let folder = folder_of(3);
    let runs = folder.path();
    match rustix::process::geteuid().is_root() {
        // Root may write to another user's folder, and does not.
        true => chown(runs, Some(12_345), None).unwrap(),
        false => fs::set_permissions(runs, Permissions::from_mode(0o500)).unwrap(),
    }
    assert_eq!(list(runs, EAGER).unwrap().runs.len(), 3);
    assert_eq!((read_by(runs, EAGER), fs::read_dir(runs).unwrap().count()), (3, 3));
    fs::set_permissions(runs, Permissions::from_mode(0o700)).unwrap();

    let blocked = folder_of(3);
    fs::create_dir(catalogue_of(blocked.path())).unwrap();
    assert_eq!(read_by(blocked.path(), EAGER), 3);
    assert_eq!(fs::read_dir(blocked.path()).unwrap().count(), 4, "a temporary file is left");
}

#[test]
fn what_a_killed_writer_left_is_removed_and_what_another_writes_now_is_not() {
    let folder = folder_of(3);
    let temporary = |name: &str| folder.path().join(format!("{}{name}", layout::CATALOGUE_TEMPORARY_PREFIX));
    let old = File::create(temporary("1-0")).unwrap();
    old.set_modified(SystemTime::now() - Duration::from_secs(3_600)).unwrap();
    File::create(temporary("2-0")).unwrap();
    list(folder.path(), EAGER).unwrap();
    assert_eq!((temporary("1-0").exists(), temporary("2-0").exists()), (false, true));
    assert_eq!(list(folder.path(), EAGER).unwrap().runs.len(), 3);
}

#[test]
fn many_that_list_at_once_spoil_nothing() {
    let folder = folder_of(20);
    let runs = folder.path();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20 {
                    assert!(list(runs, EAGER).unwrap().runs.len() >= 20);
                }
            });
        }
        for number in 20..40 {
            add(runs, &format!("run-{number}"), &run_info(number, 1.5, "tpcc"));
            fs::remove_file(catalogue_of(runs)).unwrap_or(());
        }
    });
    settle();
    list(runs, EAGER).unwrap();
    assert_eq!(list(runs, EAGER).unwrap().runs, loaded(runs));
    assert_eq!(read_by(runs, EAGER), 0);
    let left = fs::read_dir(runs).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<String> = left.filter(|name| !name.starts_with("run-")).collect();
    assert_eq!(left, [layout::CATALOGUE]);
}

/// What happens between two lists.
#[derive(Clone, Debug)]
enum Change {
    Add {
        name: u8,
        number: i64,
        transactions_per_s: f64,
        text: String,
    },
    Remove(Index),
    Rename(Index, u8),
    Swap(Index, Index),
    /// Other content of the same length, in place, with the time of modification that the file had.
    Overwrite(Index, u8),
    /// The same by a new file of that name.
    Replace(Index, u8),
    /// The state of an earlier moment, with its times of modification.
    Restore(Index),
    RemoveManifest(Index),
    AppendToManifest(Index, String),
    AddNote(Index, String),
    GrowFile(Index, u16),
    Lock(Index),
    Unlock,
    Settle,
    RemoveCatalogue,
    RestoreCatalogue,
    DamageCatalogue(Index, u8),
    ForeignCatalogue(Vec<u8>),
}

fn change() -> impl Strategy<Value = Change> {
    let text = || "[ -~äß\\u{0}\\u{1b}]{0,12}";
    let index = any::<Index>;
    prop_oneof![
        4 => (0..6u8, any::<i64>(), any::<f64>().prop_filter("finite", |value| value.is_finite()), text()).prop_map(
            |(name, number, transactions_per_s, text)| Change::Add { name, number: number / 1_000_000, transactions_per_s, text }
        ),
        1 => index().prop_map(Change::Remove),
        1 => (index(), 0..6u8).prop_map(|(run, name)| Change::Rename(run, name)),
        1 => (index(), index()).prop_map(|(one, other)| Change::Swap(one, other)),
        2 => (index(), 0..10u8).prop_map(|(run, digit)| Change::Overwrite(run, digit)),
        2 => (index(), 0..10u8).prop_map(|(run, digit)| Change::Replace(run, digit)),
        2 => index().prop_map(Change::Restore),
        1 => index().prop_map(Change::RemoveManifest),
        1 => (index(), text()).prop_map(|(run, text)| Change::AppendToManifest(run, text)),
        1 => (index(), text()).prop_map(|(run, text)| Change::AddNote(run, text)),
        1 => (index(), any::<u16>()).prop_map(|(run, bytes)| Change::GrowFile(run, bytes)),
        1 => index().prop_map(Change::Lock),
        1 => Just(Change::Unlock),
        6 => Just(Change::Settle),
        1 => Just(Change::RemoveCatalogue),
        1 => Just(Change::RestoreCatalogue),
        2 => (index(), 1..=255u8).prop_map(|(at, bits)| Change::DamageCatalogue(at, bits)),
        1 => prop::collection::vec(any::<u8>(), 0..60).prop_map(Change::ForeignCatalogue),
    ]
}

/// Runs and their catalogue, with what an earlier moment had.
struct Place {
    folder: TempDir,
    saved: Vec<(String, Vec<u8>, SystemTime)>,
    saved_catalogue: Option<Vec<u8>>,
    recorder: Option<File>,
}

impl Place {
    fn runs(&self) -> Vec<PathBuf> {
        let mut folders = folders(self.folder.path()).unwrap();
        folders.retain(|path| path.is_dir());
        folders.sort();
        folders
    }

    fn run(&self, index: Index) -> Option<PathBuf> {
        let runs = self.runs();
        (!runs.is_empty()).then(|| index.get(&runs).clone())
    }

    fn named(&self, name: u8) -> PathBuf {
        self.folder.path().join(format!("run-{name}"))
    }

    /// Does what it can of a change.
    fn change(&mut self, change: &Change) -> std::io::Result<()> {
        let catalogue = catalogue_of(self.folder.path());
        let run = |index: &Index| self.run(*index).ok_or(std::io::ErrorKind::NotFound);
        let append = |path: PathBuf, text: &str| private::append_to_file(&path)?.write_all(text.as_bytes());
        match change {
            Change::Add { name, number, transactions_per_s, text } => {
                let name = self.named(*name);
                let name = name.file_name().unwrap().to_str().unwrap();
                add(self.folder.path(), name, &run_info(*number, *transactions_per_s, text));
            }
            Change::Remove(index) => fs::remove_dir_all(run(index)?)?,
            Change::Rename(index, name) => fs::rename(run(index)?, self.named(*name))?,
            Change::Swap(one, other) => {
                let (one, other, middle) = (run(one)?, run(other)?, self.folder.path().join("middle"));
                if one != other {
                    fs::rename(&one, &middle)?;
                    fs::rename(&other, &one)?;
                    fs::rename(&middle, &other)?;
                }
            }
            Change::Overwrite(index, digit) => {
                let file = run(index)?.join(layout::RUN);
                let modified = fs::metadata(&file)?.modified()?;
                let content = with_digit(&fs::read(&file)?, *digit);
                fs::write(&file, content)?;
                File::options().write(true).open(&file)?.set_modified(modified)?;
            }
            Change::Replace(index, digit) => {
                let file = run(index)?.join(layout::RUN);
                let modified = fs::metadata(&file)?.modified()?;
                let temporary = file.with_file_name("temporary");
                fs::write(&temporary, with_digit(&fs::read(&file)?, *digit))?;
                File::options().write(true).open(&temporary)?.set_modified(modified)?;
                fs::rename(&temporary, &file)?;
            }
            Change::Restore(index) => {
                if !self.saved.is_empty() {
                    let (name, content, modified) = index.get(&self.saved);
                    let dir = self.folder.path().join(name);
                    fs::create_dir_all(&dir)?;
                    fs::write(dir.join(layout::RUN), content)?;
                    File::options().write(true).open(dir.join(layout::RUN))?.set_modified(*modified)?;
                }
            }
            Change::RemoveManifest(index) => fs::remove_file(run(index)?.join(layout::MANIFEST))?,
            Change::AppendToManifest(index, text) => append(run(index)?.join(layout::MANIFEST), text)?,
            Change::AddNote(index, text) => append(run(index)?.join(layout::NOTES), text)?,
            Change::GrowFile(index, bytes) => {
                append(run(index)?.join("server.log"), &"x".repeat(usize::from(*bytes)))?;
            }
            Change::Lock(index) => {
                let folder = File::open(run(index)?)?;
                flock(&folder, FlockOperation::NonBlockingLockExclusive)?;
                self.recorder = Some(folder);
            }
            Change::Unlock => self.recorder = None,
            Change::Settle => {
                settle();
                list(self.folder.path(), EAGER).unwrap();
                self.saved_catalogue = fs::read(&catalogue).ok();
                for path in self.runs() {
                    let file = path.join(layout::RUN);
                    let name = path.file_name().unwrap().to_str().unwrap().to_string();
                    self.saved.push((name, fs::read(&file)?, fs::metadata(&file)?.modified()?));
                }
            }
            Change::RemoveCatalogue => fs::remove_file(catalogue)?,
            Change::RestoreCatalogue => {
                if let Some(content) = &self.saved_catalogue {
                    fs::write(catalogue, content)?;
                }
            }
            Change::DamageCatalogue(at, bits) => {
                let mut content = fs::read(&catalogue)?;
                let length = content.len();
                if length > 0 {
                    content[at.index(length)] ^= bits;
                    fs::write(catalogue, content)?;
                }
            }
            Change::ForeignCatalogue(content) => fs::write(catalogue, content)?,
        }
        Ok(())
    }
}

/// The content with another digit for its first one after "host ".
fn with_digit(content: &[u8], digit: u8) -> Vec<u8> {
    let mut changed = content.to_vec();
    let place = content.windows(5).position(|window| window == b"host ").map(|at| at + 5);
    if let Some(byte) = place.and_then(|at| changed.get_mut(at)).filter(|byte| byte.is_ascii_digit()) {
        *byte = b'0' + digit;
    }
    changed
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_list_is_the_same_with_and_without_a_catalogue_after_any_changes(
        changes in prop::collection::vec(change(), 1..24)
    ) {
        let folder = folder_of(2);
        let mut place = Place { folder, saved: Vec::new(), saved_catalogue: None, recorder: None };
        for change in &changes {
            // One that is not possible now, such as the removal of a run where there is none, changes nothing or a part.
            let _ = place.change(change);
            let runs = place.folder.path();
            prop_assert_eq!(list(runs, EAGER).unwrap().runs, loaded(runs), "after {:?}", change);
        }
    }
}
