//! Which setting a mistyped name may have meant.

/// The name that is nearest to `name`, if one is near enough to be meant: a fifth of its letters may differ, and two always may.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let far = (name.chars().count() / 5).max(2);
    let distances = known.into_iter().map(|known| (strsim::osa_distance(name, known), known));
    let (distance, known) = distances.min()?;
    (distance <= far && distance > 0).then(|| known.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 4] =
        ["innodb_flush_log_at_trx_commit", "innodb_buffer_pool_size", "sort_buffer_size", "max_connections"];

    #[test]
    fn a_slip_of_the_fingers_is_understood_and_another_name_is_not() {
        let nearest = |name| nearest(name, KNOWN);
        assert_eq!(nearest("innodb_flush_log_at_trx_comit").as_deref(), Some(KNOWN[0]));
        assert_eq!(nearest("inodb_bufer_pool_size").as_deref(), Some(KNOWN[1]));
        assert_eq!(nearest("sort_bufefr_size").as_deref(), Some(KNOWN[2]));
        assert_eq!(nearest("frobnicate"), None);
        assert_eq!(nearest("max_connections"), None, "it is known");
        assert_eq!(super::nearest("x", []), None);
    }
}
