//! What the Performance Schema counted in a start.

use whyso_explain::model::Input;
use whyso_explain::pfs::{Column, Line, Per, View, evenness as evenness_of};
use whyso_record::Recording;
use whyso_record::run::Purpose;
use whyso_study::{LockEvenness, Top, TopLine};

use crate::Error;
use whyso_query::pfs_in;

/// Lines of each list.
const LINES: usize = 10;
const VIEWS: [&str; 3] = ["waits", "stages", "statements"];
const INSTANCES: &str = "lock-instances";
/// Of the machine's CPUs, in per cent: more idle time than this, and instruments have little to cost.
const IDLE_PERCENT: f64 = 50.0;

/// The first lines of each view by count and by time, at the level with the highest throughput.
pub(super) fn tops(recording: &Recording) -> Result<Vec<Top>, Error> {
    let mut tops = Vec::new();
    let Some(level) = recording.run().best_level() else { return Ok(tops) };
    for view in views(recording, &VIEWS) {
        let mut over = pfs_in(recording, view, level.window)?;
        for by in ["count", "time"] {
            let Some(column) = view.column(by) else { continue };
            over.table.sort(column);
            let number =
                |line: &Line, column: Option<&Column>, per: Per| over.table.value(line, column?, per);
            let line = |line: &Line| {
                let count = view.column("count");
                Some(TopLine {
                    name: line.name.clone(),
                    per_s: number(line, count, Per::Second)?,
                    per_statement: number(line, count, Per::Statement),
                    ms_per_s: number(line, view.column("time"), Per::Second)
                        .map(|ns| ns / 1e6)
                        .filter(|ms| *ms > 0.0),
                })
            };
            let lines: Vec<TopLine> = over.table.lines.iter().take(LINES).filter_map(line).collect();
            let is_timed = by == "count" || lines.iter().any(|line| line.ms_per_s.is_some());
            if !lines.is_empty() && is_timed {
                tops.push(Top { view: view.name.to_string(), by: by.to_string(), users: level.users, lines });
            }
        }
    }
    Ok(tops)
}

/// How evenly the instances of some locks were used, level by level. `locks`: parts of their names.
pub(super) fn evenness(recording: &Recording, locks: &[String]) -> Result<Vec<LockEvenness>, Error> {
    let mut found = Vec::new();
    for view in views(recording, &[INSTANCES]).filter(|_| !locks.is_empty()) {
        for level in recording.run().levels.iter().filter(|level| level.purpose == Purpose::Sweep) {
            let over = pfs_in(recording, view, level.window)?;
            let seconds = level.window.seconds();
            let wanted = evenness_of(&over.table).into_iter().filter(|evenness| {
                locks.iter().any(|lock| evenness.event.to_lowercase().contains(&lock.to_lowercase()))
            });
            found.extend(wanted.map(|evenness| LockEvenness {
                users: level.users,
                lock: evenness.event,
                instances: evenness.instances as u32,
                per_s: evenness.count / seconds,
                ms_per_s: evenness.ns.map(|ns| ns / 1e6 / seconds),
                busiest_percent: 100.0 * evenness.busiest,
                even: evenness.even,
            }));
        }
    }
    Ok(found)
}

/// What keeps a study of the Performance Schema from showing anything.
pub(super) fn warnings(recording: &Recording, input: &Input) -> Vec<String> {
    let is_asked = input.performance_schema.as_ref().is_some_and(|setup| setup.asked);
    if !is_asked {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    let variable = |name: &str| recording.run().server.variables.get(name).map(String::as_str);
    let caches = variable("query_cache_type")
        .is_some_and(|value| !value.eq_ignore_ascii_case("OFF") && value != "0")
        && variable("query_cache_size").is_some_and(|value| value != "0");
    if caches {
        warnings.push(
            "the query cache is on: what it answers passes none of the instruments below it, and their cost does not show; set query_cache_type = 0"
                .to_string(),
        );
    }
    let idle = |level: &whyso_explain::model::LevelInput| level.cpu.map(|cpu| 100.0 * cpu.idle);
    let least = input.levels.iter().filter_map(idle).reduce(f64::min);
    if let Some(least) = least.filter(|least| *least > IDLE_PERCENT) {
        warnings.push(format!(
            "the machine's CPUs were idle for {} of the time or more at every level: so small a load hardly shows what instruments cost; give it more users",
            whyso_words::percent(least / 100.0)
        ));
    }
    warnings
}

fn views<'a>(recording: &'a Recording, names: &'a [&'a str]) -> impl Iterator<Item = &'static View> + 'a {
    let has = |view: &View| recording.series().iter().any(|series| series.key.source == view.source);
    names.iter().filter_map(|name| View::named(name)).filter(move |view| has(view))
}
