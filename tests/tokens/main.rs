//! Access tokens of client applications, as an authorization server issues them and as attackers forge them.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "a test ends at once where something is wrong"
)]

mod bad_tokens;
mod clients;
mod forge;
mod gateway;
mod id_tokens;
#[expect(dead_code, reason = "the tests of HTTP use the rest")]
#[path = "../gateway/in_process.rs"]
mod in_process;
mod issuer;
mod keys;
mod provider;
#[expect(dead_code, reason = "only the tests of sign-in use all of it")]
#[path = "../oidc/provider.rs"]
mod server;
