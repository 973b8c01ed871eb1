//! What the commander asks of an agent, and the answer.

use serde::{Deserialize, Serialize};
use whyso_model::HostFacts;

use crate::load_order::{LoadOrder, LoadState};
use crate::recording_id::RecordingId;

/// What an agent may do. A file on its host says which of these it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Right {
    /// Record its machine, and the servers that its file names.
    Observe,
    /// Send a load to the targets that its file names.
    Load,
    /// Start servers of whyso's own.
    StartServers,
    /// Change settings of a server for an experiment.
    Experiment,
}

impl Right {
    pub const ALL: [Right; 4] = [Right::Observe, Right::Load, Right::StartServers, Right::Experiment];

    pub fn name(self) -> &'static str {
        match self {
            Right::Observe => "observe",
            Right::Load => "load",
            Right::StartServers => "start-servers",
            Right::Experiment => "experiment",
        }
    }
}

/// What the commander asks of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "kebab-case")]
pub enum Order {
    /// Say what you are and what you do.
    State,
    Record(RecordOrder),
    /// End the recording, and hand over what is left of it.
    End {
        recording: RecordingId,
    },
    Load(LoadOrder),
    Work(WorkOrder),
    /// Say which server the agent's file means by a name.
    Identity {
        server: String,
    },
}

/// A recording that an agent is to make.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordOrder {
    pub recording: RecordingId,
    /// A server of the agent's file; `None`: its machine only.
    pub server: Option<String>,
    /// Programs of the agent's file.
    #[serde(default)]
    pub programs: Vec<String>,
    pub interval_ms: u64,
    pub trace: bool,
    /// "off", "light" or "full".
    pub stacks: String,
    /// It ends by itself after this time. So it ends where nobody asks for its end any more.
    pub seconds_max: u64,
}

/// What an agent is to do with a queue of work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkOrder {
    pub work: RecordingId,
    pub step: WorkStep,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum WorkStep {
    /// Take pieces from the queue, one at a time. `study`: the study that they are blocks of, as JSON.
    Begin { study: String },
    /// Say how far it is.
    State,
    /// Take no more, and break off what is under way.
    End,
}

/// What an agent does with a queue of work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkState {
    /// It takes pieces.
    pub is_at_work: bool,
    /// The piece that is under way, and since when, in seconds.
    pub piece: Option<(u32, u64)>,
    /// Pieces whose results the hub keeps.
    pub done: u32,
    /// Why a piece failed, as it would fail anywhere: nobody needs to try it again.
    pub problem: Option<String>,
}

/// What an agent is and does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostState {
    pub name: String,
    pub whyso: String,
    pub facts: HostFacts,
    #[serde(default)]
    pub cpus: HostCpus,
    pub may: Vec<Right>,
    /// Servers of its file, by the name that it gives them.
    pub servers: Vec<String>,
    /// Programs of its file.
    #[serde(default)]
    pub programs: Vec<String>,
    /// Targets of its file.
    #[serde(default)]
    pub targets: Vec<String>,
    /// The recording that is under way.
    pub recording: Option<RecordingId>,
    /// Frames that wait for the hub.
    pub waiting_frames: u64,
}

/// The CPUs that an agent may use, and whose they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostCpus {
    /// Of the kernel that runs: containers and namespaces of one machine have the same.
    pub boot_id: String,
    pub cpus: Vec<u32>,
}

impl HostCpus {
    /// Whether two hosts run on the same CPUs, as two containers of one machine do that are not bound to CPUs of their own.
    pub fn overlap(&self, other: &HostCpus) -> bool {
        let is_one_machine = !self.boot_id.is_empty() && self.boot_id == other.boot_id;
        is_one_machine && self.cpus.iter().any(|cpu| other.cpus.contains(cpu))
    }
}

/// An agent's answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
    Done,
    State(Box<HostState>),
    Load(Box<LoadState>),
    Work(WorkState),
    /// What a server says of itself, so that nobody takes it for another one.
    Identity {
        identity: String,
    },
    Refused {
        why: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_of_one_machine_share_its_cpus_unless_they_are_bound_apart() {
        let host =
            |boot_id: &str, cpus: &[u32]| HostCpus { boot_id: boot_id.to_string(), cpus: cpus.to_vec() };
        assert!(host("a", &[0, 1]).overlap(&host("a", &[1])));
        assert!(!host("a", &[0]).overlap(&host("a", &[1])));
        assert!(!host("a", &[0]).overlap(&host("b", &[0])));
        assert!(!host("", &[0]).overlap(&host("", &[0])));
    }

    #[test]
    fn an_order_of_an_older_or_a_newer_version_is_read_or_refused() {
        let json = r#"{"order":"end","recording":"20261128-1","later":1}"#;
        let recording = RecordingId::new("20261128-1").unwrap();
        assert_eq!(serde_json::from_str::<Order>(json).unwrap(), Order::End { recording });
        let state = r#"{"order":"load","load":"20261128-1","step":{"step":"state"},"seen":3,"later":1}"#;
        assert!(matches!(
            serde_json::from_str::<Order>(state).unwrap(),
            Order::Load(LoadOrder { seen: 3, .. })
        ));
        for json in [r#"{"order":"shell"}"#, r#"{"order":"end","recording":"../x"}"#, "[]"] {
            assert!(serde_json::from_str::<Order>(json).is_err(), "{json}");
        }
    }
}
