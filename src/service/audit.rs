//! The audit trail: its list, and the events of changes on behalf of a client.
use crate::gateway::Gateway;
use penstock_auth::audit::{Event, Filter};
use penstock_auth::{Authorized, Caller, Role};
use penstock_base::error::GatewayError;
use penstock_resources::audit::AuditEvent;

/// Lists at most `limit` events of the audit trail with numbers below `before`, newest first. `filter.account` is the
/// id of an account, or the email of a built-in one; the list includes the events that its API keys caused.
///
/// # Errors
/// `ErrorClass::Forbidden` for others than Admins.
pub async fn list_events(
    gateway: &Gateway,
    by: &Authorized,
    mut filter: Filter,
    before: Option<u64>,
    limit: usize,
) -> Result<Vec<AuditEvent>, GatewayError> {
    gateway
        .run(by, Role::Admin, move |gateway, _| {
            let auth = &gateway.auth;
            if let Some(account) = &mut filter.account {
                if let Some(known) = auth.accounts.find_by_id_or_email(account) {
                    account.clone_from(&known.id);
                }
                filter.keys = auth.keys.list_ids_of(account);
            }
            let records = auth.audit.list(&filter, before, limit)?;
            Ok(records.into_iter().map(AuditEvent::from).collect())
        })
        .await
}

/// Builds the event of a change by this caller.
pub fn change_event(caller: &Caller, what: &'static str, detail: String) -> Event {
    let by = Some(caller.actor_id().to_owned());
    Event { what, account: None, by, from: caller.from, detail }
}
