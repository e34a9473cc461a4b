//! The connections of MQTT sources. For each source and Business Object there is one connection with its own session,
//! so that messages which cannot be stored delay only those of the same Business Object.
//!
//! - `run` starts and stops the sessions.
//! - `reconnect` keeps one session: it connects again after each error. `session` is what it needs, `lost` the errors.
//! - `handshake` opens a connection with MQTT 5, or with MQTT 3.1.1 if the broker does not support it. `stream` opens the
//!   TCP or TLS stream below.
//! - `connection` runs one connection: it gathers messages, stores them in batches and acknowledges them.
//! - `subscriptions` decides what a session has to subscribe to, and which subscription a message belongs to.
//! - `reader` reads packets, and bounds the payload of messages while it reads them. `capacity` limits what all sources
//!   hold. `packets` encodes and decodes all other packets.
//! - `message_store` is what a session needs of the gateway.
//!
//! A message is acknowledged once it is durable (MQTT 5, 4.3.2), and messages of a session are acknowledged in the
//! order in which they arrived (4.6). What is not acknowledged when a connection ends is dropped here, and the broker
//! sends it again.

mod capacity;
mod connection;
mod handshake;
mod lost;
mod message_store;
mod packets;
mod reader;
mod reconnect;
mod run;
mod session;
mod stream;
mod subscriptions;
#[cfg(test)]
mod tests;

pub use run::Sources;
