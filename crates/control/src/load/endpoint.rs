//! The weight of an endpoint, a parameter of its DSN that only the load reads, and where connections go by it.

use whyso_load::Placement;

use crate::Error;
use crate::server_plan::ServerPlan;

const WEIGHT_MAX: u32 = 1000;

/// Returns where connections go: as the plan has it, else by weight where a server has one, else in turn.
///
/// # Errors
/// A weight is not a number in range, or the placement ignores weights.
pub(super) fn placement(asked: Option<Placement>, servers: &[ServerPlan]) -> Result<Placement, Error> {
    let mut is_weighted = false;
    for server in servers {
        is_weighted |= split_weight(server)?.1.is_some();
    }
    match asked {
        None if is_weighted => Ok(Placement::Weighted),
        None => Ok(Placement::RoundRobin),
        Some(Placement::RoundRobin | Placement::Pinned) if is_weighted => Err(Error::Plan(
            "weight=N in a DSN shares the connections by weight, and --placement round-robin and pinned know no weights: \
             leave out --placement or the weights"
                .to_string(),
        )),
        Some(asked) => Ok(asked),
    }
}

/// Takes `weight=N` out of a server's DSN; `None` where there is none.
pub(super) fn split_weight(server: &ServerPlan) -> Result<(ServerPlan, Option<u32>), Error> {
    let ServerPlan::Dsn { dsn, set } = server else { return Ok((server.clone(), None)) };
    let (dsn, weight) = split(dsn)?;
    Ok((ServerPlan::Dsn { dsn, set: set.clone() }, weight))
}

fn split(dsn: &str) -> Result<(String, Option<u32>), Error> {
    // A password may hold a '?': parameters come after the last '@'.
    let address = dsn.rfind('@').map_or(0, |at| at + 1);
    let Some(question_mark) = dsn[address..].find('?').map(|at| address + at) else {
        return Ok((dsn.to_string(), None));
    };
    let mut weight = None;
    let mut others = Vec::new();
    for parameter in dsn[question_mark + 1..].split('&') {
        let Some(value) = parameter.strip_prefix("weight=") else {
            others.push(parameter);
            continue;
        };
        weight = match value.parse::<u32>() {
            Ok(weight) if weight <= WEIGHT_MAX => Some(weight),
            _ => {
                return Err(Error::Plan(format!(
                    "the DSN's weight={value} is no share of the connections: give a whole number from 0 to {WEIGHT_MAX}"
                )));
            }
        };
    }
    let mut plain = dsn[..question_mark].to_string();
    if !others.is_empty() {
        plain.push('?');
        plain.push_str(&others.join("&"));
    }
    Ok((plain, weight))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_is_taken_out_of_the_dsn_and_the_rest_is_left_as_it_was() {
        for (dsn, plain, weight) in [
            ("mysql://a/", "mysql://a/", None),
            ("mysql://a/?weight=3", "mysql://a/", Some(3)),
            ("mysql://a/x?socket=/s&weight=0&tls=verify", "mysql://a/x?socket=/s&tls=verify", Some(0)),
            ("mysql://u:p?weight=9@a/", "mysql://u:p?weight=9@a/", None),
        ] {
            assert_eq!(split(dsn).unwrap(), (plain.to_string(), weight));
        }
        for bad in ["mysql://a/?weight=-1", "mysql://a/?weight=x", "mysql://a/?weight=1001"] {
            assert!(split(bad).unwrap_err().to_string().contains("0 to 1000"), "{bad}");
        }
    }

    #[test]
    fn a_weight_asks_for_its_placement_and_for_no_other() {
        let servers = |dsns: [&str; 2]| {
            dsns.map(|dsn| ServerPlan::Dsn { dsn: dsn.to_string(), set: Vec::new() }).to_vec()
        };
        let plain = servers(["mysql://a/", "mysql://b/"]);
        let weighted = servers(["mysql://a/", "mysql://b/?weight=3"]);
        assert_eq!(placement(None, &plain).unwrap(), Placement::RoundRobin);
        assert_eq!(placement(Some(Placement::Pinned), &plain).unwrap(), Placement::Pinned);
        assert_eq!(placement(None, &weighted).unwrap(), Placement::Weighted);
        assert_eq!(placement(Some(Placement::Weighted), &weighted).unwrap(), Placement::Weighted);
        for asked in [Placement::RoundRobin, Placement::Pinned] {
            let refused = placement(Some(asked), &weighted).unwrap_err().to_string();
            assert!(refused.contains("leave out --placement"), "{refused}");
        }
    }
}
