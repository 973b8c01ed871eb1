//! What a site answers: heads, bodies, cookies, addresses and compressed text.

use whyso_http::{AnswerError, AnswerScanner, BodyReader, CookieJar, Scenario, Url, Wish, between};

use crate::choices::Choices;

const PARTS: [&[u8]; 18] = [
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.0 302 Found\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\n",
    b"Content-Length: 4\r\n",
    b"Content-Length: 99999999999999999999\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Connection: close\r\n",
    b"Content-Encoding: gzip\r\n",
    b"Content-Encoding: deflate\r\n",
    b"Location: //elsewhere/x\r\n",
    b"Location: ../x?y#z\r\n",
    b"Set-Cookie: a=b; Path=/; Max-Age=1\r\n",
    b"\r\n",
    b"4\r\nbody\r\n",
    b"ffffffffffffffff\r\n",
    b"0\r\n\r\n",
    b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03",
];
const PARTS_MAX: usize = 24;
const BODY_BYTES_MAX: u64 = 2000;

/// An answer is read the same in any pieces, and what is taken from it adds no line to the next request.
pub fn pages(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let (is_head, piece_bytes) = (choices.once_in(8), 1 + choices.below(40));
    let mut stream = Vec::new();
    for _ in 0..choices.below(PARTS_MAX) {
        if choices.once_in(4) {
            stream.extend_from_slice(choices.some(40));
        } else {
            stream.extend_from_slice(choices.one_of::<&[u8]>(&PARTS));
        }
    }
    let (whole, error) = scan(is_head, [stream.as_slice()]);
    let (in_pieces, other_error) = scan(is_head, stream.chunks(piece_bytes));
    assert_eq!(error, other_error);
    if error.is_none() {
        assert_eq!((whole.status(), whole.body()), (in_pieces.status(), in_pieces.body()));
        assert_eq!((whole.closes(), whole.body_bytes()), (in_pieces.closes(), in_pieces.body_bytes()));
        assert!(whole.body_bytes() <= BODY_BYTES_MAX);
    }
    let mut reader = BodyReader::new();
    let _ = between(reader.read(whole.encoding(), whole.body()), b"o", b"y");
    let mut jar = CookieJar::new();
    whole.cookies().for_each(|cookie| jar.set(cookie));
    jar.set(choices.some(60));
    let mut line = Vec::new();
    jar.write(b"/", &mut line);
    assert!(line.iter().filter(|byte| **byte == b'\n').count() <= 1);
    let site = Url::parse("http://shop:8080/").expect("an address");
    if let Some(location) = whole.location() {
        let _ = site.follow("/a/b?c", location);
    }
    let rest = String::from_utf8_lossy(choices.rest()).into_owned();
    let _ = (Url::parse(&rest), Scenario::parse("any.toml", &rest));
    let _ = Scenario::parse("any.toml", &format!("[[page]]\nname = 'a'\npath = '/a'\n{rest}"));
}

fn scan<'b>(
    is_head: bool,
    pieces: impl IntoIterator<Item = &'b [u8]>,
) -> (AnswerScanner, Option<AnswerError>) {
    let mut scanner = AnswerScanner::new(BODY_BYTES_MAX);
    scanner.begin(Wish { is_head, keeps_body: true });
    for piece in pieces {
        match scanner.feed(piece) {
            Ok(fed) if fed.is_complete => return (scanner, None),
            Ok(_) => {}
            Err(error) => return (scanner, Some(error)),
        }
    }
    let end = scanner.end_of_stream();
    (scanner, end.err())
}
