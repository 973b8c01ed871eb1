//! No bytes make the scanner panic, and an answer reads the same however its bytes arrive.

use proptest::prelude::*;
use whyso_http::{
    AnswerError, AnswerScanner, BodyReader, CookieJar, Encoding, Redirect, Scenario, Url, Wish,
};

const BODY_MAX: u64 = 5000;

/// What a scanner reports of a stream that ends after these pieces.
#[derive(Debug, PartialEq)]
struct Reading {
    error: Option<AnswerError>,
    consumed: usize,
    status: u16,
    closes: bool,
    body: (u64, Vec<u8>),
    location: Option<Vec<u8>>,
    cookies: Vec<Vec<u8>>,
}

fn scan<'b>(is_head: bool, pieces: impl Iterator<Item = &'b [u8]>) -> Reading {
    let mut scanner = AnswerScanner::new(BODY_MAX);
    scanner.begin(Wish { is_head, keeps_body: true });
    let (mut consumed, mut error) = (0, None);
    let mut is_complete = false;
    for piece in pieces {
        match scanner.feed(piece) {
            Ok(fed) => {
                consumed += fed.consumed;
                is_complete = fed.is_complete;
            }
            Err(reason) => {
                assert_eq!(scanner.feed(b"HTTP/1.1 200 OK\r\n\r\n"), Err(reason));
                error = Some(reason);
            }
        }
        if is_complete || error.is_some() {
            break;
        }
    }
    if error.is_none() && !is_complete {
        error = scanner.end_of_stream().err();
    }
    if error.is_some() {
        // How much of what is refused was read before differs with the pieces.
        return Reading {
            error,
            consumed: 0,
            status: 0,
            closes: false,
            body: (0, vec![]),
            location: None,
            cookies: vec![],
        };
    }
    Reading {
        error,
        consumed,
        status: scanner.status(),
        closes: scanner.closes(),
        body: (scanner.body_bytes(), scanner.body().to_vec()),
        location: scanner.location().map(<[u8]>::to_vec),
        cookies: scanner.cookies().map(<[u8]>::to_vec).collect(),
    }
}

fn check(is_head: bool, bytes: &[u8], piece_bytes: usize) -> Reading {
    let whole = scan(is_head, std::iter::once(bytes));
    assert_eq!(whole, scan(is_head, bytes.chunks(piece_bytes.max(1))));
    assert_eq!(whole, scan(is_head, bytes.chunks(1)));
    whole
}

fn good(bytes: &[u8]) -> Reading {
    let seen = check(false, bytes, 3);
    assert_eq!(seen.error, None, "{}", bytes.escape_ascii());
    seen
}

#[test]
fn every_way_to_end_a_body_is_read() {
    let sized =
        good(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\n\r\nhelloEXTRA");
    assert_eq!((sized.body.1.as_slice(), sized.closes), (&b"hello"[..], false));
    assert_eq!(sized.cookies, [b"a=1".to_vec(), b"b=2".to_vec()]);
    let chunked = good(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n5;x=y\r\nhello\r\n6\r\n world\r\n0\r\nTrailer: 1\r\n\r\n",
    );
    assert_eq!((chunked.body.1.as_slice(), chunked.closes), (&b"hello world"[..], false));
    let until_close = good(b"HTTP/1.0 200 OK\n\nall of it");
    assert_eq!((until_close.body.1.as_slice(), until_close.closes), (&b"all of it"[..], true));
    let redirect = good(b"HTTP/1.1 302 Found\r\nLocation:  /x \r\nContent-Length: 0\r\n\r\n");
    assert_eq!((redirect.status, redirect.location), (302, Some(b"/x".to_vec())));
    let interim = good(
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 No\r\n\r\n",
    );
    assert_eq!((interim.status, interim.closes), (204, false));
    let head = check(true, b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n", 2);
    assert_eq!((head.error, head.body.0, head.closes), (None, 0, false));
    assert!(good(b"HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 0\r\n\r\n").closes);
    assert!(!good(b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n").closes);
}

#[test]
fn what_is_no_answer_is_refused_for_its_reason() {
    let long_head = [b"HTTP/1.1 200 OK\r\nA: ".to_vec(), vec![b'x'; 70_000]].concat();
    let many_interim = b"HTTP/1.1 100 C\r\n\r\n".repeat(9);
    for (bytes, error) in [
        (&b"SSH-2.0-OpenSSH_9\r\n"[..], AnswerError::StatusLine),
        (b"\r\n", AnswerError::StatusLine),
        (b"HTTP/2 200\r\n", AnswerError::StatusLine),
        (b"HTTP/1.1 20\r\n", AnswerError::StatusLine),
        (b"HTTP/1.1 2000\r\n", AnswerError::StatusLine),
        (b"HTTP/1.1 101 Switching\r\n\r\n", AnswerError::StatusLine),
        (b"HTTP/1.1 200 OK\r\nno colon\r\n", AnswerError::Header),
        (b"HTTP/1.1 200 OK\r\n folded: 1\r\n", AnswerError::Header),
        (b"HTTP/1.1 200 OK\r\nA: \x01\r\n", AnswerError::Header),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n", AnswerError::Length),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n", AnswerError::Length),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n", AnswerError::TransferEncoding),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", AnswerError::Chunk),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", AnswerError::Chunk),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffff\r\n",
            AnswerError::BodyTooLarge { bytes_max: BODY_MAX },
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 5001\r\n\r\n",
            AnswerError::BodyTooLarge { bytes_max: BODY_MAX },
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", AnswerError::Cut),
        (b"HTTP/1.1 200 O", AnswerError::Cut),
        (b"", AnswerError::Cut),
        (&long_head, AnswerError::HeadTooLarge),
        (&many_interim, AnswerError::InterimAnswers),
    ] {
        let shown = bytes[..bytes.len().min(80)].escape_ascii();
        assert_eq!(check(false, bytes, 7).error, Some(error), "{shown}");
    }
}

/// Pieces of answers, so that many cases come far.
fn parts() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        Just(b"HTTP/1.1 200 OK\r\n".to_vec()),
        Just(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec()),
        Just(b"HTTP/1.0 302 Found\n".to_vec()),
        Just(b"Content-Length: 4\r\n".to_vec()),
        Just(b"Transfer-Encoding: chunked\r\n".to_vec()),
        Just(b"Connection: close\r\n".to_vec()),
        Just(b"Set-Cookie: a=b; Path=/\r\n".to_vec()),
        Just(b"Location: /x\r\n".to_vec()),
        Just(b"Content-Encoding: gzip\r\n".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"4\r\nbody\r\n".to_vec()),
        Just(b"0\r\n\r\n".to_vec()),
        Just(vec![b'x'; 3000]),
        prop::collection::vec(any::<u8>(), 0..20),
    ];
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn answers_read_the_same_in_any_pieces(bytes in parts(), is_head: bool, piece_bytes in 1..40usize) {
        check(is_head, &bytes, piece_bytes);
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), piece_bytes in 1..40usize) {
        check(false, &bytes, piece_bytes);
        let mut reader = BodyReader::new();
        for encoding in [Encoding::Gzip, Encoding::Deflate, Encoding::Identity, Encoding::Other] {
            reader.read(encoding, &bytes);
        }
        let mut jar = CookieJar::new();
        jar.set(&bytes);
        let mut out = Vec::new();
        jar.write(b"/", &mut out);
        prop_assert!(out.iter().filter(|byte| **byte == b'\n').count() <= 1, "a cookie never adds a line");
    }

    #[test]
    fn no_address_panics_or_adds_a_line(text in ".{0,60}", location in ".{0,60}") {
        let _ = Url::parse(&text);
        let _ = Url::parse(&format!("http://{text}"));
        let site = Url::parse("https://shop.example/").unwrap();
        if let Redirect::SameSite(path) = site.follow("/a/b?c", location.as_bytes()) {
            prop_assert!(path.starts_with('/') && !path.contains([' ', '\r', '\n']), "{path}");
        }
        let _ = Scenario::parse("any.toml", &text);
        let _ = Scenario::parse("any.toml", &format!("[[page]]\nname = 'a'\npath = '/{location}'"));
    }
}
