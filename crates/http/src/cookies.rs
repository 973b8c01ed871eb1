//! One user's cookies on one site.

/// Cookies of one user; a site that sets more replaces the oldest.
const COOKIES_MAX: usize = 64;
/// Longest name, value and path of a cookie together, in bytes. A longer one is ignored.
const COOKIE_BYTES_MAX: usize = 4096;

/// Cookies of one user on the one site of a load (RFC 6265, without domains and without times).
///
/// A cookie ends with the load. It ends before that where the site sets `Max-Age` to 0 or less, or `Expires` to 1970. Both are how
/// sites delete cookies.
#[derive(Clone, Debug, Default)]
pub struct CookieJar {
    cookies: Vec<Cookie>,
}

#[derive(Clone, Debug, Default)]
struct Cookie {
    name: Vec<u8>,
    value: Vec<u8>,
    path: Vec<u8>,
}

impl CookieJar {
    pub const fn new() -> CookieJar {
        CookieJar { cookies: Vec::new() }
    }

    /// Forgets every cookie.
    pub fn clear(&mut self) {
        self.cookies.clear();
    }

    /// Takes the value of a `Set-Cookie` header. What is no cookie, or too long, is ignored.
    pub fn set(&mut self, header: &[u8]) {
        let mut parts = header.split(|byte| *byte == b';');
        let Some((name, value)) = parts.next().and_then(split_pair) else { return };
        let (mut path, mut is_deleted) = (&b"/"[..], false);
        for attribute in parts {
            let Some((key, text)) = split_pair(attribute) else { continue };
            if key.eq_ignore_ascii_case(b"path") && text.starts_with(b"/") {
                path = text;
            } else if key.eq_ignore_ascii_case(b"max-age") {
                is_deleted = text.starts_with(b"-") || text.iter().all(|byte| *byte == b'0');
            } else if key.eq_ignore_ascii_case(b"expires") {
                is_deleted |= text.windows(4).any(|year| year == b"1970");
            }
        }
        let is_plain = header.iter().all(|byte| (*byte >= b' ' || *byte == b'\t') && *byte != 0x7f);
        if name.is_empty() || !is_plain || name.len() + value.len() + path.len() > COOKIE_BYTES_MAX {
            return;
        }
        let place = self.cookies.iter().position(|cookie| cookie.name == name && cookie.path == path);
        match place {
            Some(place) if is_deleted => drop(self.cookies.remove(place)),
            Some(place) => {
                let cookie = &mut self.cookies[place];
                cookie.value.clear();
                cookie.value.extend_from_slice(value);
            }
            None if is_deleted => {}
            None => {
                if self.cookies.len() >= COOKIES_MAX {
                    self.cookies.remove(0);
                }
                let (name, value, path) = (name.to_vec(), value.to_vec(), path.to_vec());
                self.cookies.push(Cookie { name, value, path });
            }
        }
    }

    /// Appends the `Cookie` header for a path; nothing where no cookie goes there.
    pub fn write(&self, path: &[u8], out: &mut Vec<u8>) {
        let path = path.split(|byte| *byte == b'?').next().unwrap_or_default();
        let mut is_first = true;
        for cookie in self.cookies.iter().filter(|cookie| goes_to(&cookie.path, path)) {
            out.extend_from_slice(if is_first { b"Cookie: " } else { b"; " });
            is_first = false;
            out.extend_from_slice(&cookie.name);
            out.push(b'=');
            out.extend_from_slice(&cookie.value);
        }
        if !is_first {
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// Path matching of RFC 6265, 5.1.4.
fn goes_to(cookie_path: &[u8], path: &[u8]) -> bool {
    match path.strip_prefix(cookie_path) {
        Some(rest) => rest.is_empty() || cookie_path.ends_with(b"/") || rest.starts_with(b"/"),
        None => false,
    }
}

/// Splits `name=value`, without the spaces around.
fn split_pair(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let equals = text.iter().position(|byte| *byte == b'=')?;
    Some((text[..equals].trim_ascii(), text[equals + 1..].trim_ascii()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(jar: &CookieJar, path: &str) -> String {
        let mut out = Vec::new();
        jar.write(path.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn cookies_are_set_changed_and_deleted() {
        let mut jar = CookieJar::new();
        jar.set(b"id=1; Path=/; HttpOnly");
        jar.set(b"cart=x y; path=/shop");
        jar.set(b"id=2");
        assert_eq!(written(&jar, "/?a"), "Cookie: id=2\r\n");
        assert_eq!(written(&jar, "/shop/item"), "Cookie: id=2; cart=x y\r\n");
        assert_eq!(written(&jar, "/shopping"), "Cookie: id=2\r\n");
        jar.set(b"id=; Max-Age=0");
        jar.set(b"cart=; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Path=/shop");
        assert_eq!(written(&jar, "/shop"), "");
    }

    #[test]
    fn what_is_no_cookie_is_ignored_and_their_number_is_bounded() {
        let mut jar = CookieJar::new();
        let long = format!("long={}", "x".repeat(COOKIE_BYTES_MAX));
        for header in [&b""[..], b"novalue", b"=x", b"a=\r\nX: 1", b"a=\x00", long.as_bytes()] {
            jar.set(header);
        }
        assert_eq!(written(&jar, "/"), "");
        (0..200).for_each(|number| jar.set(format!("c{number}=1").as_bytes()));
        assert_eq!(written(&jar, "/").matches('=').count(), COOKIES_MAX);
    }
}
