use super::*;

fn check(statement: &str, expected: &str) {
    assert_eq!(digest(statement), expected, "{statement}");
}

#[test]
fn a_digest_has_no_literals() {
    check(
        "SELECT c FROM sbtest1 WHERE id = 42 AND name = 'O''Hara' AND x=1.5e3",
        "SELECT c FROM sbtest1 WHERE id = ? AND name = ? AND x=?",
    );
    check("SET x = \"a'b\", y='never ends", "SET x = ?, y=?");
    check(
        "SELECT 'it''s', `a'b1` FROM t1 WHERE k > -1.5E-7 AND h = 0x1F",
        "SELECT ?, `a'b1` FROM t1 WHERE k > ? AND h = ?",
    );
    check("SELECT 5-3, a - 7", "SELECT ?-?, a - ?");
}

#[test]
fn where_readings_of_a_text_disagree_no_more_is_kept_than_they_have_in_common() {
    assert_eq!(digest("SELECT 'a\\', 'secret' FROM t"), "SELECT ? …");
    assert_eq!(digest("SELECT 'a\\' secret'"), "SELECT ? …");
    assert_eq!(digest("SELECT a FROM t WHERE b = 'c\\n' AND d = 1"), "SELECT a FROM t WHERE b = ? AND d = ?");
    // A character of SJIS whose second byte is a backslash; the first one is no UTF-8.
    assert_eq!(digest("SELECT '\u{fffd}\\' AND pin = '4711' -- '"), "SELECT ? …");
    assert_eq!(digest("SELECT `\u{fffd}``, 'secret' FROM t -- `"), "SELECT `\u{fffd} …");
    // A server of before does not execute it, and its comment ends within what others read as a string.
    assert_eq!(digest("SELECT /*!99999 'open */ secret, 4711, 'x' FROM t"), "SELECT …");
    assert_eq!(digest("SELECT /*!50000 'x' */ a FROM t"), "SELECT ? a FROM t");
    assert!(!may_be_recorded("/*!99999 ' */ CREATE USER u -- '"));
}

/// Found by the fuzz target `digests`, and by what it led to.
#[test]
fn no_literal_is_kept_whatever_the_session() {
    // A number right after a name.
    assert_eq!(digest("SELECT `a`4711"), "SELECT `a`?");
    // A comment that is left out for its version may hold another one.
    assert_eq!(digest("SELECT /*!99999 /* a */ ' */ x, 'secret'"), "SELECT …");
    // A server may execute one comment and leave out the next.
    assert_eq!(digest("SELECT /*!50000 a */ /*!99999 ' */ secret, ' */ b"), "SELECT a …");
    // A name in the SQL mode ANSI_QUOTES, and a string in which a backslash escapes.
    assert_eq!(digest(r#"SELECT 1, "\", '\', '","', secret, '"#), "SELECT ?, … …");
    // A character of UTF-8 whose last byte is the first one of another in GBK.
    assert_eq!(digest("SELECT '中\\\\' secret"), "SELECT ? …");
    // What looks like a version, and is a number.
    assert_eq!(digest("SELECT /*!47e11 */ 1"), "SELECT ?");
    // A blank in latin1, and a NUL, which ends a comment for a server's lexer.
    assert_eq!(digest("SELECT 1 --\u{a0}'\n secret '"), "SELECT ? …");
    assert_eq!(digest("SELECT 1 # '\0'\n secret '"), "SELECT ? …");
    // The second byte of a character of GBK, and no name's begin.
    assert_eq!(digest("SELECT \u{fffd}`, 'secret'"), "SELECT \u{fffd} …");
}

/// Found by the fuzz target `digests`: 25 levels took minutes.
#[test]
fn executed_comments_within_each_other_take_no_longer_with_each_level() {
    assert_eq!(digest("SELECT /*!50000 a /*!50000 b */ c */ d"), "SELECT …");
    assert_eq!(digest(&format!("SELECT a {}", "/*!".repeat(10_000))), "SELECT a …");
}

#[test]
fn comments_hide_nothing_and_are_left_out() {
    check(
        "SELECT /* don't */ 'secret' FROM t -- it's over\n WHERE a = 'b' # it's\n",
        "SELECT ? FROM t WHERE a = ?",
    );
    check("/*!40101 SET NAMES */ 'utf8' /* never ends", "SET NAMES ?");
    check("SELECT 1--1", "SELECT ?--?");
    check("/*M!100100 ALTER USER u */ IDENTIFIED BY 'x'", "ALTER USER …");
}

#[test]
fn lists_and_rows_appear_once() {
    check("SELECT * FROM t WHERE id IN (1, 2,3 , -4)", "SELECT * FROM t WHERE id IN (?, …)");
    check(
        "INSERT INTO t VALUES (1,'a',f(2)), (3,'b',f(4)),\n(5,'c',f(6))",
        "INSERT INTO t VALUES (?, …,f(?)), …",
    );
    check("INSERT INTO t VALUES (1, NOW()), (2, NULL)", "INSERT INTO t VALUES (?, NOW()), (?, NULL)");
    check("UPDATE t SET a = 1, b = 2 LIMIT 3", "UPDATE t SET a = ?, b = ? LIMIT ?");
}

#[test]
fn of_statements_about_accounts_only_the_kind_is_shown() {
    check("create  user 'u'@'%' identified by 'secret'", "CREATE USER …");
    check("SET PASSWORD FOR u = PASSWORD('secret')", "SET PASSWORD …");
    check("CHANGE MASTER TO MASTER_HOST='h', MASTER_PASSWORD='secret'", "CHANGE MASTER …");
    for statement in ["SELECT 'x'", "CREATE TABLE user (a INT)"] {
        assert!(may_be_recorded(statement), "{statement}");
    }
    for hidden in ["GRANT ALL ON *.* TO u", "SELECT PaSSWORD('secret')", "/* */ Alter /* */ User u"] {
        assert!(!may_be_recorded(hidden), "{hidden}");
    }
}

#[test]
fn any_text_is_read_without_a_panic_and_its_digest_has_no_quotes() {
    let alphabet: Vec<char> = "'\"`\\/*!-#(), ?1.=\n…".chars().collect();
    let mut state = 1u64;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..12 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push(alphabet[(state >> 33) as usize % alphabet.len()]);
        }
        let text_of_digest = digest(&text.replace('`', ""));
        assert!(!text_of_digest.contains(['\'', '"', '1']), "{text:?}: {text_of_digest}");
    }
}
