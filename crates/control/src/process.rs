//! Processes of servers and of a cluster's programs, which may end and come back as others.

use std::path::Path;
use std::time::Duration;

use whyso_server::Dsn;
use whyso_server::answers::{log_out, within};
use whyso_watch::server_facts;

/// Bound on asking a server which process it is.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(5);

/// Checks that `/proc` has the processes of the PID namespace that this program runs in: else their numbers mean other processes there.
///
/// # Errors
/// It has those of another one; the message says what to do.
pub fn check_processes() -> Result<(), crate::Error> {
    whyso_trace::check_proc().map_err(|error| whyso_tracing::Error::from(error).into())
}

/// Another process may have the number later: the time of its start distinguishes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    start_ticks: u64,
}

impl Process {
    /// The process that has this number now; `None` where there is none, or it has ended.
    pub(crate) fn now(pid: u32) -> Option<Process> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name stands in parentheses, and may contain any.
        let (_, fields) = stat.rsplit_once(") ")?;
        let mut fields = fields.split(' ');
        // Nothing runs in a process that has ended and was not collected yet.
        let state = fields.next()?;
        let start_ticks = fields.nth(22 - 4)?.parse().ok()?;
        (state != "Z").then_some(Process { pid, start_ticks })
    }

    pub(crate) fn lives(self) -> bool {
        Process::now(self.pid) == Some(self)
    }
}

/// Which process a server is now; `None` where it does not answer yet.
pub(crate) async fn of_server(dsn: &Dsn) -> Option<u32> {
    let asked = within(ANSWER_TIME_MAX, dsn, "finding its process", async {
        let mut conn = dsn.connect_without_schema().await?;
        let facts = server_facts(&mut conn, &dsn.endpoint(), false, dsn.server_pid()).await?;
        log_out(conn).await;
        Ok::<_, crate::Error>(facts.pid)
    });
    asked.await.ok().flatten()
}

/// A data node's first start has this argument, and no later one.
const FIRST_START: &[u8] = b"--initial";

/// How a process was started, and is started again; empty where it has ended.
pub(crate) fn command_line(pid: u32) -> Vec<Vec<u8>> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let arguments = line.split(|byte| *byte == 0).filter(|argument| !argument.is_empty());
    arguments.filter(|argument| *argument != FIRST_START).map(<[u8]>::to_vec).collect()
}

/// A process that was started by the same command; `None` where there is none, or the command is empty.
pub(crate) fn started_by(command: &[Vec<u8>]) -> Option<u32> {
    if command.is_empty() {
        return None;
    }
    let all = std::fs::read_dir(Path::new("/proc")).ok()?;
    let mut pids = all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.find(|pid| command_line(*pid) == command)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_process_is_known_while_it_lives() {
        let own = Process::now(std::process::id()).unwrap();
        assert!(own.start_ticks > 0 && own.lives());
        assert_eq!(Process::now(u32::MAX), None);
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while Process::now(child.id()).is_some() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(Process::now(child.id()), None, "it has ended, and nobody has collected it");
        child.wait().unwrap();
    }

    #[test]
    fn a_program_is_found_by_its_command_also_after_its_first_start() {
        let start = |arguments: &[&str]| {
            // It waits for a line that never comes.
            let mut sh = std::process::Command::new("sh");
            sh.args(["-c", "read line", "whyso-found-by-command"]).args(arguments);
            sh.stdin(std::process::Stdio::piped()).spawn().unwrap()
        };
        let deadline = Instant::now() + Duration::from_secs(10);
        // Until it has become the program, it has this one's command.
        let command_of = |child: &std::process::Child| loop {
            let command = command_line(child.id());
            if command.first().is_some_and(|program| program == b"sh") || Instant::now() > deadline {
                break command;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let end = |mut child: std::process::Child| {
            child.kill().unwrap();
            child.wait().unwrap();
        };
        let first = start(&["--initial", "--id=1"]);
        let command = command_of(&first);
        assert_eq!(command.last().map(Vec::as_slice), Some(&b"--id=1"[..]));
        end(first);
        assert_eq!(started_by(&command), None);
        assert_eq!(started_by(&[]), None);
        let (other, second) = (start(&["--id=2"]), start(&["--id=1"]));
        command_of(&second);
        let (found, pid) = (started_by(&command), second.id());
        end(other);
        end(second);
        assert_eq!(found, Some(pid));
    }
}
