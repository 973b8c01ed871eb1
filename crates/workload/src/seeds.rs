//! Workloads of published performance studies: what their authors drove by hand, with the data that it needs.

use crate::distribution::Distribution;
use crate::expr::{Expr, ValueType};
use crate::options::Options;
use crate::statement::{ROW, statement};
use crate::workload::{
    Group, Param, Protocol, Setup, Source, Statement, Step, Transaction, Variable, Workload,
};

/// Rows that one INSERT of a setup makes at most, so that its undo stays small. A transaction of MySQL Cluster has no more than some ten
/// thousand operations.
const CHUNK_ROWS: u64 = 10_000;

/// The workload of this name, if it is one of these.
pub(crate) fn workload(name: &str, options: &Options) -> Option<Workload> {
    Some(match name {
        "connect" => connect(options),
        "pk-read-2x256" => primary_key_read(options),
        "customer-create" => customer_create(options),
        "select-many-tables" => select_many_tables(options),
        "sort-limit-offset" => sort_limit_offset(options),
        _ => return None,
    })
}

/// SQL for 32 digits that differ with a value as if by chance. CRC32() is on every server: MySQL 9 has no MD5() any more,
/// and 5.5 may be built with a SHA2() that only ever gives NULL.
macro_rules! random_text {
    ($value:literal) => {
        concat!(
            "CONCAT(LPAD(HEX(CRC32(CONCAT(",
            $value,
            ", 'a'))), 8, '0'), LPAD(HEX(CRC32(CONCAT(",
            $value,
            ", 'bc'))), 8, '0'), LPAD(HEX(CRC32(CONCAT(",
            $value,
            ", 'def'))), 8, '0'), LPAD(HEX(CRC32(CONCAT(",
            $value,
            ", 'ghij'))), 8, '0'))"
        )
    };
}

/// Connections per second, and nothing else.
fn connect(options: &Options) -> Workload {
    build("connect", "a new connection each time, and no statement", vec![Step::Reconnect], options)
}

/// The read of MySQL Cluster's scaling test: both columns of one row by primary key, 2 × 256 bytes.
fn primary_key_read(options: &Options) -> Workload {
    let sql = "SELECT data1, data2 FROM t1 WHERE id=?";
    let select = group(statement("pk_read", sql, vec![ROW]));
    let rows = options.table_size;
    let columns = "id, data1, data2";
    // 8 × 32 digits in each column, of which only half of the room is used.
    let values = concat!("n, REPEAT(", random_text!("n"), ", 8), REPEAT(", random_text!("-n"), ", 8)");
    let mut statements = vec![
        "CREATE TABLE IF NOT EXISTS t1 (id INT NOT NULL AUTO_INCREMENT, data1 VARCHAR(512) DEFAULT NULL, \
         data2 VARCHAR(512) DEFAULT NULL, PRIMARY KEY (id)) DEFAULT CHARSET=latin1"
            .to_string(),
    ];
    statements.extend(fill("t1", columns, values, rows));
    statements.push("ANALYZE TABLE t1".to_string());
    Workload {
        rows,
        distribution: Distribution::Uniform,
        setup: Some(Setup { statements, check: check_last_row("t1", "id", rows) }),
        ..build("pk-read-2x256", "two columns of 256 bytes by primary key", vec![select], options)
    }
}

/// Customers created concurrently by a stored procedure that generates their records itself. The seed of its random numbers
/// is the parameter, so that the same load makes the same customers.
fn customer_create(options: &Options) -> Workload {
    let seed = Variable { name: "seed".to_string(), value_type: ValueType::Int };
    let mut variables = Variable::predefined();
    variables.push(seed);
    let place = (variables.len() - 1) as u16;
    let draw = Expr::Random {
        distribution: Distribution::Uniform,
        low: Box::new(Expr::Int(1)),
        high: Box::new(Expr::Int(i64::from(i32::MAX))),
    };
    let call = statement("create_customer", "CALL create_customer(?)", vec![Param::Variable(place)]);
    let steps = vec![Step::Set { variable: place, source: Source::Expr(draw) }, Step::Send(call)];
    let statements: Vec<String> = CUSTOMER_SETUP.iter().map(|sql| (*sql).to_string()).collect();
    let check = "SELECT COUNT(*) = 1 FROM information_schema.routines WHERE routine_schema = DATABASE() \
                 AND routine_name = 'create_customer'"
        .to_string();
    Workload {
        variables,
        setup: Some(Setup { statements, check }),
        ..build("customer-create", "a stored procedure that makes up a customer's records", steps, options)
    }
}

/// One customer: a row of its own, one to three addresses, one to four contacts, one or two accounts with a first entry.
const CUSTOMER_SETUP: [&str; 7] = [
    "CREATE TABLE IF NOT EXISTS customer (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, first_name VARCHAR(32) NOT NULL, \
     last_name VARCHAR(32) NOT NULL, born DATE NOT NULL, created TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, \
     KEY name (last_name, first_name))",
    "CREATE TABLE IF NOT EXISTS customer_address (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, customer_id BIGINT NOT NULL, \
     street VARCHAR(64) NOT NULL, town VARCHAR(32) NOT NULL, postcode CHAR(5) NOT NULL, KEY customer (customer_id), \
     KEY postcode (postcode))",
    "CREATE TABLE IF NOT EXISTS customer_contact (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, customer_id BIGINT NOT NULL, \
     kind TINYINT NOT NULL, value VARCHAR(64) NOT NULL, KEY customer (customer_id), KEY value (value))",
    "CREATE TABLE IF NOT EXISTS customer_account (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, customer_id BIGINT NOT NULL, \
     balance DECIMAL(12,2) NOT NULL, KEY customer (customer_id))",
    "CREATE TABLE IF NOT EXISTS account_entry (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, account_id BIGINT NOT NULL, \
     amount DECIMAL(12,2) NOT NULL, note VARCHAR(64) NOT NULL, KEY account (account_id))",
    "DROP PROCEDURE IF EXISTS create_customer",
    concat!(
        "CREATE PROCEDURE create_customer(IN seed INT) MODIFIES SQL DATA BEGIN \
     DECLARE new_customer, new_account BIGINT; DECLARE left_to_make INT; DECLARE random_text CHAR(32); \
     DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END; \
     SET random_text = ",
        random_text!("seed"),
        "; \
     START TRANSACTION; \
     INSERT INTO customer (first_name, last_name, born) VALUES (LEFT(random_text, 8), SUBSTRING(random_text, 9, 12), \
     DATE_ADD('1930-01-01', INTERVAL seed % 28000 DAY)); \
     SET new_customer = LAST_INSERT_ID(), left_to_make = 1 + seed % 3; \
     WHILE left_to_make > 0 DO \
     SET random_text = ",
        random_text!("CONCAT(random_text, 'address')"),
        "; \
     INSERT INTO customer_address (customer_id, street, town, postcode) VALUES (new_customer, \
     CONCAT(LEFT(random_text, 20), ' ', left_to_make), SUBSTRING(random_text, 21, 10), LPAD(seed % 100000, 5, '0')); \
     SET left_to_make = left_to_make - 1; \
     END WHILE; \
     SET left_to_make = 1 + seed % 4; \
     WHILE left_to_make > 0 DO \
     SET random_text = ",
        random_text!("CONCAT(random_text, 'contact')"),
        "; \
     INSERT INTO customer_contact (customer_id, kind, value) VALUES (new_customer, left_to_make, \
     CONCAT(LEFT(random_text, 12), '@', RIGHT(random_text, 8), '.example')); \
     SET left_to_make = left_to_make - 1; \
     END WHILE; \
     SET left_to_make = 1 + seed % 2; \
     WHILE left_to_make > 0 DO \
     INSERT INTO customer_account (customer_id, balance) VALUES (new_customer, seed % 10000); \
     SET new_account = LAST_INSERT_ID(); \
     INSERT INTO account_entry (account_id, amount, note) VALUES (new_account, seed % 10000, random_text); \
     SET left_to_make = left_to_make - 1; \
     END WHILE; \
     COMMIT; \
     END"
    ),
];

/// One row by primary key, from a table drawn for each transaction. As text, so that thousands of tables need no
/// prepared statement each. Every query finds its table by name, which tests locks on tables' metadata and the table
/// cache.
fn select_many_tables(options: &Options) -> Workload {
    let sql = "SELECT c FROM sbtest{table} WHERE id=?";
    let select = Statement { protocol: Protocol::Text, ..statement("point_select", sql, vec![ROW]) };
    Workload {
        tables: options.tables.max(1),
        rows: options.table_size.max(1),
        ..build(
            "select-many-tables",
            "one row by primary key, from any of many tables",
            vec![group(select)],
            options,
        )
    }
}

/// The sort behind a study of `sort_buffer_size`: all rows are sorted by a column without index, and one far from the
/// begin is returned.
fn sort_limit_offset(options: &Options) -> Workload {
    let rows = options.table_size.max(1);
    // The study's own share: row 78,000 of 100,000.
    let offset = rows.saturating_mul(78) / 100;
    let sql = format!("SELECT * FROM sorttest ORDER BY data LIMIT {offset},1");
    let mut statements = vec![
        "CREATE TABLE IF NOT EXISTS sorttest (id INT NOT NULL PRIMARY KEY, data CHAR(36) DEFAULT NULL) \
         DEFAULT CHARSET=latin1"
            .to_string(),
    ];
    let uuid = concat!(
        "n, INSERT(INSERT(INSERT(INSERT(",
        random_text!("n"),
        ", 21, 0, '-'), 17, 0, '-'), 13, 0, '-'), 9, 0, '-')"
    );
    statements.extend(fill("sorttest", "id, data", uuid, rows));
    // A sort takes no more of its buffer than the rows need that the engine's statistics count, and those of a new table lag behind.
    statements.push("ANALYZE TABLE sorttest".to_string());
    let select = Statement { protocol: Protocol::Text, ..statement("sort_limit_offset", &sql, Vec::new()) };
    Workload {
        setup: Some(Setup { statements, check: check_last_row("sorttest", "id", rows) }),
        ..build(
            "sort-limit-offset",
            "a sort without index that returns one row far from its begin",
            vec![Step::Send(select)],
            options,
        )
    }
}

fn build(name: &str, summary: &str, steps: Vec<Step>, options: &Options) -> Workload {
    Workload {
        name: name.to_string(),
        summary: summary.to_string(),
        tables: 0,
        rows: 1,
        distribution: options.distribution(),
        transactions: vec![Transaction { name: name.to_string(), weight: 1, steps }],
        variables: Vec::new(),
        dictionaries: Vec::new(),
        session: Vec::new(),
        setup: None,
        retry_errors: options.mysql_ignore_errors.clone(),
        rows_min: 1,
    }
}

fn group(statement: Statement) -> Step {
    Step::Group(Group { repeat: 1, draws: 1, statements: vec![statement] })
}

/// INSERTs of the rows 1 to `rows`, in ascending order; `values` is a function of the row number `n`. Rows that are there
/// already stay. Any server runs them: the numbers come from a join of ten digits with themselves.
fn fill(table: &str, columns: &str, values: &str, rows: u64) -> Vec<String> {
    let digits = "(SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5 \
                  UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)";
    (0..rows.div_ceil(CHUNK_ROWS))
        .map(|chunk| {
            let before = chunk * CHUNK_ROWS;
            let count = CHUNK_ROWS.min(rows - before);
            format!(
                "INSERT IGNORE INTO {table} ({columns}) SELECT {values} FROM (SELECT {before} + 1 + a.d + 10 * b.d + \
                 100 * c.d + 1000 * e.d AS n FROM {digits} a, {digits} b, {digits} c, {digits} e) numbers WHERE n <= {before} + {count} ORDER BY n"
            )
        })
        .collect()
}

/// Rows are inserted in ascending order, so the last one is there when all are.
fn check_last_row(table: &str, key: &str, rows: u64) -> String {
    format!("SELECT COALESCE(MAX({key}), 0) = {rows} FROM {table}")
}
