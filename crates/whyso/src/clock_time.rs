//! Times by the clock on the wall, as they are typed: 10:05, 10:05:30, "2026-11-26 10:05".

use std::ops::Range;
use std::str::FromStr;

use anyhow::{Result, bail};
use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use thiserror::Error;
use whyso_clock::Anchor;
use whyso_record::Recording;
use whyso_record::run::Window;

/// A text that is no time.
#[derive(Debug, PartialEq, Error)]
#[error("{0:?} is no time: give one by the clock, such as 10:05 or \"2026-11-26 10:05\"")]
pub(crate) struct NoTime(String);

/// A moment by the clock, in this machine's time zone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ClockTime {
    /// The last one of this time before the end of what was recorded.
    OfDay(Time),
    Of(DateTime),
}

impl FromStr for ClockTime {
    type Err = NoTime;

    fn from_str(text: &str) -> Result<ClockTime, NoTime> {
        let text = text.trim();
        if let Ok(of_day) = text.parse::<Time>()
            && !text.contains('-')
        {
            return Ok(ClockTime::OfDay(of_day));
        }
        text.parse().map(ClockTime::Of).map_err(|_| NoTime(text.to_string()))
    }
}

impl ClockTime {
    /// Wall time in nanoseconds, where the recording ended at `end_ns`.
    pub(crate) fn wall_ns(self, end_ns: i64, zone: &TimeZone) -> Result<i64> {
        let end = Timestamp::from_nanosecond(i128::from(end_ns))?.to_zoned(zone.clone());
        let at = match self {
            ClockTime::Of(at) => at.to_zoned(zone.clone())?,
            ClockTime::OfDay(time) => {
                let today = end.date().to_datetime(time).to_zoned(zone.clone())?;
                if today <= end { today } else { today.checked_sub(1.day())? }
            }
        };
        Ok(i64::try_from(at.timestamp().as_nanosecond())?)
    }

    /// The same on the clock of a recording.
    pub(crate) fn monotonic_ns(self, recording: &Recording) -> Result<i64> {
        let anchors = &recording.run().anchors;
        let (Some(last), Some(window)) = (anchors.last(), recording.window()) else {
            bail!(
                "the recording does not say when it was: give a part of it in its own seconds, to `whyso report --window`"
            );
        };
        let wall_ns = self.wall_ns(window.end_ns - last.monotonic_ns + last.wall_ns, &TimeZone::system())?;
        let apart = |anchor: &&Anchor| (anchor.wall_ns - wall_ns).abs();
        let nearest = anchors.iter().min_by_key(apart).unwrap_or(last);
        Ok(wall_ns - nearest.wall_ns + nearest.monotonic_ns)
    }
}

/// Returns a window of a recording by the clock on the wall, in nanoseconds since 1970.
///
/// # Errors
/// The recording does not say when it was.
pub(crate) fn wall_window(recording: &Recording, window: Window) -> Result<Range<i64>> {
    let anchors = &recording.run().anchors;
    let nearest = anchors.iter().min_by_key(|anchor| (anchor.monotonic_ns - window.begin_ns).abs());
    let Some(nearest) = nearest else {
        bail!("the recording does not say when it was: give --since and --until instead");
    };
    let wall_ns = |t_ns: i64| t_ns - nearest.monotonic_ns + nearest.wall_ns;
    Ok(wall_ns(window.begin_ns)..wall_ns(window.end_ns))
}

/// "10:05:30", in this machine's time zone.
pub(crate) fn clock_words(recording: &Recording, t_ns: i64) -> String {
    let anchors = &recording.run().anchors;
    let Some(nearest) = anchors.iter().min_by_key(|anchor| (anchor.monotonic_ns - t_ns).abs()) else {
        return "?".to_string();
    };
    let wall_ns = i128::from(t_ns - nearest.monotonic_ns + nearest.wall_ns);
    Timestamp::from_nanosecond(wall_ns)
        .map_or("?".to_string(), |at| at.to_zoned(TimeZone::system()).strftime("%H:%M:%S").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_day_is_the_last_one_before_the_end() {
        let zone = TimeZone::UTC;
        let ns = |text: &str| text.parse::<Timestamp>().unwrap().as_nanosecond() as i64;
        let end_ns = ns("2026-11-26T10:30:00Z");
        let at = |text: &str| text.parse::<ClockTime>().unwrap().wall_ns(end_ns, &zone).unwrap();
        assert_eq!(at("10:05"), ns("2026-11-26T10:05:00Z"));
        assert_eq!(at("10:30"), end_ns);
        assert_eq!(at("23:59:30"), ns("2026-11-25T23:59:30Z"));
        assert_eq!(at("2026-11-20 10:45"), ns("2026-11-20T10:45:00Z"));
        assert_eq!(at("2026-11-20T10:45:01"), ns("2026-11-20T10:45:01Z"));
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for wrong in ["", "now", "25:00", "10:65", "2026-11-26", "90s"] {
            let found = wrong.parse::<ClockTime>();
            assert!(found.is_err() || wrong == "2026-11-26", "{wrong}: {found:?}");
        }
    }
}
