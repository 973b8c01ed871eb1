//! What was asked of a load over HTTP: pages of one site that the user named.

use std::net::{TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use whyso_explain::slo::{Measure, Requirement};
use whyso_http::{Scenario, Url};
use whyso_load::{Address, Limits, LoadError, TRANSACTION, Tls};

use crate::Error;

/// Longest that connecting may take, where the time for an answer is not shorter.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// Longest time for an answer that can be asked for.
const TIMEOUT_MAX: Duration = Duration::from_secs(3600);

/// Load over HTTP, as the user asked for it.
#[derive(Clone, Debug)]
pub struct HttpPlan {
    pub(super) site: Url,
    pub(super) scenario: Scenario,
    /// Whether the pages are those of a file.
    is_of_file: bool,
    /// Whether connections carry more than one request.
    pub keeps_connections: bool,
    /// Longest time from a request to the end of its answer.
    pub timeout: Duration,
    /// How HTTPS is done.
    pub trust: Trust,
}

/// Which certificates are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Those of authorities that this machine trusts.
    Machine,
    /// Those of the authorities in this PEM file.
    File(PathBuf),
    /// Any.
    Any,
}

impl HttpPlan {
    /// A load on the site at `url`: of the pages in a scenario's file (name and text), or only of the address itself. Connections are
    /// kept open, and an answer has 30 s.
    ///
    /// # Errors
    /// The address or the file is wrong, in one sentence.
    pub fn new(url: &str, file: Option<(&str, &str)>) -> Result<HttpPlan, Error> {
        // An address with a password is not repeated.
        let shown = if url.contains('@') { "…" } else { url };
        let wrong = |why: String| Error::Plan(format!("--url {shown}: {why}"));
        let site = Url::parse(url)
            .map_err(|error| wrong(format!("{error} (an address looks like http://127.0.0.1:8080/)")))?;
        let scenario = match file {
            None => Scenario::of_path(&site.authority(), &site.path),
            Some(_) if site.path.contains('?') => {
                return Err(wrong(
                    "the pages of the scenario have their own queries: leave out ?…".to_string(),
                ));
            }
            Some((name, text)) => {
                let mut scenario =
                    Scenario::parse(name, text).map_err(|error| Error::Plan(format!("{name}: {error}")))?;
                scenario.put_under(&site.path);
                scenario
            }
        };
        let (keeps_connections, timeout) = (true, Duration::from_secs(30));
        Ok(HttpPlan {
            site,
            scenario,
            is_of_file: file.is_some(),
            keeps_connections,
            timeout,
            trust: Trust::Machine,
        })
    }

    /// What is loaded, such as "shop.toml at http://127.0.0.1:8080/", without secrets.
    pub(crate) fn title(&self) -> String {
        let site = whyso_server::redact::text(&self.site.to_string());
        if self.is_of_file { format!("{} at {site}", self.scenario.name) } else { site }
    }

    /// What the scenario's goals require: of each page that has one, the 90th percentile.
    pub fn requirements(&self) -> Vec<Requirement> {
        let mut required = Vec::new();
        for page in &self.scenario.pages {
            if let Some(required_ms) = page.goal_ms {
                let kind = format!("{TRANSACTION}:{}", page.name);
                required.push(Requirement { kind, measure: Measure::Percentile(90.0), required_ms });
            }
        }
        required
    }

    /// Checks what was set after [`new`](HttpPlan::new), and that each requirement is of a page.
    pub(crate) fn check(&self, slo: &[Requirement]) -> Result<(), Error> {
        if self.timeout.is_zero() || self.timeout > TIMEOUT_MAX {
            return Err(Error::Plan(
                "--timeout is out of range: give a time above 0, at most 1h".to_string(),
            ));
        }
        if self.trust != Trust::Machine && !self.site.is_https {
            let message = "--ca and --insecure are for https://, and the address is http://: leave them out";
            return Err(Error::Plan(message.to_string()));
        }
        let names: Vec<&str> = self.scenario.pages.iter().map(|page| page.name.as_str()).collect();
        for required in slo.iter().filter(|required| !required.is_of_all()) {
            if !names.iter().any(|name| required.is_of_transaction(name)) {
                let (kind, names) = (&required.kind, names.join(", "));
                return Err(Error::Plan(format!(
                    "--slo {kind}:… names a page that the load does not have: it has {names}"
                )));
            }
        }
        Ok(())
    }

    pub(super) fn tls(&self) -> Tls {
        let host = self.site.host.clone();
        match &self.trust {
            _ if !self.site.is_https => Tls::Off,
            Trust::Machine => Tls::Verify { ca: None, host },
            Trust::File(path) => Tls::Verify { ca: Some(path.clone()), host },
            Trust::Any => Tls::Insecure,
        }
    }

    pub(super) fn limits(&self) -> Limits {
        Limits { connect: self.timeout.min(CONNECT_TIME_MAX), stall: self.timeout, ..Limits::default() }
    }

    /// The site's first address that takes a connection, so that its name is looked up once and not for each connection.
    pub(crate) fn reach(&self) -> Result<Address, Error> {
        let (host, port) = (self.site.host.as_str(), self.site.port);
        let named = Address::Tcp { host: host.to_string(), port };
        let failed = |source| Error::Load(LoadError::Connect { address: named.to_string(), source });
        let mut last_error = None;
        for address in (host, port).to_socket_addrs().map_err(failed)? {
            match TcpStream::connect_timeout(&address, self.limits().connect) {
                Ok(_) => return Ok(Address::Tcp { host: address.ip().to_string(), port }),
                Err(error) => last_error = Some(error),
            }
        }
        Err(failed(last_error.unwrap_or_else(|| std::io::ErrorKind::NotFound.into())))
    }
}
