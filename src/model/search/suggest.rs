//! Suggests values of a field to somebody who types one.
use super::budget::SearchBudget;
use super::columns::Columns;
use super::field_name::find_named;
use super::filter::{Filter, ValueTest};
use super::matching::RequiredQuads;
use super::page::{Search, find_page};
use super::page_search::PageSearch;
use super::text::list_tests;
use super::values::find_ordered_class;
use crate::mapping::Property;
use crate::resource::Compiled;
use oxrdf::{Literal, NamedNode, NamedOrBlankNode};
use penstock_base::error::GatewayError;
use penstock_store::{Read, ValueClass, ValueKey, ValueRange};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// The maximum number of objects whose values are collected without the index of values.
const MAX_COLLECTED_OBJECTS: usize = 200;
/// The maximum number of values that are collected of one object.
const MAX_COLLECTED_VALUES: usize = 100;
/// The maximum number of values that are visited in the index.
const MAX_VISITED_VALUES: usize = 2_000;

/// Returns different values of a field that begin with a text, in the order of code points, of the members of a Business Object:
/// the first ones if the index of values has them, otherwise those of some objects. Blocking.
///
/// # Errors
/// - `ErrorClass::Invalid` if there is no such field
/// - `ErrorClass::TooLarge` if this would examine more objects than the bounds allow
pub fn suggest_values(
    read: &dyn Read,
    business_object: &Compiled,
    (field, prefix): (&str, &str),
    limit: usize,
    bounds: &SearchBudget,
) -> Result<Vec<String>, GatewayError> {
    let shape = &business_object.mapping.root;
    let named = find_named(shape, field)?;
    let own = shape.iter_properties().find(|(_, own, _)| own.name == field);
    if let Some((index, _, property)) = own {
        let run = PageSearch::new(read, business_object, None, bounds)?;
        if let Some(values) = run.list_beginnings((index, property), prefix, limit)? {
            return Ok(values);
        }
    }
    let can_begin = list_tests(named.property).any(|test| test == "startsWith");
    let test = if prefix.is_empty() || !can_begin {
        ValueTest::Exists
    } else {
        ValueTest::StartsWith(prefix.to_owned())
    };
    let path: Vec<&str> = named.path.iter().map(String::as_str).collect();
    let filter = Filter::for_field(shape, &path, test)?;
    let search =
        Search { filter: Some(&filter), limit: MAX_COLLECTED_OBJECTS, ..Search::default() };
    let columns = Columns::new(shape, [field])?;
    let mut values = BTreeSet::new();
    for found in find_page(read, business_object, &search, bounds)?.found {
        for cell in columns.read(read, &found.uri, MAX_COLLECTED_VALUES, bounds)? {
            values.extend(cell.texts.into_iter().filter(|text| text.starts_with(prefix)));
        }
    }
    Ok(values.into_iter().take(limit).collect())
}

impl PageSearch<'_> {
    /// Returns the first values of a field of strings that begin with a text. `None` if the index has none.
    fn list_beginnings(
        &self,
        (index, property): (usize, &Property),
        prefix: &str,
        limit: usize,
    ) -> Result<Option<Vec<String>>, GatewayError> {
        if property.is_ordered || find_ordered_class(property) != Some(ValueClass::Text) {
            return Ok(None);
        }
        let needs = RequiredQuads::for_fields(self.shape, [index]);
        // Of the values of an object, those that the index has here.
        let read_texts = |uri: &NamedNode, key: &ValueKey| {
            self.budget.count_examined(1)?;
            if !self.is_member(uri)? {
                return Ok(Vec::new());
            }
            self.new_tested(uri).with_values(&needs, |values| {
                let shown = values.collect_shown(index, property);
                let texts = shown.texts().filter(|text| {
                    let is_here = ValueKey::of(Literal::from(*text).as_ref()).1 == *key;
                    text.starts_with(prefix) && is_here
                });
                Ok(texts.map(str::to_owned).collect::<Vec<_>>())
            })
        };
        let beginning = ValueRange::starting_with(prefix);
        let (mut found, mut visited, mut key_before) =
            (BTreeSet::<String>::new(), 0, None::<ValueKey>);
        loop {
            let range = match found.last() {
                // The next text in the order of code points.
                Some(last) => {
                    let next = Literal::from(format!("{last}\0"));
                    beginning.intersect(&ValueRange::at_least(next.as_ref()))
                }
                None => Some(beginning.clone()),
            };
            let Some(range) = range else { break };
            let mut outcome = Ok(());
            let mut is_whole_text = false;
            let mut visit = |key: &ValueKey, subject| {
                // A key that is cut stands for several texts, in any order, so all of them are read.
                let is_enough = found.len() >= limit && key_before != Some(*key);
                if is_enough || visited >= MAX_VISITED_VALUES {
                    return ControlFlow::Break(());
                }
                visited += 1;
                key_before = Some(*key);
                let NamedOrBlankNode::NamedNode(uri) = subject else {
                    return ControlFlow::Continue(());
                };
                match read_texts(&uri, key) {
                    Ok(texts) => {
                        is_whole_text = !texts.is_empty() && !key.is_cut(ValueClass::Text);
                        found.extend(texts);
                    }
                    Err(error) => outcome = Err(error),
                }
                if is_whole_text || outcome.is_err() {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            };
            let predicate = property.predicate.as_ref();
            if !self.read.visit_values(predicate, &range, false, &mut visit)? {
                return Ok(None);
            }
            outcome?;
            // The others with this text are skipped.
            if !is_whole_text || found.len() >= limit {
                break;
            }
        }
        // The index has texts with a language elsewhere.
        let found = Some(found).filter(|found| !found.is_empty());
        Ok(found.map(|found| found.into_iter().take(limit).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::Mode;
    use crate::testing::Fixture;
    use serde_json::json;
    use std::time::Duration;

    const CONFIG: &str = "
type: object
path: Root:.
fields:
  uri: {type: id}
  serial: {type: string, path: <urn:p:serial>}
  tags: {type: array, path: <urn:p:tag>}
  state: {type: string, path: <urn:p:state>, values: {RUN: running, REST: resting}}
  next: {type: resource, path: <urn:p:next>}
  n: {type: number, path: <urn:p:n>}
  parts:
    type: array
    elements: {type: object, path: '<urn:p:part>/Part:.', fields: {label: {type: string, path: <urn:p:serial>}}}
";

    #[test]
    fn different_values_of_members_are_suggested_in_order() {
        let fixture = Fixture::with_definition(&json!({"name": "Root", "config": CONFIG}));
        let long = "a text that is longer than the key of the index, and goes on";
        for number in 0..40 {
            let object = json!({
                "uri": format!("urn:r:{number:02}"), "serial": format!("S-{}", number % 4), "n": number,
                "tags": [format!("{long}: {}", (number + 2) % 3), "tag"], "state": "RUN", "next": "urn:r:01",
                // A value of another object is no value of a member.
                "parts": [{"label": format!("S-{}x", number % 2)}],
            });
            fixture.send(Mode::Add, &object.to_string()).unwrap();
        }
        let suggest = |field: &str, prefix: &str, limit: usize| {
            let bounds = SearchBudget::new(10_000, Duration::from_mins(1));
            let read = fixture.store.read();
            let business_object = &fixture.business_object;
            suggest_values(&read, business_object, (field, prefix), limit, &bounds)
        };
        for (field, prefix, expected) in [
            ("serial", "", &["S-0", "S-1", "S-2"][..]),
            ("serial", "S-2", &["S-2"]),
            ("serial", "s", &[]),
            ("tags", "t", &["tag"]),
            ("state", "R", &["RUN"]),
            ("next", "urn:", &["urn:r:01"]),
            ("parts.label", "S", &["S-0x", "S-1x"]),
            ("uri", "urn:r:3", &["urn:r:30", "urn:r:31", "urn:r:32"]),
            ("n", "3", &["3", "30", "31"]),
        ] {
            assert_eq!(suggest(field, prefix, 3).unwrap(), expected, "{field} {prefix}");
        }
        // The index has the same first bytes of all of them.
        let texts: Vec<String> = (0..3).map(|number| format!("{long}: {number}")).collect();
        assert_eq!(suggest("tags", "a", 9).unwrap(), texts);
        assert_eq!(suggest("tags", "a", 2).unwrap(), texts[..2]);
        assert_eq!(suggest("tags", "", 9).unwrap().last().map(String::as_str), Some("tag"));
        assert!(suggest("nothing", "", 3).is_err());
    }
}
