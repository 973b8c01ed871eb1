//! Parses settings of the load's threads.

use std::time::Duration;

use whyso_load::MinComplete;

use crate::Error;
use crate::duration::parse_duration;

/// How long several completions are waited for by default.
const AT_MOST: Duration = Duration::from_micros(100);

/// Reads `--min-complete`: "8", or "8,50us" with the longest that they are waited for.
///
/// # Errors
/// One sentence that says what it could be.
pub fn parse_min_complete(text: &str) -> Result<MinComplete, Error> {
    let (completions, time) = match text.split_once(',') {
        Some((completions, time)) => (completions, parse_duration(time).filter(|time| !time.is_zero())),
        None => (text, Some(AT_MOST)),
    };
    match (completions.trim().parse(), time) {
        (Ok(completions @ 1..), Some(at_most)) => Ok(MinComplete { completions, at_most }),
        _ => Err(Error::Plan(format!(
            "--min-complete {text}: give a number of completions, and the longest wait for them, such as 8,50us"
        ))),
    }
}

/// Reads `--busy-poll`.
///
/// # Errors
/// One sentence that says what it could be.
pub fn parse_busy_poll(text: &str) -> Result<Duration, Error> {
    parse_duration(text).filter(|time| !time.is_zero()).ok_or_else(|| {
        Error::Plan(format!(
            "--busy-poll {text}: give the time to look for news before sleeping, such as 50us"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_are_waited_for_within_a_bound() {
        let read =
            |text| parse_min_complete(text).map(|wait| (wait.completions, wait.at_most.as_micros())).unwrap();
        assert_eq!((read("8"), read("4,50us")), ((8, 100), (4, 50)));
        for bad in ["", "0", "x", "8,", "8,0us", "8,soon", "-1", "8,1us,2"] {
            assert!(parse_min_complete(bad).unwrap_err().to_string().contains("such as 8,50us"), "{bad}");
        }
    }

    #[test]
    fn busy_polling_has_a_length() {
        assert_eq!(parse_busy_poll("50us").unwrap(), Duration::from_micros(50));
        assert!(parse_busy_poll("0").is_err() && parse_busy_poll("long").is_err());
    }
}
