//! Values of the binary protocol as the text protocol would show them.

use std::io::Write;

use crate::column::{ColumnType, UNSIGNED, ZEROFILL};
use crate::error::ProtocolError;
use crate::frame::Fields;

const TINY: u8 = 1;
const SHORT: u8 = 2;
const LONG: u8 = 3;
const FLOAT: u8 = 4;
const DOUBLE: u8 = 5;
const NULL: u8 = 6;
const TIMESTAMP: u8 = 7;
const LONGLONG: u8 = 8;
const INT24: u8 = 9;
const DATE: u8 = 10;
const TIME: u8 = 11;
const DATETIME: u8 = 12;
const YEAR: u8 = 13;

/// `decimals` of a number whose digits after the point are up to its value.
const DECIMALS_FREE: u8 = 31;
const MICROSECOND_DIGITS: usize = 6;
/// Significant digits that the server shows of a FLOAT.
const FLOAT_DIGITS: usize = 6;
/// Numbers are written out if their first digit stands at most this many places before or behind the point.
const POINT_MAX: i32 = 15;

/// The fields of one row as text. Made once and used again for each row.
#[derive(Clone, Debug, Default)]
pub struct RowText {
    bytes: Vec<u8>,
    /// Where each field ends in `bytes`; `None` after a NULL.
    ends: Vec<Option<usize>>,
}

impl RowText {
    pub fn new() -> RowText {
        RowText::default()
    }

    /// Number of fields.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The fields in order, `None` for NULL.
    pub fn fields(&self) -> impl Iterator<Item = Option<&[u8]>> {
        let mut begin = 0;
        self.ends.iter().map(move |end| {
            let end = (*end)?;
            let field = self.bytes.get(begin..end);
            begin = end;
            field
        })
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub(crate) fn push(&mut self, field: Option<&[u8]>) {
        if let Some(field) = field {
            self.bytes.extend_from_slice(field);
        }
        self.ends.push(field.map(|_| self.bytes.len()));
    }

    pub(crate) fn decode_binary(&mut self, packet: &[u8], types: &[ColumnType]) -> Result<(), ProtocolError> {
        let mut fields = Fields::new(packet);
        fields.u8("first byte")?;
        // The first two bits of the map are not used.
        let nulls = fields.take((types.len() + 7 + 2) / 8, "map of NULLs")?;
        for (place, column) in types.iter().enumerate() {
            let bit = place + 2;
            let is_null = nulls[bit / 8] & (1 << (bit % 8)) != 0 || column.code == NULL;
            if is_null {
                self.ends.push(None);
                continue;
            }
            self.value(&mut fields, column)?;
            self.ends.push(Some(self.bytes.len()));
        }
        match fields.rest() {
            [] => Ok(()),
            [byte, ..] => {
                Err(ProtocolError::Unexpected { byte: *byte, place: "after the last field of a row" })
            }
        }
    }

    fn value(&mut self, fields: &mut Fields<'_>, column: &ColumnType) -> Result<(), ProtocolError> {
        const FIELD: &str = "field of a row";
        match column.code {
            TINY => {
                let raw = fields.u8(FIELD)?;
                self.integer(column, i64::from(raw as i8), u64::from(raw));
            }
            SHORT => {
                let raw = fields.u16(FIELD)?;
                self.integer(column, i64::from(raw as i16), u64::from(raw));
            }
            YEAR => {
                let year = fields.u16(FIELD)?;
                self.write(format_args!("{year:04}"));
            }
            LONG | INT24 => {
                let raw = fields.u32(FIELD)?;
                self.integer(column, i64::from(raw as i32), u64::from(raw));
            }
            LONGLONG => {
                let raw = fields.u64(FIELD)?;
                self.integer(column, raw as i64, raw);
            }
            FLOAT => {
                let value = f32::from_bits(fields.u32(FIELD)?);
                self.float(column, f64::from(value), true);
            }
            DOUBLE => {
                let value = f64::from_bits(fields.u64(FIELD)?);
                self.float(column, value, false);
            }
            DATE | DATETIME | TIMESTAMP => self.date(fields, column)?,
            TIME => self.time(fields, column)?,
            _ => self.bytes.extend_from_slice(fields.bytes(FIELD)?),
        }
        Ok(())
    }

    fn write(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to memory can't fail.
        let _ = self.bytes.write_fmt(text);
    }

    fn integer(&mut self, column: &ColumnType, signed: i64, unsigned: u64) {
        if column.flags & ZEROFILL != 0 {
            let width = column.width.min(255) as usize;
            self.write(format_args!("{unsigned:0width$}"));
        } else if column.flags & UNSIGNED != 0 {
            self.write(format_args!("{unsigned}"));
        } else {
            self.write(format_args!("{signed}"));
        }
    }

    fn float(&mut self, column: &ColumnType, value: f64, is_single: bool) {
        let begin = self.bytes.len();
        if column.decimals < DECIMALS_FREE {
            let decimals = usize::from(column.decimals);
            self.write(format_args!("{value:.decimals$}"));
        } else {
            self.free_float(value, is_single);
        }
        if column.flags & ZEROFILL != 0 {
            let missing = (column.width.min(255) as usize).saturating_sub(self.bytes.len() - begin);
            self.bytes.splice(begin..begin, std::iter::repeat_n(b'0', missing));
        }
    }

    /// The fewest digits that give the number back, six at most for a FLOAT; with an exponent where it is large or small.
    fn free_float(&mut self, value: f64, is_single: bool) {
        if value == 0.0 || !value.is_finite() {
            self.write(format_args!("{}", if value.is_finite() { 0.0 } else { value }));
            return;
        }
        let scientific =
            if is_single { format!("{value:.*e}", FLOAT_DIGITS - 1) } else { format!("{value:e}") };
        let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let mantissa = if mantissa.contains('.') {
            mantissa.trim_end_matches('0').trim_end_matches('.')
        } else {
            mantissa
        };
        // The place of the point, counted from before the first digit.
        let point = exponent + 1;
        if !(1 - POINT_MAX..=POINT_MAX).contains(&point) {
            self.write(format_args!("{mantissa}e{exponent}"));
            return;
        }
        let digits = mantissa.chars().filter(char::is_ascii_digit).count() as i32;
        let decimals = (digits - point).max(0) as usize;
        match mantissa.parse::<f64>() {
            // A FLOAT's digits after the sixth are not shown: those that are left give the number to print.
            Ok(_) if is_single => {
                let rounded: f64 = format!("{mantissa}e{exponent}").parse().unwrap_or(value);
                self.write(format_args!("{rounded:.decimals$}"));
            }
            _ => self.write(format_args!("{value:.decimals$}")),
        }
    }

    fn date(&mut self, fields: &mut Fields<'_>, column: &ColumnType) -> Result<(), ProtocolError> {
        let length = fields.u8("length of a date")?;
        let mut parts = Fields::new(fields.take(usize::from(length), "date")?);
        let (mut year, mut month, mut day) = (0, 0, 0);
        if length > 0 {
            year = parts.u16("year")?;
            month = parts.u8("month")?;
            day = parts.u8("day")?;
        }
        self.write(format_args!("{year:04}-{month:02}-{day:02}"));
        if column.code == DATE {
            return Ok(());
        }
        let (mut hour, mut minute, mut second) = (0, 0, 0);
        if length > 4 {
            hour = parts.u8("hour")?;
            minute = parts.u8("minute")?;
            second = parts.u8("second")?;
        }
        let microsecond = if length > 7 { parts.u32("microsecond")? } else { 0 };
        self.write(format_args!(" {hour:02}:{minute:02}:{second:02}"));
        self.fraction(column, microsecond);
        Ok(())
    }

    fn time(&mut self, fields: &mut Fields<'_>, column: &ColumnType) -> Result<(), ProtocolError> {
        let length = fields.u8("length of a time")?;
        let mut parts = Fields::new(fields.take(usize::from(length), "time")?);
        let (mut negative, mut days, mut hour, mut minute, mut second) = (0, 0, 0, 0, 0);
        if length > 0 {
            negative = parts.u8("sign")?;
            days = parts.u32("days")?;
            hour = parts.u8("hour")?;
            minute = parts.u8("minute")?;
            second = parts.u8("second")?;
        }
        let microsecond = if length > 8 { parts.u32("microsecond")? } else { 0 };
        let sign = if negative != 0 { "-" } else { "" };
        let hours = u64::from(days) * 24 + u64::from(hour);
        self.write(format_args!("{sign}{hours:02}:{minute:02}:{second:02}"));
        self.fraction(column, microsecond);
        Ok(())
    }

    fn fraction(&mut self, column: &ColumnType, microsecond: u32) {
        let digits = usize::from(column.decimals).min(MICROSECOND_DIGITS);
        if digits == 0 || column.decimals == DECIMALS_FREE {
            return;
        }
        let all = format!("{microsecond:06}");
        self.write(format_args!(".{}", &all[..digits]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(code: u8, flags: u16, width: u32, decimals: u8) -> ColumnType {
        ColumnType { code, flags, collation: 63, width, decimals }
    }

    fn decoded(column: ColumnType, value: &[u8]) -> String {
        let mut packet = vec![0, 0];
        packet.extend_from_slice(value);
        let mut text = RowText::new();
        text.decode_binary(&packet, &[column]).unwrap();
        let field = text.fields().next().unwrap().unwrap().to_vec();
        String::from_utf8(field).unwrap()
    }

    #[test]
    fn integers_have_their_sign_and_their_zeros() {
        assert_eq!(decoded(column(TINY, 0, 4, 0), &[0xff]), "-1");
        assert_eq!(decoded(column(TINY, UNSIGNED, 3, 0), &[0xff]), "255");
        assert_eq!(decoded(column(LONG, UNSIGNED | ZEROFILL, 5, 0), &[42, 0, 0, 0]), "00042");
        assert_eq!(decoded(column(LONGLONG, 0, 20, 0), &i64::MIN.to_le_bytes()), i64::MIN.to_string());
        assert_eq!(decoded(column(YEAR, UNSIGNED, 4, 0), &[0xd0, 7]), "2000");
    }

    #[test]
    fn doubles_are_shown_as_the_server_shows_them() {
        for (value, text) in [
            (1.0, "1"),
            (0.1, "0.1"),
            (-2.5, "-2.5"),
            (1e14, "100000000000000"),
            (1e15, "1e15"),
            (1.5e20, "1.5e20"),
            (1e-14, "0.00000000000001"),
            (1e-16, "1e-16"),
            (1.0 / 3.0, "0.3333333333333333"),
            (0.0, "0"),
        ] {
            assert_eq!(decoded(column(DOUBLE, 0, 22, 31), &f64::to_le_bytes(value)), text);
        }
        assert_eq!(decoded(column(DOUBLE, 0, 10, 2), &f64::to_le_bytes(1.0)), "1.00");
        assert_eq!(decoded(column(FLOAT, 0, 12, 31), &f32::to_le_bytes(0.1)), "0.1");
        assert_eq!(decoded(column(FLOAT, 0, 12, 31), &f32::to_le_bytes(123_456_789.0)), "123457000");
    }

    #[test]
    fn times_have_the_digits_that_their_column_has() {
        let at = [11, 0xea, 7, 11, 21, 23, 5, 9, 0x40, 0xe2, 1, 0];
        assert_eq!(decoded(column(DATETIME, 0, 26, 6), &at), "2026-11-21 23:05:09.123456");
        assert_eq!(decoded(column(TIMESTAMP, 0, 22, 3), &at), "2026-11-21 23:05:09.123");
        assert_eq!(decoded(column(DATETIME, 0, 19, 0), &[0]), "0000-00-00 00:00:00");
        assert_eq!(decoded(column(DATE, 0, 10, 0), &[4, 0xea, 7, 11, 21]), "2026-11-21");
        assert_eq!(decoded(column(TIME, 0, 10, 0), &[8, 1, 1, 0, 0, 0, 2, 3, 4]), "-26:03:04");
    }

    #[test]
    fn nulls_differ_from_empty_texts() {
        let text = column(253, 0, 10, 0);
        let mut row = RowText::new();
        row.decode_binary(&[0, 0b1000, 1, b'a', 0], &[text, text, text]).unwrap();
        let fields: Vec<_> = row.fields().collect();
        assert_eq!(fields, [Some(&b"a"[..]), None, Some(&b""[..])]);
    }
}
