//! What the program prints. Recordings and servers hold text of others: a terminal would take parts of it for orders.

use std::io::{Error, IsTerminal, Result, StdoutLock, Write};

use whyso_words::terminal::escape;

/// Standard output for people. Characters that steer a terminal, or that turn the direction of text, are written as
/// `\u001b`, which JSON reads as the same character.
pub(crate) fn stdout() -> Escaping<StdoutLock<'static>> {
    Escaping::new(std::io::stdout().lock())
}

/// Standard output for files of data: as they are, but to a terminal.
pub(crate) fn data() -> Box<dyn Write> {
    if std::io::stdout().is_terminal() {
        Box::new(stdout())
    } else {
        Box::new(Plain(std::io::stdout().lock()))
    }
}

/// Writes as it is; errors say of what.
struct Plain(StdoutLock<'static>);

impl Write for Plain {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.0.write(bytes).map_err(name_output)
    }

    fn flush(&mut self) -> Result<()> {
        self.0.flush().map_err(name_output)
    }
}

/// Standard output for what steers the terminal on purpose: no text of others may be in it that [`escape`] did not escape.
pub(crate) fn own() -> StdoutLock<'static> {
    std::io::stdout().lock()
}

/// Writes out what still waits.
pub(crate) fn finish() -> Result<()> {
    std::io::stdout().flush().map_err(name_output)
}

fn name_output(error: Error) -> Error {
    Error::new(error.kind(), format!("the output can't be written: {error}"))
}

/// Escapes what is written to it.
pub(crate) struct Escaping<W: Write> {
    out: W,
    /// The beginning of a character whose rest was not written yet.
    begun: Vec<u8>,
}

impl<W: Write> Escaping<W> {
    pub(crate) fn new(out: W) -> Escaping<W> {
        Escaping { out, begun: Vec::new() }
    }
}

impl<W: Write> Write for Escaping<W> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.begun.extend_from_slice(bytes);
        let begun = std::mem::take(&mut self.begun);
        let whole = match std::str::from_utf8(&begun) {
            // Cut within a character.
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => begun.len(),
        };
        self.begun = begun[whole..].to_vec();
        self.out
            .write_all(escape(&String::from_utf8_lossy(&begun[..whole])).as_bytes())
            .map_err(name_output)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        self.out.flush().map_err(name_output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_steers_no_terminal_whatever_the_pieces() {
        let text = "a\u{1b}[2J\u{9b}31m\r\u{202e}b\u{2066}\u{7f}é\tö\n";
        for length in 1..=text.len() {
            let mut written = Vec::new();
            let mut out = Escaping::new(&mut written);
            text.as_bytes().chunks(length).for_each(|part| out.write_all(part).unwrap());
            assert_eq!(String::from_utf8(written).unwrap(), escape(text), "{length} bytes at a time");
        }
    }
}
