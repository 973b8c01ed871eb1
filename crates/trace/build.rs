//! Compiles the BPF programs and generates the code that loads them.

use std::path::{Path, PathBuf};

use libbpf_cargo::SkeletonBuilder;

const SOURCE: &str = "src/bpf/budget.bpf.c";

fn main() {
    println!("cargo:rerun-if-changed=src/bpf");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("budget.skel.rs");
    let machine = std::env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets CARGO_CFG_TARGET_ARCH");
    // Debian keeps <asm/types.h> here, and clang does not look there for the target bpf.
    let headers = format!("/usr/include/{machine}-linux-gnu");
    let mut arguments = vec!["-Wall".to_string(), "-Wno-unknown-attributes".to_string()];
    if Path::new(&headers).is_dir() {
        arguments.push(format!("-I{headers}"));
    }
    let built = SkeletonBuilder::new().source(SOURCE).clang_args(arguments).build_and_generate(&out);
    if let Err(error) = built {
        panic!("{SOURCE} can't be compiled (Debian: apt-get install clang libelf-dev zlib1g-dev): {error:?}");
    }
}
