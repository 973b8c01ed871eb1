//! Hands the frames of an outbox to the hub, in order, each until the hub keeps it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use whyso_hub::{Bus, RecordingId};

use crate::outbox::{Outbox, frame_numbers, read_frame};

/// Bound on the wait for a frame, after which the folder is looked at in any case.
const LOOK_INTERVAL_MAX: Duration = Duration::from_secs(1);
/// After a frame that the hub did not take.
const AGAIN_INTERVAL: Duration = Duration::from_secs(1);

/// Hands over a recording's outbox until its last frame, and removes its folder. `bus`: the connection of the moment.
pub async fn publish_outbox(bus: watch::Receiver<Option<Bus>>, recording: RecordingId, outbox: Arc<Outbox>) {
    let folder = outbox.folder().to_path_buf();
    let (forget, is_closed) = (|number| outbox.forget(number), || outbox.is_closed());
    publish_all(bus, recording, &folder, outbox.written(), forget, is_closed).await;
    remove_empty(&folder);
}

/// An outbox whose frames are all kept by the hub. An unfinished one goes with it.
pub(crate) fn remove_empty(folder: &Path) {
    // One that can't be removed is looked at again at the next start.
    let _ = std::fs::remove_dir_all(folder);
}

/// Publishes a folder's frames until the last of all. `forget` is called with each that the hub keeps; `is_closed`: no further one comes.
/// `bus` holds the current connection, and `None` while there is none. `written`: wakes it for a new frame.
pub(crate) async fn publish_all(
    mut bus: watch::Receiver<Option<Bus>>,
    recording: RecordingId,
    folder: &Path,
    written: &Notify,
    forget: impl Fn(u64),
    is_closed: impl Fn() -> bool,
) {
    loop {
        let was_closed = is_closed();
        let numbers = frame_numbers(folder).unwrap_or_default();
        if numbers.is_empty() {
            if was_closed {
                return;
            }
            // Either way, it looks again.
            let _ = tokio::time::timeout(LOOK_INTERVAL_MAX, written.notified()).await;
            continue;
        }
        for number in numbers {
            let Some(frame) = read_frame(folder, number) else {
                tokio::time::sleep(AGAIN_INTERVAL).await;
                continue;
            };
            let frame = bytes::Bytes::from(frame);
            loop {
                let current = bus.borrow_and_update().clone();
                let published = match current {
                    Some(bus) => bus.publish(&recording, frame.clone()).await.is_ok(),
                    None => false,
                };
                if published {
                    break;
                }
                tokio::time::sleep(AGAIN_INTERVAL).await;
            }
            forget(number);
        }
    }
}
