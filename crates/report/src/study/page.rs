//! What the page of a study shows: its answer, with every text written here, so that the page only draws.

use std::io::Write;

use serde::Serialize;
use ts_rs::TS;
use whyso_inference::{VariantComparison, Verdict};
use whyso_model::measures::Better;
use whyso_study::{Answer, Course, Curve, Line, StartSummary};

use super::answer::against_itself;
use super::sheets::{self, Sheet};
use super::{study_doubt, study_found, study_notes};
use crate::{Error, html, payload};

#[derive(Serialize, TS)]
pub(crate) struct StudyHead<'a> {
    format: u32,
    title: &'a str,
    question: &'a str,
    found: Vec<String>,
    starts_done: usize,
    starts: usize,
    /// The machine against itself; absent until both starts are done.
    pair: Option<PairHead<'a>>,
    /// What is compared, as a text with its unit.
    metric: String,
    matters_percent: f64,
    /// What lies left and right of no difference.
    sides: [&'static str; 2],
    /// Names of variants, in the order in which they take their colours.
    variants: Vec<&'a str>,
    baselines: Vec<&'a str>,
    places: Vec<PlaceHead<'a>>,
    /// Each of the study's steps against the one before.
    steps: Vec<ComparedHead>,
    courses: &'a [Course],
    /// Texts of the courses' measures, by name.
    words: std::collections::BTreeMap<&'a str, String>,
    curves: &'a [Curve],
    sheets: Vec<Sheet>,
    notes: Vec<String>,
    done: &'a [StartSummary],
}

#[derive(Serialize, TS)]
struct PairHead<'a> {
    differs: bool,
    words: String,
    looks_like: &'a [String],
    sheet: Sheet,
}

/// Server and condition.
#[derive(Serialize, TS)]
struct PlaceHead<'a> {
    title: String,
    points: Vec<Point<'a>>,
    compared: Vec<ComparedHead>,
}

/// A variant at one number of users.
#[derive(Serialize, TS)]
struct Point<'a> {
    variant: &'a str,
    tuning: &'a str,
    users: u32,
    mean: f64,
    mean95: Option<[f64; 2]>,
    lowest: f64,
    highest: f64,
    starts: u32,
    unstable: bool,
}

/// A comparison, as numbers to draw and as words to show.
#[derive(Serialize, TS)]
struct ComparedHead {
    users: u32,
    /// Server and condition of a step; empty where the study has one of each.
    place: String,
    label: String,
    against: String,
    ratio: f64,
    t95: Option<[f64; 2]>,
    /// The smallest detectable ratio above 1.
    seen: Option<f64>,
    verdict: Verdict,
    /// Its baseline is unstable: it means little.
    muted: bool,
    difference: String,
    interval: String,
    words: String,
}

/// Writes the page: one file that needs no other and asks the network for nothing.
///
/// # Errors
/// When `out` can't be written.
pub fn study_html(answer: &Answer, out: &mut dyn Write) -> Result<(), Error> {
    let json = serde_json::to_string(&head(answer))?;
    html::write_page("whyso-study", &payload::script_safe(&json), &[], out)
}

/// Returns what the page shows, as JSON.
///
/// # Errors
/// A number can't be written as JSON.
pub fn study_head_json(answer: &Answer) -> Result<String, Error> {
    Ok(serde_json::to_string(&head(answer))?)
}

fn head(answer: &Answer) -> StudyHead<'_> {
    let mut sheets = sheets::sheets(answer);
    let pair = answer.pair.as_ref().filter(|_| !sheets.is_empty()).map(|pair| PairHead {
        differs: pair.differs(),
        words: study_doubt(answer).unwrap_or_else(|| against_itself(pair, answer.matters_percent)),
        looks_like: &pair.looks_like,
        sheet: sheets.remove(0),
    });
    let better = whyso_study::find_measure(&answer.metric).map_or(Better::Higher, |measure| measure.better);
    let mut variants: Vec<&str> = Vec::new();
    for line in &answer.lines {
        if !variants.contains(&line.variant.as_str()) {
            variants.push(&line.variant);
        }
    }
    let is_baseline =
        |variant: &&str| answer.lines.iter().any(|line| line.is_baseline && line.variant == **variant);
    let named =
        answer.courses.iter().flat_map(|course| &course.moments).flat_map(|moment| moment.measures.keys());
    StudyHead {
        format: payload::FORMAT,
        title: &answer.title,
        question: &answer.question,
        found: study_found(answer),
        starts_done: answer.starts_done,
        starts: answer.starts,
        pair,
        metric: sheets::words(&answer.metric),
        matters_percent: answer.matters_percent,
        sides: match better {
            Better::Higher => ["slower", "faster"],
            Better::Lower => ["lower, which is better", "higher, which is worse"],
            Better::Neither => ["lower", "higher"],
        },
        baselines: variants.iter().copied().filter(is_baseline).collect(),
        variants,
        places: sheets::places(answer).iter().map(|place| place_head(answer, place)).collect(),
        steps: answer.steps.iter().filter_map(step_head).collect(),
        courses: &answer.courses,
        words: named.map(|name| (name.as_str(), sheets::words(name))).collect(),
        curves: &answer.curves,
        sheets,
        notes: study_notes(answer),
        done: &answer.done,
    }
}

fn place_head<'a>(answer: &'a Answer, place: &(String, String)) -> PlaceHead<'a> {
    let lines = || answer.lines.iter().filter(|line| (&line.server, &line.condition) == (&place.0, &place.1));
    let compared = |line: &Line| {
        let comparison = line.compared.as_ref()?;
        let words = sheets::verdict(line);
        Some(compared_head(line.users, &line.variant, &line.against, comparison, words, line.meaningless))
    };
    let point = |line: &'a Line| {
        let spread = line.spread.as_ref()?;
        Some(Point {
            variant: &line.variant,
            tuning: &line.tuning,
            users: line.users,
            mean: spread.mean,
            mean95: spread.mean95,
            lowest: spread.lowest,
            highest: spread.highest,
            starts: spread.starts,
            unstable: spread.unstable,
        })
    };
    PlaceHead {
        title: sheets::title("", place),
        points: lines().filter_map(point).collect(),
        compared: lines().filter_map(compared).collect(),
    }
}

fn step_head(step: &whyso_study::Step) -> Option<ComparedHead> {
    let comparison = step.compared.as_ref()?;
    let words = comparison.verdict.words().to_string();
    let label = format!("{} → {}", step.from, step.to);
    let head = compared_head(step.users, &label, &step.from, comparison, words, false);
    Some(ComparedHead { place: step.place.clone(), ..head })
}

fn compared_head(
    users: u32,
    label: &str,
    against: &str,
    comparison: &VariantComparison,
    words: String,
    muted: bool,
) -> ComparedHead {
    let ratio = comparison.effect.ratio;
    let interval = comparison.effect.t95.map(|[low, high]| sheets::interval(ratio, low, high));
    ComparedHead {
        users,
        place: String::new(),
        label: label.to_string(),
        against: against.to_string(),
        ratio,
        t95: comparison.effect.t95,
        seen: comparison.effect.smallest_detectable,
        verdict: comparison.verdict,
        muted,
        difference: sheets::difference(ratio),
        interval: interval.unwrap_or_default(),
        words,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::answer_fixture;
    use super::*;

    #[test]
    fn the_page_holds_all_that_it_draws_and_no_text_leaves_its_element() {
        let hostile = "</script><img src=x onerror=alert(1)>";
        let answer = Answer { title: hostile.to_string(), ..answer_fixture() };
        let mut out = Vec::new();
        study_html(&answer, &mut out).unwrap();
        let html = String::from_utf8(out).unwrap();
        assert!(!html.contains("<img src=x"));
        let (_, rest) = html.split_once(r#"id="whyso-study">"#).unwrap();
        let head: serde_json::Value = serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap();
        assert_eq!(head["title"], hostile);
        assert_eq!(head["variants"], serde_json::json!(["flush", "none", "other"]));
        let place = &head["places"][0];
        assert_eq!(place["points"].as_array().unwrap().len(), 2, "of what was measured");
        assert_eq!(place["compared"][0]["verdict"], "faster");
        assert_eq!(place["compared"][0]["difference"], "×3");
        assert_eq!(head["steps"][0]["label"], "flush → none");
        assert_eq!(head["pair"]["differs"], false);
        assert!(
            head["pair"]["words"]
                .as_str()
                .unwrap()
                .contains("started twice: the two differ by less than the 3 %")
        );
        assert!(
            head["sheets"]
                .as_array()
                .unwrap()
                .iter()
                .all(|sheet| !sheet["title"].as_str().unwrap().contains("itself"))
        );
    }
}
