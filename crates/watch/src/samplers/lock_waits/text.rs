//! Text of statements and names, as a lock wait may hold it.

use crate::digest::digest;

/// A statement as it may be recorded.
pub(super) fn statement(text: Option<String>) -> Option<String> {
    text.map(|text| digest(&text)).filter(|text| !text.is_empty())
}

/// A name as InnoDB quotes it: "`shop`.`orders`" is shop.orders.
pub(super) fn unquoted(name: &str) -> String {
    name.replace('`', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_their_quotes_and_statements_their_literals() {
        assert_eq!(unquoted("`shop`.`orders` /* Partition `p0` */"), "shop.orders /* Partition p0 */");
        assert_eq!(statement(Some("UPDATE t SET v=7".to_string())), Some("UPDATE t SET v=?".to_string()));
        assert_eq!(statement(Some(" ".to_string())), None);
    }
}
