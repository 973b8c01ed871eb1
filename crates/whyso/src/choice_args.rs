//! Which part of a run, and which of its threads: typed alike in every view. Syntax only, except for the window's times.

use anyhow::{Result, bail};
use clap::Args;
use whyso_control::Error;
use whyso_query::ThreadFilter;
use whyso_record::Recording;
use whyso_record::run::{Level, Window};

use crate::values::Length;

/// Which part of a run.
#[derive(Args, Clone, Debug)]
pub(crate) struct WindowArgs {
    /// The measured window of the level with N users [default: of the last level]
    #[arg(long, value_name = "N")]
    pub(crate) users: Option<u32>,

    /// The measured window of the level of this number, as the recording has it: the first is 0
    #[arg(long, value_name = "N", conflicts_with = "users")]
    pub(crate) level: Option<u32>,

    /// Any window, in time since the load began as the report counts it: 10s-25s, 1:10-1:25
    #[arg(long, value_name = "A-B", conflicts_with_all = ["users", "level"])]
    pub(crate) window: Option<Stretch>,
}

/// Which threads: all that meet every condition.
#[derive(Args, Clone, Debug)]
pub(crate) struct WhoseArgs {
    /// Only threads of this role, such as connection or "page cleaner"; all for every thread [default: all; of stacks
    /// connection, unless threads are named]
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Option<String>,

    /// Only threads whose name contains this text, in any case
    #[arg(long, value_name = "TEXT")]
    pub(crate) name: Option<String>,

    /// Only these threads, by the kernel's numbers
    #[arg(long, value_name = "TID,TID,…", value_delimiter = ',')]
    pub(crate) thread: Vec<u32>,

    /// Only work for these connections, by the server's numbers, where the connection is known
    #[arg(long, value_name = "N,N,…", value_delimiter = ',')]
    pub(crate) connection: Vec<u64>,

    /// Only work on statements that contain this text, in any case, where the statement is known; literals are replaced:
    /// "WHERE id=?"
    #[arg(long, value_name = "TEXT")]
    pub(crate) statement: Option<String>,
}

impl WhoseArgs {
    pub(crate) fn filter(&self) -> ThreadFilter {
        ThreadFilter {
            role: self.role.clone(),
            name: self.name.clone(),
            tids: self.thread.clone(),
            connections: self.connection.clone(),
            statement: self.statement.clone(),
            observer: false,
        }
    }

    pub(crate) fn is_given(&self) -> bool {
        self.filter() != ThreadFilter::default()
    }
}

impl WindowArgs {
    pub(crate) fn is_given(&self) -> bool {
        self.users.is_some() || self.level.is_some() || self.window.is_some()
    }
}

impl Stretch {
    pub(crate) fn window_of(&self, recording: &Recording) -> Result<Window> {
        let origin_ns = whyso_report::origin_ns(recording.run(), recording.load_begin_ns()?);
        let at = |seconds: f64| origin_ns + (seconds * 1e9) as i64;
        Ok(Window { begin_ns: at(self.begin_s), end_ns: at(self.end_s) })
    }
}

/// A part of a run.
pub(crate) struct RunPart {
    pub(crate) window: Window,
    /// Such as "the level of 16 users".
    pub(crate) words: String,
    /// The level whose measured window it is.
    pub(crate) level: Option<Level>,
}

/// What was asked for; all of a recording in which no level ended.
pub(crate) fn choose_part(recording: &Recording, args: &WindowArgs) -> Result<RunPart> {
    if let Some(part) = &args.window {
        let (window, Stretch { begin_s, end_s }) = (part.window_of(recording)?, part);
        return Ok(RunPart { window, words: format!("from {begin_s} to {end_s} s of the run"), level: None });
    }
    let levels = &recording.run().levels;
    let level = match (args.level, args.users) {
        (Some(index), _) => levels.iter().find(|level| level.index == index),
        (None, Some(users)) => levels.iter().find(|level| level.users == users),
        (None, None) => levels.last(),
    };
    match (level, recording.window()) {
        (Some(level), _) => {
            Ok(RunPart { window: level.window, words: describe_level(level, levels), level: Some(level.clone()) })
        }
        (None, Some(window)) if levels.is_empty() && !args.is_given() => {
            Ok(RunPart { window, words: "the recording".to_string(), level: None })
        }
        (None, _) if levels.is_empty() => bail!(Error::Plan(
            "no level of this run ended: say which part of it with --window A-B, or leave out --users and --level"
                .to_string()
        )),
        (None, _) => {
            let describe_level = |level: &Level| format!("{} ({} users)", level.index, level.users);
            let there: Vec<String> = levels.iter().map(describe_level).collect();
            bail!(Error::Plan(format!("this run has no such level; it has: {}", there.join(", "))))
        }
    }
}

fn describe_level(level: &Level, levels: &[Level]) -> String {
    let mut words = match level.users {
        0 if levels.len() == 1 => return "the recording".to_string(),
        1 => "the level of 1 user".to_string(),
        users => format!("the level of {users} users"),
    };
    let alike = levels.iter().filter(|other| other.users == level.users);
    if alike.count() > 1 {
        words.push_str(&format!(", number {}", level.index));
    }
    words
}

/// A text that is no stretch of a run.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is no stretch of a run: give two times, such as 10s-25s or 1:10-1:25")]
pub(crate) struct StretchError(String);

/// A stretch of a run as it is typed, in seconds since the load began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    pub(crate) begin_s: f64,
    pub(crate) end_s: f64,
}

impl std::str::FromStr for Stretch {
    type Err = StretchError;

    fn from_str(text: &str) -> Result<Stretch, StretchError> {
        let ends = text.split_once("..").or_else(|| text.split_once('-'));
        match ends.and_then(|(begin, end)| Some((time_s(begin)?, time_s(end)?))) {
            Some((begin_s, end_s)) if begin_s < end_s => Ok(Stretch { begin_s, end_s }),
            _ => Err(StretchError(text.to_string())),
        }
    }
}

/// Seconds of 90, 90s, 1m, 1:30 or 1:02:03.5.
pub(crate) fn time_s(text: &str) -> Option<f64> {
    let text = text.trim();
    if let Ok(length) = text.parse::<Length>() {
        return Some(length.0.as_secs_f64());
    }
    let text = text.trim_end_matches('s');
    let mut seconds = 0.0;
    for (place, part) in text.split(':').enumerate() {
        // A clock has no 75th second; what has no colon counts any number of them.
        let most = if place == 0 { 1e6 } else { 60.0 };
        let digits = part.parse::<f64>().ok().filter(|number| (0.0..most).contains(number))?;
        seconds = seconds * 60.0 + digits;
    }
    Some(seconds)
}
