//! The script as the engine sees it.

use std::rc::Rc;
use std::sync::Arc;

use whyso_load::{Driver, Work, WorkError};

use crate::driver::ScriptDriver;
use crate::error::ScriptError;
use crate::facts::{Facts, Job};
use crate::state::{Body, State};
use crate::watchdog::Watchdog;

/// What a script's users do: events, or a command.
pub(crate) struct ScriptWork {
    facts: Arc<Facts>,
    watchdog: Watchdog,
    kinds: Vec<String>,
}

impl ScriptWork {
    /// # Errors
    /// No thread can be started for the watchdog.
    pub(crate) fn new(facts: Arc<Facts>) -> Result<ScriptWork, ScriptError> {
        let of_stage = facts.clone();
        let watchdog = Watchdog::new(facts.turn_max, move || of_stage.stage())?;
        let kinds = ["read", "write", "other"].map(str::to_string).to_vec();
        Ok(ScriptWork { facts, watchdog, kinds })
    }
}

impl Work for ScriptWork {
    fn kinds(&self) -> &[String] {
        &self.kinds
    }

    fn connects_on_demand(&self) -> bool {
        true
    }

    fn drivers(&self, _loop_number: u32, users: &[u32]) -> Result<Vec<Box<dyn Driver>>, WorkError> {
        let state = Rc::new(State::new(self.facts.clone())?);
        let watch = self.watchdog.watch(&state, users.len());
        let body = match self.facts.job {
            Job::Events => Body::Worker,
            Job::Command(_) => Body::Command,
        };
        let mut drivers: Vec<Box<dyn Driver>> = Vec::with_capacity(users.len());
        for user in users {
            drivers.push(Box::new(ScriptDriver::new(state.clone(), watch.clone(), *user, body)?));
        }
        Ok(drivers)
    }
}
