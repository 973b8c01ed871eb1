//! A chosen wait.

/// A chosen wait, and who ended it.
#[derive(Clone, Debug, PartialEq)]
pub struct Wake {
    /// The stack that waited.
    pub stack: u32,
    /// Place of its metric in [`Profile::metrics`].
    pub metric: usize,
    /// The time that the wait stands for.
    pub weight_ns: f64,
    /// The thread that waited, in what, and from when to when.
    pub tid: u32,
    pub state: String,
    pub begin_ns: i64,
    pub end_ns: i64,
    /// 0: none, or an interrupt.
    pub waker_tid: u32,
    /// Role of the thread that woke it; empty: not a thread of the server, such as an interrupt.
    pub role: String,
    /// Stack of that thread; `None` where it was not recorded.
    pub by: Option<u32>,
    /// Its states up to `end_ns`, one after the other: (state, nanoseconds). Empty where that was not recorded.
    pub past: Vec<(String, u64)>,
}
