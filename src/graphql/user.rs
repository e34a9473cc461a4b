//! `authenticatedUser`: the account that sent the query.
use penstock_auth::Caller;
use penstock_resources::account::Account;
use penstock_service::gateway::Gateway;
use serde_json::{Value, json};

/// Returns the members of the type `AuthenticatedUser`.
pub(super) fn caller_to_json(gateway: &Gateway, caller: &Caller) -> Value {
    if let Some(account) = caller.account.as_deref() {
        return json!(Account::from(account));
    }
    match gateway.auth.keys.find_caller_key(caller) {
        Some(key) => json!(Account::from(&*key)),
        None => json!({
            "id": caller.id(), "roles": [caller.role], "enabled": true, "serviceAccount": false,
        }),
    }
}
