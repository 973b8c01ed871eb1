//! The small site of tests/http_site.py.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use super::{Place, output, text};

/// The site of http_site.py. It ends with this value.
pub(crate) struct Site {
    child: Child,
    pub(crate) url: String,
}

impl Site {
    pub(crate) fn start() -> Site {
        Site::start_with("http", &[])
    }

    pub(crate) fn start_with(scheme: &str, certificate: &[&Path]) -> Site {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/http_site.py");
        let mut command = Command::new("python3");
        command.arg(script).args(certificate).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("python3 is needed");
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Site { url: format!("{scheme}://localhost:{}", port.trim()), child }
    }

    /// Number of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The object of a load with these arguments, for a second without a warm-up.
    pub(crate) fn load(&self, place: &Place, path: &str, more: &[&str]) -> Value {
        let out = self.run(place, path, more);
        assert!(matches!(out.status.code(), Some(0 | 1)), "{}", text(&out.stderr));
        serde_json::from_slice(&out.stdout).unwrap()
    }

    pub(crate) fn run(&self, place: &Place, path: &str, more: &[&str]) -> Output {
        let url = format!("{}{path}", self.url);
        let mut args = vec!["load", "--url", &url, "--warmup", "0", "--json"];
        if !more.contains(&"--seconds") {
            args.extend(["--seconds", "1"]);
        }
        args.extend(more);
        output(&mut place.whyso(&args))
    }

    /// A count of the site's own, by its name.
    pub(crate) fn count(&self, place: &Place, name: &str) -> u64 {
        let url = format!("{}/stats", self.url);
        let out = output(Command::new("python3").current_dir(place.path()).args([
            "-c",
            "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=20).read().decode())",
            &url,
        ]));
        let counts: Value = serde_json::from_slice(&out.stdout).unwrap();
        counts[name].as_u64().unwrap_or(0)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
