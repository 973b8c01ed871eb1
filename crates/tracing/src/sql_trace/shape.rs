//! A statement without its plainest literals, by which its digest is found again without reading it a second time.

/// Stand for a string and for a number; no statement that has a shape holds them.
const STRING: u8 = 1;
const NUMBER: u8 = 2;

/// Writes the shape of a statement into `shape`. All statements of one shape have the same digest.
///
/// Returns false for statements that have none: their literals do not show at first sight. Those with comments, backslashes or letters outside
/// of ASCII are among them.
pub(super) fn write_shape(statement: &[u8], shape: &mut Vec<u8>) -> bool {
    shape.clear();
    let mut at = 0;
    while let Some(byte) = statement.get(at).copied() {
        let next = statement.get(at + 1).copied();
        match byte {
            b'\'' => {
                let Some(length) = length_of_quoted(&statement[at + 1..], b'\'') else { return false };
                at += 1 + length + 1;
                // Two of them stand for one in the string.
                if statement.get(at) == Some(&b'\'') {
                    return false;
                }
                shape.push(STRING);
            }
            b'`' => {
                let Some(length) = length_of_quoted(&statement[at + 1..], b'`') else { return false };
                let end = at + 1 + length + 1;
                shape.extend_from_slice(&statement[at..end]);
                at = end;
            }
            b'0'..=b'9' => {
                let digits = statement[at..].iter().take_while(|digit| digit.is_ascii_digit()).count();
                let end = at + digits;
                let begins = at > 0 && b" =(,<>".contains(&statement[at - 1]);
                let ends = statement.get(end).is_none_or(|after| b" =),;<>".contains(after));
                if begins && ends {
                    shape.push(NUMBER);
                } else {
                    shape.extend_from_slice(&statement[at..end]);
                }
                at = end;
            }
            b'-' if next == Some(b'-') => return false,
            b'/' if next == Some(b'*') => return false,
            b'*' if next == Some(b'/') => return false,
            b'"' | b'\\' | b'#' => return false,
            b' '..=b'~' => {
                shape.push(byte);
                at += 1;
            }
            _ => return false,
        }
    }
    true
}

/// Bytes up to the closing quote, if only plain ones are in between.
fn length_of_quoted(rest: &[u8], quote: u8) -> Option<usize> {
    let length = rest.iter().position(|byte| *byte == quote)?;
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && *byte != b'\\';
    rest[..length].iter().all(is_plain).then_some(length)
}

#[cfg(test)]
mod tests {
    use whyso_watch::digest;

    use super::*;

    fn shape(statement: &str) -> Option<Vec<u8>> {
        let mut shape = vec![9; 3];
        write_shape(statement.as_bytes(), &mut shape).then_some(shape)
    }

    #[test]
    fn statements_of_one_shape_have_one_digest() {
        for alike in [
            ["SELECT c FROM sbtest1 WHERE id=5", "SELECT c FROM sbtest1 WHERE id=49999"],
            [
                "INSERT INTO t (a, b) VALUES (1, 'x'), (2, '')",
                "INSERT INTO t (a, b) VALUES (10, '-- 5'), (0, '/*')",
            ],
            ["SELECT `a 1` FROM t WHERE b = -7 AND c<3;", "SELECT `a 1` FROM t WHERE b = -7 AND c<44;"],
            ["SELECT N'a', x'41' LIMIT 3", "SELECT N'bb', x'' LIMIT 300"],
            ["SELECT 1.5e3 FROM t1 LIMIT 1", "SELECT 1.5e3 FROM t1 LIMIT 12"],
        ] {
            let [left, right] = alike.map(|statement| (shape(statement), digest(statement)));
            assert!(left.0.is_some() && left == right, "{alike:?}: {left:?} {right:?}");
        }
    }

    #[test]
    fn names_are_part_of_a_shape() {
        for apart in [
            ["SELECT c FROM sbtest1", "SELECT c FROM sbtest2"],
            ["SELECT `1` FROM t", "SELECT `2` FROM t"],
            ["SELECT 1a FROM t", "SELECT 2a FROM t"],
            ["SELECT 'a' FROM t", "SELECT 1 FROM t"],
        ] {
            let [left, right] = apart.map(shape);
            assert!(left.is_some() && right.is_some() && left != right, "{apart:?}");
        }
    }

    #[test]
    fn what_has_to_be_read_with_care_has_no_shape() {
        for statement in [
            "SELECT 'it''s'",
            "SELECT 'a\\'b'",
            "SELECT \"a\"",
            "SELECT 1 -- 'a'",
            "SELECT 1 # 'a'",
            "SELECT /*!50001 1 */ 2",
            "SELECT 'ä'",
            "SELECT ä",
            "SELECT 'a",
            "SELECT `a",
            "SELECT\n1",
        ] {
            assert_eq!(shape(statement), None, "{statement}");
        }
    }
}
