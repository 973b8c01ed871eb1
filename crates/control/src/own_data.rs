//! Data that a workload brings along or asks for: the tables of its setup, the values of its dictionaries.

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use whyso_server::Dsn;
use whyso_server::answers::{FILL_TIME_MAX, log_out, within};
use whyso_workload::{DictionarySource, Setup, Workload};

use crate::Error;
use crate::progress::{Listener, News};
use crate::server_under_test::ServerUnderTest;

/// Makes the tables that the workload brings along, where its own check finds them missing. They have the server's table engine, unless the
/// workload names another one.
pub(crate) async fn set_up(
    server: &ServerUnderTest,
    workload: &Workload,
    listener: &dyn Listener,
) -> Result<(), Error> {
    let Some(setup) = workload.requirements().setup else { return Ok(()) };
    let ServerUnderTest { dsn, table_engine, consented, .. } = server;
    let mut conn = dsn.connect().await?;
    let doing = format!("looking for the tables of {}", workload.name);
    if !is_there(dsn, &doing, &mut conn, setup).await? {
        if *consented {
            return Err(Error::Failed(format!(
                "--allow-writes {} uses the data that are there, and those of {} are not: name another schema, which \
                 whyso fills itself",
                dsn.schema, workload.name
            )));
        }
        listener.hear(News::Step(&format!("making the tables of {}", workload.name)));
        let of_session = format!("SET SESSION default_storage_engine = {table_engine}");
        for statement in std::iter::once(&of_session).chain(&setup.statements) {
            let execute = async {
                conn.query_drop(statement).await.map_err(|error| {
                    let name = &workload.name;
                    Error::Failed(format!("the server refused to make the tables of {name}: {error}"))
                })
            };
            within(FILL_TIME_MAX, dsn, &format!("making the tables of {}", workload.name), execute).await?;
        }
        if !is_there(dsn, &doing, &mut conn, setup).await? {
            return Err(Error::Failed(format!(
                "the tables of {} were made, and are not what they should be: drop the schema {} and try again",
                workload.name, dsn.schema
            )));
        }
    }
    log_out(conn).await;
    Ok(())
}

async fn is_there(dsn: &Dsn, doing: &str, conn: &mut Conn, setup: &Setup) -> Result<bool, Error> {
    let found = async { Ok::<_, Error>(conn.query_first::<i64, _>(&setup.check).await) };
    // A check may count the rows of large tables.
    Ok(matches!(within(FILL_TIME_MAX, dsn, doing, found).await?, Ok(Some(1))))
}

/// Fills the workload's dictionaries: from files, or by asking the server.
pub(crate) async fn fill_dictionaries(dsn: &Dsn, workload: &mut Workload) -> Result<(), Error> {
    let wanted: Vec<(String, DictionarySource)> = workload
        .dictionaries
        .iter()
        .map(|dictionary| (dictionary.name.clone(), dictionary.source.clone()))
        .collect();
    for (name, source) in wanted {
        let values = match &source {
            DictionarySource::File(path) => lines_of(&name, path)?,
            DictionarySource::Query(sql) => {
                let doing = format!("filling the dictionary {name}");
                within(FILL_TIME_MAX, dsn, &doing, rows_of(dsn, &name, sql)).await?
            }
        };
        workload.fill(&name, values)?;
    }
    Ok(())
}

fn lines_of(name: &str, path: &str) -> Result<Vec<Vec<u8>>, Error> {
    let bytes = std::fs::read(path)
        .map_err(|error| Error::Plan(format!("the dictionary {name} can't be read from {path}: {error}")))?;
    let lines =
        bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line).to_vec());
    let mut lines: Vec<Vec<u8>> = lines.collect();
    // The last line's end is none of a line after it.
    if lines.last().is_some_and(Vec::is_empty) {
        lines.pop();
    }
    Ok(lines)
}

async fn rows_of(dsn: &Dsn, name: &str, sql: &str) -> Result<Vec<Vec<u8>>, Error> {
    let mut conn = dsn.connect().await?;
    let rows: Vec<mysql_async::Row> = conn.query(sql).await.map_err(|error| {
        Error::Failed(format!("the server refused the query of the dictionary {name} ({sql}): {error}"))
    })?;
    log_out(conn).await;
    let first_column = |row: &mysql_async::Row| match row.as_ref(0) {
        Some(mysql_async::Value::Bytes(bytes)) => Some(bytes.clone()),
        // A NULL is no value that a parameter could have.
        Some(mysql_async::Value::NULL) | None => None,
        Some(other) => Some(other.as_sql(true).into_bytes()),
    };
    Ok(rows.iter().filter_map(first_column).collect())
}
