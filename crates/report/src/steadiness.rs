//! A level that was not steady, in a few words.

use whyso_explain::model::Steadiness;

use crate::number::grouped;

/// "unstable from 8.25 s", "throughput climbed from 10,400/s to 42,100/s"; `None` where nothing shows that the level was not steady.
pub(crate) fn how_unsteady(steadiness: Steadiness) -> Option<String> {
    match steadiness {
        Steadiness::UnstableFrom { s } => Some(format!("unstable from {} s", grouped(s))),
        Steadiness::Trend { from_per_s, to_per_s } => {
            let verb = if to_per_s > from_per_s { "climbed" } else { "fell" };
            Some(format!("throughput {verb} from {}/s to {}/s", grouped(from_per_s), grouped(to_per_s)))
        }
        Steadiness::StillWarming => Some("still warming up".to_string()),
        Steadiness::Steady | Steadiness::TooShort => None,
    }
}
