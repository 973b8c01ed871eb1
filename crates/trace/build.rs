//! Compiles the BPF programs and generates the code that loads them.

use std::path::{Path, PathBuf};

use libbpf_cargo::SkeletonBuilder;

/// A file of `src/bpf`, and what is generated from it.
const OBJECTS: [(&str, &str); 6] = [
    ("src/bpf/budget.bpf.c", "budget.skel.rs"),
    ("src/bpf/namespace.bpf.c", "namespace.skel.rs"),
    ("src/bpf/now.bpf.c", "now.skel.rs"),
    ("src/bpf/programs.bpf.c", "programs.skel.rs"),
    ("src/bpf/sql.bpf.c", "sql.skel.rs"),
    ("src/bpf/stacks.bpf.c", "stacks.skel.rs"),
];

fn main() {
    println!("cargo:rerun-if-changed=src/bpf");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let machine = std::env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets CARGO_CFG_TARGET_ARCH");
    // Debian keeps <asm/types.h> here, and clang does not look there for the target bpf.
    let headers = format!("/usr/include/{machine}-linux-gnu");
    let mut arguments = vec!["-Wall".to_string(), "-Wno-unknown-attributes".to_string()];
    if Path::new(&headers).is_dir() {
        arguments.push(format!("-I{headers}"));
    }
    for (source, generated) in OBJECTS {
        let mut builder = SkeletonBuilder::new();
        let built = builder.source(source).clang_args(&arguments).build_and_generate(out.join(generated));
        if let Err(error) = built {
            panic!(
                "{source} can't be compiled (Debian: apt-get install clang libelf-dev zlib1g-dev): {error:?}"
            );
        }
    }
}
