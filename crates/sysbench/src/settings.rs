//! What the general options come to.

use std::path::PathBuf;
use std::time::Duration;

use whyso_load::{Address, Endpoint, EngineKind, Target, Tls};

use crate::error::SettingsError;
use crate::facts::{IgnoreErrors, OptionValue};
use crate::random::{Kind, RandomOptions};

/// Debian's place for the server's socket, which stands for the host "localhost".
const SOCKET_OF_LOCALHOST: &str = "/run/mysqld/mysqld.sock";

/// The port that stands in messages for that socket.
const PORT: u16 = 3306;

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) threads: u32,
    pub(crate) events: u64,
    /// `None`: no limit.
    pub(crate) time: Option<Duration>,
    pub(crate) warmup: Duration,
    /// How long events get to end when the time is up; `None`: as long as they take.
    pub(crate) forced_shutdown: Option<Duration>,
    pub(crate) init_timeout: Duration,
    pub(crate) rate: f64,
    pub(crate) report_interval: u64,
    pub(crate) checkpoints: Vec<u64>,
    pub(crate) turn_max: Duration,
    pub(crate) json: Option<String>,
    /// Folder in which the run is recorded, in one of its own.
    pub(crate) record: Option<PathBuf>,
    /// Hosts whose agents record, too.
    pub(crate) hosts: Option<PathBuf>,
    pub(crate) engine: EngineKind,
    pub(crate) random: RandomOptions,
    /// 0: from the time.
    pub(crate) seed: u64,
    pub(crate) verbosity: u32,
    pub(crate) percentile: u32,
    pub(crate) histogram: bool,
    pub(crate) text_only: bool,
    pub(crate) dry_run: bool,
    pub(crate) validate: bool,
    pub(crate) ignore_errors: IgnoreErrors,
    pub(crate) compression: bool,
    pub(crate) endpoints: Vec<Endpoint>,
    /// Encrypted, but to a server that nobody verified.
    pub(crate) is_unverified: bool,
}

/// Looks values up by name; what is not of the type asked for can't be, since the options were read by their types.
struct Values<'v>(&'v [(String, OptionValue)]);

impl Values<'_> {
    fn get(&self, name: &str) -> &OptionValue {
        self.0.iter().find(|(option, _)| option == name).map_or(&OptionValue::Null, |(_, value)| value)
    }

    fn number(&self, name: &str) -> f64 {
        if let OptionValue::Number(value) = self.get(name) { *value } else { 0.0 }
    }

    fn bounded(&self, name: &str, least: f64, most: f64) -> Result<f64, SettingsError> {
        let value = self.number(name);
        if name == "threads" && value < least {
            return Err(SettingsError::Threads { value });
        }
        if value < least || value > most {
            return Err(SettingsError::Range { name: name.to_string(), value, least, most });
        }
        Ok(value)
    }

    fn seconds(&self, name: &str) -> Result<Duration, SettingsError> {
        Ok(Duration::from_secs_f64(self.bounded(name, 0.0, 1e9)?))
    }

    fn is_on(&self, name: &str) -> bool {
        matches!(self.get(name), OptionValue::Bool(true))
    }

    fn text(&self, name: &str) -> &str {
        if let OptionValue::Text(value) = self.get(name) { value } else { "" }
    }

    fn list(&self, name: &str) -> &[String] {
        if let OptionValue::List(values) = self.get(name) { values } else { &[] }
    }
}

impl Settings {
    /// # Errors
    /// The first value that can't be used, as sysbench says it.
    pub(crate) fn new(values: &[(String, OptionValue)]) -> Result<Settings, SettingsError> {
        let values = Values(values);
        for name in ["mysql-ssl-key", "mysql-ssl-cert"] {
            if values.is_on(name) || !values.text(name).is_empty() {
                return Err(SettingsError::NotServed { name });
            }
        }
        if !matches!(values.text("db-driver"), "" | "mysql") {
            return Err(SettingsError::Driver { driver: values.text("db-driver").to_string() });
        }
        let text_only = match values.text("db-ps-mode") {
            "auto" | "" => false,
            "disable" => true,
            other => return Err(SettingsError::PreparedMode { mode: other.to_string() }),
        };
        let threads = values.bounded("threads", 1.0, 1e6)? as u32;
        let time = values.seconds("time")?;
        let (json, record, hosts) = (values.text("json"), values.text("record"), values.text("hosts"));
        if record.is_empty() && !hosts.is_empty() {
            return Err(SettingsError::HostsWithoutRecord);
        }
        let random = RandomOptions {
            default: values.text("rand-type").parse::<Kind>()?,
            iterations: values.bounded("rand-spec-iter", 1.0, 1e6)? as u32,
            hot_rows_pct: values.bounded("rand-spec-pct", 1.0, 100.0)? as u32,
            hot_draws_pct: values.bounded("rand-spec-res", 0.0, 100.0)? as u32,
            pareto_h: values.bounded("rand-pareto-h", 1e-9, 1.0 - 1e-9)?,
            zipfian_exponent: values.bounded("rand-zipfian-exp", 0.0, 1e3)?,
        };
        let mut checkpoints: Vec<u64> = values
            .list("report-checkpoints")
            .iter()
            .map(|text| text.parse().map_err(|_| invalid_value("report-checkpoints", text)))
            .collect::<Result<_, _>>()?;
        checkpoints.sort_unstable();
        let tls = tls_of(&values);
        Ok(Settings {
            threads,
            events: values.bounded("events", 0.0, 1e18)? as u64,
            time: (time > Duration::ZERO).then_some(time),
            warmup: values.seconds("warmup-time")?,
            forced_shutdown: forced_shutdown(values.text("forced-shutdown"), time)?,
            init_timeout: Duration::from_secs_f64(values.bounded("thread-init-timeout", 1.0, 1e6)?),
            rate: values.bounded("rate", 0.0, 1e10)?,
            report_interval: values.bounded("report-interval", 0.0, 1e9)? as u64,
            checkpoints,
            turn_max: Duration::from_secs_f64(values.bounded("turn-timeout", 1.0, 1e9)?),
            json: (!json.is_empty()).then(|| json.to_string()),
            record: (!record.is_empty()).then(|| PathBuf::from(record)),
            hosts: (!hosts.is_empty()).then(|| PathBuf::from(hosts)),
            engine: values.text("engine").parse()?,
            random,
            seed: values.bounded("rand-seed", 0.0, 9e15)? as u64,
            verbosity: values.bounded("verbosity", 0.0, 1e9)? as u32,
            percentile: values.bounded("percentile", 0.0, 100.0)? as u32,
            histogram: values.is_on("histogram"),
            text_only,
            dry_run: values.is_on("mysql-dry-run"),
            validate: values.is_on("validate"),
            ignore_errors: ignore_errors(values.list("mysql-ignore-errors"))?,
            compression: values.is_on("mysql-compression"),
            endpoints: endpoints(&values, &tls)?,
            is_unverified: tls == Tls::Insecure,
        })
    }
}

impl Settings {
    /// The servers as sysbench names them in messages, in the order in which they are used.
    pub(crate) fn servers(&self) -> Vec<String> {
        let name = |endpoint: &Endpoint| match &endpoint.target.address {
            Address::Unix(path) if path == std::path::Path::new(SOCKET_OF_LOCALHOST) => {
                format!("host 'localhost', port {PORT}")
            }
            Address::Unix(path) => format!("socket '{}'", path.display()),
            Address::Tcp { host, port } => format!("host '{host}', port {port}"),
        };
        self.endpoints.iter().map(name).collect()
    }
}

fn invalid_value(name: &'static str, text: &str) -> SettingsError {
    SettingsError::Value { name, text: text.to_string() }
}

fn forced_shutdown(text: &str, time: Duration) -> Result<Option<Duration>, SettingsError> {
    let invalid = || invalid_value("forced-shutdown", text);
    match text {
        "" | "off" => Ok(None),
        text => {
            let (number, unit) = match text.strip_suffix('%') {
                Some(number) => (number, time.as_secs_f64() / 100.0),
                None => (text, 1.0),
            };
            let number: f64 = number.parse().map_err(|_| invalid())?;
            let is_fit = number.is_finite() && (0.0..1e9).contains(&number);
            if is_fit { Ok(Some(Duration::from_secs_f64(number * unit))) } else { Err(invalid()) }
        }
    }
}

fn ignore_errors(list: &[String]) -> Result<IgnoreErrors, SettingsError> {
    if list.iter().any(|text| text == "all") {
        return Ok(IgnoreErrors::All);
    }
    let errnos = list
        .iter()
        .map(|text| text.parse().map_err(|_| invalid_value("mysql-ignore-errors", text)))
        .collect::<Result<Vec<u16>, _>>()?;
    Ok(IgnoreErrors::These(errnos))
}

fn tls_of(values: &Values<'_>) -> Tls {
    let ca = values.text("mysql-ssl-ca");
    match (values.is_on("mysql-ssl"), ca) {
        (false, _) => Tls::Off,
        (true, "") => Tls::Insecure,
        (true, ca) => Tls::Verify { ca: Some(PathBuf::from(ca)), host: String::new() },
    }
}

fn endpoints(values: &Values<'_>, tls: &Tls) -> Result<Vec<Endpoint>, SettingsError> {
    let password = match values.text("mysql-password") {
        "" => std::env::var("MYSQL_PWD").unwrap_or_default(),
        password => password.to_string(),
    };
    let target = |address: Address| {
        let tls = match (&address, tls) {
            (Address::Tcp { host, .. }, Tls::Verify { ca, .. }) => {
                Tls::Verify { ca: ca.clone(), host: host.clone() }
            }
            (_, tls) => tls.clone(),
        };
        let target = Target {
            address,
            user: values.text("mysql-user").to_string(),
            password: password.clone(),
            schema: values.text("mysql-db").to_string(),
            tls,
        };
        Endpoint { target, weight: 1 }
    };
    let sockets = values.list("mysql-socket");
    if !sockets.is_empty() {
        return Ok(sockets.iter().map(|socket| target(Address::Unix(PathBuf::from(socket)))).collect());
    }
    let mut endpoints = Vec::new();
    for host in values.list("mysql-host") {
        if host == "localhost" && std::path::Path::new(SOCKET_OF_LOCALHOST).exists() {
            endpoints.push(target(Address::Unix(PathBuf::from(SOCKET_OF_LOCALHOST))));
            continue;
        }
        for port in values.list("mysql-port") {
            let port = port.parse().map_err(|_| invalid_value("mysql-port", port))?;
            endpoints.push(target(Address::Tcp { host: host.clone(), port }));
        }
    }
    Ok(endpoints)
}
