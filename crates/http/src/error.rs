//! What is wrong with an answer or an address, and the bounds on what a server may send.

use thiserror::Error;

/// Longest head of an answer, in bytes; interim answers and trailers have the same bound.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Longest body that is counted as an answer by default, in bytes.
pub const BODY_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Bytes of a body, or of what a compressed body holds, that values are taken from. The rest is counted and dropped.
pub const KEPT_BYTES_MAX: usize = 1024 * 1024;
/// Interim answers (status 100 to 199) before the answer itself.
pub const INTERIM_ANSWERS_MAX: u8 = 8;

/// Why bytes are no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AnswerError {
    #[error("it does not begin with a status line of HTTP/1.0 or HTTP/1.1")]
    StatusLine,
    #[error("a line of its head is no header")]
    Header,
    #[error("its Content-Length is no number, or is given twice")]
    Length,
    #[error("its Transfer-Encoding is not chunked")]
    TransferEncoding,
    #[error("the size of a chunk is no number, or a chunk does not end where it should")]
    Chunk,
    #[error("its head is longer than {HEAD_BYTES_MAX} bytes")]
    HeadTooLarge,
    #[error("its body is longer than {bytes_max} bytes")]
    BodyTooLarge { bytes_max: u64 },
    #[error("more than {INTERIM_ANSWERS_MAX} interim answers came before it")]
    InterimAnswers,
    #[error("bytes arrived that nobody had asked for")]
    AfterEnd,
    #[error("the connection ended before the answer did")]
    Cut,
}

/// Why a text is no address of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UrlError {
    #[error("it begins with neither http:// nor https://")]
    Scheme,
    #[error(
        "it holds a user or a password, which a process list would show; send them by a header or a form of a scenario"
    )]
    UserInfo,
    #[error("it has no host")]
    NoHost,
    #[error("its host has a character that no host name has")]
    Host,
    #[error("its port is no number from 1 to 65535")]
    Port,
    #[error("it has a space or a control character; write them as %20")]
    Character,
    #[error("it is longer than {bytes_max} bytes")]
    TooLong { bytes_max: usize },
}
