//! Users and groups, as definitions and requests name them: `user:<id or email>` and `group:<name>`.
use crate::characters::is_deceptive;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The maximum length of a name in characters.
const MAX_NAME_CHARACTERS: usize = 254;

/// A user or a group. It need not exist: the name is resolved at each access.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Principal {
    /// The account with this id or email.
    User(String),
    /// The accounts in the group with this name.
    Group(String),
}

impl Principal {
    /// Parses `user:<id or email>` or `group:<name>`.
    ///
    /// # Errors
    /// Says what is wrong with the text, and what is expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let expected = "use user:<id or email> or group:<name>";
        let Some((kind, name)) = text.split_once(':') else {
            return Err(format!("{text:?} is neither a user nor a group; {expected}"));
        };
        if name.trim() != name || name.is_empty() {
            return Err(format!("{text:?} has no name, or white space around it; {expected}"));
        }
        if name.chars().count() > MAX_NAME_CHARACTERS {
            return Err(format!(
                "the name of a {kind} has more than {MAX_NAME_CHARACTERS} characters; {expected}"
            ));
        }
        if let Some(c) = name.chars().find(|c| is_deceptive(*c)) {
            return Err(format!("the character {c:?} is not allowed in the name of a {kind}"));
        }
        match kind {
            "user" => Ok(Self::User(name.to_owned())),
            "group" => Ok(Self::Group(name.to_owned())),
            _ => Err(format!("{text:?} is neither a user nor a group; {expected}")),
        }
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(name) => write!(f, "user:{name}"),
            Self::Group(name) => write!(f, "group:{name}"),
        }
    }
}

impl TryFrom<String> for Principal {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

impl From<Principal> for String {
    fn from(principal: Principal) -> Self {
        principal.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_users_and_groups_are_parsed() {
        let ada = Principal::User("ada@plant.example".to_owned());
        assert_eq!(Principal::parse("user:ada@plant.example"), Ok(ada));
        assert_eq!(Principal::parse("group:a:b"), Ok(Principal::Group("a:b".to_owned())));
        for text in ["", "ada", "user:", "user: ada", "role:Admin", "group:a\u{202e}b"] {
            assert!(Principal::parse(text).is_err(), "{text}");
        }
        for text in ["user:ada", "group:shift 1"] {
            assert_eq!(Principal::parse(text).unwrap().to_string(), text);
        }
    }
}
