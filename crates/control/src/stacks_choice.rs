//! Whether the choice of stacks makes sense.

use whyso_trace::{StackSampling, StacksOf};

use crate::Error;

/// Checks that stacks of programs are asked for only where stacks are taken.
///
/// # Errors
/// None are taken.
pub(crate) fn check_stacks(stacks: StackSampling, stacks_of: StacksOf) -> Result<(), Error> {
    match (stacks, stacks_of) {
        (StackSampling::Off, StacksOf::All) => Err(Error::Plan(
            "--stacks-of all takes stacks: leave out --stacks=none, or --stacks-of all".to_string(),
        )),
        _ => Ok(()),
    }
}

/// Refuses to sample the programs of this machine next to the server of another one.
pub(crate) fn check_stacks_of_hosts(has_hosts: bool, stacks_of: StacksOf) -> Result<(), Error> {
    match has_hosts && stacks_of == StacksOf::All {
        true => Err(Error::Plan(
            "--hosts records the stacks of servers only: leave out --stacks-of all".to_string(),
        )),
        false => Ok(()),
    }
}
