//! Tables and paragraphs of plain text.

/// Widest line of a paragraph, in characters.
pub(crate) const TEXT_WIDTH: usize = 110;

/// Returns a table with its columns two blanks apart. The columns at the places `words` are flush left, the others flush right.
pub(crate) fn aligned_with_words(rows: &[Vec<String>], words: &[usize]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let mut widths = vec![0; columns];
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            widths[column] = widths[column].max(cell.chars().count());
        }
    }
    let mut out = String::new();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            let blanks = widths[column] - cell.chars().count();
            if column + 1 == columns {
                out.push_str(cell);
                break;
            }
            let is_words = words.contains(&column);
            out.extend(std::iter::repeat_n(' ', if is_words { 0 } else { blanks }));
            out.push_str(cell);
            out.extend(std::iter::repeat_n(' ', if is_words { blanks } else { 0 } + 2));
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    out
}

/// Returns a paragraph of a list in lines of at most `width` characters, with a bullet before the first line.
pub(crate) fn wrapped(text: &str, indent: &str, width: usize) -> String {
    lines_of(text, &format!("{}• ", &indent[..indent.len().saturating_sub(2)]), indent, width)
}

/// Returns the text in lines of at most `width` characters, each with its line break. An empty text has no line.
///
/// `first` is what the first line begins with, `indent` what the others begin with.
pub(crate) fn lines_of(text: &str, first: &str, indent: &str, width: usize) -> String {
    if text.is_empty() {
        return String::new();
    }
    let mut out = String::new();
    let mut line = first.to_string();
    let mut empty = true;
    for word in text.split_whitespace() {
        if !empty && line.chars().count() + 1 + word.chars().count() > width {
            out.push_str(&line);
            out.push('\n');
            line = indent.to_string();
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    out.push_str(&line);
    out.push('\n');
    out
}
