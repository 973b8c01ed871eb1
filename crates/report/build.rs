//! Finds the built page, so that the crate can embed it.

#![allow(clippy::disallowed_methods, reason = "a build script looks for the page")]

use std::path::PathBuf;

fn main() {
    let manifest_dir = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let page = manifest_dir.join("../../web/dist/report.html");
    println!("cargo::rerun-if-changed={}", page.display());
    if !page.is_file() {
        println!("cargo::error=web/dist/report.html is missing: run `make web` first");
        return;
    }
    println!("cargo::rustc-env=WHYSO_REPORT_PAGE={}", page.display());
}
