//! What a member needs to join: where the hub is, its certificate, and the member's own key.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::host_name::HostName;
use crate::member::MemberKind;

const PREFIX: &str = "whyso-1-";

/// Who has it is that member. It holds until it is withdrawn.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    pub name: HostName,
    pub kind: MemberKind,
    /// Host and port.
    pub address: String,
    /// The hub's own certificate, as PEM. No other is accepted.
    pub(crate) certificate: String,
    /// The member's private key.
    pub(crate) seed: String,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Token { name, kind, address, .. } = self;
        write!(f, "Token({name}, {kind:?}, {address})")
    }
}

impl Token {
    /// One line of letters, digits, - and _.
    pub fn to_line(&self) -> String {
        // It has only texts, and can be written.
        let json = serde_json::to_vec(self).unwrap_or_default();
        format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(json))
    }

    /// # Errors
    /// It is no token.
    pub fn from_line(line: &str) -> Result<Token> {
        let encoded = line.trim().strip_prefix(PREFIX).ok_or(Error::Token)?;
        let json = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| Error::Token)?;
        serde_json::from_slice(&json).map_err(|_| Error::Token)
    }
}
