//! A server of our own, and folders.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use super::*;

const ID: &str = "0123456789abcdef0123456789abcdef01234567";

/// Answers each request with the next of `answers`, and gives what was asked for.
fn serve(answers: Vec<Vec<u8>>) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (send, asked) = channel();
    std::thread::spawn(move || {
        for answer in answers {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let mut line = String::new();
            BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
            let _ = send.send(line.trim().to_string());
            let _ = stream.write_all(&answer);
        }
    });
    (url, asked)
}

fn answer(status: &str, announced: usize, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {announced}\r\nConnection: close\r\n\r\n");
    [head.as_bytes(), body].concat()
}

fn files(folder: &Path, urls: Vec<String>) -> DebugFiles {
    DebugFiles {
        folders: vec![folder.join("debug")],
        cache: Some(folder.join("cache")),
        urls,
        bounds: Bounds { silence: Duration::from_secs(2), time: Duration::from_secs(5), bytes: 1000 },
        found: HashMap::new(),
        failed: Vec::new(),
    }
}

#[test]
fn what_a_package_put_there_is_found_without_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("debug/.build-id/01");
    std::fs::create_dir_all(&place).unwrap();
    let path = place.join(format!("{}.debug", &ID[2..]));
    std::fs::write(&path, "debug").unwrap();
    assert_eq!(files(folder.path(), Vec::new()).find(ID), Some(path));
}

#[test]
fn a_server_is_asked_once_and_what_it_sends_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (url, asked) = serve(vec![answer("200 OK", 5, b"debug")]);
    let mut first = files(folder.path(), vec![url.clone()]);
    let path = first.find(ID).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"debug");
    assert_eq!(asked.recv().unwrap(), format!("GET /buildid/{ID}/debuginfo HTTP/1.1"));
    assert_eq!(first.find(ID), Some(path.clone()));
    assert_eq!(files(folder.path(), vec![url]).find(ID), Some(path), "of the next program, too");
    assert!(first.failures().is_empty());
}

#[test]
fn the_next_server_is_asked_where_one_does_not_have_it_or_fails() {
    let folder = tempfile::tempdir().unwrap();
    let (without, _asked) = serve(vec![answer("404 Not Found", 0, b"")]);
    let (broken, _asked) = serve(vec![answer("200 OK", 50, b"too short")]);
    let (large, _asked) = serve(vec![answer("200 OK", 5000, b"")]);
    let (silent, _asked) = serve(vec![Vec::new()]);
    let (good, _asked) = serve(vec![answer("200 OK", 5, b"debug")]);
    let mut found = files(folder.path(), vec![without, broken.clone(), large.clone(), silent.clone(), good]);
    assert!(found.find(ID).is_some());
    let failed: Vec<&str> = found.failures().iter().map(|failure| failure.url.as_str()).collect();
    assert_eq!(failed.len(), 3, "{failed:?}");
    for (failure, url) in failed.iter().zip([broken, large, silent]) {
        assert!(failure.starts_with(&url), "{failure}");
    }
    let left: Vec<_> = std::fs::read_dir(folder.path().join("cache").join(ID)).unwrap().collect();
    assert_eq!(left.len(), 1, "no part of a file is left");
}

#[test]
fn what_is_no_build_id_is_not_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    for wrong in ["", "01", "../../etc/passwd", "01/../02", &"a".repeat(200)] {
        let (url, asked) = serve(vec![answer("200 OK", 5, b"debug")]);
        assert_eq!(files(folder.path(), vec![url]).find(wrong), None);
        assert!(asked.try_recv().is_err());
    }
}
