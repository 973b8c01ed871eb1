//! Leaving a server as it was found, whatever came before.

use std::sync::Arc;

use tokio::time::timeout;
use whyso_server::Dsn;
use whyso_server::answers::{log_out, within};
use whyso_server::knobs::{Undo, Undone};

use crate::prepare::{Tested, undone_words};
use crate::progress::{Listener, News};
use crate::run::GOODBYE_TIME_MAX;

/// Puts settings back and removes the throw-away server.
pub(crate) async fn leave(tested: Tested, listener: &dyn Listener) {
    listener.hear(News::Step("putting everything back"));
    put_back(&tested, listener).await;
    let Some(server) = tested.throw_away.and_then(Arc::into_inner) else { return };
    if let Err(error) = server.into_inner().stop().await {
        listener.hear(News::Warning(&format!("the server did not stop properly: {error}")));
    }
}

async fn put_back(tested: &Tested, listener: &dyn Listener) {
    // An action of the run may hold it while the server does not answer.
    match timeout(GOODBYE_TIME_MAX, tested.undo.lock()).await {
        Ok(mut undo) => put_back_on(&tested.dsn, &mut undo, listener).await,
        Err(_) => not_put_back("an action of the run has not ended", listener),
    }
}

fn left_alone(undone: &Undone) -> bool {
    matches!(undone, Undone::LeftAlone { .. } | Undone::SetupPutBack { left_alone: 1.., .. })
}

/// Puts settings back; what fails is told, and stays in the journal.
pub(crate) async fn put_back_on(dsn: &Dsn, undo: &mut Undo, listener: &dyn Listener) {
    if undo.is_empty() {
        return;
    }
    let undone = within(GOODBYE_TIME_MAX, dsn, "putting settings back", async {
        let mut conn = dsn.connect_without_schema().await?;
        let undone = undo.undo_all(&mut conn).await;
        log_out(conn).await;
        undone
    });
    match undone.await {
        Ok(undone) => {
            for undone in undone.iter().filter(|undone| left_alone(undone)) {
                listener.hear(News::Warning(&undone_words(undone)));
            }
        }
        Err(error) => not_put_back(&error.to_string(), listener),
    }
}

fn not_put_back(why: &str, listener: &dyn Listener) {
    listener.hear(News::Warning(&format!(
        "settings could not be put back ({why}): the next run on this server puts them back"
    )));
}
