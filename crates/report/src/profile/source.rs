//! A function's source, line by line, with the time of each.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use whyso_profile::{LineTime, Profile, SourcePlace, SourceTimes, TOTAL};

use super::json::with_head;
use super::{SampledIn, about, aligned, clean, in_seconds, words};

/// Lines that are shown around those that have time.
const AROUND: u32 = 4;
/// Stands before a line that has this part of a metric's largest line at least.
const HOT_MARK: &str = "##";
const HOT_SHARE: f64 = 0.75;
/// Longest line of text, in characters.
const TEXT_MAX: usize = 160;

/// The text of one source file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceText {
    /// Where it was read; empty where it was not.
    pub path: String,
    pub lines: Vec<String>,
}

/// Reads a source file by its name as the build has it; `None` where it is in no folder that sources are read from.
pub type ReadSource<'a> = &'a dyn Fn(&str) -> Option<SourceText>;

/// What is annotated.
#[derive(Clone, Copy, Debug)]
pub struct AnnotatedSource<'a> {
    /// The function, or the file.
    pub name: &'a str,
    pub times: &'a SourceTimes,
    /// By the file's name as the build has it.
    pub texts: &'a BTreeMap<String, SourceText>,
    /// Every line, not only those around lines with time.
    pub whole: bool,
}

/// Returns the source, each line with its exclusive and inclusive time. The lines with the most time are marked with `##`. If the file's text is not
/// available, only lines with time are shown.
pub fn annotated(sampled: SampledIn<'_>, profile: &Profile, of: AnnotatedSource<'_>) -> String {
    let AnnotatedSource { name, times, texts, whole } = of;
    let total_ns = profile.total_ns();
    let mut out = about(sampled, profile, &total_ns);
    let hot_ns = hottest(times).map(|ns| ns * HOT_SHARE);
    let hot = |time: &LineTime| {
        let is_hot = |(ns, least): (&f64, &f64)| *ns > 0.0 && ns >= least;
        let exclusive = time.exclusive_ns.iter().zip(&hot_ns.exclusive_ns).any(is_hot);
        exclusive || time.inclusive_ns.iter().zip(&hot_ns.inclusive_ns).any(is_hot)
    };
    let metrics = profile.metrics.len();
    let mut files: Vec<&str> = times.lines.keys().map(|place| place.file.as_str()).collect();
    files.dedup();
    let all = LineTime { exclusive_ns: total_ns.clone(), inclusive_ns: total_ns };
    let summary = [(TOTAL, &all), (name, &times.total), ("<no line>", &times.unknown)];
    let mut rows = vec![head(profile)];
    rows.extend(
        summary
            .iter()
            .filter(|(_, time)| time.is_some())
            .map(|(name, time)| row(metrics, Some(time), false, String::new(), name)),
    );
    for file in files {
        let with_time: BTreeMap<u32, &LineTime> = times
            .lines
            .iter()
            .filter(|(place, _)| place.file == file)
            .map(|(place, time)| (place.line, time))
            .collect();
        let none = SourceText::default();
        let text = texts.get(file).unwrap_or(&none);
        rows.push(row(metrics, None, false, String::new(), &title(file, text)));
        let mut before = 0;
        for line in visible_lines(&with_time, text.lines.len() as u32, whole) {
            if line > before + 1 && before > 0 && !text.lines.is_empty() {
                rows.push(row(metrics, None, false, "…".to_string(), ""));
            }
            before = line;
            let time = with_time.get(&line).copied();
            let text = text.lines.get(line as usize - 1).map_or("", String::as_str);
            rows.push(row(metrics, time, time.is_some_and(hot), format!("{line}."), text));
        }
    }
    out.push('\n');
    out.push_str(&aligned(&rows, &[0, rows[0].len() - 1]));
    out
}

/// Returns what `whyso source --json` prints. Times are in nanoseconds.
pub fn annotated_json(sampled: SampledIn<'_>, profile: &Profile, of: AnnotatedSource<'_>) -> Value {
    let times = |time: &LineTime| {
        let pairs = time.exclusive_ns.iter().zip(&time.inclusive_ns);
        let pair = |(metric, (exclusive_ns, inclusive_ns)): (&String, (&f64, &f64))| {
            (metric.clone(), json!({"exclusive_ns": exclusive_ns, "inclusive_ns": inclusive_ns}))
        };
        Value::Object(profile.metrics.iter().zip(pairs).map(pair).collect::<Map<_, _>>())
    };
    let line = |(place, time): (&SourcePlace, &LineTime)| {
        let text = of.texts.get(&place.file).and_then(|text| text.lines.get(place.line as usize - 1));
        let mut object = times(time);
        object["file"] = json!(place.file);
        object["line"] = json!(place.line);
        object["text"] = json!(text);
        object
    };
    let view = json!({
        "name": of.name,
        "total": times(&of.times.total),
        "no_line": times(&of.times.unknown),
        "lines": of.times.lines.iter().map(line).collect::<Vec<_>>(),
    });
    with_head(sampled, profile, view)
}

/// The largest exclusive and inclusive time of any line, metric by metric.
fn hottest(times: &SourceTimes) -> Hottest {
    let largest = |of: fn(&LineTime) -> &[f64]| {
        let mut largest = vec![0.0f64; of(&times.total).len()];
        for time in times.lines.values() {
            largest.iter_mut().zip(of(time)).for_each(|(largest, ns)| *largest = largest.max(*ns));
        }
        largest
    };
    Hottest {
        exclusive_ns: largest(|time| &time.exclusive_ns),
        inclusive_ns: largest(|time| &time.inclusive_ns),
    }
}

struct Hottest {
    exclusive_ns: Vec<f64>,
    inclusive_ns: Vec<f64>,
}

impl Hottest {
    fn map(self, change: impl Fn(f64) -> f64 + Copy) -> Hottest {
        let each = |times: Vec<f64>| times.into_iter().map(change).collect();
        Hottest { exclusive_ns: each(self.exclusive_ns), inclusive_ns: each(self.inclusive_ns) }
    }
}

/// Numbers of the lines that are shown, ascending: of a file of `lines` lines, 0 where its text is not there.
fn visible_lines(with_time: &BTreeMap<u32, &LineTime>, lines: u32, whole: bool) -> Vec<u32> {
    let mut shown: Vec<u32> = with_time.keys().copied().collect();
    if whole {
        shown.extend(1..=lines);
    }
    for line in with_time.keys() {
        shown.extend(line.saturating_sub(AROUND).max(1)..=line.saturating_add(AROUND).min(lines));
    }
    shown.sort_unstable();
    shown.dedup();
    shown
}

fn title(file: &str, text: &SourceText) -> String {
    match text.path.as_str() {
        "" => format!("{file}: its source is not read"),
        path if path == file => file.to_string(),
        path => format!("{file}, read from {path}"),
    }
}

fn head(profile: &Profile) -> Vec<String> {
    let of = |metric: &String| [format!("excl. {} s", words(metric)), format!("incl. {} s", words(metric))];
    let mut head = vec![String::new()];
    head.extend(profile.metrics.iter().flat_map(of));
    head.extend([String::new(), String::new()]);
    head
}

fn row(metrics: usize, time: Option<&LineTime>, is_hot: bool, line: String, text: &str) -> Vec<String> {
    let mut row = vec![if is_hot { HOT_MARK } else { "" }.to_string()];
    match time {
        None => row.resize(1 + 2 * metrics, String::new()),
        Some(time) => {
            let pairs = time.exclusive_ns.iter().zip(&time.inclusive_ns);
            row.extend(pairs.flat_map(|(exclusive, inclusive)| [*exclusive, *inclusive]).map(in_seconds));
        }
    }
    let text = text.replace('\t', "    ");
    row.extend([line, clean(&text).chars().take(TEXT_MAX).collect()]);
    row
}

#[cfg(test)]
mod tests {
    use super::super::tests::SAMPLED;
    use super::*;
    use whyso_profile::{FunctionName, ProfileSample, SourceFilter, source_times};

    /// `walk` at lines 12 and 14 of `walk.c`, and once where no line is known.
    fn example_profile() -> (Profile, SourceTimes) {
        let name = |name: &str| FunctionName { name: name.to_string(), module: "server".to_string() };
        let place = |line| Some(SourcePlace { file: "./walk.c".to_string(), line });
        let mut profile =
            Profile { metrics: vec!["cpu".to_string(), "lock".to_string()], ..Profile::default() };
        let mut places = BTreeMap::new();
        let stacks = [(0, place(12), None), (1, place(14), Some("futex_wait")), (2, None, None)];
        for (id, place, callee) in stacks {
            let callees = callee.map(name).into_iter();
            profile.stacks.insert(id, callees.clone().chain([name("walk")]).collect());
            places.insert(id, callees.map(|_| None).chain([place]).collect());
        }
        let sample = |stack, metric, weight_ns| ProfileSample::one(stack, metric, weight_ns, weight_ns);
        profile.samples =
            vec![sample(0, 0, 2e9), sample(1, 1, 7e9), sample(1, 0, 0.1e9), sample(2, 0, 0.5e9)];
        let times = source_times(&profile, &places, SourceFilter::Function(&name("walk")));
        (profile, times)
    }

    fn texts() -> BTreeMap<String, SourceText> {
        let mut lines: Vec<String> = (1..=40).map(|line| format!("\tline {line}")).collect();
        lines[13] = "\tpthread_mutex_lock(\u{1b}[2J);".to_string();
        BTreeMap::from([("./walk.c".to_string(), SourceText { path: "/src/walk.c".to_string(), lines })])
    }

    #[test]
    fn lines_stand_with_their_times_and_those_with_the_most_are_marked() {
        let (profile, times) = example_profile();
        let texts = texts();
        let of = AnnotatedSource { name: "walk", times: &times, texts: &texts, whole: false };
        let text = annotated(SAMPLED, &profile, of);
        let rows: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "",
                "    excl. cpu s  incl. cpu s  excl. lock s  incl. lock s",
                "            2.6          2.6             7             7       <Total>",
                "            2.5          2.6             0             7       walk",
                "            0.5          0.5             0             0       <no line>",
                "                                                               ./walk.c, read from /src/walk.c",
                "                                                           8.      line 8",
                "                                                           9.      line 9",
                "                                                          10.      line 10",
                "                                                          11.      line 11",
                "##            2            2             0             0  12.      line 12",
                "                                                          13.      line 13",
                "##            0          0.1             0             7  14.      pthread_mutex_lock(?[2J);",
                "                                                          15.      line 15",
                "                                                          16.      line 16",
                "                                                          17.      line 17",
                "                                                          18.      line 18",
            ]
        );
        let whole = annotated(SAMPLED, &profile, AnnotatedSource { whole: true, ..of });
        assert!(whole.contains(" 1.      line 1\n") && whole.ends_with(" 40.      line 40\n"), "{whole}");
        let object = annotated_json(SAMPLED, &profile, of);
        assert_eq!(object["lines"][1]["line"], 14);
        assert_eq!(object["lines"][1]["lock"]["inclusive_ns"], 7e9);
        assert_eq!(object["no_line"]["cpu"]["exclusive_ns"], 0.5e9);
    }

    #[test]
    fn where_the_source_is_not_there_only_the_lines_with_time_are_shown() {
        let (profile, times) = example_profile();
        let texts = BTreeMap::new();
        let of = AnnotatedSource { name: "walk", times: &times, texts: &texts, whole: false };
        let text = annotated(SAMPLED, &profile, of);
        let rows: Vec<&str> = text.lines().skip(7).map(str::trim_end).collect();
        assert_eq!(
            rows,
            [
                "                                                               ./walk.c: its source is not read",
                "##            2            2             0             0  12.",
                "##            0          0.1             0             7  14.",
            ]
        );
    }
}
