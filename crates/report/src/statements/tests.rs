use std::collections::HashMap;

use whyso_explain::statements::{CommandMetric, StatementTime};
use whyso_record::data::{ClientCommand, CommandTimes};

use super::*;

fn trace() -> SqlTraceCost {
    SqlTraceCost {
        commands: 1003,
        probes_ns: Some(1800.0),
        programs_ns_a_command: None,
        reader_ns_a_command: 750.0,
        cpu_share: 0.0125,
        lost: vec![("not read in time".to_string(), 3)],
    }
}

fn texts() -> HashMap<u32, String> {
    HashMap::from([(0, "SELECT c FROM t WHERE id = ?".to_string()), (1, "a\u{1b}[31m".to_string())])
}

fn about<'a>(trace: &'a SqlTraceCost, texts: &'a HashMap<u32, String>) -> CommandsOf<'a> {
    let origin_ns = 4_000_000_000;
    CommandsOf { window: "the level of 4 users", origin_ns, seconds: 2.0, own_left_out: 7, trace, texts }
}

fn executions() -> StatementTime {
    StatementTime {
        command: "STMT_EXECUTE".to_string(),
        statement: Some(0),
        count: 1000,
        sums: [3_000_000_000, 1_000_000_000, 0, 750_000_000, 0, 12_000, 48_000, 0, 3],
        known: [1000, 990, 990, 990, 990, 1000, 1000, 0, 1000],
        p95_ns: 4_500_000,
        max_ns: 9_000_000,
    }
}

#[test]
fn statements_are_shown_under_their_total_with_shares_and_what_following_them_cost() {
    let (trace, texts) = (trace(), texts());
    let unknown = StatementTime {
        statement: None,
        count: 1,
        sums: [1_000_000_000, 0, 0, 0, 0, 0, 0, 0, 0],
        known: [1, 1, 1, 1, 1, 0, 0, 0, 0],
        ..executions()
    };
    let by = [CommandMetric::Response, CommandMetric::Lock];
    let table = statements(&about(&trace, &texts), &[executions(), unknown], &by, 30);
    let expected = "\
1,001 commands of the level of 4 users, 2 s; 7 of whyso's own are left out (--own)

response s    %  lock s    %  count  mean ms  p95  max  command       statement
         4  100    0.75  100  1,001        4         9  <Total>
         3   75    0.75  100  1,000        3  4.5    9  STMT_EXECUTE  SELECT c FROM t WHERE id = ?
         1   25       0           1    1,000  4.5    9  STMT_EXECUTE  <not known: prepared where it was not seen>
";
    assert!(table.starts_with(expected), "{table}");
    assert!(table.contains("two probes in the server's thread, 1.8 µs as measured here"), "{table}");
    let all = "In all 2.55 µs per command, of 1,003 commands: 1.3 % of this machine's CPU while they were followed, \
               without what is not known of it.";
    assert!(table.contains(all), "{table}");
    assert!(table.contains("Lost in the whole run, of 1,003: 3 (not read in time)."), "{table}");
}

#[test]
fn rows_and_errors_are_counts_and_what_is_not_known_of_a_statement_is_left_open() {
    let (trace, texts) = (trace(), texts());
    let ping = StatementTime {
        command: "PING".to_string(),
        statement: None,
        sums: [1_000_000, 0, 0, 0, 0, 0, 0, 0, 0],
        known: [1000, 0, 0, 0, 0, 0, 0, 0, 1000],
        ..executions()
    };
    let by = [CommandMetric::RowsExamined, CommandMetric::RowsAffected, CommandMetric::Errors];
    let table = statements(&about(&trace, &texts), &[executions(), ping], &by, 30);
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    let head =
        ["rows_examined", "%", "rows_affected", "%", "errors", "%", "count", "mean", "ms", "p95", "max"];
    assert_eq!(lines[2][..11], head);
    assert_eq!(lines[4][..5], ["48,000", "100", "3", "100", "1,000"], "no row was affected: {table}");
    assert_eq!(lines[5][..2], ["0", "1,000"], "{table}");
}

#[test]
fn the_log_has_a_line_a_command_and_no_escapes() {
    let (trace, texts) = (trace(), texts());
    let times = CommandTimes { cpu_ns: 250_000, runqueue_ns: 0, lock_ns: 1_000_000, io_ns: 0 };
    let query = ClientCommand {
        t_ns: 5_250_000_000,
        tid: 77,
        client: "load".into(),
        command: "QUERY".into(),
        response_ns: 1_500_000,
        times: Some(times),
        rows_sent: Some(3),
        rows_examined: Some(60),
        error: Some(1213),
        connection: Some(40),
        length: Some(28),
        statement: Some(1),
        ..ClientCommand::default()
    };
    let ping =
        ClientCommand { t_ns: 5_500_000_000, tid: 78, command: "PING".into(), ..ClientCommand::default() };
    let mut out = Vec::new();
    commands(&mut out, &about(&trace, &texts), &[query.clone(), ping], 30).unwrap();
    let text = String::from_utf8(out).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[3].split_whitespace().collect::<Vec<_>>(),
        ["1.250000", "77", "40", "1.5", "0.25", "1", "3", "60", "1213", "28", "QUERY", "a", "[31m"]
    );
    assert_eq!(lines[4].split_whitespace().collect::<Vec<_>>(), ["1.500000", "78", "0", "PING"]);
    let object = commands_json(&about(&trace, &texts), &[query], 30);
    assert_eq!(object["commands"][0]["lock_ns"], 1_000_000);
    assert_eq!(object["trace"]["lost"]["not read in time"], 3);
}
