//! The built-in test `cpu`, and what there is to say of the other built-in tests, which put no load on a server.

/// The name of the test and of its only option.
pub(crate) const CPU: &str = "cpu";
pub(crate) const CPU_MAX_PRIME: &str = "cpu-max-prime";

/// The test as a script.
pub(crate) const CPU_SCRIPT: &str = r#"
sysbench.cmdline.options = {
   ["cpu-max-prime"] = { "upper limit for primes generator", 10000, sysbench.cmdline.ARG_INT },
}
local limit
function thread_init()
   limit = sysbench.opt.cpu_max_prime
end
function event()
   count_primes(limit)
end
"#;

/// A test of sysbench's that is not served.
pub(crate) struct ForeignTest {
    pub(crate) name: &'static str,
    /// What its options begin with.
    options: &'static str,
    /// What measures the same.
    instead: &'static str,
}

const UNSERVED: [ForeignTest; 4] = [
    ForeignTest { name: "fileio", options: "file-", instead: "files, for example with `fio`" },
    ForeignTest {
        name: "memory",
        options: "memory-",
        instead: "memory, for example with `perf bench mem` or `stress-ng --vm`",
    },
    ForeignTest {
        name: "threads",
        options: "thread-",
        instead: "the scheduler, for example with `perf bench sched`",
    },
    ForeignTest { name: "mutex", options: "mutex-", instead: "locks, for example with `perf bench futex`" },
];

impl ForeignTest {
    pub(crate) fn find(test: &str) -> Option<&'static ForeignTest> {
        UNSERVED.iter().find(|unserved| unserved.name == test)
    }

    /// Whether this may be an option of the test.
    pub(crate) fn takes(&self, option: &str) -> bool {
        option.replace('_', "-").starts_with(self.options)
    }

    pub(crate) fn why(&self) -> String {
        format!(
            "the test '{}' puts no load on a database server and is not served: measure {}, or install sysbench itself",
            self.name, self.instead
        )
    }
}
