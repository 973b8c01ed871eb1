//! What clients asked of a server: the text of a command, and what following it cost.

use whyso_explain::statements::SqlTraceCost;
use whyso_words::{count, nanoseconds, percent, whole};

/// Longest text of a statement in a table, in characters. The log and the JSON have all that was recorded.
pub(crate) const STATEMENT_MAX: usize = 120;

/// Returns what stands for the text of a command that has none.
pub(crate) fn placeholder(command: &str) -> &'static str {
    match command {
        "STMT_EXECUTE"
        | "STMT_BULK_EXECUTE"
        | "STMT_FETCH"
        | "STMT_CLOSE"
        | "STMT_RESET"
        | "STMT_SEND_LONG_DATA" => "<not known: prepared where it was not seen>",
        "QUERY" | "STMT_PREPARE" => "<not recorded>",
        _ => "",
    }
}

/// Returns a statement without the control characters that would steer a terminal.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// Returns what following the commands of clients cost, per command and in all, and what was lost of them, as whole lines.
pub fn sql_trace_words(cost: &SqlTraceCost) -> String {
    let mut out = String::from("Cost of following a command: ");
    match cost.probes_ns {
        Some(ns) => out.push_str(&format!(
            "two probes in the server's thread, {} as measured here when the trace began",
            nanoseconds(ns)
        )),
        None => out.push_str("two probes in the server's thread, which could not be measured here"),
    }
    match cost.programs_ns_a_command {
        Some(ns) => out.push_str(&format!("; the programs at them, {}", nanoseconds(ns))),
        None => out.push_str(
            "; the programs at them, whose time was not counted (the kernel may not be asked to, or there was no time)",
        ),
    }
    out.push_str(&format!("; whyso's reading thread, {} of CPU.\n", nanoseconds(cost.reader_ns_a_command)));
    let but = match (cost.probes_ns, cost.programs_ns_a_command) {
        (Some(_), Some(_)) => "",
        _ => ", without what is not known of it",
    };
    out.push_str(&format!(
        "In all {} per command, of {}: {} of this machine's CPU while they were followed{but}.\n",
        nanoseconds(cost.ns_a_command()),
        count(cost.commands, "command"),
        percent(cost.cpu_share),
    ));
    if !cost.lost.is_empty() {
        let lost = cost.lost.iter().map(|(why, commands)| format!("{} ({why})", whole(*commands)));
        let lost = lost.collect::<Vec<_>>().join(", ");
        out.push_str(&format!("Lost in the whole run, of {}: {lost}.\n", whole(cost.commands)));
    }
    out
}
