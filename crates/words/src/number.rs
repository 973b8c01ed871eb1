//! Numbers without a unit, and percentages.

/// What is written for a value that is not a number.
pub const NOTHING: &str = "–";

/// Powers of ten: a product with one of these is the same number in every language.
const POWERS: [f64; 7] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6];
/// Smaller numbers are written with a power of ten.
const PLAIN_MIN: f64 = 0.000_099_5;
/// Numbers from this on are written with a power of ten.
const PLAIN_END: f64 = 1e15;
/// A share this close to 1 is 1: sums of shares end this close to it.
const SHARE_ROUNDING: f64 = 1e-9;

/// Returns a number with three significant digits from 1 on and two below, whole from 99.95 on, in groups of three digits.
///
/// Trailing zeros are dropped. What is not finite is "–". A number other than 0 is never written as 0.
///
/// ```
/// use whyso_words::number;
/// assert_eq!([number(1_250.4), number(58.26), number(6.0), number(0.0214)], ["1,250", "58.3", "6", "0.021"]);
/// assert_eq!([number(-0.5), number(0.000_012), number(f64::NAN)], ["−0.5", "1.2·10⁻⁵", "–"]);
/// ```
pub fn number(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return NOTHING.to_string();
    }
    if size == 0.0 {
        return "0".to_string();
    }
    let significant = if size < 1.0 { 2 } else { 3 };
    if (PLAIN_MIN..PLAIN_END).contains(&size) {
        return signed(value, significant_digits(size, significant, true));
    }
    signed(value, with_power_of_ten(size, significant - 1))
}

/// Returns a difference: a number with its sign, also where that is a plus.
///
/// ```
/// use whyso_words::signed_number;
/// assert_eq!([signed_number(1_250.4), signed_number(-0.5), signed_number(0.0)], ["+1,250", "−0.5", "0"]);
/// ```
pub fn signed_number(value: f64) -> String {
    let plus = if value.is_finite() && value > 0.0 { "+" } else { "" };
    format!("{plus}{}", number(value))
}

/// Returns a whole number in groups of three digits.
///
/// ```
/// assert_eq!(whyso_words::whole(1_234_567), "1,234,567");
/// ```
pub fn whole(value: u64) -> String {
    grouped(&value.to_string())
}

/// Returns a number for an axis: three significant digits, and a letter for thousands and more.
///
/// ```
/// use whyso_words::short;
/// assert_eq!([short(1_500.0), short(20e6), short(0.125)], ["1.5k", "20M", "0.125"]);
/// ```
pub fn short(value: f64) -> String {
    let size = value.abs();
    if !(PLAIN_MIN..PLAIN_END).contains(&size) {
        return number(value);
    }
    for (factor, letter) in [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if size / factor >= 0.9995 {
            return format!("{}{letter}", signed(value, significant_digits(size / factor, 3, false)));
        }
    }
    signed(value, significant_digits(size, 3, false))
}

/// Returns how many times as large one value is as another: three decimals below 10, where they decide whether the values differ.
///
/// ```
/// use whyso_words::ratio;
/// assert_eq!([ratio(0.9984), ratio(1.25), ratio(12.345)], ["0.998", "1.25", "12.3"]);
/// ```
pub fn ratio(value: f64) -> String {
    let size = value.abs();
    let thousandths = (size * 1e3).round();
    if !(100.0..10_000.0).contains(&thousandths) {
        return number(value);
    }
    signed(value, decimal(thousandths as u64, 3, true))
}

/// Returns a probability with three decimals; what would be 0 with these is "<0.001".
///
/// ```
/// use whyso_words::p_value;
/// assert_eq!([p_value(0.0421), p_value(0.000_02), p_value(1.0)], ["0.042", "<0.001", "1"]);
/// ```
pub fn p_value(p: f64) -> String {
    if !p.is_finite() {
        return NOTHING.to_string();
    }
    if p < 0.001 {
        return "<0.001".to_string();
    }
    decimal((p * 1e3).round() as u64, 3, true)
}

/// Returns a share as a percentage: two significant digits below 10 %, whole from there on.
///
/// Less than everything is never "100 %": from 99.5 % up to it there is one decimal, rounded down.
///
/// ```
/// use whyso_words::percent;
/// assert_eq!([percent(0.085), percent(0.000_85), percent(0.1234), percent(0.999_7)], ["8.5 %", "0.085 %", "12 %", "99.9 %"]);
/// ```
pub fn percent(share: f64) -> String {
    let number = percent_number(share);
    if number == NOTHING { number } else { format!("{number} %") }
}

/// Returns the number of [`percent`], for a column whose head has the sign.
pub fn percent_number(share: f64) -> String {
    let percentage = share * 100.0;
    let size = percentage.abs();
    if !(PLAIN_MIN..PLAIN_END).contains(&size) {
        return number(percentage);
    }
    if (99.5..100.0 * (1.0 - SHARE_ROUNDING)).contains(&size) {
        return signed(percentage, decimal((size * 10.0).floor() as u64, 1, true));
    }
    signed(percentage, significant_digits(size, 2, true))
}

/// Returns by which percentage something grew or shrank, with its sign.
///
/// ```
/// use whyso_words::percent_change;
/// assert_eq!([percent_change(0.032), percent_change(-0.5), percent_change(0.0)], ["+3.2 %", "−50 %", "0 %"]);
/// ```
pub fn percent_change(share: f64) -> String {
    let plus = if share.is_finite() && share > 0.0 { "+" } else { "" };
    format!("{plus}{}", percent(share))
}

/// Writes a size in `PLAIN_MIN..PLAIN_END` with at most this many significant digits. It has no decimals where the whole digits are more than
/// that.
fn significant_digits(size: f64, significant: usize, is_grouped: bool) -> String {
    let fits = |decimals: &usize| (size * POWERS[*decimals]).round() < POWERS[significant];
    let decimals = (0..POWERS.len()).rev().find(fits).unwrap_or(0);
    decimal((size * POWERS[decimals]).round() as u64, decimals, is_grouped)
}

/// Writes `scaled` divided by a power of ten, without trailing zeros.
fn decimal(scaled: u64, decimals: usize, is_grouped: bool) -> String {
    let digits = format!("{scaled:0>width$}", width = decimals + 1);
    let (whole, fraction) = digits.split_at(digits.len() - decimals);
    let whole = if is_grouped { grouped(whole) } else { whole.to_string() };
    match fraction.trim_end_matches('0') {
        "" => whole,
        fraction => format!("{whole}.{fraction}"),
    }
}

fn grouped(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn with_power_of_ten(size: f64, decimals: usize) -> String {
    // The shortest digits that are this number, which every language has the same.
    let text = format!("{size:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mut scaled = (mantissa.parse().unwrap_or(size) * POWERS[decimals]).round();
    let mut exponent: i32 = exponent.parse().unwrap_or(0);
    if scaled >= POWERS[decimals + 1] {
        scaled /= 10.0;
        exponent += 1;
    }
    format!("{}·10{}", decimal(scaled as u64, decimals, false), superscript(exponent))
}

fn superscript(exponent: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let raised = |letter: char| letter.to_digit(10).map_or('⁻', |digit| DIGITS[digit as usize]);
    exponent.to_string().chars().map(raised).collect()
}

fn signed(value: f64, text: String) -> String {
    if value < 0.0 { format!("−{text}") } else { text }
}
