//! Sessions against a real mosquitto, with a store that tests can break.
mod broker;
mod faults;
mod fixture;
mod limits;
mod load;
mod protocol;
mod proxy;
mod publisher;
mod subscribing;
mod tls;
