//! A stripped program, whose debug information a server of the test's own has.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use whyso_stacks::{Names, Registers, Unwinding, program_symbols};

const PROGRAM: &str = "\
#include <unistd.h>
static __attribute__((noinline)) void waits_by_itself(void) { for (;;) pause(); }
int main(void) { waits_by_itself(); return 0; }
";

fn run(program: &str, arguments: &[&str]) -> String {
    let done =
        Command::new(program).args(arguments).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(done.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Answers every request for a file of debug information with this one.
fn serve(file: &Path) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let body = std::fs::read(file).unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut line = String::new();
            let _ = BufReader::new(stream.try_clone().unwrap()).read_line(&mut line);
            let is_known = line.starts_with("GET /buildid/") && line.contains("/debuginfo ");
            let (status, body) = if is_known { ("200 OK", &body[..]) } else { ("404 Not Found", &[][..]) };
            let head =
                format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(&[head.as_bytes(), body].concat());
        }
    });
    url
}

#[test]
fn functions_of_a_stripped_program_get_their_names_from_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let (source, program, debug) = (path("p.c"), path("p"), path("p.debug"));
    std::fs::write(&source, PROGRAM).unwrap();
    run("cc", &["-g", "-O1", "-no-pie", "-Wl,--build-id", "-o", &program, &source]);
    let symbols = run("nm", &[&program]);
    let line = symbols.lines().find(|line| line.ends_with("waits_by_itself")).unwrap();
    let address = u64::from_str_radix(line.split_whitespace().next().unwrap(), 16).unwrap();
    run("objcopy", &["--only-keep-debug", &program, &debug]);
    run("strip", &["--strip-all", &program]);

    let running = Running(Command::new(&program).stdin(Stdio::null()).spawn().unwrap());
    let pid = running.0.id();
    let name_now = || {
        let mut unwinding = Unwinding::default();
        let registers = Registers { instruction_pointer: address, ..Registers::default() };
        let frame = unwinding.user(pid, registers, &[]).frames[0];
        Names::default().of(&[frame], &unwinding)[&frame][0].clone()
    };
    // The kernel maps the program's code a moment after the process is there.
    for _ in 0..500 {
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        if maps.lines().any(|line| line.contains(" r-xp ") && line.ends_with(&program)) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    // SAFETY: no other thread of this test program reads or writes the environment meanwhile.
    unsafe {
        std::env::set_var("DEBUGINFOD_CACHE_PATH", path("cache"));
        std::env::remove_var("DEBUGINFOD_URLS");
    }
    assert!(name_now().name.starts_with("p+0x"), "{:?}", name_now());
    let unknown = program_symbols(pid).unwrap();
    assert!(!unknown.are_complete && unknown.failures.is_empty() && unknown.package.is_none(), "{unknown:?}");

    // SAFETY: as above.
    unsafe {
        std::env::set_var("DEBUGINFOD_URLS", format!("http://127.0.0.1:1 {}", serve(Path::new(&debug))))
    };
    let known = program_symbols(pid).unwrap();
    assert!(known.are_complete, "{known:?}");
    assert_eq!(known.failures.len(), 1, "nobody listens at the first server: {known:?}");
    let named = name_now();
    assert_eq!((named.name.as_str(), named.module.as_str()), ("waits_by_itself", "p"));
    assert!(named.file.is_some_and(|file| file.ends_with("p.c")) && named.line.is_some());
}
