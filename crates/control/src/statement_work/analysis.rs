//! The server's own analysis of an execution: how many of the rows that a statement reads meet no condition.
//!
//! MariaDB: `ANALYZE FORMAT=JSON`, whose tables have `r_rows` per loop, `r_loops` and `r_filtered`, the percentage of rows that met their condition.
//! MySQL: `EXPLAIN ANALYZE`, a tree in which each line has the rows that it gives on. Rows that the leaves read and the uppermost line below
//! aggregation, sorting and temporary tables does not give on are rejected.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};
use serde_json::Value;

/// Returns how many rows meet no condition; `None` where the server has no such analysis, or whyso does not understand it.
pub(super) async fn rows_rejected(conn: &mut Conn, sql: &str) -> Result<Option<u64>, Error> {
    for (statement, is_json) in [("ANALYZE FORMAT=JSON", true), ("EXPLAIN ANALYZE", false)] {
        match conn.query_first::<String, _>(format!("{statement} {sql}")).await {
            Ok(text) => {
                let text = text.unwrap_or_default();
                let rows = if is_json { of_mariadb(&text) } else { of_mysql(&text) };
                return Ok(rows.map(|rows| rows.round() as u64));
            }
            // A syntax error: another server.
            Err(Error::Server(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

fn of_mariadb(text: &str) -> Option<f64> {
    let tree: Value = serde_json::from_str(text).ok()?;
    Some(rejected_below(&tree))
}

/// Sums up the rows of all tables below, and of joins that compare rows in a buffer.
fn rejected_below(node: &Value) -> f64 {
    let children: f64 = match node {
        Value::Object(fields) => fields.values().map(rejected_below).sum(),
        Value::Array(items) => items.iter().map(rejected_below).sum(),
        _ => 0.0,
    };
    let number = |node: &Value, name: &str| node.get(name).and_then(Value::as_f64);
    let own = if node.get("table_name").is_some() {
        let rows = number(node, "r_rows").unwrap_or(0.0) * number(node, "r_loops").unwrap_or(1.0);
        rows * rejected_share(number(node, "r_filtered"))
    } else if let Some(table) = node.get("table").filter(|_| node.get("join_type").is_some()) {
        // Rows that the table's own condition rejected are in the table's sum.
        let rows = number(table, "r_rows").unwrap_or(0.0) * number(table, "r_loops").unwrap_or(1.0);
        let matching = rows * (1.0 - rejected_share(number(table, "r_filtered")));
        matching * rejected_share(number(node, "r_filtered"))
    } else {
        0.0
    };
    own + children
}

fn rejected_share(percentage_kept: Option<f64>) -> f64 {
    1.0 - (percentage_kept.unwrap_or(100.0) / 100.0).clamp(0.0, 1.0)
}

/// A line of MySQL's tree.
struct Line<'a> {
    indent: usize,
    what: &'a str,
    /// Over all loops.
    rows: f64,
}

/// Beginnings of lines that make other rows out of those that they get.
const OTHER_ROWS: [&str; 9] = [
    "Aggregate",
    "Group",
    "Sort",
    "Limit",
    "Materialize",
    "Temporary table",
    "Table scan on <temporary>",
    "Stream",
    "Window",
];

fn of_mysql(text: &str) -> Option<f64> {
    let lines: Vec<Line> = text.lines().filter_map(line).collect();
    let is_leaf = |at: usize| lines.get(at + 1).is_none_or(|next| next.indent <= lines[at].indent);
    let is_of_table = |line: &Line| !line.what.starts_with("Table scan on <temporary>");
    let read: f64 = (0..lines.len())
        .filter(|at| is_leaf(*at))
        .map(|at| &lines[at])
        .filter(|line| is_of_table(line))
        .map(|line| line.rows)
        .sum();
    // A table that is derived is read from what a line further in has materialised.
    let has_materialised_below =
        |at: usize| lines.get(at + 1).is_some_and(|next| next.what.starts_with("Materialize"));
    let source = (0..lines.len()).find(|at| {
        let is_other = OTHER_ROWS.iter().any(|beginning| lines[*at].what.starts_with(beginning));
        !is_other && !has_materialised_below(*at)
    })?;
    Some((read - lines[source].rows).max(0.0))
}

/// Reads a line such as "    -> Filter: (t.a = 1)  (cost=10 rows=9) (actual time=0.1..0.2 rows=5e+3 loops=2)". `None` where it was never executed.
fn line(text: &str) -> Option<Line<'_>> {
    let indent = text.find("-> ")?;
    let what = &text[indent + 3..];
    let actual = &what[what.rfind("(actual ")?..];
    let number = |name: &str| -> Option<f64> {
        let rest = &actual[actual.find(name)? + name.len()..];
        rest.split([' ', ')']).next()?.parse().ok()
    };
    Some(Line { indent, what, rows: number(" rows=")? * number(" loops=")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As MySQL 9.7.4 answered.
    const MYSQL_FILTER: &str = "\
-> Aggregate: count(0)  (cost=1129 rows=1) (actual time=3.8..3.8 rows=1 loops=1)
    -> Filter: ((sbtest1.id between 100 and 5100) and (sbtest1.c like '%777-77%'))  (cost=1001 rows=556) (actual time=3.8..3.8 rows=0 loops=1)
        -> Index range scan on sbtest1 using PRIMARY over (100 <= id <= 5100)  (cost=1001 rows=5000) (actual time=0.0485..0.612 rows=5001 loops=1)
";
    const MYSQL_SORT: &str = "\
-> Limit/Offset: 10/2990 row(s)  (cost=1001 rows=10) (actual time=2.12..2.12 rows=10 loops=1)
    -> Sort: sbtest1.c, limit input to 3000 row(s) per chunk  (cost=1001 rows=5000) (actual time=1.94..2.05 rows=3000 loops=1)
        -> Filter: (sbtest1.id between 100 and 3100)  (cost=1001 rows=5000) (actual time=0.0543..0.549 rows=3001 loops=1)
            -> Index range scan on sbtest1 using PRIMARY over (100 <= id <= 3100)  (cost=1001 rows=5000) (actual time=0.0516..0.393 rows=3001 loops=1)
";
    const MYSQL_DERIVED: &str = "\
-> Aggregate: count(0)  (cost=3574..3574 rows=1) (actual time=2.79..2.79 rows=1 loops=1)
    -> Table scan on d  (cost=2625..2677 rows=3894) (actual time=2.59..2.73 rows=1991 loops=1)
        -> Materialize  (cost=2625..2625 rows=3894) (actual time=2.58..2.58 rows=1991 loops=1)
            -> Table scan on <temporary>  (cost=1677..1728 rows=3894) (actual time=1.68..1.92 rows=1991 loops=1)
                -> Temporary table with deduplication  (cost=1677..1677 rows=3894) (actual time=1.68..1.68 rows=1991 loops=1)
                    -> Filter: (sbtest1.id between 10 and 2000)  (cost=800 rows=3894) (actual time=0.05..0.4 rows=1991 loops=1)
                        -> Index range scan on sbtest1 using PRIMARY over (10 <= id <= 2000)  (cost=800 rows=3894) (actual time=0.05..0.3 rows=1991 loops=1)
";
    const MYSQL_JOIN: &str = "\
-> Aggregate: count(0)  (cost=9 rows=1) (actual time=9..9 rows=1 loops=1)
    -> Nested loop inner join  (cost=9 rows=9) (actual time=9..9 rows=0 loops=1)
        -> Index range scan on a using PRIMARY  (cost=1 rows=3) (actual time=0.1..0.1 rows=3 loops=1)
        -> Filter: (b.pad = a.c)  (cost=1 rows=9) (actual time=3..3 rows=0 loops=3)
            -> Table scan on b  (cost=1 rows=1000) (actual time=0.1..1 rows=1e+3 loops=3)
        -> Table scan on c  (cost=1 rows=1000) (never executed)
";

    #[test]
    fn rows_that_mysql_filters_out_are_rejected() {
        assert_eq!(of_mysql(MYSQL_FILTER), Some(5001.0));
        assert_eq!(of_mysql(MYSQL_SORT), Some(0.0));
        assert_eq!(of_mysql(MYSQL_DERIVED), Some(0.0));
        assert_eq!(of_mysql(MYSQL_JOIN), Some(3003.0));
        assert_eq!(of_mysql("no tree"), None);
    }

    #[test]
    fn rows_that_mariadb_filters_out_are_rejected() {
        // Shortened from MariaDB 11.4.5.
        let scan = r#"{"query_block": {"nested_loop": [{"table": {"table_name": "sbtest1", "r_loops": 2, "r_rows": 1000, "r_filtered": 25}}]}}"#;
        assert_eq!(of_mariadb(scan), Some(1500.0));
        let joined = r#"{"query_block": {"nested_loop": [{"table": {"table_name": "a", "r_loops": 1, "r_rows": 3, "r_filtered": 100}},
            {"block-nl-join": {"table": {"table_name": "b", "r_loops": 1, "r_rows": 1000, "r_filtered": 50}, "join_type": "BNL", "r_filtered": 10}}]}}"#;
        assert_eq!(of_mariadb(joined), Some(500.0 + 450.0));
        assert_eq!(of_mariadb("no tree"), None);
    }
}
