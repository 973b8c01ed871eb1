use whyso_inference::Verdict;

use super::*;

/// Starts with one measure per level.
pub(crate) fn finished_starts(
    spec: &Spec,
    starts: &[Start],
    value: impl Fn(Start, u32) -> Option<f64>,
) -> Vec<StartRecord> {
    let level = |start: Start, users: u32| {
        let measures = BTreeMap::from([(spec.metric.clone(), value(start, users)?)]);
        Some(LevelRecord { users, measures, ..LevelRecord::default() })
    };
    let record = |start: &Start| StartRecord {
        host: String::new(),
        start: *start,
        run: String::new(),
        version: "1.2".to_string(),
        seconds: 10.0,
        measured_s: 8.0,
        machine: crate::journal::Machine::default(),
        levels: spec.users.iter().filter_map(|users| level(*start, *users)).collect(),
        peak: None,
        points: Vec::new(),
        unknown_knobs: Vec::new(),
        tops: Vec::new(),
        evenness: Vec::new(),
        warnings: Vec::new(),
    };
    starts.iter().map(record).collect()
}

fn jitter(start: Start) -> f64 {
    1.0 + 0.001 * f64::from(start.block % 2) * (start.cell as f64 - 1.5)
}

#[test]
fn each_variant_is_compared_within_its_server_and_its_blocks() {
    let text = "title = 't'\nquestion = 'q'\nservers = ['x', 'y']\nusers = [1, 8]\nrepeats = 4\nbaseline = 'a'\n[[variant]]\nname = 'a'\n[[variant]]\nname = 'b'\n";
    let spec = Spec::parse(text, false).unwrap();
    // The machine drifts by a factor from block to block; on y, b is a fifth slower at 8 users.
    let value = |start: Start, users: u32| {
        let machine = 1000.0 * f64::from(start.block + 1) * f64::from(users);
        let slower = if start.cell == 3 && users == 8 { 0.8 } else { 1.0 };
        Some(machine * jitter(start) * slower)
    };
    let found = answer(&spec, &finished_starts(&spec, &spec.all_starts(), value), &[]);
    assert_eq!((found.lines.len(), found.starts_done, found.starts), (8, 18, 18));
    let last = found.done.last().unwrap();
    assert!(found.done.len() == 18 && found.done[1].pair && last.block == 3 && last.version == "1.2");
    let verdicts: Vec<Option<Verdict>> =
        found.lines.iter().map(|line| line.compared.map(|compared| compared.verdict)).collect();
    let (same, slower) = (Some(Verdict::NoDifferenceFound), Some(Verdict::Slower));
    assert_eq!(verdicts, [None, same, None, same, None, same, None, slower]);
    let effect = found.lines[7].compared.unwrap().effect;
    assert!((effect.ratio - 0.8).abs() < 0.002, "{effect:?}");
    assert!(found.lines.iter().all(|line| line.baseline_unstable), "the starts differ fourfold");
    assert_eq!(found.overhead_percent.map(f64::round), Some(20.0));
}

#[test]
fn what_was_not_done_yet_is_not_compared() {
    let text = "title = 't'\nquestion = 'q'\nusers = [1]\nrepeats = 4\npair = false\nbaseline = 'a'\n[[variant]]\nname = 'a'\n[[variant]]\nname = 'b'\n";
    let spec = Spec::parse(text, false).unwrap();
    let starts = [Start { block: 0, cell: 0, pair: false }, Start { block: 1, cell: 1, pair: false }];
    let found = answer(&spec, &finished_starts(&spec, &starts, |_, _| Some(5.0)), &[]);
    assert!(found.lines.iter().all(|line| line.compared.is_none()), "they share no block");
    assert_eq!((found.starts_done, found.starts), (2, 8));
    assert!(!found.is_narrow(50.0), "nothing was compared");
}

#[test]
fn of_several_tunings_the_best_counts_at_each_number_of_users() {
    let text = "title = 't'\nquestion = 'q'\nusers = [1, 64]\nrepeats = 3\nbaseline = 'a'\n[[variant]]\nname = 'a'\n[[variant]]\nname = 'b'\n[best_of]\nspin = [6, 96]\n";
    let spec = Spec::parse(text, false).unwrap();
    // Little spinning is better for one user, much for many.
    let value = |start: Start, users: u32| {
        let much = start.cell % 2 == 1;
        let variant = if start.cell < 2 { 1000.0 } else { 1200.0 };
        Some(variant * if much == (users == 64) { 1.1 } else { 1.0 } * jitter(start))
    };
    let found = answer(&spec, &finished_starts(&spec, &spec.all_starts(), value), &[]);
    let tunings: Vec<(&str, &str)> =
        found.lines.iter().map(|line| (line.variant.as_str(), line.tuning.as_str())).collect();
    assert_eq!(tunings, [("a", "spin=6"), ("b", "spin=6"), ("a", "spin=96"), ("b", "spin=96")]);
    let effect = found.lines[3].compared.unwrap().effect;
    assert!((effect.ratio - 1.2).abs() < 0.005, "{effect:?}");
}

#[test]
fn steps_are_compared_with_the_one_before_and_lower_may_be_better() {
    let text = "title = 't'\nquestion = 'q'\nrepeats = 4\nbaseline = 'a'\nsteps = ['a', 'b', 'c']\nmetric = 'latency_mean_ms'\n[[variant]]\nname = 'a'\n[[variant]]\nname = 'b'\n[[variant]]\nname = 'c'\nagainst = 'b'\n";
    let spec = Spec::parse(text, false).unwrap();
    let value = |start: Start, _| Some([10.0, 11.0, 5.5][start.cell] * jitter(start));
    let found = answer(&spec, &finished_starts(&spec, &spec.all_starts(), value), &[]);
    let steps: Vec<(&str, f64, Verdict)> = found
        .steps
        .iter()
        .map(|step| {
            let compared = step.compared.unwrap();
            (step.to.as_str(), (compared.effect.ratio * 10.0).round() / 10.0, compared.verdict)
        })
        .collect();
    assert_eq!(steps, [("b", 1.1, Verdict::Slower), ("c", 0.5, Verdict::Faster)]);
    assert_eq!(found.lines[2].against, "b");
    assert!((found.lines[2].compared.unwrap().effect.ratio - 0.5).abs() < 0.01);
    assert!(found.is_narrow(1.0) && !found.is_narrow(0.001));
}
