//! Waiting until the work that the loading left behind is done: purge, and the writing of dirty pages.

use std::time::{Duration, Instant};

use mysql_async::Conn;
use whyso_watch::{Settling, dirty_and_purge};

use crate::Stop;

/// Bound on the wait. A server that has not settled by then is loaded as it is, and the report shows it.
pub(crate) const SETTLE_TIME_MAX: Duration = Duration::from_secs(15);
const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// A history list this short is what an idle server keeps.
const HISTORY_MAX: u64 = 50;

/// Waits until purge has caught up and dirty pages no longer fall. Returns `None` when the server has settled, else
/// what it was still doing.
pub(crate) async fn wait_until_settled(conn: &mut Conn, stop: &Stop) -> Option<String> {
    let begin = Instant::now();
    let mut before: Option<Settling> = None;
    let mut unsettled = None;
    while begin.elapsed() < SETTLE_TIME_MAX && !stop.is_asked() {
        let now = match dirty_and_purge(conn).await {
            Ok(now) => now,
            Err(error) => return Some(format!("purge and dirty pages can't be read ({error})")),
        };
        if let Some(before) = &before {
            unsettled = Some(still_going_on(before, &now)?);
        }
        before = Some(now);
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
    unsettled
}

fn still_going_on(before: &Settling, now: &Settling) -> Option<String> {
    let history = now.history_list_length.unwrap_or(0);
    if history > HISTORY_MAX && before.history_list_length.is_some_and(|then| then > history) {
        return Some(format!("purge still had {history} transactions to go"));
    }
    let (Some(then), Some(dirty)) = (before.dirty_pages, now.dirty_pages) else { return None };
    // A server that keeps its dirty pages until it needs the room is as settled as it gets.
    let falling = then > dirty + dirty / 50;
    falling.then(|| format!("{dirty} dirty pages were still being written"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(dirty_pages: u64, history: u64) -> Settling {
        Settling {
            dirty_pages: Some(dirty_pages),
            history_list_length: Some(history),
            total_pages: None,
            pending_flushes: None,
            checkpoint_age_bytes: None,
        }
    }

    #[test]
    fn settled_when_nothing_falls_any_more() {
        assert!(still_going_on(&at(1000, 5000), &at(1000, 4000)).unwrap().contains("purge"));
        assert!(still_going_on(&at(1000, 10), &at(800, 10)).unwrap().contains("800 dirty pages"));
        assert_eq!(still_going_on(&at(1000, 10), &at(1000, 10)), None);
        assert_eq!(
            still_going_on(&at(1000, 4000), &at(1000, 4000)),
            None,
            "a stuck purge is no reason to wait"
        );
    }
}
