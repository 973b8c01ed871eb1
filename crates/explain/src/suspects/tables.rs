//! Causes that lie in the SQL layer: locks and caches of tables, definitions, rights and results.

use super::case::Case;
use super::claim::{Claim, Class};
use super::model::Cause;
use crate::model::Part;
use whyso_model::LockKind;

pub(super) fn claims(case: &Case) -> Vec<Claim> {
    [
        table_lock(case),
        metadata_lock(case),
        mdl_map(case),
        grant_lock(case),
        table_cache(case),
        query_cache(case),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn table_lock(case: &Case) -> Option<Claim> {
    let unit = case.unit();
    let waits = case.count(&["Table_locks_waited"])?;
    if waits.per_transaction < 0.005 {
        return None;
    }
    let why = format!(
        "a lock on a whole table was waited for {} times per {unit}",
        whyso_words::number(waits.per_transaction)
    );
    Some(
        Claim::new(Cause::TableLock, "table locks hold", why)
            .holds_lock(sampled_ms(case, LockKind::Table))
            .by(Class::Sampled)
            .may_be_in(&[Part::Lock])
            .certain(0.9)
            .rests_on([case.series(&waits.series)])
            .rests_on(case.parts(&[Part::Lock])),
    )
}

/// Sleep on locks of a kind, by connections that were found waiting for them, in ms.
fn sampled_ms(case: &Case, kind: LockKind) -> f64 {
    case.lock_sampled_ms(kind, |_| true).unwrap_or(0.0).min(case.lock_ms())
}

/// FLUSH is none of these: most kinds of it lock no table.
fn metadata_lock(case: &Case) -> Option<Claim> {
    const STATEMENTS: [&str; 11] = [
        "Com_alter_table",
        "Com_create_index",
        "Com_drop_index",
        "Com_create_table",
        "Com_drop_table",
        "Com_rename_table",
        "Com_truncate",
        "Com_optimize",
        "Com_lock_tables",
        "Com_create_trigger",
        "Com_drop_trigger",
    ];
    let found: Vec<_> = STATEMENTS.iter().filter_map(|name| Some((*name, case.count(&[name])?))).collect();
    let statements: f64 = found.iter().map(|(_, measure)| measure.per_s).sum::<f64>() * case.level.seconds;
    let waited_ms = sampled_ms(case, LockKind::Metadata);
    if statements < 0.5 && waited_ms <= 0.0 {
        return None;
    }
    let mut names: Vec<String> = found
        .iter()
        .filter(|(_, measure)| measure.per_s > 0.0)
        .map(|(name, _)| name.trim_start_matches("Com_").replace('_', " ").to_uppercase())
        .collect();
    names.truncate(3);
    let ran = match statements {
        count if count < 0.5 => "no statement that changes tables ended meanwhile".to_string(),
        count => format!(
            "{} statements that lock the definitions of tables ran meanwhile ({})",
            whyso_words::number(count.round()),
            whyso_words::list(&names)
        ),
    };
    let why = format!("{ran}{}", case.lock_object(LockKind::Metadata));
    Some(
        Claim::new(Cause::MetadataLock, "metadata locks hold", why)
            .holds_lock(waited_ms)
            .by(Class::Sampled)
            .may_be_in(&[Part::Lock])
            .certain(0.9)
            .rests_on(
                found
                    .iter()
                    .filter(|(_, measure)| measure.per_s > 0.0)
                    .map(|(_, measure)| case.series(&measure.series)),
            )
            .rests_on(case.lock_samples(LockKind::Metadata))
            .rests_on(case.parts(&[Part::Lock])),
    )
}

/// Whether the server is older than this, by its version; false where that is not known.
pub(super) fn is_older_than(case: &Case, major: u32, minor: u32) -> bool {
    let Some(version) = case.variable("version") else { return false };
    let mut numbers = version.split(['.', '-']).map(|part| part.parse::<u32>().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(first), Some(second)) => (first, second) < (major, minor),
        _ => false,
    }
}

/// The map of all metadata locks under one mutex, or a few.
fn mdl_map(case: &Case) -> Option<Claim> {
    let instances = case.number("metadata_locks_hash_instances");
    let is_one = is_older_than(case, 5, 6) || instances == Some(1.0);
    if !is_one || !is_busy_with_locks(case) {
        return None;
    }
    let why =
        "this server keeps all metadata locks in a map under one mutex, which every statement takes twice"
            .to_string();
    Some(
        Claim::new(Cause::MdlMap, "the map of metadata locks holds", why)
            .may_be_in(&[Part::Lock])
            .rests_on(case.parts(&[Part::Lock]))
            .rests_on(case.fact("metadata_locks_hash_instances").or_else(|| case.fact("version"))),
    )
}

/// Threads sleep on locks, a good part of the time, and hardly write.
pub(super) fn is_busy_with_locks(case: &Case) -> bool {
    case.is_traced() && case.share(case.ms(Part::Lock)) >= 0.1 && case.level.users >= 4
}

fn grant_lock(case: &Case) -> Option<Claim> {
    const STATEMENTS: [&str; 8] = [
        "Com_grant",
        "Com_revoke",
        "Com_create_user",
        "Com_drop_user",
        "Com_alter_user",
        "Com_set_password",
        "Com_grant_role",
        "Com_create_role",
    ];
    let (per_transaction, series) = case.counts(&STATEMENTS);
    let statements = per_transaction * case.transactions;
    if statements < 0.5 {
        return None;
    }
    let why = format!(
        "{} statements that change users and rights ran meanwhile",
        whyso_words::number(statements.round())
    );
    Some(
        Claim::new(Cause::GrantLock, "the lock on users' rights holds", why)
            .may_be_in(&[Part::Lock])
            .rests_on(case.all_series(&series))
            .rests_on(case.parts(&[Part::Lock])),
    )
}

fn table_cache(case: &Case) -> Option<Claim> {
    let unit = case.unit();
    let opened = case.count(&["Table_open_cache_misses"]).or_else(|| case.count(&["Opened_tables"]))?;
    if opened.per_transaction < 0.05 {
        return None;
    }
    let why = format!(
        "{} tables per {unit} had to be opened again, because the table cache had none free",
        whyso_words::number(opened.per_transaction)
    );
    Some(
        Claim::new(Cause::TableCache, "opening tables holds", why)
            .may_be_in(&[Part::Cpu, Part::Lock])
            .rests_on([case.series(&opened.series)])
            .rests_on(case.fact("table_open_cache")),
    )
}

fn query_cache(case: &Case) -> Option<Claim> {
    let unit = case.unit();
    let is_off = case
        .variable("query_cache_type")
        .is_none_or(|value| value == "0" || value.eq_ignore_ascii_case("OFF"));
    if is_off || case.number("query_cache_size").is_none_or(|size| size <= 0.0) {
        return None;
    }
    let (used, series) = case.counts(&["Qcache_inserts", "Qcache_hits", "Qcache_lowmem_prunes"]);
    if used < 0.1 {
        return None;
    }
    let why = format!(
        "the query cache is on, one lock guards it, and a {unit} takes it {} times or more",
        whyso_words::number(used)
    );
    Some(
        Claim::new(Cause::QueryCache, "the query cache's lock holds", why)
            .may_be_in(&[Part::Lock])
            .rests_on(case.all_series(&series))
            .rests_on(case.parts(&[Part::Lock]))
            .rests_on(case.fact("query_cache_type")),
    )
}
