//! The budget of a request over all tiers.

use super::cause::BY_TURNS_MIN;
use super::model::{TierLine, TierPart, TierTime, UpstreamTime};
use crate::budget::Part;

/// Parts with a smaller share of a request's time are one line, "the rest".
const SHARE_MIN: f64 = 0.005;
/// A tier behind answers more requests than it was asked by this factor: others ask it, too.
const OTHERS_ASK: f64 = 1.1;
/// From this share of a tier's requests on, its threads work on several by turns.
pub(super) const INTERLEAVED_MIN: f64 = 0.01;
/// A file with a smaller share of the waits is not named in a line.
const FILE_SHARE_MIN: f64 = 0.5;

/// The lines of the request to a first tier.
pub(super) fn lines(tiers: &[TierTime], first: usize) -> Vec<TierLine> {
    let tier = &tiers[first];
    let whole_ms = tier.page_ms.unwrap_or(tier.mean_ms);
    let mut nested = BudgetLines { tiers, whole_ms, lines: Vec::new(), path: vec![first] };
    let line = |depth, text: String| TierLine { depth, tier: tier.name.clone(), text, ..TierLine::default() };
    let depth = u32::from(tier.page_ms.is_some());
    if let Some(page_ms) = tier.page_ms {
        nested.push(TierLine {
            ms: page_ms,
            is_divided: true,
            ..line(0, format!("what users of {} waited for", tier.name))
        });
    }
    nested.push(TierLine {
        ms: tier.mean_ms,
        is_divided: true,
        ..line(depth, format!("a request to {}", tier.name))
    });
    nested.tier(first, 1.0, depth + 1);
    let between_ms = whole_ms - tier.mean_ms;
    if !nested.is_small(between_ms) {
        let between = line(depth, format!("between the load and {}", tier.name));
        nested.push(TierLine { part: Some(Part::TransitOut), ms: between_ms, ..between });
    }
    nested.lines
}

/// The place of the line that takes most of the time, of those that nothing divides.
pub(super) fn longest(lines: &[TierLine]) -> Option<u32> {
    let leaves = lines.iter().enumerate().filter(|(_, line)| !line.is_divided && line.ms > 0.0);
    leaves.max_by(|(_, a), (_, b)| a.ms.total_cmp(&b.ms)).map(|(place, _)| place as u32)
}

struct BudgetLines<'a> {
    tiers: &'a [TierTime],
    /// Of a request to the first tier.
    whole_ms: f64,
    lines: Vec<TierLine>,
    /// The tiers that lead here: none is entered twice.
    path: Vec<usize>,
}

/// What a tier's time is divided into.
enum Piece<'a> {
    Own(&'a TierPart),
    Behind(&'a UpstreamTime),
}

impl Piece<'_> {
    fn ms(&self) -> f64 {
        match self {
            Piece::Own(part) => part.ms,
            Piece::Behind(upstream) => upstream.ms,
        }
    }
}

impl BudgetLines<'_> {
    fn push(&mut self, line: TierLine) {
        let share = if self.whole_ms > 0.0 { line.ms / self.whole_ms } else { 0.0 };
        self.lines.push(TierLine { share, ..line });
    }

    fn is_small(&self, ms: f64) -> bool {
        ms.abs() < SHARE_MIN * self.whole_ms
    }

    /// `scale`: requests to this tier for each one to the first. Returns what they take together, in ms.
    fn tier(&mut self, at: usize, scale: f64, depth: u32) -> f64 {
        let tier = &self.tiers[at];
        let mut pieces: Vec<Piece> =
            tier.parts.iter().map(Piece::Own).chain(tier.upstreams.iter().map(Piece::Behind)).collect();
        pieces.sort_by(|a, b| b.ms().total_cmp(&a.ms()));
        let mut rest_ms = tier.unaccounted_ms * scale;
        for piece in pieces {
            let ms = piece.ms() * scale;
            match piece {
                _ if self.is_small(ms) => rest_ms += ms,
                Piece::Own(part) => self.push(TierLine {
                    depth,
                    tier: tier.name.clone(),
                    part: Some(part.part),
                    text: part_text(part, tier),
                    ms,
                    ..TierLine::default()
                }),
                Piece::Behind(upstream) => self.upstream(at, upstream, scale, depth),
            }
        }
        if !self.is_small(rest_ms) {
            let text = "the rest".to_string();
            self.push(TierLine { depth, tier: tier.name.clone(), text, ms: rest_ms, ..TierLine::default() });
        }
        tier.mean_ms * scale
    }

    fn upstream(&mut self, asks: usize, upstream: &UpstreamTime, scale: f64, depth: u32) {
        let ms = upstream.ms * scale;
        let by_name = |name: &String| self.tiers.iter().position(|tier| tier.name == *name);
        let behind = upstream.tier.as_ref().and_then(by_name).filter(|at| !self.path.contains(at));
        let line = TierLine { depth, tier: self.tiers[asks].name.clone(), ms, ..TierLine::default() };
        let Some(at) = behind else {
            let text = format!("waiting for {}, which was not recorded", upstream.address);
            self.push(TierLine { text, is_unrecorded: true, ..line });
            return;
        };
        let tier = &self.tiers[at];
        let answered = tier.requests / self.tiers[self.path[0]].requests;
        let asked = upstream.asked * scale;
        // Where only this tier asks it, its own count is exact: a question may be answered by several requests.
        let of_it = if answered > asked * OTHERS_ASK { asked } else { answered };
        let count = whyso_words::number(of_it);
        let what = if tier.is_database { "command" } else { "request" };
        let plural = if count == "1" { "" } else { "s" };
        let text = format!("waiting for {}, in {count} {what}{plural}", tier.name);
        self.push(TierLine { text, is_divided: true, ..line });
        self.path.push(at);
        let inside_ms = self.tier(at, of_it, depth + 1);
        self.path.pop();
        // What is left bounds it: it may have been a question of no request.
        let late_ms = (upstream.late_ms * scale).min(ms - inside_ms).max(0.0);
        let late_ms = if self.is_small(late_ms) { 0.0 } else { late_ms };
        if late_ms > 0.0 {
            let asks = &self.tiers[asks].name;
            self.push(TierLine {
                depth: depth + 1,
                tier: asks.clone(),
                part: Some(Part::TransitIn),
                text: format!("answers that waited to be picked up by {asks}"),
                ms: late_ms,
                ..TierLine::default()
            });
        }
        let between_ms = ms - inside_ms - late_ms;
        if !self.is_small(between_ms) {
            self.push(TierLine {
                depth: depth + 1,
                tier: self.tiers[at].name.clone(),
                part: Some(Part::TransitOut),
                text: format!("between {} and {}", self.tiers[asks].name, self.tiers[at].name),
                ms: between_ms,
                ..TierLine::default()
            });
        }
    }
}

/// What threads of a tier do, in words that hold for any program, and for which file.
fn part_text(part: &TierPart, tier: &TierTime) -> String {
    let words = match part.part {
        // Its thread had nothing to do for them, and was waiting for none of their servers.
        Part::Other if tier.interleaved >= BY_TURNS_MIN => {
            "waiting inside the program, for a pool, a lock or a timer"
        }
        Part::TransitIn if tier.is_database => "commands that waited to be picked up",
        Part::TransitIn => "waiting to be picked up",
        Part::NetSend => "waiting to send",
        part => part.words(),
    };
    match part.file.as_ref().filter(|file| file.share >= FILE_SHARE_MIN) {
        Some(file) => format!("{words}, {} of them for {}", whyso_words::percent(file.share), file.path),
        None => words.to_string(),
    }
}
