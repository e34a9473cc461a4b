//! Access tokens of machines, as an authorization server issues them and as others forge them.
mod bad_tokens;
mod clients;
mod forge;
mod gateway;
mod issuer;
mod keys;
