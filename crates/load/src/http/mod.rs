//! Pages over HTTP as drivers: a scenario's pages are the kinds of transactions, and of statements.

mod driver;

use std::sync::Arc;

use whyso_http::{Scenario, Url, Walk};

use crate::driver::{Driver, Work, WorkError};
use crate::http::driver::HttpDriver;

/// Whose pages the arrivals of an open loop are drawn by: no user has this number.
const ARRIVALS: u64 = u64::MAX;

/// What is sent, and to which site.
#[derive(Clone, Debug)]
pub struct HttpSpec {
    pub scenario: Scenario,
    /// The site. Redirects to another one are counted as errors, and not followed.
    pub site: Url,
    /// Whether a connection carries more than one request.
    pub keeps_connections: bool,
    /// Longest body that counts as an answer, in bytes.
    pub body_bytes_max: u64,
    pub seed: u64,
}

/// The pages of a scenario, with everything worked out that asking for them needs.
pub struct HttpWork {
    plan: Arc<Plan>,
}

/// What all drivers share.
pub(crate) struct Plan {
    pub(crate) spec: HttpSpec,
    /// Value of the `Host` header.
    pub(crate) authority: String,
    names: Vec<String>,
    pub(crate) is_mix: bool,
}

impl HttpWork {
    pub fn new(spec: HttpSpec) -> HttpWork {
        let names = spec.scenario.pages.iter().map(|page| page.name.clone()).collect();
        let (authority, is_mix) = (spec.site.authority(), spec.scenario.is_mix());
        HttpWork { plan: Arc::new(Plan { spec, authority, names, is_mix }) }
    }
}

impl Plan {
    /// The page of arrival `number`, where the scenario's weights only decide.
    pub(crate) fn page_of_arrival(&self, number: u64) -> usize {
        Walk::new(self.spec.seed, ARRIVALS).next_page(&self.spec.scenario, number)
    }
}

impl Work for HttpWork {
    fn kinds(&self) -> &[String] {
        &self.plan.names
    }

    fn transactions(&self) -> &[String] {
        &self.plan.names
    }

    fn transaction_kind(&self, user: Option<u32>, number: u64) -> Option<u16> {
        if !self.plan.is_mix {
            return None;
        }
        let page = match user {
            Some(user) => {
                Walk::new(self.plan.spec.seed, u64::from(user)).next_page(&self.plan.spec.scenario, number)
            }
            None => self.plan.page_of_arrival(number),
        };
        Some(page as u16)
    }

    fn body_bytes_max(&self) -> Option<u64> {
        Some(self.plan.spec.body_bytes_max)
    }

    fn drivers(&self, _loop_number: u32, users: &[u32]) -> Result<Vec<Box<dyn Driver>>, WorkError> {
        let driver = |user: &u32| -> Box<dyn Driver> {
            Box::new(HttpDriver::new(self.plan.clone(), u64::from(*user)))
        };
        Ok(users.iter().map(driver).collect())
    }
}
