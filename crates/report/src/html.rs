//! The report as one HTML file.

use std::io::Write;

use whyso_explain::model::Explanation;

use crate::payload;
use crate::{Error, Extras, Source};

/// The page as `web/` builds it.
const PAGE: &str = include_str!(env!("WHYSO_REPORT_PAGE"));
const HEAD_MARK: &str = "<!--whyso:head-->";
const BLOCKS_MARK: &str = "<!--whyso:blocks-->";

/// Writes the report: one file that needs no other and asks the network for nothing.
///
/// # Errors
/// When a recording can't be read, or `out` can't be written.
pub fn write(
    source: &dyn Source,
    explanation: &Explanation,
    extras: &Extras<'_>,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let payload = payload::build(source, explanation, extras)?;
    write_page("whyso-head", &payload.head_json, &payload.blocks_base64, out)
}

/// The page with its data: a head under the id by which the page knows what to show, and blocks. No `<` may occur in the head.
pub(crate) fn write_page(
    id: &str,
    head_json: &str,
    blocks_base64: &[String],
    out: &mut dyn Write,
) -> Result<(), Error> {
    let (before_head, rest) = split(PAGE, HEAD_MARK);
    let (script, after_blocks) = split(rest, BLOCKS_MARK);

    out.write_all(before_head.as_bytes())?;
    write!(out, r#"<script type="application/json" id="{id}">{head_json}</script>"#)?;
    out.write_all(script.as_bytes())?;
    for (number, block) in blocks_base64.iter().enumerate() {
        writeln!(
            out,
            r#"<script type="application/octet-stream;base64" id="whyso-block-{number}">{block}</script>"#
        )?;
    }
    out.write_all(after_blocks.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// A page without the mark takes the data at its end; the tests see to it that the built page has both.
fn split<'a>(page: &'a str, mark: &str) -> (&'a str, &'a str) {
    page.split_once(mark).unwrap_or((page, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_page_has_each_mark_once_and_asks_for_nothing() {
        assert_eq!(PAGE.matches(HEAD_MARK).count(), 1);
        assert_eq!(PAGE.matches(BLOCKS_MARK).count(), 1);
        assert!(PAGE.contains("default-src 'none'"));
        for asks in ["<script src", "<link rel=\"stylesheet\"", "@import", "url(http"] {
            assert!(!PAGE.contains(asks), "the page asks for something outside: {asks}");
        }
    }

    #[test]
    fn the_head_comes_before_the_script_and_the_blocks_after_it() {
        let mut out = Vec::new();
        write_page("whyso-head", "{}", &["AAAA".to_string()], &mut out).unwrap();
        let html = String::from_utf8(out).unwrap();
        let head = html.find(r#"id="whyso-head""#).unwrap();
        let script = html.find("<script>").unwrap();
        let block =
            html.find(r#"<script type="application/octet-stream;base64" id="whyso-block-0">AAAA"#).unwrap();
        assert!(head < script && script < block);
    }
}
