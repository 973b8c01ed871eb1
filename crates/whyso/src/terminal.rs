//! Facts of the terminal.

use std::io::IsTerminal;
use std::sync::OnceLock;

use clap::ColorChoice;

/// Where standard output is no terminal.
const PIPE_WIDTH: usize = 110;

/// What `--color` was.
static COLOR: OnceLock<ColorChoice> = OnceLock::new();

pub(crate) fn choose_color(choice: ColorChoice) {
    COLOR.get_or_init(|| choice);
}

/// Whether standard output has colours.
pub(crate) fn has_color() -> bool {
    match COLOR.get().copied().unwrap_or(ColorChoice::Auto) {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        // As no-color.org asks: any text but none.
        ColorChoice::Auto => {
            let is_plain = std::env::var_os("NO_COLOR").is_some_and(|text| !text.is_empty());
            std::io::stdout().is_terminal() && !is_plain
        }
    }
}

/// Characters in a line of standard output.
pub(crate) fn width() -> usize {
    if !std::io::stdout().is_terminal() {
        return PIPE_WIDTH;
    }
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the call fills the winsize, which outlives it.
    let status = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &mut size) };
    if status == 0 && size.ws_col > 0 { usize::from(size.ws_col) } else { 80 }
}
