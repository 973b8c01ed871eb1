//! In which form an answer is printed.

use clap::{Args, ValueEnum};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextFormat {
    /// Tables for a terminal
    #[default]
    Text,
    /// Markdown
    Md,
    /// One JSON object, and nothing else on standard output
    Json,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct FormatArgs {
    /// In which form it is printed
    #[arg(long, value_enum, default_value_t)]
    format: TextFormat,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// The same as --format md
    #[arg(long, conflicts_with_all = ["json", "format"])]
    markdown: bool,
}

impl FormatArgs {
    pub(crate) fn chosen(&self) -> TextFormat {
        match (self.json, self.markdown) {
            (true, _) => TextFormat::Json,
            (_, true) => TextFormat::Md,
            _ => self.format,
        }
    }
}
