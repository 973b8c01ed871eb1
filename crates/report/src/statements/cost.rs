//! What following commands cost, in words.

use whyso_explain::statements::SqlTraceCost;

use crate::number::{grouped, whole};

const NS_PER_US: f64 = 1e3;

/// What following the commands of clients cost, a command and in all, and what was lost of them; whole lines.
pub fn words(cost: &SqlTraceCost) -> String {
    let us = |ns: f64| format!("{} µs", grouped(ns / NS_PER_US));
    let mut out = String::from("Cost of following a command: ");
    match cost.probes_ns {
        Some(ns) => out.push_str(&format!(
            "two probes in the server's thread, {} as measured here when the trace began",
            us(ns)
        )),
        None => out.push_str("two probes in the server's thread, which could not be measured here"),
    }
    match cost.programs_ns_a_command {
        Some(ns) => out.push_str(&format!("; the programs at them, {}", us(ns))),
        None => out.push_str(
            "; the programs at them, whose time was not counted (the kernel may not be asked to, or there was no time)",
        ),
    }
    out.push_str(&format!("; whyso's reading thread, {} of CPU.\n", us(cost.reader_ns_a_command)));
    let but = match (cost.probes_ns, cost.programs_ns_a_command) {
        (Some(_), Some(_)) => "",
        _ => ", without what is not known of it",
    };
    out.push_str(&format!(
        "In all {} a command, of {} commands: {} % of this machine's CPU while they were followed{but}.\n",
        us(cost.ns_a_command()),
        whole(cost.commands),
        grouped(cost.cpu_share * 100.0),
    ));
    if !cost.lost.is_empty() {
        let lost = cost.lost.iter().map(|(why, count)| format!("{} ({why})", whole(*count)));
        let lost = lost.collect::<Vec<_>>().join(", ");
        out.push_str(&format!("Lost in the whole run, of {}: {lost}.\n", whole(cost.commands)));
    }
    out
}
