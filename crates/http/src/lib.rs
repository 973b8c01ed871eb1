//! HTTP/1.1 for the load: requests are encoded, answers are scanned, and a scenario says which pages users ask for.
//!
//! [`Request::encode`] appends a request to a buffer. [`AnswerScanner`] finds the end of its answer, however the bytes arrive, and
//! keeps only what was asked for. [`CookieJar`] keeps one user's cookies. [`BodyReader`] reads a body to take values from it.
//! [`Scenario`] is the file with pages, and [`Walk`] chooses one user's next page.
//!
//! This crate does no I/O and reads no clock. Any bytes of a server give an answer or an error, and never a panic. All that a
//! server sends is bounded: see [`HEAD_BYTES_MAX`], [`KEPT_BYTES_MAX`], and the bound on bodies of [`AnswerScanner::new`].
//! Once warm, requests and answers allocate nothing. Only the reading of a compressed body does.
//!
//! ```
//! use whyso_http::{AnswerScanner, BODY_BYTES_MAX, Wish};
//!
//! let mut scanner = AnswerScanner::new(BODY_BYTES_MAX);
//! scanner.begin(Wish { is_head: false, keeps_body: true });
//! let fed = scanner.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")?;
//! assert!(fed.is_complete);
//! assert_eq!((scanner.status(), scanner.body()), (200, &b"hi"[..]));
//! # Ok::<(), whyso_http::AnswerError>(())
//! ```

mod answer;
mod body;
mod cookies;
mod error;
mod head;
mod percent;
mod request;
mod scan;
mod scenario;
mod url;

pub use answer::{AnswerScanner, Progress, Wish};
pub use body::{BodyReader, between};
pub use cookies::CookieJar;
pub use error::{AnswerError, BODY_BYTES_MAX, HEAD_BYTES_MAX, INTERIM_ANSWERS_MAX, KEPT_BYTES_MAX, UrlError};
pub use head::Encoding;
pub use percent::{encode_component, encode_form};
pub use request::{Method, Request, write_headers};
pub use scenario::{
    Body, Expect, Page, Part, Scenario, ScenarioError, Take, Template, Think, ValueSource, Walk,
};
pub use url::{Redirect, Url};
