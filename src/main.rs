//! Penstock: a semantic data gateway for the edge.
//!
//! `main` knows the command line alone; ARCHITECTURE.md is the map of the rest.

use std::process::ExitCode;

fn main() -> ExitCode {
    end_on_panic();
    penstock_cli::main()
}

/// A broken invariant ends the process: the journal makes the restart safe. Only damage in the files
/// of the quad index, which its engine answers by panicking, is caught where it is opened.
fn end_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        if !penstock_store::panic_is_caught() {
            std::process::abort();
        }
    }));
}
