use super::*;
use crate::cursor::{Cursor, Turn, Value};
use crate::dictionary::DictionarySource;
use crate::expr::Scalar;
use crate::program::Program;
use crate::workload::Param;

fn read(text: &str) -> Workload {
    match Workload::from_sql_file("test.sql", text, &SqlOptions::default()) {
        Ok(workload) => workload,
        Err(error) => panic!("{error}"),
    }
}

fn refused(text: &str) -> String {
    Workload::from_sql_file("test.sql", text, &SqlOptions::default()).unwrap_err().to_string()
}

/// "kind(values)" of what transaction `k` of user 3 does, each statement answered with one row.
fn transaction(workload: &Workload, k: u64) -> Vec<String> {
    let program = Program::new(workload, 8);
    let mut cursor = Cursor::new(1, 3, k);
    let mut sent = Vec::new();
    loop {
        match cursor.next(&program).unwrap() {
            Turn::Send(call) => {
                let values: Vec<String> =
                    call.params.iter().map(|p| show(cursor.value(&program, *p))).collect();
                let statement = &program.statements()[call.statement];
                sent.push(format!("{}({})", statement.kind, values.join(",")));
                cursor.answered(1, 0);
            }
            Turn::Pause(time) => sent.push(format!("pause {time:?}")),
            Turn::Reconnect => sent.push("reconnect".to_string()),
            Turn::End => return sent,
        }
    }
}

fn show(value: Value<'_>) -> String {
    match value {
        Value::Int(value) => value.to_string(),
        Value::Int64(value) => value.to_string(),
        Value::Double(value) => format!("{value:?}"),
        Value::Text(text) => format!("'{}'", String::from_utf8_lossy(text)),
        Value::Null => "NULL".to_string(),
    }
}

#[test]
fn a_pgbench_script_is_read_as_pgbench_would_read_it() {
    let text = "\\set aid random(1, 100000 * 2)\n\\set delta random(-5000, 5000)\nBEGIN;\n\
                UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n\
                SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\nEND;\n";
    let workload = read(text);
    assert_eq!(workload.kinds(), ["begin", "update_pgbench_accounts", "select_pgbench_accounts", "end"]);
    assert!(workload.opens_transaction());
    assert_eq!(workload.statements_per_transaction(), Some(4));
    let sent = transaction(&workload, 0);
    let (_, aid) = sent[1].trim_end_matches(')').rsplit_once(',').unwrap();
    assert_eq!(sent[2], format!("select_pgbench_accounts({aid})"));
    assert_eq!(transaction(&workload, 0), sent);
    assert_ne!(transaction(&workload, 1), sent);
}

#[test]
fn statements_with_parameters_are_prepared_and_others_are_text_unless_the_file_or_the_caller_says_so() {
    let text = "\\set id 1\nSELECT :id;\nSELECT 2;\n-- \\text\nSELECT :id + 1;\n-- \\prepared\nSELECT 3;\nSELECT c FROM t{id};";
    let protocols = |options: &SqlOptions| -> Vec<Protocol> {
        let workload = Workload::from_sql_file("t.sql", text, options).unwrap();
        workload.statements().iter().map(|statement| statement.protocol).collect()
    };
    use Protocol::{Prepared, Text};
    assert_eq!(protocols(&SqlOptions::default()), [Prepared, Text, Text, Prepared, Text]);
    let all_text = SqlOptions { protocol: Some(Text), ..SqlOptions::default() };
    assert_eq!(protocols(&all_text), [Text, Text, Text, Prepared, Text]);
}

#[test]
fn transactions_are_drawn_by_their_weights() {
    let workload = read(
        "-- \\set id 5\n-- \\transaction a@3\nSELECT :id;\n-- \\transaction b\nDELETE FROM t;\n-- \\transaction c@0\nDO 1;",
    );
    let mut counts = [0u32; 3];
    for k in 0..20_000 {
        let sent = transaction(&workload, k);
        let place = ["select(5)", "delete_t()", "do()"].iter().position(|kind| *kind == sent[0]).unwrap();
        counts[place] += 1;
    }
    assert!((14_700..=15_300).contains(&counts[0]) && counts[2] == 0, "{counts:?}");
    let text = workload.describe();
    assert!(text.contains("a, 75.0 % of all") && text.contains(":id = 5"), "{text}");
}

#[test]
fn branches_take_the_arm_whose_condition_holds_first() {
    let text = "-- \\set n :client_id + 1\n-- \\if :n > 10\nSELECT 1;\n-- \\elif :n = 4\nSELECT 2;\n-- \\if :n = 4 and not :n = 5\n\
                SELECT 3;\n-- \\endif\n-- \\elif true\nSELECT 4;\n-- \\else\nSELECT 5;\n-- \\endif\nSELECT 6;";
    assert_eq!(transaction(&read(text), 0), ["select_2()", "select_3()", "select_6()"]);
    assert_eq!(read(text).statements_per_transaction(), None);
}

#[test]
fn loops_run_as_often_as_they_say_and_nest() {
    let text = "\\set i 0\n\\while :i < 3\n\\set i :i + 1\n\\repeat :i\nSELECT :i;\n\\endrepeat\n\\endwhile\n\\repeat 0\nDO 1;\n\\endrepeat";
    assert_eq!(
        transaction(&read(text), 0),
        ["select(1)", "select(2)", "select(2)", "select(3)", "select(3)", "select(3)"]
    );
}

#[test]
fn a_loop_that_never_sends_is_abandoned() {
    let workload = read("\\while true\n\\set x 1\n\\endwhile\nSELECT 1;");
    let program = Program::new(&workload, 1);
    let message = Cursor::new(1, 0, 0).next(&program).unwrap_err().to_string();
    assert!(message.contains("does not end"), "{message}");
}

#[test]
fn pauses_and_new_connections_stand_between_statements() {
    let workload = read("SELECT 1;\n-- \\sleep 1500 us\n-- \\sleep 2\n-- \\reconnect\n");
    assert_eq!(transaction(&workload, 0), ["select()", "pause 1.5ms", "pause 2s", "reconnect"]);
}

#[test]
fn a_row_s_columns_become_variables_and_are_gone_in_the_next_transaction() {
    let text = "SELECT id, name FROM t LIMIT 1; -- \\gset t_\n-- \\if :t_id is null\nDO 1;\n-- \\else\nSELECT :t_name, :t_id + 1, :row_count;\n-- \\endif";
    let workload = read(&text.replace(":t_id + 1", ":t_id"));
    let capture = workload.statements()[0].capture.clone().unwrap();
    let columns: Vec<&str> = capture.columns.iter().map(|(column, _)| column.as_str()).collect();
    assert_eq!(columns, ["id", "name"]);

    let program = Program::new(&workload, 1);
    let mut cursor = Cursor::new(1, 0, 0);
    let Turn::Send(_) = cursor.next(&program).unwrap() else { panic!() };
    cursor.answered(7, 0);
    cursor.keep(capture.columns[0].1, Scalar::Text(b"12"));
    cursor.keep(capture.columns[1].1, Scalar::Null);
    let Turn::Send(call) = cursor.next(&program).unwrap() else { panic!() };
    let values: Vec<String> = call.params.iter().map(|p| show(cursor.value(&program, *p))).collect();
    assert_eq!(values, ["NULL", "'12'", "7"]);
    cursor.start(1, 0, 1);
    cursor.next(&program).unwrap();
    let Turn::Send(call) = cursor.next(&program).unwrap() else { panic!() };
    assert_eq!(program.statements()[call.statement].kind, "do");
}

#[test]
fn a_kept_column_may_not_hide_what_set_gave() {
    let capture =
        read("\\set b 1\nSELECT a, b FROM t \\gset\nSELECT :a, :b;").statements()[0].capture.clone().unwrap();
    assert!(capture.reserved.contains(&"b".to_string()) && !capture.reserved.contains(&"a".to_string()));
}

#[test]
fn values_have_one_type_for_all_that_is_put_into_them() {
    let text = "\\set i 1\n\\set d 1\n\\if :i = 1\n\\set d :d / 2.0\n\\endif\n\\set s random_string('##-@@')\n\\set t :s\nSELECT :i, :d, :s, :t;";
    let sent = transaction(&read(text), 0);
    let values: Vec<&str> = sent[0].trim_start_matches("select(").trim_end_matches(')').split(',').collect();
    assert_eq!(values[..2], ["1", "0.5"]);
    assert_eq!((values[2].len(), values[2]), (7, values[3]));
    assert!(
        values[2].as_bytes()[1].is_ascii_digit() && values[2].as_bytes()[5].is_ascii_lowercase(),
        "{values:?}"
    );
}

#[test]
fn arithmetic_is_pgbench_s() {
    for (expression, value) in [
        ("7 / 2", "3"),
        ("-7 % 3", "-1"),
        ("2 + 3 * 4 - 1", "13"),
        ("(2 + 3) * 4", "20"),
        ("1 / 0", "NULL"),
        ("null + 1", "NULL"),
        ("'12' + 1", "13.0"),
        ("1 < 2 and 2 >= 2 and 1 <> 2", "1"),
        ("false or not (1 = 1)", "0"),
        ("null is null", "1"),
        ("null or true", "1"),
        ("least(3, 1, 2) + greatest(1, 5)", "6"),
        ("abs(-3) + int(2.9)", "5"),
        ("double(1) / 4", "0.25"),
        ("- - 3", "3"),
        ("1e3", "1000.0"),
        ("random(4, 4)", "4"),
    ] {
        let sent = transaction(&read(&format!("\\set x {expression}\nSELECT :x;")), 0);
        assert_eq!(sent[0], format!("select({value})"), "{expression}");
    }
}

#[test]
fn what_has_no_value_stops_the_transaction_with_a_sentence() {
    for (expression, part) in [
        ("9223372036854775807 + 1", "went past 64 bits"),
        ("'ten' * 2", "'ten' is no number"),
        ("random(5, :row_count)", "the range from 5 to 0 is empty"),
    ] {
        let workload = read(&format!("\\set x {expression}\nSELECT :x;"));
        let message = Cursor::new(1, 0, 0).next(&Program::new(&workload, 1)).unwrap_err().to_string();
        assert!(message.starts_with(":x can't be worked out") && message.contains(part), "{message}");
    }
}

#[test]
fn dictionaries_give_values_in_their_order() {
    let mut workload = read(
        "-- \\dictionary names file names.txt\n-- \\dictionary ids query SELECT id FROM t;\n-- \\set n next_from(names)\n\
         -- \\set u unique_from(ids)\n-- \\set r random_from(names)\nSELECT :n, :u, :r;",
    );
    assert_eq!(workload.dictionaries[1].source, DictionarySource::Query("SELECT id FROM t".to_string()));
    workload.fill("names", vec![b"ann".to_vec(), b"bob".to_vec(), b"it's".to_vec()]).unwrap();
    workload.fill("ids", (100..120).map(|id| id.to_string().into_bytes()).collect()).unwrap();
    // User 3 of 8: the third, the eleventh.
    let sent = transaction(&workload, 0);
    assert!(sent[0].starts_with("select('ann',103,"), "{sent:?}");
    let sent = transaction(&workload, 1);
    assert!(sent[0].starts_with("select('bob',111,"), "{sent:?}");
    let message = Cursor::new(1, 3, 9).next(&Program::new(&workload, 8)).unwrap_err().to_string();
    assert!(message.contains("20 values are used up"), "{message}");
    assert!(workload.fill("name", vec![]).unwrap_err().to_string().contains("did you mean 'names'?"));
    assert!(workload.fill("names", vec![]).unwrap_err().to_string().contains("the lines of names.txt"));
}

#[test]
fn unique_values_are_taken_once_by_all_users_together() {
    let mut workload = read("-- \\dictionary ids file x\n-- \\set u unique_from(ids)\nSELECT :u;");
    workload.fill("ids", (0..40).map(|id: u32| id.to_string().into_bytes()).collect()).unwrap();
    let program = Program::new(&workload, 8);
    let mut values: Vec<String> = Vec::new();
    for user in 0..8 {
        for k in 0..5 {
            let mut cursor = Cursor::new(1, user, k);
            let Turn::Send(call) = cursor.next(&program).unwrap() else { panic!() };
            values.push(show(cursor.value(&program, call.params[0])));
        }
    }
    values.sort();
    values.dedup();
    assert_eq!(values.len(), 40);
}

#[test]
fn local_rows_are_made_up_in_pieces() {
    let workload = read(
        "\\set id 7\n-- \\rows 3000 :id, random_string('a\\t####'), null, random(1, 9)\nLOAD DATA LOCAL INFILE 'x' INTO TABLE t;",
    );
    let program = Program::new(&workload, 1);
    let content = || {
        let mut cursor = Cursor::new(1, 0, 0);
        let Turn::Send(call) = cursor.next(&program).unwrap() else { panic!() };
        let local = program.statements()[call.statement].local_rows.clone().unwrap();
        let mut pieces = 1;
        let mut content = Vec::new();
        while cursor.local_lines(&program, &local, &mut content).unwrap() {
            pieces += 1;
        }
        (pieces, String::from_utf8(content).unwrap())
    };
    let (pieces, text) = content();
    assert!(pieces > 0 && text.lines().count() == 3000);
    let first: Vec<&str> = text.lines().next().unwrap().split('\t').collect();
    assert_eq!((first[0], first[2], first.len()), ("7", "\\N", 4), "{first:?}");
    assert_eq!(content().1, text);
}

#[test]
fn several_statements_can_be_one_command_and_a_session_has_its_own() {
    let workload =
        read("-- \\session\nSET sort_buffer_size = 32768;\n-- \\transaction t\nSELECT 1\\; SELECT 2;");
    assert_eq!(workload.session, ["SET sort_buffer_size = 32768"]);
    assert_eq!(workload.statements()[0].sql, "SELECT 1; SELECT 2");
    assert!(workload.describe().contains("connection    SET sort_buffer_size"));
}

#[test]
fn definitions_from_outside_begin_every_transaction() {
    let options = SqlOptions {
        defines: vec![("n".to_string(), "5".to_string()), ("s".to_string(), "x".to_string())],
        ..SqlOptions::default()
    };
    let text = "-- \\transaction a\nSELECT :n, :s;";
    let workload = Workload::from_sql_file("t.sql", text, &options).unwrap();
    assert_eq!(transaction(&workload, 0), ["select(5,'x')"]);
    let options = SqlOptions { defines: vec![("1n".to_string(), String::new())], ..options };
    assert!(Workload::from_sql_file("t.sql", text, &options).is_err());
}

#[test]
fn a_query_sets_its_session_once_and_its_own_variables_each_time() {
    let query = |text| Workload::from_query(text, &SqlOptions::default()).unwrap();
    let workload = query(
        "SET sort_buffer_size=32*1024; set @@session.join_buffer_size=128; SELECT * FROM t ORDER BY data LIMIT 78000,1",
    );
    assert_eq!(workload.session.len(), 2);
    assert_eq!(workload.statements_per_transaction(), Some(1));
    assert!(workload.only_reads());

    let workload = query("SET @x=FLOOR(1 + (RAND() * 650000)); SELECT * FROM t1 WHERE id=@x");
    assert!(workload.session.is_empty() && workload.only_reads());
    assert_eq!(workload.kinds(), ["set", "select_t1"]);
    assert!(query("SET sort_buffer_size=32").session.is_empty());
    assert_eq!(query("SELECT 1; DELETE FROM t").first_write(), Some("DELETE FROM t"));
}

#[test]
fn kinds_are_named_for_verb_and_table_or_by_the_file() {
    let text = "SELECT * FROM `shop`.`orders` o;\nselect * from shop.orders where id=1;\nSELECT * FROM `shop`.`orders` o;\n\
                INSERT INTO a(b) VALUES (1);\nCALL make(1);\n-- \\kind mine\nSELECT 1;";
    assert_eq!(read(text).kinds(), ["select_orders", "select_orders_2", "insert_a", "call_make", "mine"]);
}

#[test]
fn each_error_names_its_line_and_what_to_do() {
    for (text, expected) in [
        ("SELECT :idd;", "test.sql line 1: ':idd' has no value: set it above"),
        ("\\set id 1\nSELECT\n :idd;", "line 3: ':idd' has no value (did you mean :id?)"),
        ("-- \\sett id 1\nDO 1;", "line 1: there is no directive '\\sett' (did you mean \\set?)"),
        ("-- \\set id\nDO 1;", "\\set is written '\\set NAME EXPRESSION'"),
        ("-- \\set id randm(1, 2)\nDO 1;", "there is no function 'randm' (did you mean random?)"),
        ("-- \\set id random(1)\nDO 1;", "random is written random(1, 1000)"),
        ("-- \\set id random(9, 1)\nDO 1;", "the range from 9 to 1 is empty"),
        ("-- \\set id random_gaussian(1, 9, 1)\nDO 1;", "must be from 2 to 1000, and is 1"),
        ("-- \\set id random_zipfian(1, 9)\nDO 1;", "random_zipfian is written random_zipfian(1, 1000, 0.8)"),
        ("-- \\set id 1 +\nDO 1;", "expected a value and found the end of the line"),
        ("-- \\set id (1\nDO 1;", "expected ')' and found the end of the line"),
        ("-- \\set id 1 2\nDO 1;", "expected the end of the line and found '2'"),
        ("-- \\set id 1, 2\nDO 1;", "is more than one value"),
        ("-- \\set id other\nDO 1;", "'other' is no value: a variable is written :other"),
        ("-- \\set id 99999999999999999999\nDO 1;", "is no number of 64 bits"),
        ("-- \\set id 1 + random_string('#')\nDO 1;", "random_string stands alone"),
        ("-- \\set id random_string(1)\nDO 1;", "such as random_string('###-@@@')"),
        ("-- \\set id next_from(names)\nDO 1;", "there is no dictionary 'names': give it above"),
        ("-- \\set client_id 1\nDO 1;", ":client_id is set by whyso"),
        ("-- \\set x $\nDO 1;", "'$' is not understood"),
        ("-- \\set x 'a\nDO 1;", "a text has no end"),
        ("\\if 1\nDO 1;", "line 1: \\if of line 1 has no \\endif"),
        ("DO 1;\n\\endif", "line 2: \\endif follows no \\if"),
        ("\\else\nDO 1;", "\\else follows no \\if"),
        ("\\repeat 2\nDO 1;\n\\endwhile", "line 3: \\endwhile follows no \\while"),
        ("\\while 1\nDO 1;\n\\endif", "\\endif follows no \\if"),
        ("\\if 1\nDO 1;\n\\endif now", "\\endif takes nothing after it, and 'now' follows"),
        ("\\if 1\n\\transaction a\nDO 1;", "line 2: \\if of line 1 has no \\endif before this"),
        ("DO 1;\n\\transaction a\nDO 2;", "belongs to no transaction"),
        ("\\transaction a@x\nDO 1;", "the weight of a must be a whole number"),
        ("\\transaction\nDO 1;", "\\transaction is written"),
        ("\\transaction a\nDO 1;\n\\transaction a\nDO 1;", "there is a transaction a already"),
        ("\\transaction a@0\nDO 1;", "there is nothing to do"),
        ("-- nothing", "there is nothing to do: give at least one statement"),
        ("\\transaction a\n\\set x 1", "there is nothing to do"),
        ("\\set x 1\n\\session\nSET @a = :x;\n\\transaction t\nDO 1;", "without parameters"),
        ("\\gset\nDO 1;", "\\gset keeps the answer of a statement"),
        ("DO 1; -- \\gset 1x", "the prefix '1x' can't begin"),
        ("SELECT 1\n\\set x 1\nDO 1;", "line 1: the statement that begins here has no end"),
        ("-- \\kind a b\nDO 1;", "\\kind is written"),
        ("-- \\kind rollback\nDO 1;", "choose another name"),
        ("DO 1;\n-- \\kind a", "what line 2 says of the next statement is followed by none"),
        ("-- \\prepared\nSELECT 1\\; SELECT 2;", "can't be prepared"),
        ("-- \\rows 10 1\nDO 1;", "\\rows is for a LOAD DATA LOCAL"),
        ("-- \\rows 0 1\nDO 1;", "the count is a number from 1"),
        ("LOAD DATA LOCAL INFILE 'x' INTO TABLE t;", "say which, such as '-- \\rows"),
        ("-- \\sleep\nDO 1;", "\\sleep is written '\\sleep TIME [us|ms|s]'"),
        ("-- \\dictionary a\nDO 1;", "\\dictionary is written"),
        ("-- \\dictionary a file x\n-- \\dictionary a file x\nDO 1;", "there is a dictionary a already"),
        ("SELECT ?;", "'?' has no value"),
        ("SELECT 'a;", "close it with another '"),
        ("SELECT 1 /* a", "close it with */"),
    ] {
        let message = refused(text);
        assert!(message.starts_with("test.sql line ") && message.contains(expected), "{text:?}: {message}");
    }
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    let text = format!("\\set x {}1{}\nSELECT :x;", "(".repeat(5000), ")".repeat(5000));
    assert!(refused(&text).contains("more than 100 levels"));
    let text = format!("\\set x {}1\nSELECT :x;", "- ".repeat(5000));
    assert!(refused(&text).contains("more than 100 levels"));
}

#[test]
fn inline_values_stand_in_the_text() {
    let workload = read("\\set n random(3, 3)\nSELECT c FROM sbtest{n} WHERE id = :n;");
    let statement = workload.statements()[0];
    assert_eq!(statement.sql, "SELECT c FROM sbtest? WHERE id = ?");
    assert!(matches!(statement.params[..], [Param::Inline(2), Param::Variable(2)]), "{:?}", statement.params);
}

mod any_text {
    use super::*;
    use proptest::prelude::{ProptestConfig, any, prop, prop_assert_eq, proptest};

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

        #[test]
        fn is_read_or_refused_in_one_sentence(words in prop::collection::vec(any::<prop::sample::Index>(), 0..40), noise in ".{0,20}") {
            const WORDS: [&str; 30] = [
                "\\set x ", "\\if ", "\\elif ", "\\else", "\\endif", "\\repeat 2", "\\endrepeat", "\\while :x", "\\endwhile",
                "\\gset", "\\gset p_", "\\transaction a@2", "\\transaction b", "\\session", "\\text", "\\rows 5 ", "SELECT ",
                ":x", ":p_y", "{x}", "'", ";", "\n", "-- ", "(", ")", "random(1, 5)", " + ", "\\;", "LOAD DATA LOCAL ",
            ];
            let mut text: String = words.iter().map(|word| *word.get(&WORDS)).collect();
            text.push_str(&noise);
            match Workload::from_sql_file("t.sql", &text, &SqlOptions::default()) {
                Ok(workload) => {
                    workload.describe();
                    let marks: usize = workload.statements().iter().map(|statement| statement.params.len()).sum();
                    prop_assert_eq!(workload.statements().iter().map(|s| s.sql.matches('?').count()).sum::<usize>() >= marks, true);
                }
                Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1, "{}", error),
            }
        }
    }
}

#[test]
fn a_setup_makes_tables_before_and_is_sent_by_nobody() {
    let text = "-- \\set id random(1, 10)\n-- \\setup SELECT COUNT(*) = 1 FROM t;\nCREATE TABLE t (id INT);\nINSERT INTO t VALUES (1);\n\
                -- \\transaction read\nSELECT id FROM t WHERE id = :id;\n";
    let workload = read(text);
    let setup = workload.setup.as_ref().unwrap();
    assert_eq!(setup.check, "SELECT COUNT(*) = 1 FROM t");
    assert_eq!(setup.statements, ["CREATE TABLE t (id INT)", "INSERT INTO t VALUES (1)"]);
    assert_eq!((workload.transactions.len(), transaction(&workload, 1).len()), (1, 1));
    assert!(refused("-- \\setup\nCREATE TABLE t (id INT);").contains("gives 1 where the tables are there"));
    assert!(refused(&text.replace("VALUES (1)", "VALUES (:id)")).contains("without parameters"));
    assert!(refused("SELECT 1;\n-- \\setup SELECT 1\nCREATE TABLE t (id INT);").contains("\\transaction"));
}
