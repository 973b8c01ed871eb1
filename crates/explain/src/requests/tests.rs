use super::*;

fn sums(name: &str, durations_us: &[(u64, u64)]) -> RequestSums {
    let requests: u64 = durations_us.iter().map(|(_, count)| count).sum();
    RequestSums {
        name: name.to_string(),
        requests,
        timed: requests,
        duration_ns: durations_us.iter().map(|(us, count)| us * 1_000 * count).sum(),
        duration_ns_max: durations_us.iter().map(|(us, _)| us * 1_000).max().unwrap_or(0),
        durations_us: durations_us.iter().copied().collect(),
        ..RequestSums::default()
    }
}

fn log(kinds: Vec<RequestSums>, processes: Vec<RequestSums>) -> AccessLogInput {
    let mut all = RequestSums::default();
    for kind in &kinds {
        all.requests += kind.requests;
        all.timed += kind.timed;
        all.duration_ns += kind.duration_ns;
        all.duration_ns_max = all.duration_ns_max.max(kind.duration_ns_max);
    }
    AccessLogInput { log: "access.log".to_string(), seconds: 10.0, malformed: 1, all, kinds, processes }
}

fn tier(name: &str, mean_ms: f64) -> TierTime {
    let (is_first, requests_per_s) = (true, 10.0);
    TierTime { name: name.to_string(), is_first, requests_per_s, mean_ms, ..TierTime::default() }
}

#[test]
fn the_kind_with_the_most_time_is_first_and_quantiles_are_those_of_the_window() {
    let fast = sums("GET /", &[(1_000, 90)]);
    let slow = sums("GET /items/{}", &[(10_000, 9), (100_000, 1)]);
    let found = time(&log(vec![fast, slow, sums("other", &[(900_000, 1)])], Vec::new()), &[], &[]).unwrap();
    let names: Vec<&str> = found.kinds.iter().map(|kind| kind.name.as_str()).collect();
    assert_eq!(names, ["GET /items/{}", "GET /", "other"]);
    let slow = &found.kinds[0];
    assert_eq!((slow.requests_per_s, slow.mean_ms), (1.0, Some(19.0)));
    assert_eq!((slow.p50_ms, slow.p90_ms, slow.p99_ms), (Some(10.0), Some(10.0), Some(100.0)));
    assert_eq!((found.all.requests, found.all.p90_ms, found.all.max_ms), (101, Some(10.0), Some(900.0)));
    assert_eq!(found.traced, None);
}

#[test]
fn a_process_of_the_log_is_joined_with_the_recorded_program() {
    let workers = [vec![Worker { program: "apache2".to_string(), pid: 7, ..Worker::default() }]];
    let by_process = vec![sums("7", &[(1_000, 5)]), sums("8", &[(1_000, 2)])];
    let log = log(vec![sums("GET /", &[(1_000, 7)])], by_process);
    let tiers = [tier("nginx", 9.0), tier("apache2", 1.5)];
    let found = time(&log, &workers, &tiers).unwrap();
    assert_eq!(found.processes[0].program.as_deref(), Some("apache2"));
    assert_eq!(found.processes[1].program, None, "no recorded program has it");
    let traced = found.traced.unwrap();
    assert!(traced.program == "apache2" && traced.is_by_process);
    // Of two programs that clients ask, neither is chosen without a process.
    assert_eq!(time(&log, &[], &tiers).unwrap().traced, None);
    assert!(!time(&log, &[], &tiers[1..]).unwrap().traced.unwrap().is_by_process);
}

#[test]
fn where_log_and_tracer_differ_both_stand_there() {
    let log = log(vec![sums("GET /", &[(1_000, 100)])], Vec::new());
    let text = |tier: TierTime| findings(&[time(&log, &[], &[tier]).unwrap()])[0].text.clone();
    let alike = text(tier("apache2", 1.02));
    assert!(
        alike.contains("By access.log, 10 requests per second were answered, in 1 ms in the mean."),
        "{alike}"
    );
    assert!(
        alike.contains("10 requests per second to apache2, in 1.02 ms") && !alike.contains("differ"),
        "{alike}"
    );
    assert!(alike.ends_with("1 line is no requests in its format."), "{alike}");
    let slower = text(tier("apache2", 4.0));
    assert!(slower.contains("The times differ") && !slower.contains("The numbers differ"), "{slower}");
}

#[test]
fn a_log_without_durations_or_requests_is_no_error() {
    let untimed = RequestSums { name: "GET /".to_string(), requests: 4, ..RequestSums::default() };
    let found = time(&log(vec![untimed], Vec::new()), &[], &[]).unwrap();
    assert_eq!((found.kinds[0].mean_ms, found.kinds[0].share, found.all.p99_ms), (None, None, None));
    assert!(findings(&[found])[0].text.contains("no durations"));
    assert!(time(&AccessLogInput::default(), &[], &[]).is_none());
    let silent = time(&log(Vec::new(), Vec::new()), &[], &[]).unwrap();
    assert!(silent.kinds.is_empty() && silent.all.requests == 0);
}
