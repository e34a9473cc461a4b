//! The wiring: the gateway is opened, served, and ended in good order.
use crate::config::Settings;
use crate::fault::Fault;
use crate::gateway::Gateway;
use std::sync::Arc;

/// Serves until SIGTERM or SIGINT. `ready` is told the address once it is bound.
pub async fn serve(
    settings: Arc<Settings>,
    ready: impl FnOnce(std::net::SocketAddr, Gateway) + Send + 'static,
) -> Result<(), Fault> {
    let _ = (settings, ready);
    todo!()
}
