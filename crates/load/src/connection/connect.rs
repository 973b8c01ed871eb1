//! Makes connections: log in, prepare, and say what on this machine stands in the way.

use std::io;
use std::time::{Duration, Instant};

use whyso_clock::monotonic_ns;
use whyso_wire::{RowFormat, encode};

use crate::connection::endpoints::Endpoints;
use crate::connection::http;
use crate::connection::login::{Wishes, log_in};
use crate::connection::session::{Got, Session};
use crate::driver::{Command, Expects, Kind, Nothing, Work};
use crate::engine::shared::LevelState;
use crate::error::LoadError;
use crate::target::Limits;

/// As much as a server sends at once with its default `net_buffer_length`; a range of 100 rows fits.
pub(crate) const RECEIVE_BYTES: usize = 16 * 1024;
const RECONNECT_PAUSE: Duration = Duration::from_millis(100);
/// One try within a level takes at most this long, so that a dead endpoint is left soon.
const RECONNECT_TRY: Duration = Duration::from_secs(2);
/// How long the kernel keeps the port of a connection that we closed: TCP_TIMEWAIT_LEN of Linux.
const TIME_WAIT_S: u64 = 60;

/// Connects to an endpoint, logs in, runs what is run once on every connection, and prepares the work's statements.
pub(crate) fn open(
    endpoints: &Endpoints,
    endpoint: u16,
    work: &dyn Work,
    wishes: Wishes,
    limits: &Limits,
) -> Result<Session, LoadError> {
    if let Some(body_bytes_max) = work.body_bytes_max() {
        return http::open(endpoints, endpoint, body_bytes_max, limits);
    }
    let target = endpoints.target(endpoint);
    let address = target.address.to_string();
    let mut session = Session::new(log_in(target, wishes, limits)?, endpoint);
    let broken = |source| LoadError::Broken { address: address.clone(), source };
    if !work.session().is_empty() || !work.preparations().is_empty() {
        let mut received = vec![0; RECEIVE_BYTES];
        session.socket().bound_waits(Some(limits.connect)).map_err(broken)?;
        for sql in work.session() {
            session.run_once(sql, &address, &mut received)?;
        }
        session.prepare(work.preparations(), &address, &mut received)?;
    }
    // From here on the level watches over stalls: a bound on the socket costs a timer at every wait.
    session.socket().bound_waits(None).map_err(broken)?;
    session.command.clear();
    Ok(session)
}

/// Reopens a connection during a level, trying for as long as the limits say, at other endpoints too where one is down.
/// `None`: the level was stopped. The error is that of the last try.
pub(crate) fn reopen(shared: &LevelState, connection: u32) -> Result<Option<Session>, LoadError> {
    let bound =
        if shared.limits.reconnect.is_zero() { shared.limits.connect } else { shared.limits.reconnect };
    let deadline = Instant::now() + bound;
    let limits = Limits { connect: shared.limits.connect.min(RECONNECT_TRY), ..shared.limits };
    let mut pause = RECONNECT_PAUSE / 10;
    loop {
        if shared.is_stopped() {
            return Ok(None);
        }
        let endpoint = shared.endpoints.choose(connection);
        let error = match open(&shared.endpoints, endpoint, &*shared.work, shared.wishes, &limits) {
            Ok(session) => {
                shared.endpoints.mark_up(endpoint);
                return Ok(Some(session));
            }
            Err(error) => error,
        };
        match &error {
            LoadError::Connect { source, .. } if is_out_of_ports(source) => {
                shared.limited_by_client(out_of_ports().to_string());
            }
            LoadError::Connect { .. } | LoadError::Broken { .. } | LoadError::Refused { .. } => {
                shared.endpoints.mark_down(endpoint, monotonic_ns());
            }
            _ => return Err(error),
        }
        if Instant::now() >= deadline {
            return Err(error);
        }
        let other_is_up = shared.endpoints.choose(connection) != endpoint;
        if !other_is_up {
            std::thread::sleep(pause);
            pause = (pause * 2).min(RECONNECT_PAUSE);
        }
    }
}

/// Tries once to make a connection that a user asked for. `None`: the level was stopped.
pub(crate) fn open_on_demand(shared: &LevelState, connection: u32) -> Result<Option<Session>, LoadError> {
    if shared.is_stopped() {
        return Ok(None);
    }
    let endpoint = shared.endpoints.choose(connection);
    let opened = open(&shared.endpoints, endpoint, &*shared.work, shared.wishes, &shared.limits);
    let session = if shared.is_http { opened.map_err(explained)? } else { opened? };
    shared.endpoints.mark_up(endpoint);
    Ok(Some(session))
}

/// Makes the connection that a user of a running level needs: see [`reopen`] and [`open_on_demand`].
pub(crate) fn open_in_level(shared: &LevelState, connection: u32) -> Result<Option<Session>, LoadError> {
    match shared.tries_once() {
        true => open_on_demand(shared, connection),
        false => reopen(shared, connection),
    }
}

/// Whether it answers a login again: then it is up.
pub(crate) fn probe(endpoints: &Endpoints, endpoint: u16, limits: &Limits) {
    let limits = Limits { connect: limits.connect.min(RECONNECT_TRY), ..*limits };
    if let Ok(session) = open(endpoints, endpoint, &Nothing, Wishes::default(), &limits) {
        session.quit();
        endpoints.mark_up(endpoint);
    }
}

/// Whether the server still answers on it, within the time that connecting may take. Over HTTP: whether it is still open.
pub(crate) fn answers(session: &mut Session, limits: &Limits) -> bool {
    if session.page().is_some() {
        return !session.is_used_up() && session.unrest().is_none();
    }
    session.command.clear();
    encode::ping(&mut session.command);
    let results = Expects::Results(RowFormat::Text);
    let command = Command { kind: Kind::One(0), expects: results, captures: false };
    let is_bound = session.socket().bound_waits(Some(limits.connect)).is_ok();
    let is_begun = session.begin(&command).is_ok();
    let got = session.exchange(&mut [0; 512]);
    session.command.clear();
    let is_unbound = session.socket().bound_waits(None).is_ok();
    is_bound && is_begun && is_unbound && matches!(got, Ok(Some(Got::Fine)))
}

/// The error, with what to do about it where this machine is the cause.
pub(crate) fn explained(error: LoadError) -> LoadError {
    match error {
        LoadError::Connect { source, .. } if is_out_of_ports(&source) => out_of_ports(),
        error => error,
    }
}

fn is_out_of_ports(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EADDRNOTAVAIL)
}

/// The ceiling that the ports and the kernel's setting allow.
fn out_of_ports() -> LoadError {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let mut ends = range.split_whitespace().filter_map(|end| end.parse::<u64>().ok());
    let (first, last) = (ends.next().unwrap_or(32_768), ends.next().unwrap_or(60_999));
    let ports = (last + 1).saturating_sub(first);
    let reuse = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_tw_reuse").unwrap_or_default();
    LoadError::OutOfPorts { ports, first, last, kept_s: TIME_WAIT_S, tcp_tw_reuse: reuse.trim().to_string() }
}
