//! Maps claims to the fields of an account and to its role (specification, 5.4 and 5.5).
//!
//! A claim name with dots can be a path into an object (`realm_access.roles`), unless a claim has the whole name.
use penstock_config::RoleValues;
use penstock_resources::role::Role;
use serde_json::{Map, Value};

/// Returns the text of the first of these claims that is present and not empty.
pub fn find_text(names: &[String], claims: &Map<String, Value>) -> Option<String> {
    let present = names.iter().filter_map(|name| find_claim(name, claims)?.as_str());
    present.map(str::trim).find(|text| !text.is_empty()).map(str::to_owned)
}

/// Returns the highest role that the first present claim maps to. The claim is a list of values or one value.
pub fn map_role(
    values: &RoleValues,
    names: &[String],
    claims: &Map<String, Value>,
) -> Option<Role> {
    match find_present(names, claims)? {
        Value::Array(items) => {
            items.iter().filter_map(|item| role_of_value(values, item.as_str()?)).max()
        }
        Value::String(text) => role_of_value(values, text),
        _ => None,
    }
}

/// The maximum number of values of a claim with groups. Providers send at most 200 in a token.
const MAX_GROUP_CLAIMS: usize = 200;
/// The maximum length of such a value in bytes.
const MAX_GROUP_CLAIM_BYTES: usize = 256;

/// Returns the values of the first of these claims that is present, sorted. The claim is a list of values or one value.
pub fn list_groups(names: &[String], claims: &Map<String, Value>) -> Vec<String> {
    let values = match find_present(names, claims) {
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(text)) => vec![text.as_str()],
        _ => Vec::new(),
    };
    let fits = |value: &&str| (1..=MAX_GROUP_CLAIM_BYTES).contains(&value.len());
    let mut values: Vec<String> =
        values.into_iter().filter(fits).take(MAX_GROUP_CLAIMS).map(str::to_owned).collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// Returns whether one of these claims is present, whatever its value.
pub fn has_claim(names: &[String], claims: &Map<String, Value>) -> bool {
    find_present(names, claims).is_some()
}

/// Returns the first of these claims that is present.
fn find_present<'a>(names: &[String], claims: &'a Map<String, Value>) -> Option<&'a Value> {
    names.iter().find_map(|name| find_claim(name, claims).filter(|claim| !claim.is_null()))
}

/// Returns the claim with this name. If there is none, reads the name as a path: the part before one of its dots is an
/// object, and the rest is a claim inside it.
fn find_claim<'a>(name: &str, claims: &'a Map<String, Value>) -> Option<&'a Value> {
    claims.get(name).or_else(|| {
        name.match_indices('.').find_map(|(dot, _)| {
            let (outer, inner) = name.split_at_checked(dot)?;
            find_claim(inner.get(1..)?, claims.get(outer)?.as_object()?)
        })
    })
}

fn role_of_value(values: &RoleValues, value: &str) -> Option<Role> {
    match value {
        value if value == values.admin => Some(Role::Admin),
        value if value == values.contributor => Some(Role::Contributor),
        value if value == values.user => Some(Role::User),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn claims(value: Value) -> Map<String, Value> {
        let Value::Object(claims) = value else { panic!("{value} is no object") };
        claims
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn the_highest_role_counts() {
        let values = RoleValues { admin: "A".into(), contributor: "C".into(), user: "U".into() };
        let role = |value| map_role(&values, &names(&["roles", "groups"]), &claims(value));
        assert_eq!(role(json!({"roles": ["U", "A", "other"]})), Some(Role::Admin));
        assert_eq!(role(json!({"roles": "C"})), Some(Role::Contributor));
        assert_eq!(role(json!({"groups": ["U"], "roles": null})), Some(Role::User));
        for none in [
            json!({}),
            json!({"roles": ["a"]}),
            json!({"roles": [["A"], 1]}),
            json!({"roles": {"A": 1}}),
        ] {
            assert_eq!(role(none.clone()), None, "{none}");
        }
        // The first claim that is present counts, not the first that maps to a role.
        assert_eq!(role(json!({"roles": [], "groups": ["U"]})), None);
    }

    #[test]
    fn the_groups_are_the_values_of_one_claim() {
        let list = |value| list_groups(&names(&["groups", "realm.groups"]), &claims(value));
        assert_eq!(list(json!({"groups": ["b", "a", "b", 1, ""]})), ["a", "b"]);
        assert_eq!(list(json!({"groups": null, "realm": {"groups": "c"}})), ["c"]);
        // Entra ID leaves the claim out for members of many groups.
        assert_eq!(list(json!({"_claim_names": {"groups": "src1"}})), [""; 0]);
        let many: Vec<String> = (0..1000).map(|n| format!("{n:04}")).collect();
        assert_eq!(list(json!({"groups": many})).len(), MAX_GROUP_CLAIMS);
    }

    #[test]
    fn a_dotted_name_is_a_path_into_objects() {
        let find = |name, value| find_claim(name, &claims(value)).cloned();
        let nested = json!({"resource_access": {"my.app": {"roles": 1}}, "a": {"b": 2}, "a.b": 3});
        assert_eq!(find("resource_access.my.app.roles", nested.clone()), Some(json!(1)));
        assert_eq!(find("a.b", nested.clone()), Some(json!(3)));
        for none in ["a.c", "a.b.c", ".", "a.", "resource_access.my", ""] {
            assert_eq!(find(none, nested.clone()), None, "{none}");
        }
    }

    #[test]
    fn the_first_claim_with_text_counts() {
        let text = |value| find_text(&names(&["user_email", "preferred_username"]), &claims(value));
        let both = json!({"preferred_username": "b", "user_email": "a"});
        assert_eq!(text(both).as_deref(), Some("a"));
        assert_eq!(
            text(json!({"user_email": " ", "preferred_username": "b"})).as_deref(),
            Some("b")
        );
        assert_eq!(text(json!({"user_email": 1})), None);
    }
}
