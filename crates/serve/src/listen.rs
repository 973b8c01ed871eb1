//! The socket: accepts connections, a bounded number of them, and gives each to the API.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

mod heard;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};

use crate::access::{Access, Token};
use crate::api::{self, Site};
use crate::error::Error;
use crate::live::{LiveRecorder, LiveServer};
use heard::{Heard, Open};

/// Connections at a time; a browser opens six a page. For one more, the one that was silent longest is closed.
const CONNECTIONS_MAX: usize = 256;
/// How long a client may take to send the head of a request, and to be silent between two.
const HEAD_WITHIN: Duration = Duration::from_secs(20);
/// A connection is closed after this long, whatever it does.
const CONNECTION_AT_MOST: Duration = Duration::from_secs(3600);
/// After an error of the listening socket, such as too many open files.
const PAUSE: Duration = Duration::from_millis(200);
/// What is still being answered when the server is told to stop has this long.
const STOP_WITHIN: Duration = Duration::from_secs(2);

/// What is served, and where.
#[derive(Clone)]
pub struct ServePlan {
    /// The folder that holds the recordings.
    pub runs: PathBuf,
    /// The folder that holds the user's own sets of charts; made when one is saved.
    pub charts: PathBuf,
    /// The file that keeps what was found in runs from one start to the next; `None`: nothing is kept.
    pub verdicts: Option<PathBuf>,
    /// Servers that may be recorded from the page.
    pub servers: Vec<LiveServer>,
    /// What records them.
    pub recorder: Arc<dyn LiveRecorder>,
    pub listen: SocketAddr,
    pub token: Token,
    /// Further names by which the server may be asked for, as a proxy sends them: with a port where it is not the scheme's own.
    pub hosts: Vec<String>,
}

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    site: Arc<Site>,
}

impl Server {
    /// Listens; nothing is answered yet.
    ///
    /// # Errors
    /// The folder of recordings is none, or the address can't be had.
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

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address to open, without the token.
    pub fn url(&self) -> String {
        let ip = self.address.ip();
        let host = match ip {
            _ if ip.is_unspecified() => "localhost".to_string(),
            std::net::IpAddr::V6(ip) => format!("[{ip}]"),
            std::net::IpAddr::V4(ip) => ip.to_string(),
        };
        format!("http://{host}:{}/", self.address.port())
    }

    /// The address to open: the token stands behind the #, where no browser sends it on.
    pub fn url_with(&self, token: &Token) -> String {
        format!("{}#token={}", self.url(), token.text())
    }

    /// Answers until `stop` is done.
    ///
    /// # Errors
    /// None at present: what can't be answered is told to whoever asked.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), Error> {
        let service = api::router(Arc::clone(&self.site));
        let mut open = Open::new(CONNECTIONS_MAX);
        tokio::pin!(stop);
        loop {
            let accepted = tokio::select! {
                () = &mut stop => break,
                accepted = self.accept() => accepted,
            };
            let stream = Heard::new(accepted);
            let heard = stream.clock();
            let service = service.clone();
            let task = tokio::spawn(async move {
                let mut http = http1::Builder::new();
                http.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN);
                let connection =
                    http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
                // A client that goes away in the middle of an answer is no news.
                let _ = tokio::time::timeout(CONNECTION_AT_MOST, connection).await;
            });
            open.add(task.abort_handle(), heard);
        }
        // Only what is being computed is waited for: connections that are merely kept open are not.
        let _ = tokio::time::timeout(STOP_WITHIN, self.site.until_idle()).await;
        let site = Arc::clone(&self.site);
        // It has a bound of its own.
        let _ = tokio::task::spawn_blocking(move || site.live.end()).await;
        Ok(())
    }

    async fn accept(&self) -> TcpStream {
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    // Answers are small and waited for.
                    let _ = stream.set_nodelay(true);
                    return stream;
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }
}
