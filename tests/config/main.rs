//! The configuration, from its sources to what the program sees.
mod faults;
mod sources;
mod tls;
