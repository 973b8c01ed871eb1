//! The report as Markdown: for a ticket, a chat or a commit message.

mod pfs;
mod statements;
mod writer;

use whyso_explain::model::{Budget, Cause, Estimate, Explanation, LevelVerdict, RequestKind};
use whyso_record::run::{Level, Purpose, RunEnd, RunInfo};
use whyso_words::{amount, at_least, bytes, count, milliseconds, number, percent_number, users, whole};

use crate::Extras;
use crate::answer::{AnswerCause, answer};
use crate::axis::Axis;
use crate::text::budget::visible_parts;
use crate::text::engine::{engines, switches};
use crate::text::files::{FILES_SHOWN_MAX, file_cells};
use crate::text::level::{regime_name, unit, validity, workload};
use crate::text::{capital, dash, generators, requests, transactions};
use statements::statements_of;
use writer::{Markdown, escaped};

/// Returns the whole report except its time series: headline, findings, levels, growth, statements, facts.
pub fn markdown(run: &RunInfo, explanation: &Explanation, extras: &Extras<'_>) -> String {
    let mut out = Markdown::default();
    headline(&mut out, run, explanation);
    findings(&mut out, explanation);
    levels(&mut out, run, explanation);
    actions(&mut out, explanation);
    budget(&mut out, run, explanation);
    tiers(&mut out, explanation);
    requests(&mut out, explanation);
    files(&mut out, explanation);
    growth(&mut out, run, explanation);
    statements(&mut out, run);
    statements_of(&mut out, run, explanation.about, extras.statements);
    pfs::pfs_views(&mut out, run, extras.pfs);
    facts(&mut out, run);
    out.text
}

/// The first cause, who holds it, and what is worth a try.
fn cause_words(cause: &AnswerCause) -> String {
    let at = if cause.at.is_empty() { String::new() } else { format!(" {}", cause.at) };
    let share = match cause.share > 0.0 {
        true => format!(
            ", {} of the response time{at} ({})",
            whyso_words::percent(cause.share),
            cause.class.name()
        ),
        // What it holds was not measured.
        false => at,
    };
    let mut text = format!("Cause: {}{share}.", escaped(&cause.words));
    if !cause.held_by.is_empty() {
        text.push_str(&format!(" Held by {} ({}).", escaped(&cause.held_by), cause.held_share));
    }
    let verb = if cause.id == Cause::Unknown { "Next" } else { "Worth a try" };
    match (cause.remedy.as_str(), cause.gain.as_str()) {
        ("", _) => {}
        (remedy, "") => text.push_str(&format!(" {verb}: {}.", escaped(remedy))),
        (remedy, gain) => text.push_str(&format!(" {verb}: {}; {gain} (estimate).", escaped(remedy))),
    }
    text
}

fn headline(out: &mut Markdown, run: &RunInfo, explanation: &Explanation) {
    let server = match run.process() {
        Some(name) => escaped(name),
        None => escaped(format!("{} {}", run.server.flavor, run.server.version).trim()),
    };
    out.line(&format!(
        "# {} on {}",
        escaped(workload(run)),
        if server.is_empty() { "a server" } else { &server }
    ));
    out.line("");
    let answer = answer(run, explanation);
    let headline = if answer.rate.is_empty() { explanation.headline.clone() } else { answer.sentence() };
    if !headline.is_empty() {
        out.line(&format!("**{}**\n", escaped(&headline)));
    }
    if let Some(cause) = answer.causes.first() {
        out.line(&format!("{}\n", cause_words(cause)));
    }
    let ended = match &run.ended {
        Some(RunEnd::Complete { .. }) => "complete".to_string(),
        Some(RunEnd::CutShort { why, .. }) => format!("cut short: {}", escaped(why)),
        None => "not ended".to_string(),
    };
    out.line(&format!(
        "Run {}, {ended}, recorded by whyso {}.",
        escaped(&run.id),
        escaped(&run.tool_version)
    ));
    if let Some(words) = run.performance_schema() {
        out.line(&format!("\nPerformance Schema: {}.", escaped(&words)));
    }
}

fn findings(out: &mut Markdown, explanation: &Explanation) {
    if explanation.findings.is_empty() {
        return;
    }
    out.heading("What was found");
    for finding in &explanation.findings {
        out.line(&format!("- {}", escaped(&finding.text)));
    }
}

fn levels(out: &mut Markdown, run: &RunInfo, explanation: &Explanation) {
    if run.levels.is_empty() || run.process().is_some() {
        kinds_of_transactions(out, run);
        service_levels(out, run);
        return;
    }
    out.heading("Levels");
    if run.is_recorded() {
        recorded_levels(out, run, explanation);
        kinds_of_transactions(out, run);
        service_levels(out, run);
        return;
    }
    let axis = Axis::of(run);
    out.table(&[
        axis.head(),
        "TPS",
        "95 % interval",
        "QPS",
        "mean ms",
        "p95 ms",
        "p99 ms",
        "max ms",
        "client µs/query",
        "errors",
        "regime",
        "validity",
    ]);
    for level in &run.levels {
        let verdict = explanation.levels.iter().find(|verdict| verdict.index == level.index);
        out.row(&level_cells(axis, level, verdict));
    }
    for engine in engines(run.levels.iter()).into_iter().chain(switches(run)) {
        out.line(&format!("\n{}", escaped(&engine)));
    }
    generators(out, run);
    kinds_of_transactions(out, run);
    service_levels(out, run);
}

/// The hosts that sent the load together.
fn generators(out: &mut Markdown, run: &RunInfo) {
    let rows = generators::generator_rows(run.levels.iter());
    if !rows.is_empty() {
        out.heading("Load by host");
        out.table(&generators::HEAD);
        rows.iter().for_each(|cells| out.row(&cells.iter().map(|cell| escaped(cell)).collect::<Vec<_>>()));
    }
}

/// What is known of levels that something else loaded: no percentiles, no errors, nothing of the generator.
fn recorded_levels(out: &mut Markdown, run: &RunInfo, explanation: &Explanation) {
    out.table(&[
        "users",
        "seconds",
        "requests",
        "requests/s",
        "mean ms",
        "user %",
        "system %",
        "idle %",
        "server CPUs",
    ]);
    for level in &run.levels {
        let result = &level.result;
        let if_known = |value: f64| if value > 0.0 { number(value) } else { dash() };
        let verdict = explanation.levels.iter().find(|verdict| verdict.index == level.index);
        let cpu = verdict.and_then(|verdict| verdict.cpu);
        let percent = |share: Option<f64>| share.map_or_else(dash, percent_number);
        out.row(&[
            if level.users > 0 { whole(u64::from(level.users)) } else { dash() },
            number(result.seconds),
            whole(result.transactions),
            number(result.transactions_per_s),
            if_known(result.latency_ms.mean),
            percent(cpu.map(|cpu| cpu.user)),
            percent(cpu.map(|cpu| cpu.system)),
            percent(cpu.map(|cpu| cpu.idle)),
            verdict.and_then(|verdict| verdict.server_cpus).map_or(dash(), number),
        ]);
    }
    out.line("\nUsers are connections that were at work. Requests are what the kernel saw of them; their mean time is known, how it was spread is not.");
}

/// Where the time of a request to each first program went.
fn tiers(out: &mut Markdown, explanation: &Explanation) {
    for tier in explanation.tiers.iter().filter(|tier| !tier.lines.is_empty()) {
        let level = if tier.level.is_empty() { String::new() } else { format!(" ({})", tier.level) };
        out.heading(&format!("{}{level}", tier.title()));
        out.table(&["what it is", "ms", "share"]);
        for line in &tier.lines {
            // Blanks at the begin of a cell are not shown.
            let indent = "– ".repeat(line.depth as usize);
            let text = format!("{indent}{}", escaped(&line.text));
            out.row(&[text, number(line.ms), whyso_words::percent(line.share)]);
        }
    }
}

/// What access logs got, by kind of request.
fn requests(out: &mut Markdown, explanation: &Explanation) {
    for log in &explanation.access_logs {
        out.heading(&requests::title(log));
        out.table(&requests::HEAD);
        let all = RequestKind { name: "all".to_string(), ..log.all.clone() };
        for kind in std::iter::once(&all).chain(&log.kinds) {
            out.row(&requests::cells(kind).iter().map(|cell| escaped(cell)).collect::<Vec<_>>());
        }
        for line in [Some(requests::left_out(log)), requests::traced(log)].into_iter().flatten() {
            if !line.is_empty() {
                out.line(&format!("\n{}", escaped(&capital(&line))));
            }
        }
    }
}

/// What the threads of processes waited for, by file.
fn files(out: &mut Markdown, explanation: &Explanation) {
    let waits = explanation.processes.iter().flat_map(|time| &time.files).take(FILES_SHOWN_MAX);
    let rows: Vec<[String; 5]> = waits.map(file_cells).collect();
    if rows.is_empty() {
        return;
    }
    out.heading("Waits by file");
    out.table(&["waits", "seconds", "mean ms", "kind", "what it is"]);
    rows.iter().for_each(|cells| out.row(&cells.each_ref().map(|cell| escaped(cell))));
}

fn kinds_of_transactions(out: &mut Markdown, run: &RunInfo) {
    let lines = transactions::lines(run.levels.iter());
    if lines.is_empty() {
        return;
    }
    out.heading("Transactions by kind");
    let head = transactions::head(&lines);
    let axis = Axis::of(run);
    out.table(&[&[axis.head()], &head[..]].concat());
    for line in &lines {
        let cells = line.cells(&head).into_iter().map(|cell| escaped(&cell));
        out.row(&std::iter::once(axis.number(line.level)).chain(cells).collect::<Vec<_>>());
    }
}

fn service_levels(out: &mut Markdown, run: &RunInfo) {
    let all = run.levels.iter().flat_map(|level| level.result.slo.iter().map(move |slo| (level, slo)));
    // Those of one kind of transaction stand in that kind's line.
    let rows: Vec<_> = all.filter(|(level, slo)| !transactions::is_of_transaction(level, slo)).collect();
    if rows.is_empty() {
        return;
    }
    out.heading("Service level");
    let axis = Axis::of(run);
    out.table(&[axis.head(), "kind", "average", "max", "90th", "required", "measured", "verdict"]);
    for (level, slo) in rows {
        let ms = |value: f64| if slo.measured_ms.is_some() { milliseconds(value) } else { dash() };
        let [required, measured, verdict] = transactions::requirement(slo);
        out.row(&[
            axis.number(level),
            escaped(&slo.kind),
            ms(slo.mean_ms),
            ms(slo.max_ms),
            ms(slo.p90_ms),
            escaped(&required),
            measured,
            verdict,
        ]);
    }
}

fn level_cells(axis: Axis, level: &Level, verdict: Option<&LevelVerdict>) -> Vec<String> {
    let result = &level.result;
    let interval = verdict.and_then(|verdict| verdict.transactions_per_s_ci95);
    let regime = match (level.purpose, verdict) {
        (Purpose::Repeat, _) => "repeat",
        (Purpose::Switch, _) => "generator's step",
        _ if axis == Axis::Rates => match &level.result.arrivals {
            Some(arrivals) if !arrivals.held => "behind",
            _ => "held",
        },
        (_, Some(verdict)) => regime_name(verdict.regime),
        _ => "–",
    };
    vec![
        axis.number(level),
        number(verdict.map_or(result.transactions_per_s, |verdict| verdict.transactions_per_s)),
        interval.map_or(dash(), |[low, high]| format!("{} … {}", number(low), number(high))),
        number(result.queries_per_s),
        number(result.latency_ms.mean),
        at_least(number(result.latency_ms.p95), result.latency_ms.is_lower_bound(95.0)),
        at_least(number(result.latency_ms.p99), result.latency_ms.is_lower_bound(99.0)),
        at_least(number(result.latency_ms.max), result.latency_ms.is_lower_bound(100.0)),
        number(result.client.cpu_us_per_query),
        whole(result.errors),
        regime.to_string(),
        escaped(&validity(level, verdict)),
    ]
}

fn actions(out: &mut Markdown, explanation: &Explanation) {
    if explanation.actions.is_empty() {
        return;
    }
    out.heading("What was changed during the run");
    out.table(&["action", "TPS before", "during", "seconds", "after"]);
    let estimate = |estimate: &Option<Estimate>| match estimate {
        Some(estimate) => {
            format!("{} ({} … {})", number(estimate.value), number(estimate.low95), number(estimate.high95))
        }
        None => dash(),
    };
    for effect in &explanation.actions {
        out.row(&[
            escaped(&effect.text),
            estimate(&effect.before),
            estimate(&effect.during),
            number(effect.during_s),
            estimate(&effect.after),
        ]);
    }
}

/// Writes one row per part and one column per level: in a ticket or a chat nothing draws bars.
fn budget(out: &mut Markdown, run: &RunInfo, explanation: &Explanation) {
    let budgets: Vec<&Budget> = explanation.budgets.iter().filter(|budget| !budget.repeat).collect();
    if budgets.is_empty() {
        return;
    }
    out.heading(&format!("Time budget: ms per {}, by users", unit(run)));
    let users: Vec<String> = budgets.iter().map(|budget| whole(u64::from(budget.users))).collect();
    let mut head = vec!["what it is"];
    head.extend(users.iter().map(String::as_str));
    out.table(&head);
    let mut row = |name: &str, ms: &dyn Fn(&Budget) -> f64| {
        let mut cells = vec![name.to_string()];
        cells.extend(budgets.iter().map(|budget| number(ms(budget))));
        out.row(&cells);
    };
    for part in visible_parts(&budgets) {
        row(part.words(), &|budget| budget.ms(part));
    }
    row("unaccounted", &|budget| budget.unaccounted_ms);
    row("response time", &|budget| budget.response_ms);
}

const GROWTH_SHOWN: usize = 15;

fn growth(out: &mut Markdown, run: &RunInfo, explanation: &Explanation) {
    let Some(first) = explanation.growth.first() else { return };
    out.heading(&format!("What grows per {}", unit(run)));
    out.line(&format!(
        "From the best level ({}) to the last ({}), most suspicious first.\n",
        users(first.best_users),
        users(first.last_users)
    ));
    let (best, last) = (format!("at {}", users(first.best_users)), format!("at {}", users(first.last_users)));
    out.table(&["what it is", "counter", &best, &last, "growth"]);
    for growth in explanation.growth.iter().take(GROWTH_SHOWN) {
        let name = format!("{} {}", growth.series.metric, growth.series.instance);
        out.row(&[
            escaped(&growth.meaning),
            escaped(name.trim()),
            escaped(&amount(growth.best_per_transaction, &growth.unit)),
            escaped(&amount(growth.last_per_transaction, &growth.unit)),
            growth.ratio.map_or("from none".to_string(), |ratio| format!("× {}", number(ratio))),
        ]);
    }
}

fn statements(out: &mut Markdown, run: &RunInfo) {
    let sweep: Vec<&Level> = run.levels.iter().filter(|level| level.purpose == Purpose::Sweep).collect();
    let mut kinds: Vec<&str> = Vec::new();
    for statement in sweep.iter().flat_map(|level| &level.result.by_statement) {
        if !kinds.contains(&statement.kind.as_str()) {
            kinds.push(&statement.kind);
        }
    }
    if kinds.is_empty() {
        return;
    }
    let axis = Axis::of(run);
    out.heading(&format!("Statements: mean latency in ms, by {}", axis.head()));
    let names: Vec<String> = sweep.iter().map(|level| axis.number(level)).collect();
    let mut head = vec!["kind"];
    head.extend(names.iter().map(String::as_str));
    out.table(&head);
    for kind in kinds {
        let mut cells = vec![escaped(kind)];
        for level in &sweep {
            let statement = level.result.by_statement.iter().find(|statement| statement.kind == kind);
            cells.push(statement.map_or(dash(), |statement| number(statement.latency_ms.mean)));
        }
        out.row(&cells);
    }
}

fn facts(out: &mut Markdown, run: &RunInfo) {
    out.heading("Where it ran");
    let host = &run.host;
    let endpoint = if run.server.throw_away {
        "a throw-away server of its own".to_string()
    } else {
        run.server.endpoint.clone()
    };
    let facts = [
        ("server", format!("{} {} {}", run.server.flavor, run.server.version, run.server.version_comment)),
        ("reached at", endpoint),
        (
            "machine",
            format!(
                "{}, {}, {}",
                count(u64::from(host.logical_cpus), "CPU"),
                host.cpu_model,
                bytes(host.memory_bytes as f64)
            ),
        ),
        ("system", format!("{}, kernel {}", host.os, host.kernel)),
        ("virtualization", host.virtualization.clone()),
        ("server's data on", host.data_filesystem.clone()),
        ("command", run.command.join(" ")),
    ];
    for (name, value) in facts {
        if !value.trim().is_empty() {
            out.line(&format!("- {name}: {}", escaped(value.trim())));
        }
    }
    for (name, value) in &run.server.variables_changed {
        let before = run.server.variables.get(name).map_or("", String::as_str);
        out.line(&format!(
            "- {} changed during the run: {} → {}",
            escaped(name),
            escaped(before),
            escaped(value)
        ));
    }
    if !run.not_measured.is_empty() {
        out.heading("What was not measured");
        for line in &run.not_measured {
            out.line(&format!("- {}", escaped(&line.to_string())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_text_of_a_server_breaks_out_of_a_cell(text in ".*") {
            let run = RunInfo {
                server: whyso_model::ServerFacts { endpoint: text.clone(), ..Default::default() },
                ..RunInfo::default()
            };
            let page = markdown(&run, &Explanation::default(), &Extras::default());
            let plain_page = markdown(&RunInfo::default(), &Explanation::default(), &Extras::default());
            let lines = |text: &str| text.lines().count();
            prop_assert!(lines(&page) <= lines(&plain_page) + 1);
            let cell = escaped(&text);
            prop_assert!(!cell.contains('<') && !cell.replace("\\\\", "").replace("\\|", "").contains('|'));
        }
    }

    #[test]
    fn the_headline_comes_first_whatever_it_says() {
        let headline =
            "Not usable: throughput drifted. As measured, throughput peaks at 8 users: 846 transactions/s.";
        let explanation = Explanation { headline: headline.to_string(), ..Explanation::default() };
        let text = markdown(&RunInfo::default(), &explanation, &Extras::default());
        assert_eq!(text.lines().nth(2), Some(format!("**{headline}**").as_str()));
    }
}
