//! What a person has changed in an object, as a MERGE (RFC 7396): only the fields that differ. So saving keeps what was
//! not changed, also stored values that the view does not show.
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::json::{Json, join_pointer};
use penstock_model::ingest::{LockReason, LockedFields};
use penstock_model::mapping::{FieldKind, Property, Shape, Value};
use std::collections::{HashMap, HashSet};

/// The member with the URI of an object.
pub const URI: &str = "uri";

/// Returns why a form does not change a field, in one sentence.
pub fn explain_lock(reason: LockReason) -> &'static str {
    match reason {
        LockReason::SeveralValues => {
            "Several values are stored, and the field shows only one. Change it with the API."
        }
        LockReason::UnshownValues => {
            "Values are stored that the field cannot show. Change it with the API."
        }
        LockReason::OtherDatatypes => {
            "Some values have other datatypes or languages than the field. Change it with the API."
        }
    }
}

/// Returns the object for a MERGE that changes `base`, the view of an object, into `draft`; `None` if they do not differ.
/// Both are JSON objects.
///
/// # Errors
/// `ErrorClass::Conflict` if it changes a locked field.
pub fn build_merge_patch(
    shape: &Shape,
    locked: &LockedFields,
    base: &Json,
    draft: &Json,
) -> Result<Option<Json>, GatewayError> {
    let mut builder = PatchBuilder { locked, findings: Vec::new() };
    let mut members = Vec::new();
    builder.collect_changes(shape, base, draft, "/data/0", &mut members);
    if !builder.findings.is_empty() {
        let detail = "the change would lose stored values that the form does not show";
        return Err(GatewayError::with_findings(ErrorClass::Conflict, detail, builder.findings));
    }
    if members.is_empty() {
        return Ok(None);
    }
    let uri = base.member(URI).cloned().unwrap_or(Json::Null);
    members.insert(0, (URI.to_owned(), uri));
    Ok(Some(Json::Object(members)))
}

struct PatchBuilder<'b> {
    locked: &'b LockedFields,
    findings: Vec<Finding>,
}

impl PatchBuilder<'_> {
    /// Adds the members that change `base` into `draft`, without the URI. `pointer` leads to the object.
    fn collect_changes(
        &mut self,
        shape: &Shape,
        base: &Json,
        draft: &Json,
        pointer: &str,
        changes: &mut Vec<(String, Json)>,
    ) {
        for (_, field, property) in shape.iter_properties() {
            let (before, after) = (base.member(&field.name), draft.member(&field.name));
            if is_same(before, after) {
                continue;
            }
            let here = join_pointer(pointer, &field.name);
            if let Some(reason) = self.locked.find(base, &field.name) {
                self.findings.push(Finding::at_pointer(&here, explain_lock(reason)));
                continue;
            }
            let value = match after {
                None | Some(Json::Null) => Json::Null,
                Some(after) => self.describe_change(property, before, after, &here),
            };
            changes.push((field.name.clone(), value));
        }
        changes.extend(list_unknown(shape, base, draft));
    }

    /// Returns what a MERGE sends for a field that changes.
    fn describe_change(
        &mut self,
        property: &Property,
        before: Option<&Json>,
        after: &Json,
        pointer: &str,
    ) -> Json {
        let Value::Object(inner) = &property.value else { return after.clone() };
        match (before, after) {
            (Some(Json::Array(old)), Json::Array(new)) => {
                let known = index_by_uri(old);
                let elements = new.iter().enumerate().map(|(index, element)| {
                    match uri_of(element).and_then(|uri| known.get(uri)) {
                        Some(old) => {
                            self.describe_nested(inner, old, element, &format!("{pointer}/{index}"))
                        }
                        None => element.clone(),
                    }
                });
                Json::Array(elements.collect())
            }
            (Some(old @ Json::Object(_)), Json::Object(_))
                if after.member(URI).is_none() || after.member(URI) == old.member(URI) =>
            {
                self.describe_nested(inner, old, after, pointer)
            }
            _ => after.clone(),
        }
    }

    /// Returns what a MERGE sends for a nested object that exists: its URI and what changes. Only the URI is a reference,
    /// which leaves it as it is.
    fn describe_nested(
        &mut self,
        shape: &Shape,
        before: &Json,
        after: &Json,
        pointer: &str,
    ) -> Json {
        let uri = before.member(URI).cloned();
        let mut members: Vec<_> = uri.map(|uri| (URI.to_owned(), uri)).into_iter().collect();
        self.collect_changes(shape, before, after, pointer, &mut members);
        Json::Object(members)
    }
}

/// Returns the members of a draft that the mapping does not know. They are not dropped silently: the ingestion refuses them.
/// What the view has shown before the mapping was changed is not among them.
fn list_unknown(shape: &Shape, base: &Json, draft: &Json) -> Vec<(String, Json)> {
    let Json::Object(members) = draft else { return Vec::new() };
    let is_unknown = |name: &str| !shape.is_id(name) && shape.find_field(name).is_none();
    let unknown: Vec<_> = members.iter().filter(|(name, _)| is_unknown(name)).collect();
    if unknown.is_empty() {
        return Vec::new();
    }
    let shown = index_members(base);
    let new = unknown.into_iter().filter(|(name, value)| shown.get(name.as_str()) != Some(&value));
    new.cloned().collect()
}

/// Combines a draft with what has changed since `base`: what the draft does not change gets its current value. If both
/// change the same value, that of the draft stays. Nested objects are the same if they have the same URI.
pub fn merge_drafts(shape: &Shape, base: &Json, draft: &Json, current: &Json) -> Json {
    let unknown = list_unknown(shape, base, draft);
    let [base, draft, current] = [base, draft, current].map(index_members);
    let mut members: Vec<(String, Json)> = Vec::new();
    if let Some(uri) = current.get(URI).or_else(|| draft.get(URI)) {
        members.push((URI.to_owned(), (*uri).clone()));
    }
    for field in &shape.fields {
        if field.name == URI {
            continue;
        }
        let [base, draft, current] =
            [&base, &draft, &current].map(|object| object.get(&*field.name).copied());
        let merged = match &field.kind {
            FieldKind::Property(property) => merge_values(property, base, draft, current),
            FieldKind::Id => current.cloned(),
        };
        members.extend(merged.map(|value| (field.name.clone(), value)));
    }
    members.extend(unknown);
    Json::Object(members)
}

fn merge_values(
    property: &Property,
    base: Option<&Json>,
    draft: Option<&Json>,
    current: Option<&Json>,
) -> Option<Json> {
    if is_same(base, draft) {
        return current.cloned();
    }
    if is_same(base, current) {
        return draft.cloned();
    }
    match (&property.value, base, draft, current) {
        (
            Value::Object(inner),
            Some(base @ Json::Object(_)),
            Some(draft @ Json::Object(_)),
            Some(current @ Json::Object(_)),
        ) if uri_of(base).is_some()
            && uri_of(base) == uri_of(draft)
            && uri_of(base) == uri_of(current) =>
        {
            Some(merge_drafts(inner, base, draft, current))
        }
        (kind, base, draft, current) if property.is_array => {
            let lists = [base, draft, current].map(list_elements);
            let [Some(base), Some(draft), Some(current)] = lists else { return draft.cloned() };
            Some(Json::Array(match kind {
                Value::Object(inner) => merge_objects(inner, base, draft, current),
                _ => merge_elements(base, draft, current),
            }))
        }
        _ => draft.cloned(),
    }
}

/// Merges arrays of objects.
fn merge_objects(shape: &Shape, base: &[Json], draft: &[Json], current: &[Json]) -> Vec<Json> {
    let [old, mine, now] = [base, draft, current].map(index_by_uri);
    let mut merged = Vec::new();
    for element in draft {
        let known = uri_of(element).and_then(|uri| Some((uri, *old.get(uri)?)));
        match known {
            None => merged.push(element.clone()),
            Some((uri, before)) => match now.get(uri) {
                Some(current) => merged.push(merge_drafts(shape, before, element, current)),
                // Others have removed it, and the draft does not change it.
                None if before == element => {}
                None => merged.push(element.clone()),
            },
        }
    }
    let added = current.iter().filter(|element| {
        uri_of(element).is_some_and(|uri| !old.contains_key(uri) && !mine.contains_key(uri))
    });
    merged.extend(added.cloned());
    merged
}

/// Merges arrays of values, which are sets.
fn merge_elements(base: &[Json], draft: &[Json], current: &[Json]) -> Vec<Json> {
    let [old, mine, now] = [base, draft, current]
        .map(|elements| elements.iter().map(ToString::to_string).collect::<HashSet<String>>());
    let is_removed = |text: &String| old.contains(text) && !now.contains(text);
    let is_added = |text: &String| !old.contains(text) && !mine.contains(text);
    let kept = draft.iter().filter(|element| !is_removed(&element.to_string()));
    let added = current.iter().filter(|element| is_added(&element.to_string()));
    kept.chain(added).cloned().collect()
}

/// Returns the elements of an array; none for no value, and `None` for something else.
fn list_elements(value: Option<&Json>) -> Option<&[Json]> {
    match value {
        None | Some(Json::Null) => Some(&[]),
        Some(Json::Array(elements)) => Some(elements),
        Some(_) => None,
    }
}

fn index_members(value: &Json) -> HashMap<&str, &Json> {
    let Json::Object(members) = value else { return HashMap::new() };
    members.iter().map(|(name, value)| (name.as_str(), value)).collect()
}

fn index_by_uri(elements: &[Json]) -> HashMap<&str, &Json> {
    elements.iter().filter_map(|element| Some((uri_of(element)?, element))).collect()
}

fn uri_of(object: &Json) -> Option<&str> {
    match object.member(URI) {
        Some(Json::String(uri)) => Some(uri),
        _ => None,
    }
}

/// Returns whether two values of a field are the same. No value, `null` and an empty array are.
fn is_same(one: Option<&Json>, other: Option<&Json>) -> bool {
    let is_given = |value: &&Json| match value {
        Json::Null => false,
        Json::Array(elements) => !elements.is_empty(),
        _ => true,
    };
    one.filter(is_given) == other.filter(is_given)
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_base::json;
    use penstock_model::mapping::compile;

    const MAPPING: &str = "
type: object
path: Pump:.
fields:
  name: {type: string, path: <urn:name>}
  flow: {type: number, path: <urn:flow>}
  tags: {type: array, path: <urn:tag>}
  place: {type: object, path: <urn:place>/Place:., fields: {room: {type: string, path: <urn:room>}, floor: {type: integer, path: <urn:floor>}}}
  parts: {type: array, path: <urn:part>, elements: {type: object, path: Part:., fields: {label: {type: string, path: <urn:label>}}}}
";
    const BASE: &str = r#"{"uri":"u:1","name":"Feed","flow":1.50,"tags":["a"],"place":{"uri":"u:2","room":"R1","floor":2},"parts":[{"uri":"u:3","label":"seal"},{"uri":"u:4","label":"shaft"}]}"#;

    fn parse(text: &str) -> Json {
        json::parse(text.as_bytes(), 20).unwrap()
    }

    fn shape() -> Shape {
        compile(MAPPING).unwrap().root
    }

    fn patch(draft: &str) -> Option<String> {
        let none = LockedFields::default();
        let patch = build_merge_patch(&shape(), &none, &parse(BASE), &parse(draft)).unwrap();
        patch.map(|patch| patch.to_string())
    }

    fn merge(draft: &str, current: &str) -> String {
        merge_drafts(&shape(), &parse(BASE), &parse(draft), &parse(current)).to_string()
    }

    #[test]
    fn only_fields_that_differ_are_sent() {
        assert_eq!(patch(BASE), None);
        let draft = BASE.replace("1.50", "2.5").replace(r#""name":"Feed","#, "");
        assert_eq!(patch(&draft).unwrap(), r#"{"uri":"u:1","name":null,"flow":2.5}"#);
        let draft = BASE.replace(r#"["a"]"#, "[]").replace("\"R1\"", "\"R2\"");
        let sent = r#"{"uri":"u:1","tags":[],"place":{"uri":"u:2","room":"R2"}}"#;
        assert_eq!(patch(&draft).unwrap(), sent);
    }

    #[test]
    fn elements_that_stay_are_references_and_new_ones_are_whole() {
        let draft = BASE.replace("shaft", "long shaft").replace("}]}", r#"},{"label":"key"}]}"#);
        let sent = r#"{"uri":"u:1","parts":[{"uri":"u:3"},{"uri":"u:4","label":"long shaft"},{"label":"key"}]}"#;
        assert_eq!(patch(&draft).unwrap(), sent);
    }

    #[test]
    fn a_field_that_the_mapping_does_not_know_is_sent_if_it_is_new() {
        let draft = BASE.replace("\"flow\"", "\"flwo\"");
        assert_eq!(patch(&draft).unwrap(), r#"{"uri":"u:1","flow":null,"flwo":1.50}"#);
        let base = BASE.replace("\"flow\"", "\"old\"");
        let none = LockedFields::default();
        assert_eq!(build_merge_patch(&shape(), &none, &parse(&base), &parse(&base)), Ok(None));
    }

    #[test]
    fn a_change_of_a_locked_field_is_refused() {
        let mut locked = LockedFields::default();
        locked.lock("u:1", "name", LockReason::SeveralValues);
        locked.lock("u:4", "label", LockReason::SeveralValues);
        let build = |draft: &str| build_merge_patch(&shape(), &locked, &parse(BASE), &parse(draft));
        let draft = BASE.replace("Feed", "Drain").replace("shaft", "long shaft");
        let error = build(&draft).unwrap_err();
        assert_eq!(error.class, ErrorClass::Conflict);
        let places: Vec<String> = error.findings.iter().map(ToString::to_string).collect();
        assert!(places[0].starts_with("/data/0/name"), "{places:?}");
        assert!(places[1].starts_with("/data/0/parts/1/label"), "{places:?}");
        // Everything else can be changed.
        assert!(build(&BASE.replace("1.50", "2").replace("seal", "ring")).unwrap().is_some());
    }

    #[test]
    fn fields_that_others_changed_meanwhile_are_kept() {
        let draft = BASE.replace("1.50", "2.5");
        let current = BASE.replace("Feed", "Drain").replace("1.50", "9");
        assert_eq!(merge(&draft, &current), draft.replace("Feed", "Drain"));
    }

    #[test]
    fn nested_objects_are_merged_field_by_field() {
        let draft = BASE.replace("R1", "R7").replace("seal", "ring");
        let current = BASE.replace("\"floor\":2", "\"floor\":3").replace("shaft", "long shaft");
        let both = draft.replace("\"floor\":2", "\"floor\":3").replace("shaft", "long shaft");
        assert_eq!(merge(&draft, &current), both);
        // The place is another object meanwhile, so the draft stays.
        let other = BASE.replace("u:2", "u:9");
        assert_eq!(merge(&draft, &other), draft);
    }

    #[test]
    fn elements_that_others_added_or_removed_are_merged() {
        let draft = BASE
            .replace(r#"["a"]"#, r#"["a","b"]"#)
            .replace("}]}", r#"},{"label":"key"}]}"#)
            .replace("shaft", "long shaft");
        let current = BASE
            .replace(r#"["a"]"#, r#"["c"]"#)
            .replace(r#"{"uri":"u:3","label":"seal"},"#, "")
            .replace("}]}", r#"},{"uri":"u:5","label":"screw"}]}"#);
        let merged = parse(&merge(&draft, &current));
        assert_eq!(merged.member("tags").unwrap().to_string(), r#"["b","c"]"#);
        assert_eq!(
            merged.member("parts").unwrap().to_string(),
            r#"[{"uri":"u:4","label":"long shaft"},{"label":"key"},{"uri":"u:5","label":"screw"}]"#
        );
        // The draft changes what others have removed: it is kept, and the person decides.
        let removed = BASE.replace(r#","label":"shaft""#, "").replace(r#",{"uri":"u:4"}"#, "");
        let merged = merge(&BASE.replace("shaft", "long shaft"), &removed);
        assert!(merged.contains(r#"{"uri":"u:4","label":"long shaft"}"#), "{merged}");
    }
}
