//! What was asked for, checked before anything starts.

use std::path::PathBuf;
use std::time::Duration;

use whyso_explain::slo::Requirement;
use whyso_load::{Arrivals, EngineKind, LevelSpec, Pacing, Profile, Think, Tuning};
use whyso_trace::StackSampling;

use crate::Error;
use crate::source::Source;
use whyso_tracing::Literals;

/// Most users that one run may ask for.
pub const USERS_MAX: u32 = 20_000;

/// One run, as the user asked for it.
#[derive(Clone, Debug)]
pub struct Plan {
    pub source: Source,
    /// Options of the workload, (name, value).
    pub options: Vec<(String, String)>,
    pub tables: u32,
    pub rows: u64,
    /// Storage engine of the tables, such as "InnoDB".
    pub table_engine: String,
    pub seed: u64,
    /// Users at each level, in the order in which they run.
    pub users: Vec<u32>,
    /// Length of a level's measured window.
    pub measure: Duration,
    /// Bound on a level's warm-up.
    pub warmup_max: Duration,
    /// Begin with an empty buffer pool and none of the data in the page cache; of a throw-away server.
    pub cold: bool,
    pub interval: Duration,
    /// Account for the time of the server's threads and requests, where this machine allows it.
    pub trace: bool,
    /// What of their stacks is taken, too.
    pub stacks: StackSampling,
    /// Follow the commands of the server's clients.
    pub sql: Option<Literals>,
    pub engine: EngineKind,
    /// Number of event loops; `None`: the engine chooses.
    pub loops: Option<u32>,
    pub tuning: Tuning,
    /// Pause between a user's transactions, in a closed loop.
    pub think: Think,
    /// Transactions due a second: of every level where it is one, of a level each where they are several (and `users` is
    /// one number); empty: a closed loop.
    pub rates_per_s: Vec<f64>,
    pub arrivals: Arrivals,
    /// Response times that are required at each level.
    pub slo: Vec<Requirement>,
    /// Repeat the best level at the end, to look for drift.
    pub repeat_best: bool,
    /// Run a level twice where the number of event loops changes before it, so that the generator's own step can be told from the server's.
    pub check_loops: bool,
    pub actions: Vec<Action>,
    pub server: ServerPlan,
    /// What the Performance Schema is to count; `None`: as the server has it.
    pub pfs: Option<whyso_server::knobs::pfs::Wanted>,
    pub client_cpus: Option<String>,
    /// Schema that may be written although whyso did not make it.
    pub allow_writes: Option<String>,
    /// Sources of the user's own.
    pub add_ons: Vec<whyso_watch::AddOn>,
    /// Where samples go beside the recording.
    pub relay: whyso_relay::Wanted,
    /// Folder that holds the recordings.
    pub out: PathBuf,
    /// The command line, secrets masked, as it goes into the recording.
    pub command: Vec<String>,
}

/// The server that is loaded.
#[derive(Clone, Debug)]
pub enum ServerPlan {
    /// One that runs already.
    Dsn { dsn: String, set: Vec<(String, String)> },
    /// One that is started for this run alone, and removed after it.
    ThrowAway {
        /// Folder of the build; `None` for the one on the PATH.
        build: Option<PathBuf>,
        /// Folder in which the server's own folder is made.
        parent: Option<PathBuf>,
        set: Vec<(String, String)>,
        defaults_file: Option<PathBuf>,
        cpus: Option<String>,
        /// Bound on its memory, the page cache of its files included.
        memory_bytes: Option<u64>,
        /// A library that it loads before its own.
        preload: Option<PathBuf>,
    },
}

/// Something that is done in mid-run.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// Since the first measured window began, counting measured time alone.
    pub after: Duration,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// SET GLOBAL of one variable, put back at the end of the run.
    Set { name: String, value: String },
    /// Any other statement, sent as it is.
    Sql(String),
    /// Restart the throw-away server under the load.
    Restart,
    /// A command for `/bin/sh -c`.
    Shell(String),
}

impl Plan {
    /// The levels of the sweep in order: users, and the rate of an open loop.
    pub(crate) fn sweep(&self) -> Vec<(u32, Option<f64>)> {
        match (&self.rates_per_s[..], &self.users[..]) {
            ([], users) => users.iter().map(|&users| (users, None)).collect(),
            ([rate_per_s], users) => users.iter().map(|&users| (users, Some(*rate_per_s))).collect(),
            (rates, users) => {
                let users = users.first().copied().unwrap_or(1);
                rates.iter().map(|&rate_per_s| (users, Some(rate_per_s))).collect()
            }
        }
    }

    /// The level of so many users, at a rate where it is one of an open loop.
    pub(crate) fn level_spec(&self, users: u32, rate_per_s: Option<f64>) -> LevelSpec {
        let pacing = match rate_per_s {
            Some(rate_per_s) => Pacing::Open { arrivals: self.arrivals, rate: Profile::constant(rate_per_s) },
            None => Pacing::Closed { think: self.think, active: None },
        };
        LevelSpec { pacing, ..LevelSpec::users(users) }
    }

    /// Checks everything that can be checked without a server.
    ///
    /// # Errors
    /// One sentence for the first thing that is wrong.
    pub fn check(&self) -> Result<(), Error> {
        check_users(&self.users)?;
        check_times(self.measure, self.warmup_max)?;
        self.rates_per_s.iter().try_for_each(|rate_per_s| check_rate(*rate_per_s))?;
        if !self.rates_per_s.is_empty() && self.think != Think::None {
            return Err(Error::Plan(THINK_IN_OPEN_LOOP.into()));
        }
        if self.rates_per_s.len() > 1 && self.users.len() > 1 {
            return Err(Error::Plan(RATES_AND_USERS.into()));
        }
        if self.interval < Duration::from_millis(100) || self.interval > Duration::from_secs(60) {
            return Err(Error::Plan(format!(
                "--interval-ms {} can't be kept: give 100 to 60000",
                self.interval.as_millis()
            )));
        }
        check_data_set(self.tables, self.rows)?;
        crate::pfs_setup::check(self)?;
        self.tuning.check(self.engine).map_err(|error| Error::Plan(error.to_string()))?;
        if self.cold && matches!(self.server, ServerPlan::Dsn { .. }) {
            return Err(Error::Plan(
                "--cold empties the caches of a throw-away server: a server of your own is left as it is"
                    .into(),
            ));
        }
        let measured = self.measure * self.sweep().len() as u32;
        for action in &self.actions {
            if action.after >= measured {
                return Err(Error::Plan(format!(
                    "--at {}s comes after the last level has ended: all levels together measure {}s",
                    action.after.as_secs_f64(),
                    measured.as_secs_f64()
                )));
            }
            let remote = matches!(self.server, ServerPlan::Dsn { .. });
            if action.what == What::Restart && remote {
                return Err(Error::Plan(
                    "--at … restart works on a throw-away server only: for a server of your own give the command \
                     that restarts it, such as --at 60 '!systemctl restart mariadb'"
                        .into(),
                ));
            }
        }
        Ok(())
    }
}

/// Why a think time and a rate don't go together.
pub(crate) const THINK_IN_OPEN_LOOP: &str =
    "--think is a pause in a closed loop, and --rate says when transactions are due: give one of them";

/// Why several rates and several numbers of users don't go together.
pub(crate) const RATES_AND_USERS: &str = "with several rates, --users is the most transactions that are under way at once: give one number, and several rates for \
     several levels";

pub(crate) fn check_users(levels: &[u32]) -> Result<(), Error> {
    if levels.is_empty() {
        return Err(Error::Plan("--users needs at least one number of users, such as 1,2,4,8".into()));
    }
    for &users in levels {
        if users == 0 {
            return Err(Error::Plan("--users 0 loads nothing: give 1 or more".into()));
        }
        if users > USERS_MAX {
            return Err(Error::Plan(format!(
                "--users {users} is more than the {USERS_MAX} that one run may ask for: give fewer"
            )));
        }
    }
    Ok(())
}

pub(crate) fn check_times(measure: Duration, warmup_max: Duration) -> Result<(), Error> {
    let seconds = measure.as_secs_f64();
    if !(0.5..=86_400.0).contains(&seconds) {
        return Err(Error::Plan(format!(
            "--seconds {seconds} can't be measured: give 0.5 to 86400, and 5 or more for intervals that hold"
        )));
    }
    if warmup_max > Duration::from_secs(86_400) {
        return Err(Error::Plan("--warmup is more than a day: give 0 to 86400 seconds".into()));
    }
    Ok(())
}

pub(crate) fn check_rate(rate_per_s: f64) -> Result<(), Error> {
    if !(0.01..=1e7).contains(&rate_per_s) {
        return Err(Error::Plan(format!(
            "--rate {rate_per_s} is out of range: give 0.01 to 10000000 transactions per second"
        )));
    }
    Ok(())
}

pub(crate) fn check_data_set(tables: u32, rows: u64) -> Result<(), Error> {
    if tables == 0 || tables > 10_000 {
        return Err(Error::Plan(format!("--tables {tables} is out of range: give 1 to 10000")));
    }
    if rows == 0 || rows > i32::MAX as u64 {
        return Err(Error::Plan(format!(
            "--rows {rows} is out of range: the tables' id is an INTEGER, give 1 to {}",
            i32::MAX
        )));
    }
    Ok(())
}

impl Action {
    /// Reads the two words of `--at TIME ACTION`.
    ///
    /// # Errors
    /// One sentence that says which word can't be read.
    pub fn parse(time: &str, action: &str) -> Result<Action, Error> {
        let after = parse_duration(time).ok_or_else(|| {
            Error::Plan(format!("--at {time}: can't read the time: give seconds such as 60 or 60s, or 2m"))
        })?;
        let action = action.trim().trim_end_matches(';').trim();
        if action.is_empty() {
            return Err(Error::Plan(format!(
                "--at {time}: the action is empty: give SQL, restart, or a command after a !"
            )));
        }
        let what = if action.eq_ignore_ascii_case("restart") {
            What::Restart
        } else if let Some(command) = action.strip_prefix('!') {
            What::Shell(command.trim().to_string())
        } else if let Some((name, value)) = parse_set_global(action) {
            What::Set { name, value }
        } else {
            What::Sql(action.to_string())
        };
        Ok(Action { after, what })
    }
}

impl std::fmt::Display for What {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            What::Set { name, value } => write!(out, "SET GLOBAL {name} = {value}"),
            What::Sql(sql) => out.write_str(sql),
            What::Restart => out.write_str("restart of the server"),
            What::Shell(command) => write!(out, "! {command}"),
        }
    }
}

/// "60", "60s", "1.5m", "200ms", "50us" or "1h".
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..number_end].parse().ok()?;
    let scale = match text[number_end..].trim() {
        "" | "s" => 1.0,
        "us" | "µs" => 1e-6,
        "ms" => 0.001,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    let seconds = number * scale;
    (seconds.is_finite() && seconds <= 86_400.0 * 30.0).then(|| Duration::from_secs_f64(seconds))
}

/// The one assignment of a `SET GLOBAL name = value`; `None` for everything else, several at once included.
fn parse_set_global(sql: &str) -> Option<(String, String)> {
    let mut words = sql.splitn(3, char::is_whitespace);
    if !words.next()?.eq_ignore_ascii_case("set") {
        return None;
    }
    let scope = words.next()?;
    let rest = words.next().map(str::trim);
    let assignment = if scope.eq_ignore_ascii_case("global") {
        rest?.to_string()
    } else if scope.len() > 9 && scope[..9].eq_ignore_ascii_case("@@global.") {
        format!("{} {}", &scope[9..], rest.unwrap_or(""))
    } else {
        return None;
    };
    let (name, value) = assignment.split_once('=')?;
    let name = name.trim().trim_end_matches(':').trim();
    let value = value.trim().trim_matches(|c| c == '\'' || c == '"');
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
    let is_one_value = !value.is_empty() && !value.contains([',', '(', '@', ';', '\'', '"', '\\']);
    (is_name && is_one_value).then(|| (name.to_string(), value.to_string()))
}

/// Splits `knob=value`.
///
/// # Errors
/// Says how a setting is written.
pub fn parse_knob(text: &str) -> Result<(String, String), Error> {
    let bad = || {
        Error::Plan(format!("--set {text}: give a setting as knob=value, such as innodb_io_capacity=2000"))
    };
    let (name, value) = text.split_once('=').ok_or_else(bad)?;
    let name = name.trim().trim_start_matches("--");
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')) {
        return Err(bad());
    }
    Ok((name.replace('-', "_"), value.trim().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what(action: &str) -> What {
        Action::parse("60s", action).unwrap().what
    }

    #[test]
    fn an_action_is_a_setting_sql_a_restart_or_a_command() {
        let set = |name: &str, value: &str| What::Set { name: name.into(), value: value.into() };
        assert_eq!(what("SET GLOBAL innodb_io_capacity = 2000;"), set("innodb_io_capacity", "2000"));
        assert_eq!(what("set @@global.sync_binlog=1"), set("sync_binlog", "1"));
        assert_eq!(what("SET GLOBAL a='ON'"), set("a", "ON"));
        assert_eq!(what("restart"), What::Restart);
        assert_eq!(what("!sync"), What::Shell("sync".into()));
        assert_eq!(what("FLUSH TABLES"), What::Sql("FLUSH TABLES".into()));
        assert_eq!(what("SET GLOBAL a=1, GLOBAL b=2"), What::Sql("SET GLOBAL a=1, GLOBAL b=2".into()));
        assert_eq!(what("SET GLOBAL a=@@b"), What::Sql("SET GLOBAL a=@@b".into()));
        assert_eq!(what("SET SESSION a=1"), What::Sql("SET SESSION a=1".into()));
    }

    #[test]
    fn times_have_units() {
        assert_eq!(parse_duration("60"), Some(Duration::from_secs(60)));
        assert_eq!(parse_duration("200ms"), Some(Duration::from_millis(200)));
        assert_eq!(parse_duration("1.5m"), Some(Duration::from_secs(90)));
        for bad in ["", "x", "5 parsecs", "-1", "1e300h", "9999999h", "1..2"] {
            assert_eq!(parse_duration(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_knob_is_a_name_and_a_value() {
        assert_eq!(parse_knob("--innodb-io-capacity = 5").unwrap().0, "innodb_io_capacity");
        for bad in ["x", "=1", "a b=1", "a;b=1"] {
            assert!(parse_knob(bad).is_err(), "{bad}");
        }
    }
}
