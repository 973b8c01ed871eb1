//! What the Performance Schema is to count in a run: set before it, recorded, put back after it.

use mysql_async::Conn;
use tokio::runtime::Runtime;
use whyso_model::PerformanceSchema;
use whyso_model::performance_schema::{EffectiveClass, EffectiveSetup, PfsState};
use whyso_server::answers::{answered, log_out, within};
use whyso_server::knobs::pfs::{PfsRequest, SetupChange, SetupTables, State};
use whyso_server::knobs::{self, Undo};
use whyso_server::{Dsn, StartSpec, ThrowAway};

use crate::Error;
use crate::action::{Action, ActionKind};
use crate::login::{self, AskPassword};
use crate::put_back::describe_undone;
use crate::runtime::{GOODBYE_TIME_MAX, runtime};
use crate::server_plan::ServerPlan;

/// How a recording describes the Performance Schema where nobody asked for anything.
const AS_IT_WAS: &str = "as the server had it";
const READING: &str = "reading the Performance Schema's setup";

/// Changes the setup tables of a server, and returns what the recording keeps of it. Where it fails, everything is put back.
pub(crate) async fn set_up(
    wanted: &PfsRequest,
    conn: &mut Conn,
    undo: &mut Undo,
) -> Result<PerformanceSchema, Error> {
    let found = SetupTables::read(conn).await?;
    let changes = wanted.changes(&found)?;
    let sql: Vec<String> = changes.iter().flat_map(SetupChange::sql).collect();
    if let Err(error) = undo.change_setup(conn, changes).await {
        undo.undo_all(conn).await?;
        return Err(error.into());
    }
    let found = SetupTables::read(conn).await?;
    // Some instruments can't be turned off, and some changes take a server's start.
    let remaining: Vec<String> = wanted.changes(&found)?.iter().flat_map(SetupChange::sql).collect();
    let in_force = found.in_force();
    Ok(PerformanceSchema {
        preset: Some(wanted.preset.to_string()),
        timing: wanted.timing.map(|timing| timing.to_string()),
        asked: Some(wanted.words()),
        state: recorded_state(found.state()),
        words: format!("{}: {}", wanted.words(), describe_state(found.state(), &in_force)),
        in_force: Some(in_force),
        statements: sql,
        not_taken: remaining,
        not_read: None,
    })
}

/// Returns the same for a server of which nobody asked anything. Nothing is changed. A server that does not answer is recorded as unknown.
pub(crate) fn as_it_is(dsn: &Dsn, runtime: &Runtime) -> PerformanceSchema {
    let asked = runtime.block_on(async {
        within(GOODBYE_TIME_MAX, dsn, READING, async {
            let mut conn = dsn.connect_without_schema().await?;
            let found = SetupTables::read(&mut conn).await;
            log_out(conn).await;
            found
        })
        .await
    });
    let why = match asked {
        Ok(found) => {
            let in_force = found.in_force();
            return PerformanceSchema {
                state: recorded_state(found.state()),
                words: format!("{AS_IT_WAS}: {}", describe_state(found.state(), &in_force)),
                in_force: Some(in_force),
                ..PerformanceSchema::default()
            };
        }
        Err(error) => error.to_string(),
    };
    PerformanceSchema {
        words: format!("{AS_IT_WAS}, which is not known: {why}"),
        not_read: Some(why),
        ..PerformanceSchema::default()
    }
}

fn recorded_state(state: State) -> PfsState {
    match state {
        State::CompiledOut => PfsState::CompiledOut,
        State::Off => PfsState::Off,
        State::On => PfsState::On,
    }
}

/// "on, 320 of 900 instruments, statements timed".
fn describe_state(state: State, in_force: &EffectiveSetup) -> String {
    match state {
        State::CompiledOut => return "the server was built without it".to_string(),
        State::Off => return "off".to_string(),
        State::On => {}
    }
    let mut words = format!(
        "on, {} of {} instruments, {}",
        in_force.enabled,
        in_force.instruments,
        describe_timed(in_force)
    );
    // MySQL 5.5 has a consumer for each summary, and none for all.
    let counts = |name: &String| name == "global_instrumentation" || name.contains("_summary_");
    if in_force.instruments > 0 && !in_force.consumers.iter().any(counts) {
        words += ", and no consumer on, so that nothing is counted";
    }
    words
}

/// Which classes of events are timed: "waits and some stages timed".
fn describe_timed(in_force: &EffectiveSetup) -> String {
    let describe_class = |class: &EffectiveClass| {
        let plural = match class.class.as_str() {
            "idle" => "idle waits".to_string(),
            name => format!("{name}s"),
        };
        match class.timed {
            0 => None,
            timed if timed < class.enabled => Some(format!("some {plural}")),
            _ => Some(plural),
        }
    };
    let names: Vec<String> = in_force.classes.iter().filter_map(describe_class).collect();
    match names.split_last() {
        None => "none timed".to_string(),
        Some((last, [])) => format!("{last} timed"),
        Some((last, others)) => format!("{} and {last} timed", others.join(", ")),
    }
}

/// Puts back what runs that are over have left changed on this server. Returns one sentence per change.
pub(crate) async fn undo_pending(conn: &mut Conn) -> Result<Vec<String>, Error> {
    let mut notes = Vec::new();
    for mut pending in knobs::pending_undo(conn).await? {
        for undone in pending.undo_all(conn).await? {
            notes.push(describe_undone(&undone));
        }
    }
    Ok(notes)
}

/// Puts back what runs that were ended by force have left changed, for `whyso server undo`. Returns one sentence per change.
///
/// # Errors
/// The server can't be reached, or does not take it.
pub fn undo(dsn: &str, ask_password: &AskPassword) -> Result<Vec<String>, Error> {
    let mut dsn = login::neutral(dsn)?;
    runtime()?.block_on(async {
        let mut conn = login::log_in(&mut dsn, ask_password).await?;
        let notes = answered(&dsn, "putting settings back", undo_pending(&mut conn)).await;
        log_out(conn).await;
        notes
    })
}

/// Returns what `--pfs` would do: start options and SQL, one per line. A throw-away server is started for it, and removed.
///
/// # Errors
/// The server can't be reached or started, or can't do this.
pub fn pfs_dry_run(
    wanted: &PfsRequest,
    server: &ServerPlan,
    ask_password: &AskPassword,
) -> Result<String, Error> {
    wanted.check()?;
    runtime()?.block_on(async {
        let (lines, changes) = match server {
            ServerPlan::Dsn { dsn, .. } => {
                let mut dsn = login::neutral(dsn)?;
                let mut conn = login::log_in(&mut dsn, ask_password).await?;
                let found = answered(&dsn, READING, SetupTables::read(&mut conn)).await?;
                log_out(conn).await;
                (Vec::new(), wanted.changes(&found)?)
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
                let changes = changes_on(wanted, &server).await;
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

async fn changes_on(wanted: &PfsRequest, server: &ThrowAway) -> Result<Vec<SetupChange>, Error> {
    let dsn = server.dsn();
    let mut conn = dsn.connect_without_schema().await?;
    let found = answered(&dsn, READING, SetupTables::read(&mut conn)).await?;
    log_out(conn).await;
    Ok(wanted.changes(&found)?)
}

/// Checks a preset against the actions of a run.
///
/// # Errors
/// The preset is not possible, or a restart among the actions would lose it.
pub(crate) fn check(preset: Option<&PfsRequest>, actions: &[Action]) -> Result<(), Error> {
    let Some(wanted) = preset else { return Ok(()) };
    wanted.check()?;
    let restarts = actions.iter().any(|action| matches!(action.what, ActionKind::Restart { .. }));
    if restarts && wanted.is_lost_at_restart() {
        return Err(Error::Plan(format!(
            "--pfs {} is set on the running server, which forgets it at its restart: leave out --at … restart or --pfs",
            wanted.preset
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_force(classes: &[(&str, usize, usize)], consumers: &[&str]) -> EffectiveSetup {
        let class = |(class, enabled, timed): &(&str, usize, usize)| EffectiveClass {
            class: class.to_string(),
            instruments: 100,
            enabled: *enabled,
            timed: *timed,
        };
        EffectiveSetup {
            instruments: 100 * classes.len(),
            enabled: classes.iter().map(|(_, enabled, _)| enabled).sum(),
            classes: classes.iter().map(class).collect(),
            consumers: consumers.iter().map(|name| name.to_string()).collect(),
            ..EffectiveSetup::default()
        }
    }

    #[test]
    fn the_state_is_shown_with_what_is_timed_of_it() {
        let on = |classes: &[(&str, usize, usize)]| {
            describe_state(State::On, &in_force(classes, &["global_instrumentation"]))
        };
        assert_eq!(
            on(&[("idle", 1, 1), ("stage", 9, 4), ("wait", 50, 50), ("memory", 9, 0)]),
            "on, 69 of 400 instruments, idle waits, some stages and waits timed"
        );
        assert_eq!(
            on(&[("statement", 20, 20), ("wait", 0, 0)]),
            "on, 20 of 200 instruments, statements timed"
        );
        assert_eq!(
            describe_state(State::On, &in_force(&[("wait", 3, 0)], &["statements_digest"])),
            "on, 3 of 100 instruments, none timed, and no consumer on, so that nothing is counted"
        );
        assert_eq!(
            describe_state(State::On, &in_force(&[("wait", 3, 3)], &["events_waits_summary_by_event_name"])),
            "on, 3 of 100 instruments, waits timed"
        );
        assert_eq!(describe_state(State::Off, &EffectiveSetup::default()), "off");
    }
}
