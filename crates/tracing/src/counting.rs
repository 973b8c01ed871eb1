//! Chooses how the time of a server's threads is counted. Programs in the kernel count it. Where these are not allowed, the threads'
//! states are sampled from `/proc`. For a server on another machine, programs count only at the load's side of the wire.
//!
//! What a choice leaves out is text for the report's "not measured". Where the server's side is missing, suspects come from what the
//! server itself reports: its process list, its lock tables and its counters (`whyso_explain`, `suspects/untraced.rs`).

use std::time::Duration;

use whyso_trace::{Cost, FileWait, Generator, Pauses, Reading, Sampler, StackSampling, TraceSpec, Tracer};

use crate::error::Error;

use crate::processes::Processes;

use whyso_model::{Missing, NotMeasured};

/// How much of a server's work is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// Every request, and every state of its thread.
    Requests,
    /// Samples of the threads' states.
    Threads,
    /// When the threads ran and when they were ready to, and nothing of their waits.
    Cpu,
    /// Only the load's side of the wire.
    Wire,
}

/// What counts: programs in the kernel, or samples from `/proc` where those are not allowed.
pub enum Counting {
    Traced(Box<Tracer>),
    Sampled(Box<Sampler>),
    /// The server's process can't be seen from here.
    Wire(Box<Tracer>),
}

impl Counting {
    /// The most detailed kind that this machine allows for a server's processes, and what it leaves out, for the report. Of several, which
    /// take parts of the same load, only the programs in the kernel count the requests.
    ///
    /// `stacks`: what of their stacks will be taken, too. `client_ports`: TCP ports at which the server takes clients.
    ///
    /// # Errors
    /// Neither the programs nor `/proc` can be read.
    pub fn of(
        servers: Vec<u32>,
        stacks: StackSampling,
        generator: Generator,
        client_ports: Vec<u16>,
    ) -> Result<(Counting, Option<NotMeasured>), Error> {
        let spec = TraceSpec { servers, stacks, generator, client_ports, ..TraceSpec::default() };
        match (Tracer::start(&spec), spec.servers.as_slice()) {
            (Ok(tracer), _) => Ok((Counting::Traced(Box::new(tracer)), None)),
            (Err(error), [pid]) => Counting::sampled(*pid, error),
            (Err(error), _) => Err(Error::SeveralProcesses(error)),
        }
    }

    /// The same for processes of any kind. Without the programs, one process can be sampled, and not several.
    pub fn of_processes(
        processes: &Processes,
        stacks: StackSampling,
    ) -> Result<(Counting, Option<NotMeasured>), Error> {
        let program = Some(processes.program());
        match Tracer::start(&TraceSpec { program, stacks, ..TraceSpec::default() }) {
            Ok(tracer) => Ok((Counting::Traced(Box::new(tracer)), None)),
            Err(error) => match processes.pids.as_slice() {
                [pid] => Counting::sampled(*pid, error),
                _ => Err(Error::SeveralProcesses(error)),
            },
        }
    }

    /// Samples from `/proc`, because the programs are not allowed.
    fn sampled(pid: u32, error: whyso_trace::Error) -> Result<(Counting, Option<NotMeasured>), Error> {
        let sampler = match Sampler::start(pid) {
            Ok(sampler) => sampler,
            Err(sampling) => return Err(Error::NoSamples { trace: error, sampling }),
        };
        let lost = if sampler.sees_waits() {
            NotMeasured::new(
                Missing::Requests,
                "where requests begin and end, what lies between client and server, waits by file, and pauses",
                format!(
                    "{error}. The states of the server's threads are samples from /proc, several times per second. What \
                     connections' threads do, apart from waiting for their clients, counts as their requests"
                ),
            )
        } else {
            NotMeasured::new(
                Missing::ServerThreads,
                "the time of the server's threads, except for how long they ran and were ready to",
                format!(
                    "{error}. What they wait for can't be read in /proc either: that takes CAP_SYS_PTRACE, or to be the \
                     server's user"
                ),
            )
        };
        Ok((Counting::Sampled(Box::new(sampler)), Some(lost)))
    }

    /// Only the load's side of the wire, and what that leaves out, for the report.
    ///
    /// # Errors
    /// The wire can't be traced either.
    pub fn of_the_wire(no_process: &str) -> Result<(Counting, Option<NotMeasured>), Error> {
        let tracer = Tracer::start(&TraceSpec::default())
            .map_err(|trace| Error::NoWire { no_process: no_process.to_string(), trace })?;
        let lost = NotMeasured::server_threads(format!(
            "{no_process}. The time budget stops at the wire. Suspects come from the server's process list, its lock tables and its counters"
        ));
        Ok((Counting::Wire(Box::new(tracer)), Some(lost)))
    }

    pub fn sight(&self) -> Sight {
        match self {
            Counting::Traced(_) => Sight::Requests,
            Counting::Sampled(sampler) if sampler.sees_waits() => Sight::Threads,
            Counting::Sampled(_) => Sight::Cpu,
            Counting::Wire(_) => Sight::Wire,
        }
    }

    /// Whether programs in the kernel count.
    pub fn has_programs(&self) -> bool {
        matches!(self, Counting::Traced(_) | Counting::Wire(_))
    }

    /// Whether programs in the kernel count what is no database server.
    pub fn is_of_program(&self) -> bool {
        matches!(self, Counting::Traced(tracer) if tracer.is_of_program())
    }

    /// What the programs have cost, where the kernel counts it.
    pub fn cost(&self) -> Vec<Cost> {
        match self {
            Counting::Traced(tracer) | Counting::Wire(tracer) => tracer.cost(),
            Counting::Sampled(_) => Vec::new(),
        }
    }

    /// What counting adds to each run of a program, where the kernel counts just now.
    pub fn counting_ns(&self) -> Option<f64> {
        match self {
            Counting::Traced(tracer) | Counting::Wire(tracer) => tracer.counting_ns(),
            Counting::Sampled(_) => None,
        }
    }

    pub fn read(&mut self) -> Reading {
        match self {
            Counting::Traced(tracer) | Counting::Wire(tracer) => tracer.read(),
            Counting::Sampled(sampler) => sampler.read(),
        }
    }

    /// The sums at a window's end. This reading decides which requests were the load's.
    pub fn read_to_end(&mut self) -> Reading {
        match self {
            Counting::Traced(tracer) | Counting::Wire(tracer) => tracer.read_to_end(),
            Counting::Sampled(sampler) => sampler.read(),
        }
    }

    /// A window begins, after its first reading.
    pub fn begin_window(&mut self) {
        match self {
            Counting::Traced(tracer) => tracer.begin_window(),
            Counting::Sampled(_) | Counting::Wire(_) => {}
        }
    }

    pub fn files(&mut self) -> Vec<FileWait> {
        match self {
            Counting::Traced(tracer) => tracer.files(),
            Counting::Sampled(_) | Counting::Wire(_) => Vec::new(),
        }
    }

    pub fn pauses(&mut self, reading: &Reading) -> Vec<Pauses> {
        match self {
            Counting::Traced(tracer) => tracer.pauses(reading),
            Counting::Sampled(_) | Counting::Wire(_) => Vec::new(),
        }
    }

    /// Time between two samples; `None` where the programs keep the sums.
    pub fn sample_interval(&self) -> Option<Duration> {
        match self {
            Counting::Traced(_) | Counting::Wire(_) => None,
            Counting::Sampled(sampler) => Some(sampler.interval()),
        }
    }

    pub fn sample(&mut self) {
        if let Counting::Sampled(sampler) = self {
            sampler.sample();
        }
    }

    pub fn watch(&mut self, servers: &[u32], generators: &[u32]) {
        match self {
            // One server and one generator always fit.
            Counting::Traced(tracer) | Counting::Wire(tracer) => {
                let _ = tracer.watch(servers, generators);
            }
            Counting::Sampled(sampler) => servers.iter().for_each(|pid| sampler.watch(*pid)),
        }
    }
}
