//! Which objects the connections waited for when they waited for locks, as text.

use super::{Budget, Part, SOURCE};
use crate::level::Level;
use crate::locks::{InstrumentWait, LockObject, SAMPLES_MIN, instruments};
use crate::suspects::{Holder, SuspectObject};
use whyso_model::LockKind;

/// An object is named from this share of the samples of its kind on, an instrument from this share of the time that requests waited.
const SHARE_MIN: f64 = 0.25;
/// A statement is named where at least this many of the samples had it at the head of the queue.
const STATEMENT_SHARE_MIN: f64 = 0.25;
/// Statements are cut to this many characters.
const STATEMENT_MAX: usize = 80;

/// " Of the connections that were found waiting for row locks, 71 % waited for shop.orders (PRIMARY), held by UPDATE orders … (by 412
/// samples)."
pub(super) fn sentence(level: &Level, budget: &Budget) -> String {
    let mut text = String::new();
    for (kind, words) in [
        (LockKind::Row, "row locks"),
        (LockKind::Metadata, "metadata locks"),
        (LockKind::Table, "table locks"),
    ] {
        if let Some((object, samples)) = main_object(level, kind) {
            text.push_str(&format!(
                " Of the connections that were found waiting for {words}, {} waited for {} (by {} samples).",
                whyso_words::percent(object.share),
                described(object),
                whyso_words::whole(samples)
            ));
        }
    }
    text.push_str(&instrument_sentence(level, budget));
    text
}

/// The object that most samples of a kind of lock were of, and how many there are of the kind; `None` where that would be chance.
pub(crate) fn main_object<'a>(level: &Level<'a>, kind: LockKind) -> Option<(&'a LockObject, u64)> {
    let of_kind = || level.lock_objects.iter().filter(|object| object.kind == kind);
    let samples: u64 = of_kind().map(|object| object.samples).sum();
    let main = of_kind().max_by_key(|object| object.samples)?;
    let is_told = samples >= SAMPLES_MIN && main.share >= SHARE_MIN && !main.object.is_empty();
    is_told.then_some((main, samples))
}

/// The object as data.
pub(crate) fn suspect_object(object: &LockObject) -> SuspectObject {
    let holder = object.blocking_statement.as_ref().filter(|_| object.blocking_share >= STATEMENT_SHARE_MIN);
    SuspectObject {
        name: name(object),
        share: object.share,
        samples: object.samples,
        holder: holder.map(|statement| Holder { statement: statement.clone(), share: object.blocking_share }),
    }
}

/// "shop.orders (PRIMARY)"
fn name(object: &LockObject) -> String {
    match object.index.as_str() {
        "" => object.object.clone(),
        index => format!("{} ({index})", object.object),
    }
}

/// "shop.orders (PRIMARY), held by UPDATE orders SET v=?"
pub(crate) fn described(object: &LockObject) -> String {
    let mut text = name(object);
    match &object.blocking_statement {
        Some(statement) if object.blocking_share >= STATEMENT_SHARE_MIN => {
            text.push_str(&format!(", held by {}", shortened(statement)));
        }
        _ => {}
    }
    text
}

fn shortened(statement: &str) -> String {
    match statement.chars().count() > STATEMENT_MAX {
        true => statement.chars().take(STATEMENT_MAX - 1).chain(['…']).collect(),
        false => statement.to_string(),
    }
}

/// " The instrument wait/synch/mutex/innodb/log_sys_mutex counted waits of 3.2 s in all threads, against 7.8 s that requests waited for
/// locks."
fn instrument_sentence(level: &Level, budget: &Budget) -> String {
    let Some(all_ns) = level.counter(SOURCE, "request_lock_ns", "").map(|counter| counter.increase) else {
        return String::new();
    };
    let found = instruments(level.counters);
    let is_lock = |wait: &&InstrumentWait| !wait.is_condition() && wait.ns.is_some();
    let Some((largest, ns)) = found.iter().find(is_lock).and_then(|wait| Some((wait, wait.ns?))) else {
        return String::new();
    };
    if budget.ms(Part::Lock) <= 0.0 || ns < SHARE_MIN * all_ns {
        return String::new();
    }
    format!(
        " The instrument {} counted waits of {} in all threads, against {} that requests waited for locks.",
        largest.name,
        whyso_words::amount(ns, "ns"),
        whyso_words::amount(all_ns, "ns"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LevelInput, Machine};

    fn object(object: &str, samples: u64, share: f64) -> LockObject {
        LockObject {
            kind: LockKind::Row,
            object: object.to_string(),
            index: "PRIMARY".to_string(),
            samples,
            share,
            blocking_statement: Some("UPDATE accounts SET v=? WHERE id=?".to_string()),
            blocking_share: 0.9,
            ..LockObject::default()
        }
    }

    fn describe(lock_objects: Vec<LockObject>) -> String {
        let input = LevelInput { lock_objects, ..LevelInput::default() };
        sentence(&crate::verdict::judge(&input, &Machine::default()), &Budget::default())
    }

    #[test]
    fn the_table_with_the_most_samples_is_named_with_who_held_it() {
        assert_eq!(
            describe(vec![object("t.accounts", 71, 0.71), object("t.log", 29, 0.29)]),
            " Of the connections that were found waiting for row locks, 71 % waited for t.accounts (PRIMARY), held by UPDATE accounts \
             SET v=? WHERE id=? (by 100 samples)."
        );
    }

    #[test]
    fn a_few_samples_a_small_share_and_an_unknown_object_name_nothing() {
        assert_eq!(describe(vec![object("t.accounts", SAMPLES_MIN - 1, 1.0)]), "");
        assert_eq!(describe(vec![object("t.accounts", 100, 0.2)]), "");
        assert_eq!(describe(vec![object("", 100, 1.0)]), "");
        assert_eq!(describe(Vec::new()), "");
        let unknown = LockObject { blocking_statement: None, ..object("t.accounts", 100, 1.0) };
        assert!(describe(vec![unknown]).ends_with("waited for t.accounts (PRIMARY) (by 100 samples)."));
    }
}
