//! The configuration, from its sources to the typed settings.
mod faults;
mod security;
mod sources;
mod tls;
