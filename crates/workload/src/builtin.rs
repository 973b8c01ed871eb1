//! The built-in workloads: sysbench's OLTP set, rewritten from what it sends, and those of [`seeds`].

use crate::error::WorkloadError;
use crate::options::Options;
use crate::seeds;
use crate::statement::{ROW, statement};
use crate::suggest::nearest_name;
use crate::workload::{Group, Param, Protocol, Statement, Step, Transaction, Workload};

const NAMES: [&str; 17] = [
    "oltp-read-write",
    "oltp-read-only",
    "oltp-write-only",
    "oltp-point-select",
    "oltp-simple-ranges",
    "oltp-sum-ranges",
    "oltp-order-ranges",
    "oltp-distinct-ranges",
    "oltp-update-index",
    "oltp-update-non-index",
    "oltp-insert",
    "oltp-delete",
    "connect",
    "pk-read-2x256",
    "customer-create",
    "select-many-tables",
    "sort-limit-offset",
];

const C_GROUPS: u8 = 10;
const PAD_GROUPS: u8 = 5;

/// The names of the built-in workloads.
pub fn builtin_names() -> &'static [&'static str] {
    &NAMES
}

impl Workload {
    /// A built-in workload by its name; underscores for dashes are accepted, as in sysbench's script names.
    ///
    /// # Errors
    /// An unknown name (with the nearest valid one), options that leave nothing to do, and tables smaller than
    /// one range.
    pub fn builtin(name: &str, options: &Options) -> Result<Workload, WorkloadError> {
        let plain = name.to_lowercase().replace('_', "-");
        let Some(name) = NAMES.iter().find(|name| **name == plain) else {
            return Err(WorkloadError::UnknownWorkload {
                name: name.to_string(),
                nearest: nearest_name(name, NAMES).map(str::to_string),
                valid_names: NAMES.join(", "),
            });
        };
        if let Some(workload) = seeds::workload(name, options) {
            return Ok(workload);
        }
        let (summary, groups) = transaction(name, options);
        let groups: Vec<Group> = groups.into_iter().filter(|group| group.repeat > 0).collect();
        let only_borders = groups.iter().all(|group| group.statements.iter().all(|s| s.params.is_empty()));
        if only_borders {
            return Err(WorkloadError::NothingToDo { workload: plain });
        }
        let has_ranges =
            groups.iter().flat_map(|group| &group.statements).any(|s| s.kind.ends_with("_range"));
        let workload = Workload {
            name: plain.clone(),
            summary: summary.to_string(),
            tables: options.tables.max(1),
            rows: options.table_size.max(1),
            distribution: options.distribution(),
            transactions: vec![Transaction {
                name: plain.clone(),
                weight: 1,
                steps: groups.into_iter().map(Step::Group).collect(),
            }],
            variables: Vec::new(),
            dictionaries: Vec::new(),
            session: Vec::new(),
            setup: None,
            retry_errors: options.mysql_ignore_errors.clone(),
            rows_min: if has_ranges { options.range_size } else { 1 },
        };
        workload.check_data(options.tables, options.table_size)?;
        Ok(workload)
    }
}

/// What the workload is for, and its groups; a group that its option set to 0 has `repeat` 0.
fn transaction(name: &str, o: &Options) -> (&'static str, Vec<Group>) {
    match name {
        "oltp-read-write" => ("short transactions that read and change rows", {
            let mut groups = point_selects(o.point_selects);
            groups.extend(all_ranges(o));
            groups.extend(writes(o));
            in_transaction(groups, o)
        }),
        "oltp-read-only" => ("short transactions that only read", {
            let mut groups = point_selects(o.point_selects);
            groups.extend(all_ranges(o));
            in_transaction(groups, o)
        }),
        "oltp-write-only" => ("short transactions that only change rows", in_transaction(writes(o), o)),
        "oltp-point-select" => ("one row by its primary key", point_selects(1)),
        "oltp-simple-ranges" => ("a range of rows by primary key", vec![simple_range(o)]),
        "oltp-sum-ranges" => ("a sum over a range of rows", vec![sum_range(o)]),
        "oltp-order-ranges" => ("a range of rows, sorted", vec![order_range(o)]),
        "oltp-distinct-ranges" => ("a range of rows, sorted and without duplicates", vec![distinct_range(o)]),
        "oltp-update-index" => ("an update of an indexed column", vec![index_update(o.index_updates)]),
        "oltp-update-non-index" => {
            ("an update of a column without index", vec![non_index_update(o.non_index_updates)])
        }
        "oltp-insert" => ("an insert with a new primary key, sent as text", vec![insert_alone()]),
        "oltp-delete" => ("a delete by primary key, of rows that may be gone already", vec![delete_alone()]),
        // A name without a transaction is refused: it has nothing to do.
        _ => ("", Vec::new()),
    }
}

fn in_transaction(groups: Vec<Group>, o: &Options) -> Vec<Group> {
    if o.skip_trx {
        return groups;
    }
    let mut whole = vec![once("begin", "BEGIN")];
    whole.extend(groups);
    whole.push(once("commit", "COMMIT"));
    whole
}

fn point_selects(repeat: u32) -> Vec<Group> {
    vec![group(
        repeat,
        1,
        vec![statement("point_select", "SELECT c FROM sbtest{table} WHERE id=?", vec![ROW])],
    )]
}

fn all_ranges(o: &Options) -> Vec<Group> {
    if !o.range_selects {
        return Vec::new();
    }
    vec![simple_range(o), sum_range(o), order_range(o), distinct_range(o)]
}

fn writes(o: &Options) -> Vec<Group> {
    vec![
        index_update(o.index_updates),
        non_index_update(o.non_index_updates),
        delete_insert(o.delete_inserts),
    ]
}

fn range(kind: &str, repeat: u32, sql: &str, range_size: u64) -> Group {
    let last = Param::Drawn { slot: 0, plus: i32::try_from(range_size - 1).unwrap_or(i32::MAX) };
    group(repeat, 1, vec![statement(kind, sql, vec![ROW, last])])
}

fn simple_range(o: &Options) -> Group {
    let sql = "SELECT c FROM sbtest{table} WHERE id BETWEEN ? AND ?";
    range("simple_range", o.simple_ranges, sql, o.range_size)
}

fn sum_range(o: &Options) -> Group {
    let sql = "SELECT SUM(k) FROM sbtest{table} WHERE id BETWEEN ? AND ?";
    range("sum_range", o.sum_ranges, sql, o.range_size)
}

fn order_range(o: &Options) -> Group {
    let sql = "SELECT c FROM sbtest{table} WHERE id BETWEEN ? AND ? ORDER BY c";
    range("order_range", o.order_ranges, sql, o.range_size)
}

fn distinct_range(o: &Options) -> Group {
    let sql = "SELECT DISTINCT c FROM sbtest{table} WHERE id BETWEEN ? AND ? ORDER BY c";
    range("distinct_range", o.distinct_ranges, sql, o.range_size)
}

fn index_update(repeat: u32) -> Group {
    group(repeat, 1, vec![statement("index_update", "UPDATE sbtest{table} SET k=k+1 WHERE id=?", vec![ROW])])
}

fn non_index_update(repeat: u32) -> Group {
    let params = vec![Param::Digits { groups: C_GROUPS }, ROW];
    group(repeat, 1, vec![statement("non_index_update", "UPDATE sbtest{table} SET c=? WHERE id=?", params)])
}

fn delete_insert(repeat: u32) -> Group {
    let k = Param::Drawn { slot: 1, plus: 0 };
    let values = vec![ROW, k, Param::Digits { groups: C_GROUPS }, Param::Digits { groups: PAD_GROUPS }];
    let statements = vec![
        statement("delete", "DELETE FROM sbtest{table} WHERE id=?", vec![ROW]),
        statement("insert", "INSERT INTO sbtest{table} (id, k, c, pad) VALUES (?, ?, ?, ?)", values),
    ];
    group(repeat, 2, statements)
}

fn delete_alone() -> Group {
    group(1, 1, vec![statement("delete", "DELETE FROM sbtest{table} WHERE id=?", vec![ROW])])
}

fn insert_alone() -> Group {
    let values =
        vec![Param::Int(0), ROW, Param::Digits { groups: C_GROUPS }, Param::Digits { groups: PAD_GROUPS }];
    let sql = "INSERT INTO sbtest{table} (id, k, c, pad) VALUES (?, ?, ?, ?)";
    let statement = Statement { protocol: Protocol::Text, ..statement("insert", sql, values) };
    group(1, 1, vec![statement])
}

fn once(kind: &str, sql: &str) -> Group {
    group(1, 0, vec![statement(kind, sql, Vec::new())])
}

fn group(repeat: u32, draws: u8, statements: Vec<Statement>) -> Group {
    Group { repeat, draws, statements }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(name: &str) -> Workload {
        Workload::builtin(name, &Options::default()).unwrap()
    }

    fn shape(workload: &Workload) -> String {
        let parts: Vec<String> = workload.transactions[0]
            .steps
            .iter()
            .map(|step| {
                let Step::Group(group) = step else { return format!("{step:?}") };
                let kinds: Vec<&str> = group.statements.iter().map(|s| s.kind.as_str()).collect();
                format!("{}*{}", group.repeat, kinds.join("+"))
            })
            .collect();
        parts.join(" ")
    }

    #[test]
    fn every_name_builds_and_its_statements_have_a_parameter_for_each_mark() {
        for name in builtin_names() {
            let workload = build(name);
            for statement in workload.statements() {
                assert_eq!(
                    statement.sql.matches('?').count(),
                    statement.params.len(),
                    "{name}: {}",
                    statement.sql
                );
            }
            assert!(workload.describe().starts_with(name));
        }
    }

    #[test]
    fn read_write_has_the_shape_that_sysbench_gives_it() {
        let workload = build("oltp_read_write");
        assert_eq!(
            shape(&workload),
            "1*begin 10*point_select 1*simple_range 1*sum_range 1*order_range 1*distinct_range \
             1*index_update 1*non_index_update 1*delete+insert 1*commit"
        );
        assert_eq!(workload.statements_per_transaction(), Some(20));
        assert!(workload.opens_transaction());
    }

    #[test]
    fn options_change_the_shape() {
        let mut options = Options::default();
        for (name, value) in
            [("skip_trx", "on"), ("range_selects", "off"), ("point_selects", "3"), ("index_updates", "0")]
        {
            options.set(name, value).unwrap();
        }
        let workload = Workload::builtin("oltp-read-write", &options).unwrap();
        assert_eq!(shape(&workload), "3*point_select 1*non_index_update 1*delete+insert");
        assert!(!workload.opens_transaction());
        let workload = Workload::builtin("oltp-point-select", &options).unwrap();
        assert_eq!(shape(&workload), "1*point_select");
    }

    #[test]
    fn a_workload_with_nothing_left_to_do_is_refused() {
        let mut options = Options::default();
        for name in ["index_updates", "non_index_updates", "delete_inserts"] {
            options.set(name, "0").unwrap();
        }
        let error = Workload::builtin("oltp-write-only", &options).unwrap_err();
        assert_eq!(error, WorkloadError::NothingToDo { workload: "oltp-write-only".to_string() });
    }

    #[test]
    fn tables_smaller_than_a_range_are_refused() {
        let mut options = Options::default();
        options.set("table_size", "50").unwrap();
        let error = Workload::builtin("oltp-read-only", &options).unwrap_err();
        assert!(error.to_string().contains("at least 100 rows"), "{error}");
        assert!(Workload::builtin("oltp-point-select", &options).is_ok());
    }

    #[test]
    fn of_a_data_set_that_is_too_small_the_error_names_what_is_needed() {
        let workload = build("oltp-read-write");
        assert!(workload.check_data(1, 10_000).is_ok());
        let message = workload.check_data(1, 9_999).unwrap_err().to_string();
        assert!(message.contains("at least 10000 rows") && message.contains("--rows"), "{message}");
    }

    #[test]
    fn an_unknown_name_suggests_the_nearest() {
        let message = Workload::builtin("oltp-readwrite", &Options::default()).unwrap_err().to_string();
        assert!(message.contains("did you mean 'oltp-read-write'?"), "{message}");
        assert!(message.contains("oltp-delete"), "{message}");
    }

    #[test]
    fn describe_shows_counts_texts_and_parameters() {
        let text = build("oltp-read-write").describe();
        assert!(text.contains("10 × point_select      SELECT c FROM sbtestN WHERE id=?   (row1)"), "{text}");
        assert!(text.contains("(row1, row1 + 99)"), "{text}");
        assert!(text.contains("(row1, row2, 10 × 11 digits, 5 × 11 digits)"), "{text}");
    }
}
