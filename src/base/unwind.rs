//! Ends work in a library that drops errors or panics: what a client sent is parsed and evaluated by libraries that give
//! the gateway no way to end them with an error. [`abort`] unwinds the thread, from wherever they call the gateway, and
//! [`catch`] turns that into the error. It also turns a panic of the library into one. [`run_on_stack`] is for libraries
//! that call themselves for each level of what they parse.
use crate::error::{ErrorClass, GatewayError, format_mebibytes};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

/// When a request that got no stack may be repeated.
const STACK_RETRY_DELAY: Duration = Duration::from_secs(5);

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
    let was_catching = IS_CATCHING_PANICS.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_CATCHING_PANICS.set(was_catching);
    done.unwrap_or_else(|panic| {
        if let Ok(aborted) = panic.downcast::<Aborted>() {
            return Err(aborted.0);
        }
        tracing::error!(what, "The work for a request panicked. The lines before have the place.");
        let detail = format!("{what} failed; the gateway's log has the cause");
        Err(GatewayError::new(ErrorClass::Internal, detail))
    })
}

/// Runs `work` on a stack of this many bytes. Only pages that are used take memory.
///
/// # Errors
/// [`ErrorClass::Unavailable`] if the machine has no memory for the stack. Then `work` has not begun.
pub fn run_on_stack<T>(bytes: usize, work: impl FnOnce() -> T) -> Result<T, GatewayError> {
    let mut has_begun = false;
    // Without memory for the stack, stacker panics.
    let was_catching = IS_CATCHING_PANICS.replace(true);
    let done = catch_unwind(AssertUnwindSafe(|| {
        stacker::grow(bytes, || {
            IS_CATCHING_PANICS.set(was_catching);
            has_begun = true;
            work()
        })
    }));
    IS_CATCHING_PANICS.set(was_catching);
    done.map_err(|panic| {
        if has_begun {
            resume_unwind(panic);
        }
        let size = format_mebibytes(bytes as u64);
        GatewayError::new(
            ErrorClass::Unavailable(STACK_RETRY_DELAY),
            format!("the machine has no memory for a stack of {size}, which the request needs; try again later"),
        )
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

    #[test]
    fn a_panic_after_an_inner_part_of_the_request_is_caught_too() {
        let ended = catch("the test", || {
            catch("its part", || Ok(()))?;
            Ok(panic_is_caught())
        });
        assert_eq!(ended, Ok(true));
    }

    #[test]
    fn a_stack_that_does_not_fit_into_memory_is_an_error() {
        let failed = run_on_stack(usize::MAX - (1 << 20), || ()).unwrap_err();
        assert_eq!(failed.class, ErrorClass::Unavailable(STACK_RETRY_DELAY));
        assert!(!panic_is_caught());
        // A panic of the work is none of the stack.
        assert_eq!(run_on_stack(1 << 20, panic_is_caught), Ok(false));
        let fail: fn() = || panic!("a bug");
        assert!(catch_unwind(|| run_on_stack(1 << 20, fail)).is_err());
    }
}
