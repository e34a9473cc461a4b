//! Searches the objects of a Business Object by the values that the view shows.
//!
//! `filter` has the conditions on an object, `field_name` finds the field that a name means, `text` reads conditions from
//! texts, and `matching` evaluates them. `order` and `cursor` have the position of an object in a listing. `clue` asks the
//! indexes about a filter, of which `values` knows which stored values a field shows how. `narrow` finds candidates, and
//! `page_search` reads and tests them. `ordered` lists objects in the order of the index of values, and `page` puts everything
//! together. `referrers` finds the objects that refer to an object. `walk` passes all selected objects to a function. `budget`
//! limits how many objects a search may examine.
//!
//! `fields` reads fields of many objects, each once and in the order of the store: for a `summary`, which counts them by
//! groups, for `facets` and the `distribution` of numbers, and for the `columns` of a table. `extreme` has the least and the
//! greatest of values. `suggest` completes a value, and `sparql` writes a search as a query.
//!
//! Values are compared as the view shows them. Of a field that is not an array, only the first value counts, and of a map,
//! only the members that the view shows. An object that is nested in itself counts only as its URI.
//!
//! # What an index answers
//! The indexes answer, also below nested objects at any depth:
//! - [`ValueTest::In`] for IRIs: a field of type `resource`, the URI of an object;
//! - every test but [`ValueTest::Contains`], [`ValueTest::ContainsAnyCase`] and [`ValueTest::Exists`] for literals, if not too
//!   many values pass it;
//! - the first page in the order of a field with strings, numbers, dates or times.
//!
//! What they answer are candidates: each is read and tested. For every other condition, the search reads and tests objects
//! page by page, so that commits do not wait. [`SearchBudget`] limits how many. A search that would need more fails; it
//! never returns an incomplete result. With and without the index of values, the result is the same.
//!
//! # Pages while data changes
//! A cursor holds the position of its object: the value that it is ordered by, and its URI. The next page contains
//! the objects after that position when it is read. So an object that does not change is listed exactly once, even
//! if others are added, changed or removed. An object whose position changes may be listed twice or not at all.

mod budget;
mod clue;
mod columns;
mod cursor;
mod distribution;
mod errors;
mod extreme;
mod facets;
mod field_name;
mod fields;
mod filter;
mod matching;
mod narrow;
mod order;
mod ordered;
mod page;
mod page_search;
mod referrers;
mod sparql;
mod suggest;
mod summary;
#[cfg(test)]
mod tests;
mod text;
mod values;
mod walk;

pub use budget::SearchBudget;
pub use columns::{CellValues, Column, Columns};
pub use cursor::refuse_search_cursor;
pub use distribution::{Distribution, NumberRange, count_distribution};
pub use facets::{Facet, FacetContent, FacetValue, count_facets, list_facet_fields};
pub use field_name::{SearchField, find_field_path, find_search_property, list_search_fields};
pub use filter::{ANY_MEMBER, Filter, ValueTest};
pub use order::Order;
pub use page::{
    FoundObject, ObjectCount, Search, SearchPage, count_objects, count_some, find_page,
};
pub use referrers::{ReferenceSearch, Referrer, ReferrersPage, find_referrers};
pub use sparql::write_sparql;
pub use suggest::suggest_values;
pub use summary::{
    AxisPeriod, Summary, SummaryPlan, SummaryRequest, SummaryRow, TimeAxis, find_begin_of_day,
    summarize,
};
pub use text::{TextFilter, join_parameter, list_tests, parse_filters, split_parameter};
pub use walk::{Selection, for_each_selected};
