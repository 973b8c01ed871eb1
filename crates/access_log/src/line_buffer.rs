//! Bytes as lines: the rest of the last line waits for what comes next.

/// The longest line that is read. Of a longer one only its number counts.
pub const LINE_BYTES_MAX: usize = 64 * 1024;

/// One line without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawLine<'b> {
    /// Bytes that are no UTF-8 can be in it.
    Whole(&'b [u8]),
    /// Longer than [`LINE_BYTES_MAX`]: its bytes were not kept.
    TooLong,
}

/// The part of a line that was read before its end.
#[derive(Clone, Debug, Default)]
pub struct LineBuffer {
    begun: Vec<u8>,
    is_too_long: bool,
}

impl LineBuffer {
    /// Hands each line that ends in `bytes` to `take`, and keeps the rest. Empty lines are left out.
    pub fn push(&mut self, bytes: &[u8], mut take: impl FnMut(RawLine<'_>)) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = rest.split_at(end);
            rest = &after[1..];
            if self.begun.is_empty() && !self.is_too_long && line.len() <= LINE_BYTES_MAX {
                give(line, &mut take);
                continue;
            }
            self.extend(line);
            self.finish(&mut take);
        }
        self.extend(rest);
    }

    /// Hands over the last line, which has no end, where there is one.
    pub fn finish(&mut self, mut take: impl FnMut(RawLine<'_>)) {
        match std::mem::take(&mut self.is_too_long) {
            true => take(RawLine::TooLong),
            false => give(&self.begun, &mut take),
        }
        self.begun.clear();
    }

    /// Forgets the part of a line that waits, such as where its file was cut.
    pub fn clear(&mut self) {
        self.begun.clear();
        self.is_too_long = false;
    }

    fn extend(&mut self, part: &[u8]) {
        if self.is_too_long || self.begun.len() + part.len() > LINE_BYTES_MAX {
            self.is_too_long = true;
            self.begun.clear();
        } else {
            self.begun.extend_from_slice(part);
        }
    }
}

fn give(line: &[u8], take: &mut impl FnMut(RawLine<'_>)) {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if !line.is_empty() {
        take(RawLine::Whole(line));
    }
}
