use super::*;

const NS_PER_S: i64 = 1_000_000_000;

/// Numbers from 0 to 1 that are the same in each run of the test.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The other clock: ahead by `offset_ns` at this clock's zero, and faster by `drift`.
fn there(here_ns: i64, offset_ns: i64, drift: f64) -> i64 {
    here_ns + offset_ns + (here_ns as f64 * drift).round() as i64
}

/// Asks every half second over a link whose two ways take different times, now and then very long ones.
fn questions_over(seconds: i64, offset_ns: i64, drift: f64, seed: u64) -> ClockBetween {
    let mut noise = Noise(seed);
    let mut between = ClockBetween::default();
    for half in 0..seconds * 2 {
        let sent_ns = half * NS_PER_S / 2;
        let mut way_ns = || {
            let slow = if noise.next() < 0.1 { 20e6 * noise.next() } else { 0.0 };
            (40_000.0 + 60_000.0 * noise.next() + slow) as i64
        };
        let answered_ns = sent_ns + way_ns();
        let received_ns = answered_ns + way_ns();
        between.add(ClockQuestion { sent_ns, there_ns: there(answered_ns, offset_ns, drift), received_ns });
    }
    between
}

#[test]
fn offset_and_drift_are_found_within_the_bound() {
    for (seed, offset_ns, drift) in
        [(1, 7 * 86_400 * NS_PER_S, 1e-4), (2, -3 * NS_PER_S, -1e-4), (3, 0, 0.0), (4, 12_345, 3e-5)]
    {
        for seconds in [1, 3, 8, 60, 300] {
            let line = questions_over(seconds, offset_ns, drift, seed).line().unwrap();
            for here_ns in [0, seconds * NS_PER_S / 2, seconds * NS_PER_S] {
                let error_ns = line.here(there(here_ns, offset_ns, drift)) - here_ns;
                let case = format!("seed {seed}, {seconds} s, at {here_ns}: {error_ns} of {line:?}");
                // What was asked in the last stretches only speaks of these.
                let is_spoken_of = here_ns >= (seconds - 120) * NS_PER_S;
                assert!(!is_spoken_of || error_ns.abs() <= line.bound_at(here_ns), "{case}");
            }
            if seconds >= 60 {
                assert!((line.drift - drift).abs() < 5e-6, "{seconds} s: {line:?}");
                assert!(line.bound_ns < 200_000, "{line:?}");
            }
        }
    }
}

#[test]
fn one_question_bounds_the_offset_by_half_its_round_trip() {
    let mut between = ClockBetween::default();
    assert_eq!(between.line(), None);
    between.add(ClockQuestion { sent_ns: 100, there_ns: 1_150, received_ns: 300 });
    let line = between.line().unwrap();
    assert_eq!((line.offset_ns, line.bound_ns, line.here(1_150)), (950, 100, 200));
}

#[test]
fn an_answer_before_its_question_and_times_at_the_edge_of_numbers_do_no_harm() {
    let mut between = ClockBetween::default();
    between.add(ClockQuestion { sent_ns: 300, there_ns: 0, received_ns: 100 });
    assert_eq!(between.line(), None);
    between.add(ClockQuestion { sent_ns: 0, there_ns: i64::MAX, received_ns: 10 });
    let line = between.line().unwrap();
    for t_ns in [i64::MIN, 0, i64::MAX] {
        line.here(t_ns);
        line.offset_at(t_ns);
        line.bound_at(t_ns);
    }
}

#[test]
fn a_link_that_becomes_slow_is_no_reason_to_claim_what_is_not_known() {
    let (offset_ns, drift) = (5_000, 1e-4);
    let mut between = ClockBetween::default();
    for half in 0..200 {
        let sent_ns = half * NS_PER_S / 2;
        let way_ns = if half < 4 { 50_000 } else { 2_000_000 };
        let there_ns = there(sent_ns + way_ns, offset_ns, drift);
        between.add(ClockQuestion { sent_ns, there_ns, received_ns: sent_ns + 2 * way_ns });
        let line = between.line().unwrap();
        let error_ns = line.here(there(sent_ns, offset_ns, drift)) - sent_ns;
        assert!(error_ns.abs() <= line.bound_at(sent_ns), "at {half}: {error_ns} of {line:?}");
    }
}
