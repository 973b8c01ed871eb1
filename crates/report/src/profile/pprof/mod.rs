//! A profile as pprof and the programs that read its files take it: gzipped profile.proto.

mod messages;

use std::collections::{BTreeMap, HashMap};
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use whyso_profile::Profile;
use whyso_record::UNKNOWN_THREAD;
use whyso_record::data::StackFrame;
use whyso_record::run::{RunInfo, Window};

use crate::Error;

/// What becomes a file for pprof.
#[derive(Clone, Copy, Debug)]
pub struct ForPprof<'a> {
    pub run: &'a RunInfo,
    pub window: Window,
    /// Such as "the level of 16 users", and whose time it is.
    pub words: &'a str,
    pub profile: &'a Profile,
    /// Of each sample of the profile, the thread's number and its role.
    pub threads: &'a [(u32, String)],
    /// The functions of the profile's stacks, by stack and depth.
    pub frames: &'a [StackFrame],
}

/// Returns the file. Each metric has two sample types: its time in nanoseconds (`cpu`), and its number of samples (`cpu_samples`). Programs show the
/// first metric's time unless the user chooses another. Each sample has its thread's `role` and `thread`, the kernel's number, as labels.
///
/// # Errors
/// None that is known, since the file is written in memory.
pub fn pprof(of: ForPprof<'_>) -> Result<Vec<u8>, Error> {
    let mut builder = ProfileBuilder::new();
    let metrics = &of.profile.metrics;
    for metric in metrics {
        for (kind, unit) in [(metric.clone(), "nanoseconds"), (format!("{metric}_samples"), "count")] {
            let value_type = messages::ValueType { kind: builder.text(&kind), unit: builder.text(unit) };
            builder.profile.sample_types.push(value_type);
        }
    }
    builder.profile.default_sample_type = builder.profile.sample_types.first().map_or(0, |first| first.kind);
    builder.profile.time_ns = wall_ns(of.run, of.window.begin_ns);
    builder.profile.duration_ns = of.window.end_ns - of.window.begin_ns;
    for comment in [format!("whyso run {}: {}", of.run.id, of.words), of.run.server.version.clone()] {
        let place = builder.text(&comment);
        builder.profile.comments.push(place);
    }
    if let Some(frame) = of.frames.iter().find(|frame| is_of_program(frame)) {
        // The first mapping is what pprof takes for the program.
        builder.mapping(frame);
    }
    let stacks = builder.stacks(of.frames);
    for ((stack, (tid, role)), values) in summed(of) {
        let Some(locations) = stacks.get(&stack) else { continue };
        let thread = (*tid != UNKNOWN_THREAD).then(|| ("thread", tid.to_string()));
        let labels = [("role", role.clone())].into_iter().chain(thread);
        let label = |(key, text): (&str, String)| messages::Label {
            key: builder.text(key),
            text: builder.text(&text),
        };
        let labels = labels.map(label).collect();
        builder.profile.samples.push(messages::Sample { locations: locations.clone(), values, labels });
    }
    builder.profile.strings = builder.strings.list;
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(&builder.profile.encode_to_vec())?;
    Ok(gzip.finish()?)
}

/// A stack, and the number and role of its thread.
type StackOfThread<'a> = (u32, &'a (u32, String));

/// Of each stack of each thread: by metric its time in nanoseconds, and its samples.
fn summed(of: ForPprof<'_>) -> BTreeMap<StackOfThread<'_>, Vec<i64>> {
    let metrics = of.profile.metrics.len();
    let mut sums: BTreeMap<StackOfThread<'_>, (Vec<f64>, Vec<i64>)> = BTreeMap::new();
    for (sample, thread) in
        of.profile.samples.iter().zip(of.threads).filter(|(sample, _)| sample.metric < metrics)
    {
        let new = || (vec![0.0; metrics], vec![0; metrics]);
        let (ns, count) = sums.entry((sample.stack, thread)).or_insert_with(new);
        ns[sample.metric] += sample.weight_ns;
        count[sample.metric] += i64::try_from(sample.count).unwrap_or(i64::MAX);
    }
    let values = |(ns, count): (Vec<f64>, Vec<i64>)| {
        ns.into_iter().zip(count).flat_map(|(ns, count)| [ns.round() as i64, count]).collect()
    };
    sums.into_iter().map(|(key, sums)| (key, values(sums))).collect()
}

/// Neither the kernel's nor a library's.
fn is_of_program(frame: &StackFrame) -> bool {
    let module = frame.module.as_str();
    !module.is_empty() && !module.starts_with('[') && !module.contains(".so")
}

/// The time of day, by the nearest anchor; 0 where there is none.
fn wall_ns(run: &RunInfo, t_ns: i64) -> i64 {
    let nearest = run.anchors.iter().min_by_key(|anchor| anchor.monotonic_ns.abs_diff(t_ns));
    nearest.map_or(0, |anchor| t_ns + anchor.wall_ns - anchor.monotonic_ns)
}

/// Distinct texts, the empty one first.
#[derive(Default)]
struct Strings {
    places: HashMap<String, i64>,
    list: Vec<String>,
}

/// A function, or several that the compiler put into each other, at one address.
type LocationKey = (u64, u64, Vec<(u64, i64)>);

/// A file as it is put together.
struct ProfileBuilder {
    profile: messages::Profile,
    strings: Strings,
    mappings: HashMap<(String, Option<String>), u64>,
    functions: HashMap<[i64; 2], u64>,
    locations: HashMap<LocationKey, u64>,
}

impl ProfileBuilder {
    fn new() -> ProfileBuilder {
        let mut builder = ProfileBuilder {
            profile: messages::Profile::default(),
            strings: Strings::default(),
            mappings: HashMap::new(),
            functions: HashMap::new(),
            locations: HashMap::new(),
        };
        builder.text("");
        builder
    }

    fn text(&mut self, text: &str) -> i64 {
        let Strings { places, list } = &mut self.strings;
        if let Some(place) = places.get(text) {
            return *place;
        }
        let place = list.len() as i64;
        list.push(text.to_string());
        places.insert(text.to_string(), place);
        place
    }

    /// The locations of every stack, innermost first.
    fn stacks(&mut self, frames: &[StackFrame]) -> HashMap<u32, Vec<u64>> {
        let mut stacks: HashMap<u32, Vec<u64>> = HashMap::new();
        // What is inlined is at the address of the function that it was put into, which comes after it.
        for inlined in frames.chunk_by(|inner, outer| inner.stack == outer.stack && inner.inlined) {
            let location = self.location(inlined);
            stacks.entry(inlined[0].stack).or_default().push(location);
        }
        stacks
    }

    fn location(&mut self, frames: &[StackFrame]) -> u64 {
        let (first, address) = (&frames[0], frames[0].address);
        let mapping = self.mapping(first);
        let lines: Vec<(u64, i64)> =
            frames.iter().map(|frame| (self.function(frame), frame.line.map_or(0, i64::from))).collect();
        if let Some(entry) = self.profile.mappings.iter_mut().find(|entry| entry.id == mapping) {
            entry.has_file_names |= frames.iter().any(|frame| frame.source_file.is_some());
            entry.has_line_numbers |= frames.iter().any(|frame| frame.line.is_some());
            entry.has_inline_frames |= frames.len() > 1;
        }
        let next = self.locations.len() as u64 + 1;
        let id = *self.locations.entry((mapping, address, lines.clone())).or_insert(next);
        if id == next {
            let lines = lines.into_iter().map(|(function, line)| messages::Line { function, line }).collect();
            self.profile.locations.push(messages::Location { id, mapping, address, lines });
        }
        id
    }

    /// 0 where the frame is no function of a file.
    fn mapping(&mut self, frame: &StackFrame) -> u64 {
        if frame.module.is_empty() {
            return 0;
        }
        let next = self.mappings.len() as u64 + 1;
        let key = (frame.module.clone(), frame.build_id.clone());
        let id = *self.mappings.entry(key).or_insert(next);
        if id == next {
            let file = self.text(&frame.module);
            let build_id = self.text(frame.build_id.as_deref().unwrap_or_default());
            let mapping = messages::Mapping { id, file, build_id, has_functions: true, ..Default::default() };
            self.profile.mappings.push(mapping);
        }
        id
    }

    fn function(&mut self, frame: &StackFrame) -> u64 {
        let name = self.text(&frame.function);
        let file = self.text(frame.source_file.as_deref().unwrap_or_default());
        let next = self.functions.len() as u64 + 1;
        let id = *self.functions.entry([name, file]).or_insert(next);
        if id == next {
            self.profile.functions.push(messages::Function { id, name, system_name: name, file });
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use whyso_clock::Anchor;
    use whyso_profile::{FunctionName, ProfileSample, functions};

    fn frame(stack: u32, depth: u32, function: &str, module: &str) -> StackFrame {
        StackFrame {
            stack,
            depth,
            function: function.to_string(),
            module: module.to_string(),
            build_id: (module == "mariadbd").then(|| "4af2".to_string()),
            address: 0x1000,
            source_file: (module == "mariadbd").then(|| "sql/sql_parse.cc".to_string()),
            line: (module == "mariadbd").then_some(depth + 10),
            inlined: false,
        }
    }

    /// A stack with an inlined function, and one that was cut.
    fn example_profile() -> (Vec<StackFrame>, Profile, Vec<(u32, String)>) {
        let inlined = StackFrame { inlined: true, ..frame(1, 1, "inlined(int)", "mariadbd") };
        let frames = vec![
            frame(1, 0, "futex_wait", "[kernel]"),
            inlined,
            frame(1, 2, "do_command(THD*, bool)", "mariadbd"),
            frame(2, 0, "do_command(THD*, bool)", "mariadbd"),
            frame(2, 1, "[cut]", ""),
        ];
        let mut profile =
            Profile { metrics: vec!["cpu".to_string(), "lock".to_string()], ..Profile::default() };
        for frame in &frames {
            let function = FunctionName { name: frame.function.clone(), module: frame.module.clone() };
            profile.stacks.entry(frame.stack).or_default().push(function);
        }
        let sample = |stack, metric, weight_ns| ProfileSample::one(stack, metric, weight_ns, 0.0);
        profile.samples = vec![sample(1, 1, 7e6), sample(2, 0, 10e6), sample(2, 0, 10e6), sample(2, 0, 10e6)];
        let threads = [(7, "connection"), (7, "connection"), (7, "connection"), (8, "purge")];
        (frames, profile, threads.map(|(tid, role)| (tid, role.to_string())).to_vec())
    }

    fn read(file: &[u8]) -> messages::Profile {
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
        messages::Profile::decode(bytes.as_slice()).unwrap()
    }

    #[test]
    fn what_is_written_has_the_profiles_sums_its_threads_and_its_lines() {
        let (frames, profile, threads) = example_profile();
        let anchor = Anchor { monotonic_ns: 1_000, wall_ns: 5_000, boot_id: String::new() };
        let run = RunInfo { anchors: vec![anchor], ..RunInfo::default() };
        let window = Window { begin_ns: 3_000, end_ns: 4_000 };
        let of =
            ForPprof { run: &run, window, words: "", profile: &profile, threads: &threads, frames: &frames };
        let file = read(&pprof(of).unwrap());
        assert_eq!((file.time_ns, file.duration_ns), (7_000, 1_000));
        let text = |place: i64| file.strings[place as usize].as_str();
        let types: Vec<(&str, &str)> =
            file.sample_types.iter().map(|kind| (text(kind.kind), text(kind.unit))).collect();
        assert_eq!(
            types,
            [
                ("cpu", "nanoseconds"),
                ("cpu_samples", "count"),
                ("lock", "nanoseconds"),
                ("lock_samples", "count")
            ]
        );
        let values: Vec<&[i64]> = file.samples.iter().map(|sample| sample.values.as_slice()).collect();
        assert_eq!(values, [[0, 0, 7_000_000, 1], [20_000_000, 2, 0, 0], [10_000_000, 1, 0, 0]]);
        let total: i64 = file.samples.iter().map(|sample| sample.values[0]).sum();
        assert_eq!(total as f64, functions(&profile).total.exclusive_ns[0]);
        let labels: Vec<(&str, &str)> =
            file.samples[2].labels.iter().map(|label| (text(label.key), text(label.text))).collect();
        assert_eq!(labels, [("role", "purge"), ("thread", "8")]);
        let called = |id: u64| {
            let location = &file.locations[id as usize - 1];
            let line =
                |line: &messages::Line| (text(file.functions[line.function as usize - 1].name), line.line);
            (location.mapping, location.lines.iter().map(line).collect::<Vec<_>>())
        };
        let stack: Vec<_> = file.samples[0].locations.iter().map(|id| called(*id)).collect();
        assert_eq!(
            stack,
            [(2, vec![("futex_wait", 0)]), (1, vec![("inlined(int)", 11), ("do_command(THD*, bool)", 12)])]
        );
        assert_eq!(called(file.samples[1].locations[1]), (0, vec![("[cut]", 0)]));
        let server = &file.mappings[0];
        assert_eq!((text(server.file), text(server.build_id)), ("mariadbd", "4af2"));
        assert!(server.has_line_numbers && server.has_inline_frames && !file.mappings[1].has_line_numbers);
    }
}
