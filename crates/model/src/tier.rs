//! Series of a program that is no database server: what its requests took, and what they waited for at servers behind it.
//!
//! All are counters since the tracing began.

/// Source of a program's sums.
pub const TIER: &str = "tier";
/// Requests that were answered. A request begins with data on a connection that the program accepted. It ends with the last that the program
/// sends there before it receives again.
pub const REQUESTS: &str = "requests";
/// From when a thread received the request to when it had sent the answer, in nanoseconds.
pub const REQUEST_NS: &str = "request_ns";
/// From when a request had arrived to when a thread received it, in nanoseconds.
pub const QUEUE_NS: &str = "queue_ns";
/// Of which a thread was already woken, on a CPU that was idle.
pub const QUEUE_WAKEUP_NS: &str = "queue_wakeup_ns";
/// Of which a thread was ready while another task had the CPU.
pub const QUEUE_RUNQUEUE_NS: &str = "queue_runqueue_ns";
/// Requests whose arrival was not seen: their queue is not known.
pub const UNSEEN: &str = "unseen_arrivals";
/// Requests whose thread worked on others meanwhile.
pub const INTERLEAVED: &str = "interleaved";
/// The time of threads that waited for the next request on a connection that stays open, in nanoseconds.
pub const KEPT_NS: &str = "kept_ns";

/// Source of what requests waited for at servers behind the program; the instance is where those listen, such as "tcp 3306".
pub const UPSTREAM: &str = "upstream";
/// Times that a thread sent to the server behind within a request, after it had received.
pub const ASKED: &str = "asked";
/// The time that threads waited for it within requests, in nanoseconds.
pub const WAIT_NS: &str = "wait_ns";
/// Connections to it over TCP that failed because no local port was left, also outside of requests.
pub const WITHOUT_PORT: &str = "without_port";

/// From when an answer had arrived to when a thread received it, in nanoseconds: an event loop may work on other requests meanwhile.
pub const LATE_NS: &str = "late_ns";

/// Source of the other programs of a machine.
const NEIGHBOURS: &str = "neighbours";

/// Returns the metric of a state's time within requests, such as "request_cpu_ns".
pub fn request_state(state: crate::State) -> String {
    format!("request_{}_ns", state.name())
}

/// Returns the metric of a state's time of all threads that answer requests, within them and outside, such as "answering_cpu_ns".
pub fn answering_state(state: crate::State) -> String {
    format!("answering_{}_ns", state.name())
}

/// Returns the metric of a state's time within requests of clients that are not the load, such as "others_cpu_ns".
pub fn others_state(state: crate::State) -> String {
    format!("others_{}_ns", state.name())
}

/// States in which a thread works or is held up, so that it picks up nothing meanwhile: of these [`answering_state`] and
/// [`others_state`] are recorded.
pub const HELD_UP: [crate::State; 5] = [
    crate::State::Cpu,
    crate::State::KernelLock,
    crate::State::FileRead,
    crate::State::FileWrite,
    crate::State::FileSync,
];

/// "apache2" of "process 4711 (apache2)"; any other name as it is.
pub fn short_name(words: &str) -> &str {
    let named = words.strip_prefix("process ").and_then(|rest| rest.split_once(" (")?.1.strip_suffix(')'));
    named.unwrap_or(words)
}

/// Whether the counters of a source are there only from when they first count. Before that they did not grow, so that what they did later
/// does not stand for a whole window.
pub fn begins_with_use(source: &str) -> bool {
    source == UPSTREAM || source == NEIGHBOURS
}
