//! The records of API keys. Their JSON must stay readable: data directories of every released version have such
//! records.
use super::key::Key;
use penstock_base::collections;
use penstock_base::error::GatewayError;
use penstock_base::table::{AsJson, Table};
use penstock_resources::role::Role;
use penstock_store::Read;
use serde::{Deserialize, Serialize};

/// The keys, by id.
pub(super) const KEYS: Table<String, AsJson<StoredKey>> = Table::new(collections::API_KEYS);

/// The document of a key.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StoredKey {
    id: String,
    name: String,
    role: Role,
    pub(super) owner: Option<String>,
    /// The only Business Object, or the first of several: a reader that does not know `business_objects` must not take
    /// the key for one without a limit.
    business_object: Option<String>,
    /// All Business Objects, if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    business_objects: Vec<String>,
    created_at: String,
    expires_at: Option<String>,
    pub(super) last_used: Option<String>,
    digest: String,
}

impl From<&Key> for StoredKey {
    fn from(key: &Key) -> Self {
        let key = key.clone();
        let all = key.business_objects.as_deref().unwrap_or_default();
        Self {
            id: key.id,
            name: key.name,
            role: key.role,
            owner: key.owner,
            business_object: all.first().cloned(),
            business_objects: if all.len() > 1 { all.to_vec() } else { Vec::new() },
            created_at: key.created_at,
            expires_at: key.expires_at,
            last_used: key.last_used,
            digest: key.digest,
        }
    }
}

impl From<StoredKey> for Key {
    fn from(stored: StoredKey) -> Self {
        let business_objects = if stored.business_objects.is_empty() {
            stored.business_object.map(|only| [only].into())
        } else {
            Some(stored.business_objects.into())
        };
        Self {
            id: stored.id,
            name: stored.name,
            role: stored.role,
            owner: stored.owner,
            business_objects,
            created_at: stored.created_at,
            expires_at: stored.expires_at,
            last_used: stored.last_used,
            digest: stored.digest,
        }
    }
}

/// Returns the id of the account that owns the key with this id; `None` if there is no such key, or if it belongs to local
/// administration.
pub(crate) fn read_owner(read: &dyn Read, id: &str) -> Result<Option<String>, GatewayError> {
    Ok(KEYS.get_readable(read, id)?.and_then(|key| key.owner))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const BEFORE: &str = r#"{"id":"k","name":"line 4","role":"Contributor","owner":null,"#;
    const AFTER: &str =
        r#""createdAt":"2026-03-01T12:00:00Z","expiresAt":null,"lastUsed":null,"digest":"d"}"#;

    fn key(business_objects: Option<&[&str]>) -> Key {
        Key {
            id: "k".to_owned(),
            name: "line 4".to_owned(),
            role: Role::Contributor,
            owner: None,
            business_objects: business_objects
                .map(|all| all.iter().map(|id| (*id).to_owned()).collect()),
            created_at: "2026-03-01T12:00:00Z".to_owned(),
            expires_at: None,
            last_used: None,
            digest: "d".to_owned(),
        }
    }

    #[test]
    fn a_key_for_at_most_one_business_object_keeps_the_form_of_earlier_versions() {
        for (limit, member) in [
            (None, r#""businessObject":null,"#),
            (Some(&["1"][..]), r#""businessObject":"1","#),
            (Some(&["1", "2"]), r#""businessObject":"1","businessObjects":["1","2"],"#),
        ] {
            let text = [BEFORE, member, AFTER].concat();
            assert_eq!(serde_json::to_string(&StoredKey::from(&key(limit))).unwrap(), text);
            assert_eq!(Key::from(serde_json::from_str::<StoredKey>(&text).unwrap()), key(limit));
        }
    }

    #[test]
    fn a_reader_of_earlier_records_sees_a_limit_for_a_key_with_several_business_objects() {
        let stored = serde_json::to_value(StoredKey::from(&key(Some(&["2", "1"])))).unwrap();
        assert_eq!(stored["businessObject"], json!("2"));
    }
}
