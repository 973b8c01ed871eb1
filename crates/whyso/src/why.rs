//! `whyso why`: why the server does not go faster, in a recorded run or in a part of a standing recording.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, bail};
use whyso_control::Error;
use whyso_explain::comparison::Metric;
use whyso_query::{CompareBy, Stretch};
use whyso_record::Recording;
use whyso_record::run::Window;

use crate::clock_time::clock_words;
use crate::recordings::open;
use crate::report_args::WhyArgs;

/// Of a recording that is running, and in which no window has ended, so much is explained.
const LATEST_NS: i64 = 60_000_000_000;
/// How two parts of one recording are compared.
const COMPARED_BY: CompareBy =
    CompareBy { metric: Metric::TransactionsPerS, matters_percent: 3.0, anyway: true };

pub(crate) fn why(args: &WhyArgs) -> Result<ExitCode> {
    let (recording, path) = open(&args.run, &args.runs)?;
    let is_running = recording.live() && recording.run().levels.is_empty();
    if args.from.is_some() || is_running && args.users.is_none() && args.without.is_empty() {
        return why_between(args, &recording);
    }
    let explanation = whyso_query::explain_at(&recording, args.users, &args.without)?;
    let mut out = crate::out::stdout();
    if args.json {
        let object = whyso_report::why_json(recording.run(), &explanation);
        crate::json::write(&mut out, "why", object)?;
    } else {
        let labels = whyso_record::labels_of(&path);
        let name = if labels.name.is_empty() { String::new() } else { format!(", {}", labels.name) };
        writeln!(out, "Run {}{name}\n", recording.run().id)?;
        crate::answer::print_head(recording.run(), &explanation)?;
        write!(out, "{}\n{}", whyso_report::pages(recording.run()), whyso_report::why(&explanation))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Explains a part of a recording, and what differs from another part.
fn why_between(args: &WhyArgs, recording: &Recording) -> Result<ExitCode> {
    let clock = |ns: i64| clock_words(recording, ns);
    let there = recording.window().unwrap_or_default();
    let window = asked_window(args, recording, there)?;
    let excerpt = whyso_query::excerpt(recording, window)?;
    let explanation = whyso_query::explain_excerpt(&excerpt)?;
    let length_ns = window.end_ns - window.begin_ns;
    let before_ns = match args.against {
        Some(against) => against.monotonic_ns(recording)?,
        None => window.begin_ns - length_ns,
    };
    let before = Window { begin_ns: before_ns, end_ns: before_ns + length_ns };
    let is_there = before.begin_ns >= there.begin_ns && before.end_ns <= there.end_ns;
    let side = |window: Window| [Stretch { recording, window }];
    let compared = match is_there {
        true => Some(whyso_query::compare_windows(&side(before), &side(window), COMPARED_BY)?),
        false => None,
    };
    let mut out = crate::out::stdout();
    if args.json {
        let mut object = whyso_report::why_json(&excerpt.run, &explanation);
        object["against"] = serde_json::to_value(&compared)?;
        crate::json::write(&mut out, "why", object)?;
        return Ok(ExitCode::SUCCESS);
    }
    let running = if args.from.is_none() { "The recording is running. " } else { "" };
    writeln!(out, "{running}From {} to {}:\n", clock(window.begin_ns), clock(window.end_ns))?;
    write!(out, "{}", whyso_report::why(&explanation))?;
    let (begin, end) = (clock(before.begin_ns), clock(before.end_ns));
    match compared {
        Some(compared) => {
            writeln!(out, "\nAgainst {begin} to {end}, the first side:\n")?;
            write!(out, "{}", whyso_report::compare(&compared))?;
        }
        None => {
            writeln!(out, "\nNot compared with {begin} to {end}: the recording does not have all of it.")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The part that `--from` and `--to` name, as far as it was recorded; without them the latest of a recording that is running.
fn asked_window(args: &WhyArgs, recording: &Recording, there: Window) -> Result<Window> {
    let end_ns = args.to.map_or(Ok(there.end_ns), |to| to.monotonic_ns(recording))?;
    let begin_ns = args.from.map_or(Ok(end_ns - LATEST_NS), |from| from.monotonic_ns(recording))?;
    if begin_ns >= end_ns || end_ns <= there.begin_ns || begin_ns >= there.end_ns {
        bail!(Error::Plan(format!(
            "nothing was recorded then: the recording lasts from {} to {}",
            clock_words(recording, there.begin_ns),
            clock_words(recording, there.end_ns)
        )));
    }
    Ok(Window { begin_ns: begin_ns.max(there.begin_ns), end_ns: end_ns.min(there.end_ns) })
}
