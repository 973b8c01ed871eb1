//! `whyso sysbench` in place of sysbench: what programs read of it, and scripts that take their time.

mod common;

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use common::sysbench::{Server, line_shape};
use common::{SOON, finish, spawn};

/// What is printed but for numbers, the spaces that align them, and the version of LuaJIT.
fn shape(text: &str) -> Vec<String> {
    text.lines().map(|line| line_shape(line.split(" (using ").next().unwrap_or(line))).collect()
}

const QUERIES: &str = "function thread_init() con = sysbench.sql.driver():connect() end
function event() con:query('SELECT 1') end
function prepare() print('prepares') end
sysbench.cmdline.options = { own = {'an option', 5} }";
const NOTHING: &str = "function event() end\nfunction cleanup() error('no') end";
const RAISES: &str = "function event() error('boom') end\nfunction init() print(sysbench.tid) end";
const RAISES_LATE: &str = "function event() end\nfunction thread_done() error('late') end";
const MISSING: &str = "function event() sysbench.sql.driver():connect():query('SELECT * FROM nothing') end
function prepare() sysbench.sql.driver():connect():prepare('SELECT * FROM nothing') end
function cleanup()
   local con = sysbench.sql.driver():connect()
   con:disconnect()
   con:query('SELECT 1')
end";
const SLEEPS: &str = "ffi.cdef('int usleep(unsigned int);')\nfunction event() ffi.C.usleep(1000000000) end";

#[test]
#[ignore = "long: make test-hard"]
fn both_streams_equal_sysbench_s_but_for_numbers() {
    let server = Server::start();
    let no_server = ["--mysql-socket=/nowhere", "run"];
    let cases: &[(&str, &[&str])] = &[
        (QUERIES, &["--events=3", "run"]),
        (QUERIES, &["--events=3", "--verbosity=0", "run"]),
        (QUERIES, &["--events=3", "--verbosity=1", "--histogram=off", "run"]),
        (QUERIES, &["--events=3", "--threads=2", "--rand-seed=3", "--percentile=0", "run"]),
        // Reports do not fall together: sysbench's threads print them in any order then.
        (QUERIES, &["--time=2", "--report-checkpoints=1", "--verbosity=4", "run"]),
        (QUERIES, &["--time=3", "--report-interval=2", "run"]),
        (QUERIES, &["prepare"]),
        (QUERIES, &["--verbosity=2", "prepare"]),
        (QUERIES, &["cleanup"]),
        (QUERIES, &["--unknown=1", "prepare"]),
        (QUERIES, &["help"]),
        (QUERIES, &["other"]),
        (QUERIES, &[]),
        (QUERIES, &["--mysql-dry-run", "--events=4", "run"]),
        (QUERIES, &no_server),
        (NOTHING, &["--events=3", "--num-threads=2", "run"]),
        (NOTHING, &["--unknown=1", "--events=3", "run"]),
        (NOTHING, &["cleanup"]),
        (RAISES, &["run"]),
        (RAISES, &["--verbosity=0", "--threads=2", "run"]),
        (RAISES_LATE, &["--events=1", "--verbosity=0", "run"]),
        (MISSING, &["run"]),
        (MISSING, &["prepare"]),
        (MISSING, &["cleanup"]),
        (SLEEPS, &["--time=1", "--forced-shutdown=1", "run"]),
        ("x y", &["run"]),
        ("function x() end", &["run"]),
    ];
    for (script, arguments) in cases {
        fs::write(server.place.path().join("test.lua"), script).unwrap();
        let arguments = [&["test.lua"][..], *arguments].concat();
        assert_equal(&server, &arguments, script);
    }
    for arguments in [
        &["cpu", "--events=5", "--verbosity=4", "run"][..],
        &["cpu", "--time=3", "--report-interval=2", "run"],
        &["cpu", "help"],
        &["cpu"],
        &["cpu", "prepare"],
        &["cpu", "--rate=2000000000", "--verbosity=1", "run"],
        &["fileio"],
        &["fileio", "--unknown", "prepare"],
        &["missing", "run"],
        &["a", "b", "c"],
        &["--threads=0", "test.lua", "run"],
        &["--events=x", "test.lua", "run"],
        &["--verbosity=9", "test.lua", "run"],
    ] {
        assert_equal(&server, arguments, "");
    }
}

fn assert_equal(server: &Server, arguments: &[&str], script: &str) {
    let (theirs, ours) = (server.real_sysbench(arguments), server.sysbench(arguments));
    let outputs = format!("{arguments:?}\n{script}\n{}\n{}", ours.out, ours.err);
    assert_eq!(shape(&ours.out), shape(&theirs.out), "{outputs}");
    assert_eq!(shape(&ours.err), shape(&theirs.err), "{outputs}");
    // sysbench ends with 0 where thread_done() failed.
    if !script.contains("thread_done()") {
        assert_eq!(ours.status, theirs.status, "{outputs}");
    }
}

/// Computes for so many seconds.
const COMPUTES: &str = "local function compute(seconds)
   local until_time, i = os.clock() + seconds, 0
   while os.clock() < until_time do i = i + 1 end
end
";

#[test]
#[ignore = "long: make test-hard"]
fn a_command_that_computes_for_long_is_warned_of_and_not_ended() {
    let server = Server::start();
    let script = format!(
        "{COMPUTES}function all() compute(2.5) print('done', sysbench.tid) end
function prepare() compute(2.5) print('done alone') end
sysbench.cmdline.commands = {{ all = {{ all, sysbench.cmdline.PARALLEL_COMMAND }} }}"
    );
    let ran = server.script(&script, &["--turn-timeout=1", "--verbosity=4", "prepare"]);
    ran.expect(0, &["done alone\n"]);
    assert_eq!(ran.err, "", "nobody waits for it");
    let parallel = ["--turn-timeout=1", "--threads=3", "--engine=epoll"];
    let ran = server.script(&script, &[&parallel[..], &["--verbosity=4", "all"]].concat());
    ran.expect(0, &["done\t0\n", "done\t1\n", "done\t2\n", "whyso: warning: the script has run for 1 s"]);
    let ran = server.script(&script, &[&parallel[..], &["all"]].concat());
    ran.expect(0, &[]);
    assert_eq!(ran.err, "", "a program that reads both streams sees no remark");
}

#[test]
fn an_event_without_end_is_ended_where_others_wait_for_it_or_the_time_is_over() {
    let server = Server::start();
    let script = "function thread_init() con = sysbench.sql.driver():connect() end
function event(tid)
   local i = 0
   while tid == 0 do i = i + 1 end
   con:query('SELECT 1')
end";
    // One that catches what is raised in it.
    let catches = script.replace("i = i + 1", "pcall(string.rep, 'x', 10)");
    let why = "the script ran for too long without a query";
    let began = Instant::now();
    // Without a limit on the time: it is ended because the others of its loop can't work.
    let starves = ["--turn-timeout=1", "--threads=6", "--engine=epoll", "--time=0", "run"];
    server
        .script(script, &starves)
        .expect(1, &[&format!("FATAL: `thread_run' function failed: test.lua:4: {why}")]);
    server.script(&catches, &starves).expect(1, &["FATAL: `thread_run' function failed: ", why]);
    // With threads nobody waits for it: it is ended after the run's time.
    let outlives = ["--turn-timeout=1", "--threads=2", "--engine=threads", "--time=2", "run"];
    server.script(&catches, &outlives).expect(1, &["FATAL: `thread_run' function failed: ", why]);
    assert!(began.elapsed() < SOON);
}

#[test]
fn a_shell_command_of_a_script_does_not_hold_up_other_users() {
    let server = Server::start();
    let script = "function all()
   print('begins', sysbench.tid)
   print('status', os.execute('sleep 2; exit 3'))
end
sysbench.cmdline.commands = { all = { all, sysbench.cmdline.PARALLEL_COMMAND } }";
    let ran = server.script(script, &["--threads=4", "--engine=epoll", "all"]);
    ran.expect(0, &["status\t768\n"]);
    let first_status = ran.out.find("status").unwrap();
    assert_eq!(ran.out[..first_status].matches("begins").count(), 4, "{}", ran.out);
}

#[test]
fn an_interruption_ends_whatever_a_script_does() {
    let server = Server::start();
    let socket = format!("--mysql-socket={}", server.own.socket().display());
    for (script, command) in [
        ("function prepare() while true do end end", "prepare"),
        ("function prepare() os.execute('sleep 1000') end", "prepare"),
        ("function event() while true do end end", "run"),
    ] {
        fs::write(server.place.path().join("test.lua"), script).unwrap();
        let mut child = server.place.whyso(&["sysbench", &socket, "--time=0", "test.lua", command]);
        let child = spawn(&mut child);
        std::thread::sleep(Duration::from_secs(2));
        let pid = i32::try_from(child.id()).unwrap();
        let sent = Command::new("kill").args(["-INT", &pid.to_string()]).status().unwrap();
        assert!(sent.success());
        let output = finish(child, SOON);
        assert_eq!(output.status.code(), Some(130), "{script}\n{}", String::from_utf8_lossy(&output.stderr));
    }
}
