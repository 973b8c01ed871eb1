//! A hub's folder: its settings, its certificate, and its members.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nkeys::KeyPair;
use serde::{Deserialize, Serialize};

use crate::bus::forget_frames;
use crate::error::{Error, Result};
use crate::host_name::HostName;
use crate::member::{HubSettings, Member, MemberKind};
use crate::nats_config;
use crate::reload::{CONFIG, reload, running_on};
use crate::token::Token;

const SETTINGS: &str = "hub.toml";
const MEMBERS: &str = "members.toml";
const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";
/// The token of the hub's own process.
const OWN: &str = "hub.token";
const COMMANDER: &str = "commander.token";
/// Who holds it may change the members.
const MEMBERS_LOCK: &str = "members.lock";
/// Bound on the wait for others that change them.
const LOCK_TIME_MAX: Duration = Duration::from_secs(30);
const LOCK_CHECK_INTERVAL: Duration = Duration::from_millis(5);
/// In which a hub has read its members again.
const RELOAD_TIME: Duration = Duration::from_millis(500);
const OWN_NAME: &str = "hub";
const COMMANDER_NAME: &str = "commander";

#[derive(Default, Serialize, Deserialize)]
struct Members {
    #[serde(default, rename = "member")]
    members: Vec<Member>,
}

/// A hub on this machine.
#[derive(Clone, Debug)]
pub struct HubFolder {
    path: PathBuf,
    settings: HubSettings,
}

impl HubFolder {
    /// Makes a hub with its certificate, or opens the one that is there with these settings.
    ///
    /// # Errors
    /// The folder can't be written.
    pub fn make(path: &Path, settings: HubSettings) -> Result<HubFolder> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(|cause| Error::io(path, cause))?;
        // An invitation meanwhile waits until the hub's own members are there.
        let _changing = lock_members(path)?;
        let before = match HubFolder::open(path) {
            Ok(hub) => Some(hub.settings),
            Err(Error::NoHub { .. }) => None,
            Err(error) => return Err(error),
        };
        let hub = HubFolder { path: absolute(path)?, settings };
        let is_same = before.as_ref().is_some_and(|before| before.address == hub.settings.address);
        if let Some(before) = before.filter(|before| before.address != hub.settings.address) {
            let is_own = |member: &Member| [OWN_NAME, COMMANDER_NAME].contains(&member.name.as_str());
            let others = hub.members()?.iter().filter(|member| !is_own(member)).count();
            if others > 0 {
                return Err(Error::OtherAddress { others, before: before.address, path: path.to_path_buf() });
            }
        }
        if !is_same || !path.join(CERTIFICATE).exists() {
            let host = |address: &str| address.rsplit_once(':').map_or(address, |(host, _)| host).to_string();
            let made = rcgen::generate_simple_self_signed(vec![
                host(&hub.settings.address).trim_matches(['[', ']']).to_string(),
            ]);
            let made = made.map_err(|error| Error::Certificate(error.to_string()))?;
            hub.write(KEY, &made.signing_key.serialize_pem())?;
            hub.write(CERTIFICATE, &made.cert.pem())?;
            hub.write(MEMBERS, "")?;
        }
        let settings = toml::to_string(&hub.settings).map_err(|error| hub.damaged(SETTINGS, &error))?;
        hub.write(SETTINGS, &settings)?;
        for (name, kind, file) in
            [(OWN_NAME, MemberKind::Hub, OWN), (COMMANDER_NAME, MemberKind::Commander, COMMANDER)]
        {
            let name = HostName::new(name)?;
            let members = hub.members()?;
            let member = members.iter().find(|member| member.name == name && member.kind == kind);
            let is_of = |token: &Token, member: &Member| {
                let key = KeyPair::from_seed(&token.seed).map(|key| key.public_key());
                token.address == hub.settings.address && key.is_ok_and(|key| key == member.public_key)
            };
            let is_whole =
                member.is_some_and(|member| hub.token(file).is_ok_and(|token| is_of(&token, member)));
            if !is_whole {
                // A withdrawn commander stays so until the hub is started again.
                let _ = hub.remove(&name);
                let token = hub.add(name, kind)?;
                hub.write(file, &token.to_line())?;
            }
        }
        hub.write_config()?;
        Ok(hub)
    }

    /// # Errors
    /// There is none, or it is damaged.
    pub fn open(path: &Path) -> Result<HubFolder> {
        let text = match fs::read_to_string(path.join(SETTINGS)) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::NoHub { path: path.to_path_buf() });
            }
            Err(error) => return Err(Error::io(path, error)),
        };
        let settings = toml::from_str(&text).map_err(|error| Error::Damaged {
            path: path.join(SETTINGS),
            cause: error.message().to_string(),
        })?;
        Ok(HubFolder { path: absolute(path)?, settings })
    }

    pub fn settings(&self) -> &HubSettings {
        &self.settings
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// # Errors
    /// The list is damaged.
    pub fn members(&self) -> Result<Vec<Member>> {
        let text = self.read(MEMBERS)?;
        let members: Members = toml::from_str(&text).map_err(|error| self.damaged(MEMBERS, &error))?;
        Ok(members.members)
    }

    /// Invites a member: a running hub lets it in from then on.
    ///
    /// # Errors
    /// There is one of this name, or the folder can't be written.
    pub fn invite(&self, name: HostName, kind: MemberKind) -> Result<Token> {
        let _changing = lock_members(&self.path)?;
        // Another address may have been given to the hub meanwhile.
        let hub = HubFolder::open(&self.path)?;
        let token = hub.add(name, kind)?;
        hub.write_config()?;
        reload(&hub.path)?;
        Ok(token)
    }

    /// Withdraws a member's token: a running hub ends its connections, and forgets what nobody has received of it.
    ///
    /// # Errors
    /// There is no such member, or the folder can't be written.
    pub async fn withdraw(&self, name: &HostName) -> Result<()> {
        {
            let _changing = lock_members(&self.path)?;
            self.remove(name)?;
            self.write_config()?;
        }
        reload(&self.path)?;
        // By then it is cut off, and publishes nothing more.
        tokio::time::sleep(RELOAD_TIME).await;
        let forgotten = forget_frames(&self.own()?, name).await;
        match forgotten {
            // There is no hub.
            Err(Error::Unreachable { .. }) if running_on(&self.path).is_none() => Ok(()),
            forgotten => forgotten,
        }
    }

    /// The token of the commander on this machine.
    ///
    /// # Errors
    /// It can't be read.
    pub fn commander(&self) -> Result<Token> {
        self.token(COMMANDER)
    }

    pub(crate) fn own(&self) -> Result<Token> {
        self.token(OWN)
    }

    fn token(&self, file: &str) -> Result<Token> {
        Token::from_line(&self.read(file)?)
    }

    fn add(&self, name: HostName, kind: MemberKind) -> Result<Token> {
        let mut members = self.members()?;
        if members.iter().any(|member| member.name == name) {
            return Err(Error::Member { name: name.to_string() });
        }
        let key = KeyPair::new_user();
        let seed = key.seed().map_err(|error| Error::Certificate(error.to_string()))?;
        members.push(Member { name: name.clone(), kind, public_key: key.public_key() });
        self.write_members(members)?;
        let certificate = self.read(CERTIFICATE)?;
        Ok(Token { name, kind, address: self.settings.address.clone(), certificate, seed })
    }

    fn remove(&self, name: &HostName) -> Result<()> {
        let mut members = self.members()?;
        let before = members.len();
        members.retain(|member| member.name != *name);
        match members.len() < before {
            true => self.write_members(members),
            false => Err(Error::NoMember { name: name.to_string() }),
        }
    }

    fn write_members(&self, members: Vec<Member>) -> Result<()> {
        let text = toml::to_string(&Members { members }).map_err(|error| self.damaged(MEMBERS, &error))?;
        self.write(MEMBERS, &text)
    }

    fn write_config(&self) -> Result<()> {
        self.write(CONFIG, &nats_config::text(&self.settings, &self.path, &self.members()?))
    }

    fn read(&self, name: &str) -> Result<String> {
        let path = self.path.join(name);
        fs::read_to_string(&path).map_err(|cause| Error::io(&path, cause))
    }

    /// As a whole, so that nobody reads half of it. Only the owner can read it.
    fn write(&self, name: &str, text: &str) -> Result<()> {
        let (path, unfinished) = (self.path.join(name), self.path.join(format!("{name}.new")));
        let written = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&unfinished)
            .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&unfinished, &path));
        written.map_err(|cause| Error::io(&path, cause))
    }

    fn damaged(&self, name: &str, error: &dyn std::fmt::Display) -> Error {
        Error::Damaged { path: self.path.join(name), cause: error.to_string() }
    }
}

/// Only one process changes the members at a time: another one's change would be lost, as a list is read, changed and written. The lock goes
/// with the file that is returned, or with the process.
fn lock_members(folder: &Path) -> Result<fs::File> {
    let path = folder.join(MEMBERS_LOCK);
    let file = fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = file.map_err(|cause| Error::io(&path, cause))?;
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(fs::TryLockError::WouldBlock) if begun.elapsed() < LOCK_TIME_MAX => {
                std::thread::sleep(LOCK_CHECK_INTERVAL);
            }
            Err(fs::TryLockError::WouldBlock) => return Err(Error::MembersLocked { path }),
            Err(fs::TryLockError::Error(cause)) => return Err(Error::io(&path, cause)),
        }
    }
}

/// The folder's path, as the process of the hub shows it.
fn absolute(path: &Path) -> Result<PathBuf> {
    path.canonicalize().map_err(|cause| Error::io(path, cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_that_are_invited_while_a_hub_is_made_are_all_there() {
        let folder = tempfile::tempdir().unwrap();
        let settings = || HubSettings {
            listen: "127.0.0.1:4222".to_string(),
            address: "127.0.0.1:4222".to_string(),
            bytes_max: 1 << 20,
        };
        let invite = |number: usize| {
            loop {
                match HubFolder::open(folder.path()) {
                    Ok(hub) => {
                        let name = HostName::new(&format!("host-{number}")).unwrap();
                        break hub.invite(name, MemberKind::Agent).unwrap();
                    }
                    Err(Error::NoHub { .. }) => std::thread::yield_now(),
                    Err(error) => panic!("{error}"),
                }
            }
        };
        std::thread::scope(|threads| {
            for number in 0..4 {
                threads.spawn(move || invite(number));
            }
            HubFolder::make(folder.path(), settings()).unwrap();
        });
        let hub = HubFolder::open(folder.path()).unwrap();
        let mut names: Vec<String> =
            hub.members().unwrap().iter().map(|member| member.name.to_string()).collect();
        names.sort();
        assert_eq!(names, ["commander", "host-0", "host-1", "host-2", "host-3", "hub"]);
    }
}
