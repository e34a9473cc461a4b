//! Access tokens of client applications, as an authorization server issues them and as attackers forge them.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test ends at once where something is wrong"
)]

mod bad_tokens;
mod clients;
mod gateway;
mod id_tokens;
mod keys;
mod provider;
