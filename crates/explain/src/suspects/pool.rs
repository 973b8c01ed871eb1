//! The time that the CPUs hold, which causes divide.

use super::case::Case;
use super::proxy;
use crate::model::Part;

/// The pool of time that full CPUs hold: work on them, and every queue in front of them. With the generator on the same
/// CPUs, its queues are those of the same CPUs.
pub(super) fn pool_ms(case: &Case) -> f64 {
    let own = case.cpu_ms() + if case.are_cpus_full() { case.runqueue_ms() } else { 0.0 };
    if !case.are_cpus_full() {
        return own;
    }
    if !case.is_traced() {
        // On full CPUs what is neither work nor a queue in the server is mostly the queue of its sockets and the generator's.
        let is_waiting_elsewhere = case.counts(&["Innodb_row_lock_time"]).0;
        return (case.response_ms - is_waiting_elsewhere).max(own);
    }
    // A proxy's work is its own; its queue is one for the same CPUs.
    let (on_the_way, of_proxy) = match proxy::of(case) {
        Some(_) => (0.0, proxy::queued_ms(case)),
        None => (case.ms(Part::TransitOut), 0.0),
    };
    let waits_for_sockets = case.ms(Part::TransitIn) + on_the_way;
    let of_generator = case.ms(Part::ClientCpu) + case.ms(Part::ClientDelay);
    let own = own + of_proxy;
    if case.machine.shared { own + waits_for_sockets + of_generator } else { own + case.ms(Part::TransitIn) }
}
