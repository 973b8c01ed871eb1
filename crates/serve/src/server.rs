//! The socket: accepts a bounded number of connections, and passes each to the API.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};

use crate::access::{Access, Token};
use crate::api;
use crate::connections::{OpenConnections, TimedStream};
use crate::error::Error;
use crate::plan::ServePlan;
use crate::site::Site;

/// Connections at one time. A browser opens six per page. For one more, the one that was silent longest is closed.
const CONNECTIONS_MAX: usize = 256;
/// Longest time to send the head of a request, and between two requests.
const HEAD_WITHIN: Duration = Duration::from_secs(20);
/// Longest time of a connection, whatever it does.
const CONNECTION_AT_MOST: Duration = Duration::from_secs(3600);
/// Wait after an error of the listening socket, such as too many open files.
const PAUSE: Duration = Duration::from_millis(200);
/// Longest time for answers that are being computed when the server stops.
const STOP_WITHIN: Duration = Duration::from_secs(2);

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    site: Arc<Site>,
}

impl Server {
    /// Starts to listen, without an answer to any request yet.
    ///
    /// # Errors
    /// The folder of recordings is no folder, or the address is not available.
    pub async fn bind(plan: ServePlan) -> Result<Server, Error> {
        if !plan.runs.is_dir() {
            return Err(Error::NoFolder(plan.runs));
        }
        let listener = TcpListener::bind(plan.listen).await.map_err(|cause| match cause.kind() {
            io::ErrorKind::AddrInUse => Error::InUse(plan.listen),
            _ => Error::Listen(plan.listen, cause),
        })?;
        let address = listener.local_addr().map_err(|cause| Error::Listen(plan.listen, cause))?;
        let host = match address {
            SocketAddr::V4(address) => address.ip().to_string(),
            SocketAddr::V6(address) => format!("[{}]", address.ip()),
        };
        let access = Access::new(plan.token.clone(), address.port(), &host, &plan.hosts);
        Ok(Server { listener, address, site: Arc::new(Site::new(plan, access)) })
    }

    /// Returns where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address to open, without the token.
    pub fn url(&self) -> String {
        let ip = self.address.ip();
        let host = match ip {
            _ if ip.is_unspecified() => "localhost".to_string(),
            std::net::IpAddr::V6(ip) => format!("[{ip}]"),
            std::net::IpAddr::V4(ip) => ip.to_string(),
        };
        format!("http://{host}:{}/", self.address.port())
    }

    /// Returns the address to open, with the token after the `#`. A browser does not send that part on.
    pub fn url_with(&self, token: &Token) -> String {
        format!("{}#token={}", self.url(), token.text())
    }

    /// Answers requests until `stop` is done.
    ///
    /// # Errors
    /// None at present: an error of a request is its answer.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), Error> {
        let service = api::router(Arc::clone(&self.site));
        let mut open = OpenConnections::new(CONNECTIONS_MAX);
        tokio::pin!(stop);
        loop {
            let accepted = tokio::select! {
                () = &mut stop => break,
                accepted = self.accept() => accepted,
            };
            let stream = TimedStream::new(accepted);
            let activity = stream.activity();
            let service = service.clone();
            let task = tokio::spawn(async move {
                let mut http = http1::Builder::new();
                http.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN);
                let connection =
                    http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
                // A client that goes away in the middle of an answer is no news.
                let _ = tokio::time::timeout(CONNECTION_AT_MOST, connection).await;
            });
            open.add(task.abort_handle(), activity);
        }
        // This waits only for requests that are being computed, not for idle connections.
        let _ = tokio::time::timeout(STOP_WITHIN, self.site.until_idle()).await;
        let site = Arc::clone(&self.site);
        // `end` has its own bound.
        let _ = tokio::task::spawn_blocking(move || site.live.end()).await;
        Ok(())
    }

    async fn accept(&self) -> TcpStream {
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    // Answers are small, and clients wait for them.
                    let _ = stream.set_nodelay(true);
                    return stream;
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }
}
