//! What a person has changed in an object, as a MERGE (RFC 7396): only the fields that differ. So saving keeps what was
//! not changed, also stored values that the view does not show.
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::json::{Json, join_pointer};
use penstock_model::ingest::{LockReason, LockedFields};
use penstock_model::mapping::{Entry, Field, FieldKind, Level, Property, Shape, Value};
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
    let versions = Versions::of_object(base, draft);
    builder.collect_changes(shape.level(), versions, "/data/0", &mut members);
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

/// The members of an object, or of a group in it, before and after a change.
#[derive(Clone, Copy)]
struct Versions<'j> {
    /// The object before the change.
    object: &'j Json,
    before: Option<&'j Json>,
    after: Option<&'j Json>,
}

impl<'j> Versions<'j> {
    fn of_object(before: &'j Json, after: &'j Json) -> Self {
        Self { object: before, before: Some(before), after: Some(after) }
    }

    fn member(self, name: &str) -> Self {
        let [before, after] = [self.before, self.after].map(|json| json?.member(name));
        Self { before, after, ..self }
    }
}

struct PatchBuilder<'b> {
    locked: &'b LockedFields,
    findings: Vec<Finding>,
}

impl PatchBuilder<'_> {
    /// Adds the members that make the change, without the URI. `pointer` leads to the object or group.
    fn collect_changes(
        &mut self,
        level: Level<'_>,
        versions: Versions<'_>,
        pointer: &str,
        changes: &mut Vec<(String, Json)>,
    ) {
        for (name, entry) in level.entries() {
            let member = versions.member(name);
            let here = join_pointer(pointer, name);
            let value = match (entry, member.after) {
                // The ingestion refuses it.
                (Entry::Group(_), Some(after)) if !is_members(after) => after.clone(),
                (Entry::Group(inner), _) => {
                    let mut changed = Vec::new();
                    self.collect_changes(inner, member, &here, &mut changed);
                    if changed.is_empty() {
                        continue;
                    }
                    Json::Object(changed)
                }
                (Entry::Field(_, field), after) => {
                    let Some(property) = field.property() else { continue };
                    if is_same(property, member.before, after) {
                        continue;
                    }
                    if let Some(reason) = self.locked.find(member.object, &field.name) {
                        self.findings.push(Finding::at_pointer(&here, explain_lock(reason)));
                        continue;
                    }
                    match after {
                        None | Some(Json::Null) => Json::Null,
                        Some(after) => self.describe_change(property, member.before, after, &here),
                    }
                }
            };
            changes.push((name.to_owned(), value));
        }
        changes.extend(list_unknown(level, versions.before, versions.after));
    }

    /// Returns what a MERGE sends for a field that changes.
    fn describe_change(
        &mut self,
        property: &Property,
        before: Option<&Json>,
        after: &Json,
        pointer: &str,
    ) -> Json {
        if property.value.language_map().is_some() {
            return describe_texts(before, after);
        }
        if property.map().is_some() {
            return self.describe_members(property, before, after, pointer);
        }
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

    /// Returns what a MERGE sends for a map that changes: the members that differ, with `null` for those that are gone.
    fn describe_members(
        &mut self,
        property: &Property,
        before: Option<&Json>,
        after: &Json,
        pointer: &str,
    ) -> Json {
        let (Some((shape, map)), Some(before), Json::Object(new)) = (property.map(), before, after)
        else {
            return after.clone();
        };
        let (old, kept) = (index_members(before), index_members(after));
        let mut changes: Vec<(String, Json)> = Vec::new();
        for (name, value) in new {
            let here = join_pointer(pointer, name);
            let change = match (map.value, old.get(name.as_str()).copied()) {
                (_, Some(old)) if old == value => continue,
                (Some((_, property)), Some(old)) => {
                    self.describe_change(property, Some(old), value, &here)
                }
                (None, Some(old @ Json::Object(_)))
                    if matches!(value, Json::Object(_))
                        && (value.member(URI).is_none()
                            || value.member(URI) == old.member(URI)) =>
                {
                    self.describe_nested(shape, old, value, &here)
                }
                (_, _) => value.clone(),
            };
            changes.push((name.clone(), change));
        }
        let Json::Object(old) = before else { return Json::Object(changes) };
        let removed = old.iter().filter(|(name, _)| !kept.contains_key(name.as_str()));
        changes.extend(removed.map(|(name, _)| (name.clone(), Json::Null)));
        Json::Object(changes)
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
        let versions = Versions::of_object(before, after);
        self.collect_changes(shape.level(), versions, pointer, &mut members);
        Json::Object(members)
    }
}

/// Returns the members of a draft that the mapping does not know. They are not dropped silently: the ingestion refuses them.
/// What the view has shown before the mapping was changed is not among them.
fn list_unknown(
    level: Level<'_>,
    base: Option<&Json>,
    draft: Option<&Json>,
) -> Vec<(String, Json)> {
    let Some(Json::Object(members)) = draft else { return Vec::new() };
    let is_uri = |name: &str| level.is_object() && name == URI;
    let is_unknown = |name: &str| !is_uri(name) && level.find(name).is_none();
    let unknown: Vec<_> = members.iter().filter(|(name, _)| is_unknown(name)).collect();
    if unknown.is_empty() {
        return Vec::new();
    }
    let shown = base.map(index_members).unwrap_or_default();
    let new = unknown.into_iter().filter(|(name, value)| shown.get(name.as_str()) != Some(&value));
    new.cloned().collect()
}

/// Combines a draft with what has changed since `base`: what the draft does not change gets its current value. If both
/// change the same value, that of the draft stays. Nested objects are the same if they have the same URI.
pub fn merge_drafts(shape: &Shape, base: &Json, draft: &Json, current: &Json) -> Json {
    let mut members: Vec<(String, Json)> = Vec::new();
    if let Some(uri) = current.member(URI).or_else(|| draft.member(URI)) {
        members.push((URI.to_owned(), uri.clone()));
    }
    members.extend(merge_members(shape.level(), [base, draft, current].map(Some)));
    Json::Object(members)
}

/// Combines the members of objects, or of groups in them: before, in the draft, and now. The URI is not among them.
fn merge_members(level: Level<'_>, versions: [Option<&Json>; 3]) -> Vec<(String, Json)> {
    let indexes = versions.map(|json| json.map(index_members).unwrap_or_default());
    let mut members: Vec<(String, Json)> = Vec::new();
    for (name, entry) in level.entries() {
        let [base, draft, current] = indexes.each_ref().map(|index| index.get(name).copied());
        let merged = match entry {
            Entry::Field(_, Field { kind: FieldKind::Id, .. }) if name == URI => continue,
            Entry::Field(_, Field { kind: FieldKind::Id, .. }) => current.cloned(),
            Entry::Field(_, Field { kind: FieldKind::Property(property), .. }) => {
                merge_values(property, base, draft, current)
            }
            Entry::Group(_) if draft.is_some_and(|draft| !is_members(draft)) => draft.cloned(),
            Entry::Group(inner) => {
                let inner = merge_members(inner, [base, draft, current]);
                (!inner.is_empty()).then_some(Json::Object(inner))
            }
        };
        members.extend(merged.map(|value| (name.to_owned(), value)));
    }
    let [base, draft, _] = versions;
    members.extend(list_unknown(level, base, draft));
    members
}

/// Returns whether a group can have this value: its members, or `null`.
fn is_members(value: &Json) -> bool {
    matches!(value, Json::Object(_) | Json::Null)
}

fn merge_values(
    property: &Property,
    base: Option<&Json>,
    draft: Option<&Json>,
    current: Option<&Json>,
) -> Option<Json> {
    if is_same(property, base, draft) {
        return current.cloned();
    }
    if is_same(property, base, current) {
        return draft.cloned();
    }
    if property.map().is_some() {
        return merge_maps(property, [base, draft, current]);
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
        (kind, base, draft, current) if kind.language_map().is_some() => {
            let maps = [base, draft, current].map(list_texts);
            let [Some(base), Some(draft), Some(current)] = maps else { return draft.cloned() };
            Some(merge_texts(base, draft, current))
        }
        // An ordered array is one value.
        (kind, base, draft, current) if property.is_array && !property.is_ordered => {
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

/// Returns what a MERGE sends for a language map that changes: the languages that differ, with `null` for those without a text.
fn describe_texts(before: Option<&Json>, after: &Json) -> Json {
    let (Some(Json::Object(old)), Json::Object(new)) = (before, after) else {
        return after.clone();
    };
    let is_removed = |tag: &str| !new.iter().any(|(other, _)| other.eq_ignore_ascii_case(tag));
    let removed = old.iter().filter(|(tag, _)| is_removed(tag));
    let removed = removed.map(|(tag, _)| (tag.clone(), Json::Null));
    let changed = new.iter().filter(|text| !old.contains(text)).cloned();
    Json::Object(changed.chain(removed).collect())
}

/// Merges language maps.
fn merge_texts(
    base: &[(String, Json)],
    draft: &[(String, Json)],
    current: &[(String, Json)],
) -> Json {
    let mut merged: Vec<(String, Json)> = Vec::new();
    for (tag, _) in draft.iter().chain(current) {
        let [old, mine, now] = [base, draft, current]
            .map(|texts| texts.iter().find(|(other, _)| other == tag).map(|(_, text)| text));
        if let Some(text) = if old == mine { now } else { mine }
            && merged.iter().all(|(other, _)| other != tag)
        {
            merged.push((tag.clone(), text.clone()));
        }
    }
    Json::Object(merged)
}

/// Merges maps, member by member.
fn merge_maps(property: &Property, versions: [Option<&Json>; 3]) -> Option<Json> {
    let (shape, map) = property.map()?;
    let [base, draft, current] = versions.map(|json| json.map(index_members).unwrap_or_default());
    let [_, mine, now] = versions;
    let Some(Json::Object(mine)) = mine else { return mine.cloned() };
    let added = match now {
        Some(Json::Object(now)) => now.as_slice(),
        _ => &[],
    };
    let added = added.iter().filter(|(name, _)| !draft.contains_key(name.as_str()));
    let mut merged: Vec<(String, Json)> = Vec::new();
    for (name, _) in mine.iter().chain(added) {
        let [old, mine, now] =
            [&base, &draft, &current].map(|index| index.get(name.as_str()).copied());
        let value = match (map.value, old, mine, now) {
            (Some((_, value)), ..) => merge_values(value, old, mine, now),
            (None, ..) if old == mine => now.cloned(),
            (
                None,
                Some(old @ Json::Object(_)),
                Some(mine @ Json::Object(_)),
                Some(now @ Json::Object(_)),
            ) => Some(merge_drafts(shape, old, mine, now)),
            (None, ..) => mine.cloned(),
        };
        merged.extend(value.map(|value| (name.clone(), value)));
    }
    Some(Json::Object(merged))
}

/// Returns the texts of a language map; none for no value, and `None` for something else.
fn list_texts(value: Option<&Json>) -> Option<&[(String, Json)]> {
    match value {
        None | Some(Json::Null) => Some(&[]),
        Some(Json::Object(texts)) => Some(texts),
        Some(_) => None,
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

/// Returns whether two values of a field are the same. No value, `null`, an empty array and an empty map are.
fn is_same(property: &Property, one: Option<&Json>, other: Option<&Json>) -> bool {
    let is_given = |value: &&Json| match value {
        Json::Null => false,
        Json::Array(elements) if property.is_array => !elements.is_empty(),
        Json::Object(members)
            if property.value.language_map().is_some() || property.map().is_some() =>
        {
            !members.is_empty()
        }
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
  limits: {type: group, fields: {low: {type: integer, path: <urn:low>}, high: {type: integer, path: <urn:high>}}}
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
    fn fields_of_groups_are_sent_and_merged_one_by_one() {
        let with = |limits: &str| BASE.replace("}]}", &format!(r#"}}],"limits":{limits}}}"#));
        let shape = shape();
        let none = LockedFields::default();
        let patch = |base: &str, draft: &str| {
            build_merge_patch(&shape, &none, &parse(base), &parse(draft))
                .unwrap()
                .map(|json| json.to_string())
        };
        let both = with(r#"{"low":1,"high":9}"#);
        assert_eq!(patch(&both, &both), None);
        let sent = |limits: &str| Some(format!(r#"{{"uri":"u:1","limits":{limits}}}"#));
        assert_eq!(patch(&both, &with(r#"{"low":2,"high":9}"#)), sent(r#"{"low":2}"#));
        assert_eq!(patch(&both, BASE), sent(r#"{"low":null,"high":null}"#));
        assert_eq!(patch(BASE, &with(r#"{"low":1,"lwo":2}"#)), sent(r#"{"low":1,"lwo":2}"#));
        assert_eq!(patch(BASE, &with("7")), sent("7"));
        let [base, draft, current] =
            [both, with(r#"{"low":2,"high":9}"#), with(r#"{"low":1,"high":8}"#)];
        let merged = merge_drafts(&shape, &parse(&base), &parse(&draft), &parse(&current));
        assert_eq!(merged.to_string(), with(r#"{"low":2,"high":8}"#));
    }

    #[test]
    fn languages_are_sent_and_merged_one_by_one() {
        let mapping = "type: object\npath: Pump:.\nfields:\n  name: {type: languageMap, path: <urn:name>}\n  state: {type: json, path: <urn:state>}\n";
        let shape = compile(mapping).unwrap().root;
        let none = LockedFields::default();
        let patch = |base: &str, draft: &str| {
            let [base, draft] =
                [base, draft].map(|rest| parse(&format!(r#"{{"uri":"u:1"{rest}}}"#)));
            build_merge_patch(&shape, &none, &base, &draft).unwrap().map(|json| json.to_string())
        };
        let sent = |rest: &str| Some(format!(r#"{{"uri":"u:1",{rest}}}"#));
        let both = r#","name":{"de":"Pumpe","en":"Pump"}"#;
        assert_eq!(patch(both, both), None);
        let changed = patch(both, r#","name":{"de":"Pumpen","fr":"Pompe"}"#);
        assert_eq!(changed, sent(r#""name":{"de":"Pumpen","fr":"Pompe","en":null}"#));
        assert_eq!(patch(both, ""), sent(r#""name":null"#));
        assert_eq!(patch("", r#","name":{}"#), None);
        assert_eq!(patch("", r#","state":[]"#), sent(r#""state":[]"#));
        let [base, draft, current] = [
            r#"{"name":{"de":"Pumpe","en":"Pump"}}"#,
            r#"{"name":{"de":"Pumpen","en":"Pump"}}"#,
            r#"{"name":{"de":"Pumpe","fr":"Pompe"}}"#,
        ]
        .map(parse);
        let merged = merge_drafts(&shape, &base, &draft, &current);
        assert_eq!(merged.to_string(), r#"{"name":{"de":"Pumpen","fr":"Pompe"}}"#);
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

    #[test]
    fn members_of_maps_that_differ_are_sent_and_merged() {
        let config = "
type: object
path: Pump:.
fields:
  sensors:
    type: map
    path: <urn:sensor>/Sensor:.
    key: {path: <urn:code>}
    elements: {type: object, fields: {value: {type: number, path: <urn:value>}, unit: {type: string, path: <urn:unit>}}}
  levels: {type: map, path: <urn:level>/Level:., key: {path: <urn:code>}, elements: {type: number, path: <urn:value>}}
";
        let shape = compile(config).unwrap().root;
        let base = r#"{"uri":"u:1","sensors":{"T1":{"uri":"u:2","value":1,"unit":"K"},"T2":{"uri":"u:3","value":2}},"levels":{"a":1,"b":2}}"#;
        let draft = base
            .replace(r#""value":1,"#, r#""value":9,"#)
            .replace(r#","T2":{"uri":"u:3","value":2}"#, "")
            .replace(r#""b":2"#, r#""c":3"#);
        let none = LockedFields::default();
        let send = |draft: &str| {
            let patch = build_merge_patch(&shape, &none, &parse(base), &parse(draft)).unwrap();
            patch.map(|patch| patch.to_string())
        };
        assert_eq!(send(base), None);
        assert_eq!(
            send(&draft).unwrap(),
            r#"{"uri":"u:1","sensors":{"T1":{"uri":"u:2","value":9},"T2":null},"levels":{"c":3,"b":null}}"#
        );
        let current = base.replace("\"K\"", "\"C\"").replace(r#""a":1"#, r#""a":5,"d":4"#);
        let merged = merge_drafts(&shape, &parse(base), &parse(&draft), &parse(&current));
        assert_eq!(
            merged.to_string(),
            r#"{"uri":"u:1","sensors":{"T1":{"uri":"u:2","value":9,"unit":"C"}},"levels":{"a":5,"c":3,"d":4}}"#
        );
    }
}
