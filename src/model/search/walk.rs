//! Passes all objects that a search finds to a function, in order.
use super::budget::{SearchBudget, refuse_past_limits};
use super::filter::Filter;
use super::order::{ListPosition, Order};
use super::page_search::{OrderField, PageSearch};
use crate::resource::Compiled;
use oxrdf::NamedNode;
use penstock_base::error::GatewayError;
use penstock_store::Read;

/// The number of objects that are read at a time in the order of the index of values.
const INDEXED_OBJECTS_PER_PAGE: usize = if cfg!(test) { 3 } else { 1_000 };
/// The maximum number of objects that are sorted in memory at a time.
const MAX_SORTED_OBJECTS: usize = if cfg!(test) { 3 } else { 10_000 };

/// Which objects of a Business Object are read, and in which order.
#[derive(Debug, Clone, Copy, Default)]
pub struct Selection<'s> {
    /// The filter that an object must pass.
    pub filter: Option<&'s Filter>,
    /// The order of the objects.
    pub order: Order,
}

/// Calls `visit` with each object of a Business Object that is selected, in order, until it fails. It also calls it with `None`
/// from time to time, so that it can end what finds nothing. The bounds limit only an order that no index has: otherwise all
/// objects are read, however many there are. Blocking.
///
/// # Errors
/// - `ErrorClass::Invalid` if the filter or the order does not fit the Business Object, or if ordering the objects would examine
///   more than the bounds allow; then `visit` was called with no object
/// - those of `visit`
pub fn for_each_selected(
    read: &dyn Read,
    business_object: &Compiled,
    selection: Selection<'_>,
    bounds: &SearchBudget,
    visit: &mut dyn FnMut(Option<&NamedNode>) -> Result<(), GatewayError>,
) -> Result<(), GatewayError> {
    let Selection { filter, order } = selection;
    let has_value = order.value_kind(&business_object.mapping.root)?.is_some();
    let unlimited = SearchBudget::unlimited();
    if !has_value && !order.descending {
        let run = PageSearch::new(read, business_object, filter, &unlimited)?;
        return run.for_each_page(None, usize::MAX, &mut |passed| visit(passed).map(|()| true));
    }
    let run = PageSearch::new(read, business_object, filter, bounds);
    let mut run = run.map_err(refuse_past_limits)?;
    let mut after: Option<ListPosition> = None;
    loop {
        visit(None)?;
        let page = list_page(&run, order, after.as_ref()).map_err(refuse_past_limits)?;
        let (places, is_sorted) = page;
        for place in &places {
            visit(Some(&NamedNode::new_unchecked(&place.uri)))?;
        }
        let limit = if is_sorted { MAX_SORTED_OBJECTS } else { INDEXED_OBJECTS_PER_PAGE };
        if places.len() < limit {
            return Ok(());
        }
        // The limits were enough for the first page, so either for all objects of this snapshot or with the index.
        run.set_budget(&unlimited);
        let is_tied = places.first().zip(places.last()).is_some_and(|(a, b)| a.is_tied_with(b));
        after = places.into_iter().next_back();
        if is_sorted
            && is_tied
            && let Some(last) = &mut after
        {
            visit_tied(&run, order, last, visit)?;
        }
    }
}

/// Visits the objects after a position that only the URI distinguishes from it, and moves it to the last of them. They are in the
/// order of their URIs, so one walk has all of them, where sorting would read all objects again for each page.
fn visit_tied(
    run: &PageSearch<'_>,
    order: Order,
    last: &mut ListPosition,
    visit: &mut dyn FnMut(Option<&NamedNode>) -> Result<(), GatewayError>,
) -> Result<(), GatewayError> {
    let Some(mut field) = OrderField::new(run.shape, order)? else { return Ok(()) };
    field.needs = run.with_tested(&field.needs);
    run.for_each_member(Some(last.uri.clone()), usize::MAX, &mut |member| {
        let Some(uri) = member else { return visit(None).map(|()| true) };
        if let Some(position) = run.read_position(&field, uri)?
            && position.is_tied_with(last)
        {
            visit(Some(uri))?;
            *last = position;
        }
        Ok(true)
    })
}

/// Returns the next objects in an order other than by URI, and whether they were sorted because the index did not help.
fn list_page(
    run: &PageSearch<'_>,
    order: Order,
    after: Option<&ListPosition>,
) -> Result<(Vec<ListPosition>, bool), GatewayError> {
    Ok(match run.list_by_values(order, after, INDEXED_OBJECTS_PER_PAGE)? {
        Some(places) => (places, false),
        None => (run.list_sorted(order, after, MAX_SORTED_OBJECTS)?, true),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::Mode;
    use crate::mapping::compile;
    use crate::search::{Search, ValueTest, find_page};
    use crate::testing::Fixture;
    use penstock_base::error::ErrorClass;
    use penstock_resources::namespace::Generator;
    use penstock_store::Options;
    use std::time::Duration;

    const CONFIG: &str = "
type: object
path: Root:.
fields:
  uri: {type: id}
  n: {type: number, path: <urn:p:n>}
  s: {type: string, path: <urn:p:s>}
";

    fn budget(max_objects: u64) -> SearchBudget {
        SearchBudget::new(max_objects, Duration::from_mins(1))
    }

    impl Fixture {
        fn walk(&self, selection: Selection<'_>, max: u64) -> Result<Vec<String>, GatewayError> {
            let mut found = Vec::new();
            for_each_selected(
                &self.store.snapshot().unwrap(),
                &self.business_object,
                selection,
                &budget(max),
                &mut |selected| {
                    found.extend(selected.map(|uri| uri.as_str().to_owned()));
                    Ok(())
                },
            )?;
            Ok(found)
        }
    }

    #[test]
    fn all_objects_come_in_the_order_of_pages_however_many_are_sorted_at_a_time() {
        let fixture = Fixture::new(compile(CONFIG).unwrap().root);
        for number in 0..11 {
            let n = number * 7 % 4;
            let n = if n == 3 { "null".to_owned() } else { n.to_string() };
            let object = format!(r#"{{"uri": "urn:r:{number:02}", "n": {n}, "s": "s{number}"}}"#);
            fixture.send(Mode::Add, &object).unwrap();
        }
        let shape = &fixture.business_object.mapping.root;
        let test = ValueTest::In((0..10).map(|number| format!("s{number}")).collect());
        let some = Filter::for_field(shape, &["s"], test).unwrap();
        for name in ["uri", "n", "s"] {
            for descending in [false, true] {
                for filter in [None, Some(&some)] {
                    let order = Order::by_field(shape, name, descending).unwrap();
                    let search = Search { filter, order, after: None, limit: 100 };
                    let read = fixture.store.snapshot().unwrap();
                    let page = find_page(&read, &fixture.business_object, &search, &budget(1_000));
                    let page = page.unwrap().found.into_iter();
                    let page: Vec<String> = page.map(|found| found.uri.into_string()).collect();
                    let selection = Selection { filter, order };
                    assert_eq!(fixture.walk(selection, 1_000).unwrap(), page, "{name}");
                }
            }
        }
        // Only an order needs the limits.
        assert_eq!(fixture.walk(Selection::default(), 0).unwrap().len(), 11);
        let walk = |name, max| {
            let order = Order::by_field(shape, name, true).unwrap();
            fixture.walk(Selection { filter: None, order }, max)
        };
        let error = walk("uri", 10).unwrap_err();
        assert_eq!(error.class, ErrorClass::Invalid, "{error}");
        // An order that the index has needs them only for what is read at a time.
        assert_eq!(walk("n", 10).unwrap().len(), 11);
    }

    #[test]
    fn objects_with_the_same_value_are_not_sorted_again_for_each_page() {
        let options = Options { value_index: false, ..Options::default() };
        let root = compile(CONFIG).unwrap().root;
        let fixture = Fixture::with_options(root, Generator::Uuid, options);
        let object = |number: usize| match number % 7 {
            0 => format!(r#"{{"uri": "urn:r:{number:03}", "s": "x"}}"#),
            rest => format!(r#"{{"uri": "urn:r:{number:03}", "s": "x", "n": {}}}"#, rest % 2),
        };
        let objects: Vec<String> = (0..140).map(object).collect();
        fixture.send(Mode::Add, &objects.join(",")).unwrap();
        let shape = &fixture.business_object.mapping.root;
        let read = fixture.store.snapshot().unwrap();
        for descending in [false, true] {
            let order = Order::by_field(shape, "n", descending).unwrap();
            let search = Search { order, limit: 1_000, ..Search::default() };
            let page = find_page(&read, &fixture.business_object, &search, &budget(1_000)).unwrap();
            let (mut pages, mut found) = (0, Vec::new());
            let mut visit = |selected: Option<&NamedNode>| {
                match selected {
                    Some(uri) => found.push(uri.clone()),
                    None => pages += 1,
                }
                Ok(())
            };
            let selection = Selection { filter: None, order };
            let object = &fixture.business_object;
            for_each_selected(&read, object, selection, &budget(1_000), &mut visit).unwrap();
            let expected: Vec<NamedNode> = page.found.into_iter().map(|one| one.uri).collect();
            assert_eq!(expected.len(), 140);
            assert_eq!(found, expected);
            // With three at a time there would be 47.
            assert!(pages < 20, "{pages} pages of three values");
        }
    }

    #[test]
    fn the_time_for_the_first_objects_does_not_end_the_walk_through_the_others() {
        let fixture = Fixture::new(compile(CONFIG).unwrap().root);
        let objects: Vec<String> = (0..11).map(|number| format!(r#"{{"n": {number}}}"#)).collect();
        fixture.send(Mode::Add, &objects.join(",")).unwrap();
        let shape = &fixture.business_object.mapping.root;
        let order = Order::by_field(shape, "uri", true).unwrap();
        let time = Duration::from_secs(3);
        let mut found = 0;
        for_each_selected(
            &fixture.store.snapshot().unwrap(),
            &fixture.business_object,
            Selection { filter: None, order },
            &SearchBudget::new(1_000, time),
            &mut |selected| {
                if selected.is_some() && found == 0 {
                    std::thread::sleep(time);
                }
                found += usize::from(selected.is_some());
                Ok(())
            },
        )
        .unwrap();
        assert_eq!(found, 11);
    }

    #[test]
    fn a_walk_that_finds_nothing_can_be_ended() {
        let fixture = Fixture::new(compile(CONFIG).unwrap().root);
        fixture.send(Mode::Add, r#"{"n": 1}"#).unwrap();
        let shape = &fixture.business_object.mapping.root;
        let test = ValueTest::Contains("x".to_owned());
        let none = Filter::for_field(shape, &["s"], test).unwrap();
        for order in [Order::default(), Order::by_field(shape, "n", false).unwrap()] {
            let ended = for_each_selected(
                &fixture.store.snapshot().unwrap(),
                &fixture.business_object,
                Selection { filter: Some(&none), order },
                &budget(10),
                &mut |_| Err(GatewayError::new(ErrorClass::Internal, "the reader is gone")),
            );
            assert_eq!(ended.unwrap_err().class, ErrorClass::Internal);
        }
    }
}
