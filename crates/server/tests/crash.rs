//! What is left of a throw-away server when its owner is killed: nothing. This is a program of its
//! own: it starts itself as the owner, and kills that.

mod common;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use whyso_server::{ThrowAway, sweep};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, command, parent] = &arguments[..]
        && command == "own"
    {
        return own(Path::new(parent));
    }
    // each prints its name when it has passed; the first that fails ends the program with an error
    type Test = fn(&Path);
    let tests: [(&str, Test); 4] = [
        ("the supervisor clears up after a kill", the_supervisor_clears_up_after_a_kill),
        ("a kill while the data folder is prepared leaves nothing", a_kill_in_preparation_leaves_nothing),
        (
            "a sweep clears up where the supervisor was killed too",
            a_sweep_clears_up_where_the_supervisor_was_killed_too,
        ),
        ("a sweep ends no process but the one that was noted", a_sweep_ends_no_other_process),
    ];
    for (name, test) in tests {
        let parent = common::folder();
        test(parent.path());
        println!("{name} ... ok");
    }
}

/// Starts a server, says which, and waits to be killed.
fn own(parent: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = runtime.block_on(ThrowAway::start(common::spec(parent))).unwrap();
    println!("{}", server.pid().unwrap());
    loop {
        std::thread::sleep(Duration::from_secs(600));
    }
}

struct Owner {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Owner {
    fn start(parent: &Path) -> Owner {
        let program = std::env::current_exe().unwrap();
        let mut child = Command::new(program).arg("own").arg(parent).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Owner { child, output }
    }

    fn server_pid(&mut self) -> u32 {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().parse().unwrap()
    }

    fn keeper_pid(&self) -> u32 {
        let children = format!("/proc/{0}/task/{0}/children", self.child.id());
        let children = std::fs::read_to_string(children).unwrap();
        let keeper = children.split_whitespace().find(|pid| {
            std::fs::read_to_string(format!("/proc/{pid}/comm"))
                .is_ok_and(|name| name.trim() == "whyso-keeper")
        });
        keeper.unwrap().parse().unwrap()
    }
}

fn kill_9(pid: u32) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).unwrap();
}

/// Gone, or only its remains are there, for whoever inherited it.
fn is_gone(pid: u32) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['Z', 'X'])),
        Err(_) => true,
    }
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn folders(parent: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(parent).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn the_supervisor_clears_up_after_a_kill(parent: &Path) {
    let mut owner = Owner::start(parent);
    let server = owner.server_pid();
    let keeper = owner.keeper_pid();
    let shown = std::fs::read(format!("/proc/{keeper}/cmdline")).unwrap();
    assert!(shown.iter().all(|byte| *byte == 0), "the keeper shows none of its owner's arguments");
    assert!(!is_gone(server));
    kill_9(owner.child.id());
    owner.child.wait().unwrap();
    wait_until("the server ends", || is_gone(server));
    wait_until("the folder is removed", || folders(parent).is_empty());
    wait_until("the supervisor ends", || is_gone(keeper));
}

fn a_kill_in_preparation_leaves_nothing(parent: &Path) {
    let mut owner = Owner::start(parent);
    // the script has begun to write
    wait_until("the preparation begins", || {
        folders(parent).iter().any(|folder| folder.join("init.log").exists())
    });
    kill_9(owner.child.id());
    owner.child.wait().unwrap();
    wait_until("the folder is removed", || folders(parent).is_empty());
}

fn a_sweep_clears_up_where_the_supervisor_was_killed_too(parent: &Path) {
    let mut owner = Owner::start(parent);
    let server = owner.server_pid();
    kill_9(owner.keeper_pid());
    kill_9(owner.child.id());
    owner.child.wait().unwrap();
    assert!(!is_gone(server), "nobody has ended it yet");
    let swept = sweep(parent).unwrap();
    assert_eq!(swept.len(), 1);
    assert_eq!((swept[0].ended_pid, &swept[0].left_because), (Some(server), &None));
    assert!(is_gone(server));
    assert!(folders(parent).is_empty());
    assert_eq!(sweep(parent).unwrap(), []);
}

/// The number in a state file may belong to another process by now.
fn a_sweep_ends_no_other_process(parent: &Path) {
    let mut owner = Owner::start(parent);
    let server = owner.server_pid();
    let state_path = folders(parent)[0].join("state.json");
    kill_9(owner.keeper_pid());
    kill_9(owner.child.id());
    owner.child.wait().unwrap();
    let mut bystander = Command::new("sleep").arg("600").spawn().unwrap();
    let state = std::fs::read_to_string(&state_path).unwrap();
    let mut state: serde_json::Value = serde_json::from_str(&state).unwrap();
    state["server"]["pid"] = bystander.id().into();
    std::fs::write(&state_path, state.to_string()).unwrap();
    let swept = sweep(parent).unwrap();
    assert_eq!((swept.len(), swept[0].ended_pid), (1, None));
    assert!(bystander.try_wait().unwrap().is_none(), "it still runs");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
    kill_9(server);
    wait_until("the server ends", || is_gone(server));
}
