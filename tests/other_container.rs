//! Two copies of whyso that share folders and do not see each other's processes, as in two containers with one home.

mod common;

use std::process::{Command, Stdio};

use common::{Place, text};

/// The same command in a PID namespace of its own; `None` where that is not allowed here.
fn elsewhere(command: &Command) -> Option<Command> {
    let unshare = ["--pid", "--fork", "--mount-proc", "--kill-child"];
    let allowed = Command::new("unshare").args(unshare).arg("true").stderr(Stdio::null()).status();
    if !allowed.is_ok_and(|status| status.success()) {
        whyso_testing::not_tested("PID namespaces can't be created here");
        return None;
    }
    let mut other = Command::new("unshare");
    other.args(unshare).arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
    other.current_dir(command.get_current_dir().unwrap());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => other.env(name, value),
            None => other.env_remove(name),
        };
    }
    Some(other)
}

#[test]
#[ignore = "long: make test-hard"]
fn a_run_in_another_container_leaves_a_running_server_alone() {
    let place = Place::new();
    let short = ["--users", "1", "--seconds", "1", "--no-repeat", "--no-trace"];
    let Some(mut second) = elsewhere(&place.run(&short)) else { return };
    let long = ["--users", "1", "--seconds", "8", "--no-repeat", "--no-trace"];
    let first = place.run(&long).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    assert!(common::wait_until(common::SOON, || std::fs::read_dir(place.servers()).unwrap().count() == 1));
    let second = second.output().unwrap();
    assert!(second.status.success(), "{}", text(&second.stderr));
    let first = first.wait_with_output().unwrap();
    assert!(first.status.success(), "{}", text(&first.stderr));
    assert_eq!(std::fs::read_dir(place.servers()).unwrap().count(), 0);
}
