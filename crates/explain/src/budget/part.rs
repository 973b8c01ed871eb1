//! The leaves of the time budget: their names, which are fixed, and what each stands for.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// One leaf of the budget. Leaves do not overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    ClientQueue,
    /// Making new connections, as the load generator measured it, less what other parts hold of it.
    Connect,
    /// Pauses within transactions, which a script asks for.
    ClientPause,
    ClientCpu,
    ClientDelay,
    TransitIn,
    Wakeup,
    Runqueue,
    Cpu,
    Lock,
    KernelLock,
    FileRead,
    FileWrite,
    FileSync,
    NetSend,
    PageFault,
    Sleep,
    Other,
    TransitOut,
    /// Everything past the wire, where the server is on another machine.
    ServerAndNetwork,
}

use Part::{
    ClientCpu, ClientDelay, ClientPause, ClientQueue, Connect, Cpu, FileRead, FileSync, FileWrite,
    KernelLock, Lock, NetSend, Other, PageFault, Runqueue, ServerAndNetwork, Sleep, TransitIn, TransitOut,
    Wakeup,
};

impl Part {
    /// In the order in which they are shown.
    pub const ALL: [Part; 20] = [
        ClientQueue,
        Connect,
        ClientPause,
        ClientCpu,
        ClientDelay,
        TransitIn,
        Wakeup,
        Runqueue,
        Cpu,
        Lock,
        KernelLock,
        FileRead,
        FileWrite,
        FileSync,
        NetSend,
        PageFault,
        Sleep,
        Other,
        TransitOut,
        ServerAndNetwork,
    ];

    /// As programs know it.
    pub fn name(self) -> &'static str {
        match self {
            ClientQueue => "client_queue",
            Connect => "connect",
            ClientPause => "client_pause",
            ClientCpu => "client_cpu",
            ClientDelay => "client_delay",
            TransitIn => "transit_in",
            Wakeup => "wakeup",
            Runqueue => "runqueue",
            Cpu => "cpu",
            Lock => "lock",
            KernelLock => "kernel_lock",
            FileRead => "file_read",
            FileWrite => "file_write",
            FileSync => "file_sync",
            NetSend => "net_send",
            PageFault => "page_fault",
            Sleep => "sleep",
            Other => "other",
            TransitOut => "transit_out",
            ServerAndNetwork => "server_and_network",
        }
    }

    /// As a sentence has it: "8.9 ms of that is …".
    pub fn words(self) -> &'static str {
        match self {
            ClientQueue => "due and not yet sent",
            Connect => "making connections",
            ClientPause => "pauses that the script asks for",
            ClientCpu => "the load generator's own time",
            ClientDelay => "answers that waited for the load generator",
            TransitIn => "requests that waited to be picked up",
            Wakeup => "waking threads on idle CPUs",
            Runqueue => "waiting for a CPU",
            Cpu => "work on a CPU",
            Lock => "waiting on locks",
            KernelLock => "waiting on locks inside the kernel",
            FileRead => "waiting for reads of files",
            FileWrite => "waiting for writes to files",
            FileSync => "waiting for syncs of files",
            NetSend => "waiting to send answers",
            PageFault => "waiting for memory pages",
            Sleep => "sleeping",
            Other => "waits of other kinds",
            TransitOut => "the way between load and server",
            ServerAndNetwork => "the server and the network",
        }
    }

    /// What it stands for, from where to where.
    pub fn meaning(self) -> &'static str {
        match self {
            ClientQueue => "the transaction was due and no user was free to send it (open loop)",
            ClientPause => "the user paused within a transaction, as its script asks",
            Connect => {
                "a new connection was asked for and not yet ready, what other parts hold of that left out"
            }
            ClientCpu => "the load generator had an answer and had not yet sent what came next",
            ClientDelay => {
                "the answer had arrived, and the load generator's thread had yet to run or came to it later"
            }
            TransitIn => {
                "sent, and not yet picked up by a thread of the server, its wake-up and its wait for a CPU left out"
            }
            Wakeup => "the server's thread was woken on a CPU that was idle, until it ran",
            Runqueue => "the server's thread was ready to run, and another task had the CPU",
            Cpu => "the server's thread ran",
            Lock => {
                "the server's thread slept on a lock or a condition of the server (futex), row locks and group commits included"
            }
            KernelLock => {
                "the server's thread slept on a lock inside the kernel, such as a file's inode lock"
            }
            FileRead => "the server's thread slept in a read of a file",
            FileWrite => "the server's thread slept in a write to a file",
            FileSync => "the server's thread slept in fsync or its like",
            NetSend => "the server's thread slept in sending: the socket's buffer was full",
            PageFault => "the server's thread slept in a page fault",
            Sleep => "the server's thread slept by the clock, on purpose",
            Other => "the server's thread slept in none of these",
            TransitOut => {
                "held back between load and server in both directions, by a proxy or a network; 0 where nothing lies between"
            }
            ServerAndNetwork => {
                "sent, and not yet answered, as the load generator's machine saw it: the budget stops at the wire"
            }
        }
    }

    /// Time in which a transaction waits for something that another one holds.
    pub(crate) fn is_waiting(self) -> bool {
        matches!(
            self,
            ClientQueue
                | Runqueue
                | Lock
                | KernelLock
                | FileRead
                | FileWrite
                | FileSync
                | PageFault
                | Sleep
                | Other
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_one_that_json_has() {
        for (at, part) in Part::ALL.into_iter().enumerate() {
            assert_eq!(serde_json::to_value(part).unwrap(), part.name());
            assert_eq!(part as usize, at, "the order of ALL is the order of the parts");
        }
    }
}
