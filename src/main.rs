//! Penstock: a semantic data gateway for the edge.
//!
//! `main` knows the command line alone; ARCHITECTURE.md is the map of the rest.

use std::process::ExitCode;

fn main() -> ExitCode {
    penstock::cli::main()
}
