//! The members of an object that two exports have with other values, shortened for people.
use super::objects::ExportObject;
use serde_json::Value;

/// The maximum number of members that are listed for one object.
const MAX_LISTED_MEMBERS: usize = 50;
/// The maximum number of characters of one value that are kept.
const MAX_VALUE_CHARS: usize = 300;
/// The number of characters before the first difference that are kept of a long value.
const CONTEXT_CHARS: usize = 40;

/// An object with other values than before.
#[derive(Debug, PartialEq, Eq)]
pub struct ChangedObject {
    /// Its URI.
    pub uri: String,
    /// The first members that differ.
    pub members: Vec<ChangedMember>,
    /// The number of members that differ and are not listed.
    pub more_members: usize,
}

/// A member with another value than before. Long texts are shortened around the first difference.
#[derive(Debug, PartialEq, Eq)]
pub struct ChangedMember {
    /// Its name.
    pub name: String,
    /// The value before, if there was one.
    pub before: Option<String>,
    /// The value now, if there is one.
    pub now: Option<String>,
}

impl ChangedObject {
    pub(super) fn new(before: &ExportObject, now: &ExportObject) -> Self {
        let gone = before.members.keys().filter(|name| !now.members.contains_key(*name));
        let names = now.members.keys().chain(gone);
        let mut changed = names.filter(|name| before.members.get(*name) != now.members.get(*name));
        let members = changed
            .by_ref()
            .take(MAX_LISTED_MEMBERS)
            .map(|name| ChangedMember::new(name, before.members.get(name), now.members.get(name)))
            .collect();
        Self { uri: now.uri.clone(), members, more_members: changed.count() }
    }
}

impl ChangedMember {
    fn new(name: &str, before: Option<&Value>, now: Option<&Value>) -> Self {
        let (before, now) = (before.map(format_value), now.map(format_value));
        let start = match (&before, &now) {
            (Some(before), Some(now)) => {
                let same = before.chars().zip(now.chars()).take_while(|(one, other)| one == other);
                same.count().saturating_sub(CONTEXT_CHARS)
            }
            _ => 0,
        };
        Self {
            name: shorten(name, 0),
            before: before.map(|text| shorten(&text, start)),
            now: now.map(|text| shorten(&text, start)),
        }
    }
}

/// Formats a value with all its parts, so that a difference inside it is visible.
fn format_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Shortens a long text to the characters from `start`.
fn shorten(text: &str, start: usize) -> String {
    if text.chars().nth(MAX_VALUE_CHARS).is_none() {
        return text.to_owned();
    }
    let mut rest = text.chars().skip(start);
    let shown: String = rest.by_ref().take(MAX_VALUE_CHARS).collect();
    let (left, right) = (if start > 0 { "…" } else { "" }, rest.next().map_or("", |_| "…"));
    format!("{left}{shown}{right}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(members: &Value) -> ExportObject {
        let members = members.as_object().unwrap().clone();
        ExportObject { uri: "urn:a".to_owned(), members }
    }

    #[test]
    fn only_members_with_other_values_are_listed() {
        let before = object(&json!({"same": 1, "flow": 1.5, "gone": "x"}));
        let now = object(&json!({"same": 1, "flow": 2, "new": ["y"]}));
        let changed = ChangedObject::new(&before, &now);
        let mut members: Vec<_> = changed
            .members
            .iter()
            .map(|one| (one.name.as_str(), one.before.as_deref(), one.now.as_deref()))
            .collect();
        members.sort_unstable();
        assert_eq!(
            members,
            [
                ("flow", Some("1.5"), Some("2")),
                ("gone", Some("x"), None),
                ("new", None, Some("[\"y\"]")),
            ]
        );
        assert_eq!(changed.more_members, 0);
    }

    #[test]
    fn long_values_are_shortened_around_the_first_difference() {
        let text = |middle: &str| format!("{}{middle}{}", "ä".repeat(1000), "b".repeat(1000));
        let changed = ChangedObject::new(
            &object(&json!({"text": text("old")})),
            &object(&json!({"text": text("new")})),
        );
        let expected = |middle: &str| {
            let rest = MAX_VALUE_CHARS - CONTEXT_CHARS - middle.len();
            Some(format!("…{}{middle}{}…", "ä".repeat(CONTEXT_CHARS), "b".repeat(rest)))
        };
        let [member] = changed.members.as_slice() else { panic!("{changed:?}") };
        assert_eq!((&member.before, &member.now), (&expected("old"), &expected("new")));
    }

    #[test]
    fn a_bounded_number_of_members_is_listed() {
        let many = (0..MAX_LISTED_MEMBERS + 7).map(|at| (format!("field{at}"), json!(at)));
        let now = ExportObject { uri: "urn:a".to_owned(), members: many.collect() };
        let changed = ChangedObject::new(&object(&json!({})), &now);
        assert_eq!((changed.members.len(), changed.more_members), (MAX_LISTED_MEMBERS, 7));
    }
}
