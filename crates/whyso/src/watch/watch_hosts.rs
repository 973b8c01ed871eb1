//! `whyso watch --hosts`: several hosts by their agents, each on a screen of its own.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use anyhow::Result;
use whyso_control::{Error, HostsPlan, RecordPlan, RecordTarget, ShowHosts, WatchedHosts};
use whyso_live::{About, AskError, Control, HostHistories, Server};
use whyso_record::Tap;
use whyso_record::run::RunInfo;

use super::{WatchArgs, plan_of, show_outcomes, version_of};
use crate::progress::Bars;
use crate::user::handle_ctrl_c;

pub(super) fn watch(args: &WatchArgs, file: &Path) -> Result<ExitCode> {
    let hosts = crate::hosts_file::read(file)?;
    let screens =
        HostScreens { histories: Arc::new(HostHistories::new(server_host(&hosts))), bars: Bars::new() };
    let plan = RecordPlan { hosts: Some(hosts), toggle: false, ..plan_of(args, RecordTarget::Machine)? };
    let outcome = whyso_control::watch_hosts(&plan, &screens, &screens.bars, handle_ctrl_c()?);
    screens.bars.clear();
    show_outcomes(outcome?.into_iter().collect())
}

fn server_host(hosts: &HostsPlan) -> Option<&str> {
    hosts.hosts.iter().find(|host| host.server.is_some()).map(|host| host.name.as_str())
}

/// A screen for each host.
struct HostScreens {
    histories: Arc<HostHistories>,
    /// Text that is printed before the screen is shown.
    bars: Bars,
}

impl ShowHosts for HostScreens {
    fn tap(&self) -> Arc<dyn Tap> {
        self.histories.clone()
    }

    fn show(&self, watched: &WatchedHosts<'_>) -> Result<(), Error> {
        self.bars.clear();
        let hosts: Vec<HostScreen> =
            watched.hosts().into_iter().map(|host| self.screen(host, watched)).collect();
        let keys: Vec<HostKeys<'_>> = hosts.iter().map(|host| HostKeys { watched, host }).collect();
        let servers: Vec<Server<'_>> = hosts
            .iter()
            .zip(&keys)
            .map(|(host, control)| Server { history: &host.history, about: &host.about, control })
            .collect();
        let drawn = whyso_live::show(&servers);
        drawn.map_err(|error| Error::Failed(format!("the terminal can't be drawn on: {error}")))
    }
}

/// What one screen shows.
struct HostScreen {
    history: Arc<whyso_live::History>,
    about: About,
    run: RunInfo,
}

impl HostScreens {
    fn screen(&self, (name, run): (String, RunInfo), watched: &WatchedHosts<'_>) -> HostScreen {
        let about = About {
            server: if run.server.version.is_empty() { String::new() } else { version_of(&run) },
            machine: whyso_query::machine(&run),
            variables: run.server.variables.clone(),
            recording: watched.path().display().to_string(),
            endpoint: match run.server.endpoint.as_str() {
                "" => name.clone(),
                endpoint => format!("{name}: {endpoint}"),
            },
        };
        HostScreen { history: self.histories.of(&name), about, run }
    }
}

/// What the keys do.
struct HostKeys<'a> {
    watched: &'a WatchedHosts<'a>,
    host: &'a HostScreen,
}

/// Agents ask a server nothing that is not sampled.
fn not_asked() -> Receiver<Result<String, AskError>> {
    let (send, answer) = channel();
    let why = "its agent asks the server nothing more: run whyso watch on its host".to_string();
    // Its other end is returned.
    let _ = send.send(Err(AskError(why)));
    answer
}

impl Control for HostKeys<'_> {
    fn toggle_recording(&self) {
        self.watched.keep();
    }

    fn recording_since_ns(&self) -> Option<i64> {
        self.watched.kept_since_ns()
    }

    fn keeps_all(&self) -> bool {
        true
    }

    fn note(&self, text: &str) -> Result<(), whyso_live::NoteError> {
        self.watched.note(text).map_err(|error| whyso_live::NoteError::Recorder(error.to_string()))?;
        self.host.history.note(text);
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.watched.is_over()
    }

    fn trouble(&self) -> Option<String> {
        self.watched.trouble()
    }

    fn explain(&self, _statement: &str) -> Receiver<Result<String, AskError>> {
        not_asked()
    }

    fn kill(&self, _connection: u64, _statement: &str) -> Receiver<Result<String, AskError>> {
        not_asked()
    }

    fn may_kill(&self) -> bool {
        false
    }

    fn not_measured(&self) -> Vec<whyso_model::NotMeasured> {
        self.host.run.not_measured.clone()
    }
}
