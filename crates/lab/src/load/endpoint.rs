//! The weight of an endpoint, a parameter of its DSN that is the load's alone.

use crate::Error;
use crate::plan::ServerPlan;

const WEIGHT_MAX: u32 = 1000;

/// Takes `weight=N` out of a server's DSN; 1 where there is none.
pub(super) fn split_weight(server: &ServerPlan) -> Result<(ServerPlan, u32), Error> {
    let ServerPlan::Dsn { dsn, set } = server else { return Ok((server.clone(), 1)) };
    let (dsn, weight) = split(dsn)?;
    Ok((ServerPlan::Dsn { dsn, set: set.clone() }, weight))
}

fn split(dsn: &str) -> Result<(String, u32), Error> {
    // A password may hold a '?': parameters come after the last '@'.
    let address = dsn.rfind('@').map_or(0, |at| at + 1);
    let Some(question_mark) = dsn[address..].find('?').map(|at| address + at) else {
        return Ok((dsn.to_string(), 1));
    };
    let mut weight = 1;
    let mut others = Vec::new();
    for parameter in dsn[question_mark + 1..].split('&') {
        let Some(value) = parameter.strip_prefix("weight=") else {
            others.push(parameter);
            continue;
        };
        weight = match value.parse::<u32>() {
            Ok(weight) if weight <= WEIGHT_MAX => weight,
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
            ("mysql://a/", "mysql://a/", 1),
            ("mysql://a/?weight=3", "mysql://a/", 3),
            ("mysql://a/x?socket=/s&weight=0&tls=verify", "mysql://a/x?socket=/s&tls=verify", 0),
            ("mysql://u:p?weight=9@a/", "mysql://u:p?weight=9@a/", 1),
        ] {
            assert_eq!(split(dsn).unwrap(), (plain.to_string(), weight));
        }
        for bad in ["mysql://a/?weight=-1", "mysql://a/?weight=x", "mysql://a/?weight=1001"] {
            assert!(split(bad).unwrap_err().to_string().contains("0 to 1000"), "{bad}");
        }
    }
}
