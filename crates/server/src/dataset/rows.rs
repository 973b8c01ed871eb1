//! The rows of a data set. Each is a function of seed, table and id only. So any connection can generate any part, in
//! any order and by any method, with the same result.

use whyso_random::SplitMix64;

/// Digits in a row: ten groups of eleven in `c`, five in `pad`.
const GROUP: usize = 11;
const GROUPS_OF_C: usize = 10;
const GROUPS_OF_PAD: usize = 5;
/// Length of `c`: the groups joined by dashes.
pub(crate) const C_BYTES: usize = GROUPS_OF_C * (GROUP + 1) - 1;
pub(crate) const PAD_BYTES: usize = GROUPS_OF_PAD * (GROUP + 1) - 1;
/// The longest row in either form: two numbers of ten digits, quotes and separators.
pub(crate) const MAX_ROW_BYTES: usize = 10 + 10 + C_BYTES + PAD_BYTES + 12;

/// How rows are written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `id TAB k TAB c TAB pad NEWLINE`, the default of `LOAD DATA`.
    Lines,
    /// `(id,k,'c','pad'),`
    Values,
}

/// Appends rows `first_id..=last_id` of a table with `rows` rows.
pub(crate) fn append(
    out: &mut Vec<u8>,
    form: Form,
    seed: u64,
    table: u32,
    rows: u64,
    first_id: u64,
    last_id: u64,
) {
    let count = (last_id + 1).saturating_sub(first_id) as usize;
    out.reserve(count * MAX_ROW_BYTES);
    let mut c = [b'-'; C_BYTES];
    let mut pad = [b'-'; PAD_BYTES];
    for id in first_id..=last_id {
        let mut random = random_of_row(seed, table, id);
        let k = 1 + random.below(rows);
        let mut digits = Digits::new(random);
        digits.fill(&mut c);
        digits.fill(&mut pad);
        match form {
            Form::Lines => {
                append_number(out, id);
                out.push(b'\t');
                append_number(out, k);
                out.push(b'\t');
                out.extend_from_slice(&c);
                out.push(b'\t');
                out.extend_from_slice(&pad);
                out.push(b'\n');
            }
            Form::Values => {
                out.push(b'(');
                append_number(out, id);
                out.push(b',');
                append_number(out, k);
                out.extend_from_slice(b",'");
                out.extend_from_slice(&c);
                out.extend_from_slice(b"','");
                out.extend_from_slice(&pad);
                out.extend_from_slice(b"'),");
            }
        }
    }
}

fn append_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// The generator of one row, which needs no row before it.
fn random_of_row(seed: u64, table: u32, id: u64) -> SplitMix64 {
    let mut of_table = SplitMix64::new(seed ^ (u64::from(table) << 32).wrapping_add(0x5bd1_e995));
    SplitMix64::new(of_table.next_u64() ^ id.wrapping_mul(0xd6e8_feb8_6659_fd93))
}

/// The four digits of every number below 10,000.
static FOUR_DIGITS: [[u8; 4]; 10_000] = four_digits();

const fn four_digits() -> [[u8; 4]; 10_000] {
    let mut table = [[0_u8; 4]; 10_000];
    let mut number = 0;
    while number < 10_000 {
        table[number] = [
            b'0' + (number / 1000) as u8,
            b'0' + (number / 100 % 10) as u8,
            b'0' + (number / 10 % 10) as u8,
            b'0' + (number % 10) as u8,
        ];
        number += 1;
    }
    table
}

/// Random digits, twelve for a step of the generator: three draws of 21 bits from 10,000.
struct Digits {
    random: SplitMix64,
}

impl Digits {
    fn new(random: SplitMix64) -> Digits {
        Digits { random }
    }

    /// Fills groups of eleven digits and leaves what is between them.
    fn fill(&mut self, text: &mut [u8]) {
        for group in text.chunks_mut(GROUP + 1) {
            let bits = self.random.next_u64();
            let draw = |shift: u32| &FOUR_DIGITS[((((bits >> shift) & 0x1f_ffff) * 10_000) >> 21) as usize];
            group[0..4].copy_from_slice(draw(0));
            group[4..8].copy_from_slice(draw(21));
            group[8..11].copy_from_slice(&draw(42)[..3]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(form: Form, seed: u64, table: u32, first: u64, last: u64) -> String {
        let mut out = Vec::new();
        append(&mut out, form, seed, table, 1000, first, last);
        String::from_utf8(out).unwrap()
    }

    /// A snapshot of one version is compared with rows of another.
    #[test]
    fn a_row_is_the_same_in_every_version() {
        assert_eq!(
            text(Form::Lines, 7, 2, 3, 3),
            "3\t665\t51402231932-50007124618-80874171066-21303847233-22493270181-26977771115-63759925307-\
             14202859633-77332195158-40848826294\t34766382868-04095295808-02260487371-18777704015-96012531179\n"
        );
    }

    #[test]
    fn rows_have_sysbench_s_shape() {
        let lines = text(Form::Lines, 1, 1, 1, 200);
        assert_eq!(lines.lines().count(), 200);
        for (index, line) in lines.lines().enumerate() {
            let fields: Vec<&str> = line.split('\t').collect();
            assert_eq!(fields.len(), 4);
            assert_eq!(fields[0], (index + 1).to_string());
            assert!((1..=1000).contains(&fields[1].parse::<u64>().unwrap()));
            for (field, groups, length) in [(fields[2], 10, 119), (fields[3], 5, 59)] {
                assert_eq!(field.len(), length);
                assert_eq!(field.split('-').count(), groups);
                assert!(
                    field
                        .split('-')
                        .all(|group| group.len() == 11 && group.bytes().all(|byte| byte.is_ascii_digit()))
                );
            }
            assert!(line.len() < MAX_ROW_BYTES);
        }
    }

    #[test]
    fn parts_of_a_table_make_the_whole_and_forms_hold_the_same() {
        let whole = text(Form::Lines, 7, 3, 1, 50);
        assert_eq!(whole, text(Form::Lines, 7, 3, 1, 20) + &text(Form::Lines, 7, 3, 21, 50));
        assert_ne!(whole, text(Form::Lines, 8, 3, 1, 50));
        assert_ne!(whole, text(Form::Lines, 7, 4, 1, 50));
        let values = text(Form::Values, 7, 3, 1, 50);
        let as_lines = values.replace("),", "\n").replace(['(', '\''], "").replace(',', "\t");
        assert_eq!(as_lines, whole);
        assert_eq!(text(Form::Values, 7, 3, 5, 4), "");
    }

    #[test]
    fn digits_and_keys_are_spread_evenly() {
        let mut counts = [0_u64; 10];
        let mut keys = [0_u64; 10];
        for line in text(Form::Lines, 42, 1, 1, 10_000).lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            for digit in fields[2].bytes().filter(u8::is_ascii_digit) {
                counts[usize::from(digit - b'0')] += 1;
            }
            keys[(fields[1].parse::<usize>().unwrap() - 1) / 100] += 1;
        }
        // 1.1 million digits: a tenth each, within five standard deviations
        assert!(counts.iter().all(|count| count.abs_diff(110_000) < 5 * 315), "{counts:?}");
        assert!(keys.iter().all(|count| count.abs_diff(1000) < 5 * 30), "{keys:?}");
    }
}
