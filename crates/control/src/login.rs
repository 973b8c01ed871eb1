//! Logging in to a server whose schema does not matter, asking for the password once.

use whyso_server::Dsn;

use crate::Error;

/// Asks the user for a password. The text names the account. Returns `None` where nobody can be asked.
pub type AskPassword = dyn Fn(&str) -> Option<String> + Sync;

/// A schema that every server has, and in which nothing is ever written.
pub(crate) const NEUTRAL_SCHEMA: &str = "information_schema";

/// `text` as a DSN; where it names no schema, one that nobody writes.
pub(crate) fn neutral(text: &str) -> Result<Dsn, Error> {
    let mut dsn = Dsn::resolve(text)?;
    if !dsn.schema_given {
        dsn.schema = NEUTRAL_SCHEMA.to_string();
    }
    Ok(dsn)
}

/// A connection; `dsn` has the password afterwards, so that it connects again without a question.
pub(crate) async fn log_in(
    dsn: &mut Dsn,
    ask_password: &AskPassword,
) -> whyso_server::Result<mysql_async::Conn> {
    let mut prompt = |question: &str| {
        ask_password(question)
            .ok_or_else(|| std::io::Error::other("there is no terminal to ask at: set MYSQL_PWD"))
    };
    dsn.log_in(&mut prompt).await
}

/// Returns the error for a schema that a DSN names and that does not exist. `why`: why none is created.
pub(crate) fn no_such_schema(dsn: &Dsn, why: &str) -> Error {
    Error::Plan(format!(
        "there is no schema {} on {} that this user may see, and {why}: name another in the DSN, or none",
        dsn.schema,
        dsn.endpoint()
    ))
}
