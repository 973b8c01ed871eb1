//! `whyso sysbench` from end to end: scripts on a real server, and what is printed.

mod common;

use std::fs;

use common::Place;
use common::sysbench::{Ran, Server};

/// What a script can call, each with what it must print.
const SURFACE: &str = include_str!("../crates/sysbench/tests/surface.lua");

#[test]
fn a_script_finds_every_function_that_it_may_call() {
    let server = Server::start();
    for mode in ["auto", "disable"] {
        let mode = format!("--db-ps-mode={mode}");
        let ran =
            server.script(SURFACE, &[&mode, "--flag", "--list=a,b", "--size=2K", "--rand-seed=1", "run"]);
        ran.expect(
            0,
            &[
                "body sees opt\tnil\n",
                "objects\t<sql_driver>\t<sql_connection>\tmysql\t0\t0\t1.0.20\n",
                "options\ttrue\t1.5\tx\tb\t\t2048\troot\t1\n",
                "rows\t<sql_result>\t2\t3\t1\tnil\tx\t3\tnil\n",
                "no result\t<sql_result>\ttrue\t0\n",
                "query_row\t1\tnil\t2.50\n",
                "query_row of none\tnil\n",
                "execute\t<sql_statement>\t<sql_param>\ttrue\n",
                "bound\t7\t1.5\thello\t1\n",
                "null\tnil\tit's \n",
                "closed\tfalse\t",
                "bulk\t60000\t61000\n",
                "first result\t1\ttrue\n",
                "second result\t2\t3\n",
                "error\tfalse\ttest.lua:42: SQL error, errno = 1146, state = '42S02': Table 'sbtest.missing' doesn't exist\n",
                "error fields\t2\t1146\t42S02\tTable 'sbtest.missing' doesn't exist\n",
                "dates\tfalse\tUnsupported argument type: 8\n",
                "after reconnect\t5\n",
                "random\ttrue\tcdata\ttrue\t5\n",
                "legacy\t5\t0\n",
                "|**************************************** 2\n",
                "|********************                     1\n",
                "globals\tabc\t3\t1\t2\n",
                "unserved\tfalse\ttest.lua:65: the C symbol 'sb_event_start' is not served",
                "prepared row\t1\t1\t3\t7\t1.5\thello\tnil\n",
                "prepared row\t2\t1\t3\t7\t1.5\thello\tnil\n",
                "prepared row\t3\t1\t3\t7\t1.5\thello\tnil\n",
                "prepared row\t4\t7\t1.5\thello\n",
                "prepared row\t5\t7\t1.5\thello\n",
                "second connection\tfalse\tone user has one connection at a time here",
                "done\t0\t4\ttrue\n",
                "ALERT: attempt to use an already closed connection\n",
                "after disconnect\tfalse\ttest.lua:91: SQL API error\n",
                "hook\t3\t",
            ],
        );
    }
}

#[test]
fn what_a_script_raises_is_printed_with_its_file_and_line() {
    let server = Server::start();
    let ran = server.script("function event() error('boom') end", &["--verbosity=4", "run"]);
    ran.expect(1, &["FATAL: `thread_run' function failed: test.lua:1: boom", "stack traceback"]);
    let ran = server
        .script("con = nil\nfunction thread_init()\n missing.call()\nend\nfunction event() end", &["run"]);
    ran.expect(1, &["`thread_init' function failed: test.lua:3: attempt to index global 'missing'"]);
    let ran = server.script("function x( end", &["run"]);
    ran.expect(1, &["FATAL: test.lua:1:"]);
    let ran = server.script("function thread_init() end", &["run"]);
    ran.expect(1, &["cannot find the event() function in test.lua"]);
    let ran = server.script(
        "function event() sysbench.sql.driver():connect():query('SELECT * FROM nothing_here') end",
        &["run"],
    );
    ran.expect(1, &[
        "FATAL: mysql_drv_query() returned error 1146 (Table 'sbtest.nothing_here' doesn't exist) for query",
        "SQL error, errno = 1146, state = '42S02'",
    ]);
    assert!(!ran.out.contains("SQL statistics:"), "a run that failed has no report: {}", ran.out);
}

#[test]
fn ignored_errors_begin_the_event_again_after_the_hook() {
    let server = Server::start();
    let text = r#"
function thread_init() con = sysbench.sql.driver():connect() count = 0 end
function event()
   count = count + 1
   con:query("BEGIN")
   if count % 2 == 1 then con:query("SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1205, MESSAGE_TEXT = 'made up'") end
   con:query("COMMIT")
end
function sysbench.hooks.before_restart_event(err)
   print("hook", err.sql_errno, err.sql_state, err.sql_errmsg, err.connection == con, err.errcode)
end
"#;
    let ran = server.script(text, &["--events=3", "--time=0", "--verbosity=4", "run"]);
    ran.expect(0, &["hook\t1205\t45000\tmade up\ttrue\t1\n", "a ROLLBACK was sent"]);
    assert_eq!((ran.number("transactions:"), ran.number("ignored errors:")), (3.0, 3.0), "{}", ran.out);
    let hook = "function sysbench.hooks.sql_error_ignorable(err) return err.sql_errno == 1644 end\n";
    let text = format!("{hook}{}", text.replace("1205", "1644"));
    server.script(&text, &["--events=3", "--time=0", "run"]).expect(0, &["hook\t1644\t45000"]);
}

#[test]
fn a_lost_connection_that_is_ignored_is_made_again() {
    let server = Server::start();
    let text = r#"
function thread_init() con = sysbench.sql.driver():connect() make() done = false end
function make() stmt = con:prepare("SELECT 1") end
function event()
   if not done then done = true con:query("KILL CONNECTION_ID()") end
   stmt:execute()
end
function sysbench.hooks.before_restart_event(err) print("hook", err.sql_errno) stmt:close() make() end
"#;
    let ran =
        server.script(text, &["--mysql-ignore-errors=2013,2006,1317,1927", "--events=3", "--time=0", "run"]);
    ran.expect(0, &["hook\t"]);
    assert_eq!(ran.number("transactions:"), 3.0, "{}", ran.out);
}

#[test]
fn commands_run_once_or_once_a_thread() {
    let server = Server::start();
    let text = r#"
sysbench.cmdline.options = { what = {"what to say", "hello"} }
function prepare() print("prepare", sysbench.tid, sysbench.opt.what) end
function all() print("all", sysbench.tid) sysbench.sql.driver():connect():query("SELECT 1") end
sysbench.cmdline.commands = { all = { all, sysbench.cmdline.PARALLEL_COMMAND } }
"#;
    let ran = server.script(text, &["--threads=3", "--what=you", "prepare"]);
    ran.expect(0, &["prepare\t0\tyou\n"]);
    assert_eq!(ran.out.matches("prepare\t").count(), 1);
    let ran = server.script(text, &["--threads=3", "all"]);
    ran.expect(0, &["all\t0\n", "all\t1\n", "all\t2\n"]);
    server.script(text, &["help"]).expect(0, &["test.lua options:\n  --what=STRING what to say [hello]\n"]);
    server
        .script(text, &["cleanup"])
        .expect(1, &["'test.lua' test does not implement the 'cleanup' command."]);
    server.script(text, &["other"]).expect(1, &["Unknown command: other"]);
    server.script(text, &["--bogus=1", "all"]).expect(1, &["invalid option: --bogus=1"]);
}

#[test]
fn the_same_seed_sends_the_same_and_another_does_not() {
    let server = Server::start();
    let text = r##"
function thread_init() con = sysbench.sql.driver():connect() end
function event() io.write(sysbench.rand.default(1, 1000000), " ", sysbench.rand.string("#-#-#"), "\n") con:query("SELECT 1") end
"##;
    let drawn = |seed: &str| {
        let ran = server.script(text, &["--events=20", "--time=0", seed, "--verbosity=0", "run"]);
        assert_eq!(ran.out.lines().count(), 20, "{}", ran.out);
        ran.out
    };
    assert_eq!(drawn("--rand-seed=7"), drawn("--rand-seed=7"));
    assert_ne!(drawn("--rand-seed=7"), drawn("--rand-seed=8"));
}

#[test]
fn schedules_checkpoints_and_json_are_served() {
    let server = Server::start();
    let text = "function thread_init() con = sysbench.sql.driver():connect() end\nfunction event() con:query('SELECT 1') end";
    let json = server.place.path().join("out.json");
    let json_option = format!("--json={}", json.display());
    let ran = server.script(
        text,
        &[
            "--rate=200",
            "--threads=2",
            "--time=2",
            "--report-interval=1",
            "--report-checkpoints=1",
            "--percentile=99",
            &json_option,
            "run",
        ],
    );
    ran.expect(
        0,
        &[
            "Target transaction rate: 200/sec",
            "[ 1s ] queue length: ",
            "[ 1s ] Checkpoint report:",
            "99th percentile:",
        ],
    );
    let object: serde_json::Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let level = &object["levels"][0];
    assert!(
        level["transactions"].as_f64().unwrap() > 300.0 && level["latency_ms"]["p99"].as_f64().unwrap() > 0.0,
        "{level}"
    );
    for field in
        ["workload", "users", "seconds", "queries", "errors", "queries_per_s", "service_ms", "client"]
    {
        assert!(!level[field].is_null(), "{field}");
    }
}

#[test]
fn the_old_command_line_is_translated_and_run() {
    let server = Server::start();
    let old = [
        "--test=oltp",
        "--oltp-table-size=500",
        "--oltp-dist-type=uniform",
        "--mysql-table-engine=innodb",
        "--num-threads=2",
        "--max-requests=50",
    ];
    server.sysbench(&[&old[..], &["prepare"]].concat()).expect(
        0,
        &["today it is: sysbench oltp_read_write --mysql-socket=", "--table_size=500 --rand-type=uniform"],
    );
    let ran = server.sysbench(&[&old[..], &["run"]].concat());
    ran.expect(
        0,
        &[
            "--rand-type=uniform",
            "--events=50 --time=0",
            "WARNING: --num-threads is deprecated, use --threads instead",
        ],
    );
    assert_eq!(ran.number("transactions:"), 50.0);
}

#[test]
fn init_done_and_report_hooks_may_use_a_connection() {
    let server = Server::start();
    let text = r#"
local function note(text)
   sysbench.sql.driver():connect():query("INSERT INTO notes VALUES ('" .. text .. "')")
end
function init()
   assert(sysbench.opt.threads == 2)
   sysbench.sql.driver():connect():query("CREATE TABLE notes (note VARCHAR(20))")
   greeting = "hello"
end
function thread_init() con = sysbench.sql.driver():connect() end
function event() con:query("SELECT * FROM notes") end
function sysbench.hooks.report_cumulative(stat) note("events " .. stat.events) end
function done() note(greeting) end
"#;
    server.script(text, &["--threads=2", "--events=10", "--time=0", "run"]).expect(0, &[]);
    let notes = server.own.sql("SELECT GROUP_CONCAT(note ORDER BY note) FROM sbtest.notes");
    assert_eq!(notes, "events 10,hello");
    let ran =
        server.script("function event() end\nfunction init()\n error('no')\nend", &["--verbosity=4", "run"]);
    ran.expect(1, &["FATAL: `init' function failed: test.lua:3: no", "stack traceback"]);
    let failing =
        "function event() end\nfunction done() sysbench.sql.driver():connect():query('SELECT oops') end";
    server
        .script(failing, &["--events=1", "run"])
        .expect(1, &["FATAL: `done' function failed: test.lua:2: SQL error"]);
    let text = "con = sysbench.sql.driver():connect()\nfunction event() print(con:query_row('SELECT 7')) end";
    server.script(text, &["--events=1", "run"]).expect(0, &["\n7\n"]);
}

#[test]
fn a_connection_that_nothing_refers_to_gives_way_to_the_next() {
    let server = Server::start();
    let text = r#"
local function connection_id() return (sysbench.sql.driver():connect():query_row("SELECT CONNECTION_ID()")) end
function prepare()
   local first, second = connection_id(), connection_id()
   print("another", first ~= second)
   con = sysbench.sql.driver():connect()
   print("beside", pcall(connection_id))
   con:disconnect()
   print("after", pcall(connection_id))
end
"#;
    let ran = server.script(text, &["prepare"]);
    ran.expect(
        0,
        &["another\ttrue", "beside\tfalse\t", "close it by con:disconnect() first", "after\ttrue\t"],
    );
}

#[test]
fn what_is_not_served_is_reported() {
    let place = Place::new();
    Ran::of(&place, &["sysbench", "fileio", "prepare"])
        .expect(1, &["puts no load on a database server and is not served"]);
    Ran::of(&place, &["sysbench", "--version"]).expect(0, &["sysbench 1.0.20\n"]);
    Ran::of(&place, &["sysbench", "--help"])
        .expect(0, &["--mysql-ignore-errors=[LIST,...]", "[1213,1020,1205]"]);
    Ran::of(&place, &["sysbench", "no_such_test", "run"])
        .expect(1, &["Cannot find benchmark 'no_such_test'"]);
    Ran::of(&place, &["sysbench", "--threads=0", "no_such_test", "run"]).expect(1, &["--threads: 0"]);
    let missing = place.path().join("missing");
    fs::write(place.path().join("t.lua"), "function event() sysbench.sql.driver():connect() end").unwrap();
    let socket = format!("--mysql-socket={}", missing.display());
    Ran::of(&place, &["sysbench", &socket, "t.lua", "run"]).expect(
        1,
        &[
            "FATAL: unable to connect to MySQL server on socket '",
            "FATAL: error 2002: Can't connect to local server through socket '",
            "FATAL: `thread_run' function failed: t.lua:1: connection creation failed",
        ],
    );
}
