//! What the load did in each interval, as comma-separated values.

use std::fmt::Write;

use whyso_record::data::LoadInterval;

/// The names of the columns.
pub const CSV_HEADER: &str = "begin_s,end_s,level,workload,users,measured,kind,count,per_s,errors,rows,mean_ms,p50_ms,p95_ms,\
                              p99_ms,p999_ms,max_ms,service_mean_ms,backlog";

/// Returns one line per kind of statement, whole transactions first. Times are seconds since `origin_ns`; a latency of nothing is left empty.
pub fn csv_rows(
    rows: &[LoadInterval],
    origin_ns: i64,
    workload: &str,
    users: u32,
    backlog: Option<u64>,
) -> String {
    let mut out = String::new();
    for row in rows {
        let seconds = (row.end_ns - row.begin_ns) as f64 / 1e9;
        let errors: u64 = row.errors.iter().map(|(_, count)| count).sum();
        let per_s = if seconds > 0.0 { row.count as f64 / seconds } else { 0.0 };
        let ms = |ns: f64| if row.count > 0 { format!("{:.4}", ns / 1e6) } else { String::new() };
        let quantile = |quantile: f64| {
            let upper_ns = whyso_series::quantile_of_buckets(&row.response, quantile);
            upper_ns.map_or(String::new(), |upper_ns| ms(upper_ns.min(row.response_max_ns) as f64))
        };
        let mean = |sum_ns: u64| ms(sum_ns as f64 / row.count.max(1) as f64);
        let backlog = backlog.map_or(String::new(), |backlog| backlog.to_string());
        let _ = writeln!(
            out,
            "{:.3},{:.3},{},{},{users},{},{},{},{per_s:.1},{errors},{},{},{},{},{},{},{},{},{backlog}",
            (row.begin_ns - origin_ns) as f64 / 1e9,
            (row.end_ns - origin_ns) as f64 / 1e9,
            row.level,
            quoted(workload),
            row.measured,
            quoted(&row.statement),
            row.count,
            row.rows,
            mean(row.response_sum_ns),
            quantile(0.5),
            quantile(0.95),
            quantile(0.99),
            quantile(0.999),
            ms(row.response_max_ns as f64),
            mean(row.service_sum_ns),
        );
    }
    out
}

/// As RFC 4180 has it: within quotes where it holds a comma, a quote or a line break.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_value_for_each_column() {
        let row = LoadInterval {
            begin_ns: 1_000_000_000,
            end_ns: 2_000_000_000,
            level: 3,
            measured: true,
            statement: "transaction".to_string(),
            count: 4,
            rows: 8,
            errors: vec![("1213 (40001)".to_string(), 1)],
            response_sum_ns: 8_000_000,
            service_sum_ns: 4_000_000,
            response_max_ns: 5_000_000,
            response: vec![(1_000_000, 3), (5_100_000, 1)],
            service: Vec::new(),
        };
        let shown = csv_rows(std::slice::from_ref(&row), 0, "SELECT 1, 2", 16, Some(7));
        assert_eq!(
            shown,
            "1.000,2.000,3,\"SELECT 1, 2\",16,true,transaction,4,4.0,1,8,2.0000,1.0000,5.0000,5.0000,5.0000,5.0000,1.0000,7\n"
        );
        let empty = LoadInterval { count: 0, response: Vec::new(), ..row };
        let shown = csv_rows(&[empty], 0, "w", 1, None);
        assert_eq!(shown, "1.000,2.000,3,w,1,true,transaction,0,0.0,1,8,,,,,,,,\n");
        assert_eq!(shown.matches(',').count(), CSV_HEADER.matches(',').count());
    }
}
