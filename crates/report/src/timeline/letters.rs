//! How a state is drawn in the terminal: a letter, and a colour of the 256 near the one that the page has.

use whyso_series::is_idle;

/// A state that is not known to this version is drawn as the last one.
const STYLES: [(&str, char, u8, Ink); 13] = [
    ("cpu", 'C', 32, Ink::Light),
    ("runqueue", 'R', 172, Ink::Dark),
    ("wakeup", 'U', 37, Ink::Dark),
    ("lock", 'L', 133, Ink::Light),
    ("kernel_lock", 'K', 54, Ink::Light),
    ("file_read", 'I', 71, Ink::Dark),
    ("file_write", 'W', 29, Ink::Light),
    ("file_sync", 'S', 131, Ink::Light),
    ("net_send", 'N', 62, Ink::Light),
    ("page_fault", 'P', 168, Ink::Light),
    ("sleep", 'Z', 66, Ink::Light),
    ("aio", 'A', 137, Ink::Dark),
    ("other", 'O', 248, Ink::Dark),
];
/// Idle threads are drawn without a colour.
const IDLE_LETTER: char = '.';

#[derive(Clone, Copy)]
enum Ink {
    Light,
    Dark,
}

fn style(state: &str) -> (char, u8, Ink) {
    let found = STYLES.iter().find(|(name, ..)| *name == state).or(STYLES.last());
    found.map_or(('O', 248, Ink::Dark), |(_, letter, color, ink)| (*letter, *color, *ink))
}

/// A state's letter: a capital where it has half of the time or more.
pub(super) fn letter(state: &str, share: f64) -> char {
    if is_idle(state) {
        return IDLE_LETTER;
    }
    let (letter, ..) = style(state);
    if share >= 0.5 { letter } else { letter.to_ascii_lowercase() }
}

/// Letters that stand side by side in one state's colour.
pub(super) fn painted(text: &str, state: &str) -> String {
    if is_idle(state) {
        return format!("\x1b[2m{text}\x1b[0m");
    }
    let (_, color, ink) = style(state);
    let ink = match ink {
        Ink::Light => 231,
        Ink::Dark => 16,
    };
    format!("\x1b[38;5;{ink};48;5;{color}m{text}\x1b[0m")
}
