//! How well the lock tables were read over a window. Without that, "nobody waits" may only mean that nobody could read them.

/// A snapshot that is older than this at a window's end shows nothing of its end.
pub const STALE_S: f64 = 2.5;
/// Snapshots at even intervals that should have found as many waiting connections as this, and found none, have missed them. By chance
/// that happens in 5 % of cases (Poisson).
const EXPECTED_MIN: f64 = 3.0;

/// Snapshots of the lock tables over a window, and what the server's counters say of row locks meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Snapshots {
    pub seconds: f64,
    /// Snapshots that succeeded.
    pub count: u64,
    /// Attempts that failed, or that were due and did not happen because the one before took too long.
    pub failed: u64,
    /// Seconds from the last good snapshot to the window's end; it may lie before the window. `None`: there was none.
    pub last_good_s: Option<f64>,
    /// Time that it took, where the tables were read; `None` where that was not recorded.
    pub last_took_ms: Option<f64>,
    /// Connections that were found waiting for rows, in all snapshots.
    pub found_rows: u64,
    /// Seconds that InnoDB counted of waits for rows that ended meanwhile; `None` where that was not read.
    pub row_wait_s: Option<f64>,
    /// Connections that InnoDB's status counted as waiting for a row, on average and at most; `None` as above.
    pub row_waits_now: Option<(f64, f64)>,
}

impl Snapshots {
    /// Whether "nobody waits" is sure for the window: the tables were read, and its end is not older than they are.
    pub fn are_good(&self) -> bool {
        self.count > 0
            && self.last_good_s.is_some_and(|age_s| age_s <= STALE_S)
            && self.contradiction().is_none()
    }

    /// "The last good snapshot of the lock tables was taken 12.1 s before the end; 3 attempts failed or came too late."
    pub fn in_words(&self) -> String {
        let mut text = match self.last_good_s {
            None => "No snapshot of the lock tables succeeded".to_string(),
            Some(age_s) => {
                let took = self
                    .last_took_ms
                    .map_or(String::new(), |ms| format!(" and took {}", whyso_words::milliseconds(ms)));
                format!(
                    "The last good snapshot of the lock tables was taken {} s before the end{took}",
                    whyso_words::number(age_s.max(0.0))
                )
            }
        };
        if self.failed > 0 {
            let failed = match self.failed {
                1 => "1 attempt".to_string(),
                several => format!("{} attempts", whyso_words::whole(several)),
            };
            text.push_str(&format!("; {failed} failed or came too late"));
        }
        text.push('.');
        text
    }

    /// What counters say against snapshots that found nobody waiting for a row; `None` where they agree, or say nothing.
    pub fn contradiction(&self) -> Option<String> {
        if self.found_rows > 0 || self.seconds <= 0.0 {
            return None;
        }
        let snapshots = self.count as f64;
        let (mean, most) = self.row_waits_now.unwrap_or_default();
        let ended_s = self.row_wait_s.unwrap_or(0.0);
        let expected = (ended_s / self.seconds).max(mean) * snapshots;
        let is_missed = if self.count == 0 { ended_s > 0.0 || most > 0.0 } else { expected >= EXPECTED_MIN };
        if !is_missed {
            return None;
        }
        let mut parts = Vec::new();
        if ended_s > 0.0 {
            parts.push(format!(
                "{} s of waits for row locks that ended meanwhile",
                whyso_words::number(ended_s)
            ));
        }
        if most > 0.0 {
            parts.push(format!(
                "as many as {} connections waiting for a row at a time",
                whyso_words::number(most)
            ));
        }
        Some(format!(
            "But InnoDB counted {}: connections did wait, and the snapshots do not show which.",
            whyso_words::list(&parts)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Snapshots {
        Snapshots {
            seconds: 10.0,
            count: 20,
            last_good_s: Some(0.3),
            last_took_ms: Some(4.2),
            row_wait_s: Some(0.0),
            row_waits_now: Some((0.0, 0.0)),
            ..Snapshots::default()
        }
    }

    #[test]
    fn nobody_waits_where_the_tables_were_read_to_the_end_and_counters_agree() {
        assert!(good().are_good());
        assert_eq!(good().contradiction(), None);
        assert_eq!(
            good().in_words(),
            "The last good snapshot of the lock tables was taken 0.3 s before the end and took 4.2 ms."
        );
        // Short waits are seldom met by a snapshot: no contradiction.
        assert!(Snapshots { row_wait_s: Some(0.5), ..good() }.are_good());
    }

    #[test]
    fn a_failed_or_late_snapshot_is_reported_with_the_last_good_one() {
        let late = Snapshots { count: 2, failed: 3, last_good_s: Some(12.1), ..good() };
        assert!(!late.are_good());
        assert_eq!(
            late.in_words(),
            "The last good snapshot of the lock tables was taken 12.1 s before the end and took 4.2 ms; 3 attempts failed or came too late."
        );
        let none = Snapshots { count: 0, failed: 1, last_good_s: None, ..good() };
        assert!(!none.are_good());
        assert_eq!(
            none.in_words(),
            "No snapshot of the lock tables succeeded; 1 attempt failed or came too late."
        );
    }

    #[test]
    fn counters_that_say_otherwise_are_pointed_out() {
        let missed = Snapshots { row_wait_s: Some(26.4), row_waits_now: Some((3.1, 4.0)), ..good() };
        assert!(!missed.are_good());
        assert_eq!(
            missed.contradiction().unwrap(),
            "But InnoDB counted 26.4 s of waits for row locks that ended meanwhile and as many as 4 connections waiting for a row at a \
             time: connections did wait, and the snapshots do not show which."
        );
        assert_eq!(Snapshots { found_rows: 9, ..missed }.contradiction(), None);
        // Of waits that are in progress, no counter of time has grown yet.
        let stuck = Snapshots { row_waits_now: Some((4.0, 4.0)), ..good() };
        assert!(stuck.contradiction().is_some());
        let missed_all = Snapshots { count: 0, row_wait_s: Some(0.01), ..good() };
        assert!(missed_all.contradiction().is_some());
    }
}
