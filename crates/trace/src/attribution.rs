//! Whose the requests are that nobody known was seen to send: the load's, or other clients'.
//!
//! Where the generator is watched and its connections reach the server directly, they are other clients'. Where a proxy stands between, or
//! where the load comes from programs that are not watched, they are the load's. The answers that the generator got show which of
//! these it is. Answers that the server sent to no thread of the generator arrived by a relay.

use crate::reading::{ClientSums, OtherSums, ServerSums, add};

/// What is known of where the load comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Generator {
    /// Nothing: every request is the load's, except those of this program.
    #[default]
    Unknown,
    /// This program's threads that are named `load-N`.
    Own,
    /// A command, which may load the server by something else that it starts or asks.
    Command,
}

/// A relay passes on nearly all that the generator gets: a direct connection among this many answers does not belong to the load.
const DIRECT_SHARE_MIN: u64 = 20;
/// Readings after which a command that was not seen to load the server counts as one that has something else do it.
const OPEN_READINGS_MAX: u32 = 5;
/// After this many answers without any direct request, the load comes by a relay.
const ANSWERS_MAX: u64 = 20;

/// Sums of requests, as the programs in the kernel keep them apart.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequestSums {
    /// That a generator's thread was seen to send.
    pub(crate) direct: ServerSums,
    /// That nobody known was.
    pub(crate) strange: ServerSums,
    pub(crate) connections: u64,
    /// This program's.
    pub(crate) own: u64,
    pub(crate) client: ClientSums,
}

/// Divides strange requests between the load and other clients, reading by reading.
#[derive(Debug, Default)]
pub(crate) struct Attribution {
    generator: Generator,
    /// Whether strange requests belong to the load; `None`: nothing has shown it yet.
    is_load: Option<bool>,
    answers_since_direct: u64,
    before: RequestSums,
    /// Strange requests while that is open, and for how many readings it was.
    open: StrangeSums,
    open_readings: u32,
    to_load: ServerSums,
    others: OtherSums,
    requests_of_others: u64,
}

/// What strange requests grew by.
#[derive(Clone, Copy, Debug, Default)]
struct StrangeSums {
    sums: ServerSums,
    connections: u64,
}

impl Attribution {
    pub(crate) fn new(generator: Generator) -> Attribution {
        let is_load = match generator {
            Generator::Unknown => Some(true),
            Generator::Own => Some(false),
            Generator::Command => None,
        };
        Attribution { generator, is_load, ..Attribution::default() }
    }

    /// Whether requests that nobody known was seen to send are the load's, as of the last reading.
    pub(crate) fn strange_is_load(&self) -> bool {
        self.is_load == Some(true)
    }

    /// A command begins now: what strange connections did before was none of its load.
    pub(crate) fn command_begins(&mut self) {
        if self.generator == Generator::Command {
            self.enter(false);
            (self.is_load, self.open_readings) = (None, 0);
        }
    }

    /// The sums of the load and of other clients up to now. `settle`: what is open is decided now: without any sign of the
    /// generator, something else loads the server for it.
    pub(crate) fn divide(&mut self, sums: RequestSums, settle: bool) -> (ServerSums, OtherSums) {
        let direct = sums.direct.requests.saturating_sub(self.before.direct.requests);
        let answers = sums.client.answers.saturating_sub(self.before.client.answers);
        self.decide(direct, answers);
        self.open.sums.add(&sums.strange.since(&self.before.strange));
        self.open.connections += sums.connections.saturating_sub(self.before.connections);
        self.before = sums;
        if self.is_load.is_none() {
            self.open_readings += 1;
            if settle || self.open_readings >= OPEN_READINGS_MAX {
                self.is_load = Some(true);
            }
        }
        if let Some(is_load) = self.is_load {
            self.enter(is_load);
        }
        let mut load = self.to_load;
        load.add(&sums.direct);
        load.relayed = self.to_load.requests;
        load.others = sums.own + self.requests_of_others;
        (load, self.others)
    }

    /// `direct`, `answers`: by how much these grew since the last reading.
    fn decide(&mut self, direct: u64, answers: u64) {
        if self.generator == Generator::Unknown {
            return;
        }
        self.answers_since_direct = if direct > 0 { 0 } else { self.answers_since_direct + answers };
        if direct > 0 {
            self.is_load = Some(direct * DIRECT_SHARE_MIN < answers);
        } else if answers > 0
            && (self.before.direct.requests == 0 || self.answers_since_direct >= ANSWERS_MAX)
        {
            self.is_load = Some(true);
        }
    }

    fn enter(&mut self, is_load: bool) {
        let open = std::mem::take(&mut self.open);
        if is_load {
            self.to_load.add(&open.sums);
            return;
        }
        self.requests_of_others += open.sums.requests;
        self.others.requests += open.sums.requests;
        self.others.connections += open.connections;
        add(&mut self.others.in_requests, &open.sums.in_requests);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyso_model::State;

    /// Sums that began at 0 and grew, second by second.
    #[derive(Default)]
    struct Server {
        total: RequestSums,
    }

    impl Server {
        fn second(&mut self, direct: u64, strange: u64, answers: u64) -> RequestSums {
            let sums = &mut self.total;
            sums.direct.requests += direct;
            sums.direct.request_ns += direct * 100;
            sums.strange.requests += strange;
            sums.strange.request_ns += strange * 1_000_000;
            sums.strange.in_requests[State::Cpu as usize] += strange * 10;
            sums.strange.in_requests[State::Lock as usize] += strange * 999_990;
            sums.client.answers += answers;
            *sums
        }
    }

    #[test]
    fn next_to_a_load_that_comes_directly_strange_requests_are_others() {
        let (mut server, mut attribution) = (Server::default(), Attribution::new(Generator::Own));
        attribution.divide(server.second(0, 7, 0), false);
        server.total.connections = 3;
        let (load, others) = attribution.divide(server.second(1000, 20, 990), false);
        assert_eq!((load.requests, load.request_ns, load.relayed), (1000, 100_000, 0));
        assert_eq!((others.requests, others.connections, load.others), (27, 3, 27));
        assert_eq!(others.in_requests[State::Cpu as usize], 270);
        // A slow one: an answer whose request was answered in the second before, and users that pause.
        for (direct, answers) in [(0, 1), (1, 0), (0, 1), (0, 0)] {
            let (load, _) = attribution.divide(server.second(direct, 20, answers), true);
            assert_eq!(load.relayed, 0);
        }
    }

    #[test]
    fn strange_requests_are_the_loads_where_a_relay_brings_them() {
        let (mut server, mut attribution) = (Server::default(), Attribution::new(Generator::Own));
        let (load, others) = attribution.divide(server.second(0, 1000, 990), false);
        assert_eq!((load.requests, load.relayed, others.requests), (1000, 1000, 0));
        assert_eq!(load.request_ns, 1_000_000_000);
        // A few direct ones, such as of a script that checks whether the server is there.
        let (load, others) = attribution.divide(server.second(2, 1000, 1000), false);
        assert_eq!((load.requests, others.requests), (2002, 0));
    }

    #[test]
    fn one_of_several_servers_is_loaded_directly() {
        let (mut server, mut attribution) = (Server::default(), Attribution::new(Generator::Own));
        let (load, others) = attribution.divide(server.second(250, 20, 1000), false);
        assert_eq!((load.requests, others.requests), (250, 20));
    }

    #[test]
    fn before_a_command_shows_how_it_loads_nothing_is_decided() {
        let mut server = Server::default();
        let mut direct = Attribution::new(Generator::Command);
        assert_eq!(direct.divide(server.second(0, 5, 0), false).0.requests, 0);
        direct.command_begins();
        let (load, others) = direct.divide(server.second(0, 20, 0), false);
        assert_eq!((load.requests, others.requests), (0, 5), "what was sent before it is others'");
        let (load, others) = direct.divide(server.second(500, 20, 480), false);
        assert_eq!((load.requests, others.requests), (500, 45));

        // One that only waits, while something else loads.
        let mut waits = Attribution::new(Generator::Command);
        let mut server = Server::default();
        waits.command_begins();
        waits.divide(server.second(0, 300, 0), false);
        let (load, others) = waits.divide(server.second(0, 300, 0), true);
        assert_eq!((load.requests, others.requests), (600, 0));
    }

    #[test]
    fn of_an_unknown_generator_every_request_is_the_loads() {
        let (mut server, mut attribution) = (Server::default(), Attribution::new(Generator::Unknown));
        let (load, others) = attribution.divide(server.second(10, 300, 10), false);
        assert_eq!((load.requests, load.relayed, others), (310, 300, OtherSums::default()));
    }

    #[test]
    fn a_load_that_moves_behind_a_relay_is_found_there() {
        let (mut server, mut attribution) = (Server::default(), Attribution::new(Generator::Command));
        attribution.divide(server.second(100, 0, 99), false);
        let (load, _) = attribution.divide(server.second(0, 900, 890), false);
        assert_eq!(load.requests, 1000);
    }
}
