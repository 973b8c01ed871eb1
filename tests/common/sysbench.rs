//! What the tests of `whyso sysbench` share: a server with a database for scripts, and what was printed.

use std::fs;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use super::{OwnServer, Place, finish, spawn, text};

/// Bound on one run of the program.
const BOUND: Duration = Duration::from_secs(60);

/// A server of the test's own, with a database for scripts.
pub(crate) struct Server {
    pub(crate) place: Place,
    pub(crate) own: OwnServer,
}

impl Server {
    pub(crate) fn start() -> Server {
        Server::start_with(&[])
    }

    /// With options of the server's own.
    pub(crate) fn start_with(options: &[&str]) -> Server {
        let own = OwnServer::start_with(options);
        own.sql("CREATE DATABASE sbtest");
        Server { place: Place::new(), own }
    }

    pub(crate) fn sysbench(&self, arguments: &[&str]) -> Ran {
        let socket = format!("--mysql-socket={}", self.own.socket().display());
        let mut all = vec!["sysbench", socket.as_str(), "--mysql-user=root"];
        all.extend(arguments);
        Ran::of(&self.place, &all)
    }

    /// Runs sysbench itself, as [`Server::sysbench`] runs whyso.
    pub(crate) fn real_sysbench(&self, arguments: &[&str]) -> Ran {
        let mut command = Command::new("sysbench");
        command
            .arg(format!("--mysql-socket={}", self.own.socket().display()))
            .arg("--mysql-user=root")
            .args(arguments)
            .current_dir(self.place.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let child = command.spawn().expect("sysbench is needed: apt-get install sysbench");
        Ran::of_output(&finish(child, BOUND))
    }

    /// Writes a script and runs it.
    pub(crate) fn script(&self, text: &str, arguments: &[&str]) -> Ran {
        fs::write(self.place.path().join("test.lua"), text).unwrap();
        let mut all = vec!["test.lua"];
        all.extend(arguments);
        self.sysbench(&all)
    }
}

pub(crate) struct Ran {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn of(place: &Place, arguments: &[&str]) -> Ran {
        Ran::of_output(&finish(spawn(&mut place.whyso(arguments)), BOUND))
    }

    fn of_output(output: &Output) -> Ran {
        Ran { status: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    pub(crate) fn expect(&self, status: i32, parts: &[&str]) {
        assert_eq!(self.status, Some(status), "{}\n{}", self.out, self.err);
        for part in parts {
            assert!(
                self.out.contains(part) || self.err.contains(part),
                "no '{part}' in:\n{}\n{}",
                self.out,
                self.err
            );
        }
    }

    /// The number behind a label of the report.
    pub(crate) fn number(&self, label: &str) -> f64 {
        let line = self.out.lines().find(|line| line.trim_start().starts_with(label));
        let line = line.unwrap_or_else(|| panic!("no {label} in {}", self.out));
        let value = line.split(label).nth(1).unwrap().split_whitespace().next().unwrap();
        value.trim_end_matches('s').parse().unwrap()
    }
}

/// A printed line with a 9 for each number and single spaces, since columns shift by the length of a number.
pub(crate) fn line_shape(line: &str) -> String {
    let mut shape = String::new();
    for letter in line.chars() {
        match letter {
            '0'..='9' if shape.ends_with('9') => {}
            '0'..='9' => shape.push('9'),
            ' ' if shape.ends_with(' ') => {}
            other => shape.push(other),
        }
    }
    shape
}
