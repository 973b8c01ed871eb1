//! What was typed after `whyso record`. Syntax only.

use clap::Args;

use crate::addon::OthersArgs;
use crate::pfs_args::PfsSetupArgs;
use crate::recording_args::{RecordingArgs, RecordingOutputArgs};

#[derive(Args, Debug)]
pub(crate) struct RecordArgs {
    /// Server to watch: mysql://user@host:3306/ or mysql://user@localhost/?socket=/path
    #[arg(long, value_name = "DSN", required_unless_present = "process")]
    pub(crate) dsn: Option<String>,

    /// Processes of any kind to watch in its place, with all that they start: a number, or the name that `ps -e` shows, of which every
    /// process is watched, those that begin later too
    #[arg(long, value_name = "NAME|PID", conflicts_with = "dsn")]
    pub(crate) process: Option<String>,

    /// How long to record, such as 60s or 5m [default: until the command ends, or until Ctrl-C]
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) length: Option<Length>,

    /// Begin and end windows by Enter or by SIGUSR1, such as after a warm-up
    #[arg(long)]
    pub(crate) toggle: bool,

    #[command(flatten)]
    pub(crate) recording: RecordingArgs,

    #[command(flatten)]
    pub(crate) others: OthersArgs,

    #[command(flatten)]
    pub(crate) pfs: PfsSetupArgs,

    /// Size of the recording, such as 20GiB, beyond which its oldest detail is removed and roll-ups of 10 seconds stay; from 100MiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) disk_max: Option<Size>,

    #[command(flatten)]
    pub(crate) output: RecordingOutputArgs,

    /// A command that loads the server, with all that it starts: its time is what is recorded
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// A length of time as it is typed: 90, 90s, 5m, 1h.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Length(pub(crate) std::time::Duration);

impl std::str::FromStr for Length {
    type Err = String;

    fn from_str(text: &str) -> Result<Length, String> {
        let digits = text.trim_end_matches(|unit: char| unit.is_ascii_alphabetic());
        let factor = match &text[digits.len()..] {
            "" | "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3_600.0,
            unit => return Err(format!("{unit:?} is no unit of time: give s, m or h, such as 60s")),
        };
        match digits.parse::<f64>() {
            Ok(number) if number > 0.0 && number * factor <= 31_536_000.0 => {
                Ok(Length(std::time::Duration::from_secs_f64(number * factor)))
            }
            _ => Err(format!(
                "{text:?} is no length of time: give a number above 0 with s, m or h, such as 60s"
            )),
        }
    }
}

/// Size of a recording, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Size(pub(crate) u64);

/// Some minutes of detail have to find room.
const SIZE_MIN: u64 = 100 << 20;

impl std::str::FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        match whyso_model::parse_size(text)? {
            bytes if bytes < SIZE_MIN => {
                Err(format!("{text} is too little: a recording needs 100MiB for its newest detail"))
            }
            bytes => Ok(Size(bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_has_room_for_its_newest_detail() {
        assert_eq!("20GiB".parse(), Ok(Size(20 << 30)));
        for wrong in ["99MiB", "20kB", "many"] {
            assert!(wrong.parse::<Size>().is_err(), "{wrong}");
        }
    }
}
