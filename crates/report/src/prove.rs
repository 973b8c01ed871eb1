//! What experiments showed of a recording's suspects, and what they would be.

use serde::Serialize;
use serde_json::{Value, json};
use ts_rs::TS;
use whyso_explain::model::Gain;
use whyso_remedy::{Proof, ProofVerdict, Proofs, Proposal, SlowedPoint};
use whyso_words::terminal::escape;
use whyso_words::{number, percent};

/// Cells of the chart, from ×0.5 to ×8 by doubling.
const CHART_CELLS: usize = 32;
const CHART_FROM: f64 = 0.5;
const CHART_TO: f64 = 8.0;

/// A table, a chart of predicted against measured gains, and what remains.
pub fn prove_text(proofs: &Proofs) -> String {
    if proofs.proofs.is_empty() {
        return format!("{}: nothing is suspected, so there is nothing to test.\n", escape(&proofs.run));
    }
    let mut text = format!("{} at {}\n\n", escape(&proofs.run), whyso_words::users(proofs.users));
    let chart = format!("×{CHART_FROM}{:^width$}×{CHART_TO}", "×2", width = CHART_CELLS - 6);
    text.push_str(&format!(
        "  {:13} {:20} {:>15} {:>22}  {chart}\n",
        "verdict", "cause", "predicted", "measured"
    ));
    for proof in &proofs.proofs {
        let measured = proof.measured_gain.map_or("—".to_string(), |gain| {
            format!("×{} ({} to {})", number(gain.value), number(gain.low), number(gain.high))
        });
        text.push_str(&format!(
            "{} {:13} {:20} {:>15} {measured:>22}  {}\n",
            mark(proof.verdict),
            proof.verdict.name(),
            format!("{} {}", proof.cause.name(), percent(proof.share)),
            predicted(proof.predicted_gain),
            bar(proof)
        ));
    }
    text.push('\n');
    for proof in &proofs.proofs {
        let about = match proof.why.as_str() {
            "" => format!("{}; {}", proof.words, proof.also),
            why => why.to_string(),
        };
        text.push_str(&format!("  {:20} {}\n", proof.cause.name(), escape(&about)));
        for point in &proof.slowed {
            let ratio = point.ratio;
            text.push_str(&format!(
                "  {:20} at {} % speed: ×{} ({} to {})\n",
                "",
                point.speed_percent,
                number(ratio.value),
                number(ratio.low),
                number(ratio.high)
            ));
        }
    }
    if proofs.proofs.iter().any(|proof| !proof.undone) {
        text.push_str(
            "\n! A setting could not be put back: whyso puts it back when it next reaches the server.\n",
        );
    }
    if let Some(after) = &proofs.after {
        text.push_str(&format!(
            "\n  with {}: {} tps. {}{}   run: {}\n",
            escape(&after.change),
            number(after.transactions_per_s),
            after.limit.as_ref().map_or(String::new(), |limit| escape(&limit.text)),
            if after.cause.is_empty() { String::new() } else { format!(" Next suspect: {}.", after.cause) },
            escape(&after.run)
        ));
    }
    text
}

fn mark(verdict: ProofVerdict) -> char {
    match verdict {
        ProofVerdict::Confirmed => '✓',
        ProofVerdict::Refuted => '✗',
        ProofVerdict::TooSmall => '≈',
        ProofVerdict::NotTestable => '·',
    }
}

fn predicted(gain: Option<Gain>) -> String {
    gain.map_or("—".to_string(), |gain| format!("×{} to ×{}", number(gain.low), number(gain.high)))
}

/// Predicted as a line, measured as a block on it.
fn bar(proof: &Proof) -> String {
    let cell = |gain: f64| {
        let place = (gain.max(1e-9) / CHART_FROM).ln() / (CHART_TO / CHART_FROM).ln();
        (place.clamp(0.0, 1.0) * (CHART_CELLS - 1) as f64).round() as usize
    };
    let mut cells = [' '; CHART_CELLS];
    cells[cell(1.0)] = '┊';
    if let Some(gain) = proof.predicted_gain {
        cells[cell(gain.low)..=cell(gain.high)].fill('─');
    }
    if let Some(gain) = proof.measured_gain {
        cells[cell(gain.low)..=cell(gain.high)].fill('█');
    }
    cells.iter().collect::<String>().trim_end().to_string()
}

/// A suspect that was tested, as the page shows it. Gains are multiples of the throughput.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
pub(crate) struct ProofHead {
    cause: &'static str,
    verdict: &'static str,
    /// What was done.
    words: String,
    /// What else that changed.
    also: String,
    /// Why it was not tested; else empty.
    why: String,
    /// Lowest and highest.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    predicted: Option<[f64; 2]>,
    /// Value, and the ends of its 95 % interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    measured: Option<[f64; 3]>,
    /// Per cent of the server's speed, and throughput there with the ends of its interval: where the measured gain is extrapolated.
    slowed: Vec<[f64; 4]>,
}

fn slowed_point(point: &SlowedPoint) -> [f64; 4] {
    let SlowedPoint { speed_percent, ratio } = point;
    [f64::from(*speed_percent), ratio.value, ratio.low, ratio.high]
}

pub(crate) fn proof_heads(proofs: &Proofs) -> Vec<ProofHead> {
    let head = |proof: &Proof| ProofHead {
        cause: proof.cause.name(),
        verdict: proof.verdict.name(),
        words: proof.words.clone(),
        also: proof.also.clone(),
        why: proof.why.clone(),
        predicted: proof.predicted_gain.map(|gain| [gain.low, gain.high]),
        measured: proof.measured_gain.map(|gain| [gain.value, gain.low, gain.high]),
        slowed: proof.slowed.iter().map(slowed_point).collect(),
    };
    proofs.proofs.iter().map(head).collect()
}

/// The proofs as one JSON object.
pub fn prove_json(proofs: &Proofs) -> Value {
    json!({
        "run": proofs.run,
        "users": proofs.users,
        "smallest_gain": proofs.smallest_gain,
        "proofs": proofs.proofs,
        "limit_after": proofs.after.as_ref().and_then(|after| after.limit.as_ref()).map(|limit| limit.id),
        "after": proofs.after,
        "interrupted": proofs.interrupted,
    })
}

/// What would be done, line by line.
pub fn plan_text(proposals: &[Proposal]) -> String {
    let mut text = String::new();
    for proposal in proposals {
        text.push_str(&format!(
            "{} ({} of the response time)\n",
            proposal.cause.name(),
            percent(proposal.share)
        ));
        if proposal.why.is_empty() {
            text.push_str(&format!("  test      {}: {}\n", proposal.words, escape(&proposal.change)));
            text.push_str(&format!("  costs     {}\n", proposal.costs));
            text.push_str(&format!("  predicted {}\n", predicted(proposal.predicted_gain)));
        } else {
            text.push_str(&format!("  not testable: {}\n", escape(&proposal.why)));
        }
    }
    if proposals.is_empty() {
        text.push_str("nothing is suspected, so there is nothing to test\n");
    }
    text
}

/// The same as one JSON object.
pub fn plan_json(proposals: &[Proposal]) -> Value {
    json!({ "proposals": proposals })
}
