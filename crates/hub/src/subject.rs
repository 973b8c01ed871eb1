//! Subjects and streams of the bus, and who may use which.

use crate::host_name::HostName;
use crate::member::MemberKind;
use crate::message::RecordingId;

/// The stream that holds frames until they are received.
pub(crate) const FRAMES: &str = "WHYSO_FRAMES";
/// All agents hear it.
pub(crate) const HERE: &str = "whyso.here";

pub(crate) fn all_frames() -> String {
    "whyso.frames.>".to_string()
}

pub(crate) fn frames(host: &HostName, recording: &RecordingId) -> String {
    format!("whyso.frames.{host}.{recording}")
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
            publish: vec![format!("whyso.frames.{name}.*")],
            subscribe: vec![order(name), clock(name), HERE.to_string(), own_inbox],
            answers: true,
        },
        MemberKind::Commander => {
            let api = |what: &str| format!("$JS.API.{what}");
            Rights {
                publish: vec![
                    "whyso.ask.*".to_string(),
                    "whyso.clock.*".to_string(),
                    HERE.to_string(),
                    api(&format!("CONSUMER.CREATE.{FRAMES}.>")),
                    api(&format!("CONSUMER.INFO.{FRAMES}.*")),
                    api(&format!("CONSUMER.DELETE.{FRAMES}.*")),
                    api(&format!("CONSUMER.MSG.NEXT.{FRAMES}.*")),
                    api(&format!("STREAM.INFO.{FRAMES}")),
                    api(&format!("STREAM.PURGE.{FRAMES}")),
                    format!("$JS.ACK.{FRAMES}.>"),
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
