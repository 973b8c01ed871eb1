//! Which server one is, however it is reached.

use mysql_async::prelude::Queryable;
use whyso_server::Dsn;
use whyso_server::answers::{answered, log_out};

use crate::Error;
use crate::runtime::runtime;

const SQL: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('server_uuid', 'server_uid', 'hostname', 'port', 'datadir')";

/// Asks a server who it is.
///
/// # Errors
/// It does not answer, or not within its bound.
pub fn identity_of(dsn: &str) -> Result<String, Error> {
    runtime()?.block_on(server_identity(&Dsn::resolve(dsn)?))
}

/// The same where there is a runtime.
pub(crate) async fn server_identity(dsn: &Dsn) -> Result<String, Error> {
    answered(dsn, "asking which server it is", async {
        let mut conn = dsn.connect_without_schema().await?;
        let rows: Vec<(String, String)> = conn
            .query(SQL)
            .await
            .map_err(|error| Error::Failed(format!("the server does not say who it is: {error}")))?;
        log_out(conn).await;
        Ok::<_, Error>(identity(|wanted| {
            rows.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone())
        }))
    })
    .await
}

/// A server's own identifier and its place: a copy of its data has the same identifier, and so have two MariaDB servers of one machine.
pub(crate) fn identity(value: impl Fn(&str) -> Option<String>) -> String {
    let own = value("server_uuid").or_else(|| value("server_uid")).filter(|own| !own.is_empty());
    let place = ["hostname", "port", "datadir"].into_iter().filter_map(value);
    own.into_iter().chain(place).collect::<Vec<_>>().join(" ")
}
