//! whyso's own statements: how often each was sent on the connections of one watching. A view of the server's statements can so leave
//! them out.
//!
//! A server's digests add up executions by schema and text, of all clients. Samplers' connections have a default schema that clients rarely have
//! ([`SCHEMA`]), so their statements mostly have digests of their own. Where a client has sent the same text in the same schema, the counts here show
//! how many executions were whyso's.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mysql_async::prelude::{FromRow, Queryable};
use mysql_async::{Conn, Error, QueryResult, TextProtocol};

/// The default schema of samplers' connections. Every server has it, and every account may use it.
pub(crate) const SCHEMA: &str = "information_schema";
/// What the driver asks when it has connected; see `Conn::read_settings` of mysql_async.
const ON_CONNECT: &str = "SELECT @@max_allowed_packet,@@wait_timeout";
/// A digest whose text the server cut must have this many words, to count as the beginning of a statement.
const WORDS_OF_BEGINNING_MIN: usize = 8;

/// Keywords that mean the same to a server, which writes one of them in digests: the one that stands for both here comes last.
const SYNONYMS: [(&str, &str); 12] = [
    ("character", "char"),
    ("current_timestamp", "now"),
    ("fields", "columns"),
    ("integer", "int"),
    ("localtime", "now"),
    ("localtimestamp", "now"),
    ("mid", "substring"),
    ("schema", "database"),
    ("schemas", "databases"),
    ("session_user", "user"),
    ("substr", "substring"),
    ("system_user", "user"),
];

/// How often a statement was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SentStatement {
    /// Executions that began: the server has counted no more.
    pub(crate) begun: u64,
    /// Executions that are certainly over: the server has counted no less.
    pub(crate) ended: u64,
}

/// The statements that were sent, by their words.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentStatements(HashMap<String, SentStatement>);

impl SentStatements {
    /// How often the statements of a digest were sent.
    pub(crate) fn of(&self, digest: &Digest) -> SentStatement {
        match digest {
            Digest::Whole(words) => self.0.get(words).copied().unwrap_or_default(),
            Digest::Beginning(begin) => {
                let found = self.0.iter().filter(|(words, _)| words.starts_with(begin.as_str()));
                found.fold(SentStatement::default(), |sum, (_, statement)| SentStatement {
                    begun: sum.begun + statement.begun,
                    ended: sum.ended + statement.ended,
                })
            }
        }
    }
}

/// The statements that all samplers' connections to one server have sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnStatements(Arc<Mutex<SentStatements>>);

impl OwnStatements {
    /// Counts an execution that begins. Returns the statement's words.
    pub(crate) fn begin(&self, statement: &str) -> String {
        let words = words(statement);
        self.locked().0.entry(words.clone()).or_default().begun += 1;
        words
    }

    pub(crate) fn end(&self, words: &str) {
        if let Some(sent) = self.locked().0.get_mut(words) {
            sent.ended += 1;
        }
    }

    /// What was sent up to now.
    pub(crate) fn sent(&self) -> SentStatements {
        self.locked().clone()
    }

    fn locked(&self) -> MutexGuard<'_, SentStatements> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Statements that are whyso's own and are under way on a connection that is no sampler's; over when this is dropped.
#[must_use = "it is over when it is dropped"]
#[derive(Debug)]
pub struct OwnExecution {
    statements: OwnStatements,
    words: Vec<String>,
}

impl OwnExecution {
    /// `schema`: the default schema of the connection; the statements count with samplers' ones only where they have the same.
    pub(crate) fn begin(statements: &OwnStatements, schema: &str, sent: &[&str]) -> OwnExecution {
        let sent = if schema == SCHEMA { sent } else { &[] };
        // Of no connection without statements.
        let on_connect = sent.first().map(|_| ON_CONNECT);
        let sent = on_connect.into_iter().chain(sent.iter().copied());
        let words = sent.map(|statement| statements.begin(statement)).collect();
        OwnExecution { statements: statements.clone(), words }
    }
}

impl Drop for OwnExecution {
    fn drop(&mut self) {
        self.words.iter().for_each(|words| self.statements.end(words));
    }
}

/// The text of a server's digest, as far as statements are compared by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Digest {
    Whole(String),
    Beginning(String),
}

impl Digest {
    /// `is_cut`: the text is not whole. `None` where too little is left of it.
    pub(crate) fn new(text: &str, is_cut: bool) -> Option<Digest> {
        let server_cut = text.trim_end().strip_suffix("...");
        // The last word may be cut, too.
        let Some(begin) = server_cut.or(is_cut.then_some(text)) else {
            return Some(Digest::Whole(words(text)));
        };
        let words = words(begin);
        let (whole, _) = words.rsplit_once(' ')?;
        let is_long = whole.split(' ').count() >= WORDS_OF_BEGINNING_MIN;
        is_long.then(|| Digest::Beginning(format!("{whole} ")))
    }
}

/// What a statement and its digest have in common: names and keywords in lower case. Servers differ in how they write all else: literals, lists of
/// them, blanks, quotes and comments. MariaDB's bound for one statement, `SET STATEMENT … FOR`, is in the digest where MariaDB reads it, and is left out.
fn words(statement: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut rest = statement;
    while let Some(first) = rest.chars().next() {
        let is_of_word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '$';
        let length = match first {
            '`' => rest[1..].find('`').map_or(rest.len(), |end| end + 2),
            '\'' | '"' => quoted_length(rest, first),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            _ if is_of_word(first) => rest.find(|letter| !is_of_word(letter)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        let is_name = first == '`' || (is_of_word(first) && !first.is_ascii_digit());
        // NULL is a literal in most places.
        if is_name && !token.eq_ignore_ascii_case("null") {
            let word = token.trim_matches('`').to_lowercase();
            // Units of time, such as SQL_TSI_SECOND for SECOND.
            let word = word.strip_prefix("sql_tsi_").map_or(word.clone(), str::to_string);
            let same = SYNONYMS.iter().find(|(other, _)| *other == word);
            words.push(same.map_or(word, |(_, same)| same.to_string()));
        }
        rest = after;
    }
    let is_bounded = words.first().is_some_and(|word| word == "set")
        && words.get(1).is_some_and(|word| word == "statement");
    let bound = if is_bounded { words.iter().position(|word| word == "for") } else { None };
    words.split_off(bound.map_or(0, |place| place + 1)).join(" ")
}

/// The length of a literal in bytes, with its quotes.
fn quoted_length(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if letter == quote => return at + letter.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// A connection to the server under test that counts the statements it sends.
pub(crate) struct ControlConnection<'a> {
    conn: &'a mut Conn,
    /// `None`: nobody asks how often they were sent.
    own: Option<&'a OwnStatements>,
    /// The words of a statement that the server answers, until its answer was read.
    answered: Option<String>,
}

impl<'a> ControlConnection<'a> {
    pub(crate) fn new(conn: &'a mut Conn, own: &'a OwnStatements) -> ControlConnection<'a> {
        ControlConnection { conn, own: Some(own), answered: None }
    }

    pub(crate) fn uncounted(conn: &'a mut Conn) -> ControlConnection<'a> {
        ControlConnection { conn, own: None, answered: None }
    }

    /// Connects, and counts what the driver asks by itself.
    ///
    /// # Errors
    /// No connection can be made.
    pub(crate) async fn connect(opts: mysql_async::Opts, own: &OwnStatements) -> Result<Conn, Error> {
        let words = own.begin(ON_CONNECT);
        let conn = whyso_connect::connect(opts).await?;
        own.end(&words);
        Ok(conn)
    }

    /// The server's number of it.
    pub(crate) fn id(&self) -> u32 {
        self.conn.id()
    }

    /// All that was sent is answered, and every answer was read.
    pub(crate) fn settle(&mut self) {
        if let (Some(own), Some(answered)) = (self.own, self.answered.take()) {
            own.end(&answered);
        }
    }

    fn begin(&mut self, statement: &str) -> Option<String> {
        self.settle();
        self.own.map(|own| own.begin(statement))
    }

    pub(crate) async fn query<T, Q>(&mut self, statement: Q) -> Result<Vec<T>, Error>
    where
        T: FromRow + Send + 'static,
        Q: AsRef<str>,
    {
        let begun = self.begin(statement.as_ref());
        let outcome = self.conn.query(statement.as_ref()).await;
        self.answered = begun.filter(|_| is_answer(&outcome));
        outcome
    }

    pub(crate) async fn query_first<T, Q>(&mut self, statement: Q) -> Result<Option<T>, Error>
    where
        T: FromRow + Send + 'static,
        Q: AsRef<str>,
    {
        let begun = self.begin(statement.as_ref());
        let outcome = self.conn.query_first(statement.as_ref()).await;
        self.answered = begun.filter(|_| is_answer(&outcome));
        outcome
    }

    pub(crate) async fn query_drop<Q: AsRef<str>>(&mut self, statement: Q) -> Result<(), Error> {
        let begun = self.begin(statement.as_ref());
        let outcome = self.conn.query_drop(statement.as_ref()).await;
        self.answered = begun.filter(|_| is_answer(&outcome));
        outcome
    }

    pub(crate) async fn query_iter<Q: AsRef<str>>(
        &mut self,
        statement: Q,
    ) -> Result<QueryResult<'_, 'static, TextProtocol>, Error> {
        let begun = self.begin(statement.as_ref());
        let outcome = self.conn.query_iter(statement.as_ref().to_string()).await;
        self.answered = begun.filter(|_| is_answer(&outcome));
        outcome
    }
}

/// Whether the server answered, also if it did with an error.
fn is_answer<T>(outcome: &Result<T, Error>) -> bool {
    matches!(outcome, Ok(_) | Err(Error::Server(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_has_the_words_of_its_digest() {
        let sent = crate::sql::bounded_select(
            "CONCAT_WS(':', COALESCE(SCHEMA_NAME, ''), LEFT(DIGEST, 32)), SUM_TIMER_WAIT FROM performance_schema.t \
             WHERE LAST_SEEN >= '2026-11-22 20:15:01' - INTERVAL 1 SECOND AND a IS NOT NULL AND b IN ('x', 'it''s', NULL) LIMIT 5000",
        );
        let tail = "CONCAT_WS ( ? , COALESCE ( SCHEMA_NAME , ? ) , LEFT ( `DIGEST` , ? ) ) , `SUM_TIMER_WAIT` FROM \
                    `performance_schema` . `t` WHERE `LAST_SEEN` >= ? - INTERVAL ? SECOND AND `a` IS NOT NULL AND `b` IN (...) LIMIT ?";
        let by_mariadb = format!("SET STATEMENT `max_statement_time` = ? FOR SELECT {tail}");
        let by_mysql = format!("SELECT /*+ MAX_EXECUTION_TIME (?) */ {tail}");
        assert_eq!(words(&sent), words(&by_mariadb));
        assert_eq!(words(&sent), words(&by_mysql));
        assert_ne!(words(&sent), words(&by_mysql.replace("`a`", "`c`")));
        assert_eq!(words("SET GLOBAL a = 1"), "set global a");
        assert_eq!(
            words("SELECT USER, CAST(a AS CHAR)"),
            words("SELECT SYSTEM_USER , CAST ( `a` AS CHARACTER )")
        );
    }

    #[test]
    fn what_the_recorder_executes_counts_with_the_samplers_in_their_schema_only() {
        assert_eq!(words("INTERVAL 1 SECOND"), words("INTERVAL ? SQL_TSI_SECOND"));
        let own = OwnStatements::default();
        let under_way = OwnExecution::begin(&own, SCHEMA, &["SHOW GLOBAL VARIABLES"]);
        let digest = Digest::new("SHOW GLOBAL VARIABLES", false).unwrap();
        assert_eq!(own.sent().of(&digest), SentStatement { begun: 1, ended: 0 });
        drop(under_way);
        assert_eq!(own.sent().of(&digest), SentStatement { begun: 1, ended: 1 });
        drop(OwnExecution::begin(&own, "shop", &["SHOW GLOBAL VARIABLES"]));
        assert_eq!(own.sent().of(&digest), SentStatement { begun: 1, ended: 1 });
    }

    #[test]
    fn a_digest_that_was_cut_is_of_every_statement_that_begins_so() {
        let own = OwnStatements::default();
        let long = "SELECT a, b, c, d, e, f, g, h, i FROM t WHERE x = ";
        let first = own.begin(&format!("{long}1"));
        own.begin(&format!("{long}y AND z"));
        own.end(&first);
        let cut = Digest::new("SELECT a , b , c , d , e , f , g , h , i FROM ...", false).unwrap();
        let sent = own.sent();
        assert_eq!(sent.of(&cut), SentStatement { begun: 2, ended: 1 });
        assert_eq!(sent.of(&Digest::new(&long[..40], true).unwrap()), SentStatement { begun: 2, ended: 1 });
        assert_eq!(Digest::new("SELECT a , b ...", false), None);
        assert_eq!(sent.of(&Digest::new("SELECT `a`", false).unwrap()), SentStatement::default());
    }

    #[test]
    fn any_text_has_words() {
        for text in ["", "'", "`", "/*", "'\\", "``", "é `", "1e5", "\"a\\\"b\" c"] {
            assert!(words(text).len() <= text.len(), "{text:?}");
        }
    }
}
