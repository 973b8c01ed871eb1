//! One server of a cluster.

use std::time::{Duration, Instant};

use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::kind::Role;
use super::ndb;
use crate::answers::{answered, log_out};
use crate::dsn::Dsn;
use crate::error::{Error, Result, io, refused};
use crate::throwaway::KeptServer;

/// A Galera node that has applied what the others committed.
const SYNCED: &str = "Synced";
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// One server of a cluster.
#[derive(Clone, Debug)]
pub struct Node {
    pub role: Role,
    pub port: u16,
    pub server: KeptServer,
}

impl Node {
    /// Its number in the cluster, where it holds data.
    pub fn data_node_id(&self) -> Option<u32> {
        let place = self.server.node.as_ref()?.ndb.as_ref()?;
        (self.role == Role::Data).then_some(place.id)
    }

    /// Why it takes no part in its cluster now; `None` where it does.
    pub async fn why_not(&self) -> Option<String> {
        if self.server.pid.is_none() {
            return Some("it has ended".to_string());
        }
        self.why_not_yet().await.unwrap_or_else(|error| Some(error.to_string()))
    }

    async fn why_not_yet(&self) -> Result<Option<String>> {
        match self.server.node.as_ref().and_then(|node| node.ndb.as_ref()) {
            Some(place) => ndb::why_not(self.role, place),
            None => why_not_yet(&self.server.dsn(), self.role).await,
        }
    }

    /// Lets a data node leave its cluster, so that the others need not find out that it failed. One that can't is ended all the same.
    pub(super) fn leave_cluster(&self) {
        if let (Role::Data, Some(place)) =
            (self.role, self.server.node.as_ref().and_then(|node| node.ndb.as_ref()))
        {
            ndb::stop_data_node(place);
        }
    }

    /// Asks this SQL node whether all data nodes have the same arbitrator.
    async fn wait_for_arbitrator(&self, data_nodes: usize, within: Duration) -> Result<()> {
        let dsn = self.server.dsn();
        wait(&self.server.name, within, async || {
            let mut conn = dsn.connect_without_schema().await?;
            let asked = answered(&dsn, "asking for the data nodes' arbitrator", async {
                let read = conn.query::<(String, String), _>(ARBITRATION).await;
                read.map_err(refused("show who arbitrates"))
            });
            let is_run = |(state, connected): &&(String, String)| state == "ARBIT_RUN" && connected == "Yes";
            let count = asked.await?.iter().filter(is_run).count();
            log_out(conn).await;
            Ok((count < data_nodes).then(|| format!("{count} of {data_nodes} data nodes have an arbitrator")))
        })
        .await
    }

    /// Cuts a node of Galera off from the others, or lets it come back to them.
    pub(super) async fn set_isolated(&self, is_isolated: bool) -> Result<()> {
        let dsn = self.server.dsn();
        let mut conn = dsn.connect_without_schema().await?;
        answered(&dsn, "changing whom it hears", async {
            let sql =
                format!("SET GLOBAL wsrep_provider_options = 'gmcast.isolate={}'", u8::from(is_isolated));
            conn.query_drop(sql).await.map_err(refused("change whom it hears"))
        })
        .await?;
        log_out(conn).await;
        Ok(())
    }

    pub(super) async fn wait_until_it_takes_part(&self, within: Duration) -> Result<()> {
        wait(&self.server.name, within, async || self.why_not_yet().await).await
    }
}

/// Gives parameters of the data nodes other values, which count once the nodes are restarted.
pub(super) fn set_of_data_nodes(cluster: &str, nodes: &[Node], set: &[(String, String)]) -> Result<()> {
    if set.is_empty() {
        return Ok(());
    }
    let Some(manager) = nodes.iter().find(|node| node.role == Role::Manager) else {
        return Err(Error::BuildName(format!("the cluster {cluster} has no data nodes")));
    };
    let path = manager.server.folder.join(ndb::CONFIG_FILE);
    let text = std::fs::read_to_string(&path).map_err(io("cannot read", &path))?;
    std::fs::write(&path, ndb::change_config(&text, set)?).map_err(io("cannot write", &path))
}

/// Waits until the data nodes have one who decides which of them survive: until then, each of a pair shuts itself down without the other.
pub(super) async fn wait_for_arbitrator(nodes: &[Node], within: Duration) -> Result<()> {
    let data_nodes = nodes.iter().filter(|node| node.role == Role::Data).count();
    match nodes.iter().find(|node| node.role == Role::Sql && node.server.pid.is_some()) {
        Some(sql_node) if data_nodes > 1 => sql_node.wait_for_arbitrator(data_nodes, within).await,
        _ => Ok(()),
    }
}

const ARBITRATION: &str = "SELECT arb_state, arb_connected FROM ndbinfo.membership";

/// Threads of MariaDB that work for no client, with what they do; then those of MySQL that apply a source's log.
const OWN_THREADS: [&str; 2] = [
    "SELECT TID, CONCAT_WS(' ', COMMAND, STATE) FROM information_schema.PROCESSLIST WHERE USER = 'system user'",
    "SELECT THREAD_OS_ID, NAME FROM performance_schema.threads WHERE NAME IN \
     ('thread/sql/replica_sql', 'thread/sql/replica_worker', 'thread/sql/slave_sql', 'thread/sql/slave_worker')",
];

/// The threads that apply what other nodes have changed: the operating system's number, and what the server calls them. Servers without a
/// Performance Schema name no thread to the system.
///
/// # Errors
/// The node does not answer.
pub async fn appliers(dsn: &Dsn) -> Result<Vec<(u32, String)>> {
    let mut conn = dsn.connect_without_schema().await?;
    let found = answered(dsn, "asking for its threads", async {
        for sql in OWN_THREADS {
            // Each is understood by one of the two.
            if let Ok(threads) = conn.query::<(u32, String), _>(sql).await {
                return Ok::<_, Error>(threads);
            }
        }
        Ok(Vec::new())
    });
    let threads = found.await?;
    log_out(conn).await;
    Ok(threads.into_iter().filter_map(|(tid, doing)| Some((tid, applier(&doing)?.to_string()))).collect())
}

/// What a thread that applies is called; `None` for one that does something else.
fn applier(doing: &str) -> Option<&'static str> {
    if doing.starts_with("Slave_worker") || doing.ends_with("_worker") {
        return Some("worker");
    }
    if doing.starts_with("Slave_SQL") || doing.ends_with("_sql") {
        return Some("SQL thread");
    }
    // Those of Galera sleep, or apply a change.
    (doing.starts_with("Sleep") && !doing.contains("aborter")).then_some("Galera's applier")
}

/// Waits until a node answers, and does what its role asks for.
pub(super) async fn wait_until_it_takes_part(
    name: &str,
    dsn: &Dsn,
    role: Role,
    within: Duration,
) -> Result<()> {
    wait(name, within, async || why_not_yet(dsn, role).await).await
}

async fn wait(
    name: &str,
    within: Duration,
    why_not_yet: impl AsyncFn() -> Result<Option<String>>,
) -> Result<()> {
    let deadline = Instant::now() + within;
    loop {
        let why = match why_not_yet().await {
            Ok(None) => return Ok(()),
            Ok(Some(why)) => why,
            Err(error) => error.to_string(),
        };
        if Instant::now() >= deadline {
            return Err(Error::Build(format!(
                "the node {name} did not take part within {} s: {why}",
                within.as_secs()
            )));
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}

async fn why_not_yet(dsn: &Dsn, role: Role) -> Result<Option<String>> {
    let mut conn = dsn.connect_without_schema().await?;
    let looked = answered(dsn, "asking whether it takes part", async {
        match role {
            // Through a proxy, it was some node that answered.
            Role::Source | Role::Data | Role::Manager | Role::Proxy => Ok(None),
            Role::Sql => why_no_sql_node(&mut conn).await,
            Role::Replica => why_no_replica(&mut conn).await,
            Role::Member => why_no_member(&mut conn).await,
        }
    });
    let why = looked.await?;
    log_out(conn).await;
    Ok(why)
}

async fn why_no_sql_node(conn: &mut Conn) -> Result<Option<String>> {
    let ready: Option<(String, u64)> = conn
        .query_first("SHOW GLOBAL STATUS LIKE 'Ndb_number_of_ready_data_nodes'")
        .await
        .map_err(refused("show its state in the cluster"))?;
    Ok((ready.is_none_or(|(_, count)| count == 0)).then(|| "it reaches no data node".to_string()))
}

async fn why_no_member(conn: &mut Conn) -> Result<Option<String>> {
    let state: Option<(String, String)> = conn
        .query_first("SHOW GLOBAL STATUS LIKE 'wsrep_local_state_comment'")
        .await
        .map_err(refused("show its state in the cluster"))?;
    let state = state.map_or(String::new(), |(_, state)| state);
    Ok((state != SYNCED).then(|| format!("its state is {state:?}, not {SYNCED}")))
}

async fn why_no_replica(conn: &mut Conn) -> Result<Option<String>> {
    let row: Option<mysql_async::Row> = match conn.query_first("SHOW REPLICA STATUS").await {
        Ok(row) => row,
        Err(_) => conn.query_first("SHOW SLAVE STATUS").await.map_err(refused("show its replication"))?,
    };
    let Some(row) = row else { return Ok(Some("it does not replicate".to_string())) };
    let text = |names: [&str; 2]| {
        names.iter().find_map(|name| row.get_opt::<Option<String>, _>(*name)?.ok()?).unwrap_or_default()
    };
    let (reads, applies) = (
        text(["Replica_IO_Running", "Slave_IO_Running"]),
        text(["Replica_SQL_Running", "Slave_SQL_Running"]),
    );
    if reads == "Yes" && applies == "Yes" {
        return Ok(None);
    }
    let errors = [text(["Last_IO_Error", ""]), text(["Last_SQL_Error", ""])];
    let said = errors.into_iter().find(|error| !error.is_empty()).unwrap_or_default();
    Ok(Some(format!("it reads from the source: {reads}, it applies: {applies}. {said}")))
}

#[cfg(test)]
mod tests {
    use super::applier;

    #[test]
    fn threads_that_apply_are_known_by_what_servers_call_them() {
        for (doing, name) in [
            ("Slave_SQL Slave has read all relay log; waiting for more updates", Some("SQL thread")),
            ("Slave_worker Commit", Some("worker")),
            ("Slave_IO Waiting for master to send event", None),
            ("thread/sql/replica_sql", Some("SQL thread")),
            ("thread/sql/replica_worker", Some("worker")),
            ("Sleep wsrep aborter idle", None),
            ("Sleep ", Some("Galera's applier")),
            ("Sleep Committed 17", Some("Galera's applier")),
            ("Daemon InnoDB purge worker", None),
        ] {
            assert_eq!(applier(doing), name, "{doing}");
        }
    }
}
