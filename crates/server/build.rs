//! Compiles the library that makes a server slower.

use std::path::PathBuf;

const SOURCE: &str = "src/throwaway/slow/slow.c";

fn main() {
    println!("cargo:rerun-if-changed={SOURCE}");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let compiler = cc::Build::new().warnings(true).get_compiler();
    let mut command = compiler.to_command();
    command.args(["-O2", "-fPIC", "-shared", "-s", "-o"]).arg(out.join("slow.so")).arg(SOURCE);
    let status = command.status().unwrap_or_else(|error| {
        panic!("no C compiler can be run (Debian: apt-get install build-essential): {error}")
    });
    assert!(status.success(), "{SOURCE} can't be compiled: {command:?}");
}
