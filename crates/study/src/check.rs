//! What of a file can be checked without a server.

use crate::cells::Cell;
use crate::cluster::ClusterOf;
use crate::design::{DUET_CUT, DUET_WINDOW};
use crate::hints::{hint, nearest};
use crate::measures::{find_measure, measure_names};
use crate::setup::{At, Part, Setup};
use crate::spec::{Before, Repeats, Spec};
use crate::{Error, Start};

/// More cells would take weeks.
const CELLS_MAX: usize = 1_000;
const REPEATS_MAX: u32 = 1_000;
const ENDPOINTS_MAX: u32 = 64;

fn wrong<T>(why: impl Into<String>) -> Result<T, Error> {
    Err(Error::Spec(why.into()))
}

impl Spec {
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.check_size()?;
        self.check_numbers()?;
        self.check_before()?;
        self.check_measures()?;
        self.check_app()?;
        check_names("variant", &self.variants)?;
        check_names("condition", &self.conditions)?;
        for condition in &self.conditions {
            if condition.server.is_some() || condition.against.is_some() || condition.where_at_hand {
                return wrong(format!(
                    "[[condition]] {:?}: server, against and where_at_hand are of a [[variant]]",
                    condition.name
                ));
            }
        }
        for part in self.conditions.iter().chain(&self.variants) {
            self.check_times(part)?;
            if !(1..=ENDPOINTS_MAX).contains(&part.endpoints.unwrap_or(1)) {
                return wrong(format!("{:?}: endpoints must be 1 to {ENDPOINTS_MAX}", part.name));
            }
        }
        let grids = self.grid.iter().chain(&self.best_of);
        if let Some((knob, _)) = grids.clone().find(|(_, values)| values.is_empty()) {
            return wrong(format!("the grid has no value for {knob}: give some, such as [6, 96]"));
        }
        if let Some(sweep) = &self.session_sweep {
            sweep.check()?;
            if self.users != [1] || !self.best_of.is_empty() || !self.over_time.is_empty() {
                return wrong("[inside] sweeps a knob for one session: remove users, best_of and over_time");
            }
        }
        if let Some(design) = self.asked_design
            && let Some(why) = self.obstacle_to(design)
        {
            return wrong(format!(
                "design = \"{}\": {why}: leave design out, or give \"blocks\"",
                design.name()
            ));
        }
        self.check_cells()
    }

    /// Checks the bounds on its cells and repeats, also of a study that someone else wrote.
    pub(crate) fn check_size(&self) -> Result<(), Error> {
        let (cells, most) = (self.cell_count(), self.blocks_max());
        if cells > CELLS_MAX {
            return wrong(format!(
                "these are {cells} cells, and {CELLS_MAX} are the most: remove values of the grid"
            ));
        }
        if !(1..=REPEATS_MAX).contains(&most) {
            return wrong(format!("repeats = {most} can't be: give 1 to {REPEATS_MAX}"));
        }
        Ok(())
    }

    fn check_numbers(&self) -> Result<(), Error> {
        if self.users.is_empty() || self.users.contains(&0) {
            return wrong("users = [] loads nothing: give numbers from 1, such as [1, 8, 64]");
        }
        if !(0.5..=86_400.0).contains(&self.seconds) || !(0.0..=86_400.0).contains(&self.warmup) {
            return wrong("seconds must be 0.5 to 86400, and warmup 0 to 86400");
        }
        let most = self.blocks_max();
        if matches!(self.repeats, Repeats::Until { .. }) && !(2..=most).contains(&self.repeats_least) {
            return wrong(format!(
                "repeats_least = {} can't be: an interval needs 2 starts at least, and repeats_most is {most}",
                self.repeats_least
            ));
        }
        if !(0.1..=100.0).contains(&self.matters_percent) {
            return wrong("matters_percent must be 0.1 to 100");
        }
        if self.servers.is_empty() {
            return wrong("servers = [] tests nothing: name one, or omit the key for the server on the PATH");
        }
        let is_off = |value: Option<f64>, range: std::ops::RangeInclusive<f64>| {
            value.is_some_and(|value| !range.contains(&value))
        };
        if is_off(self.stop.hours, 0.01..=100_000.0) || is_off(self.stop.errors_percent, 0.0..=100.0) {
            return wrong("stop: hours must be 0.01 to 100000, and errors_percent 0 to 100");
        }
        Ok(())
    }

    fn check_before(&self) -> Result<(), Error> {
        let is_whole = |before: &&Before| {
            !before.head.is_empty()
                && before.rows.iter().all(|row| row.len() == before.head.len())
                && before.words.iter().all(|column| *column < before.head.len())
        };
        match self.before.iter().find(|before| !is_whole(before)) {
            Some(before) => wrong(format!(
                "[[before]] {:?}: each of its rows needs a text for each column of its head, and `words` names only these columns",
                before.source
            )),
            None => Ok(()),
        }
    }

    fn check_measures(&self) -> Result<(), Error> {
        let names = std::iter::once(&self.metric).chain(&self.show).chain(&self.over_time);
        for name in names {
            if find_measure(name).is_none() {
                let all = measure_names();
                return wrong(format!("{name:?} is no measure: {}", hint(name, &all, "measures")));
            }
        }
        Ok(())
    }

    fn check_times(&self, part: &Part) -> Result<(), Error> {
        let measured = self.seconds * self.users.len() as f64;
        let late = |at: &&At| !(0.0..measured).contains(&at.after);
        if let Some(at) = part.at.iter().find(|at| !at.data_set.is_empty() && !at.restart) {
            return wrong(format!(
                "{:?}: at … after = {}: parameters of data nodes count after a restart: give restart = true, too",
                part.name, at.after
            ));
        }
        if let Some(at) = part.at.iter().find(|at| at.set.is_empty() != at.restart) {
            return wrong(format!(
                "{:?}: at … after = {} changes nothing, or two things: give set, or restart = true",
                part.name, at.after
            ));
        }
        match part.at.iter().find(late) {
            Some(at) => wrong(format!(
                "{:?}: at … after = {} is beyond the {measured} s that a start measures",
                part.name, at.after
            )),
            None => Ok(()),
        }
    }

    fn check_cells(&self) -> Result<(), Error> {
        let cells = self.cells();
        let names: Vec<&str> = cells.iter().map(|cell| cell.variant.as_str()).collect();
        let check_variant = |key: &str, name: &String| {
            if names.contains(&name.as_str()) {
                return Ok(());
            }
            let near = nearest(name, &names).map_or(String::new(), |near| format!(", such as {near:?}"));
            wrong(format!("{key} = {name:?} is no variant of this study: name one{near}"))
        };
        check_variant("baseline", &self.baseline)?;
        self.steps.iter().try_for_each(|step| check_variant("steps", step))?;
        self.interactions.iter().flatten().try_for_each(|name| check_variant("interactions", name))?;
        let spreads = cells.iter().any(|cell| cell.setup.endpoints > 1);
        for cell in &cells {
            check_variant("against", &cell.against)?;
            self.check_cluster(cell)?;
            let is_watched =
                cell.setup.pfs.is_some() || !cell.setup.at.is_empty() || self.session_sweep.is_some();
            if spreads && (is_watched || self.cold || !self.over_time.is_empty()) {
                return wrong(format!(
                    "{}: a study with several endpoints watches no server: remove pfs, at, over_time, cold and [inside]",
                    cell.name()
                ));
            }
        }
        Ok(())
    }

    /// Refuses what only a single server can have.
    fn check_cluster(&self, cell: &Cell) -> Result<(), Error> {
        let cluster = cell.setup.cluster.as_ref();
        let has_data_nodes = cluster.is_some_and(|cluster| cluster.kind == Some(ClusterOf::Ndb));
        if let Some(at) = cell.setup.at.iter().find(|at| !at.data_set.is_empty() && !has_data_nodes) {
            return wrong(format!(
                "{}: at … after = {}: data_set is of the data nodes of ndb: give cluster = {{ kind = \"ndb\" }}, or remove it",
                cell.name(),
                at.after
            ));
        }
        let Some(cluster) = cluster else { return Ok(()) };
        cluster.check()?;
        if cluster.kind == Some(ClusterOf::Ndb) && cell.server.is_empty() {
            return wrong(format!(
                "{}: kind = \"ndb\" needs a build with data nodes: servers = [\"mysql-cluster\"]",
                cell.name()
            ));
        }
        let Setup { cpus, memory, preload, pfs, endpoints, .. } = &cell.setup;
        let of_one =
            cpus.is_some() || memory.is_some() || preload.is_some() || pfs.is_some() || *endpoints > 1;
        if of_one || self.cold || self.data_dir.is_some() || self.session_sweep.is_some() {
            return wrong(format!(
                "{}: cpus, memory, preload, pfs, endpoints, cold, data_dir and [inside] are of single servers: remove them, or cluster",
                cell.name()
            ));
        }
        Ok(())
    }

    /// Returns a bound on the time of measuring, in seconds, without starts, loading and restoring.
    pub fn measured_s_max(&self) -> f64 {
        let starts = self.cells().len() as f64 * f64::from(self.blocks_max()) + self.pair().len() as f64;
        starts * self.measured_s_of_start()
    }

    /// Returns the same bound of one start. How long a sweep within a start takes is not known before.
    pub fn measured_s_of_start(&self) -> f64 {
        match &self.session_sweep {
            Some(_) => 0.0,
            None if self.design().is_in_turns() => {
                let (warm, measured) = self.duet_rounds();
                let window_s = (DUET_WINDOW + DUET_CUT).as_secs_f64();
                self.users.len() as f64 * f64::from(warm + measured) * window_s
            }
            None => self.users.len() as f64 * (self.seconds + self.warmup),
        }
    }

    /// Returns the highest number of blocks that it may take.
    pub fn blocks_max(&self) -> u32 {
        match self.repeats {
            Repeats::Times(times) => times,
            Repeats::Until { .. } => self.repeats_most,
        }
    }

    /// Returns every start that it may take.
    pub fn all_starts(&self) -> Vec<Start> {
        let blocks = (0..self.blocks_max()).flat_map(|block| self.block(block));
        self.pair().into_iter().chain(blocks).collect()
    }
}

fn check_names(what: &str, parts: &[Part]) -> Result<(), Error> {
    for (at, part) in parts.iter().enumerate() {
        if part.name.is_empty() || parts[..at].iter().any(|before| before.name == part.name) {
            return wrong(format!(
                "two [[{what}]] are named {:?}, or one has no name: each needs a name of its own",
                part.name
            ));
        }
    }
    Ok(())
}
