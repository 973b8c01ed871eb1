//! What a host is called, on the bus and in recordings.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

const BYTES_MAX: usize = 63;
/// Names that recordings use for something else.
const TAKEN: [&str; 2] = ["client", "server"];

/// A host's name: letters, digits, - and _, so that it is one part of a subject and of a file's name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostName(String);

impl HostName {
    /// # Errors
    /// It is empty, too long, has other characters, or means something else in recordings.
    pub fn new(name: &str) -> Result<HostName> {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        let is_name = (1..=BYTES_MAX).contains(&name.len()) && name.bytes().all(is_letter);
        match is_name && !TAKEN.contains(&name) {
            true => Ok(HostName(name.to_string())),
            false => Err(Error::HostName { name: name.to_string() }),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for HostName {
    type Error = Error;

    fn try_from(name: String) -> Result<HostName> {
        HostName::new(&name)
    }
}

impl From<HostName> for String {
    fn from(name: HostName) -> String {
        name.0
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_be_a_wildcard_or_two_parts_of_a_subject_is_no_name() {
        for name in ["db", "load-1", "DB_2"] {
            assert_eq!(HostName::new(name).unwrap().as_str(), name);
        }
        for name in ["", "a.b", "*", ">", "a b", "a/b", "..", "client", "server", &"x".repeat(64), "ä"] {
            assert!(HostName::new(name).is_err(), "{name}");
        }
    }
}
