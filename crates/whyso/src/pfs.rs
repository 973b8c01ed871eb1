//! `whyso pfs`: the Performance Schema's views of a recorded run.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use whyso_control::Error;
use whyso_explain::pfs::{Column, Per, Table, VIEWS, View, differences, evenness};
use whyso_query::{PfsOver, pfs_in};
use whyso_record::Recording;
use whyso_report::{PfsOf, PfsTimersOf};

use crate::against::run_and_users;
use crate::choice_args::{RunPart, WindowArgs, choose_part};
use crate::recordings::open;

#[derive(Args, Debug)]
pub(crate) struct PfsArgs {
    /// The run: its folder, its id or the begin of it, or latest~N for the one N before the last
    #[arg(default_value = "latest", add = crate::completions::of_runs())]
    run: PathBuf,

    /// Which view; --list lists them. timers: what timing cost, and what other timers would have cost
    #[arg(default_value = "waits")]
    view: String,

    #[command(flatten)]
    part: WindowArgs,

    /// The number that sorts, such as count or time [default: time where the server took it]
    #[arg(long, value_name = "COLUMN")]
    by: Option<String>,

    /// What numbers are divided by: second, statement, transaction, or window for not at all. Waits and stages show the
    /// first three side by side [default: second; with --against transaction, if it is known]
    #[arg(long, value_name = "WHAT")]
    per: Option<Per>,

    /// Only lines whose name contains this text, in any case; of lock-instances every instance, one by one
    #[arg(long, value_name = "TEXT")]
    like: Option<String>,

    /// Show the statements of whyso's own connections, too
    #[arg(long)]
    observer: bool,

    /// Another run, RUN or RUN:USERS: show what differs from it
    #[arg(long, value_name = "RUN")]
    against: Option<String>,

    /// Another level of the same run: show what differs from it
    #[arg(long, value_name = "N", conflicts_with = "against")]
    against_users: Option<u32>,

    /// Another window of the same run: show what differs from it
    #[arg(long, value_name = "A-B", conflicts_with_all = ["against", "against_users"])]
    against_window: Option<crate::choice_args::Stretch>,

    /// Lines that are shown
    #[arg(long, alias = "top", value_name = "N", default_value_t = 30)]
    limit: usize,

    /// List the views, and which of them the run has
    #[arg(long)]
    list: bool,

    /// Print one JSON object on standard output, and nothing else there
    #[arg(long)]
    json: bool,

    /// Folder that holds the recordings
    #[arg(long, value_name = "DIR", default_value = crate::config::runs())]
    runs: PathBuf,
}

/// What is shown in the place of a view, although the server has no such table.
const TIMERS: &str = "timers";

pub(crate) fn pfs(args: &PfsArgs) -> Result<ExitCode> {
    // Either may come first: a run's folder is called otherwise.
    let is_view = |text: &str| text == TIMERS || View::named(text).is_some();
    let first = args.run.to_str().filter(|first| is_view(first) && !args.run.is_dir());
    let (run, view) = match first {
        Some(first) if !is_view(&args.view) => (Path::new(&args.view), first),
        Some(_) => bail!(Error::Plan(
            "which run? give its folder, or its id, and the view: `whyso runs` lists them".to_string()
        )),
        None => (args.run.as_path(), args.view.as_str()),
    };
    let (recording, _) = open(run, &args.runs)?;
    let mut out = crate::out::stdout();
    if args.list {
        for view in VIEWS {
            let has = recording.series().iter().any(|series| series.key.source == view.source);
            writeln!(out, "{} {:<16} {}", if has { "*" } else { " " }, view.name, view.about)?;
        }
        let has = whyso_query::timing_is_known(&recording);
        writeln!(
            out,
            "{} {TIMERS:<16} what timing cost, and what other timers would have cost",
            if has { "*" } else { " " }
        )?;
        writeln!(out, "* counted something in this run")?;
        return Ok(ExitCode::SUCCESS);
    }
    if view == TIMERS {
        return timers(&mut out, &recording, args);
    }
    let Some(view) = View::named(view) else {
        let names: Vec<&str> = VIEWS.iter().map(|view| view.name).chain([TIMERS]).collect();
        bail!(Error::Plan(format!("{view:?} is no view: it is one of {}", names.join(", "))));
    };
    let mut here = Side::take(&recording, view, &args.part, args)?;
    let column = sort_column(view, args.by.as_deref(), &here.over.table)?;
    if args.is_against() {
        let mut there = their_side(&recording, view, args)?;
        if args.against.is_some() {
            here.words = format!("{} of run {}", here.words, recording.run().id);
        } else if here.window == there.window {
            bail!(Error::Plan("that is the same part of the run: give another".to_string()));
        }
        there.over.texts.extend(here.over.texts.clone());
        let both_know = [&here, &there].iter().all(|side| side.over.table.transactions.is_some());
        let per = args.per.unwrap_or(if both_know { Per::Transaction } else { Per::Second });
        let [a, b] = [&here, &there].map(|side| side.about(per, args.limit));
        for table in [a.table, b.table] {
            check_divisor(table, per)?;
        }
        let found = differences(a.table, b.table, column, per);
        return print(
            &mut out,
            args.json.then_some("pfs-differences"),
            &whyso_report::pfs_differences_json(a, b, column, per, &found),
            || whyso_report::pfs_differences(a, b, column, &found),
        );
    }
    let per = args.per.unwrap_or(Per::Second);
    check_divisor(&here.over.table, per)?;
    here.over.table.sort(column);
    let about = here.about(per, args.limit);
    if view.name == "lock-instances" && args.like.is_none() {
        let locks = evenness(about.table);
        return print(
            &mut out,
            args.json.then_some("pfs-evenness"),
            &whyso_report::pfs_evenness_json(about, &locks),
            || whyso_report::pfs_evenness(about, &locks),
        );
    }
    print(&mut out, args.json.then_some("pfs"), &whyso_report::pfs_json(about), || whyso_report::pfs(about))
}

/// `whyso pfs RUN timers`.
fn timers(out: &mut impl Write, recording: &Recording, args: &PfsArgs) -> Result<ExitCode> {
    if args.is_against() || args.by.is_some() || args.per.is_some() || args.like.is_some() {
        bail!(Error::Plan(
            "timers has no lines to choose, to sort or to compare: leave out --by, --per, --like and --against".to_string()
        ));
    }
    let RunPart { window, words, .. } = choose_part(recording, &args.part)?;
    let timing = whyso_query::timing_in(recording, window)?;
    let setup = recording.run().performance_schema().unwrap_or_else(|| "not recorded".to_string());
    let of = PfsTimersOf { window: &words, timing: &timing, setup: &setup };
    print(out, args.json.then_some("pfs-timers"), &whyso_report::pfs_timers_json(of), || {
        whyso_report::pfs_timers(of)
    })
}

impl PfsArgs {
    fn is_against(&self) -> bool {
        self.against.is_some() || self.against_users.is_some() || self.against_window.is_some()
    }
}

/// One side of a comparison, or all there is.
struct Side {
    over: PfsOver,
    words: String,
    window: whyso_record::run::Window,
}

impl Side {
    fn take(recording: &Recording, view: &'static View, part: &WindowArgs, args: &PfsArgs) -> Result<Side> {
        let RunPart { window, words, .. } = choose_part(recording, part)?;
        let mut over = pfs_in(recording, view, window)?;
        if args.observer {
            over.table.show_observer();
        }
        if let Some(text) = &args.like {
            over.keep_like(text);
        }
        Ok(Side { over, words, window })
    }

    fn about(&self, per: Per, limit: usize) -> PfsOf<'_> {
        PfsOf { window: &self.words, table: &self.over.table, texts: &self.over.texts, per, limit }
    }
}

fn their_side(recording: &Recording, view: &'static View, args: &PfsArgs) -> Result<Side> {
    let part = |users, window| WindowArgs { users, level: None, window };
    let Some(text) = &args.against else {
        return Side::take(recording, view, &part(args.against_users, args.against_window), args);
    };
    let (run, users) = run_and_users(text);
    let (other, _) = open(Path::new(run), &args.runs)?;
    let window = args.part.window.filter(|_| users.is_none());
    let users = users.or(args.part.users);
    let mut side = Side::take(&other, view, &part(users.filter(|_| window.is_none()), window), args)?;
    side.words = format!("{} of run {}", side.words, other.run().id);
    Ok(side)
}

fn sort_column(view: &'static View, by: Option<&str>, table: &Table) -> Result<&'static Column> {
    let Some(name) = by else { return Ok(table.main_column()) };
    match view.column(name) {
        Some(column) => Ok(column),
        None => {
            let names: Vec<&str> = view.columns.iter().map(|column| column.name).collect();
            bail!(Error::Plan(format!("the view {} has no {name:?}: it has {}", view.name, names.join(", "))))
        }
    }
}

fn check_divisor(table: &Table, per: Per) -> Result<()> {
    if table.divisor(per).is_none() {
        let name = per.name();
        bail!(Error::Plan(format!(
            "no {name} ended in that part of the run, or none was counted: use --per second"
        )));
    }
    Ok(())
}

/// Prints the object if there is a schema for it to keep to, otherwise the text.
fn print(
    out: &mut impl Write,
    schema: Option<&str>,
    object: &serde_json::Value,
    text: impl FnOnce() -> String,
) -> Result<ExitCode> {
    match schema {
        Some(schema) => crate::json::write(out, schema, object)?,
        None => write!(out, "{}", text())?,
    }
    Ok(ExitCode::SUCCESS)
}
