//! Facets: the most frequent values of each field, beside the table.
use super::part_request::{PartRequest, explain};
use crate::admin::words::{self, name_text, shorten_text};
use askama::Template;
use penstock_http::problem::Problem;
use penstock_model::mapping::Property;
use penstock_model::search::{Facet, FacetContent, FacetValue, find_search_property};
use penstock_resources::view::ViewFilter;
use penstock_service::objects::{FoundFacet, IriNames, read_facets};
use std::collections::HashMap;

/// The width of the longest bar.
const BAR_WIDTH: u64 = 100;

#[derive(Template)]
#[template(path = "admin/objects/facets.html")]
pub(super) struct FacetsPart {
    content: Result<Vec<ShownFacet>, String>,
}

/// A facet on the page.
pub(super) struct ShownFacet {
    pub(super) field: String,
    pub(super) content: ShownContent,
    /// How many objects have no value, in words, and the address of the page with only them.
    pub(super) without: Option<(String, String)>,
}

/// What a facet shows.
pub(super) enum ShownContent {
    /// The most frequent values, and how many others there are, in words.
    Values(Vec<ShownValue>, Option<String>),
    /// The range of numbers or times, in words.
    Range(String),
    /// There are too many different values.
    TooMany,
}

/// A value of a facet.
pub(super) struct ShownValue {
    pub(super) text: String,
    /// The whole value, if the text is another form of it.
    pub(super) title: Option<String>,
    /// How many objects have it.
    pub(super) count: String,
    /// The length of its bar.
    pub(super) width: u64,
    /// The address of the page with a filter by this value; `None` if it has that already.
    pub(super) filter: Option<String>,
}

/// Builds the facets.
pub(super) async fn build(request: &PartRequest) -> Result<FacetsPart, Problem> {
    let found = match request.explore() {
        Ok(explored) => read_facets(&request.gateway, &request.by, explored, None).await,
        Err(error) => Err(error),
    };
    let content = explain(found)?.map(|facets| {
        let facets = facets.into_iter().map(|facet| ShownFacet::new(request, facet));
        facets.collect()
    });
    Ok(FacetsPart { content })
}

impl ShownFacet {
    pub(super) fn new(request: &PartRequest, found: FoundFacet) -> Self {
        let FoundFacet { facet: Facet { field, content, without }, labels } = found;
        let content = match content {
            FacetContent::TooMany => ShownContent::TooMany,
            FacetContent::Range(least, greatest) => {
                let property = find_search_property(request.shape(), &field);
                let show = |text: &str| match property {
                    Some(property) if property.is_date_time() => {
                        super::table::format_in_zone(text, &request.zone)
                    }
                    _ => shorten_text(text),
                };
                ShownContent::Range(format!("{} to {}", show(&least), show(&greatest)))
            }
            FacetContent::Values(values, others) => {
                let others = (others > 0)
                    .then(|| words::format_count(others as u64, "other value", "other values"));
                ShownContent::Values(show_values(request, &field, values, &labels), others)
            }
        };
        let without = (without > 0).then(|| {
            let only = request.state.with_condition(new_condition(&field, "exists", "false"));
            (words::format_number(without), request.address_of(&only))
        });
        Self { field, content, without }
    }
}

fn show_values(
    request: &PartRequest,
    field: &str,
    values: Vec<FacetValue>,
    labels: &HashMap<String, String>,
) -> Vec<ShownValue> {
    let property = find_search_property(request.shape(), field);
    let holds_iris = property.is_some_and(Property::holds_iris);
    let names = IriNames::new(&request.gateway);
    let most = values.iter().map(|value| value.count).max().unwrap_or(1).max(1);
    let shown = values.into_iter().map(|FacetValue { text, count }| {
        let condition = new_condition(field, "eq", &text);
        let is_new = !request.state.conditions.contains(&condition);
        let filter = is_new.then(|| request.address_of(&request.state.with_condition(condition)));
        let label = match labels.get(&text).filter(|label| **label != text) {
            Some(label) => name_text(label),
            None if holds_iris => names.shorten(&text).unwrap_or_else(|| text.clone()),
            None => name_text(&text),
        };
        ShownValue {
            title: (label != text).then_some(text),
            text: label,
            count: words::format_number(count),
            width: (count * BAR_WIDTH).div_ceil(most),
            filter,
        }
    });
    shown.collect()
}

fn new_condition(field: &str, test: &str, value: &str) -> ViewFilter {
    ViewFilter { field: field.to_owned(), test: test.to_owned(), value: value.to_owned() }
}
