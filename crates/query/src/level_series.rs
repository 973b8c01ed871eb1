//! What series did over the windows of levels.

use std::collections::HashMap;

use whyso_explain::model::{Counter, Gauge, LevelInput, MachineInput, NodeInput, SeriesName};
use whyso_record::data::{SeriesId, SeriesKey};
use whyso_record::run::{NodeFacts, PROGRAM, RunInfo, Window};
use whyso_record::{Recording, WindowValue};

use whyso_model::tier;

use crate::Error;

/// The host of the generator's series.
const GENERATOR: &str = "client";
/// Sources whose counters are of one server, and add up over several.
const OF_A_SERVER: [&str; 3] = ["status", "innodb_metrics", "server_process"];
/// Times that every node of a cluster counts: those of all nodes are the same time.
const OF_THE_CLUSTER: [&str; 1] = ["wsrep_flow_control_paused_ns"];

/// What the series that are chosen did over each level's window. Of other nodes of a cluster, counters of those that were loaded, too, are
/// added to the first one's. The rest is left out.
pub fn add_chosen(
    recording: &Recording,
    levels: &mut [LevelInput],
    is_chosen: impl Fn(&SeriesKey) -> bool,
) -> Result<(), Error> {
    let run = recording.run();
    let is_of_loaded = |key: &SeriesKey| run.is_other_loaded_node(&key.host) && adds_up(key);
    let of_first = |key: &SeriesKey| {
        is_chosen(key) && !run.is_other_node(&key.host) && run.is_about_server(&key.host, &key.source)
    };
    each_value(recording, levels, of_first, add_one)?;
    if !run.nodes.iter().any(|node| node.is_loaded) {
        return Ok(());
    }
    let places: Vec<HashMap<SeriesName, usize>> = levels.iter().map(places).collect();
    let at_level = levels.iter().map(|level| level.index).zip(places).collect::<HashMap<_, _>>();
    each_value(
        recording,
        levels,
        |key| is_chosen(key) && is_of_loaded(key),
        |level, key, value| {
            let LevelReading::Counter(counter) = reading(level, key, value) else { return };
            let place =
                at_level.get(&level.index).and_then(|places| places.get(&without_host(&counter.series)));
            if let Some(sum) = place.and_then(|place| level.counters.get_mut(*place)) {
                sum.increase += counter.increase;
            }
        },
    )
}

fn adds_up(key: &SeriesKey) -> bool {
    OF_A_SERVER.contains(&key.source.as_str()) && !OF_THE_CLUSTER.contains(&key.metric.as_str())
}

/// Where each counter of a server stands in a level.
fn places(level: &LevelInput) -> HashMap<SeriesName, usize> {
    let of_server = level.counters.iter().enumerate();
    let of_server = of_server.filter(|(_, counter)| OF_A_SERVER.contains(&counter.series.source.as_str()));
    of_server.map(|(place, counter)| (without_host(&counter.series), place)).collect()
}

fn without_host(series: &SeriesName) -> SeriesName {
    SeriesName { host: String::new(), ..series.clone() }
}

/// What the nodes of the server's cluster did over each level's window, as far as it concerns their part in it.
pub(crate) fn add_nodes(recording: &Recording, levels: &mut [LevelInput]) -> Result<(), Error> {
    let run = recording.run();
    let Some(loaded) = &run.node else { return Ok(()) };
    for level in levels.iter_mut() {
        let others = run.nodes.iter().map(|node| node_input(run, node, node.is_loaded));
        // No load is known of a program.
        let first = node_input(run, loaded, loaded.role != PROGRAM);
        level.nodes = std::iter::once(first).chain(others).collect();
    }
    let place = |key: &SeriesKey| {
        run.nodes.iter().position(|node| node.name == key.host).map_or(0, |position| position + 1)
    };
    each_value(recording, levels, is_of_node, |level, key, value| {
        let reading = reading(level, key, value);
        let node = &mut level.nodes[place(key)];
        match reading {
            LevelReading::Counter(counter) => node.counters.push(counter),
            LevelReading::Gauge(gauge) => node.gauges.push(gauge),
        }
    })
}

/// What machines other than the server's did, where agents recorded them: how busy their CPUs were, and with which programs.
pub(crate) fn add_machines(recording: &Recording, levels: &mut [LevelInput]) -> Result<(), Error> {
    let run = recording.run();
    let is_across = run.is_across_hosts();
    let others = run.hosts.iter().filter(|host| !host.has_server).map(|host| host.name.as_str());
    let names: Vec<&str> = others.chain(is_across.then_some(GENERATOR)).collect();
    if names.is_empty() {
        return Ok(());
    }
    for level in levels.iter_mut() {
        let machine = |name: &&str| MachineInput {
            name: name.to_string(),
            is_generator: *name == GENERATOR,
            counters: Vec::new(),
        };
        level.machines = names.iter().map(machine).collect();
    }
    let is_wanted = |key: &SeriesKey| {
        names.contains(&key.host.as_str())
            && (key.source == "cpu" && key.instance == "all"
                || key.source == "neighbours" && key.metric == "cpu_ns")
    };
    each_value(recording, levels, is_wanted, |level, key, value| {
        let LevelReading::Counter(counter) = reading(level, key, value) else { return };
        if let Some(machine) = level.machines.iter_mut().find(|machine| machine.name == key.host) {
            machine.counters.push(counter);
        }
    })
}

fn node_input(run: &RunInfo, node: &NodeFacts, is_loaded: bool) -> NodeInput {
    let NodeFacts { name, host, role, ndb_id, listens, .. } = node.clone();
    let machine = run.hosts.iter().find(|machine| machine.name == host);
    let addresses = machine.map(|machine| machine.facts.addresses.clone()).unwrap_or_default();
    NodeInput { name, host, addresses, role, is_loaded, ndb_id, listens, ..NodeInput::default() }
}

/// Whether a series shows what a node does in its cluster.
fn is_of_node(key: &SeriesKey) -> bool {
    match key.source.as_str() {
        "server_process" => key.instance == "server",
        "threads" | "appliers" | "applying" | "replication" | "ndbinfo" | tier::TIER | tier::UPSTREAM => true,
        "status" => {
            let metric = key.metric.to_ascii_lowercase();
            metric == "questions" || metric.starts_with("wsrep_") || metric.starts_with("rpl_semi_sync_")
        }
        _ => false,
    }
}

/// Calls `add` with each level and what a chosen series did over its window.
pub(crate) fn each_value(
    recording: &Recording,
    levels: &mut [LevelInput],
    is_chosen: impl Fn(&SeriesKey) -> bool,
    add: impl Fn(&mut LevelInput, &SeriesKey, WindowValue),
) -> Result<(), Error> {
    let chosen = recording.series().iter().filter(|info| is_chosen(&info.key));
    let ids: Vec<SeriesId> = chosen.map(|info| info.id).collect();
    let window = |level: &LevelInput| Window { begin_ns: level.begin_ns, end_ns: level.end_ns };
    let windows: Vec<Window> = levels.iter().map(window).collect();
    recording.window_values(&ids, &windows, |id, values| {
        let Some(info) = recording.info(id) else { return };
        for (level, value) in levels.iter_mut().zip(values) {
            if let Some(value) = value {
                add(level, &info.key, *value);
            }
        }
    })?;
    Ok(())
}

pub(crate) fn add_one(level: &mut LevelInput, key: &SeriesKey, value: WindowValue) {
    match reading(level, key, value) {
        LevelReading::Counter(counter) => level.counters.push(counter),
        LevelReading::Gauge(gauge) => level.gauges.push(gauge),
    }
}

/// What one series did over a level's window.
enum LevelReading {
    Counter(Counter),
    Gauge(Gauge),
}

fn reading(level: &LevelInput, key: &SeriesKey, value: WindowValue) -> LevelReading {
    let series = key.name();
    let unit = key.unit.clone();
    match value {
        WindowValue::Counter(grown) => {
            let begins_with_use = tier::begins_with_use(&key.source);
            let increase = grown.over(level.begin_ns, level.end_ns, begins_with_use);
            LevelReading::Counter(Counter { series, unit, increase })
        }
        WindowValue::Gauge { mean, max } => LevelReading::Gauge(Gauge { series, unit, mean, max }),
    }
}
