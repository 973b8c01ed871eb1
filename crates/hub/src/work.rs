//! A queue of work that several agents share, and what they hand over when a piece of it is done.
//!
//! A piece stays in the queue until an agent says that its result is kept by the hub. An agent that is lost says nothing, and another one gets the
//! piece. So a piece may be done twice, and is never lost. Who receives the results knows each by its piece and its attempt.

use std::collections::BTreeSet;
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, Consumer, DeliverPolicy, pull};
use async_nats::jetstream::message::{Acker, PublishMessage};
use async_nats::jetstream::{self, AckKind};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};

use crate::bus::{ACK_TIME_MAX, Bus, RECEIVER_IDLE_MAX};
use crate::error::{Error, Result};
use crate::frame::{FRAME_BYTES_MAX, Frame};
use crate::host_name::HostName;
use crate::recording_id::RecordingId;
use crate::subject::{self, FRAMES, WORK};

/// A piece whose agent has said nothing for this long goes to another one: what most queues have.
pub const AGENT_LOST_AFTER: Duration = Duration::from_secs(30);
/// Bound on one question for a piece.
const PIECE_TIME: Duration = Duration::from_secs(3);
/// A queue that nobody asks is forgotten after this time.
const QUEUE_IDLE_MAX: Duration = Duration::from_secs(7 * 86_400);
/// Parts of results that are received and not kept yet, at most.
const PARTS_AT_ONCE: i64 = 8192;
/// For a part that is not kept yet, and may come once more.
const PART_LOST_AFTER: Duration = Duration::from_secs(600);

fn bus_error(error: impl std::fmt::Display) -> Error {
    Error::Bus(error.to_string())
}

fn queue_name(work: &RecordingId) -> String {
    format!("workers-{work}")
}

/// A piece of work that this agent has.
pub struct WorkPiece {
    pub number: u32,
    /// How often it was given to an agent, this time included.
    pub attempt: u32,
    message: jetstream::Message,
}

impl WorkPiece {
    /// The agent is still at work. To be called several times within the queue's time after which an agent is lost.
    ///
    /// # Errors
    /// The hub can't be reached.
    pub async fn keep(&self) -> Result<()> {
        self.message.ack_with(AckKind::Progress).await.map_err(bus_error)
    }

    /// Its result is kept by the hub: nobody needs to do it again.
    ///
    /// # Errors
    /// The hub does not say that it knows. It may be given to another agent.
    pub async fn done(&self) -> Result<()> {
        let done = tokio::time::timeout(ACK_TIME_MAX, self.message.double_ack());
        done.await.map_err(|_| bus_error("it does not answer"))?.map_err(bus_error)
    }

    /// Another agent may have it at once.
    ///
    /// # Errors
    /// The hub can't be reached.
    pub async fn give_back(&self) -> Result<()> {
        self.message.ack_with(AckKind::Nak(None)).await.map_err(bus_error)
    }
}

/// A part of a result, as it arrives.
pub struct ReceivedPart {
    pub host: HostName,
    pub number: u32,
    pub attempt: u32,
    pub frame: Result<Frame>,
    pub receipt: PartReceipt,
}

/// Lets the hub forget a part. It holds nothing of what the part has.
pub struct PartReceipt(Acker);

impl PartReceipt {
    /// What it is a part of is kept, or is not needed: the hub may forget it.
    ///
    /// # Errors
    /// The hub can't be reached. Then it comes once more.
    pub async fn done(&self) -> Result<()> {
        self.0.ack_with(AckKind::Ack).await.map_err(bus_error)
    }
}

/// Results of a queue, as they arrive.
pub struct Results {
    messages: pull::Stream,
}

impl Results {
    /// The next part; `None` where none came within `time_max`. One that names no piece is left out, and the hub forgets it.
    ///
    /// # Errors
    /// The hub can't be reached. It may be asked again.
    pub async fn next(&mut self, time_max: Duration) -> Result<Option<ReceivedPart>> {
        loop {
            let Ok(message) = tokio::time::timeout(time_max, self.messages.next()).await else {
                return Ok(None);
            };
            let message = match message {
                Some(message) => message.map_err(bus_error)?,
                None => return Err(bus_error("the receiver of results was ended")),
            };
            let (message, acker) = message.split();
            let receipt = PartReceipt(acker);
            let Some((host, number, attempt)) = named(&message.subject) else {
                // Where this fails it comes once more, and is left out once more.
                let _ = receipt.done().await;
                continue;
            };
            let frame = match message.payload.len() <= FRAME_BYTES_MAX {
                true => Frame::from_bytes(host.as_str(), &message.payload),
                false => {
                    let what = "a result that is too large".to_string();
                    Err(Error::Unreadable { host: host.to_string(), what })
                }
            };
            return Ok(Some(ReceivedPart { host, number, attempt, frame, receipt }));
        }
    }
}

/// Host, piece and attempt that a result's subject names.
fn named(subject: &str) -> Option<(HostName, u32, u32)> {
    let parts: Vec<&str> = subject.split('.').collect();
    let [_, _, host, _, number, attempt] = parts[..] else { return None };
    Some((HostName::new(host).ok()?, number.parse().ok()?, attempt.parse().ok()?))
}

impl Bus {
    /// Puts pieces into the queue of `work`, which is made where there is none. Those that are in it already stay as they are. `lost_after`: a
    /// piece whose agent has said nothing for this long goes to another one.
    ///
    /// # Errors
    /// The hub can't be reached.
    pub async fn queue_work(
        &self,
        work: &RecordingId,
        pieces: &BTreeSet<u32>,
        lost_after: Duration,
    ) -> Result<()> {
        let stream = self.jetstream().get_stream_no_info(WORK).await.map_err(bus_error)?;
        let config = pull::Config {
            durable_name: Some(queue_name(work)),
            filter_subject: subject::all_work(work),
            deliver_policy: DeliverPolicy::All,
            ack_policy: AckPolicy::Explicit,
            ack_wait: lost_after,
            inactive_threshold: QUEUE_IDLE_MAX,
            ..pull::Config::default()
        };
        stream.create_consumer(config).await.map_err(bus_error)?;
        let queued = self.queued_work(work).await?;
        for piece in pieces.difference(&queued) {
            let message = PublishMessage::build().expected_stream(WORK);
            let sent = self.jetstream().send_publish(subject::work(work, *piece), message);
            let kept = async { sent.await.map_err(bus_error)?.await.map_err(bus_error) };
            let kept = tokio::time::timeout(ACK_TIME_MAX, kept).await;
            kept.map_err(|_| bus_error("it does not answer"))??;
        }
        Ok(())
    }

    /// The pieces that are in the queue, also those that an agent has.
    ///
    /// # Errors
    /// The hub can't be reached.
    pub async fn queued_work(&self, work: &RecordingId) -> Result<BTreeSet<u32>> {
        let stream = self.jetstream().get_stream_no_info(WORK).await.map_err(bus_error)?;
        let mut subjects = stream.info_with_subjects(subject::all_work(work)).await.map_err(bus_error)?;
        let mut queued = BTreeSet::new();
        while let Some((subject, _)) = subjects.try_next().await.map_err(bus_error)? {
            queued.extend(subject.rsplit('.').next().and_then(|number| number.parse::<u32>().ok()));
        }
        Ok(queued)
    }

    /// Takes a piece from the queue; `None` where there is none.
    ///
    /// # Errors
    /// The hub can't be reached, or has no such queue.
    pub async fn take_work(&self, work: &RecordingId) -> Result<Option<WorkPiece>> {
        let stream = self.jetstream().get_stream_no_info(WORK).await.map_err(bus_error)?;
        let queue: Consumer<pull::Config> =
            stream.get_consumer(&queue_name(work)).await.map_err(bus_error)?;
        let taken = async {
            let mut pieces =
                queue.fetch().max_messages(1).expires(PIECE_TIME).messages().await.map_err(bus_error)?;
            pieces.next().await.transpose().map_err(bus_error)
        };
        let taken = tokio::time::timeout(PIECE_TIME * 2, taken).await;
        let Some(message) = taken.map_err(|_| bus_error("it does not answer"))?? else { return Ok(None) };
        let number = message.subject.rsplit('.').next().and_then(|number| number.parse().ok());
        let attempt = message.info().map_err(bus_error)?.delivered;
        let number = number.ok_or_else(|| bus_error("a piece of work without a number"))?;
        Ok(Some(WorkPiece { number, attempt: u32::try_from(attempt).unwrap_or(0), message }))
    }

    /// Publishes a part of a piece's result, and returns when the hub keeps it.
    ///
    /// # Errors
    /// The hub does not say that it keeps it: then it is to be published again, and may come twice.
    pub async fn publish_result(&self, work: &RecordingId, piece: &WorkPiece, frame: Bytes) -> Result<()> {
        let subject = subject::result(self.name(), work, piece.number, piece.attempt);
        let message = PublishMessage::build().payload(frame).expected_stream(FRAMES);
        let sent = self.jetstream().send_publish(subject, message);
        let kept = async { sent.await.map_err(bus_error)?.await.map_err(bus_error) };
        let kept = tokio::time::timeout(ACK_TIME_MAX, kept).await;
        kept.map_err(|_| bus_error("it does not answer"))?.map(drop)
    }

    /// Receives the results of a queue, of all hosts.
    ///
    /// # Errors
    /// The hub can't be reached.
    pub async fn results(&self, work: &RecordingId) -> Result<Results> {
        let name = format!("results-{work}");
        let config = pull::Config {
            name: Some(name.clone()),
            filter_subject: subject::all_results(work),
            deliver_policy: DeliverPolicy::All,
            ack_policy: AckPolicy::Explicit,
            ack_wait: PART_LOST_AFTER,
            max_ack_pending: PARTS_AT_ONCE,
            inactive_threshold: RECEIVER_IDLE_MAX,
            ..pull::Config::default()
        };
        let stream = self.jetstream().get_stream_no_info(FRAMES).await.map_err(bus_error)?;
        // A receiver of before holds parts back that it has not kept: those are received from the first on. Where there is none, that is fine.
        let _ = stream.delete_consumer(&name).await;
        let consumer = stream.create_consumer(config).await.map_err(bus_error)?;
        let messages = consumer.messages().await.map_err(bus_error)?;
        Ok(Results { messages })
    }

    /// Empties a queue, and forgets its results.
    ///
    /// # Errors
    /// The hub can't be reached.
    pub async fn forget_work(&self, work: &RecordingId) -> Result<()> {
        let purge = |stream: &'static str, subjects: String| async move {
            let stream = self.jetstream().get_stream_no_info(stream).await.map_err(bus_error)?;
            stream.purge().filter(subjects).await.map(drop).map_err(bus_error)
        };
        purge(WORK, subject::all_work(work)).await?;
        purge(FRAMES, subject::all_results(work)).await?;
        let stream = self.jetstream().get_stream_no_info(WORK).await.map_err(bus_error)?;
        stream.delete_consumer(&queue_name(work)).await.map(drop).map_err(bus_error)
    }
}
