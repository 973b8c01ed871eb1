//! Numbers and names in a sentence: lists, plurals, growth.

use crate::number::{number, percent, whole};

/// Returns the parts joined with commas, and "and" before the last.
///
/// ```
/// use whyso_words::list;
/// assert_eq!([list(&["1"]), list(&["1", "2"]), list(&["1", "2", "4"])], ["1", "1 and 2", "1, 2 and 4"]);
/// ```
pub fn list<S: AsRef<str>>(parts: &[S]) -> String {
    let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
    match parts.as_slice() {
        [] => String::new(),
        [only] => only.to_string(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Returns a number of things, their name in the plural unless there is one. The last word of the name gets the ending.
///
/// ```
/// use whyso_words::count;
/// assert_eq!([count(1, "user"), count(0, "row"), count(1_200, "page read")], ["1 user", "0 rows", "1,200 page reads"]);
/// assert_eq!([count(2, "retry"), count(3, "latch"), count(4, "key")], ["2 retries", "3 latches", "4 keys"]);
/// ```
pub fn count(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{} {}", whole(count), plural(noun)) }
}

/// Returns "1 user", "8 users".
pub fn users(users: u32) -> String {
    count(u64::from(users), "user")
}

/// Returns "once", "12 times".
pub fn times(count: u64) -> String {
    if count == 1 { "once".to_string() } else { format!("{} times", whole(count)) }
}

/// Returns "by 12 %" or "3.1-fold", for what grew by this ratio.
pub fn growth(ratio: f64) -> String {
    if ratio < 1.95 { format!("by {}", percent(ratio - 1.0)) } else { format!("{}-fold", number(ratio)) }
}

/// Returns the text of a number that may be a lower bound, with "≥" before it where it is.
pub fn at_least(text: String, is_lower_bound: bool) -> String {
    if is_lower_bound { format!("≥{text}") } else { text }
}

fn plural(noun: &str) -> String {
    if let Some(stem) = noun.strip_suffix('y')
        && !stem.ends_with(['a', 'e', 'i', 'o', 'u'])
    {
        return format!("{stem}ies");
    }
    let hisses = ["s", "x", "z", "ch", "sh"].iter().any(|ending| noun.ends_with(ending));
    format!("{noun}{}", if hisses { "es" } else { "s" })
}
