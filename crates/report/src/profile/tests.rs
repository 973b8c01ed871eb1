use whyso_profile::{ClassTime, FunctionName, ProfileSample};

use super::*;

fn profile() -> Profile {
    let name = |name: &str, module: &str| FunctionName { name: name.to_string(), module: module.to_string() };
    let mut profile =
        Profile { metrics: vec!["cpu".to_string(), "file_sync".to_string()], ..Profile::default() };
    let main = name("main", "server");
    profile
        .stacks
        .insert(1, vec![name("__schedule", "[kernel]"), name("log_write\u{1b}[2J", "server"), main.clone()]);
    profile.stacks.insert(2, vec![name("operator;()", "server"), main]);
    let sample = |stack, metric, weight_ns, seen_ns| ProfileSample::one(stack, metric, weight_ns, seen_ns);
    profile.samples = vec![sample(1, 1, 2.5e9, 2.5e9), sample(2, 0, 1e9, 0.0), sample(2, 0, 4_000.0, 0.0)];
    profile
}

pub(super) const SAMPLED: SampledIn<'_> = SampledIn {
    window: "the level of 16 users",
    seconds: 10.0,
    role: "connection",
    whose: "threads of role connection",
    known_share: None,
    known_by: None,
    hidden_share: 0.0,
    part: 1.0,
    samples: 2,
    waits: 1234,
    rootless: 0,
    is_light: false,
};

#[test]
fn functions_stand_under_their_total() {
    let profile = profile();
    let table = functions(SAMPLED, &profile, &whyso_profile::functions(&profile), 2);
    assert_eq!(
        table,
        "\
the level of 16 users, 10 s, threads of role connection: 2 samples on CPUs, 1,234 waits; 100 % of their stacks are whole
cpu 1 s ± 1.96 s, file sync 2.5 s ± 0 ms (95 %)

excl. cpu s  incl. cpu s  excl. file sync s  incl. file sync s  function
          1            1                2.5                2.5  <Total>
          1            1                  0                  0  operator;()
          0            1                  0                2.5  main
and 2 more: --limit N shows N
"
    );
}

#[test]
fn where_a_connection_was_asked_for_the_share_that_is_known_is_shown() {
    let profile = profile();
    let sampled = SampledIn { whose: "all threads, connection 40", known_share: Some(0.9312), ..SAMPLED };
    let text = functions(sampled, &profile, &whyso_profile::functions(&profile), 1);
    let lines: Vec<&str> = text.lines().take(2).collect();
    assert!(lines[0].contains(", 10 s, all threads, connection 40: 2 samples"), "{text}");
    assert_eq!(
        lines[1],
        "snapshots every few seconds show whose work it was, for 93 % of these threads' time; of the rest nothing is shown \
         (a run with --trace-sql has it exactly)"
    );
}

#[test]
fn a_light_sampling_is_shown_with_what_takes_more() {
    let profile = profile();
    let sampled = SampledIn { is_light: true, ..SAMPLED };
    let text = functions(sampled, &profile, &whyso_profile::functions(&profile), 1);
    let light = "light sampling: fewer stacks, named by symbols only, and none of waits; `--stacks` when recording takes them all";
    assert_eq!(text.lines().nth(1), Some(light));
    assert!(!functions(SAMPLED, &profile, &whyso_profile::functions(&profile), 1).contains(light));
}

#[test]
fn what_is_hidden_of_the_observers_is_shown_with_its_share() {
    let profile = profile();
    let sampled = SampledIn { hidden_share: 0.231, ..SAMPLED };
    let text = functions(sampled, &profile, &whyso_profile::functions(&profile), 1);
    assert_eq!(
        text.lines().nth(1),
        Some(
            "hidden: 23 % of these threads' time, which whyso's own probes and questions took (--observer shows it)"
        )
    );
    assert!(!functions(SAMPLED, &profile, &whyso_profile::functions(&profile), 1).contains("hidden"));
}

#[test]
fn a_function_stands_between_its_relatives() {
    let profile = profile();
    let name = FunctionName { name: "log_write\u{1b}[2J".to_string(), module: "server".to_string() };
    let found = whyso_profile::relatives(&profile, &name).unwrap();
    let callers = relatives(&profile, &found, Relation::Callers, 10);
    let lines: Vec<&str> = callers.lines().collect();
    assert!(lines[1].ends_with(" main") && lines[2].ends_with(" *log_write?[2J"), "{callers}");
    let callees = relatives(&profile, &found, Relation::Callees, 10);
    assert!(callees.ends_with("2.5   __schedule [kernel]\n"), "{callees}");
    let object = relatives_json(&profile, &found, Relation::Callers, 10);
    assert_eq!(object["callers"][0]["file_sync"]["attributed_ns"], 2.5e9);
    assert_eq!(object["function"]["name"], "log_write\u{1b}[2J");
}

#[test]
fn folded_stacks_are_what_flame_graphs_read() {
    let profile = profile();
    assert_eq!(folded(&profile, 0), "main;operator:() 1000004\n");
    assert_eq!(folded(&profile, 1), "main;log_write?[2J;__schedule 2500000\n");
}

#[test]
fn the_object_has_every_time() {
    let profile = profile();
    let object = functions_json(SAMPLED, &profile, &whyso_profile::functions(&profile), 10);
    assert_eq!(object["total"]["cpu"]["exclusive_ns"], 1_000_004_000.0);
    assert_eq!(object["functions"][0]["name"], "operator;()");
    assert_eq!(object["total_half_interval_ns"]["file_sync"], 0.0);
}

#[test]
fn classes_stand_with_their_shares_and_what_has_none_last() {
    let mut profile = profile();
    profile.metrics = vec!["file_sync".to_string()];
    profile.samples.retain(|sample| sample.metric == 1);
    profile.samples[0].metric = 0;
    let time = |class: Option<&str>, ns| ClassTime { class: class.map(str::to_string), ns: vec![ns] };
    let times = [time(Some("redo_flush"), 1.5e9), time(None, 1e9)];
    let table = classes(SAMPLED, &profile, &times);
    let rows: Vec<&str> = table.lines().skip(3).collect();
    assert_eq!(
        rows,
        [
            "file sync s    %  class",
            "        2.5  100  <Total>",
            "        1.5   60  redo flush",
            "          1   40  <no class>"
        ]
    );
    let object = classes_json(SAMPLED, &profile, &times);
    assert_eq!(object["classes"][0], serde_json::json!({"class": "redo_flush", "ns": {"file_sync": 1.5e9}}));
    assert!(object["classes"][1]["class"].is_null());
}
