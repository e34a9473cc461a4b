//! Sources: their client ids and brokers, and which connections are refused.
use super::broker_url::BrokerUrl;
use super::section::{Build, Scope};
use super::table::{Settings, Source, Subscription};
use super::valid::is_loopback_host;
use penstock_base::topic;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

impl Source {
    /// Returns the names of the Business Objects that it ingests into, each once.
    pub fn business_objects(&self) -> BTreeSet<&str> {
        self.subscriptions.iter().map(|one| one.business_object.as_str()).collect()
    }

    /// Returns the client id of the session for one Business Object, of the source with this name. The last `-` ends the
    /// part that all sessions of the source have in common, so no two of them have the same.
    pub fn session_client_id(
        &self,
        gateway_id: &str,
        source: &str,
        business_object: &str,
    ) -> String {
        let mut id = self.common_client_id(gateway_id, source);
        id.push('-');
        for byte in business_object.bytes() {
            if byte.is_ascii_alphanumeric() {
                id.push(char::from(byte));
            } else {
                // Writing to a string cannot fail.
                let _ = write!(id, "_{byte:02x}");
            }
        }
        id
    }

    /// Returns whether this is the client id of a session of the source with this name, for any Business Object.
    pub fn is_session_client_id(&self, gateway_id: &str, source: &str, client_id: &str) -> bool {
        let parts = client_id.rsplit_once('-');
        parts.is_some_and(|(common, _)| common == self.common_client_id(gateway_id, source))
    }

    /// Returns the part that the client ids of all sessions begin with.
    pub fn common_client_id(&self, gateway_id: &str, source: &str) -> String {
        self.client_id.clone().unwrap_or_else(|| format!("penstock-{gateway_id}-{source}"))
    }
}

impl std::fmt::Debug for Source {
    /// Omits the password and the private key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source")
            .field("url", &self.url)
            .field("subscriptions", &self.subscriptions)
            .finish_non_exhaustive()
    }
}

impl Build for Source {
    type Value = Option<Self>;

    fn build(self, scope: &mut Scope<'_>) -> Option<Self> {
        if self.subscriptions.is_empty() {
            let mut first = scope.below("subscriptions[<n>].");
            let message =
                "it is missing: a source needs a subscription with topic and business-object";
            first.of("0").error("topic", message);
        }
        let BrokerUrl { uses_tls, host, .. } = &self.url;
        if !uses_tls && !is_loopback_host(host) && !self.is_insecure {
            let message = "the password and all messages would go over the network in the clear; use mqtts://, or \
                           set insecure=true beside it";
            scope.error("url", message);
        }
        for key in ["ca-file", "client-certificate", "client-key"] {
            if !uses_tls && scope.find(key).is_some() {
                scope.error(key, "it has no effect without TLS; use mqtts:// in url");
            }
            scope.check_file(key);
        }
        let missing = match (&self.client_certificate, &self.client_key) {
            (Some(_), None) => Some("client-key"),
            (None, Some(_)) => Some("client-certificate"),
            _ => None,
        };
        if let Some(key) = missing {
            scope.error(key, "it is missing: certificate and key belong together");
        }
        if self.password.is_some() && self.username.is_none() {
            let message = "it is missing: MQTT 3.1.1 sends no password without a user name";
            scope.error("username", message);
        }
        Some(self)
    }
}

impl Build for Subscription {
    type Value = Option<Self>;

    /// Checks the levels of topics that the fields are taken from.
    fn build(self, scope: &mut Scope<'_>) -> Option<Self> {
        let filter = &self.topic;
        let Some(levels) = topic::max_levels(filter) else { return Some(self) };
        for (field, text) in &self.fields {
            let last = text.parse::<topic::Template>().map_or(0, |template| template.last_level());
            if last > levels {
                let message = format!("the topic filter {filter:?} has no level {last}");
                scope.of(field).error("fields.<field>", message);
            }
        }
        Some(self)
    }
}

/// Refuses two sources whose sessions would have the same client ids at one broker: each would end the connections of the
/// other, again and again.
pub(super) fn check_client_ids(settings: &Settings, scope: &mut Scope<'_>) {
    let gateway_id = settings.gateway_id.as_deref().unwrap_or_default();
    let mut seen = BTreeMap::new();
    for (name, source) in &settings.sources {
        let BrokerUrl { host, port, .. } = &source.url;
        let key = (host, port, source.common_client_id(gateway_id, name));
        if let Some(other) = seen.insert(key, name) {
            let message = format!(
                "the source {other:?} has the same client id at the same broker; give each source its own"
            );
            scope.of(name).error("service.sources.<source>.client-id", message);
        }
    }
}

#[cfg(test)]
mod tests;
