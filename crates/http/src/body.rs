//! Bodies that values are taken from.

use std::io::Read;

use flate2::bufread::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use crate::error::KEPT_BYTES_MAX;
use crate::head::Encoding;

/// Reads bodies, compressed or not. Its buffer is kept from one to the next.
#[derive(Debug, Default)]
pub struct BodyReader {
    plain: Vec<u8>,
}

impl BodyReader {
    pub const fn new() -> BodyReader {
        BodyReader { plain: Vec::new() }
    }

    /// Returns what a body holds, at most [`KEPT_BYTES_MAX`] bytes of it. Of a body that is cut or damaged it is what comes before
    /// that. An encoding that is not known gives the body as it is.
    pub fn read<'b>(&'b mut self, encoding: Encoding, body: &'b [u8]) -> &'b [u8] {
        self.plain.clear();
        let most = KEPT_BYTES_MAX as u64;
        // What came before the damage is in the buffer.
        let _ = match encoding {
            Encoding::Identity | Encoding::Other => return &body[..body.len().min(KEPT_BYTES_MAX)],
            Encoding::Gzip => MultiGzDecoder::new(body).take(most).read_to_end(&mut self.plain),
            // The name stands for zlib's format, but some servers send it without its frame (RFC 9110, 8.4.1.2).
            Encoding::Deflate if is_zlib(body) => {
                ZlibDecoder::new(body).take(most).read_to_end(&mut self.plain)
            }
            Encoding::Deflate => DeflateDecoder::new(body).take(most).read_to_end(&mut self.plain),
        };
        &self.plain
    }
}

/// Whether bytes begin with a header of zlib (RFC 1950, 2.2).
fn is_zlib(body: &[u8]) -> bool {
    let [method, flags, ..] = body else { return false };
    method & 0x0f == 8 && u16::from_be_bytes([*method, *flags]).is_multiple_of(31)
}

/// The first text between `after` and `before`. An empty `before` takes all that follows.
pub fn between<'t>(text: &'t [u8], after: &[u8], before: &[u8]) -> Option<&'t [u8]> {
    let begin = find(text, after)? + after.len();
    let rest = &text[begin..];
    if before.is_empty() {
        return Some(rest);
    }
    Some(&rest[..find(rest, before)?])
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    let Some(first) = part.first() else { return Some(0) };
    let mut from = 0;
    while let Some(place) = text.get(from..)?.iter().position(|byte| byte == first) {
        if text[from + place..].starts_with(part) {
            return Some(from + place);
        }
        from += place + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    #[test]
    fn a_value_stands_between_two_texts() {
        let page = b"<input name=\"token\" value=\"t-42\"> <b>vvalue=\"x\"</b>";
        assert_eq!(between(page, b"name=\"token\" value=\"", b"\""), Some(&b"t-42"[..]));
        assert_eq!(between(page, b"vvalue=", b"<"), Some(&b"\"x\""[..]));
        assert_eq!(between(page, b"</", b""), Some(&b"b>"[..]));
        assert_eq!(between(page, b"nowhere", b"\""), None);
        assert_eq!(between(page, b"value=\"t", b"~"), None);
        assert_eq!(between(b"", b"", b""), Some(&b""[..]));
    }

    #[test]
    fn compressed_bodies_are_read_within_the_bound() {
        let text = b"a page of a shop ".repeat(100);
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&text).unwrap();
        zlib.write_all(&text).unwrap();
        raw.write_all(&text).unwrap();
        let mut reader = BodyReader::new();
        let gzip = gzip.finish().unwrap();
        assert_eq!(reader.read(Encoding::Gzip, &gzip), text);
        assert_eq!(reader.read(Encoding::Deflate, &zlib.finish().unwrap()), text);
        assert_eq!(reader.read(Encoding::Deflate, &raw.finish().unwrap()), text);
        assert_eq!(reader.read(Encoding::Identity, &text), text);
        assert!(text.starts_with(reader.read(Encoding::Gzip, &gzip[..gzip.len() / 2])));
        let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
        bomb.write_all(&vec![0; 3 * KEPT_BYTES_MAX]).unwrap();
        assert_eq!(reader.read(Encoding::Gzip, &bomb.finish().unwrap()).len(), KEPT_BYTES_MAX);
    }
}
