//! One source, and replicas that apply its changes by GTID.

use std::io::Read;

use super::kind::Role;
use super::ports;
use super::steps::{NodePlan, execute, quoted};
use crate::error::{Error, Result};
use crate::find::{Binary, Flavor};
use crate::throwaway::{NodeSpec, ThrowAway};

/// Logs in from this machine only, to read the source's log.
const ACCOUNT: &str = "whyso_copy@'127.0.0.1'";
const PASSWORD_BYTES: usize = 16;

/// The first node is the source.
pub(super) fn plan(binary: &Binary, nodes: usize) -> Result<Vec<NodePlan>> {
    let is_mysql = binary.flavor == Flavor::MySQL;
    if is_mysql && binary.version_numbers() < (5, 7, 0) || !is_mysql && binary.version_numbers() < (10, 1, 0)
    {
        return Err(Error::Binary(format!(
            "{} {} can't replicate by GTID as whyso sets it up: MySQL 5.7 and MariaDB 10.1 can",
            binary.flavor, binary.version
        )));
    }
    let plan = |(at, port): (usize, u16)| {
        let role = if at == 0 { Role::Source } else { Role::Replica };
        let mut options = vec![
            format!("--server-id={}", at + 1),
            "--log-bin=binlog".to_string(),
            "--binlog-format=ROW".to_string(),
            "--log-slave-updates=1".to_string(),
        ];
        if is_mysql {
            options.extend(["--gtid-mode=ON".to_string(), "--enforce-gtid-consistency=ON".to_string()]);
        }
        if role == Role::Replica {
            options.push("--read-only=1".to_string());
        }
        NodePlan { role, node: NodeSpec { port, options, ..NodeSpec::default() } }
    };
    Ok(ports::free(nodes)?.into_iter().enumerate().map(plan).collect())
}

/// Lets the replicas follow the source.
pub(super) async fn connect(servers: &[(String, Role, ThrowAway)]) -> Result<()> {
    let Some((_, _, source)) = servers.iter().find(|(_, role, _)| *role == Role::Source) else {
        return Ok(());
    };
    let password = password()?;
    let account = [
        format!("CREATE USER {ACCOUNT} IDENTIFIED BY {}", quoted(&password)),
        format!("GRANT REPLICATION SLAVE ON *.* TO {ACCOUNT}"),
    ];
    execute(source, "make an account for its replicas", &account).await?;
    let port = source.spec().node.as_ref().map_or(0, |node| node.port);
    for (_, _, replica) in servers.iter().filter(|(_, role, _)| *role == Role::Replica) {
        execute(replica, "follow its source", &follow(replica.binary(), port, &password)).await?;
    }
    Ok(())
}

fn follow(binary: &Binary, port: u16, password: &str) -> [String; 2] {
    let is_mysql = binary.flavor == Flavor::MySQL;
    let [change, word, start] = match is_mysql && binary.version_numbers() >= (8, 0, 23) {
        true => ["CHANGE REPLICATION SOURCE", "SOURCE", "START REPLICA"],
        false => ["CHANGE MASTER", "MASTER", "START SLAVE"],
    };
    let position = match is_mysql {
        true => format!("{word}_AUTO_POSITION = 1"),
        false => "MASTER_USE_GTID = slave_pos".to_string(),
    };
    let key = if word == "SOURCE" { ", GET_SOURCE_PUBLIC_KEY = 1" } else { "" };
    let (user, password) = (quoted("whyso_copy"), quoted(password));
    [
        format!(
            "{change} TO {word}_HOST = '127.0.0.1', {word}_PORT = {port}, {word}_USER = {user}, {word}_PASSWORD = {password}, \
             {word}_CONNECT_RETRY = 1, {position}{key}"
        ),
        start.to_string(),
    ]
}

/// Nobody types it.
fn password() -> Result<String> {
    let mut bytes = [0_u8; PASSWORD_BYTES];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|error| Error::Build(format!("/dev/urandom can't be read: {error}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
