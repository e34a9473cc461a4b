//! The sources as clients see them, and the test of a connection.
use super::{ConnectionState, NotStored, check_connectable, require_source};
use crate::audit::change_event;
use crate::gateway::Gateway;
use jiff::{SignedDuration, Timestamp};
use penstock_auth::{Authorized, Role};
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::time::format_rfc3339;
use penstock_config::{Source, Subscription};
use penstock_model::csv::check_text_field;
use penstock_resources::source::{
    self, ConnectionStatus, SourceConnection, SourceSubscription, SourceTest,
};
use std::time::Duration;

/// A connection that lasts this long is contested no more: another client retries within it.
const CONTESTED_TIME: SignedDuration = SignedDuration::from_secs(120);

/// Returns a source as clients see it.
fn show_source(gateway: &Gateway, name: &str, source: &Source) -> source::Source {
    let scheme = if source.url.uses_tls { "mqtts" } else { "mqtt" };
    let host = &source.url.host;
    let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    let account = gateway.auth.find_source_account(name);
    let is_revoked = account.as_ref().is_some_and(|account| !account.enabled);
    let (mut connections, mut warnings) = (Vec::new(), Vec::new());
    for (business_object, state, messages_per_minute) in gateway.sources.list(name) {
        warnings.extend(list_warnings(gateway, name, source, &business_object, &state));
        connections.push(show_connection(gateway, business_object, state, messages_per_minute));
    }
    if gateway.settings.limits.rejected_bytes == 0 {
        warnings.push(format!(
            "invalid messages of the source {name:?} are acknowledged and dropped, because \
             service.limits.rejected.bytes is 0"
        ));
    }
    if is_revoked {
        warnings.push(format!(
            "the account of the source {name:?} is disabled, so its messages wait at the broker"
        ));
    }
    source::Source {
        name: name.to_owned(),
        r#type: "mqtt",
        url: format!("{scheme}://{host}:{}", source.url.port),
        account: account.map(|account| account.id.clone()),
        enabled: !is_revoked,
        subscriptions: source.subscriptions.iter().map(show_subscription).collect(),
        connections,
        warnings: warnings.into_iter().map(|warning| Finding::whole(warning).into()).collect(),
    }
}

fn show_subscription(subscription: &Subscription) -> SourceSubscription {
    SourceSubscription {
        topic: subscription.topic.clone(),
        business_object: subscription.business_object.clone(),
        mode: subscription.mode,
        form: subscription.is_document.then_some("document"),
        fields: subscription.fields.clone(),
    }
}

/// Returns the connection for this Business Object as clients see it.
fn show_connection(
    gateway: &Gateway,
    business_object: String,
    state: ConnectionState,
    messages_per_minute: u64,
) -> SourceConnection {
    let compiled = gateway.catalogue.get(&business_object);
    let (error, error_at) = describe_error(&state, gateway.exporter.hold_reason());
    SourceConnection {
        business_object_id: compiled.map(|compiled| compiled.object.id.clone()),
        state: match check_connectable(gateway, &business_object) {
            _ if state.connected_since.is_some() => ConnectionStatus::Connected,
            Ok(()) => ConnectionStatus::Disconnected,
            Err(_) => ConnectionStatus::Off,
        },
        business_object,
        client_id: state.client_id,
        protocol: state.protocol,
        connected_since: state.connected_since.map(format_rfc3339),
        messages_per_minute,
        received: state.received,
        acknowledged: state.acknowledged,
        dead_letters: state.dead_letters,
        dropped: state.dropped,
        waiting_messages: state.waiting_messages,
        waiting_bytes: state.waiting_bytes,
        last_message: state.last_message_at.map(format_rfc3339),
        error,
        error_at,
    }
}

/// Returns why there is no connection or why messages cannot be stored, and when that happened. `hold` says why no source is
/// read at all, if so.
fn describe_error(
    state: &ConnectionState,
    hold: Option<String>,
) -> (Option<String>, Option<String>) {
    match (hold, &state.error) {
        (Some(reason), _) if state.connected_since.is_none() => (Some(reason), None),
        (_, Some(error)) => (Some(error.message.clone()), Some(format_rfc3339(error.at))),
        (_, None) => (None, None),
    }
}

/// Lists what an operator should look at in the connection of a source for the Business Object `object`.
fn list_warnings(
    gateway: &Gateway,
    name: &str,
    source: &Source,
    object: &str,
    state: &ConnectionState,
) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Err(NotStored { message, .. }) = check_connectable(gateway, object) {
        warnings.push(format!("the source {name:?} stays off for {object:?}: {message}"));
        return warnings;
    }
    match (gateway.catalogue.get(object), &state.error) {
        (_, Some(error)) if state.connected_since.is_some() => {
            let message = &error.message;
            warnings.push(format!(
                "messages of the source {name:?} for {object:?} are not stored, and wait: {message}"
            ));
        }
        (_, Some(error)) => {
            let message = &error.message;
            warnings.push(format!("the source {name:?} is not connected for {object:?}: {message}"));
        }
        (None, None) => warnings.push(format!(
            "the source {name:?} ingests into {object:?}, which is not defined; its messages wait until it is"
        )),
        (Some(_), None) => {}
    }
    if let Some(at) = state.session_lost_at {
        let at = format_rfc3339(at);
        warnings.push(format!(
            "the broker of the source {name:?} lost the session for {object:?}, noticed at {at}; messages may be missing"
        ));
    }
    if let Some(warning) = warn_of_other_client(name, object, state, Timestamp::now()) {
        warnings.push(warning);
    }
    if let Some(granted) = state.shorter_expiry {
        warnings.push(format!(
            "the broker of the source {name:?} keeps the session for {object:?} only {} s without a connection, which is \
             shorter than session-expiry",
            granted.as_secs()
        ));
    }
    if let Some(compiled) = gateway.catalogue.get(object)
        && compiled.mapping.root.key_fields().is_none()
    {
        warnings.push(format!(
            "{object:?}, which the source {name:?} ingests into, has no key; objects without uri become dead letters"
        ));
    }
    let own = source.subscriptions.iter().filter(|one| one.business_object == *object);
    if let Some(compiled) = gateway.catalogue.get(object) {
        for field in own.flat_map(|one| one.fields.keys()) {
            if let Err(why) = check_text_field(&compiled.mapping, field) {
                warnings.push(format!(
                    "the source {name:?} takes the field {field:?} of {object:?} from the topic: {why}"
                ));
            }
        }
    }
    warnings
}

/// Returns the warning that another client takes the connection again and again, also while this gateway has it.
fn warn_of_other_client(
    name: &str,
    object: &str,
    state: &ConnectionState,
    now: Timestamp,
) -> Option<String> {
    let (contested, since) = (state.contested.as_ref()?, state.connected_since?);
    let message = &contested.message;
    (now.duration_since(since) < CONTESTED_TIME).then(|| {
        format!("the source {name:?} lost its last connection for {object:?}, and may lose this one: {message}")
    })
}

/// Lists all sources, by name.
///
/// # Errors
/// `ErrorClass::Forbidden` if the caller is no User.
pub fn list_sources(
    gateway: &Gateway,
    by: &Authorized,
) -> Result<Vec<source::Source>, GatewayError> {
    by.require_role(Role::User)?;
    Ok(collect_sources(gateway))
}

/// Returns one source.
///
/// # Errors
/// `ErrorClass::NotFound`; `ErrorClass::Forbidden` if the caller is no User.
pub fn read_source(
    gateway: &Gateway,
    by: &Authorized,
    name: &str,
) -> Result<source::Source, GatewayError> {
    by.require_role(Role::User)?;
    Ok(show_source(gateway, name, require_source(gateway, name)?))
}

/// Collects all sources, by name.
pub(crate) fn collect_sources(gateway: &Gateway) -> Vec<source::Source> {
    let all = gateway.settings.sources.iter();
    all.map(|(name, source)| show_source(gateway, name, source)).collect()
}

/// Tests the connection of a source, with its settings and a session of its own that the test ends.
///
/// # Errors
/// `ErrorClass::NotFound`; `ErrorClass::Forbidden` if the caller is no Admin; `ErrorClass::Unavailable` before the
/// sources are started.
pub async fn test_source(
    gateway: &Gateway,
    by: &Authorized,
    name: &str,
) -> Result<SourceTest, GatewayError> {
    by.require_role(Role::Admin)?;
    require_source(gateway, name)?;
    let tester = gateway.sources.tester().ok_or_else(|| {
        GatewayError::new(
            ErrorClass::Unavailable(Duration::from_secs(1)),
            "the sources are not started yet; try again",
        )
    })?;
    let result = tester(name.to_owned()).await;
    let event = change_event(by, "source.tested", format!("{name:?}"));
    gateway.auth.audit.record_event(event);
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::ConnectionError;

    #[test]
    fn another_client_with_the_same_id_is_named_also_while_the_source_is_connected() {
        let since = Timestamp::UNIX_EPOCH;
        let contested = Some(ConnectionError::now("another client"));
        let state = ConnectionState {
            contested,
            connected_since: Some(since),
            ..ConnectionState::default()
        };
        let warn = |state: &ConnectionState, seconds| {
            warn_of_other_client(
                "plant",
                "Pumps",
                state,
                since + SignedDuration::from_secs(seconds),
            )
        };
        assert!(warn(&state, 119).unwrap().contains("another client"));
        assert_eq!(warn(&state, 121), None);
        assert_eq!(warn(&ConnectionState { contested: None, ..state }, 0), None);
    }

    #[test]
    fn a_source_that_is_not_read_says_why() {
        let refused = Some(ConnectionError::now("refused"));
        let off = ConnectionState { error: refused, ..ConnectionState::default() };
        let on = ConnectionState { connected_since: Some(Timestamp::UNIX_EPOCH), ..off.clone() };
        let describe = |state: &ConnectionState, hold: Option<&str>| {
            let (error, at) = describe_error(state, hold.map(str::to_owned));
            (error, at.is_some())
        };
        let held = (Some("replaced".to_owned()), false);
        let failed = (Some("refused".to_owned()), true);
        assert_eq!(describe(&ConnectionState::default(), Some("replaced")), held);
        assert_eq!(describe(&off, Some("replaced")), held);
        assert_eq!(describe(&off, None), failed);
        // It is about to be stopped.
        assert_eq!(describe(&on, Some("replaced")), failed);
        assert_eq!(describe(&ConnectionState::default(), None), (None, false));
    }
}
