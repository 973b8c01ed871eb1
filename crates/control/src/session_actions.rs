//! What a user may ask of a session of the server that is watched: its plan, and the end of its statement.

use std::path::PathBuf;

use whyso_clock::monotonic_ns;
use whyso_server::answers::{log_out, within};
use whyso_server::sessions::{Plan, Session};
use whyso_server::{Dsn, answers, sessions};
use whyso_watch::digest;

use crate::Error;
use crate::runtime::{GOODBYE_TIME_MAX, runtime};

/// Asks over connections of its own, so that no sampler waits for an answer.
#[derive(Clone, Debug)]
pub struct SessionActions {
    pub(crate) dsn: Dsn,
    /// The recording, which gets a note of what was ended.
    pub(crate) path: PathBuf,
}

impl SessionActions {
    /// The plan of a statement that some session executes within two seconds. `statement`: without its literals.
    ///
    /// # Errors
    /// Nobody executes it, it has no plan, or the server does not answer.
    pub fn explain(&self, statement: &str) -> Result<Plan, Error> {
        let wanted = without_marks(statement);
        let is_wanted = |session: &Session| without_marks(&digest(&session.statement)) == wanted;
        self.ask("asking for a plan", async |conn| sessions::explain(conn, &is_wanted).await)
    }

    /// Ends the statement that a connection executes, if it still is this one; `statement`: without its literals. The recording gets a
    /// note of it.
    ///
    /// # Errors
    /// It is another one by now, or the server refuses or does not answer.
    pub fn kill(&self, connection: u64, statement: &str) -> Result<(), Error> {
        let wanted = without_marks(statement);
        let is_wanted = |session: &Session| without_marks(&digest(&session.statement)) == wanted;
        let doing = "ending a statement";
        self.ask(doing, async |conn| sessions::kill_statement(conn, connection, &is_wanted).await)?;
        let note = format!("ended the statement of connection {connection}: {statement}");
        Ok(whyso_record::add_note(&self.path, monotonic_ns(), &note)?)
    }

    fn ask<T>(
        &self,
        doing: &str,
        question: impl AsyncFnOnce(&mut mysql_async::Conn) -> whyso_server::Result<T>,
    ) -> Result<T, Error> {
        let runtime = runtime()?;
        let asked: Result<T, Error> = runtime.block_on(async {
            let mut conn = self.dsn.connect_without_schema().await?;
            let answer = within(answers::time_max(&self.dsn), &self.dsn, doing, question(&mut conn)).await;
            log_out(conn).await;
            Ok(answer?)
        });
        runtime.shutdown_timeout(GOODBYE_TIME_MAX);
        asked
    }
}

/// Servers write digests each in their own way: blanks, backquotes and case are no difference.
fn without_marks(digest: &str) -> String {
    let letters = digest.chars().filter(|letter| !letter.is_whitespace() && *letter != '`');
    letters.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_of_two_writers_are_one() {
        let ours = digest("SELECT c FROM sbtest1 WHERE id=17");
        assert_eq!(without_marks(&ours), without_marks("SELECT `c` FROM `sbtest1` WHERE `id` = ?"));
        assert_ne!(without_marks(&ours), without_marks("SELECT `c` FROM `sbtest2` WHERE `id` = ?"));
    }
}
