//! Text of the source files around the lines that stacks were at.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use ts_rs::TS;

use super::LineTree;
use crate::profile::{ReadSource, SourceText};

/// Lines before and after one that has time.
const AROUND: u32 = 4;
/// The most lines of text that the page has. Those around the lines with the most time come first.
const LINES_MAX: usize = 20_000;
/// Longest line of text, in characters.
const TEXT_MAX: usize = 160;

/// The text of the sources that the page has, and how it was chosen.
#[derive(Debug, PartialEq, Serialize, TS)]
pub(crate) struct SourceTexts {
    files: Vec<FileText>,
    around: u32,
    lines_max: usize,
    /// Number of lines with time that have no text although their file was read. It would have been too much for a page.
    without: usize,
}

/// One source file.
#[derive(Debug, PartialEq, Serialize, TS)]
struct FileText {
    /// As the build has it.
    file: String,
    /// Where it was read; empty where it was not found.
    path: String,
    /// Of the whole file.
    length: u32,
    /// Number and text, ascending.
    lines: Vec<(u32, String)>,
}

/// Returns the text around lines with time. Without `read`, no file has a text.
pub(crate) fn texts(tree: &LineTree, read: Option<ReadSource<'_>>) -> SourceTexts {
    texts_of(tree, read.unwrap_or(&|_| None), LINES_MAX)
}

pub(super) fn texts_of(tree: &LineTree, read: ReadSource<'_>, lines_max: usize) -> SourceTexts {
    let mut worth: Vec<((usize, u32), f64)> = tree.worth().into_iter().collect();
    worth.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let mut found: BTreeMap<usize, (SourceText, BTreeSet<u32>)> = BTreeMap::new();
    let (mut line_count, mut without) = (0, 0);
    for ((file, line), _) in worth {
        let (text, shown) = found
            .entry(file)
            .or_insert_with(|| (read(&tree.files[file]).unwrap_or_default(), BTreeSet::new()));
        let length = text.lines.len() as u32;
        if line > length {
            continue;
        }
        let around = line.saturating_sub(AROUND).max(1)..=line.saturating_add(AROUND).min(length);
        let more: Vec<u32> = around.filter(|line| !shown.contains(line)).collect();
        if line_count + more.len() > lines_max {
            without += usize::from(!shown.contains(&line));
            continue;
        }
        line_count += more.len();
        shown.extend(more);
    }
    let file = |(place, name): (usize, &String)| {
        let (text, shown) = found.remove(&place).unwrap_or_default();
        let line = |number: u32| (number, cut(&text.lines[number as usize - 1]));
        FileText {
            file: name.clone(),
            length: text.lines.len() as u32,
            lines: shown.into_iter().map(line).collect(),
            path: text.path,
        }
    };
    let files = tree.files.iter().enumerate().map(file).collect();
    SourceTexts { files, around: AROUND, lines_max, without }
}

fn cut(text: &str) -> String {
    text.replace('\t', "    ").chars().take(TEXT_MAX).collect()
}
