//! Whether a workload has what a service level requires something of.

use whyso_explain::slo::Requirement;
use whyso_load::TRANSACTION;
use whyso_workload::Workload;

use crate::Error;

/// Every kind that a service level names must be one of the workload's: of its transactions or of its statements.
///
/// # Errors
/// One sentence on the first that is neither, or both.
pub(crate) fn check_kinds(slo: &[Requirement], workload: &Workload) -> Result<(), Error> {
    let transactions = workload.transaction_kinds();
    let statements = workload.kinds();
    for required in slo.iter().filter(|required| !required.is_of_all()) {
        let kind = required.kind.as_str();
        let is_of_transaction = transactions.iter().any(|name| required.is_of_transaction(name));
        match (is_of_transaction, statements.contains(&kind)) {
            (true, false) | (false, true) => {}
            (true, true) => {
                return Err(Error::Plan(format!(
                    "--slo {kind}:… may be the transaction or the statement {kind}: write {TRANSACTION}:{kind}:… for the \
                     transaction, or give the statement another name with \\kind"
                )));
            }
            (false, false) => {
                let names = [&[TRANSACTION][..], &transactions[..], &statements[..]].concat();
                return Err(Error::Plan(format!(
                    "--slo {kind}:… names a kind of transaction or statement that {} does not have: it has {}",
                    workload.name,
                    names.join(", ")
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyso_workload::SqlOptions;

    const SHOP: &str = "\\transaction read\n\\kind look\nSELECT 1;\n\\transaction pay\n\\kind pay\nSELECT 2;\n\
                        \\transaction never@0\nSELECT 3;";

    fn check(slo: &str) -> Result<(), Error> {
        let workload = Workload::from_sql_file("shop.sql", SHOP, &SqlOptions::default()).unwrap();
        check_kinds(&[slo.parse().unwrap()], &workload)
    }

    #[test]
    fn a_requirement_names_a_kind_of_transaction_or_of_statement() {
        for slo in
            ["p99=1s", "read:p99=1s", "look:p99=1s", "transaction:read:p99=1s", "transaction:pay:p99=1s"]
        {
            check(slo).unwrap_or_else(|error| panic!("{slo}: {error}"));
        }
    }

    #[test]
    fn a_name_that_is_nothing_or_two_things_is_refused_with_the_names_that_exist() {
        let message = check("write:p99=1s").unwrap_err().to_string();
        assert!(message.contains("it has transaction, read, pay, look, pay"), "{message}");
        assert!(check("never:p99=1s").unwrap_err().to_string().contains("does not have"));
        assert!(check("pay:p99=1s").unwrap_err().to_string().contains("write transaction:pay:…"));
    }
}
