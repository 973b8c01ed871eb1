//! The name of one host's part of a recording, or of a load or a study that hosts share.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

const ID_BYTES_MAX: usize = 64;

/// Names one host's part of a recording: letters, digits and -, so that it is one part of a subject and of a file's name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RecordingId(String);

impl RecordingId {
    /// # Errors
    /// It has other characters, or too many.
    pub fn new(id: &str) -> Result<RecordingId> {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        match (1..=ID_BYTES_MAX).contains(&id.len()) && id.bytes().all(is_letter) {
            true => Ok(RecordingId(id.to_string())),
            false => Err(Error::Bus(format!("{id:?} is no recording's name"))),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for RecordingId {
    type Error = Error;

    fn try_from(id: String) -> Result<RecordingId> {
        RecordingId::new(&id)
    }
}

impl From<RecordingId> for String {
    fn from(id: RecordingId) -> String {
        id.0
    }
}

impl fmt::Display for RecordingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
