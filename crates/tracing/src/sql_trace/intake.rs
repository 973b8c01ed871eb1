//! Commands as they come from the programs, with their texts, up to the recorder.

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::{Duration, Instant};

use whyso_record::Recorder;
use whyso_record::data::{ClientCommand, CommandTimes};
use whyso_trace::{Client, Command, command_name};

use super::statement_texts::StatementTexts;
use crate::literals::Literals;

/// A command that began later was sent when the programs were attached already.
const UNSEEN_TIME_MAX: Duration = Duration::from_secs(1);
/// Commands from before then are not held any longer until their sender is known: the samplers send one every five seconds.
const SENDERS_TIME_MAX: Duration = Duration::from_secs(6);

/// What becomes of commands between the programs and the recorder.
pub struct CommandIntake {
    texts: StatementTexts,
    commands: Vec<ClientCommand>,
    /// Commands whose sender is not known, by connection: they began when the programs had just been attached. The next command there
    /// shows who sent them.
    unknown: HashMap<u64, Vec<ClientCommand>>,
    since: Instant,
    pub(super) followed: u64,
}

impl CommandIntake {
    pub fn new(literals: Literals) -> CommandIntake {
        CommandIntake {
            texts: StatementTexts::new(literals),
            commands: Vec::new(),
            unknown: HashMap::new(),
            since: Instant::now(),
            followed: 0,
        }
    }

    pub fn enter(&mut self, command: &Command<'_>) {
        self.followed += 1;
        let texts = self.texts.of(command);
        let times = command.times.map(|times| CommandTimes {
            cpu_ns: times.cpu_ns,
            runqueue_ns: times.runqueue_ns,
            lock_ns: times.lock_ns,
            io_ns: times.io_ns,
        });
        let entered = ClientCommand {
            t_ns: command.begin_ns,
            tid: command.tid,
            client: Cow::Borrowed(command.client.name()),
            command: command_name(command.number),
            response_ns: command.end_ns.saturating_sub(command.begin_ns).max(0).unsigned_abs(),
            times,
            rows_sent: command.counts.rows_sent,
            rows_examined: command.counts.rows_examined,
            rows_affected: command.counts.rows_affected,
            error: command.counts.error,
            connection: command.counts.connection_id,
            length: command.length,
            prepared: texts.prepared,
            statement: texts.statement,
            text: texts.text,
        };
        if command.client != Client::Unknown {
            let before = self.unknown.remove(&command.connection).into_iter().flatten();
            self.commands
                .extend(before.map(|command| ClientCommand { client: entered.client.clone(), ..command }));
        } else if self.since.elapsed() < UNSEEN_TIME_MAX {
            self.unknown.entry(command.connection).or_default().push(entered);
            return;
        }
        self.commands.push(entered);
    }

    /// Gives what was entered since the last time to the recorder.
    pub fn hand_over(&mut self, recorder: &Recorder) {
        if self.since.elapsed() > SENDERS_TIME_MAX {
            self.give_up_unknown();
        }
        self.commands.sort_by_key(|command| command.t_ns);
        recorder.statements(&self.texts.take_fresh());
        recorder.commands(&std::mem::take(&mut self.commands));
    }

    /// Commands whose statement found no place.
    pub fn statements_lost(&self) -> u64 {
        self.texts.full
    }

    /// Its connections are others now.
    pub(super) fn server_restarted(&mut self) {
        self.texts.forget_connections();
        self.since = Instant::now();
    }

    /// Who sent what is left stays unknown.
    pub(super) fn give_up_unknown(&mut self) {
        self.commands.extend(std::mem::take(&mut self.unknown).into_values().flatten());
    }
}
