//! Subjects and streams of the bus, and who may use which.

use crate::host_name::HostName;
use crate::member::MemberKind;
use crate::recording_id::RecordingId;

/// The stream that holds frames until they are received.
pub(crate) const FRAMES: &str = "WHYSO_FRAMES";
/// The stream that holds pieces of work until they are done.
pub(crate) const WORK: &str = "WHYSO_WORK";
/// All agents hear it.
pub(crate) const HERE: &str = "whyso.here";

pub(crate) fn all_frames() -> String {
    "whyso.frames.>".to_string()
}

pub(crate) fn frames(host: &HostName, recording: &RecordingId) -> String {
    format!("whyso.frames.{host}.{recording}")
}

/// All frames of a host.
pub(crate) fn frames_of(host: &HostName) -> String {
    format!("whyso.frames.{host}.*")
}

pub(crate) fn every_work() -> String {
    "whyso.work.>".to_string()
}

pub(crate) fn all_work(work: &RecordingId) -> String {
    format!("whyso.work.{work}.*")
}

pub(crate) fn work(work: &RecordingId, number: u32) -> String {
    format!("whyso.work.{work}.{number}")
}

pub(crate) fn every_result() -> String {
    "whyso.results.>".to_string()
}

pub(crate) fn all_results(work: &RecordingId) -> String {
    format!("whyso.results.*.{work}.*.*")
}

/// All results of a host.
pub(crate) fn results_of(host: &HostName) -> String {
    format!("whyso.results.{host}.*.*.*")
}

pub(crate) fn result(host: &HostName, work: &RecordingId, number: u32, attempt: u32) -> String {
    format!("whyso.results.{host}.{work}.{number}.{attempt}")
}

pub(crate) fn order(host: &HostName) -> String {
    format!("whyso.ask.{host}")
}

pub(crate) fn clock(host: &HostName) -> String {
    format!("whyso.clock.{host}")
}

pub(crate) fn inbox(name: &HostName) -> String {
    format!("_INBOX.{name}")
}

/// What a member may do on the bus.
pub(crate) struct Rights {
    pub(crate) publish: Vec<String>,
    pub(crate) subscribe: Vec<String>,
    /// It may answer what it was asked.
    pub(crate) answers: bool,
}

/// The rights of a member.
pub(crate) fn rights(name: &HostName, kind: MemberKind) -> Rights {
    let own_inbox = format!("{}.>", inbox(name));
    match kind {
        // A host of its own: nothing of another one's.
        MemberKind::Agent => Rights {
            publish: vec![
                frames_of(name),
                results_of(name),
                format!("$JS.API.CONSUMER.INFO.{WORK}.*"),
                format!("$JS.API.CONSUMER.MSG.NEXT.{WORK}.*"),
                format!("$JS.ACK.{WORK}.>"),
            ],
            subscribe: vec![order(name), clock(name), HERE.to_string(), own_inbox],
            answers: true,
        },
        MemberKind::Commander => {
            let api = |what: &str| format!("$JS.API.{what}");
            Rights {
                publish: vec![
                    "whyso.ask.*".to_string(),
                    "whyso.clock.*".to_string(),
                    "whyso.work.*.*".to_string(),
                    HERE.to_string(),
                    api(&format!("CONSUMER.CREATE.{FRAMES}.>")),
                    api(&format!("CONSUMER.INFO.{FRAMES}.*")),
                    api(&format!("CONSUMER.DELETE.{FRAMES}.*")),
                    api(&format!("CONSUMER.MSG.NEXT.{FRAMES}.*")),
                    api(&format!("STREAM.INFO.{FRAMES}")),
                    api(&format!("STREAM.PURGE.{FRAMES}")),
                    format!("$JS.ACK.{FRAMES}.>"),
                    api(&format!("CONSUMER.CREATE.{WORK}.>")),
                    api(&format!("CONSUMER.DURABLE.CREATE.{WORK}.>")),
                    api(&format!("CONSUMER.INFO.{WORK}.*")),
                    api(&format!("CONSUMER.DELETE.{WORK}.*")),
                    api(&format!("STREAM.INFO.{WORK}")),
                    api(&format!("STREAM.PURGE.{WORK}")),
                ],
                subscribe: vec![own_inbox],
                answers: false,
            }
        }
        // Makes the streams, and is known to the hub's own process only.
        MemberKind::Hub => {
            Rights { publish: vec!["$JS.API.>".to_string()], subscribe: vec![own_inbox], answers: false }
        }
    }
}
