//! Facts of the terminal.

use std::io::IsTerminal;

/// Where standard output is no terminal.
const PIPE_WIDTH: usize = 110;

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
