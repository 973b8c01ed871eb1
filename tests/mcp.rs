//! `whyso mcp` as an assistant talks to it: one JSON object a line, over pipes.

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};

use common::{Place, SOON, output};
use serde_json::{Value, json};

/// Longest answer: 4,000 tokens of tables have more bytes.
const ANSWER_BYTES_MAX: usize = 10_000;

struct Assistant {
    program: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    asked: u64,
}

impl Assistant {
    fn start(place: &Place, options: &[&str]) -> Assistant {
        let runs = place.runs();
        let mut command = place.whyso(&["mcp", "--runs", runs.to_str().unwrap()]);
        command.args(options);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut program = command.spawn().unwrap();
        let (send, lines) = channel();
        let stdout = BufReader::new(program.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let _ = send.send(line);
            }
        });
        let mut assistant = Assistant { stdin: program.stdin.take(), program, lines, asked: 0 };
        let client = json!({"name": "a test", "version": "1"});
        let begun = assistant.ask(
            "initialize",
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}),
        );
        assert!(begun["result"]["capabilities"]["tools"].is_object(), "{begun:#}");
        assert_eq!(begun["result"]["serverInfo"]["name"], "whyso");
        assistant.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assistant
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let line = self.lines.recv_timeout(SOON).expect("no answer");
            let answer: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
            if answer["id"] == id {
                return answer;
            }
        }
    }

    /// The text that a tool answers, and whether it is an error.
    fn call(&mut self, tool: &str, arguments: Value) -> (String, bool) {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer:#}")).to_string();
        assert!(text.len() <= ANSWER_BYTES_MAX, "{} bytes from {tool}", text.len());
        (text, result["isError"] == true)
    }

    fn call_well(&mut self, tool: &str, arguments: Value) -> String {
        let (text, is_error) = self.call(tool, arguments);
        assert!(!is_error, "{tool}: {text}");
        text
    }
}

impl Drop for Assistant {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

#[test]
fn an_assistant_finds_the_cause_and_changes_nothing() {
    let place = Place::new();
    let script = "BEGIN;\nUPDATE sbtest1 SET k = k + 1 WHERE id = 7;\nSELECT SLEEP(0.002);\nCOMMIT;\n";
    fs::write(place.path().join("hot.sql"), script).unwrap();
    let options =
        ["--users", "1,8", "--seconds", "4", "--no-repeat", "--allow-writes", "whyso", "--trace-sql"];
    let run = output(
        &mut place.run_of("hot.sql", &[&options[..], &["--stacks=light", "--pfs", "statements"]].concat()),
    );
    assert!(run.status.success(), "{}", common::text(&run.stderr));
    let id = place.only_run().file_name().unwrap().to_str().unwrap().to_string();
    let before = listing(&place);

    let mut assistant = Assistant::start(&place, &[]);
    let tools = assistant.ask("tools/list", json!({}));
    let tools = tools["result"]["tools"].as_array().unwrap().clone();
    for tool in &tools {
        let name = tool["name"].as_str().unwrap();
        assert_eq!(tool["annotations"]["readOnlyHint"], true, "{name}");
        assert!(!["ab", "prove"].contains(&name), "experiments were not permitted");
        assert!(tool["description"].as_str().is_some_and(|text| text.len() > 40), "{name}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{name}");
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{name}");
    }
    assert!(assistant.call_well("list_runs", json!({})).contains(&id));
    assert!(assistant.call_well("list_runs", json!({"find": "nothing has this"})).contains("no run"));
    let why = assistant.call_well("explain_run", json!({}));
    assert!(why.contains("row-lock") && why.contains("whyso.sbtest1"), "{why}");
    assert!(assistant.call_well("time_budget", json!({"users": 8})).contains("At 8 users"));
    assert!(assistant.call_well("locks", json!({"run": id, "users": 8})).contains("whyso.sbtest1 (PRIMARY)"));
    assert!(assistant.call_well("statements", json!({"limit": 3})).contains("UPDATE sbtest1"));
    assert!(assistant.call_well("performance_schema", json!({})).contains("digests"));
    let digests = assistant.call_well("performance_schema", json!({"view": "digests", "users": 8}));
    assert!(digests.to_lowercase().contains("sbtest1"), "{digests}");
    assert!(!assistant.call_well("functions", json!({"users": 8, "limit": 5})).is_empty());
    let (compared, _) = assistant.call("compare", json!({"first": [id], "second": [id]}));
    assert!(!compared.is_empty());

    for (tool, arguments, words) in [
        ("explain_run", json!({"run": "no-such-run"}), "there is no run no-such-run"),
        ("explain_run", json!({"run": "../../etc"}), "is a path"),
        ("explain_run", json!({"run": "--help"}), "begin with -"),
        ("locks", json!({"users": 77}), "no such level"),
        ("locks", json!({"window": "--json"}), "begin with -"),
        ("performance_schema", json!({"view": "no-such-view"}), "is no view"),
    ] {
        let (text, is_error) = assistant.call(tool, arguments.clone());
        assert!(is_error && text.contains(words), "{tool} {arguments}: {text}");
    }
    assert_eq!(listing(&place), before, "nothing was written");

    // The end of its input is the end of the program.
    drop(assistant.stdin.take());
    assert!(common::wait_until(SOON, || assistant.program.try_wait().unwrap().is_some()));
    assert!(assistant.program.wait().unwrap().success());

    let mut permitted = Assistant::start(&place, &["--allow-experiments"]);
    let planned = permitted.call_well("prove", json!({"dry_run": true, "accept": ["semantics"]}));
    assert!(planned.contains("row-lock") && planned.contains("costs     semantics"), "{planned}");
    let (refused, is_error) = permitted.call("ab", json!({"versus_settings": ["--dsn"]}));
    assert!(is_error && refused.contains("begin with -"), "{refused}");
    let (refused, is_error) = permitted.call("ab", json!({"workload": "a.sql", "versus_settings": ["a=1"]}));
    assert!(is_error && refused.contains("is a file"), "{refused}");
    assert_eq!(listing(&place), before, "a plan writes nothing");
}

/// Every file below the folder of runs with its size and time.
fn listing(place: &Place) -> Vec<(String, u64, std::time::SystemTime)> {
    let mut files = Vec::new();
    let mut folders = vec![place.runs()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let about = entry.metadata().unwrap();
            if about.is_dir() {
                folders.push(entry.path());
            } else {
                files.push((entry.path().display().to_string(), about.len(), about.modified().unwrap()));
            }
        }
    }
    files.sort();
    files
}
