//! What a person has changed in an object, as a MERGE (RFC 7396): only the fields that differ. So saving keeps what was
//! not changed, also stored values that the view does not show.
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::json::{Json, join_pointer};
use penstock_model::ingest::{LockReason, LockedFields};
use penstock_model::mapping::{Entry, Level, Property, Shape, Value};
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
                (Entry::Group(inner), Some(after)) if !is_members(inner, after) => after.clone(),
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
            (Some(before), _) => self.describe_object(inner, before, after, pointer),
            (None, _) => after.clone(),
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
                (_, None) => value.clone(),
                (Some((_, property)), Some(old)) => {
                    self.describe_change(property, Some(old), value, &here)
                }
                (None, Some(old)) => self.describe_object(shape, old, value, &here),
            };
            changes.push((name.clone(), change));
        }
        let Json::Object(old) = before else { return Json::Object(changes) };
        let removed = old.iter().filter(|(name, _)| !kept.contains_key(name.as_str()));
        changes.extend(removed.map(|(name, _)| (name.clone(), Json::Null)));
        Json::Object(changes)
    }

    /// Returns what a MERGE sends for a nested object: what changes, or all of it if it is another object than before.
    fn describe_object(
        &mut self,
        shape: &Shape,
        before: &Json,
        after: &Json,
        pointer: &str,
    ) -> Json {
        let are_objects = matches!((before, after), (Json::Object(_), Json::Object(_)));
        let uri = after.member(URI);
        if are_objects && (uri.is_none() || uri == before.member(URI)) {
            self.describe_nested(shape, before, after, pointer)
        } else {
            after.clone()
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
        let versions = Versions::of_object(before, after);
        self.collect_changes(shape.level(), versions, pointer, &mut members);
        Json::Object(members)
    }
}

/// Returns the members of a draft that the mapping does not know. They are not dropped silently: the ingestion refuses them.
/// What the view has shown before the mapping was changed is not among them.
pub(super) fn list_unknown(
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

/// Returns whether a group can have this value: its members, or what means no value.
pub(super) fn is_members(group: Level<'_>, value: &Json) -> bool {
    matches!(value, Json::Object(_) | Json::Null) || group.is_absent(value)
}

/// Returns what a MERGE sends for a language map that changes: the languages that differ, with `null` for those without a text.
fn describe_texts(before: Option<&Json>, after: &Json) -> Json {
    let (Some(Json::Object(old)), Json::Object(new)) = (before, after) else {
        return after.clone();
    };
    let kept: HashSet<String> = new.iter().map(|(tag, _)| tag.to_ascii_lowercase()).collect();
    let removed = old.iter().filter(|(tag, _)| !kept.contains(&tag.to_ascii_lowercase()));
    let removed = removed.map(|(tag, _)| (tag.clone(), Json::Null));
    let shown = before.map(index_members).unwrap_or_default();
    let changed = new.iter().filter(|(tag, text)| shown.get(tag.as_str()) != Some(&text));
    Json::Object(changed.cloned().chain(removed).collect())
}

pub(super) fn index_members(value: &Json) -> HashMap<&str, &Json> {
    let Json::Object(members) = value else { return HashMap::new() };
    members.iter().map(|(name, value)| (name.as_str(), value)).collect()
}

pub(super) fn index_by_uri(elements: &[Json]) -> HashMap<&str, &Json> {
    elements.iter().filter_map(|element| Some((uri_of(element)?, element))).collect()
}

pub(super) fn uri_of(object: &Json) -> Option<&str> {
    match object.member(URI) {
        Some(Json::String(uri)) => Some(uri),
        _ => None,
    }
}

/// Returns whether two values of a field are the same. No value, `null`, an empty array and an empty map are.
pub(super) fn is_same(property: &Property, one: Option<&Json>, other: Option<&Json>) -> bool {
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
pub(super) mod tests {
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
    /// An object of the mapping of [`shape`].
    pub(in crate::objects) const BASE: &str = r#"{"uri":"u:1","name":"Feed","flow":1.50,"tags":["a"],"place":{"uri":"u:2","room":"R1","floor":2},"parts":[{"uri":"u:3","label":"seal"},{"uri":"u:4","label":"shaft"}]}"#;
    /// A mapping with a language map, and with a field for any JSON.
    pub(in crate::objects) const LANGUAGES: &str = "type: object\npath: Pump:.\nfields:\n  name: {type: languageMap, path: <urn:name>}\n  state: {type: json, path: <urn:state>}\n";
    /// A mapping with a map of objects and one of values.
    pub(in crate::objects) const MAPS: &str = "
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
    /// An object of the mapping [`MAPS`].
    pub(in crate::objects) const MAPS_BASE: &str = r#"{"uri":"u:1","sensors":{"T1":{"uri":"u:2","value":1,"unit":"K"},"T2":{"uri":"u:3","value":2}},"levels":{"a":1,"b":2}}"#;

    pub(in crate::objects) fn parse(text: &str) -> Json {
        json::parse(text.as_bytes(), 20).unwrap()
    }

    pub(in crate::objects) fn shape() -> Shape {
        compile(MAPPING).unwrap().root
    }

    /// Returns [`BASE`] with this group.
    pub(in crate::objects) fn with_limits(limits: &str) -> String {
        BASE.replace("}]}", &format!(r#"}}],"limits":{limits}}}"#))
    }

    fn patch(draft: &str) -> Option<String> {
        let none = LockedFields::default();
        let patch = build_merge_patch(&shape(), &none, &parse(BASE), &parse(draft)).unwrap();
        patch.map(|patch| patch.to_string())
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
    fn fields_of_groups_are_sent_one_by_one() {
        let with = with_limits;
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
        // A value that means no value removes each of them, but no locked one.
        let mapping = MAPPING.replace("{type: group,", "{type: group, absent: '',");
        let shape = compile(&mapping).unwrap().root;
        let build = |locked: &LockedFields| {
            build_merge_patch(&shape, locked, &parse(&both), &parse(&with(r#""""#)))
        };
        let removed = build(&none).unwrap().map(|json| json.to_string());
        assert_eq!(removed, sent(r#"{"low":null,"high":null}"#));
        let mut locked = LockedFields::default();
        locked.lock("u:1", "limits.low", LockReason::SeveralValues);
        assert_eq!(build(&locked).unwrap_err().class, ErrorClass::Conflict);
    }

    #[test]
    fn languages_are_sent_one_by_one() {
        let shape = compile(LANGUAGES).unwrap().root;
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
        let in_capitals = patch(both, r#","name":{"DE":"Pumpe","en":"Pump"}"#);
        assert_eq!(in_capitals, sent(r#""name":{"DE":"Pumpe"}"#));
        assert_eq!(patch(both, ""), sent(r#""name":null"#));
        assert_eq!(patch("", r#","name":{}"#), None);
        assert_eq!(patch("", r#","state":[]"#), sent(r#""state":[]"#));
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
    fn members_of_maps_that_differ_are_sent() {
        let shape = compile(MAPS).unwrap().root;
        let base = MAPS_BASE;
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
    }
}
