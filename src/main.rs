//! Penstock: a semantic data gateway for the edge.
//!
//! `main` only calls the command line. ARCHITECTURE.md is the map of the rest.

use std::process::ExitCode;

fn main() -> ExitCode {
    abort_on_panic();
    penstock_cli::main()
}

/// Ends the process on a panic. A panic means a broken invariant, and the journal makes the restart safe. Only panics
/// of the quad index's engine do not end it: the engine panics when its files are damaged, and the store catches that.
fn abort_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        if !penstock_store::panic_is_caught() {
            std::process::abort();
        }
    }));
}
