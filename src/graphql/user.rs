//! `authenticatedUser`: the account that sent the query.
use penstock_auth::{Account, Caller};
use serde_json::{Value, json};

/// Returns the members of the type `AuthenticatedUser`.
pub(super) fn caller_to_json(caller: &Caller) -> Value {
    let account = caller.account.as_deref();
    let role = account.map_or(caller.role, |account| account.role);
    json!({
        "id": caller.id(),
        "givenName": account.and_then(|account| account.given_name.as_deref()),
        "familyName": account.and_then(|account| account.family_name.as_deref()),
        "email": account.map(|account| &account.email),
        "organization": account.and_then(|account| account.organization.as_deref()),
        "roles": [format!("{role:?}")],
        "serviceAccount": account.is_some_and(Account::is_service_account),
    })
}
