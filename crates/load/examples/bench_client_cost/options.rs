//! What is to be measured.

use std::fmt;

use anyhow::{Result, anyhow, bail};
use whyso_load::EngineKind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Server,
    Null,
    Many,
    Latency,
    Calls,
    Lua,
    Loops,
}

const SECTIONS: [Section; 7] = [
    Section::Server,
    Section::Null,
    Section::Many,
    Section::Latency,
    Section::Calls,
    Section::Lua,
    Section::Loops,
];

/// How the server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Unix,
    Tcp,
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) sections: Vec<Section>,
    pub(crate) seconds: u64,
    /// The most rounds.
    pub(crate) rounds: usize,
    /// After this many rounds, the rest is left out where the ratios lie close together; `None`: never.
    pub(crate) rounds_min: Option<usize>,
    pub(crate) users: Vec<u32>,
    pub(crate) links: Vec<Link>,
    pub(crate) workloads: Vec<String>,
    pub(crate) engines: Vec<EngineKind>,
    /// Event loops; `None`: as many as the engine chooses.
    pub(crate) loops: Option<u32>,
    pub(crate) tables: u32,
    pub(crate) rows: u32,
    /// CPUs of the client and of the null server where that is used, as `taskset -c` takes them; empty: any.
    pub(crate) client_cpus: String,
    pub(crate) null_cpus: String,
}

impl Plan {
    /// # Errors
    /// One sentence on the first argument that can't be.
    pub(crate) fn parse(arguments: &[String]) -> Result<Plan> {
        let named = arguments.iter().take_while(|argument| !argument.starts_with("--"));
        let sections: Vec<Section> = named.map(|name| section(name)).collect::<Result<_>>()?;
        let options = &arguments[sections.len()..];
        let mut plan = Plan {
            sections: if sections.is_empty() { SECTIONS.to_vec() } else { sections },
            seconds: 5,
            rounds: 5,
            rounds_min: None,
            users: vec![1, 2, 8, 32, 128, 1024],
            links: vec![Link::Unix, Link::Tcp],
            workloads: vec!["oltp-point-select".to_string(), "oltp-read-write".to_string()],
            engines: vec![EngineKind::Auto],
            loops: None,
            tables: 4,
            rows: 100_000,
            client_cpus: String::new(),
            null_cpus: String::new(),
        };
        for pair in options.chunks(2) {
            let [name, value] = pair else { bail!("{} needs a value", pair[0]) };
            plan.set(name, value)?;
        }
        if plan.rounds == 0 || plan.rounds_min == Some(0) || plan.seconds == 0 || plan.users.contains(&0) {
            bail!("--rounds, --rounds-min, --seconds and --users must be at least 1");
        }
        Ok(plan)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let number =
            || value.parse::<u32>().map_err(|_| anyhow!("{name} can't be '{value}': give a whole number"));
        match name {
            "--seconds" => self.seconds = number()?.into(),
            "--rounds" => self.rounds = number()? as usize,
            "--rounds-min" => self.rounds_min = Some(number()? as usize),
            "--tables" => self.tables = number()?,
            "--rows" => self.rows = number()?,
            "--loops" => self.loops = Some(number()?),
            "--users" => self.users = list(name, value, |part| part.parse().ok())?,
            "--links" => self.links = list(name, value, link)?,
            "--engines" => self.engines = list(name, value, |part| part.parse().ok())?,
            "--workloads" => self.workloads = value.split(',').map(str::to_string).collect(),
            "--client-cpus" => self.client_cpus = value.to_string(),
            "--null-cpus" => self.null_cpus = value.to_string(),
            _ => bail!("unknown option {name}"),
        }
        Ok(())
    }
}

fn list<T>(name: &str, value: &str, read: impl Fn(&str) -> Option<T>) -> Result<Vec<T>> {
    let read = |part: &str| read(part).ok_or_else(|| anyhow!("{name} can't have '{part}'"));
    value.split(',').map(read).collect()
}

fn section(name: &str) -> Result<Section> {
    let section = SECTIONS.into_iter().find(|section| section.to_string() == name);
    section.ok_or_else(|| {
        anyhow!("there is no section '{name}': give server, null, many, latency, calls, lua or loops")
    })
}

fn link(name: &str) -> Option<Link> {
    [Link::Unix, Link::Tcp].into_iter().find(|link| link.to_string() == name)
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Section::Server => "server",
            Section::Null => "null",
            Section::Many => "many",
            Section::Latency => "latency",
            Section::Calls => "calls",
            Section::Lua => "lua",
            Section::Loops => "loops",
        })
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Link::Unix => "unix",
            Link::Tcp => "tcp",
        })
    }
}
