//! How connections are driven.

use serde::{Deserialize, Serialize};

/// How connections are driven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineKind {
    /// The one that was measured to be best for the largest level. That is threads for up to two users, then io_uring
    /// where the kernel has it, epoll where not.
    #[default]
    Auto,
    /// One blocking thread a user.
    Threads,
    /// Event loops over epoll.
    Epoll,
    /// Event loops over io_uring.
    IoUring,
}
