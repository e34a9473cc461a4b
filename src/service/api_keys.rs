//! The use cases of API keys. Admins manage all keys, other clients those of their account.
use crate::gateway::Gateway;
use penstock_auth::keys::NewApiKey;
use penstock_auth::{Authorized, Caller, Role};
use penstock_base::error::GatewayError;
use penstock_resources::api_key::ApiKey;

/// Lists at most `limit` keys that the caller may manage, after the id `after`, ordered by id, which is the order of
/// their creation.
pub fn list_keys(gateway: &Gateway, by: &Caller, after: Option<&str>, limit: usize) -> Vec<ApiKey> {
    gateway.auth.keys.list(by, after, limit).iter().map(|key| ApiKey::from(&**key)).collect()
}

/// Returns the key with this id, if the caller may manage it.
///
/// # Errors
/// `ErrorClass::NotFound`.
pub fn find_key(gateway: &Gateway, by: &Caller, id: &str) -> Result<ApiKey, GatewayError> {
    Ok(ApiKey::from(&*gateway.auth.keys.require_key(by, id)?))
}

/// Creates an API key of the caller. Returns it with its secret, which is not stored.
///
/// # Errors
/// The errors of [`NewApiKey::resolve`] and [`penstock_auth::keys::ApiKeys::create_key`];
/// `ErrorClass::InsufficientStorage` when less than the reserve is free on the disk.
pub async fn create_key(
    gateway: &Gateway,
    by: &Authorized,
    new: NewApiKey,
) -> Result<(ApiKey, String), GatewayError> {
    let new =
        new.resolve(|name| gateway.catalogue.get(name).map(|found| found.object.id.clone()))?;
    gateway.disk.check_reserve()?;
    gateway
        .run(by, Role::User, move |gateway, by| {
            let (key, secret) = gateway.auth.keys.create_key(by, new)?;
            Ok((ApiKey::from(&*key), secret))
        })
        .await
}

/// Revokes an API key that the caller may manage.
///
/// # Errors
/// `ErrorClass::NotFound`.
pub async fn revoke_key(gateway: &Gateway, by: &Authorized, id: &str) -> Result<(), GatewayError> {
    let id = id.to_owned();
    gateway.run(by, Role::User, move |gateway, by| gateway.auth.keys.revoke_key(by, &id)).await
}
