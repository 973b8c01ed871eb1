//! One text of each kind of statement that only reads, as users would send it.

use crate::cursor::{Cursor, Turn};
use crate::program::Program;
use crate::sql::only_reads_rows;
use crate::text::SqlText;
use crate::workload::Workload;

/// Transactions that are walked through to find each kind.
const TRANSACTIONS_MAX: u64 = 200;
/// Steps of one transaction that are looked at.
const STEPS_MAX: usize = 2_000;

/// A statement with literals in place of its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// The statement's kind, as results name it.
    pub kind: String,
    pub sql: String,
}

impl Workload {
    /// Returns one text for each kind of statement that reads rows and does nothing else: no locks, no pauses. Kinds that no
    /// transaction sends, or whose parameters depend on the server's answers in a way that ends the transaction early, are left out.
    pub fn examples(&self, seed: u64) -> Vec<Example> {
        let program = Program::new(self, 1);
        let wanted: Vec<&str> = self
            .kinds()
            .into_iter()
            .filter(|kind| {
                self.statements()
                    .iter()
                    .any(|statement| statement.kind == *kind && only_reads_rows(&statement.sql))
            })
            .collect();
        let mut examples: Vec<Example> = Vec::new();
        let mut cursor = Cursor::new(seed, 0, 0);
        for number in 0..TRANSACTIONS_MAX {
            if examples.len() == wanted.len() {
                break;
            }
            cursor.start(seed, 0, number);
            add_from_transaction(&program, &mut cursor, &mut examples);
        }
        examples
    }
}

/// Adds the kinds of one transaction that have no text yet, as if every statement were answered with one row.
fn add_from_transaction(program: &Program, cursor: &mut Cursor, examples: &mut Vec<Example>) {
    for _ in 0..STEPS_MAX {
        let call = match cursor.next(program) {
            Ok(Turn::Send(call)) => call,
            Ok(Turn::Pause(_) | Turn::Reconnect) => continue,
            Ok(Turn::End) | Err(_) => return,
        };
        let statement = &program.statements()[call.statement];
        let is_new = examples.iter().all(|example| example.kind != statement.kind);
        if is_new && only_reads_rows(&statement.sql) {
            let mut text = Vec::new();
            let cut = SqlText::new(&statement.sql_for_table(call.table));
            cut.write(program, cursor, call.params, &mut text);
            if let Ok(sql) = String::from_utf8(text) {
                examples.push(Example { kind: statement.kind.clone(), sql });
            }
        }
        cursor.answered(1, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::SqlOptions;

    fn examples(text: &str) -> Vec<(String, String)> {
        let workload = Workload::from_sql_file("t.sql", text, &SqlOptions::default()).unwrap();
        workload.examples(1).into_iter().map(|example| (example.kind, example.sql)).collect()
    }

    #[test]
    fn each_kind_that_reads_has_one_text_with_literals() {
        let found = examples(
            "\\set n 12\nBEGIN;\nSELECT a FROM t WHERE id = :n;\nUPDATE t SET a = 1 WHERE id = :n;\n\
             -- \\repeat 3\nSELECT SUM(a) FROM t;\n-- \\endrepeat\nCOMMIT;\n",
        );
        let texts: Vec<&str> = found.iter().map(|(_, sql)| sql.as_str()).collect();
        assert_eq!(texts, ["SELECT a FROM t WHERE id = 12", "SELECT SUM(a) FROM t"]);
    }

    #[test]
    fn statements_that_lock_wait_or_write_have_none() {
        let found = examples(
            "SELECT a FROM t FOR UPDATE;\nSELECT a FROM t LOCK IN SHARE MODE;\nSELECT SLEEP(1);\nSELECT GET_LOCK('l', 1);\n\
             SELECT a INTO @x FROM t;\nSHOW TABLES;\n",
        );
        assert_eq!(found, []);
    }

    #[test]
    fn rare_transactions_are_found_too() {
        let found = examples(
            "-- \\set n random(1, 20)\n-- \\if :n = 1\nSELECT 'rare' FROM t;\n-- \\else\nSELECT 'often' FROM t;\n-- \\endif\n",
        );
        assert_eq!(found.len(), 2, "{found:?}");
    }
}
