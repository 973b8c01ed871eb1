use super::*;
use crate::options::Options;
use crate::workload::Workload;

/// "kind@table(values)" for each statement of a transaction.
fn transaction(workload: &Workload, seed: u64, user: u64, k: u64) -> Vec<String> {
    let program = Program::new(workload, 16);
    let mut cursor = Cursor::new(0, 0, 0);
    cursor.start(seed, user, k);
    let mut sent = Vec::new();
    while let Turn::Send(call) = cursor.next(&program).unwrap() {
        let kind = &program.statements()[call.statement].kind;
        let mut values = Vec::new();
        for param in call.params {
            values.push(match cursor.value(&program, *param) {
                Value::Int(value) => value.to_string(),
                Value::Text(text) => String::from_utf8(text.to_vec()).unwrap(),
                other => format!("{other:?}"),
            });
        }
        sent.push(format!("{kind}@{}({})", call.table, values.join(",")));
    }
    sent
}

fn workload(name: &str, set: &[(&str, &str)]) -> Workload {
    let mut options = Options::default();
    for (name, value) in set {
        options.set(name, value).unwrap();
    }
    Workload::builtin(name, &options).unwrap()
}

#[test]
fn a_transaction_is_a_function_of_seed_user_and_number_alone() {
    let workload = workload("oltp-read-write", &[("tables", "8")]);
    let first = transaction(&workload, 1, 2, 3);
    assert_eq!(first.len(), 20);
    assert_eq!(first, transaction(&workload, 1, 2, 3));
    assert_ne!(first, transaction(&workload, 1, 2, 4));
    assert_ne!(first, transaction(&workload, 1, 3, 3));
    assert_ne!(first, transaction(&workload, 2, 2, 3));
}

#[test]
fn statements_of_a_group_share_one_table_and_groups_differ() {
    let workload = workload("oltp-read-write", &[("tables", "100")]);
    let mut tables_of_groups_differed = false;
    for k in 0..20 {
        let sent = transaction(&workload, 1, 1, k);
        let table = |i: usize| sent[i].split(['@', '(']).nth(1).unwrap().to_string();
        assert!((1..=10).all(|i| table(i) == table(1)), "{sent:?}");
        assert_eq!(table(17), table(18), "{sent:?}");
        tables_of_groups_differed |= table(1) != table(11);
    }
    assert!(tables_of_groups_differed);
}

#[test]
fn a_range_spans_its_size_and_a_delete_is_inserted_again() {
    let workload = workload("oltp-read-write", &[("range_size", "50")]);
    let sent = transaction(&workload, 9, 9, 9);
    let numbers = |i: usize| -> Vec<i64> {
        let arguments = sent[i].split(['(', ')']).nth(1).unwrap();
        arguments.split(',').take(2).map(|n| n.parse().unwrap()).collect()
    };
    for range in 11..=14 {
        assert_eq!(numbers(range)[1] - numbers(range)[0], 49);
    }
    let deleted = sent[17].strip_prefix("delete@1(").unwrap().trim_end_matches(')');
    let inserted = sent[18].strip_prefix("insert@1(").unwrap();
    assert!(inserted.starts_with(&format!("{deleted},")), "{sent:?}");
}

#[test]
fn digits_are_placed_as_by_sysbench_and_every_digit_is_as_likely() {
    let workload = workload("oltp-insert", &[]);
    let mut counts = [0u32; 10];
    for k in 0..2000 {
        let sent = &transaction(&workload, 5, 0, k)[0];
        let values: Vec<&str> = sent.split(['(', ')']).nth(1).unwrap().split(',').collect();
        assert_eq!(values[0], "0");
        assert_eq!((values[2].len(), values[3].len()), (119, 59));
        let groups: Vec<&str> = values[2].split('-').collect();
        assert!(groups.len() == 10 && groups.iter().all(|group| group.len() == 11));
        for digit in values[2].bytes().filter(u8::is_ascii_digit) {
            counts[usize::from(digit - b'0')] += 1;
        }
    }
    let expected = 2000.0 * 110.0 / 10.0;
    let chi_square: f64 = counts.iter().map(|n| (f64::from(*n) - expected).powi(2) / expected).sum();
    assert!(chi_square < 30.0, "chi-square {chi_square} with 9 degrees of freedom");
}

#[test]
fn tables_are_drawn_uniformly() {
    let workload = workload("oltp-point-select", &[("tables", "4")]);
    let mut counts = [0u32; 4];
    for k in 0..40_000 {
        let sent = &transaction(&workload, 5, 0, k)[0];
        let table: usize = sent.split(['@', '(']).nth(1).unwrap().parse().unwrap();
        counts[table - 1] += 1;
    }
    assert!(counts.iter().all(|n| (9_600..=10_400).contains(n)), "{counts:?}");
}
