//! Times of day for times of the one clock.

/// "14:03:59" in UTC.
pub(super) fn time_of_day(t_ns: i64) -> String {
    let wall_ns = whyso_clock::wall_ns() - (whyso_clock::monotonic_ns() - t_ns);
    let of_day = wall_ns.div_euclid(1_000_000_000).rem_euclid(86_400);
    format!("{:02}:{:02}:{:02}", of_day / 3600, of_day / 60 % 60, of_day % 60)
}

/// "1:02:03" or "2:03".
pub(super) fn length(ns: i64) -> String {
    whyso_words::clock((ns.max(0) / 1_000_000_000) as f64, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_read_as_clocks_do() {
        assert_eq!([0, 65_900_000_000, 3_725_000_000_000].map(length), ["0:00", "1:05", "1:02:05"]);
        assert_eq!(time_of_day(whyso_clock::monotonic_ns()).len(), 8);
    }
}
