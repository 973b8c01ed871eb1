//! Samples as bytes: what the page decodes on demand.
//!
//! A block holds some thirty series and is deflated as a whole. In it, every series is its length as a varint, then:
//!
//! | field | as |
//! | --- | --- |
//! | form | a byte: 0 integers, 1 decimals, 2 floats |
//! | scale | a byte, decimals only: values are integers ÷ 10^scale |
//! | count | varint, missing values included |
//! | missing | varint count, then the distance of each missing position from the one before |
//! | integers, decimals | first value, then the median step, then each step less the median; zigzag varints |
//! | floats | each value's bits XOR the bits before, as eight planes of one byte per value, highest byte first |
//!
//! With the median step, a counter that grows evenly becomes a row of zeros, which deflates to nothing. The steps of a busy
//! counter shrink to their noise. Decoding gives exactly the bits that went in (every missing value comes back as the one NaN).

/// Integers up to here survive the page's arithmetic, which is exact to 2^53: zigzag doubles them.
const INT_MAX: i64 = 1 << 52;
const DECIMALS_MAX: u8 = 9;

const FORM_INTEGERS: u8 = 0;
const FORM_DECIMALS: u8 = 1;
const FORM_FLOATS: u8 = 2;

/// Appends one series to a block. NaN stands for a missing value.
pub fn append(block: &mut Vec<u8>, values: &[f64]) {
    let bytes = encode(values);
    put_varint(block, bytes.len() as u64);
    block.extend_from_slice(&bytes);
}

/// Returns one series as bytes, without its length.
pub fn encode(values: &[f64]) -> Vec<u8> {
    let present: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    let mut out = Vec::with_capacity(values.len() * 2 + 16);

    if let Some((scale, scaled)) = as_integers(&present) {
        if scale == 0 {
            out.push(FORM_INTEGERS);
        } else {
            out.push(FORM_DECIMALS);
            out.push(scale);
        }
        put_missing(&mut out, values);
        put_steps(&mut out, &scaled);
    } else {
        out.push(FORM_FLOATS);
        put_missing(&mut out, values);
        put_float_planes(&mut out, &present);
    }
    out
}

/// The values times 10^scale, with the smallest scale at which all of them are integers and come back exactly.
fn as_integers(values: &[f64]) -> Option<(u8, Vec<i64>)> {
    let mut scaled = Vec::with_capacity(values.len());
    'scales: for scale in 0..=DECIMALS_MAX {
        let factor = 10f64.powi(i32::from(scale));
        scaled.clear();
        for value in values {
            let integer = (value * factor).round();
            // By way of i64, so that a negative zero counts as a float.
            let is_exact = integer.abs() <= INT_MAX as f64
                && (integer as i64 as f64 / factor).to_bits() == value.to_bits();
            if !is_exact {
                continue 'scales;
            }
            scaled.push(integer as i64);
        }
        let median = median_step(&scaled);
        let fits = median.abs() <= INT_MAX
            && scaled.windows(2).all(|pair| (pair[1] - pair[0] - median).abs() <= INT_MAX);
        return fits.then_some((scale, scaled));
    }
    None
}

fn put_missing(out: &mut Vec<u8>, values: &[f64]) {
    put_varint(out, values.len() as u64);
    let missing = values.iter().filter(|value| value.is_nan()).count();
    put_varint(out, missing as u64);
    let mut last = 0;
    for (position, value) in values.iter().enumerate() {
        if value.is_nan() {
            put_varint(out, (position - last) as u64);
            last = position;
        }
    }
}

fn put_steps(out: &mut Vec<u8>, values: &[i64]) {
    let Some(first) = values.first() else { return };
    let median = median_step(values);
    put_varint(out, zigzag(*first));
    put_varint(out, zigzag(median));
    for pair in values.windows(2) {
        put_varint(out, zigzag(pair[1] - pair[0] - median));
    }
}

fn median_step(values: &[i64]) -> i64 {
    let mut steps: Vec<i64> = values.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if steps.is_empty() {
        return 0;
    }
    let middle = steps.len() / 2;
    *steps.select_nth_unstable(middle).1
}

fn put_float_planes(out: &mut Vec<u8>, values: &[f64]) {
    let mut before = 0u64;
    let mut mixed = Vec::with_capacity(values.len());
    for value in values {
        mixed.push(value.to_bits() ^ before);
        before = value.to_bits();
    }
    for plane in (0..8).rev() {
        out.extend(mixed.iter().map(|bits| (bits >> (plane * 8)) as u8));
    }
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test reads and updates its vectors")]

    use super::*;
    use proptest::prelude::*;

    /// The reader's side, as the page has it in `web/src/data/codec.ts`.
    fn decode(bytes: &[u8]) -> Vec<f64> {
        let mut at = 0;
        let form = take_byte(bytes, &mut at);
        let factor =
            if form == FORM_DECIMALS { 10f64.powi(i32::from(take_byte(bytes, &mut at))) } else { 1.0 };
        let count = take_varint(bytes, &mut at) as usize;
        let missing_count = take_varint(bytes, &mut at) as usize;
        let mut values = vec![0.0; count];
        let mut position = 0;
        for _ in 0..missing_count {
            position += take_varint(bytes, &mut at) as usize;
            values[position] = f64::NAN;
        }
        let present: Vec<usize> = (0..count).filter(|index| !values[*index].is_nan()).collect();
        if form == FORM_FLOATS {
            let mut before = 0u64;
            for (order, index) in present.iter().enumerate() {
                let mut bits = 0u64;
                for plane in 0..8 {
                    bits = bits << 8 | u64::from(bytes[at + plane * present.len() + order]);
                }
                before ^= bits;
                values[*index] = f64::from_bits(before);
            }
            return values;
        }
        let mut value = 0;
        let mut median = 0;
        for (order, index) in present.iter().enumerate() {
            if order == 0 {
                value = unzigzag(take_varint(bytes, &mut at));
                median = unzigzag(take_varint(bytes, &mut at));
            } else {
                value += median + unzigzag(take_varint(bytes, &mut at));
            }
            values[*index] = value as f64 / factor;
        }
        values
    }

    fn take_byte(bytes: &[u8], at: &mut usize) -> u8 {
        *at += 1;
        bytes[*at - 1]
    }

    fn take_varint(bytes: &[u8], at: &mut usize) -> u64 {
        let mut value = 0;
        let mut shift = 0;
        loop {
            let byte = take_byte(bytes, at);
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return value;
            }
            shift += 7;
        }
    }

    fn unzigzag(value: u64) -> i64 {
        (value >> 1) as i64 ^ -((value & 1) as i64)
    }

    /// The page reckons in floats: nothing that it reads may be beyond 2^53.
    fn assert_page_can_read(bytes: &[u8]) {
        if bytes[0] == FORM_FLOATS {
            return;
        }
        let mut at = if bytes[0] == FORM_DECIMALS { 2 } else { 1 };
        while at < bytes.len() {
            assert!(take_varint(bytes, &mut at) <= 1 << 53);
        }
    }

    fn assert_comes_back(values: &[f64]) {
        assert_page_can_read(&encode(values));
        let back = decode(&encode(values));
        assert_eq!(values.len(), back.len());
        for (went_in, came_out) in values.iter().zip(&back) {
            let same = went_in.to_bits() == came_out.to_bits() || (went_in.is_nan() && came_out.is_nan());
            assert!(same, "{went_in:?} came back as {came_out:?}");
        }
    }

    proptest! {
        #[test]
        fn integers_come_back(values in prop::collection::vec(-(1i64 << 53)..(1i64 << 53), 0..200)) {
            assert_comes_back(&values.iter().map(|value| *value as f64).collect::<Vec<_>>());
        }

        #[test]
        fn decimals_come_back(values in prop::collection::vec(-1_000_000i64..1_000_000, 0..200), scale in 0i32..6) {
            assert_comes_back(&values.iter().map(|value| *value as f64 / 10f64.powi(scale)).collect::<Vec<_>>());
        }

        #[test]
        fn any_float_comes_back(bits in prop::collection::vec(any::<u64>(), 0..100)) {
            assert_comes_back(&bits.iter().map(|bits| f64::from_bits(*bits)).collect::<Vec<_>>());
        }

        #[test]
        fn missing_values_stay_where_they_were(values in prop::collection::vec(prop::option::of(0i32..1000), 0..200)) {
            let with_gaps: Vec<f64> = values.iter().map(|value| value.map_or(f64::NAN, f64::from)).collect();
            assert_comes_back(&with_gaps);
        }
    }

    #[test]
    fn a_median_step_beyond_the_pages_integers_is_written_as_floats() {
        assert_comes_back(&[-INT_MAX as f64, INT_MAX as f64]);
    }

    #[test]
    fn a_steady_counter_costs_a_byte_a_sample_before_deflate() {
        let values: Vec<f64> = (0..1000).map(|second| f64::from(second) * 250_000.0).collect();
        assert!(encode(&values).len() < 1020);
    }

    #[test]
    fn negative_zero_and_infinities_come_back() {
        assert_comes_back(&[-0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE]);
    }

    /// The page's tests decode the same bytes: see `web/tests/unit/codec.test.ts`. `UPDATE_EXPECT=1` writes them again.
    #[test]
    fn the_bytes_that_the_page_is_tested_with_are_what_we_write() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/tests/unit/codec-vectors.json");
        let mut vectors: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let updates = std::env::var_os("UPDATE_EXPECT").is_some();
        for vector in vectors.as_array_mut().unwrap() {
            let values: Vec<f64> = vector["values"]
                .as_array()
                .unwrap()
                .iter()
                .map(|value| value.as_f64().unwrap_or(f64::NAN))
                .collect();
            let hex: String = encode(&values).iter().map(|byte| format!("{byte:02x}")).collect();
            if updates {
                vector["hex"] = hex.into();
            } else {
                assert_eq!(vector["hex"].as_str().unwrap(), hex, "{}", vector["name"]);
            }
        }
        if updates {
            std::fs::write(path, serde_json::to_string_pretty(&vectors).unwrap() + "\n").unwrap();
        }
    }
}
