//! Statements as text, with literals in place of their parameters.

use std::io::Write;

use crate::cursor::{Cursor, Value};
use crate::program::Program;
use crate::workload::Param;

/// A text that is cut where its values go.
#[derive(Clone, Debug)]
pub struct SqlText {
    /// What stands before, between and after the marks.
    pieces: Vec<Vec<u8>>,
}

impl SqlText {
    /// Cuts the text at every `?` outside quotes. A backslash takes its meaning from what follows, as in the default SQL
    /// mode.
    pub fn new(sql: &str) -> SqlText {
        let mut pieces = Vec::new();
        let mut piece = Vec::new();
        let mut quote = None;
        let mut escaped = false;
        for byte in sql.bytes() {
            match quote {
                Some(_) if escaped => escaped = false,
                Some(open) if byte == b'\\' && open != b'`' => escaped = true,
                Some(open) if byte == open => quote = None,
                Some(_) => {}
                None if matches!(byte, b'\'' | b'"' | b'`') => quote = Some(byte),
                None if byte == b'?' => {
                    pieces.push(std::mem::take(&mut piece));
                    continue;
                }
                None => {}
            }
            piece.push(byte);
        }
        pieces.push(piece);
        SqlText { pieces }
    }

    /// Appends the text with the values of the parameters of the statement that the cursor gave last.
    pub fn write(&self, program: &Program, cursor: &mut Cursor, params: &[Param], out: &mut Vec<u8>) {
        let mut pieces = self.pieces.iter();
        if let Some(first) = pieces.next() {
            out.extend_from_slice(first);
        }
        for (param, piece) in params.iter().zip(pieces) {
            write_literal(cursor.value(program, *param), out);
            out.extend_from_slice(piece);
        }
    }
}

fn write_literal(value: Value<'_>, out: &mut Vec<u8>) {
    // Writing to memory does not fail.
    let _ = match value {
        Value::Int(value) => write!(out, "{value}"),
        Value::Int64(value) => write!(out, "{value}"),
        // With an exponent it is a DOUBLE; without, it would be a DECIMAL.
        Value::Double(value) => write!(out, "{value:e}"),
        Value::Null => out.write_all(b"NULL"),
        Value::Text(text) => {
            out.push(b'\'');
            for byte in text {
                if matches!(byte, b'\'' | b'\\') {
                    out.push(b'\\');
                }
                out.push(*byte);
            }
            out.write_all(b"'")
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::Turn;
    use crate::sql::SqlOptions;
    use crate::workload::Workload;

    #[test]
    fn values_are_literals_of_their_types_in_place_of_the_marks() {
        let text = "\\set n 12\n\\set d 1 / 4.0\n\\set s 'a\\b'\n\\set z null\n-- \\text\n\
                    SELECT 'it\\'s :no', `a:b` FROM t{n} WHERE a = :n AND b = :d AND c = :s AND d = :z AND e = -:n;";
        let workload = Workload::from_sql_file("t.sql", text, &SqlOptions::default()).unwrap();
        let program = Program::new(&workload, 1);
        let mut cursor = Cursor::new(1, 0, 0);
        let Turn::Send(call) = cursor.next(&program).unwrap() else { panic!() };
        let mut out = Vec::new();
        SqlText::new(&program.statements()[0].sql).write(&program, &mut cursor, call.params, &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "SELECT 'it\\'s :no', `a:b` FROM t12 WHERE a = 12 AND b = 2.5e-1 AND c = 'a\\\\b' AND d = NULL AND e = -12"
        );
    }
}
