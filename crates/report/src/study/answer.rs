//! A study's answer in a few sentences: the largest differences that were found, and how much was not.

use whyso_inference::{VariantComparison, Verdict};
use whyso_model::measures::Better;
use whyso_study::{Answer, Curve, Line, Pair};
use whyso_words::{count, milliseconds, number, percent, seconds, users};

use super::sheets::{detectable, difference, words};

/// Most curves and changes during a run that have a sentence; the tables have all.
const SENTENCES_MAX: usize = 3;
/// An interval narrower than this, as a share, is written with three significant digits.
const FINE_MAX: f64 = 0.02;

/// Returns its sentences, in reading order. Comparisons about which the baseline's own starts say little are only counted.
pub fn study_found(answer: &Answer) -> Vec<String> {
    let mut sentences =
        answer.curves.iter().take(SENTENCES_MAX).filter_map(|curve| fastest(answer, curve)).collect();
    changes(answer, &mut sentences);
    compared(answer, &mut sentences);
    if sentences.is_empty() {
        let (done, all) = (answer.starts_done, answer.starts);
        sentences.push(match done < all {
            true => format!("No result yet: {done} of {} are done.", count(all as u64, "start")),
            false => "Nothing is compared here: the study has one variant. What was measured stands below."
                .to_string(),
        });
    }
    sentences
}

/// Returns what the reader has to know of the machine before anything else; `None` where two starts of the baseline do not differ.
pub fn study_doubt(answer: &Answer) -> Option<String> {
    let levels = answer.pair.iter().flat_map(|pair| &pair.levels).filter(|level| level.differs);
    let worst = levels.clone().max_by(|one, other| size(one.ratio).total_cmp(&size(other.ratio)))?;
    let off = size(worst.ratio).exp() - 1.0;
    let places = levels.count();
    let elsewhere = if places > 1 {
        format!(", and at {} of users", count(places as u64 - 1, "more number"))
    } else {
        String::new()
    };
    Some(format!(
        "The machine differs from itself: two starts of the same are {} apart at {}{elsewhere}. Differences of that size may be the machine's.",
        percent(off),
        users(worst.users)
    ))
}

/// Returns what two starts of the baseline show that do not differ.
pub(super) fn against_itself(pair: &Pair, matters_percent: f64) -> String {
    let within: Vec<f64> = pair.levels.iter().filter_map(|level| level.within_percent).collect();
    let widest = within.into_iter().fold(0.0, f64::max);
    if widest > matters_percent {
        return format!(
            "Before anything was compared, the baseline was started twice. The two do not differ measurably, but varied so much by themselves that a difference of up to {} may have been missed.",
            percent(widest / 100.0)
        );
    }
    format!(
        "Before anything was compared, the baseline was started twice: the two differ by less than the {} that matter, or than they varied by themselves.",
        percent(matters_percent / 100.0)
    )
}

fn compared(answer: &Answer, sentences: &mut Vec<String>) {
    let lines: Vec<&Line> = answer.lines.iter().filter(|line| !line.is_baseline).collect();
    let all: Vec<(&Line, &VariantComparison)> =
        lines.iter().filter_map(|line| Some((*line, line.compared.as_ref()?))).collect();
    let stable: Vec<(&Line, &VariantComparison)> =
        all.iter().filter(|(line, _)| !line.meaningless).copied().collect();
    let of = |verdicts: &[Verdict]| -> Vec<(&Line, &VariantComparison)> {
        stable.iter().filter(|(_, comparison)| verdicts.contains(&comparison.verdict)).copied().collect()
    };
    let found = of(&[Verdict::Faster, Verdict::Slower]);
    let largest = |is_higher: bool| {
        let mut side: Vec<_> =
            found.iter().filter(|(_, comparison)| (comparison.effect.ratio > 1.0) == is_higher).collect();
        side.sort_by(|(_, one), (_, other)| size(other.effect.ratio).total_cmp(&size(one.effect.ratio)));
        side.first().copied()
    };
    let mut sides: Vec<&(&Line, &VariantComparison)> =
        [true, false].into_iter().filter_map(largest).collect();
    sides.sort_by(|(_, one), (_, other)| size(other.effect.ratio).total_cmp(&size(one.effect.ratio)));
    for (line, comparison) in &sides {
        let place = places(answer, line);
        sentences.push(format!(
            "At {}{place}, {}.",
            users(line.users),
            sentence(&answer.metric, &line.variant, &line.against, comparison)
        ));
    }
    if found.len() > sides.len() {
        sentences.push(format!("A difference was found in {} of {}.", found.len(), comparisons(all.len())));
    }
    let same = of(&[Verdict::NoDifferenceFound]);
    if !same.is_empty() {
        sentences.push(format!(
            "No difference was found in {}: {} within ±{} (equivalence test).",
            any_of(same.len(), all.len()),
            if same.len() == 1 { "it is" } else { "they are" },
            percent(answer.matters_percent / 100.0),
        ));
    }
    let noisy = of(&[Verdict::TooNoisyToSay]);
    if !noisy.is_empty() {
        let is = if noisy.len() == 1 { "is" } else { "are" };
        let part = match (noisy.len(), all.len()) {
            (_, 1) => "The one comparison".to_string(),
            (some, all) if some == all => format!("All {}", comparisons(all)),
            (some, all) => format!("{some} of {}", comparisons(all)),
        };
        sentences.push(format!(
            "{part} {is} too noisy to say{}.",
            smallest_difference(&noisy, "; the smallest detectable difference is ")
        ));
    }
    let left_out = all.len() - stable.len();
    if left_out > 0 {
        sentences.push(format!(
            "{} {} no verdict: the baseline's own starts differ too much there.",
            comparisons(left_out),
            if left_out == 1 { "has" } else { "have" }
        ));
    }
    let left = lines.len() - all.len();
    if left > 0 && !all.is_empty() {
        sentences.push(format!(
            "{} {} not measured yet.",
            comparisons(left),
            if left == 1 { "is" } else { "are" }
        ));
    }
    steps(answer, sentences);
    interactions(answer, sentences);
}

fn steps(answer: &Answer, sentences: &mut Vec<String>) {
    let found = answer.steps.iter().filter_map(|step| {
        let comparison = step.compared.as_ref()?;
        matches!(comparison.verdict, Verdict::Faster | Verdict::Slower).then_some((step, comparison))
    });
    let largest = found.max_by(|(_, comparison), (_, other)| {
        size(comparison.effect.ratio).total_cmp(&size(other.effect.ratio))
    });
    if let Some((step, comparison)) = largest {
        let place = if step.place.is_empty() { String::new() } else { format!(" ({})", step.place) };
        sentences.push(format!(
            "Of the steps, {} → {} changes the most: at {}{place}, {}.",
            step.from,
            step.to,
            users(step.users),
            sentence(&answer.metric, &step.to, &step.from, comparison)
        ));
    }
}

/// The interactions that were found, each in a sentence.
fn interactions(answer: &Answer, sentences: &mut Vec<String>) {
    for interaction in &answer.interactions {
        let Some(comparison) =
            interaction.compared.as_ref().filter(|comparison| comparison.verdict.is_found())
        else {
            continue;
        };
        let [one, other, _] = &interaction.names;
        let place =
            if interaction.place.is_empty() { String::new() } else { format!(" ({})", interaction.place) };
        sentences.push(format!(
            "{one} and {other} depend on each other: at {}{place}, both at once differ by {} from the product of what each does by itself.",
            users(interaction.users),
            difference(comparison.effect.ratio)
        ));
    }
}

/// What a comparison found, such as "b is 84 % faster than a (79 to 90 %)".
fn sentence(metric: &str, own: &str, other: &str, compared: &VariantComparison) -> String {
    let ratio = compared.effect.ratio;
    let is_times = ratio >= 2.0;
    // Ends of an interval that round to the same whole per cent say nothing.
    let is_fine = compared.effect.t95.is_some_and(|[low, high]| high - low < FINE_MAX);
    let amount = |ratio: f64| match (ratio - 1.0).abs() {
        _ if is_times => number(ratio),
        share if is_fine => format!("{} %", number(100.0 * share)),
        share => percent(share),
    };
    let between = compared.effect.t95.map_or_else(String::new, |[low, high]| {
        // The smaller difference first.
        let (first, second) = if ratio < 1.0 { (high, low) } else { (low, high) };
        format!(" ({} to {})", amount(first), amount(second))
    });
    let amount = amount(ratio);
    if matches!(metric, "transactions_per_s" | "queries_per_s") {
        return match ratio {
            _ if is_times => format!("{own} is {amount} times as fast as {other}{between}"),
            ratio if ratio > 1.0 => format!("{own} is {amount} faster than {other}{between}"),
            _ => format!("{own} is {amount} slower than {other}{between}"),
        };
    }
    let better = whyso_study::find_measure(metric).map_or(Better::Neither, |measure| measure.better);
    let meant = match (better, ratio > 1.0) {
        (Better::Neither, _) => "",
        (Better::Higher, true) | (Better::Lower, false) => ", which is better",
        _ => ", which is worse",
    };
    let what = plain(metric);
    match ratio {
        _ if is_times => format!("{what} with {own} is {amount} times that with {other}{between}{meant}"),
        ratio if ratio > 1.0 => {
            format!("{what} with {own} is {amount} higher than with {other}{between}{meant}")
        }
        _ => format!("{what} with {own} is {amount} lower than with {other}{between}{meant}"),
    }
}

/// A measure without its unit.
fn plain(metric: &str) -> String {
    if metric == "errors_percent" {
        return "the share of failed transactions".to_string();
    }
    let words = words(metric);
    words.rsplit_once(", ").map_or(words.clone(), |(before, _)| before.to_string())
}

/// The smallest differences that these would have shown: the least and the most of them.
fn smallest_difference(of: &[(&Line, &VariantComparison)], before: &str) -> String {
    let ratios = || of.iter().filter_map(|(_, comparison)| comparison.effect.smallest_detectable);
    let (Some(least), Some(most)) = (ratios().reduce(f64::min), ratios().reduce(f64::max)) else {
        return String::new();
    };
    match (detectable(least), detectable(most)) {
        (least, most) if least == most => format!("{before}{least}"),
        (least, most) => format!("{before}{least} to {most}"),
    }
}

fn fastest(answer: &Answer, curve: &Curve) -> Option<String> {
    let by_ms =
        |one: &&whyso_study::CurvePoint, other: &&whyso_study::CurvePoint| one.ms.total_cmp(&other.ms);
    let points = || curve.points.iter().filter(|point| point.ms > 0.0);
    let (low, high) = (points().min_by(by_ms)?, points().max_by(by_ms)?);
    if low.value == high.value {
        return None;
    }
    let of = if answer.curves.len() > 1 { format!(" of {}", curve.name) } else { String::new() };
    let apart = match (low.ms95, high.ms95) {
        (Some(low), Some(high)) if low[1] < high[0] => "",
        (Some(_), Some(_)) => "; their 95 % intervals overlap, so it may be chance",
        _ => "; one start says nothing of chance",
    };
    Some(format!(
        "An execution{of} is fastest at {knob} = {} ({}) and slowest at {} ({}): {} times as long{apart}.",
        number(low.value as f64),
        milliseconds(low.ms),
        number(high.value as f64),
        milliseconds(high.ms),
        number(high.ms / low.ms),
        knob = curve.knob
    ))
}

/// Adds what changes during a run did, the deepest first.
fn changes(answer: &Answer, sentences: &mut Vec<String>) {
    let courses =
        answer.courses.iter().flat_map(|course| course.resized.iter().map(move |change| (course, change)));
    let mut found: Vec<_> =
        courses.filter_map(|(course, change)| Some((course, change, change.dip.as_ref()?))).collect();
    found.sort_by(|(.., one), (.., other)| other.percent().total_cmp(&one.percent()));
    for (course, change, dip) in found.into_iter().take(SENTENCES_MAX) {
        let fell = format!("fell by {}", percent(dip.percent() / 100.0));
        let did = match dip.recovery_s() {
            _ if dip.percent() < 5.0 => "did not fall".to_string(),
            Some(s) => format!("{fell} and was back after {}", seconds(s)),
            None => format!("{fell} and was not back before the level's end"),
        };
        sentences.push(format!(
            "{} under {} on {}: {} {did}; {} before it, and {} at the end.",
            change.what,
            users(course.users),
            course.name,
            plain(&answer.metric),
            number(dip.before),
            number(dip.later),
        ));
    }
}

/// Server and condition, where the study has several.
fn places(answer: &Answer, line: &Line) -> String {
    let differs = |of: fn(&Line) -> &str| answer.lines.iter().any(|other| of(other) != of(line));
    let parts = [
        (line.server.as_str(), differs(|line| &line.server)),
        (&line.condition, differs(|line| &line.condition)),
    ];
    let parts: Vec<&str> = parts
        .into_iter()
        .filter(|(part, differs)| *differs && !part.is_empty())
        .map(|(part, _)| part)
        .collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
}

fn size(ratio: f64) -> f64 {
    ratio.ln().abs()
}

fn any_of(some: usize, all: usize) -> String {
    match (some, all) {
        (_, 1) => "the one comparison".to_string(),
        (some, all) if some == all => format!("any of the {}", comparisons(all)),
        (some, all) => format!("{some} of {}", comparisons(all)),
    }
}

fn comparisons(things: usize) -> String {
    count(things as u64, "comparison")
}

#[cfg(test)]
mod tests {
    use whyso_study::{Spec, Start, StartRecord, answer};

    use super::*;

    /// By cell and users; blocks differ by a per mille or so.
    fn answer_of(more: &str, metric: &str, value: impl Fn(Start, u32) -> f64) -> Answer {
        let text = format!(
            "title = 't'\nquestion = 'q'\nusers = [1, 64]\nrepeats = 4\nbaseline = 'flush 1'\nmetric = '{metric}'\n{more}\n\
             [[variant]]\nname = 'flush 1'\n[[variant]]\nname = 'flush 2'\n[[variant]]\nname = 'flush 0'\n"
        );
        let spec = Spec::parse(&text, false).unwrap();
        let done: Vec<StartRecord> = spec
            .all_starts()
            .into_iter()
            .map(|start| {
                let level = |users: &u32| serde_json::json!({ "users": users, "measures": { metric: value(start, *users) } });
                let levels: Vec<_> = spec.users.iter().map(level).collect();
                serde_json::from_value(serde_json::json!({ "start": start, "run": "", "levels": levels })).unwrap()
            })
            .collect();
        answer(&spec, &done, &[])
    }

    fn jitter(start: Start) -> f64 {
        1.0 + 0.001 * f64::from((start.block * 7 + start.cell as u32 * 3) % 5)
    }

    #[test]
    fn the_largest_differences_come_first_and_the_rest_is_counted() {
        let answer = answer_of("", "transactions_per_s", |start, users| {
            let gain = match (start.cell, users) {
                (1, 64) => 1.84,
                (2, 64) => 0.75,
                _ => 1.0,
            };
            1000.0 * gain * jitter(start)
        });
        let sentences = study_found(&answer);
        assert_eq!(sentences.len(), 3, "{sentences:#?}");
        assert!(
            sentences[0].starts_with("At 64 users, flush 2 is 84")
                && sentences[0].contains(" % faster than flush 1 (8"),
            "{sentences:#?}"
        );
        assert!(
            sentences[1].starts_with("At 64 users, flush 0 is 2")
                && sentences[1].contains(" % slower than flush 1 (2"),
            "{sentences:#?}"
        );
        assert!(
            sentences[2].starts_with("No difference was found in 2 of 4 comparisons: they are within ±3")
        );
        assert_eq!(study_doubt(&answer), None);
    }

    #[test]
    fn what_is_better_where_it_is_lower_reads_right() {
        let answer = answer_of("steps = ['flush 1', 'flush 2']", "latency_mean_ms", |start, _| {
            [10.0, 5.0, 31.0][start.cell] * jitter(start)
        });
        let sentences = study_found(&answer);
        let begins = ["mean response with flush 0 is 3.1", " % lower than with flush 1 ("];
        assert!(
            sentences[0].contains(begins[0])
                && sentences[0].contains("times that with flush 1")
                && sentences[0].ends_with("which is worse."),
            "{sentences:#?}"
        );
        assert!(
            sentences[1].contains(begins[1]) && sentences[1].ends_with("which is better."),
            "{sentences:#?}"
        );
        assert_eq!(sentences[2], "A difference was found in 4 of 4 comparisons.");
        assert!(
            sentences[3].starts_with("Of the steps, flush 1 → flush 2 changes the most: at "),
            "{sentences:#?}"
        );
    }

    #[test]
    fn noise_is_called_noise_and_a_doubtful_machine_doubtful() {
        let answer = answer_of("", "transactions_per_s", |start, _| match start.pair {
            true => [1000.0, 1130.0][start.block as usize],
            false => {
                1000.0 * [1.0, 1.1, 0.95, 1.02, 0.9, 1.07][(start.block as usize * 2 + start.cell * 5) % 6]
            }
        });
        assert!(
            study_found(&answer)[0].starts_with("All 4 comparisons are too noisy to say; the smallest"),
            "{:#?}",
            study_found(&answer)
        );
        let doubt = study_doubt(&answer).unwrap();
        assert!(
            doubt.contains("are 13 % apart at 1 user") || doubt.contains("are 13 % apart at 64 users"),
            "{doubt}"
        );
        let none = whyso_study::answer(
            &Spec::parse("title = 't'\nquestion = 'q'\nbaseline = 'default'\n", false).unwrap(),
            &[],
            &[],
        );
        assert_eq!(study_found(&none), ["No result yet: 0 of 7 starts are done."]);
    }
}
