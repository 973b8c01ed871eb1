//! Access logs: formats and lines.

use whyso_access_log::{KindBounds, LogFormat, LogReader, NAMED_FORMATS, ReadRequest, TallyBounds};

use crate::choices::Choices;

const PIECES_MAX: usize = 400;
const BOUNDS: TallyBounds =
    TallyBounds { kinds_max: 6, tree: KindBounds { segments_max: 3, places_max: 40 } };

/// What formats and lines are made of.
const PIECES: [&str; 40] = [
    "\"",
    "\\\"",
    "\\x41",
    "\\x",
    "\\",
    " ",
    " ",
    "-",
    "[",
    "]",
    "{",
    "}",
    "%",
    "$",
    "%>s",
    "%{",
    "}t",
    "%D",
    "$request",
    "$status",
    "$upstream_response_time",
    ", ",
    " : ",
    "28/Nov/2026:19:40:04 +0000",
    "1795894804.5",
    "GET /a/",
    "/",
    "?",
    "&a=",
    " HTTP/1.1",
    "200",
    "0.013",
    "99999999999999999999",
    "\n",
    "\n",
    "{\"status\":",
    "\"ts\":",
    "é",
    "\u{1b}",
    "::1 - - ",
];

/// No log makes its reader panic, lose a line, or keep more kinds than it may.
///
/// # Panics
/// One does.
pub fn access_logs(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let (name, _) = NAMED_FORMATS[choices.below(NAMED_FORMATS.len())];
    let mut own = String::new();
    for _ in 0..choices.below(12) {
        own.push_str(PIECES[choices.below(PIECES.len())]);
    }
    let whole_lines = choices.once_in(2);
    let mut text = String::new();
    for _ in 0..PIECES_MAX {
        if choices.is_empty() {
            break;
        }
        if whole_lines && choices.once_in(8) {
            text.push_str("::1 - - [28/Nov/2026:19:40:04 +0000] \"GET /a HTTP/1.1\" 200 5 \"-\" \"-\" 7\n");
        }
        text.push_str(PIECES[choices.below(PIECES.len())]);
    }
    let formats = [None, LogFormat::compile(name).ok(), LogFormat::compile(&own).ok()];
    for format in formats {
        let is_guessed = format.is_none();
        let mut reader = LogReader::new(ReadRequest { format, bounds: BOUNDS, ..ReadRequest::default() });
        let pushed = text.as_bytes().chunks(11).try_for_each(|piece| reader.push(piece));
        let Ok(summary) = pushed.and_then(|()| reader.finish()) else {
            assert!(is_guessed, "only a guess can fail");
            continue;
        };
        let lines = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
        let lines = lines.filter(|line| !line.is_empty()).count() as u64;
        assert_eq!(summary.total.requests + summary.malformed, lines, "{text:?}");
        assert!(summary.lines.len() <= BOUNDS.kinds_max, "{:?}", summary.lines);
        assert_eq!(summary.lines.iter().map(|line| line.sums.requests).sum::<u64>(), summary.total.requests);
    }
}
