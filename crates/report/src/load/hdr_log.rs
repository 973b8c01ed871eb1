//! The log format of HdrHistogram, version 1.3, as its tools in every language read it: a compressed V2 histogram an
//! interval and tag.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use whyso_record::data::LoadInterval;

/// Values are nanoseconds, up to an hour, with three digits.
const LOWEST_NS: u64 = 1;
const HIGHEST_NS: u64 = 3_600_000_000_000;
const DIGITS: u8 = 3;
/// The column of largest values is in milliseconds, as that of other writers is.
const NS_PER_MS: f64 = 1e6;

/// Writes a log, with these tags:
///
/// - all transactions: none for response times, "service" for service times;
/// - one kind of transaction: "transaction:" and "service:" with its name;
/// - one kind of statement: its name.
pub struct HdrLog<W: Write> {
    out: W,
    serializer: V2DeflateSerializer,
    origin_ns: i64,
}

impl<W: Write> HdrLog<W> {
    /// Begins a log whose times count from `origin_ns` (monotonic), which was `origin_wall_s` seconds since 1970.
    ///
    /// # Errors
    /// Where it can't be written.
    pub fn begin(mut out: W, origin_ns: i64, origin_wall_s: f64) -> io::Result<HdrLog<W>> {
        writeln!(out, "#[Logged with whyso {}]", env!("CARGO_PKG_VERSION"))?;
        writeln!(out, "#[Histogram log format version 1.3]")?;
        writeln!(out, "#[StartTime: {origin_wall_s:.3} (seconds since epoch)]")?;
        writeln!(out, "#[BaseTime: {origin_wall_s:.3} (seconds since epoch)]")?;
        writeln!(
            out,
            "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\""
        )?;
        Ok(HdrLog { out, serializer: V2DeflateSerializer::new(), origin_ns })
    }

    /// Writes what was measured in an interval; warm-ups are left out.
    ///
    /// # Errors
    /// Where it can't be written.
    pub fn write(&mut self, rows: &[LoadInterval]) -> io::Result<()> {
        for row in rows.iter().filter(|row| row.measured && row.count > 0) {
            if row.statement == "transaction" {
                self.line(row, "", &row.response)?;
                self.line(row, "service", &row.service)?;
                continue;
            }
            self.line(row, &row.statement, &row.response)?;
            if let Some(kind) = row.statement.strip_prefix("transaction:") {
                self.line(row, &format!("service:{kind}"), &row.service)?;
            }
        }
        Ok(())
    }

    /// Sees to it that everything is written.
    ///
    /// # Errors
    /// Where it can't be.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn line(&mut self, row: &LoadInterval, tag: &str, buckets: &[(u64, u64)]) -> io::Result<()> {
        let mut histogram =
            Histogram::<u64>::new_with_bounds(LOWEST_NS, HIGHEST_NS, DIGITS).map_err(io::Error::other)?;
        for &(upper_ns, count) in buckets {
            histogram.saturating_record_n(upper_ns.min(row.response_max_ns), count);
        }
        let mut bytes = Vec::new();
        self.serializer.serialize(&histogram, &mut bytes).map_err(io::Error::other)?;
        if !tag.is_empty() {
            // A tag ends at the first comma, and a line at its break.
            let plain: String = tag
                .chars()
                .map(|c| if c == ',' || c.is_whitespace() || c.is_control() { '_' } else { c })
                .collect();
            write!(self.out, "Tag={plain},")?;
        }
        writeln!(
            self.out,
            "{:.3},{:.3},{:.3},{}",
            (row.begin_ns - self.origin_ns) as f64 / 1e9,
            (row.end_ns - row.begin_ns) as f64 / 1e9,
            histogram.max() as f64 / NS_PER_MS,
            STANDARD.encode(&bytes)
        )
    }
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;

    fn row(statement: &str, measured: bool) -> LoadInterval {
        LoadInterval {
            begin_ns: 5_000_000_000,
            end_ns: 6_000_000_000,
            level: 0,
            measured,
            statement: statement.to_string(),
            count: 100,
            rows: 0,
            errors: Vec::new(),
            response_sum_ns: 0,
            service_sum_ns: 0,
            response_max_ns: 20_000_000,
            response: vec![(1_000_000, 99), (20_100_000, 1)],
            service: vec![(900_000, 100)],
        }
    }

    #[test]
    fn another_reader_finds_the_times_under_their_tags() {
        let mut bytes = Vec::new();
        let mut log = HdrLog::begin(&mut bytes, 4_000_000_000, 1_700_000_000.0).unwrap();
        log.write(&[row("transaction", true), row("point select,1", true), row("transaction", false)])
            .unwrap();
        let mut found = Vec::new();
        for entry in IntervalLogIterator::new(&bytes) {
            // The legend is neither comment nor interval to this reader.
            let Ok(LogEntry::Interval(interval)) = entry else { continue };
            let encoded = STANDARD.decode(interval.encoded_histogram()).unwrap();
            let times: Histogram<u64> = Deserializer::new().deserialize(&mut &encoded[..]).unwrap();
            let tag = interval.tag().map_or("", |tag| tag.as_str()).to_string();
            let p50_us = times.value_at_quantile(0.5) / 1000;
            found.push((tag, interval.start_timestamp().as_secs_f64(), times.len(), p50_us, interval.max()));
        }
        let [transaction, service, statement] = &found[..] else { panic!("{found:?}") };
        assert_eq!((transaction.0.as_str(), transaction.1, transaction.2), ("", 1.0, 100));
        assert!((990..=1010).contains(&transaction.3), "{transaction:?}");
        assert!(
            (19.9..20.2).contains(&transaction.4),
            "the largest value is in milliseconds: {transaction:?}"
        );
        assert_eq!((service.0.as_str(), service.2), ("service", 100));
        assert_eq!(statement.0, "point_select_1");
    }
}
