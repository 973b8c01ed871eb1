//! The add-ons that ship with whyso.

/// Those that ship: (name, file).
pub(super) const SHIPPED: &[(&str, &str)] = &[
    ("example", include_str!("../../../../../addons/example.toml")),
    ("iostat", include_str!("../../../../../addons/iostat.toml")),
    ("ndb-disk-page-buffer", include_str!("../../../../../addons/ndb-disk-page-buffer.toml")),
    ("ndb-log-buffers", include_str!("../../../../../addons/ndb-log-buffers.toml")),
    ("ndb-out-log", include_str!("../../../../../addons/ndb-out-log.toml")),
    ("ndb-threads", include_str!("../../../../../addons/ndb-threads.toml")),
    ("vmstat", include_str!("../../../../../addons/vmstat.toml")),
];
