//! Which design a study has, and which of its starts are carried out together.

use crate::cells::{Cell, Start};
use crate::design::{DUET_WINDOW, Design};
use crate::setup::Setup;
use crate::spec::Spec;

const DUET_ROUNDS_MIN: u32 = 2;
/// Servers that may stand ready at one time.
const DUET_SERVERS_MAX: usize = 12;
/// What windows of seconds tell without a recording.
const MEASURES: [&str; 7] = [
    "transactions_per_s",
    "queries_per_s",
    "latency_mean_ms",
    "latency_p99_ms",
    "errors_percent",
    "server_cpus",
    "server_cpu_us_per_transaction",
];

impl Spec {
    /// The design that the file asks for; else the one that answers soonest.
    pub fn design(&self) -> Design {
        // What limits a sweep, and how many threads run at its peak, only recordings tell.
        let records = self.trace || self.users.len() > 1 || self.suggest.is_some();
        match self.asked_design {
            Some(design) => design,
            None if records || self.obstacle_to(Design::Duet).is_some() => Design::Blocks,
            None => Design::Duet,
        }
    }

    /// Where cells take turns, at each number of users: rounds that warm up, and rounds that are measured.
    pub fn duet_rounds(&self) -> (u32, u32) {
        let rounds = |seconds: f64| (seconds / DUET_WINDOW.as_secs_f64()).ceil() as u32;
        (rounds(self.warmup), rounds(self.seconds).max(DUET_ROUNDS_MIN))
    }

    /// Why its cells can't be carried out so; `None` where they can.
    pub(crate) fn obstacle_to(&self, design: Design) -> Option<String> {
        match design {
            Design::Blocks => None,
            Design::Duet => self.obstacle_to_turns().or_else(|| self.too_many_servers()),
            Design::SwitchBack => self.obstacle_to_turns().or_else(|| self.not_switched()),
        }
    }

    /// What of its cells one server can't be switched between. Under one condition they may differ in settings and in what is sent.
    fn not_switched(&self) -> Option<String> {
        let cells = self.cells();
        let of_start = |cell: &Cell| Setup {
            set: Vec::new(),
            where_known: Vec::new(),
            workload: String::new(),
            options: Vec::new(),
            ..cell.setup.clone()
        };
        let differs = cells.iter().find_map(|cell| {
            let first = cells.iter().find(|other| other.condition == cell.condition)?;
            (first.server != cell.server || of_start(first) != of_start(cell)).then_some((first, cell))
        });
        let (first, cell) = differs?;
        Some(format!(
            "{} and {} differ in more than settings and what is sent, so they need a server each",
            first.name(),
            cell.name()
        ))
    }

    fn obstacle_to_turns(&self) -> Option<String> {
        let needs = |what: &str| Some(format!("{what} needs starts one after the other"));
        let of_parts = || self.conditions.iter().chain(&self.variants);
        if self.app.is_some() {
            return needs("app");
        }
        if self.session_sweep.is_some() {
            return needs("[inside]");
        }
        if self.cold {
            return needs("cold = true");
        }
        if !self.over_time.is_empty() || of_parts().any(|part| !part.at.is_empty()) {
            return needs("what changes over time");
        }
        if self.stacks
            || self.trace_sql
            || !self.instances.is_empty()
            || !self.add_ons.is_empty()
            || self.suggest.is_some()
        {
            return needs("a recording (stacks, trace_sql, instances, add_ons, [suggest])");
        }
        if self.cluster.is_some() || of_parts().any(|part| part.cluster.is_some()) {
            return needs("a cluster");
        }
        if of_parts().any(|part| part.endpoints.unwrap_or(1) > 1) {
            return needs("a load over several endpoints");
        }
        let named = std::iter::once(&self.metric).chain(&self.show);
        if let Some(name) = named.into_iter().find(|name| !MEASURES.contains(&name.as_str())) {
            return Some(format!("{name:?} needs a recording, and these do not: {}", MEASURES.join(", ")));
        }
        None
    }

    fn too_many_servers(&self) -> Option<String> {
        let most = self.conditions.len().max(1);
        let each = self.cell_count().div_ceil(most);
        (each > DUET_SERVERS_MAX).then(|| {
            format!("{each} servers would have to stand ready at the same time, and {DUET_SERVERS_MAX} may")
        })
    }

    /// Of the starts that are still to be done, those that are carried out next, together.
    pub fn together(&self, todo: &[Start], cells: &[Cell]) -> Vec<Start> {
        let Some(first) = todo.first() else { return Vec::new() };
        if !self.design().is_in_turns() {
            return vec![*first];
        }
        // Cells of different conditions are not compared with each other.
        let condition = |start: &Start| cells.get(start.cell).map(|cell| cell.condition.as_str());
        let belongs = |start: &&Start| {
            (start.pair, condition(start)) == (first.pair, condition(first))
                && (start.pair || start.block == first.block)
        };
        todo.iter().filter(belongs).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STUDY: &str = "title = 't'\nquestion = 'q'\nbaseline = 'a'\nrepeats = 2\nusers = [8]\n\
                         [[condition]]\nname = 'few'\n[[condition]]\nname = 'many'\n[[variant]]\nname = 'a'\n[[variant]]\nname = 'b'\n";

    fn spec(more: &str) -> Result<Spec, String> {
        Spec::parse(&format!("{more}\n{STUDY}"), false).map_err(|error| error.to_string())
    }

    #[test]
    fn cells_take_turns_where_nothing_needs_a_recording() {
        assert_eq!(
            spec("").unwrap().design(),
            Design::Blocks,
            "time is accounted for unless it is turned off"
        );
        assert_eq!(spec("trace = false").unwrap().design(), Design::Duet);
        assert_eq!(spec("trace = false\nshow = ['log_fsyncs_per_s']").unwrap().design(), Design::Blocks);
        assert_eq!(spec("design = 'duet'").unwrap().design(), Design::Duet);
        assert_eq!(spec("trace = false\ndesign = 'blocks'").unwrap().design(), Design::Blocks);
        for (text, why) in [
            ("design = 'duet'\ncold = true", "cold"),
            ("design = 'duet'\nshow = ['log_fsyncs_per_s']", "log_fsyncs_per_s"),
            ("design = 'duett'", "duet"),
        ] {
            let said = spec(text).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
        let many: Vec<String> = (0..7).map(|value| value.to_string()).collect();
        let grid = format!("{STUDY}[grid]\nk = [{}]\n", many.join(", "))
            .replace("baseline = 'a'", "baseline = 'a, k=0'");
        let said = Spec::parse(&format!("design = 'duet'\n{grid}"), false).unwrap_err().to_string();
        assert!(said.contains("14 servers"), "{said}");
    }

    #[test]
    fn one_server_is_switched_only_between_settings_and_loads() {
        let parse = |variant: &str| {
            let text = format!("design = 'switch-back'\n{STUDY}")
                .replace("name = 'b'\n", &format!("name = 'b'\n{variant}\n"));
            Spec::parse(&text, false).map_err(|error| error.to_string())
        };
        assert_eq!(parse("set = { innodb_io_capacity = 300 }").unwrap().design(), Design::SwitchBack);
        assert_eq!(parse("options = { rand-type = 'uniform' }").unwrap().design(), Design::SwitchBack);
        for other in ["rows = 7", "memory = '1GiB'", "server = 'mysql-9.7'"] {
            let said = parse(other).unwrap_err();
            assert!(said.contains("switch-back") && said.contains("need a server each"), "{said}");
        }
    }

    #[test]
    fn the_cells_of_a_block_under_one_condition_go_together() {
        let spec = spec("design = 'duet'").unwrap();
        let cells = spec.cells();
        let mut todo: Vec<Start> = spec.pair();
        todo.extend((0..2).flat_map(|block| spec.block(block)));
        let mut sizes = Vec::new();
        while !todo.is_empty() {
            let next = spec.together(&todo, &cells);
            let conditions: std::collections::BTreeSet<&str> =
                next.iter().map(|start| cells[start.cell].condition.as_str()).collect();
            assert_eq!(conditions.len(), 1);
            todo.retain(|start| !next.contains(start));
            sizes.push(next.len());
        }
        assert_eq!(sizes, [2, 2, 2, 2, 2], "the pair, then two conditions in each of two blocks");
    }
}
