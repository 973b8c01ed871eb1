//! A study of a web application: what it can have, and which of them was started.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use crate::hints::hint;
use crate::measures::{OF_APPS, of_page};
use crate::setup::Part;
use crate::spec::{Spec, engine, rows, tables};
use crate::{Error, Journal};

/// The sample application that whyso can start.
pub const CALENDAR: &str = "calendar";

/// Measures of the load over HTTP, and of the application meanwhile.
const MEASURES: [&str; 12] = [
    "transactions_per_s",
    "latency_mean_ms",
    "latency_p90_ms",
    "latency_p99_ms",
    "errors_percent",
    "web_workers_busy",
    "web_workers_kept",
    "connections_held",
    "connections_waiting",
    "time_wait_ports",
    RECORDED[0],
    RECORDED[1],
];
/// Only the tracer measures these.
const RECORDED: [&str; 2] = ["kernel_lock_ms", "after_answer_ms"];
/// In a study's folder: the folder of the application that runs.
const STARTED: &str = "app-folder";

fn wrong<T>(why: impl Into<String>) -> Result<T, Error> {
    Err(Error::Spec(why.into()))
}

impl Spec {
    /// Refuses what only a server can have, or only the sample application.
    pub(crate) fn check_app(&self) -> Result<(), Error> {
        let names = || std::iter::once(&self.metric).chain(&self.show).chain(&self.over_time);
        let Some(app) = &self.app else {
            let is_of_app = |name: &&String| {
                let (measure, page) = of_page(name);
                page.is_some() || OF_APPS.iter().any(|own| own.name == measure)
            };
            return match names().find(is_of_app) {
                Some(name) => wrong(format!(
                    "{name:?} is a measure of the sample application: give app = \"{CALENDAR}\", or remove it"
                )),
                None => Ok(()),
            };
        };
        if app != CALENDAR {
            return wrong(format!(
                "app = {app:?} is no application that whyso can start: give \"{CALENDAR}\""
            ));
        }
        if let Some(name) = names().find(|name| !MEASURES.contains(&of_page(name).0)) {
            return wrong(format!(
                "{name:?} is not measured of the sample application: {}",
                hint(name, &MEASURES, "measures")
            ));
        }
        if let Some(what) = self.key_of_servers() {
            return wrong(format!(
                "{what} is of database servers, and app = \"{CALENDAR}\" starts none of these: remove one of the two"
            ));
        }
        for part in self.conditions.iter().chain(&self.variants) {
            if let Some(what) = key_of_servers_in(part) {
                return wrong(format!(
                    "{:?}: {what} is of database servers, and app = \"{CALENDAR}\" starts none of these: remove one of the two",
                    part.name
                ));
            }
        }
        if self.trace && self.users.len() > 1 {
            return wrong(
                "with app, the recording of a start is of one number of users: give one in users, or trace = false",
            );
        }
        let traced = names().find(|name| RECORDED.contains(&name.as_str()));
        if let (false, Some(name)) = (self.trace, traced) {
            return wrong(format!(
                "{name:?} is measured by the tracer: remove trace = false, or this measure"
            ));
        }
        let cells = self.cells();
        let is_page = |workload: &str| workload.starts_with('/') || workload.ends_with(".toml");
        match cells.iter().find(|cell| !is_page(&cell.setup.workload)) {
            Some(cell) => wrong(format!(
                "{}: workload = {:?} is no page: give a path such as \"/index.php\", or a scenario's file",
                cell.name(),
                cell.setup.workload
            )),
            None => Ok(()),
        }
    }

    /// The first key of the file that the sample application can't have.
    fn key_of_servers(&self) -> Option<&'static str> {
        let keys = [
            ("servers", self.servers != [""]),
            ("where_at_hand", self.where_at_hand),
            ("cluster", self.cluster.is_some()),
            ("options", !self.options.is_empty()),
            ("tables", self.tables != tables()),
            ("rows", self.rows != rows()),
            ("engine", self.engine != engine()),
            ("cold", self.cold),
            ("data_dir", self.data_dir.is_some()),
            ("[inside]", self.session_sweep.is_some()),
            ("[suggest]", self.suggest.is_some()),
            ("instances", !self.instances.is_empty()),
            ("over_time", !self.over_time.is_empty()),
            ("stacks", self.stacks),
            ("trace_sql", self.trace_sql),
            ("add_ons", !self.add_ons.is_empty()),
        ];
        keys.into_iter().find(|(_, is_given)| *is_given).map(|(key, _)| key)
    }
}

fn key_of_servers_in(part: &Part) -> Option<&'static str> {
    let keys = [
        ("where_known", part.where_known),
        ("pfs", part.pfs.is_some() || part.pfs_timing.is_some()),
        ("cpus", part.cpus.is_some()),
        ("memory", part.memory.is_some()),
        ("preload", part.preload.is_some()),
        ("options", !part.options.is_empty()),
        ("tables", part.tables.is_some()),
        ("rows", part.rows.is_some()),
        ("engine", part.engine.is_some()),
        ("endpoints", part.endpoints.is_some()),
        ("cluster", part.cluster.is_some()),
        ("at", !part.at.is_empty()),
        ("server", part.server.is_some() || part.where_at_hand),
    ];
    keys.into_iter().find(|(_, is_given)| *is_given).map(|(key, _)| key)
}

impl Journal {
    /// Returns the folder of the application that a start of this study left behind, when whyso was killed.
    pub fn left_app(&self) -> Option<PathBuf> {
        let folder = crate::journal::read_plain(&self.dir().join(STARTED)).ok()?;
        let folder = String::from_utf8(folder).ok()?;
        (!folder.is_empty()).then(|| PathBuf::from(folder))
    }

    /// Writes down which application was started; `None`: it was stopped.
    ///
    /// # Errors
    /// The study's folder can't be written.
    pub fn write_app(&self, folder: Option<&std::path::Path>) -> Result<(), Error> {
        let path = self.dir().join(STARTED);
        let done = match folder {
            // Not through a link that lies there.
            Some(folder) => fs::remove_file(&path)
                .or_else(|cause| if cause.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(cause) })
                .and_then(|()| fs::File::create_new(&path))
                .and_then(|mut file| file.write_all(folder.display().to_string().as_bytes())),
            None => fs::remove_file(&path),
        };
        match done {
            Err(cause) if folder.is_some() || cause.kind() != io::ErrorKind::NotFound => {
                Err(Error::io(&path, cause))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STUDY: &str = r#"
title = "t"
question = "q"
app = "calendar"
workload = "/index.php"
users = [4]
metric = "latency_p90_ms"
show = ["latency_mean_ms:index", "kernel_lock_ms"]
baseline = "keep_alive=OFF"
[grid]
keep_alive = [false, 2]
"#;

    fn refusal(from: &str, to: &str) -> String {
        assert!(STUDY.contains(from), "{from}");
        Spec::parse(&STUDY.replace(from, to), false).unwrap_err().to_string()
    }

    #[test]
    fn its_options_are_the_grid() {
        let spec = Spec::parse(&STUDY.replace("baseline = \"", "baseline = \"default, "), false).unwrap();
        let cells = spec.cells();
        assert_eq!(cells.len(), 2);
        assert_eq!(cells[1].setup.set, [("keep_alive".to_string(), "2".to_string())]);
        assert_eq!(spec.design(), crate::Design::Blocks);
    }

    #[test]
    fn what_does_not_fit_an_application_is_refused() {
        for (from, to, word) in [
            ("\"calendar\"", "\"shop\"", "give \"calendar\""),
            ("users = [4]", "users = [4]\nservers = [\"x\"]", "servers is of database servers"),
            ("users = [4]", "users = [4]\ntables = 8", "tables is of database servers"),
            ("users = [4]", "users = [4]\ndesign = \"duet\"", "app needs starts"),
            ("users = [4]", "users = [4, 8]", "one number of users"),
            ("users = [4]", "users = [4]\ntrace = false", "measured by the tracer"),
            ("\"/index.php\"", "\"oltp-read-write\"", "is no page"),
            ("\"latency_p90_ms\"", "\"server_cpus\"", "not measured of the sample application"),
            ("[grid]", "[[variant]]\nname = \"v\"\nmemory = \"1G\"\n[grid]", "memory is of database servers"),
        ] {
            let why = refusal(from, to);
            assert!(why.contains(word), "{why}");
        }
    }

    #[test]
    fn measures_of_pages_are_of_applications_only() {
        let why = refusal("app = \"calendar\"\n", "");
        assert!(why.contains("measure of the sample application"), "{why}");
    }
}
