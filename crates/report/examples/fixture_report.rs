//! Writes a report of a synthetic run, which the page is built and tested against.
//!
//! `fixture_report OUT.html [--hostile]`. The run comes from formulas and a fixed seed, so that every call writes the same bytes.
//! `--hostile` puts markup into every text that could come from a server.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "an example is a program")]

#[path = "fixture/mod.rs"]
mod fixture;

use std::fs::File;
use std::io::BufWriter;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let hostile = arguments.iter().any(|argument| argument == "--hostile");
    let Some(path) = arguments.iter().find(|argument| !argument.starts_with("--")) else {
        return Err("say where the report goes: fixture_report OUT.html [--hostile]".into());
    };
    let run = fixture::FixtureRun::new(hostile);
    let explanation = fixture::explanation(&run);
    let mut out = BufWriter::new(File::create(path)?);
    whyso_report::html::write(&run, &explanation, &whyso_report::Extras::default(), &mut out)?;
    Ok(())
}
