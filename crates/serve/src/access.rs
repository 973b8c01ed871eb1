//! Which requests are answered: by their token, their host's name, and the page that they come from.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use axum::http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, StatusCode, Uri};
use base64::Engine;
use sha2::{Digest, Sha256};

use crate::error::{Answer, Error, Refusal};
use crate::session::{Session, Sessions};

/// Random bytes of a new token.
const TOKEN_BYTES: usize = 32;
/// Longest file of a token that is read.
const TOKEN_FILE_BYTES_MAX: u64 = 1024;

/// What a client has to know.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Makes a new token from the kernel's random numbers.
    ///
    /// # Errors
    /// The random numbers can't be read.
    pub fn random() -> Result<Token, Error> {
        let mut bytes = [0; TOKEN_BYTES];
        let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
        read.map_err(Error::Token)?;
        Ok(Token(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Reads the token in a file of this user. Nobody else may be able to read it.
    ///
    /// # Errors
    /// The file can't be read, belongs to another user, is readable by others, or holds no token.
    pub fn from_file(path: &Path) -> Result<Token, Error> {
        let io = |cause| Error::Io { path: path.to_path_buf(), cause };
        let file = File::open(path).map_err(io)?;
        let about = file.metadata().map_err(io)?;
        if about.mode() & 0o077 != 0 {
            return Err(Error::TokenFileOpen(path.to_path_buf()));
        }
        // Its owner may have written the token, and so knows it.
        if about.uid() != rustix::process::geteuid().as_raw() {
            return Err(Error::TokenFileOwner(path.to_path_buf()));
        }
        let mut text = String::new();
        file.take(TOKEN_FILE_BYTES_MAX).read_to_string(&mut text).map_err(io)?;
        let text = text.trim();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if !(32..=128).contains(&text.len()) || !text.bytes().all(is_plain) {
            return Err(Error::TokenFile(path.to_path_buf()));
        }
        Ok(Token(text.to_string()))
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

/// Decides which requests are answered.
pub(crate) struct Access {
    token_digest: [u8; 32],
    sessions: Sessions,
    /// Names by which this server may be asked for, with their ports, in lower case.
    hosts: Vec<String>,
    /// Name of the cookie. It contains the port: browsers share the cookies of all ports of a host.
    cookie: String,
}

impl Access {
    /// `hosts`: further names, with a port where it is not the scheme's own.
    pub(crate) fn new(token: Token, port: u16, address: &str, hosts: &[String]) -> Access {
        let own = ["127.0.0.1", "localhost", "[::1]", address];
        let mut names: Vec<String> = own.iter().map(|name| format!("{name}:{port}")).collect();
        if port == 80 {
            names.extend(own.map(str::to_string));
        }
        names.extend(hosts.iter().map(|host| host.to_ascii_lowercase()));
        Access {
            token_digest: digest(token.text()),
            sessions: Sessions::new(token.text(), port),
            hosts: names,
            cookie: format!("whyso_{port}"),
        }
    }

    /// Checks that the host's name, and the site whose page sent the request, are this server's own. Otherwise a foreign name that points here, or
    /// another site's page, could send requests as the user.
    ///
    /// # Errors
    /// 403 if one of them is foreign.
    pub(crate) fn check_sender(&self, headers: &HeaderMap, uri: &Uri) -> Answer<()> {
        let by_header = headers.get(HOST).and_then(|host| host.to_str().ok());
        let hosts = [by_header, uri.authority().map(|authority| authority.as_str())];
        let mut named = hosts.into_iter().flatten().peekable();
        if named.peek().is_none() || named.any(|host| !self.is_own(host)) {
            return Err(forbidden(
                "this server is not known by that name: use the address that `whyso serve` printed, or name the host with --host",
            ));
        }
        for origin in headers.get_all(ORIGIN) {
            let host = origin.to_str().ok().and_then(|origin| {
                origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"))
            });
            if !host.is_some_and(|host| self.is_own(host)) {
                return Err(forbidden("requests of other sites' pages are not answered"));
            }
        }
        let site = headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
        match site {
            None | Some("same-origin" | "none") => Ok(()),
            // A link on another page may open this one, and nothing else.
            Some(_) if headers.get("sec-fetch-mode").is_some_and(|mode| mode == "navigate") => Ok(()),
            Some(_) => Err(forbidden("requests of other sites' pages are not answered")),
        }
    }

    /// Checks the token of a program, or the session of the page's cookie. Returns the session if there is one.
    ///
    /// # Errors
    /// 401 if there is neither.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Answer<Option<Session>> {
        if self.bears_token(headers) {
            return Ok(None);
        }
        let mut own = cookies(headers).filter(|(name, _)| *name == self.cookie);
        if let Some(session) = own.find_map(|(_, value)| self.sessions.find(value)) {
            return Ok(Some(session));
        }
        Err(Refusal::new(
            StatusCode::UNAUTHORIZED,
            "this needs the token: open the address that `whyso serve` printed, or send it as `Authorization: Bearer TOKEN`",
        ))
    }

    fn bears_token(&self, headers: &HeaderMap) -> bool {
        let header = headers.get(AUTHORIZATION).and_then(|header| header.to_str().ok());
        header
            .and_then(|header| header.strip_prefix("Bearer "))
            .is_some_and(|token| self.is_token(token.trim()))
    }

    /// Returns the name of the cookie.
    pub(crate) fn cookie(&self) -> &str {
        &self.cookie
    }

    /// Returns the cookie of a new session. Scripts can't read it, and other sites' pages don't send it.
    pub(crate) fn set_cookie(&self) -> String {
        let (value, seconds) = self.sessions.start();
        format!("{}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}", self.cookie)
    }

    /// Compares digests, so that the duration shows nothing of the token.
    fn is_token(&self, text: &str) -> bool {
        digest(text) == self.token_digest
    }

    fn is_own(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        self.hosts.contains(&host)
    }
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

fn cookies(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let texts = headers.get_all(COOKIE).into_iter().filter_map(|header| header.to_str().ok());
    texts.flat_map(|text| text.split(';')).filter_map(|cookie| cookie.trim().split_once('='))
}

fn forbidden(why: &str) -> Refusal {
    Refusal::new(StatusCode::FORBIDDEN, why)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use axum::http::HeaderValue;

    use super::*;

    fn access() -> Access {
        let token = Token("t".repeat(43));
        Access::new(token, 7979, "127.0.0.1", &["lab.example".to_string()])
    }

    fn headers(of: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in of {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    fn is_own(of: &[(&'static str, &str)]) -> bool {
        access().check_sender(&headers(of), &Uri::from_static("/")).is_ok()
    }

    #[test]
    fn only_names_of_its_own_are_answered() {
        for host in ["127.0.0.1:7979", "localhost:7979", "LOCALHOST:7979", "[::1]:7979", "lab.example"] {
            assert!(is_own(&[("host", host)]), "{host}");
        }
        for host in
            ["127.0.0.1", "127.0.0.1:80", "evil.example:7979", "evil.example", "lab.example.evil:7979", ""]
        {
            assert!(!is_own(&[("host", host)]), "{host}");
        }
        assert!(!is_own(&[]));
    }

    #[test]
    fn a_request_for_another_authority_than_its_host_is_not_answered() {
        let both = headers(&[("host", "localhost:7979")]);
        assert!(access().check_sender(&both, &Uri::from_static("http://evil.example/")).is_err());
        assert!(access().check_sender(&both, &Uri::from_static("http://localhost:7979/")).is_ok());
    }

    #[test]
    fn another_site_s_page_is_not_answered() {
        let host = ("host", "localhost:7979");
        assert!(is_own(&[host, ("origin", "http://localhost:7979")]));
        for origin in
            ["http://evil.example", "null", "http://localhost:8080", "http://evil.example:7979", "file://"]
        {
            assert!(!is_own(&[host, ("origin", origin)]), "{origin}");
        }
        assert!(!is_own(&[host, ("sec-fetch-site", "cross-site")]));
        assert!(!is_own(&[host, ("sec-fetch-site", "same-site")]));
        assert!(is_own(&[host, ("sec-fetch-site", "same-origin")]));
        assert!(is_own(&[host, ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")]));
    }

    #[test]
    fn a_program_has_the_token_and_a_page_a_session() {
        let token = "t".repeat(43);
        let may = |of: &[(&'static str, &str)]| access().check(&headers(of)).is_ok();
        assert!(may(&[("authorization", &format!("Bearer {token}"))]));
        let cookie = access().set_cookie();
        assert!(!cookie.contains(&token) && cookie.contains("Max-Age=28800"), "{cookie}");
        let session = cookie.split(';').next().unwrap();
        assert!(may(&[("cookie", &format!("a=b; {session}"))]));
        assert!(!may(&[]));
        assert!(!may(&[("cookie", &format!("whyso_7979={token}"))]), "the token is no session");
        assert!(!may(&[("cookie", &session.replace("7979", "7980"))]));
        assert!(!may(&[("authorization", "Bearer t")]));
        assert!(!may(&[("authorization", &format!("Basic {token}"))]));
    }

    #[test]
    fn tokens_differ_and_a_file_of_one_must_be_the_user_s_own() {
        let (token, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert!(token.text() != other.text() && token.text().len() == 43);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, format!("{}\n", token.text())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(Token::from_file(&path), Err(Error::TokenFileOpen(_))));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(Token::from_file(&path).unwrap().text(), token.text());
        fs::write(&path, "short").unwrap();
        assert!(matches!(Token::from_file(&path), Err(Error::TokenFile(_))));
    }
}
