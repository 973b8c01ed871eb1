//! The options of the built-in workloads, named as sysbench names them.

use crate::distribution::Distribution;
use crate::error::WorkloadError;
use crate::suggest::nearest_name;

/// What the built-in workloads can be asked for. The defaults are sysbench's.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Number of tables, `sbtest1` upwards; at least 1.
    pub tables: u32,
    /// Rows that each table was loaded with; at least 1, at most 2,000,000,000 (`id` is an INTEGER).
    pub table_size: u64,
    pub range_size: u64,
    pub point_selects: u32,
    pub simple_ranges: u32,
    pub sum_ranges: u32,
    pub order_ranges: u32,
    pub distinct_ranges: u32,
    /// `false` leaves out all four kinds of range in the mixed workloads.
    pub range_selects: bool,
    pub index_updates: u32,
    pub non_index_updates: u32,
    pub delete_inserts: u32,
    /// No BEGIN and COMMIT: every statement is its own transaction on the server.
    pub skip_trx: bool,
    pub rand_type: RandType,
    pub rand_spec_iter: u32,
    pub rand_spec_pct: u32,
    pub rand_spec_res: u32,
    pub rand_pareto_h: f64,
    pub rand_zipfian_exp: f64,
    /// Errors after which a transaction is rolled back and begun again; any other ends the level.
    pub mysql_ignore_errors: Vec<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RandType {
    Uniform,
    Zipfian,
    Pareto,
    Gaussian,
    Special,
}

/// Most rows that a table may have: `id` and `id + range_size` have to fit an INTEGER.
pub const ROWS_MAX: u64 = 2_000_000_000;
const RANGE_SIZE_MAX: u64 = 100_000_000;
const TABLES_MAX: u64 = 10_000;
const REPEAT_MAX: u64 = 100_000;

const NAMES: [&str; 20] = [
    "tables",
    "table_size",
    "range_size",
    "point_selects",
    "simple_ranges",
    "sum_ranges",
    "order_ranges",
    "distinct_ranges",
    "range_selects",
    "index_updates",
    "non_index_updates",
    "delete_inserts",
    "skip_trx",
    "rand-type",
    "rand-spec-iter",
    "rand-spec-pct",
    "rand-spec-res",
    "rand-pareto-h",
    "rand-zipfian-exp",
    "mysql-ignore-errors",
];

impl Default for Options {
    fn default() -> Options {
        Options {
            tables: 1,
            table_size: 10_000,
            range_size: 100,
            point_selects: 10,
            simple_ranges: 1,
            sum_ranges: 1,
            order_ranges: 1,
            distinct_ranges: 1,
            range_selects: true,
            index_updates: 1,
            non_index_updates: 1,
            delete_inserts: 1,
            skip_trx: false,
            rand_type: RandType::Special,
            rand_spec_iter: 12,
            rand_spec_pct: 1,
            rand_spec_res: 75,
            rand_pareto_h: 0.2,
            rand_zipfian_exp: 0.8,
            mysql_ignore_errors: vec![1213, 1020, 1205],
        }
    }
}

impl Options {
    /// Every option's name, as sysbench writes it.
    pub fn names() -> &'static [&'static str] {
        &NAMES
    }

    /// Sets one option from text. Dashes and underscores in the name are the same, as in sysbench.
    ///
    /// # Errors
    /// Unknown names (with the nearest valid one) and values out of range, in one sentence.
    ///
    /// ```
    /// let mut options = whyso_workload::Options::default();
    /// options.set("range-size", "50").unwrap();
    /// assert_eq!(options.range_size, 50);
    /// assert!(options.set("rang_size", "50").unwrap_err().to_string().contains("did you mean 'range_size'?"));
    /// ```
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), WorkloadError> {
        let plain = name.trim_start_matches("--").replace('-', "_");
        match plain.as_str() {
            "tables" => self.tables = whole(name, value, 1, TABLES_MAX)? as u32,
            "table_size" => self.table_size = whole(name, value, 1, ROWS_MAX)?,
            "range_size" => self.range_size = whole(name, value, 1, RANGE_SIZE_MAX)?,
            "point_selects" => self.point_selects = count(name, value)?,
            "simple_ranges" => self.simple_ranges = count(name, value)?,
            "sum_ranges" => self.sum_ranges = count(name, value)?,
            "order_ranges" => self.order_ranges = count(name, value)?,
            "distinct_ranges" => self.distinct_ranges = count(name, value)?,
            "range_selects" => self.range_selects = on_off(name, value)?,
            "index_updates" => self.index_updates = count(name, value)?,
            "non_index_updates" => self.non_index_updates = count(name, value)?,
            "delete_inserts" => self.delete_inserts = count(name, value)?,
            "skip_trx" => self.skip_trx = on_off(name, value)?,
            "rand_type" => self.rand_type = rand_type(name, value)?,
            "rand_spec_iter" => self.rand_spec_iter = whole(name, value, 1, 1000)? as u32,
            "rand_spec_pct" => self.rand_spec_pct = whole(name, value, 1, 100)? as u32,
            "rand_spec_res" => self.rand_spec_res = whole(name, value, 0, 100)? as u32,
            "rand_pareto_h" => self.rand_pareto_h = fraction(name, value, 0.001, 0.999)?,
            "rand_zipfian_exp" => self.rand_zipfian_exp = fraction(name, value, 0.0, 10.0)?,
            "mysql_ignore_errors" => self.mysql_ignore_errors = errors(name, value)?,
            _ => {
                return Err(WorkloadError::UnknownOption {
                    name: name.to_string(),
                    nearest: nearest_name(&plain, NAMES).map(str::to_string),
                    valid_names: NAMES.join(", "),
                });
            }
        }
        Ok(())
    }

    /// The distribution that `rand_type` and its parameters come to.
    pub fn distribution(&self) -> Distribution {
        match self.rand_type {
            RandType::Uniform => Distribution::Uniform,
            RandType::Zipfian => Distribution::Zipfian { exponent: self.rand_zipfian_exp },
            RandType::Pareto => Distribution::Pareto { h: self.rand_pareto_h },
            RandType::Gaussian => Distribution::Gaussian { iterations: self.rand_spec_iter },
            RandType::Special => Distribution::Special {
                iterations: self.rand_spec_iter,
                hot_rows_pct: self.rand_spec_pct,
                hot_draws_pct: self.rand_spec_res,
            },
        }
    }
}

fn bad(name: &str, value: &str, expected: String) -> WorkloadError {
    WorkloadError::BadValue { name: name.to_string(), value: value.to_string(), expected }
}

fn whole(name: &str, value: &str, min: u64, max: u64) -> Result<u64, WorkloadError> {
    match value.trim().parse::<u64>() {
        Ok(number) if (min..=max).contains(&number) => Ok(number),
        _ => Err(bad(name, value, format!("give a whole number from {min} to {max}"))),
    }
}

fn count(name: &str, value: &str) -> Result<u32, WorkloadError> {
    Ok(whole(name, value, 0, REPEAT_MAX)? as u32)
}

fn fraction(name: &str, value: &str, min: f64, max: f64) -> Result<f64, WorkloadError> {
    match value.trim().parse::<f64>() {
        Ok(number) if (min..=max).contains(&number) => Ok(number),
        _ => Err(bad(name, value, format!("give a number from {min} to {max}"))),
    }
}

fn on_off(name: &str, value: &str) -> Result<bool, WorkloadError> {
    match value.trim().to_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => Ok(true),
        "off" | "false" | "no" | "0" => Ok(false),
        _ => Err(bad(name, value, "give on or off".to_string())),
    }
}

fn rand_type(name: &str, value: &str) -> Result<RandType, WorkloadError> {
    match value.trim().to_lowercase().as_str() {
        "uniform" => Ok(RandType::Uniform),
        "zipfian" => Ok(RandType::Zipfian),
        "pareto" => Ok(RandType::Pareto),
        "gaussian" => Ok(RandType::Gaussian),
        "special" => Ok(RandType::Special),
        _ => Err(bad(name, value, "give uniform, zipfian, pareto, gaussian or special".to_string())),
    }
}

fn errors(name: &str, value: &str) -> Result<Vec<u16>, WorkloadError> {
    let mut numbers = Vec::new();
    for part in value.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        match part.parse::<u16>() {
            Ok(number) if number > 0 => numbers.push(number),
            _ => {
                return Err(bad(
                    name,
                    value,
                    "give error numbers with commas between them, such as 1213,1205".into(),
                ));
            }
        }
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_can_be_set_with_dashes_and_with_underscores() {
        for name in Options::names() {
            let value = match *name {
                "rand-type" => "pareto",
                "rand-pareto-h" => "0.3",
                "skip_trx" | "range_selects" => "on",
                _ => "7",
            };
            let mut by_name = Options::default();
            let mut by_other = Options::default();
            by_name.set(name, value).unwrap();
            by_other.set(&format!("--{}", name.replace('_', "-")), value).unwrap();
            assert_eq!(by_name, by_other, "{name}");
        }
    }

    #[test]
    fn values_out_of_range_are_refused_in_one_sentence() {
        let mut options = Options::default();
        for (name, value) in [
            ("range_size", "0"),
            ("tables", "-1"),
            ("table_size", "3000000000"),
            ("point_selects", "many"),
            ("skip_trx", "maybe"),
            ("rand-type", "normal"),
            ("rand-pareto-h", "1"),
            ("rand-pareto-h", "NaN"),
            ("mysql-ignore-errors", "1213,x"),
        ] {
            let message = options.set(name, value).unwrap_err().to_string();
            assert!(message.contains(name) && message.contains("give "), "{message}");
        }
        assert_eq!(options, Options::default());
    }

    #[test]
    fn an_unknown_option_names_the_nearest() {
        let message = Options::default().set("point_select", "1").unwrap_err().to_string();
        assert!(message.contains("did you mean 'point_selects'?"), "{message}");
    }
}
