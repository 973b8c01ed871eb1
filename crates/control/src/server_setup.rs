//! The server under test, prepared: started or reached, its settings set, its data loaded.

use std::time::Duration;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use tokio::runtime::Runtime;
use whyso_server::answers::{FILL_TIME_MAX, answered, log_out, within};
use whyso_server::dataset::{self, Dataset, Phase};
use whyso_server::knobs::{Undo, pfs};
use whyso_server::snapshot::{Provision, Store};
use whyso_server::{CpuSet, Dsn, StartSpec, ThrowAway, dsn, schema, throwaway};

use crate::login::AskPassword;
use crate::progress::{Listener, News};
use crate::put_back::put_settings_back;
use crate::server_plan::ServerPlan;
use crate::server_under_test::{ServerUnderTest, shared};
use crate::{Error, Stop, login, pfs_setup};

/// Connections that a run makes in addition to its users': control, samplers, actions.
const CONNECTIONS_OF_OUR_OWN: u32 = 10;

/// What a server needs before it is loaded.
pub(crate) struct ServerNeeds<'a> {
    pub(crate) server: &'a ServerPlan,
    pub(crate) dataset: Dataset,
    /// Whether the data set belongs on a server that runs already; a throw-away one always gets it.
    pub(crate) data_wanted: bool,
    /// Whether the load writes, or may.
    pub(crate) writes: bool,
    pub(crate) users_max: u32,
    /// Schema that may be written although whyso did not make it.
    pub(crate) allow_writes: Option<&'a str>,
    pub(crate) pfs: Option<&'a pfs::PfsRequest>,
    /// The buffer pool is to be empty at first.
    pub(crate) cold: bool,
    /// A throw-away server can be made slower.
    pub(crate) can_be_slowed: bool,
}

/// Makes a server ready, unless the user breaks off.
pub(crate) fn prepare_server(
    runtime: &Runtime,
    needs: &ServerNeeds<'_>,
    listener: &dyn Listener,
    stop: &Stop,
    ask_password: &AskPassword,
) -> Result<ServerUnderTest, Error> {
    let prepared = runtime.block_on(async {
        tokio::select! {
            tested = set_up_server(needs, listener, ask_password) => tested,
            () = wait_for_stop(stop) => Err(Error::Interrupted),
        }
    });
    let tested = prepared?;
    for note in &tested.notes {
        listener.hear(News::Warning(note));
    }
    Ok(tested)
}

pub(crate) async fn wait_for_stop(stop: &Stop) {
    while !stop.is_asked() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Starts or reaches the server, and loads its data.
async fn set_up_server(
    wanted: &ServerNeeds<'_>,
    listener: &dyn Listener,
    ask_password: &AskPassword,
) -> Result<ServerUnderTest, Error> {
    wanted.dataset.check()?;
    match wanted.server {
        ServerPlan::ThrowAway {
            build,
            parent,
            set,
            defaults_file,
            cpus,
            memory_bytes,
            is_without_quota,
            preload,
        } => {
            listener.hear(News::Step("looking for a server"));
            let mut spec = StartSpec::new(whyso_server::find(build.as_deref())?);
            spec.parent_dir = parent.clone();
            spec.defaults_file = defaults_file.clone();
            spec.set = set.clone();
            spec.cpus = cpus.as_deref().map(CpuSet::resolve).transpose()?;
            spec.memory_bytes = *memory_bytes;
            spec.is_without_quota = *is_without_quota;
            spec.preload.clone_from(preload);
            spec.connections = wanted.users_max + CONNECTIONS_OF_OUR_OWN;
            spec.data_bytes = wanted.dataset.bytes_estimate();
            spec.to_be_watched = wanted.pfs.map(pfs::PfsRequest::start_options).unwrap_or_default();
            spec.cold = wanted.cold;
            spec.can_be_slowed = wanted.can_be_slowed;
            throw_away(spec, wanted, listener).await
        }
        ServerPlan::Dsn { dsn, set } => remote(wanted, dsn, set, listener, ask_password).await,
    }
}

async fn throw_away(
    spec: StartSpec,
    wanted: &ServerNeeds<'_>,
    listener: &dyn Listener,
) -> Result<ServerUnderTest, Error> {
    let parent = match &spec.parent_dir {
        Some(parent) => parent.clone(),
        None => throwaway::default_parent_dir()?,
    };
    let mut notes = Vec::new();
    for swept in whyso_server::sweep(&parent)? {
        notes.push(match swept.left_because {
            None => format!("removed what an earlier run left behind: {}", swept.folder.display()),
            Some(why) => format!("an earlier run left {} behind: {why}", swept.folder.display()),
        });
    }
    listener.hear(News::Step(&format!("starting {} {}", spec.binary.flavor, spec.binary.version)));
    let store = Store::of_user()?;
    let (server, provision) = ThrowAway::start_with_dataset(spec, &wanted.dataset, &store, &|progress| {
        hear_loading(listener, progress)
    })
    .await?;
    listener.hear(News::Step(&describe_provision(&provision)));
    if let Provision::Loaded { not_kept: Some(why), .. } = &provision {
        notes.push(format!("the loaded data could not be kept as a snapshot: {why}"));
    }
    let dsn = server.dsn();
    let mut conn = dsn.connect_without_schema().await?;
    let mut undo = answered(&dsn, "preparing to change settings", Undo::open(&mut conn)).await?;
    let performance_schema = match wanted.pfs {
        Some(wanted) => {
            let work = pfs_setup::set_up(wanted, &mut conn, &mut undo);
            Some(answered(&dsn, "setting up the Performance Schema", work).await?)
        }
        None => None,
    };
    log_out(conn).await;
    if server.file_system().in_memory {
        notes.push(
            "the server's data lie on tmpfs, where fsync is free: findings about the disk are not those of a disk"
                .to_string(),
        );
    }
    let mut settings = Vec::new();
    for setting in server.settings() {
        settings.push((setting.name.clone(), setting.value.clone(), setting.why.clone()));
    }
    let cpus = server.cpus().map(|(cpus, _)| cpus.cpus().to_vec());
    let cpus_words = server.cpus().map_or(String::new(), |(cpus, means)| format!("{cpus}, by {means}"));
    Ok(ServerUnderTest {
        dsn: server.dsn(),
        pid: server.pid(),
        log: Some(server.log_path()),
        data_dir: Some(server.data_dir()),
        cpus_words,
        cpus,
        notes,
        settings,
        performance_schema,
        undo: shared(undo),
        throw_away: Some(shared(server)),
        consented: false,
        table_engine: wanted.dataset.engine.clone(),
    })
}

fn describe_provision(provision: &Provision) -> String {
    match provision {
        Provision::Restored { seconds } => {
            format!("data set restored from a snapshot in {}", whyso_words::seconds(*seconds))
        }
        Provision::Loaded { loaded, .. } => {
            format!(
                "{} loaded in {} ({})",
                whyso_words::count(loaded.rows, "row"),
                whyso_words::seconds(loaded.seconds),
                whyso_words::amount(loaded.rows_per_s, "rows/s")
            )
        }
    }
}

async fn remote(
    wanted: &ServerNeeds<'_>,
    text: &str,
    set: &[(String, String)],
    listener: &dyn Listener,
    ask_password: &AskPassword,
) -> Result<ServerUnderTest, Error> {
    let mut dsn = Dsn::resolve(text)?;
    let mut notes = Vec::new();
    if dsn.tls == dsn::Tls::Insecure {
        notes.push(
            "tls=insecure: the connection is encrypted, but the server's certificate was not checked"
                .to_string(),
        );
    }
    listener.hear(News::Step(&format!("connecting to {}", dsn.endpoint())));
    let mut conn = login::log_in(&mut dsn, ask_password).await?;
    let doing = "putting back settings that an earlier run left";
    for undone in answered(&dsn, doing, pfs_setup::undo_pending(&mut conn)).await? {
        notes.push(format!("an earlier run ended without putting a setting back; {undone}"));
    }
    let consented = make_schema_ready(wanted, &dsn, &mut conn, listener).await?;
    let mut undo = answered(&dsn, "preparing to change settings", Undo::open(&mut conn)).await?;
    let mut settings = Vec::new();
    for (name, value) in set {
        let change = answered(&dsn, "changing settings", undo.set_global(&mut conn, name, value)).await;
        if let Err(error) = change {
            put_settings_back(&dsn, &mut undo, listener).await;
            return Err(error.into());
        }
        settings.push((name.clone(), value.clone(), "asked for; put back at the end".to_string()));
    }
    let mut performance_schema = None;
    if let Some(wanted) = wanted.pfs {
        let work = pfs_setup::set_up(wanted, &mut conn, &mut undo);
        match answered(&dsn, "setting up the Performance Schema", work).await {
            Ok(in_force) => performance_schema = Some(in_force),
            Err(error) => {
                put_settings_back(&dsn, &mut undo, listener).await;
                return Err(error);
            }
        }
    }
    log_out(conn).await;
    Ok(ServerUnderTest {
        dsn,
        performance_schema,
        undo: shared(undo),
        throw_away: None,
        consented,
        table_engine: wanted.dataset.engine.clone(),
        pid: None,
        log: None,
        data_dir: None,
        cpus_words: String::new(),
        cpus: None,
        notes,
        settings,
    })
}

/// Checks that the schema may be loaded, and loads its data. Returns whether the schema is the user's, used as it is.
async fn make_schema_ready(
    wanted: &ServerNeeds<'_>,
    dsn: &Dsn,
    conn: &mut Conn,
    listener: &dyn Listener,
) -> Result<bool, Error> {
    let dataset = &wanted.dataset;
    // There is nothing of the user's to consent to in a schema that does not exist: it is created, and is ours.
    let exists = answered(dsn, "looking for the schema", schema::exists(conn, &dsn.schema)).await?;
    let consented = exists && wanted.allow_writes == Some(dsn.schema.as_str());
    match (wanted.data_wanted, consented) {
        (true, true) => {
            let check = check_consented(conn, &dsn.schema, dataset);
            within(FILL_TIME_MAX, dsn, "counting the rows of the tables", check).await?;
        }
        (true, false) => {
            answered(dsn, "marking the schema as whyso's", schema::claim(conn, &dsn.schema)).await?;
            dataset::ensure(dsn, dataset, &|progress| hear_loading(listener, progress)).await?;
        }
        (false, true) => {}
        // What only reads may do so anywhere; the schema that a DSN without one means is created where it is missing.
        (false, false) => {
            let is_asked_to_write = wanted.writes || wanted.allow_writes == Some(dsn.schema.as_str());
            if is_asked_to_write || !dsn.schema_given {
                answered(dsn, "marking the schema as whyso's", schema::claim(conn, &dsn.schema)).await?;
            } else if !exists {
                return Err(login::no_such_schema(dsn, "SQL that only reads finds nothing in a new one"));
            }
        }
    }
    Ok(consented)
}

/// With the user's consent a schema that is not ours is used as it is: it must hold the tables already.
async fn check_consented(conn: &mut Conn, schema: &str, dataset: &Dataset) -> Result<(), Error> {
    let quoted = schema.replace('`', "``");
    for table in 1..=dataset.tables {
        let name = Dataset::table_name(table);
        let sql = format!(
            "SELECT COUNT(*) FROM (SELECT 1 FROM `{quoted}`.`{name}` LIMIT {}) AS rows_there",
            dataset.rows
        );
        let rows: Option<u64> = conn.query_first(sql).await.map_err(|error| {
            Error::Failed(format!(
                "--allow-writes {schema} uses the tables that are there, and {schema}.{name} can't be read ({error}): load it, \
                 for example with sysbench prepare, or name another schema"
            ))
        })?;
        if rows.unwrap_or(0) < dataset.rows {
            return Err(Error::Failed(format!(
                "{schema}.{name} has {} rows, and --rows {} were asked for: ask for fewer, or load more",
                rows.unwrap_or(0),
                dataset.rows
            )));
        }
    }
    Ok(())
}

fn hear_loading(listener: &dyn Listener, progress: dataset::Progress) {
    let phase = match progress.phase {
        Phase::Rows => "loading rows",
        Phase::Indexes => "making secondary indexes",
    };
    listener.hear(News::Loading { phase, rows: progress.rows_done, rows_total: progress.rows_total });
}
