//! A hub for a test.

use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use whyso_hub::{Bus, HostName, HubFolder, HubServer, HubSettings, MemberKind, NATS_SERVER, Token};

/// Whether there is a nats-server; where there is none, that is counted as not tested.
pub(crate) fn has_nats_server() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_on_path = std::env::split_paths(&path).any(|folder| folder.join(NATS_SERVER).is_file());
    let found = is_on_path || std::env::var_os("WHYSO_NATS_SERVER").is_some();
    if !found {
        whyso_testing::not_tested("a hub needs nats-server: scripts/nats_server.sh installs it");
    }
    found
}

/// For what happens at once on a machine at rest.
pub(crate) const SOON: Duration = Duration::from_secs(20);

pub(crate) fn settings() -> HubSettings {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    HubSettings { listen: free.to_string(), address: free.to_string(), bytes_max: 256 << 20 }
}

pub(crate) async fn hub(folder: &Path) -> HubServer {
    HubServer::start(HubFolder::make(folder, settings()).unwrap()).await.unwrap()
}

pub(crate) fn name(name: &str) -> HostName {
    HostName::new(name).unwrap()
}

pub(crate) fn agent(hub: &HubServer, agent: &str) -> Token {
    hub.folder().invite(name(agent), MemberKind::Agent).unwrap()
}

/// A hub that was asked to read its members again does so a moment later.
pub(crate) async fn join(token: &Token) -> Bus {
    let begun = std::time::Instant::now();
    loop {
        match Bus::join(token).await {
            Ok(bus) => return bus,
            Err(error) if begun.elapsed() > SOON => panic!("{error}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}
