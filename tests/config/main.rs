//! The configuration, from its sources to the typed settings.
mod errors;
mod security;
mod sources;
mod tls;
