//! The driver panics on some answers, such as an empty packet. That ends the work on one connection, and nothing else.

use std::any::Any;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::panic::{
    AssertUnwindSafe, Location, PanicHookInfo, catch_unwind, resume_unwind, set_hook, take_hook,
};
use std::pin::pin;
use std::sync::Once;
use std::task::Poll;

/// Packages whose panics are about a server's bytes.
const DRIVER: [&str; 2] = ["/mysql_async-", "/mysql_common-"];
/// How the files of this workspace are named in a panic.
const OWN: &str = "crates/";

/// The driver panicked on what a server sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it sent an answer that is no MySQL protocol, or none to what was asked: check that the address is a MySQL-compatible server's"
)]
pub struct DriverPanic;

thread_local! {
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
    static IS_OWN: Cell<bool> = const { Cell::new(false) };
}

/// Does work on a connection. A panic of the driver ends in an error, and prints nothing; one of whyso's own is passed on.
///
/// # Errors
/// [`DriverPanic`]. What the work borrowed is then in no known state: the connection must not be used again.
pub async fn caught<T>(work: impl Future<Output = T>) -> Result<T, DriverPanic> {
    install_hook();
    let mut work = pin!(work);
    poll_fn(|context| {
        let before = IS_CAUGHT.replace(true);
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
        IS_CAUGHT.set(before);
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
            Err(panic) => Poll::Ready(Err(of_driver(panic))),
        }
    })
    .await
}

fn of_driver(panic: Box<dyn Any + Send>) -> DriverPanic {
    if IS_OWN.replace(false) {
        resume_unwind(panic);
    }
    DriverPanic
}

/// The hook that was there prints whatever is no driver's.
fn install_hook() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
            let is_own = info.location().is_some_and(is_own);
            IS_OWN.set(is_own);
            let is_caught = IS_CAUGHT.get() && !is_own;
            // A connection that is dropped is closed by a task of the driver's own.
            if !is_caught && !info.location().is_some_and(is_drivers) {
                before(info);
            }
        }));
    });
}

fn is_own(location: &Location<'_>) -> bool {
    location.file().starts_with(OWN)
}

fn is_drivers(location: &Location<'_>) -> bool {
    DRIVER.iter().any(|package| location.file().contains(package))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_outside_of_whyso_ends_the_work_and_one_inside_is_passed_on() {
        assert_eq!(caught(async { 5 }).await, Ok(5));
        // The standard library's own file is where this one is located.
        let elsewhere = caught(async {
            let mut vector = bytes_of(1);
            vector.splice(bytes_of(2).len()..1, []);
        });
        assert_eq!(elsewhere.await, Err(DriverPanic));
        assert_eq!(caught(async { 6 }).await, Ok(6));
        let own = tokio::spawn(caught(async { panic!("a mistake of whyso's own: this text is expected") }));
        assert!(own.await.unwrap_err().is_panic());
    }

    fn bytes_of(length: usize) -> Vec<u8> {
        vec![0; length]
    }
}
