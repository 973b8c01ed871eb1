//! Passwords of the command line are not in the process list, whatever the program's capabilities.

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use common::Place;
use common::capable::{as_nobody, become_nobody, for_nobody, program_for_nobody};

const SECRET: &str = "ver borgen%21";

/// Starts the program. Returns its first message, and what the process list shows of it then.
fn first_line_and_process_list(command: &mut Command) -> (String, String) {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut message = String::new();
    let mut messages = BufReader::new(child.stderr.take().unwrap());
    messages.read_line(&mut message).unwrap();
    let shown = fs::read(format!("/proc/{}/cmdline", child.id())).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    (message, String::from_utf8_lossy(&shown).replace('\0', " "))
}

/// Every subcommand that takes a DSN, at a server that never answers.
fn subcommands(dsn: &str) -> Vec<Vec<&str>> {
    let mut all = vec![
        vec!["run", "oltp-point-select", "--dsn", dsn],
        vec!["load", "oltp-point-select", "--dsn", dsn],
        vec!["record", "--dsn", dsn],
        vec!["locks", "--dsn", dsn],
        vec!["threads", "--dsn", dsn],
        vec!["stacks", "--dsn", dsn],
        vec!["watch", "--dsn", dsn],
        vec!["server", "undo", "--dsn", dsn],
        vec!["add-on", "check", "example", "--dsn", dsn],
        vec!["sysbench", "oltp_read_only", "--mysql-host=127.0.0.1", "--mysql-password=ver borgen%21", "run"],
    ];
    all.push(vec!["record", "--process", "1", "--", "true", "mariadb", "--password=ver borgen%21"]);
    all
}

#[test]
fn every_subcommand_overwrites_the_password_and_warns_with_and_without_capabilities() {
    let place = Place::new();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let dsn = format!("mysql://bench:{SECRET}@{}/", silent.local_addr().unwrap());
    for has_capabilities in [false, true] {
        let Some(program) = program_for_nobody(&place, has_capabilities) else { return };
        for args in subcommands(&dsn) {
            let (message, shown) = first_line_and_process_list(&mut as_nobody(&place, &program, &args));
            let whom = format!("{args:?}, capabilities: {has_capabilities}: {shown}: {message}");
            assert!(message.contains("warning") && message.contains("MYSQL_PWD"), "{whom}");
            assert!(!shown.contains("borgen") && !message.contains("borgen"), "{whom}");
            // Those that need no answer have ended.
            assert!(shown.contains("xxxx") || ["watch", "add-on"].contains(&args[0]), "{whom}");
        }
    }
    // What can't be understood is quoted, but not the password in it.
    let dsn_without_flag = place.whyso(&["locks", "one", &dsn]).output().unwrap();
    let message = common::text(&dsn_without_flag.stderr);
    assert!(message.contains("bench:***@") && !message.contains("borgen"), "{message}");
}

/// Makes the kernel refuse the one system call by which a process that may not open its memory can write there.
fn forbid_process_vm_writev(command: &mut Command) {
    let instruction =
        |code: u32, k: u32, jump: u8| libc::sock_filter { code: code as u16, jt: 0, jf: jump, k };
    let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    // SAFETY: only system calls on memory that the closure owns.
    unsafe {
        command.pre_exec(move || {
            let mut filter = [
                instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
                instruction(
                    libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
                    libc::SYS_process_vm_writev as u32,
                    1,
                ),
                instruction(libc::BPF_RET | libc::BPF_K, refused, 0),
                instruction(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0),
            ];
            let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
            match libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
}

#[test]
fn a_password_that_can_not_be_overwritten_is_refused_and_one_in_the_environment_is_not() {
    let place = Place::new();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let Some(program) = program_for_nobody(&place, true) else { return };
    let run = |program: &Path, dsn: &str| {
        let mut command = for_nobody(&place, program, &["load", "oltp-point-select", "--dsn", dsn]);
        forbid_process_vm_writev(command.env("MYSQL_PWD", "verborgen"));
        become_nobody(&mut command, &[]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut message = String::new();
        child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
        (child.wait().unwrap().code(), message)
    };
    let (status, message) = run(&program, &format!("mysql://bench:{SECRET}@{address}/?connect_timeout=1"));
    assert_eq!(status, Some(2), "{message}");
    assert!(
        message.contains("MYSQL_PWD") && message.contains("~/.my.cnf") && !message.contains("borgen"),
        "{message}"
    );
    assert_eq!(message.lines().count(), 1, "{message}");
    let (_, message) = run(&program, &format!("mysql://bench@{address}/?connect_timeout=1"));
    assert!(message.contains("cannot reach") && !message.contains("warning"), "{message}");
    // Without capabilities the process may open its own memory.
    let plain = program_for_nobody(&place, false).unwrap();
    let (_, message) = run(&plain, &format!("mysql://bench:{SECRET}@{address}/?connect_timeout=1"));
    assert!(message.contains("warning") && message.contains("cannot reach"), "{message}");
}
