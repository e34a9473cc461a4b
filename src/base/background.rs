//! Long work to which requests are preferred.
use crate::error::{ErrorClass, GatewayError};
use rustix::process::{getpriority_process, setpriority_process};
use std::panic::resume_unwind;
use std::thread;
use std::time::Duration;
use tracing::Span;

/// The niceness of long work above that of the process (`nice(2)`): it gets a quarter of the time of a processor that a
/// request wants too.
const NICENESS: i32 = 5;
const MAX_NICENESS: i32 = 19;

/// Runs long work on a thread with a lower priority, in the span of the caller. Returns when it has ended. Blocking.
///
/// An unprivileged thread cannot raise its priority again, so this one ends with the work.
///
/// # Errors
/// The errors of `work`; `ErrorClass::Unavailable` if the system has no thread.
pub fn run_in_background<T: Send>(
    work: impl FnOnce() -> Result<T, GatewayError> + Send,
) -> Result<T, GatewayError> {
    let span = Span::current();
    let run = || {
        let lowered = getpriority_process(None)
            .and_then(|before| setpriority_process(None, (before + NICENESS).min(MAX_NICENESS)));
        // If the system refuses it, the work takes more of the processor than it should.
        if let Err(error) = lowered {
            tracing::debug!(%error, "The priority of a thread cannot be lowered.");
        }
        span.in_scope(work)
    };
    thread::scope(|scope| {
        let started = thread::Builder::new().name("background".into()).spawn_scoped(scope, run);
        let started = started.map_err(|error| {
            let message = format!("the system has no thread for this: {error}");
            GatewayError::new(ErrorClass::Unavailable(Duration::from_secs(5)), message)
        })?;
        started.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_thread_of_the_work_has_a_lower_priority() {
        let before = getpriority_process(None).unwrap();
        let during = run_in_background(|| Ok(getpriority_process(None).unwrap())).unwrap();
        assert_eq!(during, (before + NICENESS).min(MAX_NICENESS));
        assert_eq!(getpriority_process(None).unwrap(), before);
    }

    #[test]
    fn errors_and_panics_reach_the_caller() {
        let error = GatewayError::new(ErrorClass::Conflict, "no");
        assert_eq!(run_in_background::<()>(|| Err(error.clone())).unwrap_err(), error);
        let panicked = std::panic::catch_unwind(|| run_in_background::<()>(|| panic!("broken")));
        assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"broken"));
    }
}
