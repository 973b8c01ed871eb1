//! What is compared, and in which order it is started.

use serde::{Deserialize, Serialize};
use whyso_random::SplitMix64;

use crate::setup::{Part, Setup};
use crate::spec::{Grid, Repeats, Spec};

/// One server with one variant under one condition, tuned in one way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// As the file names it; "" is the one on the PATH.
    pub server: String,
    /// Empty where the study has none.
    pub condition: String,
    /// The variant's name, and what the grid adds to it.
    pub variant: String,
    /// One of those of which the best counts; empty where the study has none.
    pub tuning: String,
    /// Variant that it is compared with.
    pub against: String,
    /// Left out where its server is not available.
    pub where_at_hand: bool,
    pub setup: Setup,
}

impl Cell {
    /// Returns its name, such as "mysql-sid, 8 tables, no flush, spin=6".
    pub fn name(&self) -> String {
        let parts = [&self.server, &self.condition, &self.variant, &self.tuning];
        let parts: Vec<&str> =
            parts.into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
        parts.join(", ")
    }

    /// Whether both differ in their tuning at most.
    pub(crate) fn is_comparable_with(&self, other: &Cell) -> bool {
        (&self.server, &self.condition, &self.variant) == (&other.server, &other.condition, &other.variant)
    }
}

/// One fresh start of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Start {
    /// From 0. Of the pair: the first one or the second.
    pub block: u32,
    /// Position among [`Spec::cells`].
    pub cell: usize,
    /// One of the two starts of the baseline that a study begins with, to see whether the machine differs from itself.
    #[serde(default)]
    pub pair: bool,
}

impl Start {
    /// The part of the study that it belongs to, which one machine carries out as a whole: 0 is the pair, and others are a block each.
    pub fn unit(&self) -> u32 {
        if self.pair { 0 } else { self.block + 1 }
    }
}

impl Spec {
    /// Returns every server with every variant under every condition, in each tuning.
    pub fn cells(&self) -> Vec<Cell> {
        let alone = |name: &str| vec![Part { name: name.to_string(), ..Part::default() }];
        let or = |parts: &[Part], name| if parts.is_empty() { alone(name) } else { parts.to_vec() };
        let (conditions, variants) = (or(&self.conditions, ""), or(&self.variants, "default"));
        let (added, tunings) = (combinations(&self.grid), combinations(&self.best_of));
        let mut cells = Vec::new();
        for (at, server) in self.servers.iter().enumerate() {
            for condition in &conditions {
                for variant in &variants {
                    // A variant with its own server is once in the study.
                    if variant.server.is_some() && at > 0 {
                        continue;
                    }
                    for added in &added {
                        for tuning in &tunings {
                            cells.push(self.cell(server, condition, variant, added, tuning));
                        }
                    }
                }
            }
        }
        cells
    }

    /// How many cells there are, without building them: a grid of few lines may have more than memory holds.
    pub(crate) fn cell_count(&self) -> usize {
        let combinations =
            |grid: &Grid| grid.iter().fold(1_usize, |count, (_, values)| count.saturating_mul(values.len()));
        let own = self.variants.iter().filter(|variant| variant.server.is_some()).count();
        let others = if self.variants.is_empty() { 1 } else { self.variants.len() - own };
        let on_servers = others.saturating_mul(self.servers.len()) + own * self.servers.len().min(1);
        on_servers
            .saturating_mul(self.conditions.len().max(1))
            .saturating_mul(combinations(&self.grid))
            .saturating_mul(combinations(&self.best_of))
    }

    fn cell(
        &self,
        server: &str,
        condition: &Part,
        variant: &Part,
        added: &[(String, String)],
        tuning: &[(String, String)],
    ) -> Cell {
        let text = |values: &crate::scalar::Values| -> Vec<(String, String)> {
            values.iter().map(|(name, value)| (name.clone(), value.to_string())).collect()
        };
        let base = Setup {
            set: text(&self.set),
            workload: self.workload.clone(),
            options: text(&self.options),
            tables: self.tables,
            rows: self.rows,
            engine: self.engine.clone(),
            endpoints: 1,
            cluster: self.cluster.clone(),
            ..Setup::default()
        };
        let mut setup = base.with(condition).with(variant);
        for knobs in [added, tuning] {
            let knobs = knobs.iter().map(|(name, value)| (name.as_str(), value.clone()));
            setup.set(knobs, variant.where_known);
        }
        let words = |knobs: &[(String, String)]| -> Vec<String> {
            knobs.iter().map(|(name, value)| format!("{name}={value}")).collect()
        };
        let named = |name: &String| {
            std::iter::once(name.clone()).chain(words(added)).collect::<Vec<String>>().join(", ")
        };
        Cell {
            server: variant.server.clone().unwrap_or_else(|| server.to_string()),
            condition: condition.name.clone(),
            variant: named(&variant.name),
            tuning: words(tuning).join(", "),
            against: variant.against.clone().unwrap_or_else(|| self.baseline.clone()),
            where_at_hand: variant.where_at_hand,
            setup,
        }
    }

    /// Returns the two starts of the baseline with which the study begins.
    pub fn pair(&self) -> Vec<Start> {
        let baseline = self.cells().iter().position(|cell| cell.variant == self.baseline);
        match baseline {
            Some(cell) if self.pair => (0..2).map(|block| Start { block, cell, pair: true }).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the starts of one block: every cell once, in an order of its own that the seed decides.
    pub fn block(&self, block: u32) -> Vec<Start> {
        let mut random =
            SplitMix64::new(self.seed ^ (u64::from(block) + 1).wrapping_mul(0x2545_f491_4f6c_dd1d));
        let mut order: Vec<usize> = (0..self.cell_count()).collect();
        random.shuffle(&mut order);
        order.into_iter().map(|cell| Start { block, cell, pair: false }).collect()
    }

    /// Returns the lowest number of blocks that it takes.
    pub fn blocks_least(&self) -> u32 {
        match self.repeats {
            Repeats::Times(times) => times,
            Repeats::Until { .. } => self.repeats_least,
        }
    }
}

/// Every combination of a grid's values; one that adds nothing where there is none.
fn combinations(grid: &Grid) -> Vec<Vec<(String, String)>> {
    let mut all = vec![Vec::new()];
    for (knob, values) in grid {
        let mut longer: Vec<Vec<(String, String)>> = Vec::with_capacity(all.len() * values.len());
        for before in &all {
            for value in values {
                let mut combination = before.clone();
                combination.push((knob.clone(), value.to_string()));
                longer.push(combination);
            }
        }
        all = longer;
    }
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn spec(servers: usize, variants: usize, values: i64, repeats: u32, seed: u64) -> Spec {
        let variants: String =
            (0..variants).map(|at| format!("[[variant]]\nname = \"v{at}\"\nset = {{ k = 0 }}\n")).collect();
        let servers: Vec<String> = (0..servers).map(|at| format!("s{at}")).collect();
        let values: Vec<i64> = (0..values).collect();
        let text = format!(
            "title = 't'\nquestion = 'q'\nservers = {servers:?}\nusers = [1]\nrepeats = {repeats}\nseed = {seed}\nbaseline = 'v0, k=0'\n{variants}[grid]\nk = {values:?}\n"
        );
        Spec::parse(&text, false).unwrap()
    }

    #[test]
    fn the_grid_is_on_top_of_each_variant() {
        let cells = spec(1, 2, 2, 1, 0).cells();
        let names: Vec<&str> = cells.iter().map(|cell| cell.variant.as_str()).collect();
        assert_eq!(names, ["v0, k=0", "v0, k=1", "v1, k=0", "v1, k=1"]);
        assert_eq!(cells[3].setup.set, [("k".to_string(), "1".to_string())]);
        assert_eq!(cells[3].name(), "s0, v1, k=1");
    }

    #[test]
    fn each_variant_is_under_each_condition_in_each_tuning() {
        let text = "title = 't'\nquestion = 'q'\nservers = ['x', 'y']\nbaseline = 'a'\nset = { k = 1 }\n\
                    [[condition]]\nname = 'few'\ntables = 1\n[[condition]]\nname = 'many'\ntables = 8\n\
                    [[variant]]\nname = 'a'\n[[variant]]\nname = 'b'\nset = { k = 2 }\nagainst = 'a'\n\
                    [[variant]]\nname = 'c'\nserver = 'z'\n[best_of]\nspin = [6, 96]\n";
        let cells = Spec::parse(text, false).unwrap().cells();
        // Two servers × two conditions × two variants, and one of another server's under two conditions; each in two tunings.
        assert_eq!(cells.len(), (2 * 2 * 2 + 2) * 2);
        assert_eq!(Spec::parse(text, false).unwrap().cell_count(), cells.len());
        let cell = cells.iter().find(|cell| cell.name() == "y, many, b, spin=96").unwrap();
        let own = |name: &str, value: &str| (name.to_string(), value.to_string());
        assert_eq!((cell.setup.tables, &cell.setup.set), (8, &vec![own("k", "2"), own("spin", "96")]));
        assert_eq!(cells.iter().filter(|cell| cell.variant == "c" && cell.server == "z").count(), 4);
    }

    #[test]
    fn it_begins_with_two_starts_of_the_baseline() {
        let spec = spec(2, 2, 2, 3, 1);
        let pair = spec.pair();
        assert!(pair.len() == 2 && pair.iter().all(|start| start.pair && start.cell == 0));
        let without = Spec { pair: false, ..spec.clone() };
        assert!(without.pair().is_empty());
        assert_eq!(spec.all_starts().len(), 2 + 3 * 8);
    }

    proptest! {
        #[test]
        fn every_cell_is_in_every_block_once_and_only_the_seed_decides_the_order(
            servers in 1usize..3, variants in 1usize..4, values in 1i64..4, repeats in 1u32..7, seed in 0u64..1000,
        ) {
            let spec = spec(servers, variants, values, repeats, seed);
            let cells = spec.cells();
            let blocks: Vec<Vec<Start>> = (0..repeats).map(|block| spec.block(block)).collect();
            prop_assert_eq!(cells.len(), servers * variants * values as usize);
            prop_assert_eq!(blocks.len(), repeats as usize);
            for (at, block) in blocks.iter().enumerate() {
                let cells_of_block: BTreeSet<usize> = block.iter().map(|start| start.cell).collect();
                prop_assert_eq!(cells_of_block.len(), cells.len());
                prop_assert!(block.len() == cells.len() && block.iter().all(|start| start.block as usize == at));
            }
            prop_assert_eq!((0..repeats).map(|block| spec.block(block)).collect::<Vec<_>>(), blocks);
        }

        #[test]
        fn each_place_in_a_block_is_as_likely_for_each_cell(seed in 0u64..50) {
            let spec = spec(1, 4, 1, 400, seed);
            let blocks: Vec<Vec<Start>> = (0..400).map(|block| spec.block(block)).collect();
            let first = (0..4).map(|cell| blocks.iter().filter(|block| block[0].cell == cell).count());
            for count in first {
                // 100 expected, with a standard deviation of 8.7.
                prop_assert!((60..=140).contains(&count), "{}", count);
            }
        }
    }
}
