//! `whyso sql`: the DuckDB shell with views over the recorded runs.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use whyso_record::RunSummary;
use whyso_record::sql::{Selection, views};
use whyso_storage::Bucket;

use crate::answer::kept_answer;
use crate::clock_time::ClockTime;

#[derive(Args, Debug)]
pub(crate) struct SqlArgs {
    /// Folder that holds the recordings, or a place such as s3://lab/runs
    #[arg(long, value_name = "DIR", default_value = crate::config::runs())]
    runs: PathBuf,
    /// Only this run: its id or the begin of it, or latest~N; may be given more than once
    #[arg(long, value_name = "RUN", add = crate::completions::of_runs())]
    run: Vec<String>,
    /// Only runs in which each of these words occurs, as in `whyso runs --find`
    #[arg(long, value_name = "WORDS")]
    find: Option<String>,
    /// Leave out runs and files that end before this time, such as 10:05 or "2026-11-26 10:05"
    #[arg(long, value_name = "TIME")]
    since: Option<ClockTime>,
    /// Leave out runs and files that begin after this time
    #[arg(long, value_name = "TIME")]
    until: Option<ClockTime>,
    /// Run this statement and exit, instead of opening the shell
    #[arg(long, short, value_name = "SQL")]
    command: Option<String>,
}

impl SqlArgs {
    fn selection(&self) -> Result<Selection> {
        let now_ns = i64::try_from(Timestamp::now().as_nanosecond())?;
        let wall_ns =
            |time: Option<ClockTime>| time.map(|time| time.wall_ns(now_ns, &TimeZone::system())).transpose();
        let (since_wall_ns, until_wall_ns) = (wall_ns(self.since)?, wall_ns(self.until)?);
        Ok(Selection { runs: self.chosen()?, since_wall_ns, until_wall_ns })
    }

    /// Ids of the runs that `--run` and `--find` name; `None` without them.
    fn chosen(&self) -> Result<Option<BTreeSet<String>>> {
        if self.run.is_empty() && self.find.is_none() {
            return Ok(None);
        }
        let all = crate::elsewhere::list_runs(&self.runs)?;
        let named: Vec<&RunSummary> = match &self.run[..] {
            [] => all.iter().collect(),
            names => names
                .iter()
                .map(|name| crate::run_names::find(name, &all, &self.runs))
                .collect::<Result<Vec<_>>>()?,
        };
        let is_found = |run: &&RunSummary| {
            self.find
                .as_ref()
                .is_none_or(|words| whyso_report::is_found(run, kept_answer(&run.path).as_ref(), words))
        };
        Ok(Some(named.into_iter().filter(is_found).map(|run| run.id.clone()).collect()))
    }
}

pub(crate) fn sql(args: &SqlArgs) -> Result<ExitCode> {
    let selection = args.selection()?;
    // Of many runs they are longer than an argument may be.
    let place = tempfile::Builder::new().prefix("whyso-sql-").tempdir()?;
    let catalogue = place.path().join("catalogue.parquet");
    let views = match crate::elsewhere::place_of(&args.runs)? {
        Some(place) => {
            // Only what was chosen is copied here: a place may hold more than this machine.
            let with_files = selection != Selection::default();
            Bucket::open(&place)?.views(&selection, with_files, &catalogue)?
        }
        None => views(&args.runs, &selection, &catalogue)?,
    };
    let statements = place.path().join("views.sql");
    for (path, content) in [(&catalogue, &views.catalogue[..]), (&statements, views.sql.as_bytes())] {
        whyso_record::private::create_new_file(path)
            .and_then(|mut file| file.write_all(content))
            .with_context(|| format!("can't write {}", path.display()))?;
    }
    let mut duckdb = Command::new("duckdb");
    duckdb.args(["-cmd", &format!(".read '{}'", statements.display())]).env_remove("MYSQL_PWD");
    if let Some(command) = &args.command {
        duckdb.args(["-c", command]).stdin(Stdio::null());
    }
    match duckdb.status() {
        Ok(status) => Ok(ExitCode::from(u8::from(!status.success()))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => bail!(
            "the DuckDB shell is not on the PATH: install it, for example with `pip install duckdb-cli`, and try again"
        ),
        Err(error) => Err(error).context("can't start the DuckDB shell"),
    }
}
