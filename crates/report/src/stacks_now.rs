//! Every thread's stack as it is now, as pstack prints it; threads at the same place together, as pt-pmp does; and as one object.

use std::fmt::Write as _;

use serde_json::{Value, json};
use whyso_profile::{StackNow, stack_groups};
use whyso_words::count;

use crate::text::shortened;

/// Longest statement in the terminal, in characters.
const STATEMENT_MAX: usize = 100;
/// Threads of a group that are named.
const THREADS_NAMED_MAX: usize = 8;

/// Returns one paragraph per thread, in the order of their numbers.
pub fn stacks(stacks: &[StackNow]) -> String {
    let mut sorted: Vec<&StackNow> = stacks.iter().collect();
    sorted.sort_by_key(|stack| (stack.pid, stack.tid));
    let mut out = String::new();
    for stack in sorted {
        let _ = writeln!(out, "Thread {} {}", stack.tid, about(stack));
        if let Some(statement) = &stack.statement {
            let _ = writeln!(out, "   executes {}", one_line(statement));
        }
        frames(&mut out, stack);
        out.push('\n');
    }
    out
}

/// Returns one paragraph for each place that threads are at, that with the most threads first.
pub fn grouped_stacks(stacks: &[StackNow]) -> String {
    let mut out = String::new();
    for group in stack_groups(stacks) {
        let Some(first) = group.threads.first() else { continue };
        let roles: Vec<String> =
            group.roles().into_iter().map(|(role, count)| format!("{count} {role}")).collect();
        let threads = group.threads.len();
        let head = count(threads as u64, "thread");
        let _ = writeln!(out, "{head} ({}), {}", roles.join(", "), first.state.replace('_', " "));
        let named: Vec<String> =
            group.threads.iter().take(THREADS_NAMED_MAX).map(|thread| thread.tid.to_string()).collect();
        let left = threads.saturating_sub(THREADS_NAMED_MAX);
        let more = if left > 0 { format!(" and {left} more") } else { String::new() };
        let _ = writeln!(out, "   {}{more}", named.join(", "));
        frames(&mut out, first);
        out.push('\n');
    }
    out
}

/// `"ib_log_writer" (log writer), file sync of /data/ib_logfile0`
fn about(stack: &StackNow) -> String {
    let mut out = format!("{:?} ({}", stack.name, stack.role);
    if let Some(connection) = stack.connection {
        let _ = write!(out, " {connection}");
    }
    let _ = write!(out, "), {}", stack.state.replace('_', " "));
    if let Some(file) = &stack.file {
        let _ = write!(out, " of {}", file.display());
    }
    out
}

fn frames(out: &mut String, stack: &StackNow) {
    if stack.functions.is_empty() {
        out.push_str("   it was on a CPU whenever it was looked at: no stack\n");
        return;
    }
    for (depth, function) in stack.functions.iter().enumerate() {
        let _ = write!(out, "#{depth:<3}{}", function.name);
        match &function.source {
            Some((file, line)) => {
                let _ = writeln!(out, " at {file}:{line}");
            }
            None => {
                let _ = writeln!(out, " in {}", function.module);
            }
        }
    }
    if !stack.is_whole {
        out.push_str("   the way on is not known\n");
    }
}

fn one_line(statement: &str) -> String {
    let line = statement.split_whitespace().collect::<Vec<_>>().join(" ");
    shortened(&line, STATEMENT_MAX)
}

/// Returns the same as one object, thread by thread, and the groups by the threads' numbers.
pub fn stacks_json(stacks: &[StackNow]) -> Value {
    let thread = |stack: &StackNow| {
        let frames = stack.functions.iter().map(|function| {
            let (file, line) = function.source.clone().unzip();
            json!({"function": function.name, "module": function.module, "file": file, "line": line})
        });
        json!({
            "tid": stack.tid,
            "pid": stack.pid,
            "name": stack.name,
            "role": stack.role,
            "state": stack.state,
            "file": stack.file,
            "connection": stack.connection,
            "statement": stack.statement,
            "whole": stack.is_whole,
            "frames": frames.collect::<Vec<_>>(),
        })
    };
    let groups = stack_groups(stacks);
    let tids = groups.iter().map(|group| group.threads.iter().map(|thread| thread.tid).collect::<Vec<_>>());
    json!({
        "threads": stacks.iter().map(thread).collect::<Vec<_>>(),
        "groups": tids.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyso_profile::FunctionNow;

    fn example() -> Vec<StackNow> {
        let function = |name: &str, source| FunctionNow {
            name: name.to_string(),
            module: "mariadbd".to_string(),
            source,
        };
        let [name, role, state] = ["one_connection", "connection", "file_sync"].map(str::to_string);
        let thread = StackNow {
            tid: 12,
            pid: 10,
            name,
            role,
            state,
            file: Some("/data/ib_logfile0".into()),
            connection: Some(7),
            statement: Some("COMMIT".to_string()),
            functions: vec![
                function("log_write_up_to", Some(("log0log.cc".to_string(), 42))),
                function("start_thread", None),
            ],
            is_whole: true,
        };
        let runs = StackNow {
            tid: 11,
            state: "cpu".to_string(),
            file: None,
            statement: None,
            functions: Vec::new(),
            is_whole: false,
            ..thread.clone()
        };
        vec![thread.clone(), runs, StackNow { tid: 13, is_whole: false, ..thread }]
    }

    #[test]
    fn each_thread_is_shown_with_its_role_its_state_and_its_statement() {
        let expected = "\
Thread 11 \"one_connection\" (connection 7), cpu
   it was on a CPU whenever it was looked at: no stack

Thread 12 \"one_connection\" (connection 7), file sync of /data/ib_logfile0
   executes COMMIT
#0  log_write_up_to at log0log.cc:42
#1  start_thread in mariadbd

Thread 13 \"one_connection\" (connection 7), file sync of /data/ib_logfile0
   executes COMMIT
#0  log_write_up_to at log0log.cc:42
#1  start_thread in mariadbd
   the way on is not known

";
        assert_eq!(stacks(&example()), expected);
    }

    #[test]
    fn threads_at_one_place_are_shown_together() {
        let text = grouped_stacks(&example());
        assert!(
            text.starts_with("2 threads (2 connection), file sync\n   12, 13\n#0  log_write_up_to at"),
            "{text}"
        );
        assert!(text.contains("1 thread (1 connection), cpu\n   11\n"), "{text}");
    }

    #[test]
    fn programs_get_every_frame_and_the_groups() {
        let json = stacks_json(&example());
        assert_eq!(
            json["threads"][0]["frames"][0],
            json!({"function": "log_write_up_to", "module": "mariadbd", "file": "log0log.cc", "line": 42})
        );
        assert_eq!(json["groups"], json!([[12, 13], [11]]));
    }
}
