//! Ends work in a library that drops errors or panics: what a client sent is parsed and evaluated by libraries that give
//! the gateway no way to end them with an error. [`abort`] unwinds the thread, from wherever they call the gateway, and
//! [`catch`] turns that into the error. It also turns a panic of the library into one.
use crate::error::{ErrorClass, GatewayError};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// What [`abort`] unwinds with.
struct Aborted(GatewayError);

/// Ends the request with an error. The panic hook is not called.
pub fn abort(error: GatewayError) -> ! {
    resume_unwind(Box::new(Aborted(error)))
}

thread_local! {
    static IS_CATCHING_PANICS: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether a panic of this thread is caught: it parses or evaluates what a client sent, and its transaction is
/// then discarded. So a panic of the parser or the evaluator ends the request and not the process.
pub fn panic_is_caught() -> bool {
    IS_CATCHING_PANICS.get()
}

/// Runs a part of a request and returns the error that it was aborted with, if so. A panic becomes
/// [`ErrorClass::Internal`]; `what` names the work in its text.
///
/// What `work` refers to must not be used after an error.
pub fn catch<T>(
    what: &str,
    work: impl FnOnce() -> Result<T, GatewayError>,
) -> Result<T, GatewayError> {
    IS_CATCHING_PANICS.set(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_CATCHING_PANICS.set(false);
    done.unwrap_or_else(|panic| {
        if let Ok(aborted) = panic.downcast::<Aborted>() {
            return Err(aborted.0);
        }
        tracing::error!(what, "The work for a request panicked. The lines before have the place.");
        let detail = format!("{what} failed; the gateway's log has the cause");
        Err(GatewayError::new(ErrorClass::Internal, detail))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_the_request_only() {
        let failed = catch("the test", || {
            assert!(panic_is_caught());
            std::panic::panic_any("a bug");
            #[expect(unreachable_code, reason = "the type of the result")]
            Ok(())
        });
        assert_eq!(failed.unwrap_err().class, ErrorClass::Internal);
        assert!(!panic_is_caught());
    }
}
