//! The threads that parse and evaluate requests.
use std::io;
use std::panic::resume_unwind;
use std::thread::Builder;

/// The size of the stack. The parser, the planner and the evaluator call themselves for each level of nesting, and
/// `syntax` limits the levels. Only pages that are used take memory.
const STACK_BYTES: usize = 64 << 20;

/// Runs `work` on a thread of its own with a large stack, and waits for it. Blocking.
///
/// # Errors
/// If the thread cannot be started.
pub fn run_in_query_thread<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let builder = Builder::new().name("sparql".into()).stack_size(STACK_BYTES);
        let thread = builder.spawn_scoped(scope, work)?;
        thread.join().map_err(|panic| -> io::Error { resume_unwind(panic) })
    })
}

/// Starts `work` on a thread of its own with a large stack, and does not wait for it.
///
/// # Errors
/// If the thread cannot be started.
pub fn spawn_query_thread(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let builder = Builder::new().name("sparql".into()).stack_size(STACK_BYTES);
    builder.spawn(work).map(drop)
}
