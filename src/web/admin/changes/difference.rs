//! The difference of a change, field by field.
use super::super::object::link::object_link;
use super::super::words;
use crate::admin::frame::Frame;
use penstock_base::json::{self, Json};
use penstock_model::changes::DifferenceItem;
use penstock_model::mapping::Field;
use penstock_resources::ingestion::IngestedStatus;
use penstock_service::objects::URI;
use serde_json::value::RawValue;
use std::collections::{HashMap, HashSet};

/// The maximum number of shown fields of an object: of changed ones, and of unchanged ones.
const MAX_FIELDS: usize = 200;
/// The maximum number of quads of an object that are shown.
const MAX_QUADS: usize = 200;

/// An object that a change creates, changes or removes.
pub(in crate::admin) struct ChangedObject {
    /// Its index in the request; `None` for nested objects.
    pub(in crate::admin) index: Option<usize>,
    pub(in crate::admin) uri: String,
    /// Its label; the URI without one.
    pub(in crate::admin) label: String,
    /// The address of its page, if it exists.
    pub(in crate::admin) link: Option<String>,
    pub(in crate::admin) status: &'static str,
    pub(in crate::admin) class: &'static str,
    /// Whether the view shows it before and after, so that both are beside each other.
    pub(in crate::admin) has_both: bool,
    pub(in crate::admin) changed: Vec<ChangedField>,
    /// The fields that stay as they are: name and value.
    pub(in crate::admin) unchanged: Vec<(String, String)>,
    /// How many fields are not shown.
    pub(in crate::admin) omitted: usize,
    /// Whether it is removed because nothing refers to it any more.
    pub(in crate::admin) is_orphaned: bool,
    /// Its quads: a sign and a line of N-Quads.
    pub(in crate::admin) quads: Vec<(char, String)>,
    /// How many quads are not shown.
    pub(in crate::admin) omitted_quads: usize,
}

/// A field that a change changes. A value is empty where there is none.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::admin) struct ChangedField {
    pub(in crate::admin) name: String,
    pub(in crate::admin) before: String,
    pub(in crate::admin) after: String,
}

impl ChangedObject {
    /// Converts an object of a difference. `label` is the field with the labels, and `is_published` says whether the
    /// difference is what was stored.
    pub(in crate::admin) fn from_item(
        item: DifferenceItem,
        label: Option<&Field>,
        is_published: bool,
        nesting: usize,
        frame: &Frame,
    ) -> Self {
        let parse = |view: Option<&RawValue>| {
            json::parse(view?.get().as_bytes(), nesting.saturating_add(2)).ok()
        };
        let before = parse(item.before.as_deref());
        let after = parse(item.after.as_deref());
        let mut fields = Fields::default();
        fields.compare(&[], before.as_ref(), after.as_ref());
        let named = |view: &Option<Json>| match label?.value_in(view.as_ref()?)? {
            Json::String(text) => Some(words::shorten_text(text)),
            _ => None,
        };
        let is_there = match item.status {
            IngestedStatus::Created => is_published,
            IngestedStatus::Deleted => !is_published,
            _ => true,
        };
        let (status, class) = describe_status(item.status);
        let removed = item.removed.into_iter().map(|quad| ('−', quad));
        let mut quads: Vec<_> =
            removed.chain(item.added.into_iter().map(|quad| ('+', quad))).collect();
        let omitted_quads = quads.len().saturating_sub(MAX_QUADS);
        quads.truncate(MAX_QUADS);
        let omitted = fields.changed.len().saturating_sub(MAX_FIELDS)
            + fields.unchanged.len().saturating_sub(MAX_FIELDS);
        fields.changed.truncate(MAX_FIELDS);
        fields.unchanged.truncate(MAX_FIELDS);
        Self {
            label: named(&after).or_else(|| named(&before)).unwrap_or_else(|| item.uri.clone()),
            index: item.index,
            link: is_there.then(|| object_link(frame, &item.uri)),
            uri: item.uri,
            status,
            class,
            has_both: before.is_some() && after.is_some(),
            changed: fields.changed,
            unchanged: fields.unchanged,
            omitted,
            is_orphaned: item.orphaned,
            quads,
            omitted_quads,
        }
    }
}

fn describe_status(status: IngestedStatus) -> (&'static str, &'static str) {
    match status {
        IngestedStatus::Created => ("new", "good"),
        IngestedStatus::Deleted => ("removed", "bad"),
        IngestedStatus::Updated => ("changed", "warn"),
        IngestedStatus::Unchanged | IngestedStatus::Absent => ("not changed", ""),
    }
}

/// Returns the fields that differ between two views of an object.
pub(in crate::admin) fn list_changed_fields(before: &Json, after: &Json) -> Vec<ChangedField> {
    let mut fields = Fields::default();
    fields.compare(&[], Some(before), Some(after));
    fields.changed.truncate(MAX_FIELDS);
    fields.changed
}

/// Collects the fields of an object before and after a change.
#[derive(Default)]
struct Fields {
    changed: Vec<ChangedField>,
    unchanged: Vec<(String, String)>,
}

impl Fields {
    /// Compares two values. `path` has the names that lead to them.
    fn compare(&mut self, path: &[String], before: Option<&Json>, after: Option<&Json>) {
        let is_object = |value: Option<&Json>| value.is_none_or(|it| matches!(it, Json::Object(_)));
        let is_list = |value: Option<&Json>| value.is_none_or(is_list_of_objects);
        if before.is_none() && after.is_none() {
            return;
        }
        if is_object(before) && is_object(after) {
            self.compare_objects(path, before, after);
        } else if is_list(before) && is_list(after) {
            self.compare_lists(path, before, after);
        } else {
            self.add(path, before, after);
        }
    }

    fn compare_objects(&mut self, path: &[String], before: Option<&Json>, after: Option<&Json>) {
        let uris = [before, after].map(|value| value?.member(URI));
        let names = merge_names(before, after);
        let members = [before, after].map(index_members);
        // The URI of the whole object is in its heading. That of a nested one says more than its fields if it is
        // another object, or has no other fields.
        let is_other = uris[0] != uris[1] && before.is_some() && after.is_some();
        if !path.is_empty() && (is_other || names.iter().all(|name| *name == URI)) {
            self.add(path, uris[0], uris[1]);
        }
        for name in names.into_iter().filter(|name| *name != URI) {
            let [before, after] = members.each_ref().map(|members| members.get(name).copied());
            self.compare(&[path, &[name.to_owned()]].concat(), before, after);
        }
    }

    /// Compares lists of objects: those with the same URI, or else at the same position. Only ordered arrays can have another
    /// order, because views sort the others.
    fn compare_lists(&mut self, path: &[String], before: Option<&Json>, after: Option<&Json>) {
        let Some((last, parents)) = path.split_last() else { return };
        let [before, after] = [before, after].map(list_elements);
        let key = |(at, element): (usize, &Json)| match element.member(URI) {
            Some(Json::String(uri)) => uri.clone(),
            _ => at.to_string(),
        };
        let mut old: HashMap<String, (usize, &Json)> = HashMap::new();
        for (at, element) in before.iter().enumerate() {
            old.insert(key((at, element)), (at, element));
        }
        let name_element =
            |at: usize, note: &str| [parents, &[format!("{last} {}{note}", at + 1)]].concat();
        for (at, element) in after.iter().enumerate() {
            let known = old.remove(&key((at, element))).map(|(_, element)| element);
            let note = if known.is_some() { "" } else { " (new)" };
            self.compare(&name_element(at, note), known, Some(element));
        }
        let mut removed: Vec<_> = old.into_values().collect();
        removed.sort_by_key(|(at, _)| *at);
        for (at, element) in removed {
            self.compare(&name_element(at, " (removed)"), Some(element), None);
        }
        let (before, after) = (list_shared_uris(before, after), list_shared_uris(after, before));
        if before != after {
            let name = format!("{} (order)", path.join(" › "));
            let [before, after] = [before, after].map(|uris| uris.join("\n"));
            self.changed.push(ChangedField { name, before, after });
        }
    }

    fn add(&mut self, path: &[String], before: Option<&Json>, after: Option<&Json>) {
        let name = path.join(" › ");
        let write_both = |write: fn(&Json) -> String| {
            [before, after].map(|value| value.map(write).unwrap_or_default())
        };
        let [mut old, mut new] = write_both(show_value);
        if old == new && !is_same(before, after) {
            // A number and its text, for example, look the same without quotation marks.
            [old, new] = write_both(Json::to_string);
        }
        if old != new {
            self.changed.push(ChangedField { name, before: old, after: new });
        } else if !new.is_empty() {
            self.unchanged.push((name, new));
        }
    }
}

/// Returns the names of the members of both objects: in the order of the second one, then those of the first one only.
fn merge_names<'j>(before: Option<&'j Json>, after: Option<&'j Json>) -> Vec<&'j str> {
    let names = |value: Option<&'j Json>| match value {
        Some(Json::Object(members)) => members.iter().map(|(name, _)| name.as_str()).collect(),
        _ => Vec::new(),
    };
    let mut merged: Vec<&str> = names(after);
    let known: HashSet<&str> = merged.iter().copied().collect();
    merged.extend(names(before).into_iter().filter(|name| !known.contains(name)));
    merged
}

fn index_members(value: Option<&Json>) -> HashMap<&str, &Json> {
    let Some(Json::Object(members)) = value else { return HashMap::new() };
    members.iter().map(|(name, value)| (name.as_str(), value)).collect()
}

/// Returns whether a value is a list of objects. An empty list is one too, so that it compares with those.
fn is_list_of_objects(value: &Json) -> bool {
    matches!(value, Json::Array(elements) if elements.iter().all(|one| matches!(one, Json::Object(_))))
}

fn list_elements(value: Option<&Json>) -> &[Json] {
    match value {
        Some(Json::Array(elements)) => elements,
        _ => &[],
    }
}

/// Returns whether two values are equal. A field without a value may be absent, or an empty list.
fn is_same(one: Option<&Json>, other: Option<&Json>) -> bool {
    let is_none = |value: Option<&Json>| {
        value.is_none_or(|value| matches!(value, Json::Array(elements) if elements.is_empty()))
    };
    one == other || is_none(one) && is_none(other)
}

fn uri_of(element: &Json) -> Option<&str> {
    match element.member(URI)? {
        Json::String(uri) => Some(uri),
        _ => None,
    }
}

/// Returns the URIs of the objects of a list that another one has too, in the order of the list.
fn list_shared_uris<'j>(elements: &'j [Json], others: &[Json]) -> Vec<&'j str> {
    let known: HashSet<&str> = others.iter().filter_map(uri_of).collect();
    elements.iter().filter_map(uri_of).filter(|uri| known.contains(uri)).collect()
}

/// Returns a value as a person reads it: each element of a list on its own line.
fn show_value(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Array(elements) => elements.iter().map(show_value).collect::<Vec<_>>().join("\n"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(before: &str, after: &str) -> Fields {
        let parse = |text: &str| json::parse(text.as_bytes(), 20).ok();
        let mut fields = Fields::default();
        fields.compare(&[], parse(before).as_ref(), parse(after).as_ref());
        fields
    }

    fn list_changed(fields: &Fields) -> Vec<(&str, &str, &str)> {
        fields
            .changed
            .iter()
            .map(|field| (field.name.as_str(), field.before.as_str(), field.after.as_str()))
            .collect()
    }

    #[test]
    fn only_fields_that_change_are_changed() {
        let found = compare(
            r#"{"uri": "u:1", "name": "north", "flow": 1.50, "tags": ["a"], "old": 1, "at": {"uri": "u:2", "x": 1}}"#,
            r#"{"uri": "u:1", "name": "north", "flow": 2.50, "tags": ["a", "b"], "at": {"uri": "u:3", "x": 1}}"#,
        );
        assert_eq!(
            list_changed(&found),
            [
                ("flow", "1.50", "2.50"),
                ("tags", "a", "a\nb"),
                ("at", "u:2", "u:3"),
                ("old", "1", "")
            ]
        );
        let names: Vec<_> = found.unchanged.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["name", "at › x"]);
    }

    #[test]
    fn nested_objects_are_compared_by_their_uris() {
        let found = compare(
            r#"{"parts": [{"uri": "p:1", "label": "seal"}, {"uri": "p:2", "label": "shaft"}]}"#,
            r#"{"parts": [{"uri": "p:2", "label": "long shaft"}, {"uri": "p:3", "label": "key"}]}"#,
        );
        assert_eq!(
            list_changed(&found),
            [
                ("parts 1 › label", "shaft", "long shaft"),
                ("parts 2 (new) › label", "", "key"),
                ("parts 1 (removed) › label", "seal", ""),
            ]
        );
        let (none, some) = (r#"{"parts": []}"#, r#"{"parts": [{"uri": "p:1", "label": "seal"}]}"#);
        assert_eq!(list_changed(&compare(none, some)), [("parts 1 (new) › label", "", "seal")]);
        assert_eq!(list_changed(&compare(some, none)), [("parts 1 (removed) › label", "seal", "")]);
        let (none, some) = (r#"{"tags": []}"#, r#"{"tags": ["a", "b"]}"#);
        assert_eq!(list_changed(&compare(none, some)), [("tags", "", "a\nb")]);
        assert_eq!(list_changed(&compare(some, none)), [("tags", "a\nb", "")]);
    }

    #[test]
    fn values_that_look_the_same_are_shown_as_json() {
        let found = compare(
            r#"{"a": 7, "b": ["x", "y"], "c": [[1], [2, 3]], "d": "", "f": 1}"#,
            r#"{"a": "7", "b": ["x\ny"], "c": [[1, 2], [3]], "e": [], "f": 1}"#,
        );
        assert_eq!(
            list_changed(&found),
            [
                ("a", "7", r#""7""#),
                ("b", r#"["x","y"]"#, r#"["x\ny"]"#),
                ("c", "[[1],[2,3]]", "[[1,2],[3]]"),
                ("d", r#""""#, ""),
            ]
        );
        assert_eq!(found.unchanged, [("f".to_owned(), "1".to_owned())]);
    }

    #[test]
    fn another_order_of_nested_objects_is_a_change() {
        let steps = |names: &[&str]| {
            let steps =
                names.iter().map(|name| format!(r#"{{"uri": "s:{name}", "do": "{name}"}}"#));
            format!(r#"{{"steps": [{}]}}"#, steps.collect::<Vec<_>>().join(", "))
        };
        let found = compare(&steps(&["fill", "heat"]), &steps(&["heat", "fill"]));
        assert_eq!(list_changed(&found), [("steps (order)", "s:fill\ns:heat", "s:heat\ns:fill")]);
        let found = compare(&steps(&["fill", "heat", "fill"]), &steps(&["fill", "heat"]));
        let (before, after) = ("s:fill\ns:heat\ns:fill", "s:fill\ns:heat");
        assert_eq!(list_changed(&found), [("steps (order)", before, after)]);
        let found = compare(&steps(&["fill", "heat"]), &steps(&["fill", "mix", "heat"]));
        assert_eq!(list_changed(&found), [("steps 2 (new) › do", "", "mix")]);
    }

    #[test]
    fn a_new_object_has_only_values_after() {
        let mut fields = Fields::default();
        let after = json::parse(br#"{"uri": "u:1", "name": "north", "tags": []}"#, 20).unwrap();
        fields.compare(&[], None, Some(&after));
        assert!(fields.unchanged.is_empty());
        let [name] = fields.changed.as_slice() else { panic!("{:?}", fields.changed) };
        assert_eq!((name.before.as_str(), name.after.as_str()), ("", "north"));
    }
}
