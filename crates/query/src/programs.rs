//! The programs of a machine over a window: the CPU time that the kernel counted, and the functions that samples found.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use whyso_explain::model::{Counter, Gauge, LevelInput};
use whyso_explain::program_functions::{ProgramFunction, ProgramLine, SampledOrigin, SampledProgram, join};
use whyso_explain::programs::{Program, ProgramKind, Programs};
use whyso_model::State;
use whyso_profile::{FunctionName, OBSERVER_ROLE, Profile, ProfileSample, functions};
use whyso_record::data::{SeriesKey, StackFrame};
use whyso_record::run::Window;
use whyso_record::{ProgramTotal, Recording, StackSum};

use crate::level_series::{add_one, each_value};
use crate::profile::{RecordedProfile, places_of_states, profile_in};
use crate::{Error, ThreadFilter};

/// Names that an error lists at most.
const LISTED_MAX: usize = 12;
/// Source of the sampler of all programs, and of the samplers of those that a recording names.
const OF_ALL: &str = "program_stacks";
const OF_NAMED: &str = "program_waits";
/// What the server is called among the programs.
const SERVER: &str = "server";
/// Several that are traced together.
const SERVERS: &str = "servers";

/// The programs of a machine over a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgramsIn {
    /// The one with the most CPU time first; what no program used comes last.
    pub lines: Vec<ProgramLine>,
    /// CPUs of the machine; `None` where their time was not read.
    pub cpus: Option<f64>,
    /// Whether programs other than the server were sampled.
    pub is_sampled: bool,
    /// Length of the part of the window that has samples of programs: of the rest, the detail was removed.
    pub sampled_s: f64,
    /// Samples of programs that were lost in the window.
    pub lost: u64,
}

/// The programs of the server's machine; where the server is on another one, or there is none, of the machine that recorded. `most`:
/// functions of each program.
///
/// # Errors
/// Neither counts nor samples of programs were recorded, or the files can't be read.
pub fn programs_in(recording: &Recording, window: Window, most: usize) -> Result<ProgramsIn, Error> {
    let counted = counted_programs(recording, window)?.map(|counted| servers_together(recording, counted));
    let sampled_window = sampled_part(recording, window)?;
    let mut sampled = sampled_programs(recording, sampled_window, most)?;
    let is_sampled = all_sampled(recording);
    if is_sampled {
        sampled.extend(sampled_server(recording, window, most)?);
    }
    let cpus = counted.as_ref().and_then(|counted| counted.cpus);
    let lines = join(counted.map(|counted| counted.each).unwrap_or_default(), sampled);
    if lines.is_empty() && !is_sampled {
        return Err(Error::NotRecorded(
            "this run has no CPU time of programs in this window: it is read about once per second where whyso runs"
                .to_string(),
        ));
    }
    let lost = if is_sampled { lost_samples(recording, window)? } else { 0 };
    Ok(ProgramsIn { lines, cpus, is_sampled, sampled_s: sampled_window.seconds(), lost })
}

/// The profile of one program by the metrics that are named. A part of the name is enough if no other program has it.
///
/// # Errors
/// - No program was sampled, or there is none of this name.
/// - Only waits are asked for, and none of this program was recorded.
/// - A metric is not known, or the files can't be read.
pub fn program_profile_in(
    recording: &Recording,
    window: Window,
    program: &str,
    by: &[String],
) -> Result<RecordedProfile, Error> {
    check_sampled(recording)?;
    let places = places_of_states(by)?;
    let totals = recording.program_sums(window)?;
    let waits = recording.program_wait_sums(window)?;
    let names = totals.iter().map(|total| &total.program).chain(waits.iter().map(|wait| &wait.program));
    let program = program_called(names.collect(), program)?;
    let mut of_waits = waits.iter().filter(|wait| wait.program == program).peekable();
    if of_waits.peek().is_none() && !places.contains_key(State::Cpu.name()) {
        return Err(Error::NotRecorded(format!(
            "no wait of {program} was recorded in this window; --stacks takes those of the programs that a recording names"
        )));
    }
    let mut frames = recording.program_frames()?;
    let of_program = totals.iter().filter(|total| total.program == program);
    let mut recorded = RecordedProfile { part: 1.0, ..RecordedProfile::default() };
    recorded.profile.metrics = by.to_vec();
    for total in of_program.filter(|_| places.contains_key(State::Cpu.name())) {
        for metric in places.get(State::Cpu.name()).into_iter().flatten() {
            recorded.profile.samples.push(sample_of(total.stack, total.sum, *metric));
            recorded.threads.push((0, total.origin.to_string()));
        }
        recorded.samples += total.sum.count;
    }
    for wait in of_waits {
        let metrics = places.get(&*wait.state).map_or(&[][..], Vec::as_slice);
        for metric in metrics {
            recorded.profile.samples.push(sample_of(wait.stack, wait.sum, *metric));
            recorded.threads.push((0, "process".to_string()));
        }
        if !metrics.is_empty() {
            recorded.waits += wait.sum.count;
        }
    }
    let used: BTreeSet<u32> = recorded.profile.samples.iter().map(|sample| sample.stack).collect();
    frames.retain(|frame| used.contains(&frame.stack));
    recorded.profile.stacks = stacks_of(&frames);
    let rootless = rootless_of(&frames);
    let of_rootless = recorded.profile.samples.iter().filter(|sample| rootless.contains(&sample.stack));
    recorded.rootless = of_rootless.map(|sample| sample.count).sum();
    recorded.frames = frames;
    Ok(recorded)
}

/// Whether waits of a program were recorded with their stacks, which a part of its name may mean.
///
/// # Errors
/// The files can't be read.
pub fn program_has_waits(recording: &Recording, asked: &str) -> Result<bool, Error> {
    let always = Window { begin_ns: i64::MIN, end_ns: i64::MAX };
    let waits = recording.program_wait_sums(always)?;
    // The whole name of one program is no part of another's.
    let is_whole = recording.program_sums(always)?.iter().any(|total| &*total.program == asked)
        || waits.iter().any(|wait| &*wait.program == asked);
    Ok(waits.iter().any(|wait| if is_whole { &*wait.program == asked } else { wait.program.contains(asked) }))
}

/// Whether all programs of the machine were sampled. Those that a recording names can be the only ones.
fn all_sampled(recording: &Recording) -> bool {
    let has = |source: &str| recording.series().iter().any(|info| info.key.source == source);
    recording.has_program_stacks() && (has(OF_ALL) || !has(OF_NAMED))
}

fn check_sampled(recording: &Recording) -> Result<(), Error> {
    if recording.has_program_stacks() || recording.has_program_waits() {
        return Ok(());
    }
    Err(Error::NotRecorded(
        "this run holds no stacks of programs other than the server: record it with --stacks-of all, or name the program, too, and give --stacks"
            .to_string(),
    ))
}

/// The whole name of a program.
fn program_called(names: BTreeSet<&Arc<str>>, asked: &str) -> Result<Arc<str>, Error> {
    if let Some(name) = names.iter().find(|name| &****name == asked) {
        return Ok(Arc::clone(name));
    }
    let fitting: Vec<&&Arc<str>> = names.iter().filter(|name| name.contains(asked)).collect();
    if let [only] = fitting.as_slice() {
        return Ok(Arc::clone(only));
    }
    let listed = if fitting.is_empty() { names.iter().collect() } else { fitting };
    let mut words: Vec<&str> = listed.iter().take(LISTED_MAX).map(|name| &****name).collect();
    if listed.len() > LISTED_MAX {
        words.push("…");
    }
    Err(Error::WrongUse(match words.as_slice() {
        [] => {
            "no program other than the server was found on a CPU in this window: choose another".to_string()
        }
        _ if asked == SERVER => {
            format!("the server's own stacks are shown without --program; with it: {}", words.join(", "))
        }
        _ => format!("no program is called '{asked}', or several are; there are: {}", words.join(", ")),
    }))
}

fn sample_of(stack: u32, sum: StackSum, metric: usize) -> ProfileSample {
    ProfileSample {
        stack,
        metric,
        weight_ns: sum.weight_ns as f64,
        count: sum.count,
        variance_ns2: sum.variance_ns2,
    }
}

fn stacks_of(frames: &[StackFrame]) -> BTreeMap<u32, Vec<FunctionName>> {
    let mut stacks: BTreeMap<u32, Vec<FunctionName>> = BTreeMap::new();
    for frame in frames {
        let function = FunctionName { name: frame.function.clone(), module: frame.module.clone() };
        stacks.entry(frame.stack).or_default().push(function);
    }
    stacks
}

/// Stacks that do not reach the function that their thread began with.
fn rootless_of(frames: &[StackFrame]) -> BTreeSet<u32> {
    frames.iter().filter(|frame| frame.module.is_empty()).map(|frame| frame.stack).collect()
}

/// The sampled programs except the server.
fn sampled_programs(
    recording: &Recording,
    window: Window,
    most: usize,
) -> Result<Vec<SampledProgram>, Error> {
    if !all_sampled(recording) || window.seconds() <= 0.0 {
        return Ok(Vec::new());
    }
    let totals = recording.program_sums(window)?;
    let stacks = stacks_of(&recording.program_frames()?);
    let mut by_program: BTreeMap<(&Arc<str>, &Arc<str>), Vec<&ProgramTotal>> = BTreeMap::new();
    for total in &totals {
        by_program.entry((&total.program, &total.origin)).or_default().push(total);
    }
    let program = |((name, origin), totals): ((&Arc<str>, &Arc<str>), Vec<&ProgramTotal>)| {
        let own = |total: &&ProgramTotal| Some((total.stack, stacks.get(&total.stack)?.clone()));
        let profile = Profile {
            metrics: vec![State::Cpu.name().to_string()],
            stacks: totals.iter().filter_map(own).collect(),
            samples: totals.iter().map(|total| sample_of(total.stack, total.sum, 0)).collect(),
            ..Profile::default()
        };
        let ns: u64 = totals.iter().map(|total| total.sum.weight_ns).sum();
        SampledProgram {
            name: name.to_string(),
            origin: match origin.as_ref() {
                "kernel" => SampledOrigin::Kernel,
                OBSERVER_ROLE => SampledOrigin::Observer,
                _ => SampledOrigin::Process,
            },
            cpus: ns as f64 / 1e9 / window.seconds(),
            samples: Some(totals.iter().map(|total| total.sum.count).sum()),
            functions: busiest(&profile, ns as f64, most),
        }
    };
    Ok(by_program.into_iter().map(program).collect())
}

/// The server's threads, or those of the processes that were recorded; without whyso's own probes and questions. `None` where they were not
/// sampled.
fn sampled_server(
    recording: &Recording,
    window: Window,
    most: usize,
) -> Result<Option<SampledProgram>, Error> {
    let filter = ThreadFilter { role: Some("all".to_string()), ..ThreadFilter::default() };
    let recorded = match profile_in(recording, window, &[State::Cpu.name().to_string()], &filter) {
        Ok(recorded) => recorded,
        Err(Error::NotRecorded(_) | Error::WrongUse(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let ns: f64 = recorded.profile.samples.iter().map(|sample| sample.weight_ns).sum();
    Ok(Some(SampledProgram {
        name: recording.run().process().unwrap_or(SERVER).to_string(),
        origin: SampledOrigin::Server,
        cpus: ns / 1e9 / window.seconds(),
        samples: Some(recorded.samples),
        functions: busiest(&recorded.profile, ns, most),
    }))
}

/// The functions with the most time of their own. Time in stacks whose functions are not known is in no function.
fn busiest(profile: &Profile, ns: f64, most: usize) -> Vec<ProgramFunction> {
    let own = |exclusive_ns: &[f64]| exclusive_ns.first().copied().unwrap_or(0.0);
    functions(profile)
        .functions
        .into_iter()
        .filter(|time| own(&time.exclusive_ns) > 0.0)
        .take(most)
        .map(|time| ProgramFunction {
            share: own(&time.exclusive_ns) / ns.max(1.0),
            name: time.function.name,
            module: time.function.module,
        })
        .collect()
}

/// Servers that are traced together have samples together, and so one count.
fn servers_together(recording: &Recording, mut counted: Programs) -> Programs {
    let is_traced = |program: &Program| {
        program.kind == ProgramKind::Node && recording.run().is_other_loaded_node(&program.name)
    };
    let nodes_cpus: f64 =
        counted.each.iter().filter(|program| is_traced(program)).map(|program| program.cpus).sum();
    if let Some(server) = counted.each.iter_mut().find(|program| program.kind == ProgramKind::Server)
        && nodes_cpus > 0.0
    {
        server.cpus += nodes_cpus;
        server.name = SERVERS.to_string();
        counted.each.retain(|program| !is_traced(program));
    }
    counted
}

/// The part of a window whose samples of programs are kept.
fn sampled_part(recording: &Recording, window: Window) -> Result<Window, Error> {
    let from_ns = recording.program_stacks_kept_from_ns()?.unwrap_or(window.begin_ns);
    Ok(Window { begin_ns: window.begin_ns.max(from_ns).min(window.end_ns), ..window })
}

/// Samples of programs that were lost in a window.
fn lost_samples(recording: &Recording, window: Window) -> Result<u64, Error> {
    let is_chosen = |key: &SeriesKey| key.source == OF_ALL && key.metric == "lost";
    let mut level =
        [LevelInput { begin_ns: window.begin_ns, end_ns: window.end_ns, ..LevelInput::default() }];
    each_value(recording, &mut level, is_chosen, add_one)?;
    let [level] = level;
    Ok(level.counters.iter().map(|counter| counter.increase.max(0.0) as u64).sum())
}

/// What the kernel counted of each program. `None` where it was not read.
fn counted_programs(recording: &Recording, window: Window) -> Result<Option<Programs>, Error> {
    let host = host_of(recording);
    let run = recording.run();
    let is_chosen = |key: &SeriesKey| {
        let is_here = key.host == host
            || key.source == "generator_process" && !run.is_across_hosts()
            // All processes of a program are counted as such.
            || key.source == "server_process"
                && run.is_other_node(&key.host)
                && !run.is_other_program(&key.host);
        Programs::has(&key.source, &key.metric) && is_here
    };
    let mut level =
        [LevelInput { begin_ns: window.begin_ns, end_ns: window.end_ns, ..LevelInput::default() }];
    each_value(recording, &mut level, is_chosen, add_one)?;
    let [mut level] = level;
    // On a host of several, its own name.
    let rename = |host_name: &mut String| {
        if *host_name == host {
            *host_name = SERVER.to_string();
        }
    };
    level.counters.iter_mut().for_each(|counter: &mut Counter| rename(&mut counter.series.host));
    level.gauges.iter_mut().for_each(|gauge: &mut Gauge| rename(&mut gauge.series.host));
    Ok(Programs::of(&level.counters, &level.gauges, window.seconds()))
}

/// Host of the series about the machine: the server's, or where there is none, the one that recorded.
fn host_of(recording: &Recording) -> String {
    if let Some(host) = recording.run().server_host() {
        return host.name.clone();
    }
    let has_programs = |host: &str| {
        recording.series().iter().any(|info| info.key.source == "neighbours" && info.key.host == host)
    };
    if has_programs(SERVER) { SERVER.to_string() } else { "client".to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyso_record::data::{Kind, ProgramSample, ProgramWait, Reading, StackSample, Status, Value};
    use whyso_record::run::{Level, LevelResult, Purpose, RunEnd, RunInfo};
    use whyso_record::{Options, Recorder};

    const S: i64 = 1_000_000_000;

    fn frame(stack: u32, depth: u32, function: &str, module: &str) -> StackFrame {
        StackFrame {
            stack,
            depth,
            function: function.to_string(),
            module: module.to_string(),
            build_id: None,
            address: 0,
            source_file: None,
            line: None,
            inlined: false,
        }
    }

    /// Ten seconds: the server's stacks, with the same numbers as those of programs if `has_programs`.
    fn recorded(folder: &std::path::Path, has_programs: bool) -> Recording {
        let dir = folder.join(format!("run-{has_programs}"));
        let recorder = Recorder::create(&dir, Options { reserve_bytes: 0, ..Options::default() }).unwrap();
        let window = Window { begin_ns: 0, end_ns: 10 * S };
        let level = Level {
            index: 0,
            users: 1,
            purpose: Purpose::Sweep,
            warmup: Window { begin_ns: 0, end_ns: 0 },
            warmup_steady: true,
            window,
            result: LevelResult { seconds: 10.0, transactions: 1_000, ..LevelResult::default() },
            ended: RunEnd::Complete { at_ns: window.end_ns },
        };
        let ended = Some(RunEnd::Complete { at_ns: 20 * S });
        recorder.set_run(&RunInfo { levels: vec![level], ended, ..RunInfo::default() });
        recorder.frames(&[frame(0, 0, "log_write", "server"), frame(0, 1, "main", "server")]);
        let of_server = |t_ns| StackSample {
            t_ns,
            tid: 1,
            role: "connection".to_string(),
            stack: 0,
            weight_ns: S as u64,
        };
        recorder.stacks(&[of_server(1), of_server(S), of_server(2 * S)]);
        let id = recorder.series(&SeriesKey {
            host: SERVER.to_string(),
            source: "neighbours".to_string(),
            metric: "cpu_ns".to_string(),
            instance: "python3".to_string(),
            kind: Kind::Counter,
            unit: "ns".to_string(),
        });
        for second in 0..=10 {
            let (source, t_ns) = ("neighbours".to_string(), second * S);
            let values = vec![(id, Value::Int(second * S / 2))];
            recorder.reading(Reading { source, begin_ns: t_ns, end_ns: t_ns, status: Status::Ok, values });
        }
        if has_programs {
            recorder.program_frames(&[
                frame(0, 0, "_PyEval_EvalFrameDefault", "python3.13"),
                frame(0, 1, "_start", "python3.13"),
                frame(1, 0, "do_syscall_64", "[kernel]"),
                frame(1, 1, "[lost]", ""),
                frame(2, 0, "clear_page", "[kernel]"),
            ]);
            let sample = |t_ns, program: &str, origin: &str, stack| ProgramSample {
                t_ns,
                pid: 9,
                program: program.to_string(),
                origin: origin.to_string(),
                stack,
                weight_ns: S as u64,
            };
            let wait = |t_ns, program: &str, state: &str| ProgramWait {
                t_ns,
                tid: 9,
                program: program.to_string(),
                state: state.to_string(),
                length_ns: S as u64,
                weight_ns: 2 * S as u64,
                stack: 1,
            };
            recorder.program_waits(&[
                wait(1, "python3", "lock"),
                wait(2, "python3", "file_sync"),
                wait(3, "perl", "lock"),
                wait(11 * S, "python3", "lock"),
            ]);
            recorder.program_stacks(&[
                sample(1, "python3", "process", 0),
                sample(2, "python3", "process", 0),
                sample(3, "python3", "process", 0),
                sample(4, "python3", "process", 1),
                sample(5, "[kcompactd0]", "kernel", 2),
                sample(6, "whyso", "observer", 1),
                sample(11 * S, "python3", "process", 2),
            ]);
        }
        recorder.finish().unwrap();
        Recording::open(&dir).unwrap()
    }

    const WINDOW: Window = Window { begin_ns: 0, end_ns: 10 * S };

    #[test]
    fn programs_have_their_counted_time_and_their_functions() {
        let folder = tempfile::tempdir().unwrap();
        let found = programs_in(&recorded(folder.path(), true), WINDOW, 1).unwrap();
        assert!(found.is_sampled);
        let shown: Vec<_> = found
            .lines
            .iter()
            .map(|line| {
                let sampled = line.sampled.as_ref().unwrap();
                let function = &sampled.functions[0];
                (line.name.as_str(), line.cpus(), sampled.samples, function.name.as_str(), function.share)
            })
            .collect();
        assert_eq!(
            shown,
            [
                ("python3", 0.5, Some(4), "_PyEval_EvalFrameDefault", 0.75),
                ("server", 0.3, Some(3), "log_write", 1.0),
                ("[kcompactd0]", 0.1, Some(1), "clear_page", 1.0),
                ("whyso", 0.1, Some(1), "do_syscall_64", 1.0),
            ]
        );
    }

    #[test]
    fn a_program_has_a_profile_of_its_window_only() {
        let folder = tempfile::tempdir().unwrap();
        let recording = recorded(folder.path(), true);
        let cpu = ["cpu".to_string()];
        let recorded = program_profile_in(&recording, WINDOW, "python", &cpu).unwrap();
        assert_eq!((recorded.samples, recorded.waits, recorded.rootless, recorded.part), (4, 0, 1, 1.0));
        let times = functions(&recorded.profile);
        assert_eq!(times.total.exclusive_ns, [4e9]);
        assert_eq!(times.functions[0].function.name, "_PyEval_EvalFrameDefault");
        let refused =
            |name: &str| program_profile_in(&recording, WINDOW, name, &cpu).unwrap_err().to_string();
        assert_eq!(
            refused("ruby"),
            "no program is called 'ruby', or several are; there are: [kcompactd0], perl, python3, whyso"
        );
        assert!(refused("server").starts_with("the server's own stacks are shown without --program"));
    }

    #[test]
    fn waits_of_a_program_are_columns_next_to_its_time_on_cpus() {
        let folder = tempfile::tempdir().unwrap();
        let recording = recorded(folder.path(), true);
        let by = |metrics: &[&str]| metrics.iter().map(ToString::to_string).collect::<Vec<_>>();
        let profile = |name, metrics: &[&str]| program_profile_in(&recording, WINDOW, name, &by(metrics));
        let whole = profile("python3", &["lock", "cpu", "io"]).unwrap();
        assert_eq!((whole.samples, whole.waits), (4, 2));
        assert_eq!(functions(&whole.profile).total.exclusive_ns, [2e9, 4e9, 2e9]);
        let locks = profile("python3", &["lock"]).unwrap();
        assert_eq!((locks.samples, locks.waits), (0, 1), "what was asked for");
        assert_eq!(
            functions(&profile("perl", &["cpu", "lock"]).unwrap().profile).total.exclusive_ns,
            [0.0, 2e9]
        );
        let refused = profile("[kcompactd0]", &["lock"]).unwrap_err().to_string();
        assert!(refused.starts_with("no wait of [kcompactd0] was recorded in this window"), "{refused}");
        let knows = |name| program_has_waits(&recording, name).unwrap();
        assert_eq!([knows("pyth"), knows("perl"), knows("whyso")], [true, true, false]);
    }

    #[test]
    fn samples_of_programs_change_nothing_of_what_is_known_of_the_server() {
        let folder = tempfile::tempdir().unwrap();
        let (with, without) = (recorded(folder.path(), true), recorded(folder.path(), false));
        for role in ["all", "connection"] {
            let filter = ThreadFilter { role: Some(role.to_string()), ..ThreadFilter::default() };
            let profile = |recording| profile_in(recording, WINDOW, &["cpu".to_string()], &filter).unwrap();
            assert_eq!(profile(&with), profile(&without));
        }
        let longer = Window { begin_ns: 0, end_ns: 20 * S };
        assert_eq!(with.stack_sums(longer).unwrap(), without.stack_sums(longer).unwrap());
        assert_eq!(with.stacks_window().unwrap(), without.stacks_window().unwrap());
        assert_eq!(with.frames().unwrap(), without.frames().unwrap());
        let input = |recording| crate::input(recording).unwrap();
        assert!(!input(&with).levels[0].activities.is_empty(), "what the server did on CPUs is known");
        assert_eq!(input(&with), input(&without));
        assert_eq!(crate::explain(&with).unwrap(), crate::explain(&without).unwrap());
    }

    #[test]
    fn a_run_without_stacks_of_programs_has_their_time_and_says_how_to_take_them() {
        let folder = tempfile::tempdir().unwrap();
        let recording = recorded(folder.path(), false);
        let found = programs_in(&recording, WINDOW, 3).unwrap();
        assert!(!found.is_sampled);
        assert_eq!(found.lines.len(), 1);
        assert_eq!((found.lines[0].name.as_str(), found.lines[0].cpus()), ("python3", 0.5));
        let refused = program_profile_in(&recording, WINDOW, "python3", &["cpu".to_string()]);
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("record it with --stacks-of all"), "{refused}");
    }
}
