//! Penstock: a semantic data gateway for the edge.
//!
//! `main` only calls the command line. ARCHITECTURE.md is the map of the rest.

use std::process::ExitCode;

fn main() -> ExitCode {
    abort_on_panic();
    penstock_cli::main()
}

/// Ends the process on a panic. A panic means a broken invariant, and the journal makes the restart safe. Only panics
/// that are caught do not end it: those of the quad index's engine, which panics when its files are damaged, those of the
/// evaluation of a SPARQL request, whose changes are discarded, and that of a stack for which there is no memory.
fn abort_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        if !penstock_store::panic_is_caught() && !penstock_base::unwind::panic_is_caught() {
            std::process::abort();
        }
    }));
}
