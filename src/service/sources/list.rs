//! The sources as clients see them, and the test of a connection.
use super::{ConnectionState, ConnectionTest, NotStored, check_connectable};
use crate::audit::change_event;
use crate::gateway::Gateway;
use penstock_auth::{Authorized, Role};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::time::format_rfc3339;
use penstock_config::{Source, Subscription};
use penstock_model::csv::check_text_field;
use std::time::Duration;

/// A source.
#[derive(Debug, Clone)]
pub struct SourceInfo {
    /// Its name.
    pub name: String,
    /// The URL of its broker.
    pub url: String,
    /// The id of its account; `None` before its first message.
    pub account: Option<String>,
    /// Whether an Admin has disabled its account.
    pub is_revoked: bool,
    /// What it subscribes to.
    pub subscriptions: Vec<Subscription>,
    /// Its connections, one for each Business Object.
    pub connections: Vec<ConnectionInfo>,
    /// What an operator should look at.
    pub warnings: Vec<String>,
}

/// The connection of a source for one Business Object.
#[derive(Debug, Clone)]
pub struct ConnectionInfo {
    /// The Business Object as the settings name it.
    pub business_object: String,
    /// The id of the Business Object; `None` if it is not defined.
    pub business_object_id: Option<String>,
    /// Whether it is connected.
    pub status: ConnectionStatus,
    /// The number of messages that the last minute brought.
    pub messages_per_minute: u64,
    /// What the connection reports.
    pub state: ConnectionState,
}

/// Whether a source is connected for a Business Object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionStatus {
    /// It is connected.
    Connected,
    /// It is not connected. The gateway retries.
    Disconnected,
    /// It stays disconnected, because the Business Object requires a review.
    Off,
}

impl ConnectionStatus {
    /// Returns the name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Disconnected => "disconnected",
            Self::Off => "off",
        }
    }
}

impl SourceInfo {
    fn collect(gateway: &Gateway, name: &str, source: &Source) -> Self {
        let scheme = if source.url.uses_tls { "mqtts" } else { "mqtt" };
        let host = &source.url.host;
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let account = gateway.auth.find_source_account(name);
        let is_revoked = account.as_ref().is_some_and(|account| !account.enabled);
        let states = gateway.sources.list(name).into_iter();
        let connections: Vec<_> = states
            .map(|(business_object, state, messages_per_minute)| {
                ConnectionInfo::new(gateway, business_object, state, messages_per_minute)
            })
            .collect();
        let mut warnings: Vec<String> = connections
            .iter()
            .flat_map(|connection| connection.list_warnings(gateway, name, source))
            .collect();
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
        Self {
            name: name.to_owned(),
            url: format!("{scheme}://{host}:{}", source.url.port),
            account: account.map(|account| account.id.clone()),
            is_revoked,
            subscriptions: source.subscriptions.clone(),
            connections,
            warnings,
        }
    }
}

impl ConnectionInfo {
    fn new(
        gateway: &Gateway,
        business_object: String,
        state: ConnectionState,
        messages_per_minute: u64,
    ) -> Self {
        let is_connected = state.connected_since.is_some();
        let status = match check_connectable(gateway, &business_object) {
            Err(_) if !is_connected => ConnectionStatus::Off,
            _ if is_connected => ConnectionStatus::Connected,
            _ => ConnectionStatus::Disconnected,
        };
        let compiled = gateway.catalogue.get(&business_object);
        Self {
            business_object_id: compiled.map(|compiled| compiled.object.id.clone()),
            business_object,
            status,
            messages_per_minute,
            state,
        }
    }

    fn list_warnings(&self, gateway: &Gateway, name: &str, source: &Source) -> Vec<String> {
        let object = &self.business_object;
        let mut warnings = Vec::new();
        if let Err(NotStored { message, .. }) = check_connectable(gateway, object) {
            warnings.push(format!("the source {name:?} stays off for {object:?}: {message}"));
            return warnings;
        }
        match (gateway.catalogue.get(object), &self.state.error) {
            (_, Some(error)) if self.status == ConnectionStatus::Connected => {
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
        if let Some(at) = self.state.session_lost_at {
            let at = format_rfc3339(at);
            warnings.push(format!(
                "the broker of the source {name:?} lost the session for {object:?}, noticed at {at}; messages may be missing"
            ));
        }
        if let Some(granted) = self.state.shorter_expiry {
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
}

/// Lists all sources, by name.
///
/// # Errors
/// `ErrorClass::Forbidden` if the caller is no User.
pub fn list_sources(gateway: &Gateway, by: &Authorized) -> Result<Vec<SourceInfo>, GatewayError> {
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
) -> Result<SourceInfo, GatewayError> {
    by.require_role(Role::User)?;
    Ok(SourceInfo::collect(gateway, name, require_source(gateway, name)?))
}

/// Returns the settings of a source.
///
/// # Errors
/// `ErrorClass::NotFound`
pub(crate) fn require_source<'g>(
    gateway: &'g Gateway,
    name: &str,
) -> Result<&'g Source, GatewayError> {
    gateway.settings.sources.get(name).ok_or_else(|| {
        GatewayError::new(ErrorClass::NotFound, format!("there is no source {name:?}"))
    })
}

/// Collects all sources, by name.
pub(crate) fn collect_sources(gateway: &Gateway) -> Vec<SourceInfo> {
    let all = gateway.settings.sources.iter();
    all.map(|(name, source)| SourceInfo::collect(gateway, name, source)).collect()
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
) -> Result<ConnectionTest, GatewayError> {
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
