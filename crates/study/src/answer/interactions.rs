//! Two changes at once, against what each does by itself.

use serde::Serialize;
use whyso_inference::VariantComparison;

/// Whether two variants together do more or less than the product of what each does by itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Interaction {
    pub users: u32,
    /// Server and condition; empty where the study has one of each.
    pub place: String,
    /// One variant, another, and both at once.
    pub names: [String; 3],
    /// What was seen against that product: a ratio of 1 is no interaction.
    pub compared: Option<VariantComparison>,
}

/// (expected, seen) of each block that has all four: the baseline, one, the other, and both. Expected is one × other ÷ baseline.
pub(super) fn expected_and_seen([base, one, other, both]: [&[(u32, f64)]; 4]) -> Vec<(f64, f64)> {
    let of_block = |values: &[(u32, f64)], block: u32| {
        values.iter().find(|(other, _)| *other == block).map(|(_, value)| *value).filter(|value| *value > 0.0)
    };
    let pair = |(block, seen): &(u32, f64)| {
        let expected = of_block(one, *block)? * of_block(other, *block)? / of_block(base, *block)?;
        Some((expected, *seen))
    };
    both.iter().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use crate::answer::tests::finished_starts;
    use crate::{Spec, answer};

    const STUDY: &str = "title = 't'\nquestion = 'q'\nusers = [8]\nrepeats = 5\nbaseline = 'neither'\ninteractions = [['a', 'b', 'both']]\n\
                         [[variant]]\nname = 'neither'\n[[variant]]\nname = 'a'\n[[variant]]\nname = 'b'\n[[variant]]\nname = 'both'\n";

    /// The interaction where both at once have this throughput, a costs a tenth and b a fifth.
    fn ratio_of(both: f64) -> f64 {
        let spec = Spec::parse(STUDY, false).unwrap();
        let starts: Vec<_> = spec.all_starts();
        let of_cell = [1000.0, 900.0, 800.0, both];
        let found = finished_starts(&spec, &starts, |start, _| {
            Some(of_cell[start.cell] * (1.0 + 0.001 * f64::from(start.block)))
        });
        let answered = answer(&spec, &found, &[]);
        assert_eq!(answered.interactions.len(), 1);
        answered.interactions[0].compared.unwrap().effect.ratio
    }

    #[test]
    fn what_multiplies_does_not_interact() {
        assert!((ratio_of(720.0) - 1.0).abs() < 1e-9);
        assert!((ratio_of(800.0) - 800.0 / 720.0).abs() < 1e-9, "together they cost less");
    }

    #[test]
    fn only_variants_of_the_study_interact() {
        let text = STUDY.replace("'a', 'b', 'both'", "'a', 'b', 'bth'");
        let said = Spec::parse(&text, false).unwrap_err().to_string();
        assert!(said.contains("interactions") && said.contains("both"), "{said}");
    }
}
