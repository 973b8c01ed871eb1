//! How the starts of a block are carried out: one after the other, or all at once with a load that takes turns.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What of a window is measured where cells take turns, and what before that is not: the first answers still show the server's rest.
pub const DUET_WINDOW: Duration = Duration::from_secs(1);
pub const DUET_CUT: Duration = Duration::from_millis(200);
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    /// The cells of a block are started one after the other, each recorded for its whole sweep.
    Blocks,
    /// The servers of a block's cells stand ready at the same time, and the load takes turns between them in windows of a second. The machine's
    /// drift is then in all of them alike. Nothing is recorded.
    Duet,
    /// One server stands ready for all cells of a block. The load takes turns in the same windows, and the settings are switched between them.
    /// Nothing is recorded.
    SwitchBack,
}

impl Design {
    /// As a study's file names it.
    pub fn name(self) -> &'static str {
        match self {
            Design::Blocks => "blocks",
            Design::Duet => "duet",
            Design::SwitchBack => "switch-back",
        }
    }

    /// Whether the cells of a block take turns in short windows.
    pub fn is_in_turns(self) -> bool {
        self != Design::Blocks
    }
}
