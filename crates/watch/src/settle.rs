//! Whether the server still works off the load before: dirty pages, purge, pending writes.

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use crate::Error;
use crate::facts::answer;

/// What the server has still to do. `None` where it does not show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settling {
    /// Pages of the buffer pool that wait to be written.
    pub dirty_pages: Option<u64>,
    /// Pages of the buffer pool in all, to judge `dirty_pages` by.
    pub total_pages: Option<u64>,
    /// Old versions that wait to be purged, in undo logs (transactions).
    pub history_list_length: Option<u64>,
    /// Reads, writes and flushes of data and log that are under way.
    pub pending_flushes: Option<u64>,
    /// Redo log since the last checkpoint.
    pub checkpoint_age_bytes: Option<u64>,
}

const PENDING: [&str; 4] = [
    "innodb_data_pending_fsyncs",
    "innodb_data_pending_writes",
    "innodb_os_log_pending_fsyncs",
    "innodb_os_log_pending_writes",
];

/// Asks the server's status variables, and for what they lack INNODB_METRICS and then the text of
/// `SHOW ENGINE INNODB STATUS`. What the server refuses or does not know stays `None`.
///
/// # Errors
/// The server does not answer within ten seconds, or refuses even its status.
pub async fn dirty_and_purge(conn: &mut Conn) -> Result<Settling, Error> {
    const STATUS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN (\
         'Innodb_buffer_pool_pages_dirty', 'Innodb_buffer_pool_pages_total', \
         'Innodb_history_list_length', 'Innodb_checkpoint_age', \
         'Innodb_data_pending_fsyncs', 'Innodb_data_pending_writes', \
         'Innodb_os_log_pending_fsyncs', 'Innodb_os_log_pending_writes')";
    const METRICS: &str = "SELECT `COUNT` FROM information_schema.INNODB_METRICS \
         WHERE NAME = 'trx_rseg_history_len' AND TIME_ENABLED IS NOT NULL";
    const TEXT: &str = "SHOW ENGINE INNODB STATUS";
    let status: Vec<(String, String)> = answer(conn.query(STATUS)).await?;
    let mut settling = Settling::default();
    for (name, value) in &status {
        if let Ok(value) = value.parse::<u64>() {
            settling.take(&name.to_ascii_lowercase(), value);
        }
    }
    if settling.history_list_length.is_none()
        && let Ok(length) = refusable(answer(conn.query_first(METRICS)).await)?
    {
        settling.history_list_length = length;
    }
    if settling.history_list_length.is_none()
        && let Ok(Some((_, _, text))) =
            refusable(answer(conn.query_first::<(String, String, String), _>(TEXT)).await)?
    {
        settling.history_list_length = parse_history_list(&text);
    }
    Ok(settling)
}

/// A server's refusal is an answer; no answer is an error.
fn refusable<T>(outcome: Result<T, Error>) -> Result<Result<T, Error>, Error> {
    match outcome {
        Err(error @ Error::NoAnswer(_)) => Err(error),
        outcome => Ok(outcome),
    }
}

impl Settling {
    fn take(&mut self, name: &str, value: u64) {
        match name {
            "innodb_buffer_pool_pages_dirty" => self.dirty_pages = Some(value),
            "innodb_buffer_pool_pages_total" => self.total_pages = Some(value),
            "innodb_history_list_length" => self.history_list_length = Some(value),
            "innodb_checkpoint_age" => self.checkpoint_age_bytes = Some(value),
            _ if PENDING.contains(&name) => {
                self.pending_flushes = Some(self.pending_flushes.unwrap_or(0).saturating_add(value));
            }
            _ => {}
        }
    }
}

fn parse_history_list(text: &str) -> Option<u64> {
    for line in text.lines() {
        if let Some(length) = line.trim().strip_prefix("History list length ") {
            return crate::text::first_number(length);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_list_is_found_in_the_text() {
        let text = "---\nTRANSACTIONS\n---\nTrx id counter 15\nHistory list length 42\nLIST OF";
        assert_eq!(parse_history_list(text), Some(42));
        assert_eq!(parse_history_list("History list length x"), None);
    }

    #[test]
    fn pending_work_is_added_up() {
        let mut settling = Settling::default();
        settling.take("innodb_data_pending_fsyncs", 2);
        settling.take("innodb_os_log_pending_writes", 3);
        settling.take("innodb_buffer_pool_pages_dirty", 7);
        assert_eq!(settling.pending_flushes, Some(5));
        assert_eq!(settling.dirty_pages, Some(7));
        assert_eq!(settling.history_list_length, None);
    }
}
