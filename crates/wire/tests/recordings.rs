//! Answers that a real MariaDB gave (see `record.py`), whole and in pieces.

mod support;

use support::{Form, captured_text, recordings, scan, scan_captured};
use whyso_wire::{Answer, Capabilities, PrepareScanner, ResponseScanner, RowFormat, RowText};

#[test]
fn every_recorded_answer_is_read_as_what_it_is() {
    let expected = [
        ("ping", "ok 0, end"),
        ("update", "ok 3, end"),
        ("rows", "rows 3 in 918, end"),
        ("no_rows", "rows 0 in 0, end"),
        ("several_results", "rows 1 in 2, ok 0, rows 2 in 8, end"),
        (
            "several_results_then_error",
            "rows 1 in 2, error 1146 42S02: Table 'sbtest.missing' doesn't exist, end",
        ),
        ("make_procedure", "ok 0, end"),
        ("procedure", "rows 1 in 2, rows 2 in 8, ok 0, end"),
        ("prepare_point", "params: 1, columns: 1 }, end"),
        ("prepare_range", "params: 2, columns: 1 }, end"),
        ("prepare_update", "params: 1, columns: 0 }, end"),
        ("prepare_begin", "params: 0, columns: 0 }, end"),
        ("prepare_commit", "params: 0, columns: 0 }, end"),
        ("prepare_call", "params: 0, columns: 0 }, end"),
        ("prepare_error", "error 1146: Table 'sbtest.missing' doesn't exist, end"),
        ("begin", "ok 0, end"),
        ("point_first", "rows 1 in 122, end"),
        ("point_again", "rows 1 in 122, end"),
        ("point_none", "rows 0 in 0, end"),
        ("range", "rows 100 in 12200, end"),
        ("execute_update", "ok 1, end"),
        ("commit", "ok 0, end"),
        ("execute_call", "rows 1 in 6, rows 2 in 12, ok 0, end"),
        ("reset", "ok 0, end"),
        ("local_infile", "wants /etc/passwd, end"),
    ];
    for recording in recordings() {
        let summary = scan(recording.form, recording.agreed, [recording.bytes.as_slice()]);
        let summary =
            summary.unwrap_or_else(|error| panic!("{} {}: {error}", recording.mode, recording.name));
        match recording.name {
            "syntax_error" => {
                assert!(summary.starts_with("error 1064 42000: You have an error"), "{summary}")
            }
            "error_among_rows" => {
                assert_eq!(summary, "error 1242 21000: Subquery returns more than 1 row, end")
            }
            "execute_unknown" => {
                assert!(summary.starts_with("error 1243 HY000: Unknown prepared"), "{summary}")
            }
            name => {
                let (_, expected) =
                    expected.iter().find(|(known_name, _)| *known_name == name).expect("a known recording");
                // Ids of statements are the whole server's, and no two recordings have the same.
                let summary = summary
                    .split_once("statement_id")
                    .map_or(summary.as_str(), |(_, rest)| rest.split_once(", ").expect("more fields").1);
                assert_eq!(summary, *expected, "{} {name}", recording.mode);
            }
        }
    }
}

#[test]
fn however_an_answer_is_cut_it_is_read_the_same() {
    for recording in recordings() {
        let bytes = recording.bytes.as_slice();
        let whole = scan(recording.form, recording.agreed, [bytes]).unwrap();
        let check = |pieces: Vec<&[u8]>, how: &str| {
            let summary = scan(recording.form, recording.agreed, pieces);
            assert_eq!(summary.as_ref(), Ok(&whole), "{} {} {how}", recording.mode, recording.name);
        };
        for at in 1..bytes.len() {
            check(vec![&bytes[..at], &bytes[at..]], "cut in two");
        }
        for length in 1..40 {
            check(bytes.chunks(length).collect(), "cut into equal pieces");
        }
    }
}

#[test]
fn an_answer_that_is_cut_off_is_never_complete() {
    for recording in recordings() {
        let whole = scan(recording.form, recording.agreed, [recording.bytes.as_slice()]).unwrap();
        for length in 0..recording.bytes.len() {
            let summary = scan(recording.form, recording.agreed, [&recording.bytes[..length]]).unwrap();
            assert!(
                !summary.ends_with("end") && whole.starts_with(&summary),
                "{} at {length}: {summary}",
                recording.name
            );
        }
    }
}

#[test]
fn bytes_after_the_end_are_refused_or_left_alone() {
    for recording in recordings().into_iter().filter(|recording| recording.form != Form::Prepare) {
        let mut scanner = ResponseScanner::new(recording.agreed);
        let format = if recording.form == Form::Text { RowFormat::Text } else { RowFormat::Binary };
        scanner.begin(format);
        let mut with_more = recording.bytes.clone();
        with_more.push(0);
        let mut at = 0;
        loop {
            let fed = scanner.feed(&with_more[at..]).unwrap();
            at += fed.consumed;
            if fed.complete.is_some_and(|complete| !complete.more_results) {
                break;
            }
        }
        assert_eq!(at, recording.bytes.len(), "{}", recording.name);
        assert!(scanner.feed(&with_more[at..]).is_err(), "{}", recording.name);
    }
}

#[test]
fn every_result_of_an_answer_is_kept_when_it_is_wanted() {
    let long = "x".repeat(300);
    // Which rows a LIMIT without an order gives is up to the server.
    let expected = [
        ("update", "done 3 0;".to_string()),
        (
            "rows",
            format!(
                "3 columns [id,NULL,REPEAT(\\'x\\', 300)]: 1 NULL {long}, 2 NULL {long}, 3 NULL {long},;"
            ),
        ),
        ("several_results", "1 columns [1]: 1,;done 0 0;1 columns [id]: ".to_string()),
        ("several_results_then_error", "1 columns [1]: 1,;".to_string()),
        ("procedure", "1 columns [1]: 1,;1 columns [id]: ".to_string()),
    ];
    for recording in recordings().into_iter().filter(|recording| recording.form == Form::Text) {
        for length in [7, 100, recording.bytes.len()] {
            let results =
                scan_captured(RowFormat::Text, recording.agreed, recording.bytes.chunks(length)).unwrap();
            for (name, expected) in &expected {
                if recording.name == *name {
                    assert!(results.starts_with(expected), "{} {name}: {results}", recording.mode);
                }
            }
        }
    }
}

#[test]
fn nothing_is_kept_when_it_is_not_wanted() {
    for recording in recordings().into_iter().filter(|recording| recording.name == "rows") {
        let mut scanner = ResponseScanner::new(recording.agreed);
        scanner.begin(RowFormat::Text);
        scanner.feed(&recording.bytes).unwrap();
        assert_eq!(captured_text(scanner.captured()), "");
    }
}

#[test]
fn binary_rows_are_shown_by_the_types_that_came_with_the_preparation() {
    let all = recordings();
    for row in all.iter().filter(|recording| recording.name == "point_again") {
        let preparation = all
            .iter()
            .find(|recording| recording.name == "prepare_point" && recording.mode == row.mode)
            .unwrap();
        for length in [5, 1000] {
            let mut prepare = PrepareScanner::new(preparation.agreed);
            prepare.capture(true);
            prepare.begin();
            for piece in preparation.bytes.chunks(length) {
                prepare.feed(piece).unwrap();
            }
            assert_eq!(prepare.columns().len(), 1);
            assert_eq!(prepare.columns().name(0), b"c");
            let mut scanner = ResponseScanner::new(row.agreed);
            scanner.capture(true);
            scanner.begin(RowFormat::Binary);
            for piece in row.bytes.chunks(length) {
                scanner.feed(piece).unwrap();
            }
            let Some(whyso_wire::CapturedResult::Rows(set)) = scanner.captured().get(0) else {
                panic!("{}: rows were expected", row.mode)
            };
            let mut text = RowText::new();
            set.row(0).unwrap().decode(prepare.columns().types(), &mut text).unwrap();
            assert_eq!(text.fields().next().unwrap().unwrap().len(), 119);
        }
    }
}

#[test]
fn a_local_file_that_we_send_ourselves_is_followed_by_an_ordinary_answer() {
    let recording = recordings().into_iter().find(|recording| recording.name == "local_infile").unwrap();
    let mut scanner = ResponseScanner::new(recording.agreed);
    scanner.begin(RowFormat::Text);
    let fed = scanner.feed(&recording.bytes).unwrap();
    assert_eq!(fed.complete.unwrap().answer, Answer::LocalInfile);
    let mut out = Vec::new();
    let next = whyso_wire::encode::local_file(&mut out, scanner.sequence_next(), b"1\n2\n");
    let next = whyso_wire::encode::local_file_end(&mut out, next);
    assert_eq!((out[3], next), (2, 4));
    scanner.resume(next);
    let fed = scanner.feed(&[7, 0, 0, 4, 0x00, 2, 0, 2, 0, 0, 0]).unwrap();
    let answer = fed.complete.unwrap().answer;
    assert_eq!(answer, Answer::Ok { affected_rows: 2, status: 2, warnings: 0 });
}

#[test]
fn packets_of_16_mib_and_their_continuations_are_one_row() {
    let agreed = Capabilities { deprecate_eof: true, cache_metadata: false };
    let mut bytes = vec![1, 0, 0, 1, 1, 3, 0, 0, 2, b'd', b'e', b'f'];
    bytes.extend_from_slice(&[0xff, 0xff, 0xff, 3]);
    bytes.resize(bytes.len() + 0xff_ffff, 0);
    // The continuation begins with what would be an end of rows.
    bytes.extend_from_slice(&[5, 0, 0, 4, 0xfe, 0, 0, 2, 0]);
    bytes.extend_from_slice(&[7, 0, 0, 5, 0xfe, 0, 0, 2, 0, 0, 0]);
    for length in [bytes.len(), 16 * 1024, 1_000_003] {
        let summary = scan(Form::Binary, agreed, bytes.chunks(length)).unwrap();
        assert_eq!(summary, format!("rows 1 in {}, end", 0xff_ffff + 5));
    }
}

#[test]
fn what_no_server_may_send_is_an_error_with_its_reason() {
    let agreed = Capabilities { deprecate_eof: true, cache_metadata: false };
    let cases: [(&[u8], &str); 6] = [
        (&[1, 0, 0, 7, 0], "packet number 1 was due, and number 7 came"),
        (&[1, 0, 0, 1, 0], "ended before its affected rows"),
        (&[0, 0, 0, 1], "an empty packet"),
        (&[1, 0, 0, 1, 0xfe], "0xfe can't stand at the beginning"),
        (&[1, 0, 0, 1, 0xff], "ended before its error code"),
        (&[1, 0, 0, 1, 1, 1, 0, 0, 2, 3, 1, 0, 0, 3, 9], "0x09 can't stand among binary rows"),
    ];
    for (bytes, expected) in cases {
        let message = scan(Form::Binary, agreed, [bytes]).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
}
