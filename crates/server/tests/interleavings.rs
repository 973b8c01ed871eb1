//! Settings that several runs change and put back in any order, some of them killed at any moment, and a model of who holds them.

mod fake_server;

use std::path::Path;

use fake_server::{SETTING, Server};
use mysql_async::Conn;
use proptest::prelude::*;
use whyso_server::knobs::{Undo, pending_undo_in};

const RUNS: usize = 4;

/// A run that is killed dies with its connection: after so many commands, the last of which may be carried out.
type Kill = Option<(u32, bool)>;

#[derive(Clone, Debug)]
enum Step {
    Set {
        run: usize,
        value: u64,
        kill: Kill,
    },
    End {
        run: usize,
        kill: Kill,
    },
    /// A new run puts back what dead ones have left.
    Sweep {
        kill: Kill,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let kill = || prop_oneof![3 => Just(None), 2 => (1..9_u32, any::<bool>()).prop_map(Some)];
    // Few values, so that they repeat.
    prop_oneof![
        5 => (0..RUNS, 1..5_u64, kill()).prop_map(|(run, value, kill)| Step::Set { run, value, kill }),
        3 => (0..RUNS, kill()).prop_map(|(run, kill)| Step::End { run, kill }),
        1 => kill().prop_map(|kill| Step::Sweep { kill }),
    ]
}

/// Who holds the setting, the newest last.
struct Model {
    first: u64,
    holders: Vec<Holder>,
}

struct Holder {
    run: u32,
    value: u64,
    /// Number of its change in the journals.
    order: u64,
}

impl Model {
    fn value(&self) -> u64 {
        self.holders.last().map_or(self.first, |holder| holder.value)
    }
}

struct Case<'a> {
    server: &'a Server,
    journals: &'a Path,
    model: Model,
    /// A number of the run's own, and its handle.
    live: [Option<(u32, Undo)>; RUNS],
    dead: Vec<u32>,
    runs: u32,
}

impl Case<'_> {
    async fn connect(&self, kill: Kill) -> Conn {
        self.server.state().breaks = None;
        let connection = self.server.connect().await;
        self.server.state().breaks = kill;
        connection
    }

    fn value(&self) -> u64 {
        self.server.state().value
    }

    async fn set(&mut self, run: usize, value: u64, kill: Kill) -> Result<(), TestCaseError> {
        if self.live[run].is_none() {
            let mut connection = self.connect(None).await;
            self.runs += 1;
            let undo = Undo::open_in(self.journals, &mut connection).await.unwrap();
            self.live[run] = Some((self.runs, undo));
        }
        let mut connection = self.connect(kill).await;
        let sets = self.server.state().sets;
        let Some((number, undo)) = &mut self.live[run] else { return Ok(()) };
        let number = *number;
        let done = undo.set_global(&mut connection, SETTING, &value.to_string()).await;
        let was_set = self.server.state().sets > sets;
        // Where it was to be set and was not, its run can't tell, and holds it as one that set what was there.
        if was_set || kill == Some((2, false)) {
            let value = if was_set { value } else { self.model.value() };
            let order = self.orders().into_iter().max().unwrap_or(0);
            self.model.holders.push(Holder { run: number, value, order });
        }
        if done.is_err() {
            self.live[run] = None;
            self.dead.push(number);
        }
        self.check("change")
    }

    /// Its changes go, also where it dies meanwhile: then some of them.
    async fn end(&mut self, run: usize, kill: Kill) -> Result<(), TestCaseError> {
        let Some((number, mut undo)) = self.live[run].take() else { return Ok(()) };
        let mut connection = self.connect(kill).await;
        let done = undo.undo_all(&mut connection).await;
        drop(undo);
        if done.is_err() {
            self.dead.push(number);
        }
        self.drop_ended_holders(&[number], done.is_ok())
    }

    async fn sweep(&mut self, kill: Kill) -> Result<(), TestCaseError> {
        let mut connection = self.connect(kill).await;
        let mut done = true;
        match pending_undo_in(self.journals, &mut connection).await {
            Ok(pending) => {
                for mut undo in pending {
                    done = done && undo.undo_all(&mut connection).await.is_ok();
                }
            }
            Err(_) => done = false,
        }
        let dead = self.dead.clone();
        if done {
            self.dead.clear();
        }
        self.drop_ended_holders(&dead, done)
    }

    /// The numbers of all changes in the journals.
    fn orders(&self) -> Vec<u64> {
        let entries = std::fs::read_dir(self.journals).into_iter().flatten().flatten();
        let texts = entries.filter_map(|entry| std::fs::read_to_string(entry.path()).ok());
        let journals = texts.filter_map(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
        let of_one = |journal: serde_json::Value| -> Vec<u64> {
            let changes = journal["changes"].as_array().cloned().unwrap_or_default();
            changes.iter().filter_map(|change| change["order"].as_u64()).collect()
        };
        journals.flat_map(of_one).collect()
    }

    /// Takes out the holders that have ended: all of these runs, or those that the journals do not have any more.
    fn drop_ended_holders(&mut self, runs: &[u32], all: bool) -> Result<(), TestCaseError> {
        let orders = self.orders();
        let is_gone =
            |holder: &Holder| runs.contains(&holder.run) && (all || !orders.contains(&holder.order));
        self.model.holders.retain(|holder| !is_gone(holder));
        self.check("end")
    }

    /// Whoever lives and set the setting last has the value that it set. That of a dead run may be back already, or not.
    fn check(&self, what: &str) -> Result<(), TestCaseError> {
        let newest = self.model.holders.last();
        if newest.is_none_or(|holder| !self.dead.contains(&holder.run)) {
            prop_assert_eq!(self.value(), self.model.value(), "after the {}", what);
        }
        Ok(())
    }
}

async fn play(server: &Server, first: u64, steps: &[Step]) -> Result<(), TestCaseError> {
    let journals = tempfile::tempdir_in(server.folder.path()).unwrap();
    server.state().value = first;
    let model = Model { first, holders: Vec::new() };
    let mut case = Case {
        server,
        journals: journals.path(),
        model,
        live: Default::default(),
        dead: Vec::new(),
        runs: 0,
    };
    for step in steps {
        match step {
            Step::Set { run, value, kill } => case.set(*run, *value, *kill).await?,
            Step::End { run, kill } => case.end(*run, *kill).await?,
            Step::Sweep { kill } => case.sweep(*kill).await?,
        }
    }
    for run in 0..RUNS {
        case.end(run, None).await?;
    }
    case.sweep(None).await?;
    prop_assert_eq!(case.value(), first, "after the last one out");
    let left: Vec<_> = std::fs::read_dir(journals.path()).into_iter().flatten().flatten().collect();
    let left: Vec<_> = left.iter().map(|entry| entry.file_name()).filter(|name| name != "all.lock").collect();
    prop_assert!(left.is_empty(), "left: {:?}", left);
    Ok(())
}

fn play_many(cases: u32) {
    let server = Server::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(first in 1..5_u64, steps in prop::collection::vec(step(), 1..14))| {
        runtime.block_on(play(&server, first, &steps))?;
    });
}

#[test]
fn the_last_run_out_puts_the_first_value_back_whoever_was_killed() {
    play_many(600);
}

#[test]
#[ignore = "long: make test-hard"]
fn the_last_run_out_puts_the_first_value_back_in_very_many_orders() {
    play_many(30_000);
}
