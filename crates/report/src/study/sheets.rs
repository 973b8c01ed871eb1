//! What a study found, as tables that the terminal, Markdown and the page all show.

mod curves;
mod events;
mod over_time;

use serde::Serialize;
use ts_rs::TS;
use whyso_explain::model::users_words;
use whyso_inference::{Spread, VariantComparison};
use whyso_study::{Answer, Before, Line};
use whyso_words::{number, p_value, percent, percent_change, whole};

use crate::text::dash;

/// A table with its head.
#[derive(Clone, Debug, Default, PartialEq, Serialize, TS)]
pub struct Sheet {
    pub title: String,
    pub head: Vec<String>,
    /// Columns of words, by their places; the others hold numbers.
    pub words: Vec<usize>,
    pub rows: Vec<Row>,
    /// What the reader has to know to read it; may be empty.
    pub note: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, TS)]
pub struct Row {
    pub cells: Vec<String>,
    /// Its numbers mean little.
    pub muted: bool,
}

/// A factor, or per cent, beyond which a number says no more than that it is large.
const TELLING: f64 = 10_000.0;

pub(super) fn sheets(answer: &Answer) -> Vec<Sheet> {
    let mut sheets = vec![pair(answer)];
    for place in places(answer) {
        sheets.push(compared(answer, &place));
        sheets.push(other_measures(answer, &place));
    }
    sheets.extend(answer.before.iter().map(before));
    sheets.extend([steps(answer), interactions(answer), peaks(answer)]);
    for users in users_of(answer) {
        sheets.extend(
            over_time::measures(answer).iter().map(|measure| over_time::course(answer, users, measure)),
        );
    }
    sheets.push(over_time::resized(answer));
    sheets.push(events::evenness(answer));
    for top in answer.tops.iter().flat_map(|tops| &tops.tops) {
        sheets.push(events::most(answer, top));
    }
    for curve in &answer.curves {
        sheets.extend([curves::steps(curve), curves::curve(curve)]);
    }
    sheets.retain(|sheet| !sheet.rows.is_empty());
    sheets
}

/// What others found: words and numbers as the study's file has them.
fn before(before: &Before) -> Sheet {
    Sheet {
        title: format!("Found before: {}", before.source),
        head: before.head.clone(),
        words: before.words.clone(),
        rows: before.rows.iter().map(|row| Row { cells: row.clone(), muted: false }).collect(),
        note: before.note.clone(),
    }
}

pub(super) fn words(measure: &str) -> String {
    whyso_study::measure_words(measure)
}

/// Server and condition: what is compared with each other has both in common.
pub(super) fn places(answer: &Answer) -> Vec<(String, String)> {
    let mut places: Vec<(String, String)> = Vec::new();
    for line in &answer.lines {
        let place = (line.server.clone(), line.condition.clone());
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

fn of_place<'a>(answer: &'a Answer, place: &'a (String, String)) -> impl Iterator<Item = &'a Line> {
    answer.lines.iter().filter(move |line| (&line.server, &line.condition) == (&place.0, &place.1))
}

pub(super) fn title(what: &str, place: &(String, String)) -> String {
    let parts = [what, &place.0, &place.1];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<&str>>().join(" · ")
}

fn pair(answer: &Answer) -> Sheet {
    let Some(pair) = &answer.pair else { return Sheet::default() };
    let rows = pair.levels.iter().map(|level| Row {
        cells: vec![
            whole(u64::from(level.users)),
            number(level.first),
            number(level.second),
            difference(level.ratio),
            level.within_percent.map_or_else(dash, |within| format!("±{}", percent(within / 100.0))),
            match (level.differs, level.within_percent) {
                (true, _) => "differs from itself",
                (false, Some(percent)) if percent > answer.matters_percent => "too noisy to say",
                (false, _) => "the same",
            }
            .to_string(),
        ],
        muted: false,
    });
    let note = match pair.looks_like.as_slice() {
        [] => String::new(),
        causes => format!("What it looks like: {}.", causes.join("; ")),
    };
    Sheet {
        title: "The machine against itself: two starts of the baseline".to_string(),
        head: ["users", "first", "second", "difference", "within a start", "verdict"]
            .map(str::to_string)
            .to_vec(),
        words: vec![5],
        rows: rows.collect(),
        note,
    }
}

fn compared(answer: &Answer, place: &(String, String)) -> Sheet {
    let lines: Vec<&Line> =
        of_place(answer, place).filter(|line| line.spread.is_some() || answer.curves.is_empty()).collect();
    let tuned = lines.iter().any(|line| !line.tuning.is_empty());
    let mut head: Vec<String> = ["users", "cell"].map(str::to_string).to_vec();
    if tuned {
        head.push("best tuning".to_string());
    }
    head.push(words(&answer.metric));
    head.extend(["of its starts", "difference", "95 %", "p", "detectable", "verdict"].map(str::to_string));
    let row = |line: &&Line| {
        let spread = |of: fn(&Spread) -> String| line.spread.as_ref().map_or_else(dash, of);
        let compared = |of: fn(&VariantComparison) -> Option<String>| {
            line.compared.as_ref().and_then(of).unwrap_or_else(dash)
        };
        let mut cells = vec![whole(u64::from(line.users)), line.variant.clone()];
        if tuned {
            cells.push(line.tuning.clone());
        }
        cells.extend([
            spread(|spread| number(spread.mean)),
            spread(|spread| format!("{} to {}", number(spread.lowest), number(spread.highest))),
            compared(|comparison| Some(difference(comparison.effect.ratio))),
            compared(|comparison| {
                comparison.effect.t95.map(|[low, high]| interval(comparison.effect.ratio, low, high))
            }),
            compared(|comparison| comparison.p_corrected.map(p_value)),
            compared(|comparison| comparison.effect.smallest_detectable.map(detectable)),
            verdict(line),
        ]);
        Row { cells, muted: line.meaningless }
    };
    let last = head.len() - 1;
    let mut words = vec![1, last];
    if tuned {
        words.push(2);
    }
    Sheet {
        title: title("Compared", place),
        head,
        words,
        rows: lines.iter().map(row).collect(),
        note: String::new(),
    }
}

pub(super) fn verdict(line: &Line) -> String {
    let mut text = match (&line.compared, line.is_baseline) {
        (_, true) if line.baseline_unstable => "baseline, unstable *".to_string(),
        (_, true) => "baseline".to_string(),
        (Some(_), _) if line.meaningless => {
            let range =
                line.baseline_range.map_or(String::new(), |range| format!(" by {}", percent(range - 1.0)));
            format!("meaningless: the baseline's starts differ{range} *")
        }
        (Some(compared), _) => {
            format!("{}{}", compared.verdict.words(), if line.baseline_unstable { " *" } else { "" })
        }
        (None, _) => "not measured yet".to_string(),
    };
    if !line.invalid.is_empty() {
        text.push_str(&format!(
            "; {} of its starts say nothing of the server",
            whole(line.invalid.len() as u64)
        ));
    }
    text
}

/// A ratio as a difference in per cent, or as a factor where that is large.
pub(super) fn difference(ratio: f64) -> String {
    match ratio {
        ratio if ratio >= 2.0 => format!("×{}", figures(ratio)),
        ratio if ratio > 0.0 && ratio <= 0.5 => format!("÷{}", figures(1.0 / ratio)),
        ratio => percent_change(ratio - 1.0),
    }
}

fn figures(factor: f64) -> String {
    if factor > TELLING { format!(">{}", number(TELLING)) } else { number(factor) }
}

/// The ends of an interval in the form that its middle has.
pub(super) fn interval(middle: f64, low: f64, high: f64) -> String {
    let form = |ratio: f64| match middle {
        middle if middle >= 2.0 => format!("×{}", figures(ratio)),
        middle if middle <= 0.5 => format!("÷{}", figures(1.0 / ratio)),
        _ if 100.0 * (ratio - 1.0) > TELLING => format!(">{} %", number(TELLING)),
        _ => percent_change(ratio - 1.0),
    };
    // Divided by, the greater end comes first.
    let (first, second) = if middle <= 0.5 { (high, low) } else { (low, high) };
    format!("{} to {}", form(first), form(second))
}

pub(super) fn detectable(ratio: f64) -> String {
    if 100.0 * (ratio - 1.0) > TELLING {
        return format!(">{} %", number(TELLING));
    }
    percent(ratio - 1.0)
}

fn other_measures(answer: &Answer, place: &(String, String)) -> Sheet {
    if answer.show.is_empty() {
        return Sheet::default();
    }
    let mut head = vec!["users".to_string(), "cell".to_string()];
    let with_regimes = of_place(answer, place).any(|line| !line.regimes.is_empty());
    if with_regimes {
        head.push("regime (starts)".to_string());
    }
    head.extend(answer.show.iter().map(|name| words(name)));
    let lines = of_place(answer, place).filter(|line| !line.other_measures.is_empty());
    let row = |line: &Line| {
        let mut cells = vec![whole(u64::from(line.users)), line.variant.clone()];
        if with_regimes {
            cells.push(frequent(&line.regimes));
        }
        let value = |name: &String| line.other_measures.get(name).map_or_else(dash, |value| number(*value));
        cells.extend(answer.show.iter().map(value));
        Row { cells, muted: false }
    };
    Sheet {
        title: title("Other measures, means over the starts", place),
        head,
        words: if with_regimes { vec![1, 2] } else { vec![1] },
        rows: lines.map(row).collect(),
        note: String::new(),
    }
}

/// Returns each word with its count, the most frequent first.
fn frequent(words: &[String]) -> String {
    let mut counts: Vec<(&String, usize)> = Vec::new();
    for word in words {
        match counts.iter_mut().find(|(counted, _)| *counted == word) {
            Some((_, count)) => *count += 1,
            None => counts.push((word, 1)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    match counts.as_slice() {
        [] => dash(),
        [(word, _)] => (*word).clone(),
        several => {
            several.iter().map(|(word, count)| format!("{word} ({count})")).collect::<Vec<_>>().join(", ")
        }
    }
}

fn steps(answer: &Answer) -> Sheet {
    let row = |step: &whyso_study::Step| {
        let compared = |of: fn(&VariantComparison) -> Option<String>| {
            step.compared.as_ref().and_then(of).unwrap_or_else(dash)
        };
        Row {
            cells: vec![
                whole(u64::from(step.users)),
                step.place.clone(),
                format!("{} → {}", step.from, step.to),
                compared(|comparison| Some(difference(comparison.effect.ratio))),
                compared(|comparison| {
                    comparison.effect.t95.map(|[low, high]| interval(comparison.effect.ratio, low, high))
                }),
                compared(|comparison| comparison.p_corrected.map(p_value)),
                compared(|comparison| comparison.effect.smallest_detectable.map(detectable)),
                compared(|comparison| Some(comparison.verdict.words().to_string())),
            ],
            muted: false,
        }
    };
    let mut sheet = Sheet {
        title: "Step by step: what each adds to the one before".to_string(),
        head: ["users", "where", "step", "difference", "95 %", "p", "detectable", "verdict"]
            .map(str::to_string)
            .to_vec(),
        words: vec![1, 2, 7],
        rows: answer.steps.iter().map(row).collect(),
        note: String::new(),
    };
    if answer.steps.iter().all(|step| step.place.is_empty()) {
        sheet.head.remove(1);
        sheet.rows.iter_mut().for_each(|row| {
            row.cells.remove(1);
        });
        sheet.words = vec![1, 6];
    }
    sheet
}

fn interactions(answer: &Answer) -> Sheet {
    let row = |interaction: &whyso_study::Interaction| {
        let compared = |of: fn(&VariantComparison) -> Option<String>| {
            interaction.compared.as_ref().and_then(of).unwrap_or_else(dash)
        };
        let [one, other, _] = &interaction.names;
        Row {
            cells: vec![
                whole(u64::from(interaction.users)),
                interaction.place.clone(),
                format!("{one} × {other}"),
                compared(|comparison| Some(difference(comparison.effect.ratio))),
                compared(|comparison| {
                    comparison.effect.t95.map(|[low, high]| interval(comparison.effect.ratio, low, high))
                }),
                compared(|comparison| comparison.p_corrected.map(p_value)),
            ],
            muted: false,
        }
    };
    let mut sheet = Sheet {
        title: "Both at once: against the product of what each does by itself".to_string(),
        head: ["users", "where", "together", "difference", "95 %", "p"].map(str::to_string).to_vec(),
        words: vec![1, 2],
        rows: answer.interactions.iter().map(row).collect(),
        note: String::new(),
    };
    if answer.interactions.iter().all(|interaction| interaction.place.is_empty()) {
        sheet.head.remove(1);
        sheet.rows.iter_mut().for_each(|row| {
            row.cells.remove(1);
        });
        sheet.words = vec![1];
    }
    sheet
}

fn peaks(answer: &Answer) -> Sheet {
    let row = |peak: &whyso_study::Peak| {
        let users: Vec<String> = peak.users.iter().map(u32::to_string).collect();
        let suspects: Vec<String> = peak
            .suspects
            .iter()
            .map(|(suspect, starts)| format!("{suspect} ({starts} of {})", peak.users.len()))
            .collect();
        let first_suspects = if suspects.is_empty() { dash() } else { suspects.join(", ") };
        Row {
            cells: vec![
                peak.name.clone(),
                users.join(", "),
                users_words(peak.users_interval),
                first_suspects,
            ],
            muted: false,
        }
    };
    Sheet {
        title: "Where throughput peaks, and what holds it there".to_string(),
        head: ["cell", "users at the peak, by start", "no measurable difference", "first suspect (starts)"]
            .map(str::to_string)
            .to_vec(),
        words: vec![0, 3],
        rows: answer.peaks.iter().map(row).collect(),
        note: String::new(),
    }
}

fn users_of(answer: &Answer) -> Vec<u32> {
    let mut users: Vec<u32> = answer.courses.iter().map(|course| course.users).collect();
    users.dedup();
    users.sort_unstable();
    users.dedup();
    users
}
