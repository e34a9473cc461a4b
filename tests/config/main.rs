//! The configuration, from its sources to what the program sees.
mod faults;
mod security;
mod sources;
mod tls;
