//! Everything that requests share.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::access::Access;
use crate::bookmarks::Bookmarks;
use crate::error::{Answer, Refusal};
use crate::live::Live;
use crate::plan::ServePlan;
use crate::recordings::Recordings;
use crate::studies::Studies;
use crate::verdicts::Verdicts;

/// Requests that read recordings at one time: each may hold some thirty series in memory.
const READERS_MAX: usize = 3;
/// Longest time that a request waits for its turn.
const TURN_WITHIN: Duration = Duration::from_secs(30);

/// The state of the server.
pub(crate) struct Site {
    pub(crate) access: Access,
    pub(crate) recordings: Recordings,
    pub(crate) verdicts: Verdicts,
    pub(crate) bookmarks: Bookmarks,
    pub(crate) live: Live,
    pub(crate) studies: Studies,
    /// Permits one backup or import at a time.
    pub(crate) archive_turn: Arc<Semaphore>,
    readers: Arc<Semaphore>,
}

impl Site {
    pub(crate) fn new(plan: ServePlan, access: Access) -> Site {
        Site {
            access,
            live: Live::new(plan.runs.clone(), plan.servers, plan.recorder),
            recordings: Recordings::new(plan.runs),
            studies: Studies::new(plan.studies),
            verdicts: Verdicts::new(plan.verdicts),
            bookmarks: Bookmarks::new(plan.charts),
            archive_turn: Arc::new(Semaphore::new(1)),
            readers: Arc::new(Semaphore::new(READERS_MAX)),
        }
    }

    /// Waits until nothing is being read.
    pub(crate) async fn until_idle(&self) {
        let _ = self.readers.acquire_many(READERS_MAX as u32).await;
    }
}

/// Reads or writes files away from the threads that serve sockets, at most [`READERS_MAX`] requests at a time.
///
/// # Errors
/// The error of `read`, 503 if no turn came within [`TURN_WITHIN`], or 500 if `read` panicked.
pub(crate) async fn reading<T: Send + 'static>(
    site: Arc<Site>,
    read: impl FnOnce(&Site) -> Answer<T> + Send + 'static,
) -> Answer<T> {
    let turn = tokio::time::timeout(TURN_WITHIN, Arc::clone(&site.readers).acquire_owned()).await;
    let Ok(Ok(turn)) = turn else { return Err(Refusal::busy()) };
    let answer = tokio::task::spawn_blocking(move || {
        let answer = read(&site);
        drop(turn);
        answer
    });
    answer.await.unwrap_or_else(|_| Err(Refusal::damaged()))
}
