//! Prepares a study: reads its files, finds its servers, and checks every cell before anything starts.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::time::Duration;

use whyso_load::{Arrivals, EngineKind, Think, Tuning};
use whyso_server::knobs::pfs;
use whyso_server::{Binary, Dsn};
use whyso_study::{At, Cell, Design, Spec, StoredStudy, Suggest};
use whyso_trace::{StackSampling, StacksOf};
use whyso_watch::AddOn;

use super::cell_error::of_cell;
use crate::cluster_node::ClusterNode;
use crate::source::Source;
use crate::{Action, ActionKind, Error, Literals, Plan, ServerPlan};
use whyso_model::parse_size;

/// How often counters are read where a study shows them over time.
const INTERVAL_OVER_TIME: Duration = Duration::from_millis(500);
const INTERVAL: Duration = Duration::from_secs(1);

/// A running server that a study is carried out on.
#[derive(Clone, Debug)]
pub struct ReachedServer {
    pub dsn: String,
    /// The nodes of its cluster, itself first; empty where it is in none that whyso knows.
    pub nodes: Vec<ClusterNode>,
}

impl ReachedServer {
    pub(super) fn endpoint(&self) -> Result<String, Error> {
        Ok(Dsn::resolve(&self.dsn)?.endpoint())
    }
}

/// Reads what a study's file names, leaves out servers that are optional and not available, and checks every cell.
/// `folder`: the file's, which paths of workloads are relative to. `server`: a running one that it is carried out on.
///
/// # Errors
/// One sentence for the first thing that is wrong, with the cell that it is wrong with.
pub fn plan_study(
    mut spec: Spec,
    folder: &Path,
    server: Option<&ReachedServer>,
) -> Result<StoredStudy, Error> {
    let mut notes = Vec::new();
    let mut endpoint = String::new();
    if spec.app.is_some() {
        return super::app::plan(spec, folder, server.is_some());
    }
    if let Some(server) = server {
        check_on_own_server(&spec)?;
        spec.asked_design = spec.asked_design.or(Some(Design::Blocks));
        endpoint = server.endpoint()?;
        notes.push(format!(
            "It is carried out on {endpoint}, which is not restarted: its starts are repetitions, and what it finds holds for this start of the server."
        ));
    }
    let is_at_hand =
        |server: &str| whyso_server::find((!server.is_empty()).then(|| Path::new(server))).is_ok();
    if spec.where_at_hand {
        let (here, elsewhere): (Vec<String>, Vec<String>) =
            spec.servers.iter().cloned().partition(|server| is_at_hand(server));
        if here.is_empty() {
            return Err(Error::Plan(format!(
                "none of the servers {} is available: `whyso server list` shows how to get one",
                elsewhere.join(", ")
            )));
        }
        for server in elsewhere {
            notes.push(format!("the server {server:?} is left out: it is not available (`whyso server fetch {server}` brings it, where it is one of whyso's list)"));
        }
        spec.servers = here;
    }
    let absent: Vec<String> = spec
        .variants
        .iter()
        .filter(|variant| variant.where_at_hand)
        .filter(|variant| !is_at_hand(variant.server.as_deref().unwrap_or_default()))
        .map(|variant| variant.name.clone())
        .collect();
    for name in &absent {
        notes.push(format!(
            "{name:?} is left out: its server is not available (`whyso server list` shows those that are)"
        ));
    }
    spec.variants.retain(|variant| !absent.contains(&variant.name));
    spec.steps.retain(|step| !absent.contains(step));
    spec.interactions.retain(|names| !names.iter().any(|name| absent.contains(name)));
    let cells = spec.cells();
    if let Some(cell) = cells.iter().find(|cell| absent.contains(&cell.against)) {
        return Err(Error::Plan(format!(
            "{}: {:?}, which it is compared with, is not available: name another baseline",
            cell.name(),
            cell.against
        )));
    }
    let mut knobs = KnownKnobs::of_study(server);
    resolve_suggestion(&mut spec, &mut knobs, &mut notes)?;
    let mut study = StoredStudy { spec, files: BTreeMap::new(), notes, endpoint };
    for cell in &cells {
        read_workload(&mut study.files, &cell.setup.workload, folder)?;
    }
    for cell in &cells {
        let unknown = knobs.unknown(cell)?;
        let plan = plan_of(&study, Path::new("."), cell, &unknown, server)?;
        plan.check()
            .and_then(|()| crate::describe(&plan).map(|_| ()))
            .map_err(|error| of_cell(cell, &error))?;
    }
    Ok(study)
}

/// What only servers of whyso's own can be started with.
fn check_on_own_server(spec: &Spec) -> Result<(), Error> {
    let refused = |what: &str| {
        Err(Error::Plan(format!(
            "--dsn: {what} needs servers that whyso starts: leave out --dsn, or take it out of the study's file"
        )))
    };
    if spec.asked_design == Some(Design::Duet) {
        return refused("design = \"duet\"");
    }
    if spec.servers != [""] || spec.variants.iter().any(|variant| variant.server.is_some()) {
        return refused("a choice of servers");
    }
    if spec.cold || spec.session_sweep.is_some() || spec.data_dir.is_some() {
        return refused("cold, [inside] or data_dir");
    }
    for cell in spec.cells() {
        let setup = &cell.setup;
        if setup.cluster.is_some() || setup.at.iter().any(|at| at.restart) {
            return refused(&format!("{}: a cluster, or a restart,", cell.name()));
        }
        if setup.cpus.is_some() || setup.memory.is_some() || setup.preload.is_some() || setup.endpoints > 1 {
            return refused(&format!("{}: cpus, memory, preload or endpoints", cell.name()));
        }
        if setup.pfs.as_deref().is_some_and(|preset| ["not-started", "compiled-out"].contains(&preset)) {
            return refused(&format!("{}: a server without the Performance Schema", cell.name()));
        }
    }
    Ok(())
}

/// Chooses the server for which a limit of concurrency is suggested: one that has the knob. Where none has it, adds a note.
fn resolve_suggestion(spec: &mut Spec, knobs: &mut KnownKnobs, notes: &mut Vec<String>) -> Result<(), Error> {
    let Some(Suggest { knob, server }) = spec.suggest.clone() else { return Ok(()) };
    for cell in spec.cells().iter().filter(|cell| cell.variant == spec.baseline) {
        if server.as_ref().is_some_and(|server| *server != cell.server) || !knobs.has(cell, &knob)? {
            continue;
        }
        spec.suggest = Some(Suggest { knob, server: Some(cell.server.clone()) });
        return Ok(());
    }
    notes.push(format!("No limit of concurrency is suggested: no server of this study has {knob}."));
    spec.suggest = None;
    Ok(())
}

/// A workload that is a file: its text, so that the study stays what it was.
fn read_workload(files: &mut BTreeMap<String, String>, name: &str, folder: &Path) -> Result<(), Error> {
    let is_file = name.ends_with(".sql") || name.contains('/');
    if !is_file || files.contains_key(name) {
        return Ok(());
    }
    let path = folder.join(name);
    let text = std::fs::read_to_string(&path).map_err(|error| {
        Error::Plan(format!("workload = {name:?} can't be read: {}: {error}", path.display()))
    })?;
    files.insert(name.to_string(), text);
    Ok(())
}

/// Which knobs the servers of a study know, each asked once.
#[derive(Default)]
pub(super) struct KnownKnobs {
    of: BTreeMap<String, (Binary, BTreeMap<String, String>)>,
    /// It is carried out on a server that is reached, which refuses what it does not know.
    is_reached: bool,
}

impl KnownKnobs {
    pub(super) fn of_study(server: Option<&ReachedServer>) -> KnownKnobs {
        KnownKnobs { is_reached: server.is_some(), ..KnownKnobs::default() }
    }

    fn of(&mut self, cell: &Cell) -> Result<&(Binary, BTreeMap<String, String>), Error> {
        match self.of.entry(cell.server.clone()) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(place) => {
                let server = (!cell.server.is_empty()).then(|| Path::new(&cell.server));
                let binary = whyso_server::find(server).map_err(|error| of_cell(cell, &error))?;
                let knobs = binary.known_knobs().map_err(|error| of_cell(cell, &error))?;
                Ok(place.insert((binary, knobs)))
            }
        }
    }

    /// Whether a cell's server has a knob.
    fn has(&mut self, cell: &Cell, knob: &str) -> Result<bool, Error> {
        if self.is_reached {
            return Ok(true);
        }
        Ok(self.of(cell)?.1.contains_key(&knob.to_lowercase().replace('-', "_")))
    }

    /// Those of a cell that its server does not know, and need not.
    ///
    /// # Errors
    /// A knob that it does not know and has to, with the nearest that it knows.
    pub(super) fn unknown(&mut self, cell: &Cell) -> Result<Vec<String>, Error> {
        if self.is_reached {
            return Ok(Vec::new());
        }
        let (binary, knobs) = self.of(cell)?;
        let mut unknown = Vec::new();
        for (name, _) in &cell.setup.set {
            let plain = name.to_lowercase().replace('-', "_");
            // Boolean options have a negated form, and a server knows options of plugins once these are loaded.
            let begins = ["", "skip_"];
            let is_known = plain.starts_with("plugin_load")
                || plain.starts_with("loose_")
                || begins
                    .iter()
                    .any(|begin| plain.strip_prefix(begin).is_some_and(|rest| knobs.contains_key(rest)))
                || knobs.contains_key(&format!("skip_{plain}"));
            if is_known {
                continue;
            }
            if cell.setup.where_known.contains(name) {
                unknown.push(name.clone());
                continue;
            }
            let all: Vec<&str> = knobs.keys().map(String::as_str).collect();
            return Err(of_cell(
                cell,
                &format!(
                    "{} {} does not know the knob `{name}`: {} (or give the variant where_known = true)",
                    binary.flavor,
                    binary.version,
                    whyso_study::suggest_word(&plain, &all)
                ),
            ));
        }
        Ok(unknown)
    }
}

pub(super) fn plan_of(
    study: &StoredStudy,
    runs: &Path,
    cell: &Cell,
    unknown_knobs: &[String],
    server: Option<&ReachedServer>,
) -> Result<Plan, Error> {
    let (spec, setup) = (&study.spec, &cell.setup);
    let preset = setup.pfs.as_ref().map(|preset| preset.parse().map(pfs::PfsRequest::new)).transpose();
    let mut wanted = preset.map_err(|error| of_cell(cell, &error))?;
    match (&mut wanted, &setup.pfs_timing) {
        (_, None) => {}
        (Some(wanted), Some(timing)) => {
            wanted.timing = Some(timing.parse().map_err(|error| of_cell(cell, &error))?)
        }
        (None, Some(_)) => return Err(of_cell(cell, &"pfs_timing is for a preset: give pfs, too")),
    }
    let mut actions = Vec::new();
    for At { after, set, restart, data_set } in &setup.at {
        if *restart {
            let data_set = data_set.iter().map(|(name, value)| (name.clone(), value.to_string()));
            let what = ActionKind::Restart { data_set: data_set.collect() };
            actions.push(Action { after: Duration::from_secs_f64(*after), what });
        }
        actions.extend(set.iter().map(|(name, value)| Action {
            after: Duration::from_secs_f64(*after),
            what: ActionKind::Set { name: name.clone(), value: value.to_string() },
        }));
    }
    let over_time = !spec.over_time.is_empty();
    let set = setup.set.iter().filter(|(name, _)| !unknown_knobs.contains(name));
    Ok(Plan {
        source: source_of(study, &setup.workload),
        options: setup.options.clone(),
        tables: setup.tables,
        rows: setup.rows,
        table_engine: setup.engine.clone(),
        seed: spec.seed,
        users: spec.users.clone(),
        measure: Duration::from_secs_f64(spec.seconds),
        warmup_max: Duration::from_secs_f64(spec.warmup),
        cold: spec.cold,
        interval: if over_time { INTERVAL_OVER_TIME } else { INTERVAL },
        trace: spec.trace,
        // Runs of a study are compared: none has more of the observer than it asks for.
        stacks: if spec.stacks { StackSampling::Full } else { StackSampling::Off },
        stacks_of: StacksOf::Server,
        sql: spec.trace_sql.then_some(Literals::Replaced),
        engine: EngineKind::default(),
        loops: None,
        tuning: Tuning::default(),
        think: Think::None,
        rates_per_s: Vec::new(),
        arrivals: Arrivals::Poisson,
        slo: Vec::new(),
        // Starts are repeated, not levels.
        repeat_best: false,
        // Cells are compared at the same number of event loops.
        check_loops: false,
        actions,
        server: match server {
            Some(server) => ServerPlan::Dsn { dsn: server.dsn.clone(), set: set.cloned().collect() },
            None => ServerPlan::ThrowAway {
                build: (!cell.server.is_empty()).then(|| cell.server.clone().into()),
                parent: spec.data_dir.as_ref().map(PathBuf::from),
                set: set.cloned().collect(),
                defaults_file: None,
                cpus: setup.cpus.clone(),
                memory_bytes: setup
                    .memory
                    .as_deref()
                    .map(parse_size)
                    .transpose()
                    .map_err(|error| of_cell(cell, &error))?,
                is_without_quota: false,
                preload: setup.preload.as_ref().map(PathBuf::from),
            },
        },
        nodes: server.map_or(Vec::new(), |server| server.nodes.clone()),
        other_servers: Vec::new(),
        cluster: None,
        pfs: wanted,
        client_cpus: setup.client_cpus.clone(),
        allow_writes: None,
        add_ons: add_ons(spec)?,
        access_logs: Vec::new(),
        relay: whyso_relay::RelayTargets::default(),
        hosts: None,
        labels: whyso_record::Labels::default(),
        out: runs.to_path_buf(),
        command: Vec::new(),
    })
}

fn add_ons(spec: &Spec) -> Result<Vec<AddOn>, Error> {
    let found = spec.add_ons.iter().map(|add_on| AddOn::find(add_on));
    found.collect::<Result<_, _>>().map_err(|error| Error::Plan(format!("add_ons: {error}")))
}

fn source_of(study: &StoredStudy, workload: &str) -> Source {
    match study.files.get(workload) {
        Some(text) => {
            let name = Path::new(workload).file_name().unwrap_or_default().to_string_lossy().into_owned();
            Source::File { name, text: text.clone() }
        }
        None => Source::Builtin(workload.to_string()),
    }
}
