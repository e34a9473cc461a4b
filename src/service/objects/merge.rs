//! Combines the draft of a form with what others have changed in the object meanwhile.
use super::patch::{URI, index_by_uri, index_members, is_members, is_same, list_unknown, uri_of};
use penstock_base::json::Json;
use penstock_model::mapping::{Entry, Field, FieldKind, Level, Property, Shape, Value};
use std::collections::HashSet;

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
            Entry::Group(inner) if draft.is_some_and(|draft| !is_members(inner, draft)) => {
                draft.cloned()
            }
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
    let versions = [base, draft, current];
    if let Some((shape, map)) = property.map() {
        return merge_maps(versions, |[base, draft, current]| match map.value {
            Some((_, value)) => merge_values(value, base, draft, current),
            None => merge_map_objects(shape, [base, draft, current]),
        });
    }
    if property.value.language_map().is_some() {
        return merge_maps(versions, |[base, draft, current]| {
            let text = if base == draft { current } else { draft };
            text.cloned()
        });
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

/// Merges maps, member by member. What is no map stays as it is in the draft.
fn merge_maps(
    versions: [Option<&Json>; 3],
    merge_member: impl Fn([Option<&Json>; 3]) -> Option<Json>,
) -> Option<Json> {
    let [_, draft, _] = versions;
    let [Some(_), Some(mine), Some(now)] = versions.map(list_members) else {
        return draft.cloned();
    };
    let indexes = versions.map(|json| json.map(index_members).unwrap_or_default());
    let [_, in_draft, _] = &indexes;
    let others = now.iter().filter(|(name, _)| !in_draft.contains_key(name.as_str()));
    let mut merged: Vec<(String, Json)> = Vec::new();
    for (name, _) in mine.iter().chain(others) {
        let value = merge_member(indexes.each_ref().map(|index| index.get(name.as_str()).copied()));
        merged.extend(value.map(|value| (name.clone(), value)));
    }
    Some(Json::Object(merged))
}

/// Merges a member of a map of objects. The name identifies the object.
fn merge_map_objects(shape: &Shape, versions: [Option<&Json>; 3]) -> Option<Json> {
    match versions {
        [base, draft, current] if base == draft => current.cloned(),
        [
            Some(base @ Json::Object(_)),
            Some(draft @ Json::Object(_)),
            Some(current @ Json::Object(_)),
        ] => Some(merge_drafts(shape, base, draft, current)),
        [_, draft, _] => draft.cloned(),
    }
}

/// Returns the members of a map; none for no value, and `None` for something else.
fn list_members(value: Option<&Json>) -> Option<&[(String, Json)]> {
    match value {
        None | Some(Json::Null) => Some(&[]),
        Some(Json::Object(members)) => Some(members),
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

#[cfg(test)]
mod tests {
    use super::super::patch::tests::{BASE, LANGUAGES, MAPS, MAPS_BASE, parse, shape, with_limits};
    use super::*;
    use penstock_model::mapping::compile;

    fn merge(draft: &str, current: &str) -> String {
        merge_drafts(&shape(), &parse(BASE), &parse(draft), &parse(current)).to_string()
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
    fn fields_of_groups_are_merged_one_by_one() {
        let [base, draft, current] = [
            with_limits(r#"{"low":1,"high":9}"#),
            with_limits(r#"{"low":2,"high":9}"#),
            with_limits(r#"{"low":1,"high":8}"#),
        ];
        let merged = merge_drafts(&shape(), &parse(&base), &parse(&draft), &parse(&current));
        assert_eq!(merged.to_string(), with_limits(r#"{"low":2,"high":8}"#));
    }

    #[test]
    fn languages_are_merged_one_by_one() {
        let shape = compile(LANGUAGES).unwrap().root;
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
    fn members_of_maps_are_merged_one_by_one() {
        let shape = compile(MAPS).unwrap().root;
        let base = MAPS_BASE;
        let draft = base
            .replace(r#""value":1,"#, r#""value":9,"#)
            .replace(r#","T2":{"uri":"u:3","value":2}"#, "")
            .replace(r#""b":2"#, r#""c":3"#);
        let current = base.replace("\"K\"", "\"C\"").replace(r#""a":1"#, r#""a":5,"d":4"#);
        let merge = |draft: &str| {
            merge_drafts(&shape, &parse(base), &parse(draft), &parse(&current)).to_string()
        };
        assert_eq!(
            merge(&draft),
            r#"{"uri":"u:1","sensors":{"T1":{"uri":"u:2","value":9,"unit":"C"}},"levels":{"a":5,"c":3,"d":4}}"#
        );
        // A removal of a whole map keeps what others have added.
        assert_eq!(merge(r#"{"uri":"u:1"}"#), r#"{"uri":"u:1","sensors":{},"levels":{"d":4}}"#);
    }
}
