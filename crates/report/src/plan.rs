//! How a server executes a statement, as lines.

use crate::text::clean;

/// The statement, then each row of its plan as "column value" pairs; columns without a value are left out.
pub fn plan(statement: &str, columns: &[String], rows: &[Vec<String>]) -> String {
    let mut lines = vec![clean(statement), String::new()];
    for row in rows {
        let pairs = columns.iter().zip(row).filter(|(_, value)| !value.is_empty());
        let words: Vec<String> = pairs.map(|(column, value)| format!("{column} {}", clean(value))).collect();
        lines.push(words.join(" · "));
    }
    if rows.is_empty() {
        lines.push("The server has no plan for it.".to_string());
    }
    lines.join("\n")
}

#[test]
fn a_plan_has_a_line_for_each_row_without_what_is_empty() {
    let columns = ["id", "table", "key", "rows"].map(str::to_string);
    let row = |cells: [&str; 4]| cells.map(str::to_string).to_vec();
    let text = plan("SELECT 1", &columns, &[row(["1", "t", "", "98"]), row(["2", "u", "PRIMARY", "1"])]);
    assert_eq!(text, "SELECT 1\n\nid 1 · table t · rows 98\nid 2 · table u · key PRIMARY · rows 1");
    assert!(plan("SELECT 1", &columns, &[]).ends_with("no plan for it."));
}
