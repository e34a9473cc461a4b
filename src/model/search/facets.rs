//! Facets: the most frequent values of several fields, the ranges of numbers and times, and how numbers are distributed. One
//! pass through the objects counts all of them.
//!
//! An object counts once for each of its values. Numbers beside other values are one value if they are equal, as they are for
//! a filter. Of a field with too many different values, objects are still read: the facet says how many have none.
use super::budget::SearchBudget;
use super::extreme::Extreme;
use super::field_name::{find_search_property, list_search_fields};
use super::fields::{Element, FieldTree, Slots, name_number};
use super::filter::Filter;
use super::page_search::PageSearch;
use crate::mapping::{Mapping, Shape};
use crate::resource::Compiled;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_rdf::compare::ValueOrder;
use penstock_store::Read;
use std::borrow::Cow;
use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;

/// The maximum number of facets of a Business Object.
const MAX_FACETS: usize = 16;
/// The maximum number of values that a facet shows.
const MAX_SHOWN_VALUES: usize = 8;
/// The maximum number of different values that are counted of one field.
const MAX_COUNTED_VALUES: usize = if cfg!(test) { 20 } else { 2_000 };
/// The maximum number of objects that are compared to find out whether two have the same nested object. Among 2,001 objects with
/// a value they have, or there are too many different values for a facet. Others may lie between them.
const MAX_COMPARED_OBJECTS: u64 = 10_000;
/// The maximum length of a value in bytes. A field with longer ones has texts that nobody chooses from a list.
const MAX_VALUE_BYTES: usize = 200;

/// What is known of the values of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facet {
    /// The name of the field.
    pub field: String,
    /// Its values.
    pub content: FacetContent,
    /// The number of objects without a value.
    pub without: u64,
}

/// The values of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FacetContent {
    /// The most frequent ones, and the number of different ones beside them.
    Values(Vec<FacetValue>, usize),
    /// The least and the greatest one.
    Range(String, String),
    /// There are too many different ones, or too long ones.
    TooMany,
}

/// A value, and how many objects have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FacetValue {
    /// The value as the view shows it.
    pub text: String,
    /// How many objects have it.
    pub count: u64,
}

/// Returns the fields of the objects themselves that are worth a facet: codes, booleans, references and texts, except for
/// what names the object, and numbers and times.
pub fn list_facet_fields(mapping: &Mapping) -> Vec<String> {
    let root = &mapping.root;
    let label = mapping.find_label_field().map(|(_, field)| field.name.as_str());
    let keys = root.key_names();
    let fields = list_search_fields(root).into_iter().filter(|field| {
        let name = field.name.as_str();
        let names_objects = Some(name) == label || keys.contains(&name);
        let is_own = root.find_field(name).is_some();
        is_own && !names_objects && field.property.value.language_map().is_none()
    });
    fields.take(MAX_FACETS).map(|field| field.name).collect()
}

/// Counts the values of these fields in the objects of a Business Object that pass the filter. A field without values has no
/// facet, nor has one of nested objects that each belong to one object, whatever the filter is. Blocking.
///
/// # Errors
/// `ErrorClass::Invalid` if the filter or a field does not fit the Business Object, or if this would examine more objects than
/// the bounds allow; the errors of the store.
pub fn count_facets(
    read: &dyn Read,
    business_object: &Compiled,
    filter: Option<&Filter>,
    fields: &[String],
    bounds: &SearchBudget,
) -> Result<Vec<Facet>, GatewayError> {
    let shape = &business_object.mapping.root;
    let (tree, mut counters) = prepare_counters(shape, fields.iter().map(String::as_str))?;
    tree.for_each_object(read, business_object, filter, bounds, &mut |object, _| {
        for counter in &mut counters {
            counter.add_object(&tree, object);
        }
        Ok(())
    })?;
    if filter.is_some() {
        find_shared_values(read, business_object, &mut counters, bounds)?;
    }
    Ok(counters.into_iter().filter_map(Counter::into_facet).collect())
}

/// Returns what reads these fields, and a counter for each.
fn prepare_counters<'f>(
    shape: &Shape,
    fields: impl Iterator<Item = &'f str>,
) -> Result<(FieldTree, Vec<Counter<'f>>), GatewayError> {
    let (mut slots, mut counters) = (Slots::default(), Vec::new());
    for field in fields {
        let (slot, order) = slots.add(shape, field)?;
        let property = find_search_property(shape, field);
        let has_codes = property.is_some_and(|property| property.codes.is_some());
        let content = if !has_codes && (order.is_number() || order.is_time()) {
            Counted::Range(order, Box::default())
        } else {
            Counted::Values(order, HashMap::new())
        };
        counters.push(Counter {
            field,
            slot,
            has_objects: property.is_some_and(|property| property.value.shape().is_some()),
            is_shared: false,
            objects: 0,
            without: 0,
            content,
        });
    }
    Ok((FieldTree::build(shape, &slots)?, counters))
}

/// Finds out whether nested objects that each have one object here have several without the filter. So a filter hides no
/// facet. The objects are read by URI, because that order is always the same.
fn find_shared_values(
    read: &dyn Read,
    business_object: &Compiled,
    counters: &mut [Counter<'_>],
    bounds: &SearchBudget,
) -> Result<(), GatewayError> {
    let counters = counters.iter_mut();
    let undecided: Vec<_> = counters.filter(|one| one.is_undecided() && one.has_values()).collect();
    if undecided.is_empty() {
        return Ok(());
    }
    let fields = undecided.iter().map(|counter| counter.field);
    let (tree, mut all) = prepare_counters(&business_object.mapping.root, fields)?;
    let bounds = bounds.limited_to(MAX_COMPARED_OBJECTS);
    let run = PageSearch::new(read, business_object, None, &bounds)?;
    let compared = run.for_each_passing(None, MAX_COUNTED_VALUES, &mut |uri| {
        let object = tree.read_root(&run.new_tested(uri))?;
        for counter in &mut all {
            counter.add_object(&tree, &object);
        }
        Ok(all.iter().any(Counter::is_undecided))
    });
    // As far as the limits allow.
    compared.or_else(|error| match error.class {
        ErrorClass::TooLarge => Ok(()),
        _ => Err(error),
    })?;
    for (counter, all) in undecided.into_iter().zip(all) {
        counter.is_shared = all.is_shared;
    }
    Ok(())
}

/// What was counted of a field so far.
struct Counter<'f> {
    field: &'f str,
    slot: usize,
    /// Whether the values are nested objects.
    has_objects: bool,
    /// Whether several objects have the same value.
    is_shared: bool,
    objects: u64,
    without: u64,
    content: Counted,
}

enum Counted {
    /// How many objects have each value, by its name.
    Values(ValueOrder, HashMap<String, ValueCount>),
    /// The least and the greatest value.
    Range(ValueOrder, Box<[Option<Extreme>; 2]>),
    TooMany,
}

/// How many objects have a value, and the number of the last one.
struct ValueCount {
    count: u64,
    last: u64,
    /// The first text by code point, if the name is that of a number.
    text: Option<Box<str>>,
}

/// Returns the name of a value, which is the same for equal values.
fn name_value(order: ValueOrder, text: &str) -> Cow<'_, str> {
    let number = if order == ValueOrder::Scalar { name_number(text) } else { None };
    number.map_or(Cow::Borrowed(text), Cow::Owned)
}

impl Counter<'_> {
    fn add_object(&mut self, tree: &FieldTree, object: &Element<'_>) {
        self.objects += 1;
        let mut has_value = false;
        tree.visit_texts(object, self.slot, &mut |text| {
            has_value = true;
            self.add_text(text);
        });
        if !has_value {
            self.without += 1;
        }
    }

    fn add_text(&mut self, text: &str) {
        match &mut self.content {
            Counted::TooMany => {}
            Counted::Range(order, range) => {
                let [least, greatest] = &mut **range;
                Extreme::update(least, *order, text, Ordering::Less);
                Extreme::update(greatest, *order, text, Ordering::Greater);
            }
            Counted::Values(order, counts) => {
                let name = name_value(*order, text);
                if let Some(known) = counts.get_mut(&*name) {
                    // Otherwise the object has it twice, such as in two nested objects.
                    if known.last != self.objects {
                        known.count += 1;
                        known.last = self.objects;
                        self.is_shared = true;
                    }
                    if let Some(kept) = &mut known.text
                        && *text < **kept
                    {
                        *kept = text.into();
                    }
                } else {
                    let is_number = matches!(name, Cow::Owned(_));
                    let text = is_number.then(|| text.into());
                    let first = ValueCount { count: 1, last: self.objects, text };
                    counts.insert(name.into_owned(), first);
                }
                if text.len() > MAX_VALUE_BYTES || counts.len() > MAX_COUNTED_VALUES {
                    self.content = Counted::TooMany;
                }
            }
        }
    }

    fn has_values(&self) -> bool {
        self.without < self.objects
    }

    /// Returns whether the values are nested objects that each belong to one object, so far.
    fn is_undecided(&self) -> bool {
        self.has_objects && !self.is_shared && matches!(self.content, Counted::Values(..))
    }

    fn into_facet(self) -> Option<Facet> {
        // Nobody chooses from the URIs of objects that each belong to one other.
        if !self.has_values() || self.is_undecided() {
            return None;
        }
        let content = match self.content {
            Counted::TooMany if self.has_objects => return None,
            Counted::TooMany => FacetContent::TooMany,
            Counted::Range(_, range) => {
                let [least, greatest] =
                    range.map(|extreme| extreme.map(|one| one.text().to_owned()));
                FacetContent::Range(least?, greatest?)
            }
            Counted::Values(_, counts) => {
                let values = counts.into_iter().map(|(name, known)| FacetValue {
                    text: known.text.map_or(name, String::from),
                    count: known.count,
                });
                let mut values: Vec<_> = values.collect();
                values.sort_by(|one, other| {
                    (Reverse(one.count), &one.text).cmp(&(Reverse(other.count), &other.text))
                });
                let others = values.len().saturating_sub(MAX_SHOWN_VALUES);
                values.truncate(MAX_SHOWN_VALUES);
                FacetContent::Values(values, others)
            }
        };
        Some(Facet { field: self.field.to_owned(), content, without: self.without })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::Mode;
    use crate::search::ValueTest;
    use crate::testing::Fixture;
    use serde_json::json;
    use std::time::Duration;

    const CONFIG: &str = "
type: object
path: Root:.
key: tag
label: name
fields:
  uri: {type: id}
  tag: {type: string, path: <urn:p:tag>, required: true}
  name: {type: string, path: <urn:p:name>}
  n: {type: number, path: <urn:p:n>}
  at: {type: dateTime, path: <urn:p:at>}
  on: {type: boolean, path: <urn:p:on>}
  state: {type: string, path: <urn:p:state>, values: {0: 'off', 1: 'on'}}
  tags: {type: array, path: <urn:p:tags>}
  note: {type: string, path: <urn:p:note>}
  title: {type: languageMap, path: <urn:p:title>}
  limits: {type: group, fields: {low: {type: number, path: <urn:p:low>}}}
  site: {type: object, path: '<urn:p:site>/Site:.', fields: {room: {type: string, path: <urn:p:room>}}}
  part: {type: object, path: '<urn:p:part>/Part:.', fields: {size: {type: number, path: <urn:p:size>}}}
";

    fn bounds(max_objects: u64) -> SearchBudget {
        SearchBudget::new(max_objects, Duration::from_mins(1))
    }

    fn fixture() -> Fixture {
        let fixture = Fixture::with_definition(&json!({"name": "Root", "config": CONFIG}));
        for number in 0..30 {
            let object = json!({
                "tag": format!("T{number}"), "name": "x", "n": number % 7, "at": format!("2024-01-{:02}T00:00:00Z", number + 1),
                "on": number % 3 == 0, "state": number % 2, "tags": ["a", format!("t{}", number % 12)], "note": format!("n{number}"),
                "part": if number < 9 { json!({"size": number}) } else { json!(null) },
                "site": if number < 20 { json!({"uri": "urn:s:1"}) } else { json!(null) },
            });
            fixture.send(Mode::Add, &object.to_string()).unwrap();
        }
        fixture
    }

    fn count(
        fixture: &Fixture,
        filter: Option<&Filter>,
        max: u64,
    ) -> Result<Vec<Facet>, GatewayError> {
        let business_object = &fixture.business_object;
        let fields = list_facet_fields(&business_object.mapping);
        count_facets(&fixture.store.read(), business_object, filter, &fields, &bounds(max))
    }

    fn values(facet: &Facet) -> (Vec<(&str, u64)>, usize) {
        let FacetContent::Values(values, others) = &facet.content else { panic!("{facet:?}") };
        (values.iter().map(|one| (one.text.as_str(), one.count)).collect(), *others)
    }

    #[test]
    fn the_fields_of_objects_have_facets_except_for_what_names_them() {
        let fixture = fixture();
        let facets = count(&fixture, None, 1_000).unwrap();
        let fields: Vec<&str> = facets.iter().map(|facet| facet.field.as_str()).collect();
        // A field without values has none, nor has one whose objects have minted URIs.
        assert_eq!(fields, ["n", "at", "on", "state", "tags", "note", "site"]);
        let range = |from: &str, to: &str| FacetContent::Range(from.to_owned(), to.to_owned());
        assert_eq!(facets[0].content, range("0", "6"));
        assert_eq!(facets[1].content, range("2024-01-01T00:00:00Z", "2024-01-30T00:00:00Z"));
        assert_eq!(values(&facets[2]), (vec![("false", 20), ("true", 10)], 0));
        assert_eq!(values(&facets[3]), (vec![("0", 15), ("1", 15)], 0));
        let (tags, others) = values(&facets[4]);
        assert_eq!((tags[0], tags[1], others), (("a", 30), ("t0", 3), 5));
        assert_eq!(facets[5].content, FacetContent::TooMany);
        assert_eq!((values(&facets[6]), facets[6].without), ((vec![("urn:s:1", 20)], 0), 10));
    }

    #[test]
    fn facets_count_what_passes_the_filter_within_the_limits() {
        let fixture = fixture();
        let shape = &fixture.business_object.mapping.root;
        let test = ValueTest::In(vec!["true".to_owned()]);
        let filter = Filter::for_field(shape, &["on"], test).unwrap();
        let facets = count(&fixture, Some(&filter), 1_000).unwrap();
        assert_eq!(values(&facets[2]), (vec![("true", 10)], 0));
        let error = count(&fixture, None, 29).unwrap_err();
        assert_eq!(error.class, ErrorClass::Invalid, "{error}");
    }

    #[test]
    fn a_filter_hides_no_facet_of_shared_objects() {
        let fixture = fixture();
        let shape = &fixture.business_object.mapping.root;
        let test = ValueTest::In(vec!["T7".to_owned()]);
        let filter = Filter::for_field(shape, &["tag"], test).unwrap();
        let facets = count(&fixture, Some(&filter), 1_000).unwrap();
        let fields: Vec<&str> = facets.iter().map(|facet| facet.field.as_str()).collect();
        // Its part belongs to no other object.
        assert_eq!(fields, ["n", "at", "on", "state", "tags", "note", "site"]);
        assert_eq!(values(&facets[6]), (vec![("urn:s:1", 1)], 0));
        // Without a value there is none.
        let test = ValueTest::In(vec!["T29".to_owned()]);
        let filter = Filter::for_field(shape, &["tag"], test).unwrap();
        let facets = count(&fixture, Some(&filter), 1_000).unwrap();
        assert!(facets.iter().all(|facet| facet.field != "site"), "{facets:?}");
    }

    #[test]
    fn an_object_counts_once_for_a_value() {
        let config = "
type: object
path: Root:.
fields:
  name: {type: string, path: <urn:p:name>}
  inner:
    type: array
    path: <urn:p:inner>
    elements: {type: object, path: 'Inner:.', fields: {s: {type: string, path: <urn:p:s>}}}
";
        let fixture = Fixture::with_definition(&json!({"name": "Root", "config": config}));
        for texts in [&["a", "a", "b"][..], &["b", "b"], &[]] {
            let inner: Vec<_> = texts.iter().map(|text| json!({"s": text})).collect();
            fixture.send(Mode::Add, &json!({"name": "x", "inner": inner}).to_string()).unwrap();
        }
        let (fields, business_object) = (["inner.s".to_owned()], &fixture.business_object);
        let facets =
            count_facets(&fixture.store.read(), business_object, None, &fields, &bounds(1_000));
        let facets = facets.unwrap();
        assert_eq!((values(&facets[0]), facets[0].without), ((vec![("b", 2), ("a", 1)], 0), 1));
    }

    #[test]
    fn equal_numbers_are_one_value_with_the_count_of_its_filter() {
        let config =
            "{type: object, path: 'Root:.', fields: {any: {type: scalar, path: <urn:p:any>}}}";
        let fixture = Fixture::with_definition(&json!({"name": "Root", "config": config}));
        for value in ["1.0", "1", "1e0", "\"1\"", "2.50", "2.5", "true", "\"x\"", "\"x\""] {
            fixture.send(Mode::Add, &format!("{{\"any\": {value}}}")).unwrap();
        }
        let (fields, business_object) = (["any".to_owned()], &fixture.business_object);
        let count = |filter: Option<&Filter>| {
            let read = fixture.store.read();
            count_facets(&read, business_object, filter, &fields, &bounds(1_000)).unwrap()
        };
        let all = count(None);
        let expected = [("1", 4), ("2.5", 2), ("x", 2), ("true", 1)];
        assert_eq!(values(&all[0]), (expected.to_vec(), 0));
        for (text, found) in expected {
            let test = ValueTest::In(vec![text.to_owned()]);
            let filter = Filter::for_field(&business_object.mapping.root, &["any"], test).unwrap();
            assert_eq!(values(&count(Some(&filter))[0]), (vec![(text, found)], 0));
        }
    }
}
