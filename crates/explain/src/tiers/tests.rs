//! A web server before a database, with planted sums.

use super::*;
use crate::model::{Input, LevelInput, LoopKind, PageTimes, SeriesName};

fn counter(host: &str, source: &str, metric: &str, instance: &str, increase: f64) -> Counter {
    let [host, source, metric, instance] = [host, source, metric, instance].map(str::to_string);
    Counter { series: SeriesName { host, source, metric, instance }, unit: "1".to_string(), increase }
}

/// Milliseconds of all requests.
fn tier_counters(host: &str, requests: f64, queue_ms: f64, states: &[(State, f64)]) -> Vec<Counter> {
    let ms: f64 = states.iter().map(|(_, ms)| ms).sum();
    let mut counters = vec![
        counter(host, tier::TIER, tier::REQUESTS, "", requests),
        counter(host, tier::TIER, tier::REQUEST_NS, "", ms * 1e6),
        counter(host, tier::TIER, tier::QUEUE_NS, "", queue_ms * 1e6),
    ];
    counters.extend(
        states
            .iter()
            .map(|(state, ms)| counter(host, tier::TIER, &tier::request_state(*state), "", ms * 1e6)),
    );
    counters
}

fn node(name: &str, role: &str, listens: &str, counters: Vec<Counter>) -> NodeInput {
    let [name, role] = [name, role].map(str::to_string);
    NodeInput { name, role, listens: vec![listens.to_string()], counters, ..NodeInput::default() }
}

/// 100 requests of 12 ms: 1 of queue, 2 of CPU, 9 of waiting for 5 commands each, which take 1.6 ms, 1.5 of them in locks.
fn input() -> Input {
    let mut web = tier_counters("web", 100.0, 100.0, &[(State::Cpu, 200.0), (State::Upstream, 900.0)]);
    web.push(counter("web", tier::UPSTREAM, tier::ASKED, "tcp 3306", 500.0));
    web.push(counter("web", tier::UPSTREAM, tier::WAIT_NS, "tcp 3306", 900e6));
    let server = [
        ("requests", 500.0),
        ("request_ns", 800e6),
        ("request_lock_ns", 750e6),
        ("request_cpu_ns", 50e6),
        ("transit_in_ns", 0.0),
    ];
    let level = LevelInput {
        end_ns: 10_000_000_000,
        counters: server.map(|(metric, sum)| counter("server", SERVER, metric, "", sum)).to_vec(),
        nodes: vec![node("db", "server", "tcp 3306", Vec::new()), node("web", PROGRAM, "tcp 80", web)],
        ..LevelInput::default()
    };
    Input { levels: vec![level], ..Input::default() }
}

fn tiers(input: &Input) -> Vec<TierTime> {
    crate::explain(input).tiers
}

#[test]
fn the_wait_for_a_server_behind_is_divided_by_what_that_did() {
    let tiers = tiers(&input());
    assert_eq!(tiers.iter().map(|tier| tier.name.as_str()).collect::<Vec<_>>(), ["web", "the database"]);
    assert!(tiers[0].is_first && !tiers[1].is_first);
    assert_eq!((tiers[0].mean_ms, tiers[1].mean_ms), (12.0, 1.6));
    let lines: Vec<(u32, &str, f64)> = tiers[0]
        .lines
        .iter()
        .map(|line| (line.depth, line.text.as_str(), (line.ms * 10.0).round() / 10.0))
        .collect();
    assert_eq!(
        lines,
        [
            (0, "a request to web", 12.0),
            (1, "waiting for the database, in 5 commands", 9.0),
            (2, "waiting on locks", 7.5),
            (2, "work on a CPU", 0.5),
            (2, "between web and the database", 1.0),
            (1, "work on a CPU", 2.0),
            (1, "waiting to be picked up", 1.0),
        ]
    );
    let leaves: f64 = tiers[0].lines.iter().filter(|line| !line.is_divided).map(|line| line.share).sum();
    assert!((leaves - 1.0).abs() < 1e-9, "{leaves}");
    assert_eq!(
        headline(&tiers).unwrap(),
        "web answered 10 requests per second, in 12 ms in the mean. 63 % of that is waiting on locks in the database."
    );
}

#[test]
fn of_a_server_that_others_ask_too_a_request_takes_as_much_as_it_asked() {
    let mut shared = input();
    shared.levels[0].counters.iter_mut().for_each(|counter| counter.increase *= 3.0);
    let tiers = tiers(&shared);
    let waits = tiers[0].lines.iter().find(|line| line.is_divided && line.depth == 1).unwrap();
    assert_eq!(waits.text, "waiting for the database, in 5 commands");
}

#[test]
fn a_server_that_was_not_recorded_stays_a_wait_and_a_full_pool_a_queue() {
    let mut alone = input();
    let level = &mut alone.levels[0];
    level.nodes.remove(0);
    level.counters.clear();
    let one = tiers(&alone);
    assert_eq!(
        headline(&one).unwrap(),
        "web answered 10 requests per second, in 12 ms in the mean. 75 % of that is waiting for tcp 3306, which was not recorded. \
         Record it, too, by --process or --dsn."
    );
    let queue =
        alone.levels[0].nodes[0].counters.iter_mut().find(|counter| counter.series.metric == tier::QUEUE_NS);
    queue.unwrap().increase = 5_000e6;
    let idle = headline(&tiers(&alone)).unwrap();
    assert!(idle.ends_with("waiting to be picked up in web. Most threads of web were idle meanwhile, or were not counted: look at what hands requests to them."), "{idle}");
    // A fifth of a thread over ten seconds, and a ninth of one is at work.
    alone.levels[0].nodes[0].counters.push(counter("web", THREADS, "cpu_ns", "other", 2_000e6));
    assert_eq!(
        headline(&tiers(&alone)).unwrap(),
        "web answered 10 requests per second, in 61 ms in the mean. 82 % of that is waiting to be picked up in web. \
         Most threads of web were at work: give it more workers, if CPUs are left."
    );
}

/// Half of the wait for the database was over when the thread read the answers.
#[test]
fn an_event_loop_that_reads_answers_late_is_named() {
    let mut busy = input();
    let web = busy.levels[0].nodes.iter_mut().find(|node| node.name == "web").unwrap();
    web.counters.push(counter("web", tier::TIER, tier::INTERLEAVED, "", 90.0));
    web.counters.push(counter("web", tier::UPSTREAM, tier::LATE_NS, "tcp 3306", 600e6));
    let db = busy.levels[0].counters.iter_mut().filter(|counter| counter.series.metric != "requests");
    db.for_each(|counter| counter.increase /= 8.0);
    let tiers = tiers(&busy);
    let late = tiers[0].lines.iter().find(|line| line.text.starts_with("answers")).unwrap();
    assert_eq!((late.text.as_str(), late.ms), ("answers that waited to be picked up by web", 6.0));
    assert_eq!(tiers[0].cause, Some(TierCause::EventLoop));
    let headline = headline(&tiers).unwrap();
    assert!(
        headline
            .contains("50 % of that is answers that waited to be picked up by web. A thread of web works"),
        "{headline}"
    );
}

#[test]
fn servers_that_ask_each_other_end_somewhere_and_nonsense_is_left_out() {
    let mut circle = input();
    let asks_back = [
        counter("db", tier::UPSTREAM, tier::ASKED, "tcp 80", 10.0),
        counter("db", tier::UPSTREAM, tier::WAIT_NS, "tcp 80", 100e6),
    ];
    let db = node("db", PROGRAM, "tcp 3306", tier_counters("db", 500.0, 0.0, &[(State::Upstream, 100.0)]));
    circle.levels[0].nodes[0] = db;
    circle.levels[0].nodes[0].counters.extend(asks_back);
    assert!(tiers(&circle).iter().all(|tier| !tier.is_first && tier.lines.is_empty()));
    for odd in [f64::NAN, f64::INFINITY, -1.0, 1e300] {
        let mut input = input();
        for counter in &mut input.levels[0].nodes[1].counters {
            counter.increase = odd;
        }
        assert!(tiers(&input).is_empty(), "{odd}");
    }
    let none = Input { levels: vec![LevelInput::default()], ..Input::default() };
    assert!(tiers(&none).is_empty());
}

#[test]
fn a_wait_for_a_file_names_it_by_the_program_that_waited() {
    let mut locked = input();
    let level = &mut locked.levels[0];
    level.nodes[1].counters.push(counter(
        "web",
        tier::TIER,
        &tier::request_state(State::KernelLock),
        "",
        300e6,
    ));
    let wait = |role: &str, path: &str, ns: f64| {
        let [path, state, role] = [path, "kernel_lock", role].map(str::to_string);
        FileWait { path, state, role, count: 10.0, ns }
    };
    level.program_file_waits =
        vec![wait("web", "/sessions/", 270e6), wait("web", "", 30e6), wait("another", "/log", 900e6)];
    let tiers = tiers(&locked);
    let line = tiers[0].lines.iter().find(|line| line.part == Some(Part::KernelLock)).unwrap();
    assert_eq!(line.text, "waiting on locks inside the kernel, 90 % of them for /sessions/");
}

#[test]
fn the_cause_is_the_longest_line_s() {
    let cause_of = |change: &dyn Fn(&mut Vec<Counter>)| {
        let mut input = input();
        let level = &mut input.levels[0];
        level.nodes.remove(0);
        level.counters.clear();
        change(&mut level.nodes[0].counters);
        let [path, state, role] = ["/tmp/sessions/", "kernel_lock", "web"].map(str::to_string);
        level.file_waits = vec![FileWait { path, state, role, count: 10.0, ns: 1e9 }];
        tiers(&input)[0].cause
    };
    let set = |counters: &mut Vec<Counter>, metric: &str, ms: f64| {
        counters.retain(|counter| counter.series.metric != metric);
        counters.push(counter("web", tier::TIER, metric, "", ms * 1e6));
    };
    assert_eq!(cause_of(&|_| {}), Some(TierCause::Upstream));
    assert_eq!(cause_of(&|counters| set(counters, tier::QUEUE_NS, 5_000.0)), None, "its threads may be idle");
    let all_busy = |counters: &mut Vec<Counter>| {
        set(counters, tier::QUEUE_NS, 5_000.0);
        counters.push(counter("web", THREADS, "cpu_ns", "other", 2_000e6));
    };
    assert_eq!(cause_of(&all_busy), Some(TierCause::WorkerPool));
    let all_kept = |counters: &mut Vec<Counter>| {
        set(counters, tier::QUEUE_NS, 5_000.0);
        set(counters, tier::KEPT_NS, 30_000.0);
        // Four threads over ten seconds.
        counters.push(counter("web", THREADS, "net_receive_ns", "other", 40_000e6));
    };
    assert_eq!(cause_of(&all_kept), Some(TierCause::KeepaliveIdle));
    let lock = tier::request_state(State::KernelLock);
    assert_eq!(cause_of(&|counters| set(counters, &lock, 5_000.0)), Some(TierCause::SessionFiles));
    let cpu = tier::request_state(State::Cpu);
    assert_eq!(cause_of(&|counters| set(counters, &cpu, 5_000.0)), None);
    assert_eq!(serde_json::to_value(TierCause::KeepaliveIdle).unwrap(), TierCause::KeepaliveIdle.name());
}

/// Of the wait to be picked up, 40 ms for each request, threads spend 30 after their answers, 27 of them on one file.
#[test]
fn a_log_that_is_written_after_the_answers_is_named_where_requests_wait_to_be_picked_up() {
    let after = |path: &str, ms: f64, background_ms: f64| {
        let mut input = input();
        let level = &mut input.levels[0];
        let web = &mut level.nodes[1].counters;
        web.retain(|counter| counter.series.metric != tier::QUEUE_NS);
        web.push(counter("web", tier::TIER, tier::QUEUE_NS, "", 4_000e6));
        let answering = tier::answering_state(State::KernelLock);
        // Requests of others, too.
        web.push(counter("web", tier::TIER, &answering, "", ms * 100.0 * 1e6 + 7.0));
        web.push(counter("web", tier::TIER, &tier::others_state(State::KernelLock), "", 7.0));
        // Another thread, which answers nothing, waits, too.
        web.push(counter("web", THREADS, "kernel_lock_ns", "program", (ms + background_ms) * 100.0 * 1e6));
        let wait = |path: &str, ns: f64| {
            let [path, state, role] = [path, "kernel_lock", "web"].map(str::to_string);
            FileWait { path, state, role, count: 10.0, ns }
        };
        level.program_file_waits = vec![wait(path, 2.7e9), wait("", 0.3e9 + background_ms * 1e8)];
        tiers(&input)
    };
    let tiers = after("/var/log/access.log", 30.0, 0.0);
    assert_eq!(tiers[0].cause, Some(TierCause::LogFile));
    assert_eq!(tiers[0].after[0].ms, 30.0);
    let printed = headline(&tiers).unwrap();
    let end = "After its answers, web waited for /var/log/access.log, 27 ms for each request, and picked up nothing meanwhile. \
               If requests waited for these threads, buffer the log, or write it through a pipe.";
    assert!(printed.ends_with(end), "{printed}");
    // Of a file whose kind is not known, only the time.
    let tiers = after("/var/lib/uploads", 30.0, 0.0);
    assert_eq!(tiers[0].cause, None);
    assert!(headline(&tiers).unwrap().ends_with("and picked up nothing meanwhile."));
    // Too little to explain the queue.
    let mut web = after("/var/log/access.log", 30.0, 0.0).remove(0);
    web.after[0].ms = 20.0;
    assert!(cause::held_after(&web).is_none());
    // Of 27 ms for the file, 15 may be those of the thread that answers nothing.
    let tiers = after("/var/log/access.log", 30.0, 15.0);
    assert_eq!((tiers[0].after[0].ms, tiers[0].after[0].file.as_ref().unwrap().share), (30.0, 0.4));
    assert_eq!(tiers[0].cause, Some(TierCause::WorkerPool));
    assert!(!headline(&tiers).unwrap().contains("After its answers"));
}

/// A load on a site: 1 user gets 100 requests/s, 4 get 380 and 16 get 385, in 1, 4 and 40 ms.
fn sweep() -> Input {
    let level = |(index, users, per_s, ms): (u32, u32, u64, f64)| {
        let requests = (per_s * 10) as f64;
        LevelInput {
            index,
            users,
            end_ns: 10_000_000_000,
            transactions: per_s * 10,
            latency_mean_ms: ms,
            bins_100ms: vec![(per_s / 10) as u32; 100],
            counters: tier_counters("server", requests, 0.0, &[(State::Cpu, requests * ms)]),
            ..LevelInput::default()
        }
    };
    let levels = [(0, 1, 100, 1.0), (1, 4, 380, 4.0), (2, 16, 385, 40.0)].map(level).to_vec();
    Input { levels, process: Some("web".to_string()), ..Input::default() }
}

#[test]
fn of_a_load_on_a_site_the_level_is_named_that_is_explained() {
    let mean_ms = |users| {
        let explained = crate::explain_at(&sweep(), users);
        let windows = explained.findings.iter().filter(|finding| finding.id == "process").count();
        assert!(windows == 1 || explained.tiers.is_empty());
        explained.tiers.first().map(|tier| (tier.level.clone(), tier.mean_ms))
    };
    let named = |level: &str, ms| Some((level.to_string(), ms));
    assert_eq!(mean_ms(None), named("16 users", 40.0));
    assert_eq!(mean_ms(Some(1)), named("1 user", 1.0));
    assert_eq!(mean_ms(Some(3)), None);
    let explained = crate::explain(&sweep());
    assert!(
        explained.headline.starts_with("At 16 users, web answered 385 requests per second, in 40 ms"),
        "{}",
        explained.headline
    );
    assert!(explained.findings.iter().any(|finding| finding.id == "peak"));
}

/// Users waited 52 ms for a page, and the web server had it for 12 of them.
fn loaded(delayed_acks: f64) -> Input {
    let mut loaded = input();
    let level = &mut loaded.levels[0];
    level.pages = Some(PageTimes { count: 98, mean_ms: 52.0 });
    level.counters.push(counter("server", "net", "DelayedACKs", "", delayed_acks));
    loaded
}

#[test]
fn what_lies_between_a_load_and_the_first_tier_has_a_line() {
    let tiers = tiers(&loaded(3.0));
    let lines: Vec<(u32, &str, f64)> = tiers[0]
        .lines
        .iter()
        .filter(|line| line.depth < 2)
        .map(|line| (line.depth, line.text.as_str(), line.ms.round()))
        .collect();
    assert_eq!(
        lines,
        [
            (0, "what users of web waited for", 52.0),
            (1, "a request to web", 12.0),
            (1, "between the load and web", 40.0),
        ]
    );
    let leaves: f64 = tiers[0].lines.iter().filter(|line| !line.is_divided).map(|line| line.share).sum();
    assert!((leaves - 1.0).abs() < 1e-9, "{leaves}");
    assert_eq!(tiers[0].cause, None);
    assert_eq!(
        headline(&tiers).unwrap(),
        "web answered 10 requests per second; users waited 52 ms in the mean. 77 % of that is between the load and web. \
         web did not have these requests then: look at the way to it, at connections being made, and at the load's own machine."
    );
}

#[test]
fn a_late_acknowledgement_for_each_request_is_named_where_the_time_is_on_the_way() {
    let late = tiers(&loaded(95.0));
    assert_eq!(late[0].cause, Some(TierCause::DelayedAck));
    assert!(
        headline(&late)
            .unwrap()
            .contains("77 % of that is between the load and web. The kernel acknowledged late")
    );
    // Where so little is on the way, they held nobody up.
    let mut soon = loaded(95.0);
    soon.levels[0].pages = Some(PageTimes { count: 98, mean_ms: 30.0 });
    assert_eq!(tiers(&soon)[0].cause, None);
    // Users who pause acknowledge each answer late.
    let mut paused = loaded(95.0);
    paused.levels[0].pacing = LoopKind::ClosedWithPauses;
    assert_eq!(tiers(&paused)[0].cause, None);
}

#[test]
fn a_page_of_several_requests_is_not_compared_with_one_request() {
    let mut redirected = loaded(95.0);
    redirected.levels[0].pages = Some(PageTimes { count: 50, mean_ms: 52.0 });
    let several = tiers(&redirected);
    // Of pages that failed, the requests took longer than the pages that users got.
    let mut failed = loaded(95.0);
    failed.levels[0].pages = Some(PageTimes { count: 98, mean_ms: 2.0 });
    assert_eq!(tiers(&failed)[0].page_ms, None);
    assert_eq!((several[0].page_ms, several[0].lines[0].text.as_str()), (None, "a request to web"));
}

/// An event loop whose requests share one connection to a server behind, so that the loop asks for them after it has picked others.
#[test]
fn requests_that_wait_inside_an_event_loop_point_at_what_it_has_too_few_of() {
    let mut web = tier_counters("web", 100.0, 0.0, &[(State::Cpu, 20.0), (State::NetReceive, 4_400.0)]);
    web.push(counter("web", tier::TIER, tier::INTERLEAVED, "", 100.0));
    let nodes = vec![node("web", PROGRAM, "tcp 80", web)];
    let level = LevelInput { end_ns: 10_000_000_000, nodes, ..LevelInput::default() };
    let words = headline(&tiers(&Input { levels: vec![level], ..Input::default() })).unwrap();
    assert!(
        words.contains("99.5 % of that is waiting inside the program, for a pool, a lock or a timer in web."),
        "{words}"
    );
    assert!(
        words.ends_with(
            "look for a pool of connections that is too small, or for a lock or a timer of its own."
        ),
        "{words}"
    );
}
