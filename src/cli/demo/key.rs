//! The demo's own API key.
use penstock_auth::keys::NewApiKey;
use penstock_auth::{Authorized, Role};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::files::write_atomically;
use penstock_service::gateway::Gateway;
use std::path::PathBuf;

/// The name of the key, and of the file in the data directory that holds it.
const KEY_NAME: &str = "demo-api-key";

/// Creates a key and writes it into a file that only its owner can read. Revokes the keys of earlier demos, which are
/// no longer needed. Blocking.
pub(super) fn create_key(gateway: &Gateway) -> Result<(String, PathBuf), GatewayError> {
    let by = Authorized::local();
    let keys = &gateway.auth.keys;
    for old in keys.list(&by, None, usize::MAX) {
        if old.owner.is_none() && old.name == KEY_NAME {
            keys.revoke_key(&by, &old.id)?;
        }
    }
    let new = NewApiKey {
        name: KEY_NAME.to_owned(),
        role: Role::Admin,
        expires_at: None,
        business_object: None,
        business_objects: Vec::new(),
    };
    let (_, key) = keys.create_key(&by, new)?;
    let file = gateway.settings.data_dir.join(KEY_NAME);
    write_atomically(&file, format!("{key}\n").as_bytes()).map_err(|error| {
        GatewayError::new(
            ErrorClass::Internal,
            format!("writing {} failed: {error}", file.display()),
        )
    })?;
    Ok((key, file))
}
