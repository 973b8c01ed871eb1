//! Backups and imports of recordings, streamed in pieces: no archive is ever whole in memory.

use std::future::poll_fn;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::StatusCode;
use hyper::body::Frame;
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::error::{Answer, Refusal};

/// Bytes of one import.
pub(crate) const IMPORT_BYTES_MAX: u64 = 32 << 30;
const PIECE_BYTES: usize = 64 << 10;
/// Pieces that wait for the slower side.
const PIECES_MAX: usize = 8;
/// Time without a byte after which the other side counts as gone.
const SILENT_AT_MOST: Duration = Duration::from_secs(60);
/// Time for which a refused body is read on. Otherwise a browser would report a broken connection instead of the reason.
const DRAIN_WITHIN: Duration = Duration::from_secs(10);

type Piece = io::Result<Bytes>;

/// Streams recordings as one archive. An error after the first byte breaks the answer off, so that it never counts as whole.
///
/// # Errors
/// A recording is still being written, or can't be read.
pub(crate) async fn backup(runs: Vec<PathBuf>, turn: OwnedSemaphorePermit) -> Answer<Body> {
    let (to, mut from) = channel(PIECES_MAX);
    let runtime = Handle::current();
    let written = spawn_blocking(move || {
        let out = PieceWriter { to: to.clone(), piece: Vec::with_capacity(PIECE_BYTES), runtime };
        let written = whyso_record::backup_to(&runs, out);
        if let Err(error) = &written {
            // The client may be gone.
            let _ = to.blocking_send(Err(io::Error::other(error.to_string())));
        }
        drop(turn);
        written
    });
    match from.recv().await {
        Some(Ok(first)) => Ok(Body::new(Pieces { first: Some(first), rest: from })),
        // Nothing was sent yet, so the answer can still be the reason.
        _ => match written.await {
            Ok(Err(error)) => Err(error.into()),
            _ => Err(Refusal::damaged()),
        },
    }
}

/// Imports an archive's recordings into a folder. Returns the imported ones, and those that were there already.
///
/// # Errors
/// The archive is too large, does not arrive whole, or is no backup. Then nothing is imported.
pub(crate) async fn import(
    body: Body,
    runs: &Path,
    bytes_max: u64,
    turn: OwnedSemaphorePermit,
) -> Answer<(Vec<String>, Vec<String>)> {
    let (to, from) = channel(PIECES_MAX);
    let runs = runs.to_path_buf();
    let imported = spawn_blocking(move || {
        let reader = PieceReader { from, piece: Bytes::new(), is_whole: false };
        let imported = whyso_record::import_from(reader, "what was sent", &runs);
        drop(turn);
        imported
    });
    let passed = pass_on(body, to, bytes_max).await;
    match (passed, imported.await) {
        (Err(refused), _) => Err(refused),
        (Ok(()), Ok(imported)) => Ok(imported?),
        (Ok(()), Err(_)) => Err(Refusal::damaged()),
    }
}

/// Passes a body on to the thread that unpacks it. An empty piece marks the end: a broken connection ends without one.
async fn pass_on(body: Body, to: Sender<Bytes>, bytes_max: u64) -> Answer<()> {
    let mut body = pin!(body);
    let mut bytes = 0;
    loop {
        let next = timeout(SILENT_AT_MOST, poll_fn(|context| body.as_mut().poll_frame(context))).await;
        let piece = match next {
            Ok(None) => break,
            Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
            _ => return Err(Refusal::bad("what was sent did not arrive whole: nothing was imported")),
        };
        bytes += piece.len() as u64;
        if bytes > bytes_max {
            drop(to);
            drain(body).await;
            return Err(too_large(bytes_max));
        }
        // The thread that unpacks has stopped: its result has the reason.
        if !piece.is_empty() && to.send(piece).await.is_err() {
            drain(body).await;
            return Ok(());
        }
    }
    let _ = to.send(Bytes::new()).await;
    Ok(())
}

async fn drain(mut body: Pin<&mut Body>) {
    let all = async { while let Some(Ok(_)) = poll_fn(|context| body.as_mut().poll_frame(context)).await {} };
    let _ = timeout(DRAIN_WITHIN, all).await;
}

pub(crate) fn too_large(bytes_max: u64) -> Refusal {
    Refusal::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!(
            "one import has at most {} GiB: use `whyso runs import` on the machine itself",
            bytes_max >> 30
        ),
    )
}

/// Sends what is written to the client.
struct PieceWriter {
    to: Sender<Piece>,
    piece: Vec<u8>,
    runtime: Handle,
}

impl Write for PieceWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE_BYTES));
        let to = &self.to;
        let sent = self.runtime.block_on(async { timeout(SILENT_AT_MOST, to.send(Ok(piece.into()))).await });
        match sent {
            Ok(Ok(())) => Ok(()),
            _ => Err(io::Error::new(ErrorKind::BrokenPipe, "the client takes no more")),
        }
    }
}

/// The pieces of an archive, as the body of an answer.
struct Pieces {
    first: Option<Bytes>,
    rest: Receiver<Piece>,
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        self.rest.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

/// The body of a request, read like a file.
struct PieceReader {
    from: Receiver<Bytes>,
    piece: Bytes,
    is_whole: bool,
}

impl Read for PieceReader {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.piece.is_empty() && !self.is_whole {
            match self.from.blocking_recv() {
                Some(piece) => {
                    self.is_whole = piece.is_empty();
                    self.piece = piece;
                }
                None => return Err(io::Error::new(ErrorKind::UnexpectedEof, "it did not arrive whole")),
            }
        }
        let length = self.piece.len().min(bytes.len());
        bytes[..length].copy_from_slice(&self.piece.split_to(length));
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Semaphore;

    use super::*;

    async fn turn() -> OwnedSemaphorePermit {
        Arc::new(Semaphore::new(1)).acquire_owned().await.unwrap()
    }

    async fn import_into(folder: &Path, sent: Vec<u8>, bytes_max: u64) -> Answer<(Vec<String>, Vec<String>)> {
        import(Body::from(sent), folder, bytes_max, turn().await).await
    }

    #[tokio::test]
    async fn what_goes_out_comes_in_again_and_no_more_than_may() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        for id in ["one", "two"] {
            let recorder = whyso_record::Recorder::create(&from.join(id), Default::default()).unwrap();
            recorder.finish().unwrap();
        }
        let runs = vec![from.join("one"), from.join("two")];
        let sent = backup(runs.clone(), turn().await).await.unwrap();
        let sent = axum::body::to_bytes(sent, usize::MAX).await.unwrap().to_vec();
        let left = || std::fs::read_dir(&to).map_or(0, Iterator::count);

        let refused = import_into(&to, sent.clone(), sent.len() as u64 - 1).await.unwrap_err();
        assert!(refused.why().contains("one import has at most") && left() == 0, "{refused:?}");
        assert!(import_into(&to, sent[..1536].to_vec(), u64::MAX).await.is_err());
        assert!(import_into(&to, b"no archive".to_vec(), u64::MAX).await.is_err());
        assert_eq!(left(), 0);
        let (imported, there) = import_into(&to, sent.clone(), sent.len() as u64).await.unwrap();
        assert_eq!((imported.len(), there.len(), left()), (2, 0, 2));
        let (imported, there) = import_into(&to, sent, u64::MAX).await.unwrap();
        assert_eq!((imported.len(), there.len(), left()), (0, 2, 2));

        let going = whyso_record::Recorder::create(&from.join("live"), Default::default()).unwrap();
        let refused = backup(vec![from.join("one"), from.join("live")], turn().await).await.unwrap_err();
        assert!(refused.why().contains("is being recorded"), "{refused:?}");
        going.finish().unwrap();
    }
}
