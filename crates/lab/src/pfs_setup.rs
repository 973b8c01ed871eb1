//! What the Performance Schema is to count in a run: set before it, told in the recording, put back after it.

use mysql_async::Conn;
use serde_json::{Value, json};
use whyso_explain::model::{PfsSetup, Timer};
use whyso_server::knobs::pfs::{Found, SetupChange, Wanted};
use whyso_server::knobs::{self, Undo};
use whyso_server::{StartSpec, ThrowAway};

use crate::plan::{ServerPlan, What};
use crate::prepare::{AskPassword, undone_words};
use crate::run::runtime;
use crate::{Error, Plan, login};

/// Changes the setup tables of a server, and gives what the recording tells of it. Where it fails, everything is put back.
pub(crate) async fn set_up(wanted: &Wanted, conn: &mut Conn, undo: &mut Undo) -> Result<Value, Error> {
    let found = Found::read(conn).await?;
    let changes = wanted.changes(&found)?;
    let sql: Vec<String> = changes.iter().flat_map(SetupChange::sql).collect();
    if let Err(error) = undo.change_setup(conn, changes).await {
        undo.undo_all(conn).await?;
        return Err(error.into());
    }
    let found = Found::read(conn).await?;
    // Some instruments can't be turned off, and some changes take a server's start.
    let remaining: Vec<String> = wanted.changes(&found)?.iter().flat_map(SetupChange::sql).collect();
    Ok(json!({
        "preset": wanted.preset.to_string(),
        "timing": wanted.timing.map(|timing| timing.to_string()),
        "asked": wanted.words(),
        "in_force": found.in_force(),
        "statements": sql,
        "not_taken": remaining,
    }))
}

/// Puts back what runs that are over have left changed on this server; a sentence each.
pub(crate) async fn undo_pending(conn: &mut Conn) -> Result<Vec<String>, Error> {
    let mut notes = Vec::new();
    for mut pending in knobs::pending_undo(conn).await? {
        for undone in pending.undo_all(conn).await? {
            notes.push(undone_words(&undone));
        }
    }
    Ok(notes)
}

/// `whyso server undo`: puts back what runs that were ended by force have left changed; a sentence each.
///
/// # Errors
/// The server can't be reached, or does not take it.
pub fn undo(dsn: &str, ask_password: &AskPassword) -> Result<Vec<String>, Error> {
    let mut dsn = login::neutral(dsn)?;
    runtime()?.block_on(async {
        let mut conn = login::log_in(&mut dsn, ask_password).await?;
        let notes = undo_pending(&mut conn).await;
        let _ = conn.disconnect().await;
        notes
    })
}

/// What `--pfs` would do: start options and SQL, one a line. A server of whyso's own is started to ask it, and removed.
///
/// # Errors
/// The server can't be reached or started, or can't do this.
pub fn pfs_dry_run(
    wanted: &Wanted,
    server: &ServerPlan,
    ask_password: &AskPassword,
) -> Result<String, Error> {
    wanted.check()?;
    runtime()?.block_on(async {
        let (lines, changes) = match server {
            ServerPlan::Dsn { dsn, .. } => {
                let mut dsn = login::neutral(dsn)?;
                let mut conn = login::log_in(&mut dsn, ask_password).await?;
                let found = Found::read(&mut conn).await;
                let _ = conn.disconnect().await;
                (Vec::new(), wanted.changes(&found?)?)
            }
            ServerPlan::ThrowAway { build, parent, set, defaults_file, .. } => {
                let mut spec = StartSpec::new(whyso_server::find(build.as_deref())?);
                spec.parent_dir = parent.clone();
                spec.defaults_file = defaults_file.clone();
                spec.set = set.clone();
                spec.to_be_watched = wanted.start_options();
                let options = spec.to_be_watched.iter();
                let lines: Vec<String> =
                    options.map(|(name, value)| format!("--loose-{name}={value}")).collect();
                let server = ThrowAway::start(spec).await?;
                let changes = asked(wanted, &server).await;
                server.stop().await?;
                (lines, changes?)
            }
        };
        let sql = changes.iter().flat_map(SetupChange::sql).map(|sql| format!("{sql};"));
        let lines: Vec<String> = lines.into_iter().chain(sql).collect();
        Ok(match lines.is_empty() {
            true => "-- nothing has to be changed".to_string(),
            false => lines.join("\n"),
        })
    })
}

async fn asked(wanted: &Wanted, server: &ThrowAway) -> Result<Vec<SetupChange>, Error> {
    let mut conn = server.dsn().connect_without_schema().await?;
    let found = Found::read(&mut conn).await?;
    let _ = conn.disconnect().await;
    Ok(wanted.changes(&found)?)
}

/// Checks a preset against the rest of a plan.
pub(crate) fn check(plan: &Plan) -> Result<(), Error> {
    let Some(wanted) = &plan.pfs else { return Ok(()) };
    wanted.check()?;
    let restarts = plan.actions.iter().any(|action| action.what == What::Restart);
    if restarts && wanted.is_lost_at_restart() {
        return Err(Error::Plan(format!(
            "--pfs {} is set on the running server, which forgets it at its restart: leave --at … restart or --pfs away",
            wanted.preset
        )));
    }
    Ok(())
}

/// What the recording tells of the setup; `None` where nothing was asked for.
pub(crate) fn of_run(told: &Value) -> Option<PfsSetup> {
    let asked = told["asked"].as_str()?;
    let in_force = &told["in_force"];
    let number = |name: &str| in_force[name].as_u64().unwrap_or(0);
    let list = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_string).collect()
    };
    let consumers = list(&in_force["consumers"]);
    let mut words = format!("The Performance Schema was asked for {asked}");
    words += &match number("instruments") {
        0 => "; nothing was counted.".to_string(),
        instruments => format!(
            ": {} of {instruments} instruments on, {} of them timed; consumers {}.",
            number("enabled"),
            number("timed"),
            if consumers.is_empty() { "none".to_string() } else { consumers.join(", ") }
        ),
    };
    let not_taken = list(&told["not_taken"]).len();
    if not_taken > 0 {
        words += &format!(" {not_taken} of the changes were not taken in full by the server.");
    }
    let timers = in_force["timers_there"].as_array().into_iter().flatten().map(|timer| Timer {
        name: timer["name"].as_str().unwrap_or_default().to_string(),
        frequency: timer["frequency"].as_f64(),
        overhead_cycles: timer["overhead_cycles"].as_f64(),
    });
    let used = list(&in_force["timers"]);
    let used = used.iter().filter_map(|words| words.split_once(" by "));
    Some(PfsSetup {
        words,
        timers: timers.collect(),
        used: used.map(|(what, timer)| (what.to_string(), timer.to_string())).collect(),
    })
}
