//! A server that asks for the password in full gets it over no connection that is not protected: with `tls=insecure` anybody may answer.

use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Opts, OptsBuilder, SslOpts};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

const SECRET: &str = "sesame-of-a-test";
const TLS: u16 = 0x0800;
const ASKED_IN_FULL: &[u8] = &[1, 4];
const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];
const CLEAR: &[u8] = b"\xfemysql_clear_password\0";

/// What the server received, decrypted.
type ReceivedBytes = Arc<Mutex<Vec<u8>>>;

fn packet(number: u8, body: &[u8]) -> Vec<u8> {
    let mut packet = (body.len() as u32).to_le_bytes()[..3].to_vec();
    packet.push(number);
    packet.extend_from_slice(body);
    packet
}

fn greeting(offers_tls: bool) -> Vec<u8> {
    let capabilities: u16 = if offers_tls { 0xf7ff | TLS } else { 0xf7ff & !TLS };
    let mut body = b"\x0a8.4.0\0\x07\0\0\0saltsalt\0".to_vec();
    body.extend(capabilities.to_le_bytes());
    body.extend(b"\x08\x02\0\xff\x81\x15");
    body.extend([0; 10]);
    body.extend(b"saltsaltsalt\0caching_sha2_password\0");
    packet(0, &body)
}

async fn read(stream: &mut (impl AsyncRead + Unpin), received: &ReceivedBytes) -> Option<(u8, Vec<u8>)> {
    let mut header = [0; 4];
    stream.read_exact(&mut header).await.ok()?;
    let mut body = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
    stream.read_exact(&mut body).await.ok()?;
    received.lock().unwrap().extend_from_slice(&body);
    Some((header[3], body))
}

async fn send(stream: &mut (impl AsyncWrite + Unpin), number: u8, body: &[u8]) -> Option<()> {
    stream.write_all(&packet(number, body)).await.ok()?;
    stream.flush().await.ok()
}

fn acceptor() -> TlsAcceptor {
    let folder = tempfile::tempdir().unwrap();
    let (key, certificate) = (folder.path().join("key"), folder.path().join("certificate"));
    let output = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x", "-days", "2", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output();
    assert!(output.is_ok_and(|output| output.status.success()), "openssl is needed: apt-get install openssl");
    let certificates = vec![CertificateDer::from_pem_file(&certificate).unwrap()];
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(certificates, PrivateKeyDer::from_pem_file(&key).unwrap());
    TlsAcceptor::from(Arc::new(config.unwrap()))
}

/// The login from the client's capabilities on, and then an answer of OK to each command.
async fn talk(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    request: &[u8],
    received: &ReceivedBytes,
) -> Option<()> {
    let (mut number, _) = read(&mut stream, received).await?;
    if !request.is_empty() {
        send(&mut stream, number + 1, request).await?;
        (number, _) = read(&mut stream, received).await?;
    }
    send(&mut stream, number + 1, OK).await?;
    loop {
        let (number, _) = read(&mut stream, received).await?;
        send(&mut stream, number + 1, OK).await?;
    }
}

/// Starts a server that asks for more in the login. Returns its port and what it receives.
async fn server(offers_tls: bool, request: &'static [u8]) -> (u16, ReceivedBytes) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let received = ReceivedBytes::default();
    let received_by_server = Arc::clone(&received);
    let acceptor = acceptor();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = serve(stream, &acceptor, offers_tls, request, &received_by_server).await;
        }
    });
    (port, received)
}

async fn serve(
    mut stream: TcpStream,
    acceptor: &TlsAcceptor,
    offers_tls: bool,
    request: &[u8],
    received: &ReceivedBytes,
) -> Option<()> {
    stream.write_all(&greeting(offers_tls)).await.ok()?;
    let mut length = [0; 4];
    stream.peek(&mut length).await.ok()?;
    if length[0] != 32 {
        return talk(stream, request, received).await;
    }
    read(&mut stream, received).await?;
    talk(acceptor.accept(stream).await.ok()?, request, received).await
}

fn opts(port: u16, tls: bool) -> Opts {
    OptsBuilder::default()
        .user(Some("u"))
        .pass(Some(SECRET))
        .ip_or_hostname("127.0.0.1")
        .tcp_port(port)
        .prefer_socket(false)
        .max_allowed_packet(Some(1 << 24))
        .wait_timeout(Some(60))
        .ssl_opts(tls.then(|| SslOpts::default().with_danger_accept_invalid_certs(true)))
        .into()
}

async fn connect(port: u16, tls: bool) -> Result<mysql_async::Conn, String> {
    let connecting = whyso_connect::connect(opts(port, tls));
    let connected = tokio::time::timeout(Duration::from_secs(20), connecting).await.expect("in time");
    connected.map_err(|error| error.to_string())
}

fn has_secret(received: &ReceivedBytes) -> bool {
    received.lock().unwrap().windows(SECRET.len()).any(|part| part == SECRET.as_bytes())
}

#[tokio::test]
async fn no_server_gets_the_password_in_full() {
    for (tls, words) in
        [(true, "tls=insecure does not check who it is"), (false, "an unprotected connection")]
    {
        let (port, received) = server(tls, ASKED_IN_FULL).await;
        let why = connect(port, tls).await.map(drop).unwrap_err();
        assert!(why.contains(words), "{why}");
        assert!(!has_secret(&received), "the password was sent over tls={tls}");

        let (port, received) = server(tls, CLEAR).await;
        connect(port, tls).await.map(drop).unwrap_err();
        assert!(!has_secret(&received), "the password was sent to a plugin over tls={tls}");
    }
}

#[tokio::test]
async fn a_server_that_asks_for_no_more_is_talked_to_over_tls() {
    let (port, received) = server(true, &[]).await;
    let mut conn = connect(port, true).await.unwrap();
    conn.query_drop("DO 'over TLS'").await.unwrap();
    conn.query_drop("DO 'again'").await.unwrap();
    whyso_connect::disconnect(conn).await;
    assert!(received.lock().unwrap().windows(13).any(|part| part == b"DO 'over TLS'"));
    assert!(!has_secret(&received));
}

#[tokio::test]
async fn a_server_without_tls_is_refused_where_tls_was_asked_for() {
    let (port, received) = server(false, &[]).await;
    let why = connect(port, true).await.map(drop).unwrap_err();
    assert!(why.contains("it offers no TLS"), "{why}");
    assert!(received.lock().unwrap().is_empty(), "nothing is sent in the clear");
}
