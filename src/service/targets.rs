//! The targets of exports: their state, and a test of whether they would accept files.
use crate::audit::change_event;
use crate::gateway::Gateway;
use penstock_auth::{Authorized, Role};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_resources::export::{Target, TargetTest};

/// Lists the targets that the configuration, a Business Object or the queue names, ordered by name.
///
/// # Errors
/// The errors of the store.
pub async fn list_targets(gateway: &Gateway) -> Result<Vec<Target>, GatewayError> {
    gateway.read(|gateway| gateway.exporter.list_targets()).await
}

/// Returns the target with this bucketName.
///
/// # Errors
/// `ErrorClass::NotFound` if [`list_targets`] has none with this name.
pub async fn find_target(gateway: &Gateway, bucket_name: &str) -> Result<Target, GatewayError> {
    let targets = list_targets(gateway).await?;
    targets.into_iter().find(|target| target.name == bucket_name).ok_or_else(|| {
        let detail = format!("there is no target with the bucketName {bucket_name:?}");
        GatewayError::new(ErrorClass::NotFound, detail)
    })
}

/// Tests whether a target would accept files, with its configured credentials. The test writes nothing.
///
/// # Errors
/// `ErrorClass::NotFound` if the bucketName refers to no target.
pub async fn test_target(
    gateway: &Gateway,
    by: &Authorized,
    bucket_name: &str,
) -> Result<TargetTest, GatewayError> {
    by.require_role(Role::Admin)?;
    let result = gateway.exporter.test_target(bucket_name).await?;
    let event = change_event(by, "target.tested", format!("{bucket_name:?}"));
    gateway.auth.audit.record_event(event);
    Ok(result)
}
