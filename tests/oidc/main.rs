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
mod flow;
mod gateway;
mod outages;
mod password;
mod private_ca;
mod second_provider;

use browser::Browser;
use gateway::Gateway;
