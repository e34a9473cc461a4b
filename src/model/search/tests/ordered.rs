//! What a listing in the order of a field reads of the index of values.
use super::values::{fixture_with_quads, fixture_with_unique_values};
use super::*;
use crate::search::page_search::PageSearch;
use oxrdf::vocab::xsd;
use oxrdf::{NamedNodeRef, Quad};
use penstock_store::{
    Document, DocumentRange, Error, Pattern, Snapshot, SubjectFilter, ValueClass, ValueKey,
    ValueRange, VisitValue,
};
use std::cell::Cell;
use std::ops::ControlFlow;

const CONFIG: &str = "
type: object
path: Root:.
fields:
  n: {type: number, path: <urn:p:n>}
  s: {type: string, path: <urn:p:s>}
";

/// Counts how often a range of values is read.
struct CountingRead {
    snapshot: Snapshot,
    counted: ValueRange,
    count: Cell<usize>,
}

impl Read for CountingRead {
    fn for_each(
        &self,
        pattern: &Pattern,
        visit: &mut dyn FnMut(Quad) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.snapshot.for_each(pattern, visit)
    }

    fn list_subjects(
        &self,
        filter: &SubjectFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<NamedNode>, Error> {
        self.snapshot.list_subjects(filter, after, limit)
    }

    fn read_document(&self, collection: &str, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.snapshot.read_document(collection, key)
    }

    fn read_documents(
        &self,
        collection: &str,
        range: DocumentRange<'_>,
    ) -> Result<Vec<Document>, Error> {
        self.snapshot.read_documents(collection, range)
    }

    fn visit_values(
        &self,
        property: NamedNodeRef<'_>,
        range: &ValueRange,
        reverse: bool,
        visit: &mut VisitValue<'_>,
    ) -> Result<bool, Error> {
        self.count.set(self.count.get() + usize::from(*range == self.counted));
        self.snapshot.visit_values(property, range, reverse, visit)
    }

    fn estimate_values(
        &self,
        property: NamedNodeRef<'_>,
        range: &ValueRange,
    ) -> Result<Option<u64>, Error> {
        self.snapshot.estimate_values(property, range)
    }
}

/// Creates 100 objects with the number 1.5, of which five have a text. Two others have numbers that are rounded to it: one that
/// is less, and one that is greater.
fn fixture_with_one_number() -> (Fixture, CountingRead) {
    let node = |iri: String| NamedNode::new_unchecked(iri);
    let quad = |number: usize, property: &str, value: Literal| {
        let subject = node(format!("urn:Root:{number:03}"));
        Quad::new(subject, node(format!("urn:p:{property}")), value, node("http://x/Root/".into()))
    };
    let decimal = |text: &str| Literal::new_typed_literal(text, xsd::DECIMAL);
    // The URIs are not in the order of the ids.
    let mut quads: Vec<Quad> = (0..100).rev().map(|at| quad(at, "n", decimal("1.5"))).collect();
    quads.extend((0..5).map(|at| quad(at, "s", Literal::from("few"))));
    quads.push(quad(500, "n", decimal("1.49999999999999999999")));
    quads.push(quad(501, "n", decimal("1.50000000000000000001")));
    let fixture = fixture_with_quads(CONFIG, true, &quads);
    let (class, key) = ValueKey::of(decimal("1.5").as_ref());
    assert_eq!(class, ValueClass::Number);
    let counted = ValueRange::of_key(class, &key).rounded_only();
    let snapshot = fixture.store.snapshot().unwrap();
    (fixture, CountingRead { snapshot, counted, count: Cell::default() })
}

#[test]
fn rounded_values_are_looked_for_once_for_all_pages() {
    let (fixture, read) = fixture_with_one_number();
    for descending in [false, true] {
        let order = Order { field: Some(0), descending };
        let mut found = Vec::new();
        let selection = Selection { filter: None, order };
        for_each_selected(&read, &fixture.business_object, selection, &bounds(), &mut |selected| {
            found.extend(selected.map(|uri| uri.as_str().to_owned()));
            Ok(())
        })
        .unwrap();
        let ends = if descending { [501, 500] } else { [500, 501] };
        let [first, last] = ends.map(|number| format!("urn:Root:{number}"));
        let equal = (0..100).map(|number| format!("urn:Root:{number:03}"));
        let expected: Vec<_> = std::iter::once(first).chain(equal).chain([last]).collect();
        assert_eq!(found, expected);
        assert_eq!(read.count.take(), 1);
    }
}

#[test]
fn for_few_candidates_many_equal_values_are_not_read() {
    let (fixture, read) = fixture_with_one_number();
    let shape = &fixture.business_object.mapping.root;
    let few = Filter::for_field(shape, &["s"], ValueTest::In(vec!["few".to_owned()])).unwrap();
    let order = Order { field: Some(0), descending: false };
    let search = Search { filter: Some(&few), order, after: None, limit: 10 };
    let page = find_page(&read, &fixture.business_object, &search, &bounds()).unwrap();
    let found: Vec<_> = page.found.iter().map(|found| found.uri.as_str()).collect();
    assert_eq!(
        found,
        ["urn:Root:000", "urn:Root:001", "urn:Root:002", "urn:Root:003", "urn:Root:004"]
    );
    assert_eq!(read.count.take(), 0);
}

#[test]
fn no_more_objects_are_visited_than_there_are_candidates() {
    let fixture = fixture_with_unique_values(true);
    let shape = &fixture.business_object.mapping.root;
    let test = ValueTest::StartsWith("SN-07".to_owned());
    let ten = Filter::for_field(shape, &["s"], test).unwrap();
    let (budget, snapshot) = (bounds(), fixture.store.snapshot().unwrap());
    let run = PageSearch::new(&snapshot, &fixture.business_object, Some(&ten), &budget).unwrap();
    let list_first =
        |descending| run.list_by_values(Order { field: Some(2), descending }, None, 1).unwrap();
    // The first of the ten is the 48th of all objects in this order, and the eighth in the other.
    assert_eq!(list_first(true), None);
    let found = list_first(false).unwrap();
    assert_eq!(found[0].uri, "urn:r:007");
}
