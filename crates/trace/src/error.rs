//! What can go wrong when tracing begins.

/// Why nothing is traced. Once it runs, tracing does not fail: what is lost is counted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel has no types to find its fields by.
    #[error(
        "this kernel has no /sys/kernel/btf/vmlinux (it was built without CONFIG_DEBUG_INFO_BTF), which the tracer needs"
    )]
    NoBtf,
    /// The rights are missing.
    #[error(
        "loading the tracer's programs is not allowed, which takes CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE: run as root, or run once as root \
         {} setup-tracing, which makes a copy of it that may trace",
        own_path()
    )]
    NotAllowed,
    /// The kernel refused a program or a tracepoint that it does not have.
    #[error("the kernel did not take the tracer's programs: {0}")]
    Refused(#[source] libbpf_rs::Error),
    /// Its memory could not be mapped.
    #[error("the tracer's accounts can't be mapped: {0}")]
    Map(#[source] std::io::Error),
    /// Numbers of processes mean other processes there.
    #[error(
        "/proc has the processes of another PID namespace ({}): mount it again in this one (mount -t proc proc /proc), or start whyso by \
         unshare --pid --fork --mount-proc",
        numbers(*own, shown.as_deref())
    )]
    OtherProc { own: u32, shown: Option<String> },
    /// The programs and the reader were not built from one source.
    #[error(
        "an account of the tracer's programs has {theirs} bytes, and {ours} here: build the project again"
    )]
    Layout { theirs: usize, ours: usize },
    /// More processes than can be watched.
    #[error("at most {max} processes can be watched at a time")]
    TooManyProcesses { max: usize },
}

impl Error {
    pub(crate) fn of(error: libbpf_rs::Error) -> Error {
        match error.kind() {
            libbpf_rs::ErrorKind::PermissionDenied if !has_rights() => Error::NotAllowed,
            _ => Error::Refused(error),
        }
    }
}

/// This process as it is numbered, and as `/proc` numbers it.
fn numbers(own: u32, shown: Option<&str>) -> String {
    match shown {
        Some(shown) => format!("this process has the number {own}, and {shown} there"),
        None => format!("this process has the number {own}, and none there"),
    }
}

/// Of the program that runs, to be granted capabilities.
pub(crate) fn own_path() -> String {
    std::env::current_exe().map_or_else(|_| "PROGRAM".to_string(), |path| path.display().to_string())
}

/// Returns whether this process has CAP_BPF and CAP_PERFMON. The kernel reports a program that the verifier refused as a missing
/// permission, too.
fn has_rights() -> bool {
    const BPF_AND_PERFMON: u64 = 1 << 39 | 1 << 38;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    effective.is_some_and(|effective| effective & BPF_AND_PERFMON == BPF_AND_PERFMON)
}
