//! Addresses of sites, and where redirects lead.

use std::fmt;

use crate::error::UrlError;

/// Longest address, in bytes.
const URL_BYTES_MAX: usize = 8 * 1024;
/// Longest host name, in bytes.
const HOST_BYTES_MAX: usize = 255;

/// An address such as `https://shop.example:8443/search?q=red`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    pub is_https: bool,
    /// Without the brackets of an IPv6 address.
    pub host: String,
    pub port: u16,
    /// Begins with `/`; has the query and no fragment.
    pub path: String,
}

/// Where an answer's `Location` leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redirect {
    /// A path of the same site, with its query.
    SameSite(String),
    /// Another host, port or scheme.
    OtherSite,
    /// Text that is no address.
    Unreadable,
}

impl Url {
    /// Parses an absolute address. A missing port is that of the scheme, and a missing path is `/`.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn parse(text: &str) -> Result<Url, UrlError> {
        if text.len() > URL_BYTES_MAX {
            return Err(UrlError::TooLong { bytes_max: URL_BYTES_MAX });
        }
        if text.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return Err(UrlError::Character);
        }
        let (scheme, rest) = text.split_once("://").ok_or(UrlError::Scheme)?;
        let is_https = match scheme {
            _ if scheme.eq_ignore_ascii_case("http") => false,
            _ if scheme.eq_ignore_ascii_case("https") => true,
            _ => return Err(UrlError::Scheme),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(UrlError::UserInfo);
        }
        let (host, port) = host_and_port(authority)?;
        let port = match port {
            Some(port) => {
                let number = port.parse().ok().filter(|_| port.bytes().all(|byte| byte.is_ascii_digit()));
                number.filter(|port| *port != 0).ok_or(UrlError::Port)?
            }
            None if is_https => 443,
            None => 80,
        };
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok(Url { is_https, host: host.to_string(), port, path: format!("{slash}{path}") })
    }

    /// What the `Host` header has: the port only where it is not the scheme's own.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        match (self.is_https, self.port) {
            (false, 80) | (true, 443) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }

    /// Where a `Location` leads that answered a request for `from` (a path) on this site.
    pub fn follow(&self, from: &str, location: &[u8]) -> Redirect {
        let Ok(location) = std::str::from_utf8(location) else { return Redirect::Unreadable };
        let location = location.trim_matches([' ', '\t']);
        let is_plain = location.bytes().all(|byte| byte > b' ' && byte != 0x7f);
        if !is_plain || location.is_empty() || location.len() > URL_BYTES_MAX {
            return Redirect::Unreadable;
        }
        let absolute = match location.strip_prefix("//") {
            Some(_) if self.is_https => Some(format!("https:{location}")),
            Some(_) => Some(format!("http:{location}")),
            None => has_scheme(location).then(|| location.to_string()),
        };
        if let Some(absolute) = absolute {
            return match Url::parse(&absolute) {
                Ok(url) if self.is_same_site(&url) => Redirect::SameSite(url.path),
                Ok(_) | Err(UrlError::Scheme) => Redirect::OtherSite,
                Err(_) => Redirect::Unreadable,
            };
        }
        let relative = location.split('#').next().unwrap_or_default();
        let from = from.split('#').next().unwrap_or_default();
        let from_path = from.split('?').next().unwrap_or_default();
        Redirect::SameSite(match relative.as_bytes().first() {
            None => from.to_string(),
            Some(b'/') => relative.to_string(),
            Some(b'?') => format!("{from_path}{relative}"),
            Some(_) => {
                let folder = from_path.rfind('/').map_or("/", |slash| &from_path[..=slash]);
                format!("{folder}{relative}")
            }
        })
    }

    fn is_same_site(&self, other: &Url) -> bool {
        self.is_https == other.is_https
            && self.port == other.port
            && self.host.eq_ignore_ascii_case(&other.host)
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_https { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.path)
    }
}

fn host_and_port(authority: &str) -> Result<(&str, Option<&str>), UrlError> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or(UrlError::Host)?;
            if host.parse::<std::net::Ipv6Addr>().is_err() {
                return Err(UrlError::Host);
            }
            match after.strip_prefix(':') {
                Some(port) => return Ok((host, Some(port))),
                None if after.is_empty() => return Ok((host, None)),
                None => return Err(UrlError::Host),
            }
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    if host.is_empty() {
        return Err(UrlError::NoHost);
    }
    let is_host_byte = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if host.len() > HOST_BYTES_MAX || !host.bytes().all(is_host_byte) {
        return Err(UrlError::Host);
    }
    Ok((host, port))
}

/// Whether a text begins with a scheme, as `mailto:` does.
fn has_scheme(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once(':') else { return false };
    let is_scheme_byte = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    scheme.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic()) && scheme.bytes().all(is_scheme_byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_with_what_it_leaves_out() {
        for (text, shown, authority) in [
            ("http://a", "http://a/", "a"),
            ("HTTP://a:80?x=1", "http://a/?x=1", "a"),
            ("https://shop.example/s/#top", "https://shop.example/s/", "shop.example"),
            ("https://[::1]:8443/", "https://[::1]:8443/", "[::1]:8443"),
        ] {
            let url = Url::parse(text).unwrap();
            assert_eq!((url.to_string().as_str(), url.authority().as_str()), (shown, authority));
        }
    }

    #[test]
    fn what_is_no_address_is_refused_for_its_reason() {
        for (text, error) in [
            ("shop.example", UrlError::Scheme),
            ("ftp://a/", UrlError::Scheme),
            ("http:///x", UrlError::NoHost),
            ("http://me:secret@a/", UrlError::UserInfo),
            ("http://a:0/", UrlError::Port),
            ("http://a:+80/", UrlError::Port),
            ("http://a:99999/", UrlError::Port),
            ("http://a b/", UrlError::Character),
            ("http://a/\r\nX: 1", UrlError::Character),
            ("http://[::1/", UrlError::Host),
            ("http://ä/", UrlError::Host),
        ] {
            assert_eq!(Url::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn a_redirect_stays_on_the_site_or_is_refused() {
        let site = Url::parse("http://shop:8080/").unwrap();
        let same = |path: &str| Redirect::SameSite(path.to_string());
        for (location, redirect) in [
            ("/cart", same("/cart")),
            ("item?id=2#x", same("/shop/item?id=2")),
            ("?page=2", same("/shop/list?page=2")),
            ("http://SHOP:8080/x", same("/x")),
            ("//shop:8080/y", same("/y")),
            ("http://shop/x", Redirect::OtherSite),
            ("https://shop:8080/x", Redirect::OtherSite),
            ("//elsewhere/y", Redirect::OtherSite),
            ("mailto:me", Redirect::OtherSite),
            ("a b", Redirect::Unreadable),
            ("", Redirect::Unreadable),
        ] {
            assert_eq!(site.follow("/shop/list?page=1", location.as_bytes()), redirect, "{location}");
        }
    }
}
