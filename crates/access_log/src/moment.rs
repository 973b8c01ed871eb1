//! Times in logs: the formats of strftime, read backwards.

use crate::error::LineError;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const NS_PER_S: i64 = 1_000_000_000;

/// The time of a line, as far as its fields were read. Without an offset it counts as UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moment {
    year: Option<i64>,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    /// Nanoseconds of the second, from a field of their own.
    fraction_ns: i64,
    offset_s: i64,
    is_afternoon: bool,
    epoch_ns: Option<i64>,
}

/// A part of a time format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TimePart {
    Text(String),
    Year,
    YearOfCentury,
    Month,
    MonthName,
    Day,
    Hour,
    HourOfHalf,
    Half,
    Minute,
    Second,
    /// Digits after the second; nanoseconds at most.
    Fraction,
    /// `+0100`, `+01:00` or `Z`.
    Offset,
    /// The name of a zone or of a day: letters that are skipped.
    Letters,
    /// Since 1970, in this many per second, with or without a fraction.
    Epoch(i64),
}

/// Returns the parts of a strftime format. `None`: it has one that is not known.
pub(crate) fn time_parts(format: &str) -> Option<Vec<TimePart>> {
    let mut parts = Vec::new();
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            push_text(&mut parts, letter);
            continue;
        }
        match letters.next()? {
            'Y' => parts.push(TimePart::Year),
            'y' => parts.push(TimePart::YearOfCentury),
            'm' => parts.push(TimePart::Month),
            'b' | 'h' => parts.push(TimePart::MonthName),
            'd' | 'e' => parts.push(TimePart::Day),
            'H' | 'k' => parts.push(TimePart::Hour),
            'I' => parts.push(TimePart::HourOfHalf),
            'p' => parts.push(TimePart::Half),
            'M' => parts.push(TimePart::Minute),
            'S' => parts.push(TimePart::Second),
            'z' => parts.push(TimePart::Offset),
            'Z' | 'a' => parts.push(TimePart::Letters),
            's' => parts.push(TimePart::Epoch(1)),
            'F' => parts.extend(time_parts("%Y-%m-%d")?),
            'T' => parts.extend(time_parts("%H:%M:%S")?),
            'R' => parts.extend(time_parts("%H:%M")?),
            'D' => parts.extend(time_parts("%m/%d/%y")?),
            '%' => push_text(&mut parts, '%'),
            't' => push_text(&mut parts, '\t'),
            _ => return None,
        }
    }
    Some(parts)
}

fn push_text(parts: &mut Vec<TimePart>, letter: char) {
    match parts.last_mut() {
        Some(TimePart::Text(text)) => text.push(letter),
        _ => parts.push(TimePart::Text(letter.to_string())),
    }
}

/// `28/Nov/2026:19:40:04 +0000`.
pub(crate) fn common_log_time() -> Vec<TimePart> {
    let mut parts = date_parts('/', TimePart::Day, TimePart::MonthName, TimePart::Year);
    parts.push(TimePart::Text(":".to_string()));
    parts.extend(clock_parts());
    parts.extend([TimePart::Text(" ".to_string()), TimePart::Offset]);
    parts
}

/// `2026-11-28T19:40:04+00:00`, with or without a fraction.
pub(crate) fn iso_time() -> Vec<TimePart> {
    let mut parts = date_parts('-', TimePart::Year, TimePart::Month, TimePart::Day);
    parts.push(TimePart::Text("T".to_string()));
    parts.extend(clock_parts());
    parts.extend([TimePart::Fraction, TimePart::Offset]);
    parts
}

fn date_parts(separator: char, first: TimePart, second: TimePart, third: TimePart) -> Vec<TimePart> {
    let text = || TimePart::Text(separator.to_string());
    vec![first, text(), second, text(), third]
}

fn clock_parts() -> Vec<TimePart> {
    let colon = || TimePart::Text(":".to_string());
    vec![TimePart::Hour, colon(), TimePart::Minute, colon(), TimePart::Second]
}

impl Moment {
    /// Reads the parts at the begin of `text`. Returns what comes after them.
    pub(crate) fn read<'t>(&mut self, parts: &[TimePart], text: &'t str) -> Result<&'t str, LineError> {
        let mut rest = text;
        for part in parts {
            rest = self.read_part(part, rest).ok_or(LineError::Time)?;
        }
        Ok(rest)
    }

    fn read_part<'t>(&mut self, part: &TimePart, text: &'t str) -> Option<&'t str> {
        match part {
            TimePart::Text(wanted) => return text.strip_prefix(wanted.as_str()),
            TimePart::Year => {
                return digits(text, 4).map(|(value, rest)| self.set(rest, |m| m.year = Some(value)));
            }
            TimePart::YearOfCentury => {
                let (value, rest) = digits(text, 2)?;
                self.year = Some(if value < 69 { 2000 + value } else { 1900 + value });
                return Some(rest);
            }
            TimePart::Month => {
                return two(text, 1, 12).map(|(value, rest)| self.set(rest, |m| m.month = value));
            }
            TimePart::MonthName => {
                let name = text.get(..3)?;
                let index = MONTHS.iter().position(|month| month.eq_ignore_ascii_case(name))?;
                self.month = i64::try_from(index).ok()? + 1;
                return text.get(3..);
            }
            TimePart::Day => {
                return two(text, 1, 31).map(|(value, rest)| self.set(rest, |m| m.day = value));
            }
            TimePart::Hour => {
                return two(text, 0, 23).map(|(value, rest)| self.set(rest, |m| m.hour = value));
            }
            TimePart::HourOfHalf => {
                return two(text, 1, 12).map(|(value, rest)| self.set(rest, |m| m.hour = value % 12));
            }
            TimePart::Half => {
                let name = text.get(..2)?;
                self.is_afternoon = name.eq_ignore_ascii_case("pm");
                return (self.is_afternoon || name.eq_ignore_ascii_case("am")).then(|| text.get(2..))?;
            }
            TimePart::Minute => {
                return two(text, 0, 59).map(|(value, rest)| self.set(rest, |m| m.minute = value));
            }
            TimePart::Second => {
                return two(text, 0, 60).map(|(value, rest)| self.set(rest, |m| m.second = value));
            }
            TimePart::Fraction => {}
            TimePart::Offset => return self.read_offset(text),
            TimePart::Letters => {
                let rest = text.trim_start_matches(|letter: char| letter.is_ascii_alphabetic());
                return (rest.len() < text.len()).then_some(rest);
            }
            TimePart::Epoch(per_s) => return self.read_epoch(text, *per_s),
        }
        let after = text.strip_prefix(['.', ',']).unwrap_or(text);
        let (fraction_ns, rest) = fraction(after)?;
        self.fraction_ns = fraction_ns;
        // A dot without digits is no fraction.
        Some(if rest.len() == after.len() { text } else { rest })
    }

    fn set<'t>(&mut self, rest: &'t str, change: impl FnOnce(&mut Moment)) -> &'t str {
        change(self);
        rest
    }

    fn read_offset<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        if let Some(rest) = text.strip_prefix(['Z', 'z']) {
            return Some(rest);
        }
        let sign = match text.as_bytes().first()? {
            b'+' => 1,
            b'-' => -1,
            _ => return None,
        };
        let (hours, rest) = digits(text.get(1..)?, 2)?;
        let rest = rest.strip_prefix(':').unwrap_or(rest);
        let (minutes, rest) = digits(rest, 2)?;
        self.offset_s = sign * (hours * 3600 + minutes * 60);
        Some(rest)
    }

    fn read_epoch<'t>(&mut self, text: &'t str, per_s: i64) -> Option<&'t str> {
        let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
        let (whole, rest) = text.split_at(end);
        let ns = whole.parse::<i64>().ok()?.checked_mul(NS_PER_S / per_s)?;
        let (fraction_ns, rest) = match rest.strip_prefix('.') {
            // A text of digits may follow that is a field of its own.
            Some(after) if per_s == 1 && after.starts_with(|next: char| next.is_ascii_digit()) => {
                fraction(after)?
            }
            _ => (0, rest),
        };
        self.epoch_ns = Some(ns.checked_add(fraction_ns)?);
        Some(rest)
    }

    /// Nanoseconds since 1970. `None`: no field was a date.
    pub(crate) fn ns(&self) -> Option<i64> {
        if let Some(epoch_ns) = self.epoch_ns {
            return epoch_ns.checked_add(self.fraction_ns);
        }
        let days = days_since_1970(self.year?, self.month, self.day)?;
        let hour = self.hour + if self.is_afternoon { 12 } else { 0 };
        let of_day_s = hour * 3600 + self.minute * 60 + self.second - self.offset_s;
        (days * 86_400 + of_day_s).checked_mul(NS_PER_S)?.checked_add(self.fraction_ns)
    }
}

/// Returns the number that exactly this many digits are.
fn digits(text: &str, count: usize) -> Option<(i64, &str)> {
    let number = text.get(..count)?;
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| Some((number.parse().ok()?, text.get(count..)?)))?
}

/// Returns the number of two digits, of which the first may be a blank.
fn two(text: &str, least: i64, most: i64) -> Option<(i64, &str)> {
    let (value, rest) = match text.strip_prefix(' ') {
        Some(after) => digits(after, 1)?,
        None => digits(text, 2)?,
    };
    (least..=most).contains(&value).then_some((value, rest))
}

/// Returns the digits at the begin as the nanoseconds that they are after a decimal point.
fn fraction(text: &str) -> Option<(i64, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let mut ns = 0;
    for place in 0..9 {
        let digit =
            text.as_bytes().get(place).filter(|_| place < end).map_or(0, |byte| i64::from(byte - b'0'));
        ns = ns * 10 + digit;
    }
    Some((ns, text.get(end..)?))
}

/// Days of the Gregorian calendar. `None`: there is no such day.
fn days_since_1970(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let lengths = [31, if is_leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let index = usize::try_from(month - 1).ok()?;
    if !(1..=*lengths.get(index)?).contains(&day) {
        return None;
    }
    let years_before = year - 1;
    let days_before_year = years_before * 365 + years_before / 4 - years_before / 100 + years_before / 400;
    const DAYS_BEFORE_1970: i64 = 719_162;
    Some(days_before_year - DAYS_BEFORE_1970 + lengths[..index].iter().sum::<i64>() + day - 1)
}

/// Reads a time that is a number or a text of any usual shape.
pub(crate) fn any_time(text: &str) -> Option<i64> {
    for parts in [iso_time(), common_log_time(), vec![TimePart::Epoch(1)]] {
        let mut moment = Moment::default();
        let text = text.trim_start_matches('[').trim_end_matches(']');
        if moment.read(&parts, text).is_ok_and(str::is_empty) {
            return moment.ns();
        }
    }
    // A blank in place of the T, and no offset.
    let mut moment = Moment::default();
    let mut parts = iso_time();
    parts.pop();
    let with_letter = text.replacen(' ', "T", 1);
    let rest = moment.read(&parts, &with_letter).ok()?;
    let rest = rest.trim_start();
    (rest.is_empty() || moment.read_offset(rest).is_some_and(str::is_empty)).then(|| moment.ns())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_every_usual_shape_are_the_same_moment() {
        let expected = Some(1_795_894_804 * NS_PER_S);
        for text in [
            "28/Nov/2026:19:40:04 +0000",
            "[28/Nov/2026:20:40:04 +0100]",
            "2026-11-28T19:40:04Z",
            "2026-11-28T14:10:04-05:30",
            "2026-11-28 19:40:04",
            "1795894804",
        ] {
            assert_eq!(any_time(text), expected, "{text}");
        }
        assert_eq!(any_time("1795894804.25"), Some(1_795_894_804_250_000_000));
        assert_eq!(any_time("2026-11-28T19:40:04.123456789Z"), Some(1_795_894_804_123_456_789));
        for text in
            ["", "29/Feb/2026:00:00:00 +0000", "28/Nov/2026", "99999999999999999999", "2026-13-01T00:00:00Z"]
        {
            assert_eq!(any_time(text), None, "{text}");
        }
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(days_since_1970(1970, 1, 1), Some(0));
        assert_eq!(days_since_1970(2000, 2, 29), Some(11_016));
        assert_eq!(days_since_1970(2100, 3, 1), Some(47_541));
    }

    #[test]
    fn a_format_of_strftime_is_read() {
        let parts = time_parts("%d/%b/%y %I:%M:%S %p").unwrap();
        let mut moment = Moment::default();
        assert_eq!(moment.read(&parts, "28/Nov/26 07:40:04 PM rest"), Ok(" rest"));
        assert_eq!(moment.ns(), Some(1_795_894_804 * NS_PER_S));
        assert_eq!(time_parts("%Q"), None);
    }
}
