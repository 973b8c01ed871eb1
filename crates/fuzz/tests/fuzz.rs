//! Nothing that others wrote makes a reader panic, take more than 512 MiB or more than 5 s, or break what the targets promise.
//!
//! A test tries the cases in `corpus` and `failed`, and a fixed number of changes to them. Under `make fuzz` libFuzzer makes the cases.

use whyso_fuzz::bounds::CappedAllocator;
use whyso_fuzz::{check, is_fuzzing, run_case, targets};

#[global_allocator]
static ALLOCATOR: CappedAllocator = CappedAllocator;

macro_rules! target {
    ($name:ident, $changed:literal) => {
        #[test]
        fn $name() {
            if is_fuzzing() {
                bolero::check!().for_each(|bytes: &[u8]| run_case(stringify!($name), bytes, targets::$name));
            } else {
                check(stringify!($name), $changed, targets::$name);
            }
        }
    };
}

target!(recordings, 20);
target!(write_ahead, 120);
target!(imports, 2000);
target!(run_json, 20);
target!(digests, 20_000);
target!(small_files, 600);
target!(frames, 150);
target!(access_logs, 2000);
target!(pages, 20_000);
