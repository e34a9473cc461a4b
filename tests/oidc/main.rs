//! Sign-in tested from outside: the binary, a real OpenID provider, and a browser.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test ends at once where something is wrong"
)]

mod attacks;
mod browser;
mod chromium;
mod chromium_admin;
mod claims;
#[expect(dead_code, reason = "the end-to-end tests use the rest")]
#[path = "../gateway/client.rs"]
mod client;
mod flow;
mod gateway;
mod outages;
mod password;
mod private_ca;
mod provider;
mod second_provider;
#[expect(dead_code, reason = "the end-to-end tests use the rest")]
#[path = "../gateway/server.rs"]
mod server;

use browser::Browser;
use gateway::Gateway;
use provider::Provider;
