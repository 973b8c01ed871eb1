//! Sessions of the page: what its cookie holds in place of the token.
//!
//! Browsers send a cookie to every port of a host, and keep it. So it holds no secret that lasts. It holds when the session ends, and a code over that time and
//! the server's port, which only this server can compute. The server stores nothing.

use std::time::{SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};

/// Seconds that a session lasts from its last renewal on.
const SECONDS: u64 = 8 * 3600;
/// A session with less left than this is renewed.
const SECONDS_LEFT_MIN: u64 = SECONDS / 2;
/// Bytes that SHA-256 takes at a time.
const BLOCK_BYTES: usize = 64;

/// Makes sessions, and knows its own.
pub(crate) struct Sessions {
    key: [u8; 32],
    port: u16,
}

/// A session that is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Session {
    seconds_left: u64,
}

impl Session {
    /// Whether the browser should get a new one.
    pub(crate) fn is_old(self) -> bool {
        self.seconds_left < SECONDS_LEFT_MIN
    }
}

impl Sessions {
    /// The key follows from the token: with a token from a file, a session outlives a restart.
    pub(crate) fn new(token: &str, port: u16) -> Sessions {
        Sessions { key: code(token.as_bytes(), b"sessions of the page"), port }
    }

    /// Returns what a new session's cookie holds, and the seconds that the browser may keep it.
    pub(crate) fn start(&self) -> (String, u64) {
        (self.start_at(now_s()), SECONDS)
    }

    /// Returns the session that a cookie holds; `None` where it is over, or not this server's.
    pub(crate) fn find(&self, value: &str) -> Option<Session> {
        self.find_at(value, now_s())
    }

    fn start_at(&self, now_s: u64) -> String {
        let end_s = now_s + SECONDS;
        format!("{end_s}.{}", self.code_of(end_s))
    }

    fn find_at(&self, value: &str, now_s: u64) -> Option<Session> {
        let (end, code) = value.split_once('.')?;
        let end_s: u64 = end.parse().ok()?;
        let seconds_left = end_s.checked_sub(now_s).filter(|left| (1..=SECONDS).contains(left))?;
        // Digests are compared, so that the time it takes shows nothing of the code.
        let is_own = Sha256::digest(code) == Sha256::digest(self.code_of(end_s));
        is_own.then_some(Session { seconds_left })
    }

    fn code_of(&self, end_s: u64) -> String {
        let text = format!("{} {end_s}", self.port);
        code(&self.key, text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// HMAC-SHA-256 (RFC 2104).
fn code(key: &[u8], text: &[u8]) -> [u8; 32] {
    let mut block = [0; BLOCK_BYTES];
    match key.len() {
        0..=BLOCK_BYTES => block[..key.len()].copy_from_slice(key),
        _ => block[..32].copy_from_slice(&Sha256::digest(key)),
    }
    let padded = |with: u8| block.map(|byte| byte ^ with);
    let inner = Sha256::new().chain_update(padded(0x36)).chain_update(text).finalize();
    Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_that_of_the_standard() {
        // RFC 4231, test cases 2 and 6.
        let hex = |bytes: [u8; 32]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(
            hex(code(b"Jefe", b"what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        assert_eq!(
            hex(code(&[0xaa; 131], b"Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
    }

    #[test]
    fn a_session_ends_after_some_hours_and_is_of_one_port_and_one_token() {
        let sessions = Sessions::new("token", 7979);
        let value = sessions.start_at(1_000);
        assert_eq!(sessions.find_at(&value, 1_000), Some(Session { seconds_left: SECONDS }));
        assert!(!sessions.find_at(&value, 1_000).unwrap().is_old());
        assert!(sessions.find_at(&value, 1_000 + SECONDS - 60).unwrap().is_old());
        assert_eq!(sessions.find_at(&value, 1_000 + SECONDS), None);
        assert_eq!(sessions.find_at(&value, 999), None, "by another clock");
        assert_eq!(Sessions::new("token", 7980).find_at(&value, 1_000), None);
        assert_eq!(Sessions::new("tokem", 7979).find_at(&value, 1_000), None);
        let longer = value.replace("29800.", "99800.");
        assert_ne!(longer, value);
        for wrong in ["", ".", "29800.", "x.y", &longer, &value[..value.len() - 1]] {
            assert_eq!(sessions.find_at(wrong, 1_000), None, "{wrong}");
        }
    }
}
