//! What a session subscribes to, and which subscription a message belongs to.
use crate::packets::Protocol;
use penstock_config::Source;
use penstock_service::sources::StoredSession;
use std::collections::BTreeSet;

/// The subscriptions of one session: those of a source for one Business Object.
#[derive(Debug, Clone)]
pub(crate) struct Subscriptions {
    /// Their indexes in the settings of the source, and their topic filters.
    filters: Vec<(usize, String)>,
}

impl Subscriptions {
    /// Selects the subscriptions of the source for this Business Object.
    pub(crate) fn select(source: &Source, business_object: &str) -> Self {
        let all = source.subscriptions.iter().enumerate();
        let own = all.filter(|(_, one)| one.business_object == business_object);
        Self { filters: own.map(|(index, one)| (index, one.topic.clone())).collect() }
    }

    /// Returns the index of the first subscription that matches a topic.
    pub(crate) fn find(&self, topic: &str) -> Option<usize> {
        let found = self.filters.iter().find(|(_, filter)| matches_topic(filter, topic));
        found.map(|(index, _)| *index)
    }

    /// Returns the topic filters.
    pub(crate) fn topics(&self) -> BTreeSet<String> {
        self.filters.iter().map(|(_, filter)| filter.clone()).collect()
    }
}

/// Returns whether a topic filter matches a topic (MQTT 5, 4.7).
pub(crate) fn matches_topic(filter: &str, topic: &str) -> bool {
    // A wildcard at the beginning does not match topics of the broker itself, such as `$SYS`.
    if topic.starts_with('$') && filter.starts_with(['+', '#']) {
        return false;
    }
    let mut levels = topic.split('/');
    for wanted in filter.split('/') {
        match (wanted, levels.next()) {
            ("#", _) => return true,
            ("+", Some(_)) => {}
            (wanted, Some(level)) if wanted == level => {}
            _ => return false,
        }
    }
    levels.next().is_none()
}

/// What a connection has to change at the broker.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SubscriptionChanges {
    /// The topic filters to subscribe to.
    pub(crate) subscribe: BTreeSet<String>,
    /// The topic filters to unsubscribe from.
    pub(crate) unsubscribe: BTreeSet<String>,
}

impl SubscriptionChanges {
    /// Compares what is wanted with what an earlier connection has subscribed to, if the broker still has the session.
    ///
    /// With MQTT 5 everything is subscribed to again, and the broker sends retained messages only for what is new to
    /// it. With MQTT 3.1.1 that would repeat all retained messages, so only what is not known to be subscribed is.
    pub(crate) fn plan(
        stored: &StoredSession,
        is_session_present: bool,
        wanted: &BTreeSet<String>,
        protocol: Protocol,
    ) -> Self {
        if !is_session_present {
            return Self { subscribe: wanted.clone(), unsubscribe: BTreeSet::new() };
        }
        let known = stored.topics.union(&stored.pending);
        let unsubscribe = known.filter(|topic| !wanted.contains(*topic)).cloned().collect();
        let subscribe = match protocol {
            Protocol::V5 => wanted.clone(),
            Protocol::V311 => wanted.difference(&stored.list_confirmed()).cloned().collect(),
        };
        Self { subscribe, unsubscribe }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_match_as_the_standard_says() {
        for (filter, topic, expected) in [
            ("plant/+/flow", "plant/P-101/flow", true),
            ("plant/+/flow", "plant/P-101/x/flow", false),
            ("plant/+", "plant", false),
            ("plant/+", "plant/", true),
            ("plant/#", "plant", true),
            ("plant/#", "plant/a/b", true),
            ("plant/#", "plants", false),
            ("#", "a/b", true),
            ("#", "$SYS/uptime", false),
            ("+/uptime", "$SYS/uptime", false),
            ("$SYS/#", "$SYS/uptime", true),
            ("/+", "/x", true),
            ("a", "a/b", false),
            ("A", "a", false),
        ] {
            assert_eq!(matches_topic(filter, topic), expected, "{filter} {topic}");
        }
    }

    fn set(topics: &[&str]) -> BTreeSet<String> {
        topics.iter().map(ToString::to_string).collect()
    }

    fn stored(topics: &[&str], pending: &[&str]) -> StoredSession {
        StoredSession { topics: set(topics), pending: set(pending), removed: set(&[]) }
    }

    #[test]
    fn only_new_topics_are_subscribed_with_an_old_protocol_and_removed_ones_unsubscribed_with_both()
    {
        let stored = stored(&["kept", "removed"], &["unsure"]);
        let wanted = set(&["kept", "new"]);
        let v5 = SubscriptionChanges::plan(&stored, true, &wanted, Protocol::V5);
        let v311 = SubscriptionChanges::plan(&stored, true, &wanted, Protocol::V311);
        assert_eq!(v5.unsubscribe, set(&["removed", "unsure"]));
        assert_eq!(v5.subscribe, wanted);
        assert_eq!(v311.unsubscribe, v5.unsubscribe);
        assert_eq!(v311.subscribe, set(&["new"]));
    }

    #[test]
    fn a_topic_whose_subscription_was_not_confirmed_is_subscribed_again() {
        let stored = stored(&[], &["unsure"]);
        let wanted = set(&["unsure"]);
        let changes = SubscriptionChanges::plan(&stored, true, &wanted, Protocol::V311);
        assert_eq!((changes.subscribe, changes.unsubscribe), (wanted, set(&[])));
    }

    #[test]
    fn a_topic_that_may_have_been_unsubscribed_from_is_subscribed_again() {
        let stored = stored(&["kept", "unsure"], &["unsure"]);
        let wanted = set(&["kept", "unsure"]);
        let changes = SubscriptionChanges::plan(&stored, true, &wanted, Protocol::V311);
        assert_eq!((changes.subscribe, changes.unsubscribe), (set(&["unsure"]), set(&[])));
    }

    #[test]
    fn a_lost_session_is_subscribed_anew() {
        let stored = stored(&["a", "removed"], &[]);
        let changes = SubscriptionChanges::plan(&stored, false, &set(&["a"]), Protocol::V311);
        assert_eq!((changes.subscribe, changes.unsubscribe), (set(&["a"]), set(&[])));
    }
}
