//! Groups of users, as the machine's own programs see them.

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::error::Error;

/// Bound on a program that finds a group or changes one.
const WITHIN: Duration = Duration::from_secs(30);
const NAME_CHARACTERS_MAX: usize = 32;

pub(super) struct Group {
    pub(super) name: String,
    pub(super) id: u32,
}

impl Group {
    /// By its name or number. A number needs no name.
    pub(super) fn find(asked: &str) -> Result<Option<Group>, Error> {
        if let Ok(id) = asked.parse() {
            return Ok(Some(Group { name: asked.to_string(), id }));
        }
        let is_name = asked.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
            && asked.len() <= NAME_CHARACTERS_MAX
            && asked.chars().all(|character| {
                character.is_ascii_lowercase() || character.is_ascii_digit() || "_-".contains(character)
            });
        if !is_name {
            return Err(Error::Plan(format!(
                "--group {}: give a group's name in small letters, digits, _ and -, or its number",
                asked.escape_debug()
            )));
        }
        look_up(asked)
    }

    pub(super) fn of_id(id: u32) -> Result<Option<Group>, Error> {
        look_up(&id.to_string())
    }

    pub(super) fn create(name: &str) -> Result<Group, Error> {
        change("groupadd", &["--system", name])?;
        look_up(name)?
            .ok_or_else(|| Error::Failed(format!("groupadd reported success, and there is no group {name}")))
    }

    pub(super) fn remove(&self) -> Result<(), Error> {
        change("groupdel", &[&self.name])
    }
}

fn look_up(asked: &str) -> Result<Option<Group>, Error> {
    let (status, line) = run("getent", &["group", asked])?;
    if status != Some(0) {
        return Ok(None);
    }
    let mut fields = line.trim().split(':');
    let group = fields.next().zip(fields.nth(1).and_then(|id| id.parse().ok()));
    Ok(group.map(|(name, id)| Group { name: name.to_string(), id }))
}

fn change(program: &str, arguments: &[&str]) -> Result<(), Error> {
    match run(program, arguments)? {
        (Some(0), _) => Ok(()),
        (_, output_text) => {
            Err(Error::Failed(format!("{program} {} failed: {}", arguments.join(" "), output_text.trim())))
        }
    }
}

/// Returns the status and the output, which is short.
fn run(program: &str, arguments: &[&str]) -> Result<(Option<i32>, String), Error> {
    let failed = |error: std::io::Error| {
        Error::Failed(format!(
            "{program} can't be run: {error}; create the group yourself, and give it with --group"
        ))
    };
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let begin = Instant::now();
    while child.try_wait().map_err(failed)?.is_none() {
        if begin.elapsed() > WITHIN {
            let _ = child.kill();
            let _ = child.wait();
            return Err(Error::Failed(format!("{program} did not end within {} s", WITHIN.as_secs())));
        }
        sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().map_err(failed)?;
    let output_text = [output.stdout, output.stderr].concat();
    Ok((output.status.code(), String::from_utf8_lossy(&output_text).into_owned()))
}
