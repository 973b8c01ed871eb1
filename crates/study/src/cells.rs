//! What is compared, and in which order it is started.

use serde::{Deserialize, Serialize};

use crate::spec::{Scalar, Spec, Variant};

/// One server with one variant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// As the file names it; "" is the one on the PATH.
    pub server: String,
    /// The variant's name, and what the grid adds to it.
    pub variant: String,
    /// Knobs and values.
    pub set: Vec<(String, String)>,
    pub cpus: Option<String>,
    /// A preset of the Performance Schema.
    pub pfs: Option<String>,
    pub pfs_timing: Option<String>,
}

impl Cell {
    /// Such as "mysql-sid, no flush".
    pub fn name(&self) -> String {
        if self.server.is_empty() {
            self.variant.clone()
        } else {
            format!("{}, {}", self.server, self.variant)
        }
    }
}

/// One fresh start of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Start {
    /// From 0.
    pub block: u32,
    /// Position among [`Spec::cells`].
    pub cell: usize,
}

impl Spec {
    /// Every server with every variant.
    pub fn cells(&self) -> Vec<Cell> {
        let alone = [Variant { name: "default".to_string(), ..Variant::default() }];
        let variants = if self.variants.is_empty() { &alone[..] } else { &self.variants };
        let combinations = combinations(self);
        let mut cells = Vec::new();
        for server in &self.servers {
            for variant in variants {
                for added in &combinations {
                    cells.push(cell(server, variant, added));
                }
            }
        }
        cells
    }

    /// The starts of each block: every cell once, in an order of its own that the seed decides.
    pub fn blocks(&self) -> Vec<Vec<Start>> {
        let count = self.cells().len();
        (0..self.repeats)
            .map(|block| {
                let mut random =
                    Random(self.seed ^ (u64::from(block) + 1).wrapping_mul(0x2545_f491_4f6c_dd1d));
                let mut order: Vec<usize> = (0..count).collect();
                // R. A. Fisher and F. Yates' shuffle, as R. Durstenfeld wrote it (1964).
                for last in (1..count).rev() {
                    order.swap(last, random.below(last + 1));
                }
                order.into_iter().map(|cell| Start { block, cell }).collect()
            })
            .collect()
    }
}

fn cell(server: &str, variant: &Variant, added: &[(String, String)]) -> Cell {
    let mut set: Vec<(String, String)> =
        variant.set.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
    let mut name = variant.name.clone();
    for (knob, value) in added {
        set.retain(|(before, _)| before != knob);
        set.push((knob.clone(), value.clone()));
        name = format!("{name}, {knob}={value}");
    }
    Cell {
        server: server.to_string(),
        variant: name,
        set,
        cpus: variant.cpus.clone(),
        pfs: variant.pfs.clone(),
        pfs_timing: variant.pfs_timing.clone(),
    }
}

/// Every combination of the grid's values; one that adds nothing where there is no grid.
fn combinations(spec: &Spec) -> Vec<Vec<(String, String)>> {
    let mut all = vec![Vec::new()];
    for (knob, values) in &spec.grid {
        let with = |before: &Vec<(String, String)>, value: &Scalar| {
            let mut one = before.clone();
            one.push((knob.clone(), value.to_string()));
            one
        };
        all = all.iter().flat_map(|before| values.iter().map(move |value| with(before, value))).collect();
    }
    all
}

/// S. Vigna's SplitMix64: the same order for the same seed, on any machine.
struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(mixed ^ (mixed >> 31)) * count as u128) >> 64) as usize
    }
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
        assert_eq!(cells[3].set, [("k".to_string(), "1".to_string())]);
        assert_eq!(cells[3].name(), "s0, v1, k=1");
    }

    proptest! {
        #[test]
        fn every_cell_is_in_every_block_once_and_the_seed_alone_decides_the_order(
            servers in 1usize..3, variants in 1usize..4, values in 1i64..4, repeats in 1u32..7, seed in 0u64..1000,
        ) {
            let spec = spec(servers, variants, values, repeats, seed);
            let (cells, blocks) = (spec.cells(), spec.blocks());
            prop_assert_eq!(cells.len(), servers * variants * values as usize);
            prop_assert_eq!(blocks.len(), repeats as usize);
            for (at, block) in blocks.iter().enumerate() {
                let seen: BTreeSet<usize> = block.iter().map(|start| start.cell).collect();
                prop_assert_eq!(seen.len(), cells.len());
                prop_assert!(block.len() == cells.len() && block.iter().all(|start| start.block as usize == at));
            }
            prop_assert_eq!(spec.blocks(), blocks);
        }

        #[test]
        fn each_place_in_a_block_is_as_likely_for_each_cell(seed in 0u64..50) {
            let blocks = spec(1, 4, 1, 400, seed).blocks();
            let first = (0..4).map(|cell| blocks.iter().filter(|block| block[0].cell == cell).count());
            for count in first {
                // 100 expected, with a standard deviation of 8.7.
                prop_assert!((60..=140).contains(&count), "{}", count);
            }
        }
    }
}
