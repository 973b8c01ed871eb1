//! Where this server's build keeps what it counts of a command: asked of the server by commands of our own whose counts are known.
//!
//! They touch no table: rows are made by a UNION, which every version has.

use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use mysql_async::{Error, Opts, OptsBuilder};
use whyso_clock::monotonic_ns;
use whyso_server::answers::log_out;
use whyso_trace::places::{ExaminedRows, KnownCommand};
use whyso_trace::{Command, Places, SqlTrace};

/// A calibration that takes longer is given up.
const TIME_MAX: Duration = Duration::from_secs(5);
/// Bound on the wait for one command.
const COMMAND_TIME_MAX: Duration = Duration::from_secs(1);
const READ_INTERVAL: Duration = Duration::from_micros(500);
/// Connections, so that a connection's number differs from what is the same in each.
const CONNECTIONS: usize = 2;
/// Rows of the series that differ only in the value of a literal.
const SERIES_ROWS: u64 = 60;

/// A statement, and what it counts.
struct Round {
    sql: String,
    sent: u64,
    examined: ExaminedRows,
    affected: Option<i64>,
    fails: bool,
}

/// `rows` rows with the numbers from 1 on.
fn union(rows: u64) -> String {
    let rows: Vec<String> =
        (1..=rows).map(|row| if row == 1 { "1 AS a".to_string() } else { row.to_string() }).collect();
    format!("SELECT {}", rows.join(" UNION ALL SELECT "))
}

fn rounds() -> Vec<Round> {
    let sent = |rows: u64| Round {
        sql: format!("SELECT a FROM ({}) AS t", union(rows)),
        sent: rows,
        examined: ExaminedRows::Scaled { series: 0, rows },
        affected: Some(-1),
        fails: false,
    };
    let summed = |rows: u64| Round {
        sql: format!("SELECT SUM(a) FROM ({}) AS t", union(rows)),
        sent: 1,
        examined: ExaminedRows::Scaled { series: 1, rows },
        affected: Some(-1),
        fails: false,
    };
    let limited = |rows: u64| Round {
        sql: format!("SELECT SUM(a) FROM (SELECT a FROM ({}) AS u LIMIT {rows}) AS t", union(SERIES_ROWS)),
        sent: 1,
        examined: ExaminedRows::Scaled { series: 2, rows },
        affected: Some(-1),
        fails: false,
    };
    let nothing = || Round {
        sql: "DO 0".to_string(),
        sent: 0,
        examined: ExaminedRows::AtMost(1),
        affected: Some(0),
        fails: false,
    };
    let failing = |sql: &str| Round {
        sql: sql.to_string(),
        examined: ExaminedRows::AtMost(0),
        affected: None,
        fails: true,
        ..nothing()
    };
    vec![
        sent(7),
        nothing(),
        summed(53),
        failing("SELECT whyso_calibrates"),
        limited(13),
        sent(19),
        summed(31),
        failing("SELECT 1 UNION SELECT 1, 2"),
        nothing(),
        limited(47),
        summed(11),
        failing("SELECT whyso calibrates this"),
        limited(29),
        sent(23),
        summed(3),
    ]
}

/// Why the places could not be found.
#[derive(Debug, thiserror::Error)]
pub(super) enum CalibrationError {
    #[error("no connection can be made: {0}")]
    Runtime(std::io::Error),
    #[error("the server cannot be understood: {0}")]
    Answer(whyso_connect::DriverPanic),
    #[error("the server did not answer within {} s", TIME_MAX.as_secs())]
    NoAnswer,
    #[error("the server cannot be asked: {0}")]
    Question(#[from] Error),
    #[error("the server answers {code} to: {sql}")]
    UnexpectedAnswer { code: u32, sql: String },
    #[error("the object of a connection could not be read")]
    NoObject,
    #[error("a command of whyso's own was not seen")]
    OwnCommandLost,
    #[error(transparent)]
    Trace(#[from] whyso_trace::Error),
}

/// Finds the places. `entered` receives every command that ends meanwhile.
///
/// # Errors
/// The server could not be asked, or its answers were unexpected.
pub(super) fn calibrate(
    trace: &mut SqlTrace,
    opts: &Opts,
    mut entered: impl FnMut(&Command<'_>),
) -> Result<(Places, Vec<String>), CalibrationError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(CalibrationError::Runtime)?;
    let opts: Opts = OptsBuilder::from_opts(opts.clone()).db_name(None::<String>).into();
    let commands = runtime.block_on(async {
        let work = async {
            let mut commands = Vec::new();
            for _ in 0..CONNECTIONS {
                commands.extend(of_a_connection(trace, &opts, &mut entered).await?);
            }
            Ok(commands)
        };
        match tokio::time::timeout(TIME_MAX, whyso_connect::caught(work)).await {
            Ok(Ok(commands)) => commands,
            Ok(Err(panic)) => Err(CalibrationError::Answer(panic)),
            Err(_) => Err(CalibrationError::NoAnswer),
        }
    });
    trace.copy_object(None);
    Ok(Places::of(&commands?))
}

async fn of_a_connection(
    trace: &mut SqlTrace,
    opts: &Opts,
    entered: &mut impl FnMut(&Command<'_>),
) -> Result<Vec<KnownCommand>, CalibrationError> {
    let mut conn = whyso_connect::connect(opts.clone()).await?;
    let marker = format!("DO 'whyso {} {}'", conn.id(), monotonic_ns());
    conn.query_drop(&marker).await?;
    let mut connection = None;
    wait_for_command(trace, &mut |command: &Command<'_>| {
        entered(command);
        let is_ours = command.text == Some(marker.as_bytes());
        if is_ours {
            connection = Some(command.connection);
        }
        is_ours
    })
    .await?;
    trace.copy_object(connection);
    let mut commands = Vec::new();
    for round in rounds() {
        let error = match conn.query_drop(&round.sql).await {
            Ok(()) => 0,
            Err(Error::Server(error)) => u32::from(error.code),
            Err(error) => return Err(error.into()),
        };
        if (error != 0) != round.fails {
            return Err(CalibrationError::UnexpectedAnswer { code: error, sql: round.sql });
        }
        let mut end_ns = 0;
        wait_for_command(trace, &mut |command: &Command<'_>| {
            entered(command);
            let is_ours =
                Some(command.connection) == connection && command.text == Some(cut(round.sql.as_bytes()));
            if is_ours {
                end_ns = command.end_ns;
            }
            is_ours
        })
        .await?;
        let copied = trace.copied()?;
        let (_, object) =
            copied.filter(|(copied_ns, _)| *copied_ns == end_ns).ok_or(CalibrationError::NoObject)?;
        commands.push(KnownCommand {
            object,
            connection_id: conn.id(),
            rows_sent: round.sent,
            rows_examined: round.examined,
            rows_affected: round.affected,
            error,
        });
    }
    // It is gone when the server likes; nothing waits for that.
    log_out(conn).await;
    Ok(commands)
}

/// Returns as much of a text as the tracer copies.
fn cut(text: &[u8]) -> &[u8] {
    &text[..text.len().min(whyso_trace::TEXT_BYTES_MAX)]
}

/// Reads commands until the one is found.
async fn wait_for_command(
    trace: &mut SqlTrace,
    is_it: &mut impl FnMut(&Command<'_>) -> bool,
) -> Result<(), CalibrationError> {
    let begin = Instant::now();
    let mut found = false;
    while !found {
        if begin.elapsed() > COMMAND_TIME_MAX {
            return Err(CalibrationError::OwnCommandLost);
        }
        trace.take(|command| found |= is_it(command))?;
        if !found {
            tokio::time::sleep(READ_INTERVAL).await;
        }
    }
    Ok(())
}
