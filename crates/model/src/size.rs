//! Sizes as they are typed: 64K, 500MiB, 20G.

/// In bytes.
///
/// # Errors
/// The text is not a number with a unit. The error names what to give.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no size: give a number with KiB, MiB, GiB or TiB, such as 20GiB");
    let text = text.trim();
    let digits = text.trim_end_matches(|unit: char| unit.is_ascii_alphabetic());
    let unit = text[digits.len()..].to_ascii_lowercase();
    let shift = match unit.trim_end_matches('b').trim_end_matches('i') {
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return Err(wrong()),
    };
    match digits.parse::<f64>().map(|number| number * (1_u64 << shift) as f64) {
        Ok(bytes) if (0.0..1e15).contains(&bytes) => Ok(bytes as u64),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_they_are_typed() {
        assert_eq!(parse_size("20GiB"), Ok(20 << 30));
        assert_eq!(parse_size("1.5t"), Ok(3 << 39));
        assert_eq!(parse_size("200mb"), Ok(200 << 20));
        assert_eq!(parse_size("64k"), Ok(65_536));
        for wrong in ["", "20", "GiB", "-3GiB", "1e99TiB", "naNGiB", "1qb"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }
}
