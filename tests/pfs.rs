//! The Performance Schema's views of a run, against what the load sent.

mod common;

use std::fs;
use std::io::Read;

use base64::Engine;
use common::{Place, json_of, output, text};
use serde_json::Value;

const SCRIPT: &str = "SELECT c FROM sbtest1 WHERE id = 7;\nUPDATE sbtest2 SET k = k + 1 WHERE id = 9;\n";

/// A run of two statements a transaction at 1 and 4 users, on a throw-away server whose Performance Schema counts.
fn recorded(place: &Place) -> String {
    fs::write(place.path().join("two.sql"), SCRIPT).unwrap();
    let levels = ["--users", "1,4", "--seconds", "6", "--no-repeat", "--json", "--allow-writes", "whyso"];
    let counts = ["--set", "performance_schema=ON"];
    let done = json_of(&output(place.run_of("two.sql", &levels).args(counts)));
    assert_eq!(done["levels"][1]["users"], 4, "{done}");
    place.only_run().to_str().unwrap().to_string()
}

/// The line of which `key` contains `part`.
fn named<'v>(lines: &'v Value, key: &str, part: &str) -> &'v Value {
    let found = lines.as_array().and_then(|lines| {
        lines.iter().find(|line| line[key].as_str().is_some_and(|text| text.contains(part)))
    });
    found.unwrap_or_else(|| panic!("no {key} with {part}: {lines:#}"))
}

fn number(line: &Value, name: &str) -> f64 {
    line[name].as_f64().unwrap_or_else(|| panic!("no {name} in {line}"))
}

/// Of a view of the report's page its head, and its lines.
fn in_the_page(run: &str, view: &str) -> (Value, Value) {
    let page = fs::read_to_string(format!("{run}/report.html")).unwrap();
    let element = |id: &str| {
        let (_, from) = page.split_once(&format!("id=\"{id}\">")).unwrap();
        from.split_once("</script>").unwrap().0
    };
    let head: Value = serde_json::from_str(element("whyso-head")).unwrap();
    let views = head["pfs"]["views"].as_array().unwrap();
    let view =
        views.iter().find(|listed| listed["name"] == view).unwrap_or_else(|| panic!("no {view}: {views:#?}"));
    let deflated = element(&format!("whyso-block-{}", view["block"]));
    let deflated = base64::engine::general_purpose::STANDARD.decode(deflated).unwrap();
    let mut object = String::new();
    flate2::read::DeflateDecoder::new(&deflated[..]).read_to_string(&mut object).unwrap();
    (head["pfs"].clone(), serde_json::from_str(&object).unwrap())
}

/// Each of the terminal's lines has the numbers that the page's has; the page's are rounded to nine digits.
fn assert_the_page_has_the_same(run: &str, level: usize, expected: &Value) {
    let (head, page) = in_the_page(run, expected["view"].as_str().unwrap());
    let view =
        head["views"].as_array().unwrap().iter().find(|listed| listed["name"] == expected["view"]).unwrap();
    for name in ["seconds", "statements", "transactions"] {
        assert_eq!(head["levels"][level][name], expected[name], "{name}");
    }
    let lines = expected["lines"].as_array().unwrap();
    assert!(!lines.is_empty());
    let names: Vec<&str> =
        page["names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let mut left = 0;
    for line in lines {
        let Some(place) = names.iter().position(|name| line["name"] == *name) else {
            left += 1;
            continue;
        };
        assert_eq!(page["texts"].get(names[place]).is_some(), line.get("text").is_some());
        for (column, value) in view["columns"].as_array().unwrap().iter().enumerate() {
            let [here, there] =
                [&page["levels"][level]["rows"][place][column], &line[value["metric"].as_str().unwrap()]];
            match (here.as_f64(), there.as_f64()) {
                (Some(a), Some(b)) => assert!((a - b).abs() <= 1e-8 * b.abs(), "{a} {b}: {line}"),
                (a, b) => assert_eq!(a, b, "{line}"),
            }
        }
    }
    assert_eq!(page["levels"][level]["left"], left);
}

#[test]
fn the_views_count_what_the_load_sent() {
    let place = Place::new();
    let run = recorded(&place);
    let view = |more: &[&str]| {
        let mut arguments = vec!["pfs", run.as_str()];
        arguments.extend(more);
        json_of(&output(place.whyso(&arguments).arg("--json")))
    };

    // Statements by kind are read every second.
    let statements = view(&["statements"]);
    let transactions = number(&statements, "transactions");
    let sent = number(&statements, "statements");
    assert!(transactions > 100.0 && (sent / transactions - 2.0).abs() < 0.05, "{statements}");
    let updates = named(&statements["lines"], "name", "statement/sql/update");
    let ratio = number(updates, "count") / transactions;
    assert!((0.95..1.05).contains(&ratio), "{ratio}: {statements:#}");

    // Digests are read every five seconds, and where a level begins and ends.
    let digests = view(&["digests"]);
    for (about, rows) in [("FROM `sbtest1`", "rows_sent"), ("UPDATE `sbtest2` SET `k`", "rows_affected")] {
        let line = named(&digests["lines"], "text", about);
        let ratio = number(line, "count") / transactions;
        // A reading takes place a moment after the level's edge.
        assert!((0.9..1.1).contains(&ratio), "{about}: {ratio} of {transactions}: {line}");
        assert!(number(line, "time_ns") > 0.0, "{line}");
        assert!((number(line, rows) / number(line, "count") - 1.0).abs() < 0.01, "{line}");
    }

    // Rows by table, as often: one is updated by a transaction, and none of the other.
    let tables = view(&["tables"]);
    let updated = number(named(&tables["lines"], "name", "whyso.sbtest2"), "updates") / transactions;
    assert!((0.9..1.1).contains(&updated), "{updated}");
    assert_eq!(number(named(&tables["lines"], "name", "whyso.sbtest1"), "updates"), 0.0);

    // A comparison is of what a transaction took: the same statements, as often.
    let against = view(&["statements", "--by", "count", "--against-users", "1"]);
    assert_eq!((&against["per"], &against["column"]), (&"transaction".into(), &"count".into()));
    let updates = named(&against["differences"], "name", "statement/sql/update");
    let (here, there) = (number(updates, "here"), number(updates, "there"));
    assert!((here - 1.0).abs() < 0.08 && (there - 1.0).abs() < 0.08, "{against:#}");

    // The report has the same, in the page and as Markdown, where the last level is shown.
    for name in ["waits", "digests", "tables"] {
        assert_the_page_has_the_same(&run, 1, &view(&[name]));
        assert_the_page_has_the_same(&run, 0, &view(&[name, "--users", "1"]));
    }
    let markdown = text(&output(&mut place.whyso(&["report", &run, "--format", "md"])).stdout);
    let (_, counted) = markdown.split_once("## What the Performance Schema counted at 4 users\n").unwrap();
    assert!(counted.contains("| wait/io/table/sql/handler |\n"), "{counted}");
    assert!(counted.contains("| UPDATE \\`sbtest2\\` SET \\`k\\`"), "{counted}");

    // For people: idle waits apart, and the list of views.
    let waits = text(&output(&mut place.whyso(&["pfs", &run, "waits"])).stdout);
    assert!(waits.contains("µs/transaction") && waits.contains("wait/io/table/sql/handler"), "{waits}");
    let (busy, idle) = waits.split_once("Waits of threads that had nothing to do").unwrap();
    assert!(!busy.contains(" idle\n") && idle.contains(" idle\n"), "{waits}");
    let list = text(&output(&mut place.whyso(&["pfs", &run, "--list"])).stdout);
    assert!(list.contains("* waits ") && list.contains("  lock-instances "), "{list}");

    // A wrong word is reported with the right ones.
    for (arguments, says) in [
        (vec!["pfs", &run, "wait"], "it is one of waits, stages"),
        (vec!["pfs", &run, "waits", "--by", "rows"], "it has count, time"),
        (vec!["pfs", &run, "lock-instances"], "this run has waits"),
        (vec!["pfs", &run, "waits", "--against-users", "4"], "give another"),
    ] {
        let result = output(&mut place.whyso(&arguments));
        assert!(text(&result.stderr).contains(says), "{arguments:?}: {result:?}");
        assert_ne!(result.status.code(), Some(0));
    }
}
