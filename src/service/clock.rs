//! The gateway's clock.
use crate::gateway::Gateway;
use penstock_auth::{Authorized, Role};
use penstock_base::error::GatewayError;
use penstock_resources::gateway::ClockStatus;

/// Resets the clock: forgets when it was last known to be right. Returns its state after that.
///
/// # Errors
/// The errors of the check of `by` and of the store.
pub async fn reset_clock(gateway: &Gateway, by: &Authorized) -> Result<ClockStatus, GatewayError> {
    gateway
        .run(by, Role::Admin, |gateway, by| {
            gateway.clock.reset(by)?;
            Ok(gateway.clock.report())
        })
        .await
}
