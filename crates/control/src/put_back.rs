//! Puts a server back as it was.

use std::sync::Arc;

use tokio::time::timeout;
use whyso_server::Dsn;
use whyso_server::answers::{log_out, within};
use whyso_server::knobs::{Undo, Undone};

use crate::progress::{Listener, News};
use crate::runtime::GOODBYE_TIME_MAX;
use crate::server_under_test::ServerUnderTest;

/// Puts settings back and removes the throw-away server. Returns whether all settings are as they were.
pub(crate) async fn put_everything_back(tested: ServerUnderTest, listener: &dyn Listener) -> bool {
    listener.hear(News::Step("putting everything back"));
    let is_back = put_undo_back(&tested, listener).await;
    let Some(server) = tested.throw_away.and_then(Arc::into_inner) else { return is_back };
    if let Err(error) = server.into_inner().stop().await {
        listener.hear(News::Warning(&format!("the server did not stop properly: {error}")));
    }
    is_back
}

async fn put_undo_back(tested: &ServerUnderTest, listener: &dyn Listener) -> bool {
    // An action of the run may hold it while the server does not answer.
    match timeout(GOODBYE_TIME_MAX, tested.undo.lock()).await {
        Ok(mut undo) => put_settings_back(&tested.dsn, &mut undo, listener).await,
        Err(_) => {
            warn_not_put_back("an action of the run has not ended", listener);
            false
        }
    }
}

fn is_left_alone(undone: &Undone) -> bool {
    matches!(undone, Undone::LeftAlone { .. } | Undone::SetupPutBack { left_alone: 1.., .. })
}

/// Puts settings back. Warns of what fails, which stays in the journal. Returns whether all are as they were.
pub(crate) async fn put_settings_back(dsn: &Dsn, undo: &mut Undo, listener: &dyn Listener) -> bool {
    if undo.is_empty() {
        return true;
    }
    let undone = within(GOODBYE_TIME_MAX, dsn, "putting settings back", async {
        let mut conn = dsn.connect_without_schema().await?;
        let undone = undo.undo_all(&mut conn).await;
        log_out(conn).await;
        undone
    });
    match undone.await {
        Ok(undone) => {
            for undone in undone.iter().filter(|undone| is_left_alone(undone)) {
                listener.hear(News::Warning(&describe_undone(undone)));
            }
            true
        }
        Err(error) => {
            warn_not_put_back(&error.to_string(), listener);
            false
        }
    }
}

fn warn_not_put_back(why: &str, listener: &dyn Listener) {
    listener.hear(News::Warning(&format!(
        "settings could not be put back ({why}): the next run on this server puts them back"
    )));
}

/// Returns what happened to a change, as text for people.
pub(crate) fn describe_undone(undone: &Undone) -> String {
    match undone {
        Undone::PutBack(change) => format!("{} is {} again", change.name, change.before),
        Undone::HandedOver(change) => format!(
            "{} stays: another run of whyso has set it meanwhile, and puts {} back when it ends",
            change.name, change.before
        ),
        Undone::LeftAlone { change, now } => {
            format!("{} was left at {now}, which somebody else set since", change.name)
        }
        Undone::Forgotten(change) => {
            format!("the server was restarted since and has forgotten {}", change.name)
        }
        Undone::SetupPutBack { table, left_alone: 0 } => {
            format!("performance_schema.{table} is as it was")
        }
        Undone::SetupPutBack { table, left_alone } => format!(
            "performance_schema.{table} is as it was, except for {left_alone} rows, which somebody else set since"
        ),
        Undone::SetupForgotten { table } => {
            format!("the server was restarted since and has forgotten what performance_schema.{table} was")
        }
    }
}
