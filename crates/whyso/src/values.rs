//! Values of options, as they are typed.

use thiserror::Error;

/// Why a text is no length of time.
#[derive(Debug, PartialEq, Error)]
pub(crate) enum LengthError {
    #[error("{0:?} is no unit of time: give ms, s, m or h, such as 60s")]
    Unit(String),
    #[error("{0:?} is no length of time: give a number above 0 with ms, s, m or h, such as 60s")]
    Number(String),
}

/// A length of time as it is typed: 90, 90s, 5m, 1h.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Length(pub(crate) std::time::Duration);

impl std::str::FromStr for Length {
    type Err = LengthError;

    fn from_str(text: &str) -> Result<Length, LengthError> {
        let digits = text.trim_end_matches(|unit: char| unit.is_ascii_alphabetic());
        let factor = match &text[digits.len()..] {
            "ms" => 0.001,
            "" | "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3_600.0,
            unit => return Err(LengthError::Unit(unit.to_string())),
        };
        match digits.parse::<f64>() {
            Ok(number) if number > 0.0 && number * factor <= 31_536_000.0 => {
                Ok(Length(std::time::Duration::from_secs_f64(number * factor)))
            }
            _ => Err(LengthError::Number(text.to_string())),
        }
    }
}

/// Seconds of a length of time that may be 0: 10, 10s, 500ms, 2m, 0.
pub(crate) fn seconds(text: &str) -> Result<f64, LengthError> {
    match text.parse::<f64>() {
        Ok(0.0) => Ok(0.0),
        _ => text.parse::<Length>().map(|length| length.0.as_secs_f64()),
    }
}

/// Whole per cents, with or without the sign: 80, 80%.
pub(crate) fn whole_percent(text: &str) -> Result<u8, String> {
    let digits = text.trim_end_matches('%');
    digits
        .parse()
        .ok()
        .filter(|percent| *percent <= 100)
        .ok_or_else(|| "give per cents, such as 80%".to_string())
}

/// Why a text is no size of a recording.
#[derive(Debug, PartialEq, Error)]
pub(crate) enum SizeError {
    #[error("{0}")]
    Syntax(String),
    #[error("{0} is too little: a recording needs 100MiB for its newest detail")]
    TooLittle(String),
}

/// Size of a recording, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Size(pub(crate) u64);

/// Smallest size: some minutes of detail need room.
const SIZE_MIN: u64 = 100 << 20;

impl std::str::FromStr for Size {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Size, SizeError> {
        match whyso_model::parse_size(text).map_err(SizeError::Syntax)? {
            bytes if bytes < SIZE_MIN => Err(SizeError::TooLittle(text.to_string())),
            bytes => Ok(Size(bytes)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_number_is_seconds() {
        for (typed, expected) in [("10", 10.0), ("10s", 10.0), ("500ms", 0.5), ("2m", 120.0), ("0", 0.0)] {
            assert_eq!(seconds(typed), Ok(expected), "{typed}");
        }
        for wrong in ["-1", "", "s", "ten", "1d", "NaN", "inf"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_recording_has_room_for_its_newest_detail() {
        assert_eq!("20GiB".parse(), Ok(Size(20 << 30)));
        for wrong in ["99MiB", "20kB", "many"] {
            assert!(wrong.parse::<Size>().is_err(), "{wrong}");
        }
    }
}
