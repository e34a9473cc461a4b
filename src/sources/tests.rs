//! Sessions against a real mosquitto, with a store that tests can break.
mod broker;
mod faults;
mod fixture;
mod limits;
mod load;
mod protocol;
mod proxy;
mod publisher;
mod scripted;
mod subscribing;
mod tls;

pub(crate) use fixture::Setup;
pub(crate) use tls::write_authority;
