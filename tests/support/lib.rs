//! What the tests share: a gateway in the process of the test ([`TestApp`]) or as a process of its own ([`TestProcess`]),
//! clients, and the servers that a gateway talks to.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::missing_panics_doc,
    clippy::return_self_not_must_use,
    clippy::new_without_default,
    missing_docs,
    reason = "a panic or a line says what a test found; short helpers are named after what they do"
)]

mod answer;
mod app;
pub mod backup;
pub mod bucket;
mod caller;
mod command;
pub mod exports;
pub mod forge;
pub mod issuer;
mod json;
pub mod process;
pub mod provider;
pub mod receiver;
pub mod stub;
mod wait;

pub use answer::Answer;
pub use app::{TestApp, definition, expect_continue, lent, read_rest, s3_settings};
pub use caller::{Caller, Client, Person, connect, control, encode_form, escaped};
pub use caller::{FORM, HTML, JSON, NDJSON, TURTLE};
pub use command::{CommandExt, OutputExt};
pub use json::{JsonExt, TextExt, code_blocks, each};
pub use process::TestProcess;
pub use wait::{TEST_TIMEOUT, until, until_some, wait_for};

/// What most tests use.
pub mod prelude {
    pub use crate::issuer::Issuer;
    pub use crate::process::{
        admin_key, binary, create_key, free_port, penstock, push_and_wait, quads, signal,
    };
    pub use crate::provider::Provider;
    pub use crate::receiver::Receiver;
    pub use crate::{
        Answer, Caller, Client, CommandExt, JsonExt, OutputExt, Person, TEST_TIMEOUT, TestApp,
        TestProcess, TextExt, code_blocks, connect, definition, each, encode_form, escaped,
        expect_continue, lent, read_rest, s3_settings, until, until_some, wait_for,
    };
    pub use crate::{FORM, HTML, JSON, NDJSON, TURTLE};
    pub use penstock_base::Role;
    pub use serde_json::{Value, json};
    pub use std::collections::{BTreeMap, BTreeSet};
    pub use std::path::{Path, PathBuf};
    pub use std::process::{Command, Stdio};
    pub use std::sync::{Arc, Mutex};
    pub use std::time::{Duration, Instant};
}
