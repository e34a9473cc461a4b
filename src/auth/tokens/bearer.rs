//! The bearer of a token: a client application, or a person who delegated the token to one.
use super::token::{CLIENT_ID_CLAIMS, refuse_token};
use crate::AuthError;
use penstock_base::characters::is_deceptive_in_id;
use serde_json::{Map, Value};

/// The maximum length of a `sub` or client id in bytes.
const MAX_NAME_BYTES: usize = 255;

/// The bearer of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Bearer {
    /// A client application that acts for itself (client credentials).
    Client {
        /// `sub`
        subject: String,
        /// `azp`, `appid`, `client_id` or `cid`, if the token has one of them.
        client_id: Option<String>,
    },
    /// A person, represented by a client application.
    Person,
}

impl Bearer {
    /// Determines the bearer from the claims. A token that a person may have delegated counts as a person's. Only a
    /// token that says it is a client's, or that has no sign of a person, gets a service account. The first rule that
    /// applies decides:
    ///
    /// - `scp` (Entra ID, Okta): a person
    /// - `idtyp` (Entra ID): a client if it is `app`; else a person
    /// - `sub` is the client id (RFC 9068, 2.2): a client
    /// - `gty` `client-credentials` (Auth0): a client
    /// - `preferred_username` `service-account-<client id>` (Keycloak): a client
    /// - `oid` (Entra ID): a client if it is equal to `sub` and no claim is of a person; else a person
    /// - `scope`, or a claim of a sign-in or of a person: a person
    /// - none of these: a client
    pub(super) fn from_claims(claims: &Map<String, Value>) -> Result<Self, AuthError> {
        if claims.contains_key("scp") {
            return Ok(Self::Person);
        }
        let Some(subject) = find_name(claims, &["sub"]) else {
            return refuse_token("it has no subject (sub) that can identify an account");
        };
        let client_id = find_name(claims, &CLIENT_ID_CLAIMS);
        if client_id.is_none() && CLIENT_ID_CLAIMS.iter().any(|name| claims.contains_key(*name)) {
            return refuse_token(
                "its client application (azp, appid or client_id) cannot identify an account",
            );
        }
        let is_client = match text_claim(claims, "idtyp") {
            Some(kind) => kind == "app",
            None => is_client_token(claims, subject, client_id),
        };
        if !is_client {
            return Ok(Self::Person);
        }
        let client_id = client_id.map(str::to_owned);
        Ok(Self::Client { subject: subject.to_owned(), client_id })
    }
}

fn is_client_token(claims: &Map<String, Value>, subject: &str, client: Option<&str>) -> bool {
    let is_own_name = |name: &str| {
        client.is_some_and(|client| name.eq_ignore_ascii_case(&format!("service-account-{client}")))
    };
    if client == Some(subject)
        || text_claim(claims, "gty") == Some("client-credentials")
        || text_claim(claims, "preferred_username").is_some_and(is_own_name)
    {
        return true;
    }
    match text_claim(claims, "oid") {
        Some(object) => object == subject && !has_person_claims(claims),
        None => !claims.contains_key("scope") && !has_person_claims(claims),
    }
}

/// Returns whether there are claims of a sign-in or of a person (OpenID Connect Core 1.0, 5.1).
fn has_person_claims(claims: &Map<String, Value>) -> bool {
    const PERSON_CLAIMS: [&str; 16] = [
        "sid",
        "session_state",
        "auth_time",
        "amr",
        "preferred_username",
        "upn",
        "unique_name",
        "given_name",
        "family_name",
        "middle_name",
        "nickname",
        "name",
        "email",
        "email_verified",
        "user_email",
        "phone_number",
    ];
    PERSON_CLAIMS.iter().any(|mark| claims.contains_key(*mark))
}

fn text_claim<'a>(claims: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    claims.get(name).and_then(Value::as_str)
}

/// Returns the first of these claims that can identify an account.
fn find_name<'a>(claims: &'a Map<String, Value>, names: &[&str]) -> Option<&'a str> {
    let present = names.iter().filter_map(|name| text_claim(claims, name));
    let can_name = |name: &&str| {
        !name.is_empty() && name.len() <= MAX_NAME_BYTES && !name.contains(is_deceptive_in_id)
    };
    present.into_iter().find(can_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn bearer_of(claims: &Value) -> Result<Bearer, AuthError> {
        Bearer::from_claims(claims.as_object().unwrap())
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
            ("without a client id", json!({"sub": "s", "roles": ["USER"]})),
            ("without a client id, of Entra ID", json!({"sub": "s", "idtyp": "app"})),
        ];
        for (of_what, claims) in clients {
            assert!(matches!(bearer_of(&claims), Ok(Bearer::Client { .. })), "{of_what}");
        }
    }

    #[test]
    fn tokens_that_a_person_may_have_delegated_are_not_a_clients() {
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
            json!({"sub": "u", "azp": "plant", "email": "ada@example.org", "name": "Ada"}),
            json!({"sub": "u", "azp": "plant", "email": "ada@example.org"}),
            json!({"sub": "u", "azp": "plant", "name": "Ada"}),
            json!({"sub": "u", "azp": "plant", "user_email": "ada@example.org"}),
            json!({"sub": "u", "oid": "u", "azp": "plant", "name": "Ada"}),
            json!({"sub": "u", "scope": "openid"}),
        ];
        for claims in persons {
            let bearer = bearer_of(&claims);
            assert!(!matches!(bearer, Ok(Bearer::Client { .. })), "{claims}: {bearer:?}");
        }
    }

    #[test]
    fn tokens_without_a_usable_client_or_subject_are_refused() {
        for claims in [
            json!({"azp": "plant"}),
            json!({"sub": "", "azp": "plant"}),
            json!({"sub": 7, "azp": "plant"}),
            json!({"sub": "a\nb", "azp": "plant"}),
            json!({"sub": "a\u{202e}b", "azp": "plant"}),
            json!({"sub": "a\u{200b}b", "azp": "plant"}),
            json!({"sub": "a\u{200d}b", "azp": "plant"}),
            json!({"sub": "s", "azp": "a\u{202e}b"}),
            json!({"sub": "s", "azp": ""}),
            json!({"sub": "s", "azp": 7}),
            json!({"sub": "s".repeat(256), "azp": "plant"}),
        ] {
            assert!(matches!(bearer_of(&claims), Err(AuthError::Invalid(_))), "{claims}");
        }
    }
}
