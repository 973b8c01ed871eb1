//! The scenario: which pages users ask for, how often, in which order, and what is required of each.

mod check;
mod file;
mod template;
#[cfg(test)]
mod tests;
mod walk;

use std::time::Duration;

use thiserror::Error;

use crate::request::Method;
pub use template::{Part, Template};
pub use walk::Walk;

/// Name of the value that is a user's number, from 0.
pub(crate) const USER: &str = "user";

/// A scenario that was checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// For tables: the file's name, or the address.
    pub name: String,
    /// At least one.
    pub pages: Vec<Page>,
    /// Each user's first page; `None`: drawn by weight.
    pub begin: Option<usize>,
    /// Redirects that are followed for one page, at most.
    pub redirects_max: u32,
    /// Headers of every request, as lines.
    pub headers: Vec<u8>,
    pub value_names: Vec<String>,
    /// One for each name.
    pub value_sources: Vec<ValueSource>,
}

/// One kind of page, which is one kind of transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    pub name: String,
    pub method: Method,
    pub path: Template,
    /// Headers of this page in addition to the scenario's, as lines.
    pub headers: Vec<u8>,
    pub body: Option<Body>,
    /// Relative frequency, where it is drawn by weight.
    pub weight: f64,
    /// Pages that may follow and their probabilities, which add up to 1; empty: drawn by weight.
    pub next: Vec<(usize, f64)>,
    /// `None`: as the load's own think time says.
    pub think: Option<Think>,
    pub cycle: Option<Duration>,
    /// Bound that the 90th percentile has to keep, in milliseconds.
    pub goal_ms: Option<f64>,
    pub expect: Expect,
    pub takes: Vec<Take>,
}

/// What a request sends.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// Names and values, sent as `application/x-www-form-urlencoded`.
    Form(Vec<(String, Template)>),
    Text {
        content_type: String,
        text: Template,
    },
}

/// Which status is a good answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// 200 to 299 or 304, once redirects were followed.
    Good,
    /// This one. A redirect with this status is not followed.
    Status(u16),
}

/// A value that is taken from an answer's body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Take {
    /// Its place among the scenario's values.
    pub value: usize,
    pub after: Vec<u8>,
    pub before: Vec<u8>,
}

/// The pause between a user's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Think {
    Fixed(Duration),
    /// With this mean.
    Exponential(Duration),
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueSource {
    /// A page takes it from its answer. Before that it is empty.
    Answer,
    /// The user's number.
    User,
    /// One of these, drawn for each request.
    List(Vec<String>),
    /// A whole number, both ends included, drawn for each request.
    Range { from: u64, to: u64 },
}

/// Why a file is no scenario.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ScenarioError {
    #[error("{message}")]
    Toml { message: String },
    #[error("it is longer than {bytes_max} bytes: split it")]
    TooLong { bytes_max: usize },
    #[error("it has no page: give at least one [[page]] with name and path")]
    NoPage,
    #[error("{place}: more than {most} {what} are too many: give fewer")]
    TooMany { place: String, what: &'static str, most: usize },
    #[error("{place}: '{name}' is no name: give letters, digits, - and _, at most 64")]
    Name { place: String, name: String },
    #[error("two pages have the name '{name}': give each its own")]
    SamePage { name: String },
    #[error("{place} names the page '{name}', which the file does not have")]
    UnknownPage { place: String, name: String },
    #[error(
        "{place} uses the value '{name}', which nothing gives: define it in [values], or let a page take it"
    )]
    UnknownValue { place: String, name: String },
    #[error("the value '{name}' is defined twice: in [values], by a page's take, or as the user's number")]
    SameValue { name: String },
    #[error("{place}: '{text}' is no method: give GET, HEAD, POST, PUT, PATCH or DELETE")]
    Method { place: String, text: String },
    #[error("{place}: the path '{text}' must begin with / and have neither spaces nor control characters")]
    Path { place: String, text: String },
    #[error("{place}: the header '{name}' {problem}")]
    Header { place: String, name: String, problem: &'static str },
    #[error("{place}: {problem}")]
    Body { place: String, problem: &'static str },
    #[error("{place}: the weight {weight} is out of range: give a number from 0 to 1000000")]
    Weight { place: String, weight: String },
    #[error("no page is ever drawn: give a weight above 0 to at least one page")]
    NoWeight,
    #[error("{place}: the probabilities of next add up to {sum}: they must be 0 to 1 each, and add up to 1")]
    Next { place: String, sum: String },
    #[error("{place}: '{text}' is no length of time up to 1 h: give one such as 500ms, 2s or 1m")]
    Time { place: String, text: String },
    #[error("{place}: goal_ms {goal} is out of range: give milliseconds above 0, at most 3600000")]
    Goal { place: String, goal: String },
    #[error("{place}: expect {status} is no status: give one from 200 to 599")]
    Expect { place: String, status: u16 },
    #[error("{place}: take needs a text in 'after', at most 4096 bytes; and HEAD has no body to take from")]
    Take { place: String },
    #[error("the value '{name}' needs one or more texts, or a range whose 'from' is not above its 'to'")]
    EmptyValue { name: String },
    #[error("redirects {count} are too many to follow: give 0 to 20")]
    Redirects { count: u32 },
}

impl Scenario {
    /// Parses the text of a file. `name` is for tables and messages.
    ///
    /// # Errors
    /// The first thing that is wrong, in one sentence.
    pub fn parse(name: &str, text: &str) -> Result<Scenario, ScenarioError> {
        check::parse(name, text)
    }

    /// The scenario of a single address, without think time. `path` begins with `/`, and is sent as it is.
    pub fn of_path(name: &str, path: &str) -> Scenario {
        check::of_path(name, path)
    }

    /// Whether the pages' frequencies follow from weights only, so that each request's page is a function of the seed.
    pub fn is_mix(&self) -> bool {
        self.begin.is_none() && self.pages.iter().all(|page| page.next.is_empty())
    }

    /// Puts a prefix before every path, as an address with a path of its own has it.
    pub fn put_under(&mut self, prefix: &str) {
        let prefix = prefix.trim_end_matches('/');
        if prefix.is_empty() {
            return;
        }
        for page in &mut self.pages {
            page.path.parts.insert(0, Part::Text(prefix.as_bytes().to_vec()));
        }
    }
}
