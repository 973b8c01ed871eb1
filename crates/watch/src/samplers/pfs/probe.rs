//! What a server's Performance Schema has, and what it counts.

use std::collections::{HashMap, HashSet};

use mysql_async::Error;
use whyso_model::{Missing, NotMeasured};

use crate::own_statements::ControlConnection;
use crate::sql::is_not_for_us;

/// Error of a server that lacks a variable.
const NO_SUCH_VARIABLE: u16 = 1193;

/// Tables and their columns, in upper case; nothing where the Performance Schema is off or absent.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    columns: HashMap<String, HashSet<String>>,
    /// What is missing, in plain words.
    pub(crate) absent: Vec<NotMeasured>,
}

impl Tables {
    pub(crate) fn has(&self, table: &str) -> bool {
        self.columns.contains_key(table)
    }

    /// Whether a column of that name is there; true for anything that is more than one name.
    pub(crate) fn has_column(&self, table: &str, sql: &str) -> bool {
        let is_a_name = sql.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        !is_a_name || self.columns.get(table).is_some_and(|columns| columns.contains(sql))
    }
}

const COUNTS: &str = "the Performance Schema's counts, such as waits for one mutex";

/// Asks what there is.
pub(crate) async fn tables(conn: &mut ControlConnection<'_>) -> Result<Tables, Error> {
    let mut tables = Tables::default();
    let is_on = match conn.query_first::<Option<String>, _>("SELECT @@performance_schema").await {
        Ok(is_on) => is_on.flatten().is_some_and(|is_on| is_on == "1"),
        Err(Error::Server(error)) if error.code == NO_SUCH_VARIABLE => {
            tables.absent.push(NotMeasured::new(
                Missing::PerformanceSchema,
                COUNTS,
                "this server was built without it",
            ));
            return Ok(tables);
        }
        Err(error) => return Err(error),
    };
    if !is_on {
        tables.absent.push(NotMeasured::new(
            Missing::PerformanceSchema,
            COUNTS,
            "it is off; start the server with performance_schema=ON",
        ));
        return Ok(tables);
    }
    let question = "SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS \
                    WHERE TABLE_SCHEMA = 'performance_schema'";
    for (table, column) in conn.query::<(String, String), _>(question).await? {
        let columns = tables.columns.entry(table.to_ascii_lowercase()).or_default();
        columns.insert(column.to_ascii_uppercase());
    }
    tables.absent.extend(instruments(conn).await?);
    tables.absent.extend(consumers(conn).await?);
    Ok(tables)
}

/// A sentence about what each session does right now, where the server keeps no current events.
async fn consumers(conn: &mut ControlConnection<'_>) -> Result<Option<NotMeasured>, Error> {
    let question = "SELECT NAME FROM performance_schema.setup_consumers WHERE ENABLED = 'NO' \
                    AND NAME IN ('events_waits_current', 'events_stages_current')";
    match conn.query::<String, _>(question).await {
        Ok(off) if off.is_empty() => Ok(None),
        Ok(off) => {
            let what = off.iter().map(|name| if name.contains("waits") { "wait" } else { "stage" });
            let reason = format!(
                "the Performance Schema's {} off; UPDATE performance_schema.setup_consumers SET ENABLED = 'YES' \
                 WHERE NAME IN ('{}')",
                match off.as_slice() {
                    [name] => format!("consumer {name} is"),
                    several => format!("consumers {} are", several.join(" and ")),
                },
                off.join("', '")
            );
            let what = format!("the {} of each session", what.collect::<Vec<_>>().join(" and the "));
            Ok(Some(NotMeasured::new(Missing::SessionEvents, what, reason)))
        }
        Err(Error::Server(error)) if is_not_for_us(error.code) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A sentence about waits that the server could count, and does not.
async fn instruments(conn: &mut ControlConnection<'_>) -> Result<Option<NotMeasured>, Error> {
    let missing =
        |what: &str, reason: &str| Ok(Some(NotMeasured::new(Missing::InstrumentWaits, what, reason)));
    let question = "SELECT COUNT(*), CAST(COALESCE(SUM(TIMED = 'YES'), 0) AS UNSIGNED) \
                    FROM performance_schema.setup_instruments WHERE NAME LIKE 'wait/synch/%' AND ENABLED = 'YES'";
    match conn.query_first::<(u64, u64), _>(question).await {
        Ok(Some((1.., 1..))) => Ok(None),
        Ok(Some((1.., 0))) => missing(
            "the time of waits by instrument",
            "the Performance Schema's wait/synch instruments are not timed; UPDATE performance_schema.setup_instruments \
             SET TIMED = 'YES' WHERE NAME LIKE 'wait/synch/%'",
        ),
        Ok(_) => missing(
            "waits by instrument, such as those for one mutex",
            "the Performance Schema's wait/synch instruments are off; UPDATE performance_schema.setup_instruments \
             SET ENABLED = 'YES', TIMED = 'YES' WHERE NAME LIKE 'wait/synch/%'",
        ),
        Err(Error::Server(error)) if is_not_for_us(error.code) => missing(
            "waits by instrument",
            &format!("{} (error {}); grant SELECT on performance_schema.*", error.message, error.code),
        ),
        Err(error) => Err(error),
    }
}
