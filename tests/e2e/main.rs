//! End-to-end tests. Each starts the shipped binary in its own folder and uses it over HTTP.
//!
//! `PENSTOCK_TEST_BINARY` names the binary to test; the default is the one that cargo built for the tests.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a panic or a line says what a test found"
)]

mod automatic;
mod backup;
mod backup_by_hand;
mod backup_hostile;
mod backup_link;
mod backup_model;
mod backup_writers;
mod bad_input;
mod changes;
mod clockless;
mod countries;
mod deletions;
mod demo;
mod earlier_version;
mod events;
mod format;
mod full_disk;
mod hostile;
mod https;
mod memory;
mod notify;
mod process;
mod readme;
mod rebuild;
mod rejected;
mod restored;
mod s3;
mod s3_clock;
mod secrets;
mod short_of_memory;
mod sources;
mod webhooks;

use penstock_test_support::prelude::*;

/// Defines the Business Object `Notes`, whose objects have a text.
fn define_notes(client: Client, push_targets: &Value) {
    let config = "type: object\npath: 'Notes:.'\nfields:\n  text: { type: string, path: <https://notes.example/text> }\n";
    let definition = json!({ "name": "Notes", "config": config, "pushTargets": push_targets });
    client.put("/api/v1/business-objects", &definition).expect(201);
}
