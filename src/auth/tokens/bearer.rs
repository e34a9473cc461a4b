//! Who a token speaks for: a client application, or a person who delegated it.
use super::token::refuse;
use crate::auth::Refusal;
use serde_json::{Map, Value};

/// The longest `sub` or client id that is kept.
const LONGEST_NAME: usize = 255;

/// Who a token speaks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Bearer {
    /// A client application by itself: client credentials.
    Client {
        /// `sub`
        subject: String,
        /// `azp`, `appid`, `client_id` or `cid`.
        client_id: String,
    },
    /// A person, through a client application.
    Person,
}

impl Bearer {
    /// Reads it off the claims. What a person may have delegated is a person's: a service account is made
    /// only for what says that it is a client's, or at least nothing else.
    ///
    /// | claim | who |
    /// |---|---|
    /// | `scp` (Entra ID, Okta) | a person |
    /// | `idtyp` (Entra ID) | `app`: a client; else a person |
    /// | `sub` is the client id (RFC 9068, 2.2) | a client |
    /// | `gty` `client-credentials` (Auth0) | a client |
    /// | `preferred_username` `service-account-<client id>` (Keycloak) | a client |
    /// | `oid` (Entra ID) | `sub`: a client; else a person |
    /// | `scope`, or what tells of a sign-in | a person |
    /// | none of these | a client |
    pub(super) fn of(claims: &Map<String, Value>) -> Result<Self, Refusal> {
        if claims.contains_key("scp") {
            return Ok(Self::Person);
        }
        let Some(subject) = name(claims, &["sub"]) else {
            return refuse("it has no subject (sub) that an account can be known by");
        };
        let client_id = name(claims, &["azp", "appid", "client_id", "cid"]);
        let is_client = match (text(claims, "idtyp"), client_id) {
            (Some(kind), _) if kind != "app" => false,
            (Some(_), _) => true,
            (None, None) => false,
            (None, Some(client)) => is_of_client(claims, subject, client),
        };
        match client_id {
            Some(client) if is_client => {
                Ok(Self::Client { subject: subject.to_owned(), client_id: client.to_owned() })
            }
            None if is_client || !tells_of_sign_in(claims) => {
                refuse("it names no client application (azp, appid or client_id)")
            }
            _ => Ok(Self::Person),
        }
    }
}

fn is_of_client(claims: &Map<String, Value>, subject: &str, client: &str) -> bool {
    let own_name = format!("service-account-{client}");
    if subject == client
        || text(claims, "gty") == Some("client-credentials")
        || text(claims, "preferred_username")
            .is_some_and(|name| name.eq_ignore_ascii_case(&own_name))
    {
        return true;
    }
    match text(claims, "oid") {
        Some(object) => object == subject,
        None => !claims.contains_key("scope") && !tells_of_sign_in(claims),
    }
}

/// Claims of somebody who signed in.
fn tells_of_sign_in(claims: &Map<String, Value>) -> bool {
    const MARKS: [&str; 9] = [
        "sid",
        "session_state",
        "auth_time",
        "amr",
        "preferred_username",
        "upn",
        "unique_name",
        "given_name",
        "family_name",
    ];
    MARKS.iter().any(|mark| claims.contains_key(*mark))
}

fn text<'a>(claims: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    claims.get(name).and_then(Value::as_str)
}

/// The first of these claims that can name an account.
fn name<'a>(claims: &'a Map<String, Value>, names: &[&str]) -> Option<&'a str> {
    let present = names.iter().filter_map(|name| text(claims, name));
    let can_name = |name: &&str| {
        !name.is_empty() && name.len() <= LONGEST_NAME && !name.chars().any(char::is_control)
    };
    present.into_iter().find(can_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(claims: &Value) -> Result<Bearer, Refusal> {
        Bearer::of(claims.as_object().unwrap())
    }

    #[test]
    fn tokens_of_clients() {
        let clients = [
            (
                "RFC 9068",
                json!({"sub": "plant", "client_id": "plant", "scope": "api://x/.default"}),
            ),
            ("Entra ID v1", json!({"sub": "o", "oid": "o", "appid": "plant", "roles": ["USER"]})),
            ("Entra ID v2", json!({"sub": "o", "oid": "o", "azp": "plant", "idtyp": "app"})),
            (
                "Auth0",
                json!({"sub": "plant@clients", "azp": "plant", "gty": "client-credentials", "scope": "a"}),
            ),
            (
                "Keycloak",
                json!({"sub": "u", "azp": "Plant", "scope": "email", "preferred_username": "service-account-plant"}),
            ),
            ("plain", json!({"sub": "s", "client_id": "plant"})),
        ];
        for (of_what, claims) in clients {
            assert!(matches!(of(&claims), Ok(Bearer::Client { .. })), "{of_what}");
        }
    }

    #[test]
    fn what_a_person_may_have_delegated_is_no_clients() {
        let persons = [
            json!({"sub": "plant", "azp": "plant", "scp": "access"}),
            json!({"sub": "plant", "azp": "plant", "scp": ""}),
            json!({"sub": "o", "oid": "o", "azp": "plant", "idtyp": "user"}),
            json!({"sub": "s", "oid": "o", "appid": "plant"}),
            json!({"sub": "u", "azp": "plant", "scope": "openid"}),
            json!({"sub": "u", "azp": "plant", "preferred_username": "service-account-other", "scope": "a"}),
            json!({"sub": "u", "azp": "plant", "preferred_username": "ada"}),
            json!({"sub": "u", "azp": "plant", "sid": "x"}),
            json!({"sub": "u", "idtyp": "user"}),
            json!({"sub": "u", "upn": "ada@example.org"}),
        ];
        for claims in persons {
            let bearer = of(&claims);
            assert!(!matches!(bearer, Ok(Bearer::Client { .. })), "{claims}: {bearer:?}");
        }
    }

    #[test]
    fn what_names_no_client_or_subject_is_refused() {
        for claims in [
            json!({"azp": "plant"}),
            json!({"sub": "", "azp": "plant"}),
            json!({"sub": 7, "azp": "plant"}),
            json!({"sub": "a\nb", "azp": "plant"}),
            json!({"sub": "s"}),
            json!({"sub": "s", "idtyp": "app"}),
            json!({"sub": "s".repeat(256), "azp": "plant"}),
        ] {
            assert!(matches!(of(&claims), Err(Refusal::Invalid(_))), "{claims}");
        }
    }
}
