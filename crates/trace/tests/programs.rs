//! Processes of any kind: found by name or number, followed into what they start, their files named though nobody keeps them open.

mod support;

use std::path::Path;
use std::time::{Duration, Instant};

use support::{Subject, alone};
use whyso_model::State;
use whyso_trace::{Error, FileWait, Program, Reading, TraceSpec, Tracer};

const WRITERS: usize = 8;
/// Bound on the wait for what must be seen sooner or later.
const SEEN_TIME_MAX: Duration = Duration::from_secs(20);
/// As the kernel keeps it.
const SUBJECT_NAME: &str = "trace-subject";

fn tracer(program: Program) -> Option<Tracer> {
    match Tracer::start(&TraceSpec { program: Some(program), ..TraceSpec::default() }) {
        Ok(tracer) => Some(tracer),
        Err(why @ (Error::NotAllowed | Error::NoBtf)) => {
            whyso_testing::tracer_not_tested(why);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn start_writers(folder: &Path) -> (Subject, Vec<u32>) {
    let mut subject = Subject::start(&["writers", &WRITERS.to_string()], folder);
    let pids = (0..WRITERS).map(|_| subject.line()[1].parse().unwrap()).collect();
    (subject, pids)
}

fn watched_pids(reading: &Reading) -> Vec<u32> {
    let mut pids: Vec<u32> = reading.threads.iter().map(|thread| thread.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

/// Reads until the condition holds.
fn until(tracer: &mut Tracer, condition: impl Fn(&Reading, &[FileWait]) -> bool) -> (Reading, Vec<FileWait>) {
    let begun = Instant::now();
    loop {
        std::thread::sleep(Duration::from_millis(100));
        let (reading, files) = (tracer.read(), tracer.files());
        if condition(&reading, &files) || begun.elapsed() > SEEN_TIME_MAX {
            return (reading, files);
        }
    }
}

fn lock_wait<'a>(files: &'a [FileWait], path: &Path) -> Option<&'a FileWait> {
    files.iter().find(|wait| wait.state == State::KernelLock && wait.path.as_deref() == Some(path))
}

#[test]
fn a_queue_on_the_lock_of_a_log_or_of_a_folder_has_its_path() {
    let _alone = alone();
    let folder = tempfile::Builder::new().prefix("whyso-writers-").tempdir_in("/var/tmp").unwrap();
    let Some(mut tracer) = tracer(Program { name: SUBJECT_NAME.to_string(), ..Program::default() }) else {
        return;
    };
    let (_subject, pids) = start_writers(folder.path());
    let log = folder.path().join("access.log");
    let sessions = folder.path().join("sessions/");
    let (reading, files) = until(&mut tracer, |_, files| {
        lock_wait(files, &log).is_some_and(|wait| wait.count > 100)
            && lock_wait(files, &sessions).is_some_and(|wait| wait.count > 10)
    });
    println!("log: {:?}\nsessions: {:?}", lock_wait(&files, &log), lock_wait(&files, &sessions));
    let waits = lock_wait(&files, &log).unwrap_or_else(|| panic!("no lock of {}: {files:?}", log.display()));
    assert!(waits.count > 100 && waits.ns > 0, "{waits:?}");
    let waits = lock_wait(&files, &sessions).unwrap_or_else(|| panic!("no lock of the folder: {files:?}"));
    assert!(
        waits.path.as_ref().unwrap().to_str().unwrap().ends_with('/'),
        "a folder's path ends in a slash: {waits:?}"
    );
    let watched = watched_pids(&reading);
    assert!(pids.iter().all(|pid| watched.contains(pid)), "{pids:?} of {watched:?}");
    // All that they waited in the kernel's locks is counted by file, except for locks of no file.
    let in_locks: u64 = reading.threads.iter().map(|thread| thread.states[State::KernelLock as usize]).sum();
    let named_ns: u64 = files.iter().filter(|wait| wait.state == State::KernelLock).map(|wait| wait.ns).sum();
    println!("{named_ns} ns of {in_locks} ns in the kernel's locks are counted by file");
    assert!(named_ns as f64 >= 0.8 * in_locks as f64, "{named_ns} of {in_locks} ns");
}

#[test]
fn what_a_numbered_process_starts_is_watched_and_its_namesakes_are_not() {
    let _alone = alone();
    let folders =
        [(); 2].map(|()| tempfile::Builder::new().prefix("whyso-writers-").tempdir_in("/var/tmp").unwrap());
    let (_other, others) = start_writers(folders[0].path());
    let mut subject = Subject::start(&["forks"], folders[1].path());
    let Some(mut tracer) = tracer(Program { pids: vec![subject.pid()], ..Program::default() }) else {
        return;
    };
    subject.go(1);
    // Of another name: what it starts counts whatever it becomes.
    let child: u32 = subject.line()[1].parse().unwrap();
    let (reading, _) = until(&mut tracer, |reading, _| {
        reading.threads.iter().any(|thread| thread.pid == child && thread.name == "sleep")
    });
    let watched = watched_pids(&reading);
    assert!(watched.contains(&child), "{child} of {watched:?}");
    assert!(reading.threads.iter().any(|thread| thread.pid == child && thread.name == "sleep"));
    assert!(others.iter().all(|pid| !watched.contains(pid)), "{others:?} in {watched:?}");
}
