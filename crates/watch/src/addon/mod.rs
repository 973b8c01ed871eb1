//! Add-ons: any program that prints numbers, or any statement that reads, as the source `addon.NAME`. `docs/reference/add-on-file.md`
//! describes their files; those that ship lie in `addons/`.

mod program;
mod read_only;
mod sampler;
mod spec;
mod table;

pub use sampler::{Checked, check};
pub use spec::AddOn;

pub(crate) use sampler::{AddOnSampler, Handed};

/// Those that ship: (name, file).
pub(crate) const SHIPPED: &[(&str, &str)] = &[
    ("example", include_str!("../../../../addons/example.toml")),
    ("iostat", include_str!("../../../../addons/iostat.toml")),
    ("ndb-disk-page-buffer", include_str!("../../../../addons/ndb-disk-page-buffer.toml")),
    ("ndb-log-buffers", include_str!("../../../../addons/ndb-log-buffers.toml")),
    ("ndb-out-log", include_str!("../../../../addons/ndb-out-log.toml")),
    ("ndb-threads", include_str!("../../../../addons/ndb-threads.toml")),
    ("vmstat", include_str!("../../../../addons/vmstat.toml")),
];

/// The add-ons that ship with whyso: name and title.
pub fn shipped() -> Vec<(String, String)> {
    let described = SHIPPED.iter().map(|(name, text)| {
        let title = AddOn::parse(text, None).map_or_else(|why| why, |addon| addon.title);
        (name.to_string(), title)
    });
    described.collect()
}
