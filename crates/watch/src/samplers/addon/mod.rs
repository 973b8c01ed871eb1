//! Add-ons: any program that prints numbers, or any statement that reads, as the source `addon.NAME`. `docs/reference/add-on-file.md`
//! describes their files; those that ship lie in `addons/`.

mod error;
mod files;
mod program;
mod read_only;
mod sampler;
mod spec;
mod table;
#[cfg(test)]
mod web_tests;

pub use error::{AddOnError, StatementError};
pub use sampler::{AddOnSeries, check};
pub use spec::AddOn;

use sampler::{AddOnSampler, ServerAccess};

use crate::sampler_entry::{SamplerEntry, ScheduledSampler, StartContext};

pub(crate) const SAMPLER: SamplerEntry = SamplerEntry {
    sources: &["addon.…"],
    counts: "the numbers that a program prints or a statement returns",
    origin: "the user's TOML file, or one of `addons/`",
    metrics: &[],
    start,
};

fn start(context: &StartContext<'_>) -> Vec<ScheduledSampler> {
    let mut samplers = Vec::new();
    for addon in &context.spec.add_ons {
        let access =
            ServerAccess { server: context.spec.server.clone(), server_pid: context.spec.server_pid };
        let sampler = AddOnSampler::new(addon.clone(), access, context.stop.clone());
        let scheduled = ScheduledSampler::of_machine(sampler.counted_in(&context.statements));
        samplers.push(match addon.interval {
            Some(interval) => scheduled.every(interval),
            None => scheduled,
        });
    }
    samplers
}

/// The add-ons that ship with whyso: name and title.
pub fn shipped() -> Vec<(String, String)> {
    let described = files::SHIPPED.iter().map(|(name, text)| {
        let title = AddOn::parse(text, None).map_or_else(|error| error.to_string(), |addon| addon.title);
        (name.to_string(), title)
    });
    described.collect()
}
