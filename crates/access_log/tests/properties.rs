//! Whatever a log holds, nothing panics, and every size has a bound.

use proptest::prelude::*;
use whyso_access_log::{
    KindBounds, KindTree, LINE_BYTES_MAX, LineBuffer, LogFormat, NAMED_FORMATS, RawLine, Request, Tally,
    TallyBounds,
};

fn requests(paths: &[String]) -> impl Iterator<Item = Request> {
    paths.iter().map(|path| Request {
        method: "GET".to_string(),
        path: path.clone(),
        status: Some(200),
        duration_ns: Some(path.len() as u64 * 1000),
        ..Request::default()
    })
}

/// Name, requests and time of each kind.
fn kinds(paths: &[String]) -> Vec<(String, u64, u64)> {
    let bounds = TallyBounds { tree: KindBounds { segments_max: 3, places_max: 100_000 }, kinds_max: 10_000 };
    let mut tally = Tally::new(bounds);
    requests(paths).for_each(|request| {
        tally.add(&request);
    });
    let lines = tally.lines();
    lines.into_iter().map(|line| (line.name, line.sums.requests, line.sums.duration_ns)).collect()
}

proptest! {
    #[test]
    fn any_line_is_a_request_or_malformed(line in "\\PC*|[ -~]{0,200}|.{0,100}") {
        for (name, _) in NAMED_FORMATS {
            let _ = LogFormat::compile(name).unwrap().parse(&line);
        }
    }

    #[test]
    fn any_format_is_compiled_or_refused(format in "([%$\"{}a-z<>^,:! -]{1,4}){0,12}|\\PC*", line in "[ -~]{0,80}") {
        if let Ok(format) = LogFormat::compile(&format) {
            let _ = format.parse(&line);
        }
    }

    #[test]
    fn a_line_that_changed_in_one_place_panics_nowhere(at in 0..120_usize, byte in any::<char>()) {
        let line = "::1 - - [28/Nov/2026:19:40:04 +0000] \"GET /items/17?page=2 HTTP/1.1\" 200 512 \"-\" \"curl \\\"\\x41\" 1500";
        let mut letters: Vec<char> = line.chars().collect();
        let place = at % letters.len();
        letters[place] = byte;
        let changed: String = letters.into_iter().collect();
        for (name, _) in NAMED_FORMATS {
            let _ = LogFormat::compile(name).unwrap().parse(&changed);
        }
    }

    #[test]
    fn kinds_do_not_depend_on_the_order_of_paths(
        (one, other) in prop::collection::vec("(/[a-f]{1,2}){1,4}(\\.png)?(\\?[ab]=1)?", 0..80)
            .prop_flat_map(|paths| (Just(paths.clone()), Just(paths).prop_shuffle()))
    ) {
        prop_assert_eq!(kinds(&one), kinds(&other));
    }

    #[test]
    fn kinds_are_bounded_and_lose_no_request(paths in prop::collection::vec("(/\\PC{0,6}){0,12}", 0..200)) {
        let bounds = TallyBounds { tree: KindBounds { segments_max: 20, places_max: 60 }, kinds_max: 8 };
        let mut tally = Tally::new(bounds);
        for request in requests(&paths) {
            tally.add(&request);
        }
        let lines = tally.lines();
        prop_assert!(lines.len() <= 8 && tally.places() <= 32);
        prop_assert_eq!(lines.iter().map(|line| line.sums.requests).sum::<u64>(), paths.len() as u64);
        prop_assert_eq!(tally.total().requests, paths.len() as u64);
    }

    #[test]
    fn a_pattern_of_a_pattern_is_the_same(path in "(/[a-zA-Z0-9._-]{0,12}){0,10}(\\?[a-z]{1,3}=[0-9]{1,3})?") {
        let mut tree = KindTree::new(KindBounds::default());
        let pattern = tree.learn(&path).unwrap();
        prop_assert_eq!(tree.current(&pattern), Some(pattern.clone()));
        prop_assert_eq!(tree.find(&path), Some(pattern));
    }

    #[test]
    fn lines_do_not_depend_on_the_pieces_that_were_read(
        bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..300),
        length in 1..20_usize
    ) {
        let collect = |length: usize| {
            let mut lines = Vec::new();
            let mut buffer = LineBuffer::default();
            let mut take = |line: RawLine<'_>| lines.push(format!("{line:?}"));
            bytes.chunks(length).for_each(|part| buffer.push(part, &mut take));
            buffer.finish(&mut take);
            lines
        };
        prop_assert_eq!(collect(length), collect(1000));
    }
}

#[test]
fn a_line_that_is_too_long_is_one_line_and_the_next_one_is_read() {
    let mut bytes = vec![b'x'; LINE_BYTES_MAX * 3];
    bytes.extend_from_slice(b"\nnext\nbegun");
    for length in [7, 4096, bytes.len()] {
        let mut lines = Vec::new();
        let mut buffer = LineBuffer::default();
        for part in bytes.chunks(length) {
            buffer.push(part, |line| {
                lines.push(match line {
                    RawLine::Whole(line) => String::from_utf8_lossy(line).into_owned(),
                    RawLine::TooLong => "too long".to_string(),
                });
            });
        }
        assert_eq!(lines, ["too long", "next"], "{length} bytes at a time");
    }
}
