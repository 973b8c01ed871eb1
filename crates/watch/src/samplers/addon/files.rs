//! The add-ons that ship with whyso.

/// Those that ship: (name, file).
pub(super) const SHIPPED: &[(&str, &str)] = &[
    ("example", include_str!("../../../../../addons/example.toml")),
    ("httpd", include_str!("../../../../../addons/httpd.toml")),
    ("iostat", include_str!("../../../../../addons/iostat.toml")),
    ("memcached", include_str!("../../../../../addons/memcached.toml")),
    ("ndb-disk-page-buffer", include_str!("../../../../../addons/ndb-disk-page-buffer.toml")),
    ("ndb-log-buffers", include_str!("../../../../../addons/ndb-log-buffers.toml")),
    ("ndb-out-log", include_str!("../../../../../addons/ndb-out-log.toml")),
    ("ndb-threads", include_str!("../../../../../addons/ndb-threads.toml")),
    ("nginx", include_str!("../../../../../addons/nginx.toml")),
    ("php-fpm", include_str!("../../../../../addons/php-fpm.toml")),
    ("postgresql", include_str!("../../../../../addons/postgresql.toml")),
    ("postgresql-sessions", include_str!("../../../../../addons/postgresql-sessions.toml")),
    ("postgresql-writes", include_str!("../../../../../addons/postgresql-writes.toml")),
    ("vmstat", include_str!("../../../../../addons/vmstat.toml")),
];
