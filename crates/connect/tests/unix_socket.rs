//! Over a Unix socket the driver reads a server's answers itself: where it panics, an error comes of it.

use mysql_async::prelude::Queryable;
use mysql_async::{Opts, OptsBuilder};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

/// More columns than an address can count: the driver panics.
const COLUMNS: &[u8] = &[9, 0, 0, 1, 0xfe, 0, 0, 0, 0, 0, 0, 0, 0x80];
const OK: &[u8] = &[7, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0];

async fn serve(mut stream: UnixStream) -> std::io::Result<()> {
    let mut body = b"\x0a5.7.0\0\x07\0\0\0saltsalt\0\xff\xf7\x08\x02\0\xff\x81\x15".to_vec();
    body.extend([0; 10]);
    body.extend(b"saltsaltsalt\0mysql_native_password\0");
    stream.write_all(&[body.len() as u8, 0, 0, 0]).await?;
    stream.write_all(&body).await?;
    let mut received = vec![0; 4096];
    let mut answer = OK;
    while stream.read(&mut received).await? > 0 {
        stream.write_all(answer).await?;
        answer = COLUMNS;
    }
    Ok(())
}

fn opts(socket: &std::path::Path) -> OptsBuilder {
    OptsBuilder::default().user(Some("u")).socket(socket.to_str())
}

#[tokio::test]
async fn a_panic_of_the_driver_is_an_error_of_the_connection() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let listener = UnixListener::bind(&socket).unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    // The driver asks for settings by itself.
    let why = whyso_connect::connect(opts(&socket).into()).await.map(drop).unwrap_err().to_string();
    assert!(why.contains("no MySQL protocol"), "{why}");

    let quiet: Opts = opts(&socket).max_allowed_packet(Some(1 << 24)).wait_timeout(Some(60)).into();
    let mut conn = whyso_connect::connect(quiet).await.unwrap();
    let asked = whyso_connect::caught(conn.query_drop("DO 1")).await;
    assert_eq!(asked.unwrap_err(), whyso_connect::DriverPanic);
    drop(conn);
}
