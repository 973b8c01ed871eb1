//! A member's connection to the hub.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};
use async_nats::jetstream::{self, AckKind};
use async_nats::{Client, ConnectErrorKind, ConnectOptions, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::task::JoinSet;
use whyso_clock::{ClockQuestion, monotonic_ns};

use crate::error::{Error, Result};
use crate::frame::{FRAME_BYTES_MAX, Frame};
use crate::host_name::HostName;
use crate::member::HubSettings;
use crate::message::{Answer, HostState, Order};
use crate::nats_config::HEADERS_BYTES_MAX;
use crate::packing::{pack, unpack};
use crate::recording_id::RecordingId;
use crate::subject::{self, FRAMES, HERE, WORK};
use crate::token::Token;

/// Bounds on a connection's beginning, on an answer, and on an answer about a clock.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
const ANSWER_TIME_MAX: Duration = Duration::from_secs(15);
const CLOCK_TIME_MAX: Duration = Duration::from_secs(1);
/// Bound on the hub's word that it has a frame.
pub(crate) const ACK_TIME_MAX: Duration = Duration::from_secs(5);
/// Bound on the answer of an agent that has just called.
const AGENT_TIME_MAX: Duration = Duration::from_secs(3);
/// How long agents may take to call.
const HERE_TIME: Duration = Duration::from_millis(700);
/// Between two attempts to reach the hub again.
const RECONNECT_INTERVAL: Duration = Duration::from_millis(500);
/// Frames that nobody received are forgotten after this time.
const FRAME_AGE_MAX: Duration = Duration::from_secs(7 * 86_400);
/// Space for pieces of work, which are small.
const WORK_BYTES_MAX: i64 = 16 << 20;
/// A receiver that is gone for this long is forgotten.
pub(crate) const RECEIVER_IDLE_MAX: Duration = Duration::from_secs(3600);
/// Frames under way to a receiver, at most.
const FRAMES_AT_ONCE: i64 = 64;

/// A member's connection. Clones share it.
#[derive(Clone)]
pub struct Bus {
    client: Client,
    jetstream: jetstream::Context,
    name: HostName,
}

impl Bus {
    /// Joins the hub of a token. A connection that breaks later is made again, as often as it takes.
    ///
    /// # Errors
    /// The hub can't be reached, is another one than the token's, or refuses the token.
    pub async fn join(token: &Token) -> Result<Bus> {
        Bus::connect(token, true).await
    }

    async fn connect(token: &Token, again: bool) -> Result<Bus> {
        let options = ConnectOptions::with_nkey(token.seed.clone())
            .name(format!("whyso {}", token.name))
            .require_tls(true)
            .tls_client_config(tls(token)?)
            .custom_inbox_prefix(subject::inbox(&token.name))
            .connection_timeout(CONNECT_TIME_MAX)
            .ignore_discovered_servers()
            .max_reconnects(if again { None } else { Some(1) })
            .reconnect_delay_callback(|_| RECONNECT_INTERVAL);
        let address = token.address.clone();
        let connected =
            tokio::time::timeout(CONNECT_TIME_MAX * 2, options.connect(format!("tls://{}", token.address)));
        let client = match connected.await {
            Ok(Ok(client)) => client,
            Ok(Err(error))
                if matches!(
                    error.kind(),
                    ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation
                ) =>
            {
                return Err(Error::Refused { address });
            }
            Ok(Err(error)) => return Err(Error::Unreachable { address, why: error.to_string() }),
            Err(_) => return Err(Error::Unreachable { address, why: "it does not answer".to_string() }),
        };
        let mut jetstream = jetstream::new(client.clone());
        jetstream.set_timeout(ACK_TIME_MAX);
        Ok(Bus { client, jetstream, name: token.name.clone() })
    }

    pub fn name(&self) -> &HostName {
        &self.name
    }

    pub(crate) fn jetstream(&self) -> &jetstream::Context {
        &self.jetstream
    }

    pub fn is_connected(&self) -> bool {
        self.client.connection_state() == async_nats::connection::State::Connected
    }

    /// Gives an agent an order, and waits for its answer.
    ///
    /// # Errors
    /// It does not answer, refuses, or answers what can't be read.
    pub async fn order(&self, host: &HostName, order: &Order) -> Result<Answer> {
        self.order_within(host, order, ANSWER_TIME_MAX).await
    }

    async fn order_within(&self, host: &HostName, order: &Order, time_max: Duration) -> Result<Answer> {
        let asked = self.client.request(subject::order(host), pack(order)?.into());
        let silent = || Error::Silent { host: host.to_string() };
        let message = tokio::time::timeout(time_max, asked).await.map_err(|_| silent())?;
        let message = message.map_err(|_| silent())?;
        match answer(host.as_str(), &message.payload)? {
            Answer::Refused { why } => Err(Error::AgentRefuses { host: host.to_string(), why }),
            Answer::State(state) if state.name != host.as_str() => {
                let what = format!("the state of {}", state.name);
                Err(Error::Unreadable { host: host.to_string(), what })
            }
            answer => Ok(answer),
        }
    }

    /// Asks an agent what its clock shows.
    ///
    /// # Errors
    /// It does not answer within a second.
    pub async fn clock(&self, host: &HostName) -> Result<ClockQuestion> {
        let silent = || Error::Silent { host: host.to_string() };
        let subject = subject::clock(host);
        let sent_ns = monotonic_ns();
        let asked = self.client.request(subject, Bytes::new());
        let message = tokio::time::timeout(CLOCK_TIME_MAX, asked).await.map_err(|_| silent())?;
        let message = message.map_err(|_| silent())?;
        let received_ns = monotonic_ns();
        let there_ns = <[u8; 8]>::try_from(message.payload.as_ref()).map(i64::from_le_bytes);
        let there_ns = there_ns.map_err(|_| Error::Unreadable {
            host: host.to_string(),
            what: "no time of a clock".to_string(),
        })?;
        Ok(ClockQuestion { sent_ns, there_ns, received_ns })
    }

    /// The agents that are connected, by name.
    ///
    /// # Errors
    /// The hub can't be reached.
    pub async fn agents(&self) -> Result<Vec<HostState>> {
        let mut asked = JoinSet::new();
        for claim in self.claims().await? {
            let Ok(host) = HostName::new(&claim.name) else { continue };
            let bus = self.clone();
            // What came with the call is what its sender says. Only the host itself hears this question.
            asked.spawn(async move { bus.order_within(&host, &Order::State, AGENT_TIME_MAX).await });
        }
        let mut found = Vec::new();
        while let Some(answered) = asked.join_next().await {
            if let Ok(Ok(Answer::State(state))) = answered {
                found.push(*state);
            }
        }
        found.sort_by(|a: &HostState, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// What hears a call to all agents, and which host each says that it is.
    async fn claims(&self) -> Result<Vec<HostState>> {
        let inbox = self.client.new_inbox();
        let mut answers = self.subscribe(inbox.clone()).await?;
        let asked = self.client.publish_with_reply(HERE, inbox, Bytes::new()).await;
        asked.map_err(|error| Error::Bus(error.to_string()))?;
        let mut found: Vec<HostState> = Vec::new();
        let calls = async {
            while let Some(message) = answers.next().await {
                if let Ok(Answer::State(state)) = answer("an agent", &message.payload)
                    && HostName::new(&state.name).is_ok()
                    && found.iter().all(|other| other.name != state.name)
                {
                    found.push(*state);
                }
            }
        };
        // The end of this time is how it ends.
        let _ = tokio::time::timeout(HERE_TIME, calls).await;
        Ok(found)
    }

    /// Receives the frames of a recording, of all its hosts.
    ///
    /// # Errors
    /// The hub can't be reached.
    pub async fn frames(&self, recording: &RecordingId) -> Result<Frames> {
        let filter_subject = format!("whyso.frames.*.{recording}");
        let bus = |error: &dyn std::fmt::Display| Error::Bus(error.to_string());
        let config = pull::Config {
            name: Some(format!("receiver-{recording}")),
            filter_subject: filter_subject.clone(),
            deliver_policy: DeliverPolicy::All,
            ack_policy: AckPolicy::Explicit,
            ack_wait: Duration::from_secs(60),
            max_ack_pending: FRAMES_AT_ONCE,
            inactive_threshold: RECEIVER_IDLE_MAX,
            ..pull::Config::default()
        };
        let stream = self.jetstream.get_stream_no_info(FRAMES).await.map_err(|error| bus(&error))?;
        let consumer = stream.create_consumer(config).await.map_err(|error| bus(&error))?;
        let messages = consumer.messages().await.map_err(|error| bus(&error))?;
        Ok(Frames { bus: self.clone(), messages, filter_subject, broken: HashSet::new() })
    }

    /// Publishes a frame of this host, and returns when the hub keeps it.
    ///
    /// # Errors
    /// The hub does not say that it keeps it: then it is to be published again, and may come twice.
    pub async fn publish(&self, recording: &RecordingId, frame: Bytes) -> Result<()> {
        let subject = subject::frames(&self.name, recording);
        // Without an id of the message: those of all members are one set, and another one could take it. The receiver knows a frame that comes
        // twice by its number.
        let message = PublishMessage::build().payload(frame).expected_stream(FRAMES);
        let published = async {
            let sent = self.jetstream.send_publish(subject, message).await;
            sent.map_err(|error| Error::Bus(error.to_string()))?
                .await
                .map_err(|error| Error::Bus(error.to_string()))
        };
        match tokio::time::timeout(ACK_TIME_MAX, published).await {
            Ok(done) => done.map(|_| ()),
            Err(_) => Err(Error::Bus("it does not answer".to_string())),
        }
    }

    /// Publishes a frame, and lets the hub say elsewhere that it keeps it. For tests of what that may do.
    ///
    /// # Errors
    /// The hub can't be reached.
    #[doc(hidden)]
    pub async fn publish_with_reply(&self, recording: &RecordingId, frame: Bytes, reply: &str) -> Result<()> {
        let subject = subject::frames(&self.name, recording);
        let sent = self.client.publish_with_reply(subject, reply.to_string(), frame).await;
        sent.map_err(|error| Error::Bus(error.to_string()))?;
        self.client.flush().await.map_err(|error| Error::Bus(error.to_string()))
    }

    /// What an agent is asked, while it is connected.
    ///
    /// # Errors
    /// The hub can't be reached.
    pub async fn questions(&self) -> Result<Questions> {
        let orders = self.subscribe(subject::order(&self.name)).await?;
        let calls = self.subscribe(HERE.to_string()).await?;
        let clock = self.subscribe(subject::clock(&self.name)).await?;
        let client = self.client.clone();
        // In a task of its own: an order that takes long delays no answer about the clock.
        let clock_asked_ns = Arc::new(AtomicI64::new(monotonic_ns()));
        let clock = tokio::spawn(answer_clock(client, clock, Arc::clone(&clock_asked_ns))).abort_handle();
        self.client.flush().await.map_err(|error| Error::Bus(error.to_string()))?;
        Ok(Questions { client: self.client.clone(), orders, calls, clock, clock_asked_ns })
    }

    async fn subscribe(&self, subject: String) -> Result<Subscriber> {
        self.client.subscribe(subject).await.map_err(|error| Error::Bus(error.to_string()))
    }
}

fn answer(host: &str, bytes: &[u8]) -> Result<Answer> {
    unpack(bytes).map_err(|what| Error::Unreadable { host: host.to_string(), what })
}

async fn answer_clock(client: Client, mut asked: Subscriber, asked_ns: Arc<AtomicI64>) {
    while let Some(message) = asked.next().await {
        asked_ns.store(monotonic_ns(), Ordering::Relaxed);
        if let Some(reply) = message.reply {
            let now = Bytes::copy_from_slice(&monotonic_ns().to_le_bytes());
            // Who asked asks again.
            let _ = client.publish(reply, now).await;
            let _ = client.flush().await;
        }
    }
}

/// What an agent is asked.
pub struct Questions {
    client: Client,
    orders: Subscriber,
    calls: Subscriber,
    clock: tokio::task::AbortHandle,
    clock_asked_ns: Arc<AtomicI64>,
}

impl Drop for Questions {
    fn drop(&mut self) {
        self.clock.abort();
    }
}

/// A question to an agent.
pub struct Question {
    client: Client,
    reply: Option<async_nats::Subject>,
    /// `None`: no order that this version knows.
    pub order: Option<Order>,
}

impl Question {
    /// Answers it. An answer that can't be sent is as good as none: who asked asks again.
    pub async fn answer(self, answer: &Answer) {
        let Some(reply) = self.reply else { return };
        let bytes = pack(answer).or_else(|error| pack(&Answer::Refused { why: error.to_string() }));
        if let Ok(bytes) = bytes {
            let _ = self.client.publish(reply, bytes.into()).await;
            let _ = self.client.flush().await;
        }
    }
}

impl Questions {
    /// How long nobody has asked for the clock, as every commander does whose recording is under way.
    pub fn unasked_for(&self) -> Duration {
        let asked_ns = self.clock_asked_ns.load(Ordering::Relaxed);
        Duration::from_nanos(monotonic_ns().saturating_sub(asked_ns).max(0) as u64)
    }

    /// The next question; `None` when the connection is over for good.
    pub async fn next(&mut self) -> Option<Question> {
        let (message, is_call) = tokio::select! {
            message = self.orders.next() => (message?, false),
            message = self.calls.next() => (message?, true),
        };
        let order = match is_call {
            true => Some(Order::State),
            false => unpack(&message.payload).ok(),
        };
        Some(Question { client: self.client.clone(), reply: message.reply, order })
    }
}

/// Frames of a recording, as they arrive.
pub struct Frames {
    bus: Bus,
    messages: pull::Stream,
    filter_subject: String,
    /// Hosts whose frames can't be read.
    broken: HashSet<String>,
}

/// A frame that arrived.
pub struct ReceivedFrame {
    /// As the hub knows it: an agent can publish under no other name.
    pub host: HostName,
    pub frame: Result<Frame>,
    message: jetstream::Message,
}

impl ReceivedFrame {
    /// It is recorded: the hub may forget it.
    ///
    /// # Errors
    /// The hub can't be reached. Then it comes once more.
    pub async fn done(&self) -> Result<()> {
        self.message.ack_with(AckKind::Ack).await.map_err(|error| Error::Bus(error.to_string()))
    }
}

impl Frames {
    /// The next frame, in the order of its host; `None` where none came within `time_max`.
    ///
    /// # Errors
    /// The hub can't be reached. It may be asked again.
    pub async fn next(&mut self, time_max: Duration) -> Result<Option<ReceivedFrame>> {
        let Ok(message) = tokio::time::timeout(time_max, self.messages.next()).await else { return Ok(None) };
        let message = match message {
            Some(message) => message.map_err(|error| Error::Bus(error.to_string()))?,
            None => return Err(Error::Bus("the receiver of frames was ended".to_string())),
        };
        let host = message.subject.split('.').nth(2).unwrap_or_default().to_string();
        let host = HostName::new(&host)?;
        let frame = match message.payload.len() <= FRAME_BYTES_MAX {
            true => Frame::from_bytes(host.as_str(), &message.payload),
            false => Err(Error::Unreadable {
                host: host.to_string(),
                what: "a frame that is too large".to_string(),
            }),
        };
        if frame.is_err() {
            self.broken.insert(host.to_string());
        }
        Ok(Some(ReceivedFrame { host, frame, message }))
    }

    /// Forgets all frames of the recording.
    pub async fn forget(self) {
        let Ok(stream) = self.bus.jetstream.get_stream_no_info(FRAMES).await else { return };
        // What stays is forgotten by its age.
        let _ = stream.purge().filter(self.filter_subject).await;
    }
}

/// Makes the streams of a hub that has started.
pub(crate) async fn make_streams(own: &Token, settings: &HubSettings) -> Result<()> {
    let bus = Bus::connect(own, false).await?;
    let config = Config {
        name: FRAMES.to_string(),
        subjects: vec![subject::all_frames(), subject::every_result()],
        // What was received and recorded goes at once.
        retention: RetentionPolicy::WorkQueue,
        storage: StorageType::File,
        discard: DiscardPolicy::New,
        max_bytes: i64::try_from(settings.bytes_max / 10 * 9).unwrap_or(i64::MAX),
        max_age: FRAME_AGE_MAX,
        max_message_size: (FRAME_BYTES_MAX + HEADERS_BYTES_MAX) as i32,
        num_replicas: 1,
        ..Config::default()
    };
    let work = Config {
        name: WORK.to_string(),
        subjects: vec![subject::every_work()],
        retention: RetentionPolicy::WorkQueue,
        storage: StorageType::File,
        discard: DiscardPolicy::New,
        max_bytes: WORK_BYTES_MAX,
        max_age: FRAME_AGE_MAX,
        max_message_size: HEADERS_BYTES_MAX as i32,
        num_replicas: 1,
        ..Config::default()
    };
    for config in [config, work] {
        let made = bus.jetstream.create_or_update_stream(config).await;
        made.map_err(|error| Error::Bus(error.to_string()))?;
    }
    Ok(())
}

/// Lets a hub that runs forget all frames and results of a host.
pub(crate) async fn forget_frames(own: &Token, name: &HostName) -> Result<()> {
    let bus = Bus::connect(own, false).await?;
    let failed = |error: &dyn std::fmt::Display| Error::Bus(error.to_string());
    let stream = bus.jetstream.get_stream_no_info(FRAMES).await.map_err(|error| failed(&error))?;
    for subjects in [subject::frames_of(name), subject::results_of(name)] {
        stream.purge().filter(subjects).await.map_err(|error| failed(&error))?;
    }
    Ok(())
}

/// Trusts the hub's own certificate, and no other.
fn tls(token: &Token) -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let certificate =
        CertificateDer::from_pem_slice(token.certificate.as_bytes()).map_err(|_| Error::Token)?;
    roots.add(certificate).map_err(|_| Error::Token)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Certificate(error.to_string()))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
