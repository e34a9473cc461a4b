//! The order of a list of objects: the parameter `sort` of the address, a field or `uri`, with `-` before it for descending.
use crate::admin::filter_bar::Select;
use penstock_base::error::GatewayError;
use penstock_model::mapping::{Field, FieldKind, Property, Shape};
use penstock_model::search::Order;

/// The name that orders by URI.
const URI: &str = "uri";

/// The order that the address names.
pub(super) struct Sorting(String);

/// The head of a column.
pub(super) struct SortHeader {
    pub(super) name: String,
    /// The address of the list in the order of this column, if it has one.
    pub(super) link: Option<String>,
    /// The value of `aria-sort`, if the list is in the order of this column.
    pub(super) direction: Option<&'static str>,
}

impl Sorting {
    /// Reads the parameter `sort`.
    pub(super) fn read(parameter: Option<&str>) -> Self {
        Self(parameter.filter(|sort| *sort != URI).unwrap_or_default().to_owned())
    }

    /// Returns the parameter `sort`; empty for the order by URI.
    pub(super) fn as_parameter(&self) -> &str {
        &self.0
    }

    fn is_descending(&self) -> bool {
        self.0.starts_with('-')
    }

    /// Returns the name of the field.
    fn field(&self) -> &str {
        match self.0.strip_prefix('-').unwrap_or(&self.0) {
            "" => URI,
            name => name,
        }
    }

    /// Returns the order.
    pub(super) fn build_order(&self, shape: &Shape) -> Result<Order, GatewayError> {
        Order::by_field(shape, self.field(), self.is_descending())
    }

    /// Returns the orders that the form offers.
    pub(super) fn list_choices(&self, shape: &Shape) -> Select {
        let sortable = shape.fields.iter().filter(|field| is_sortable(field));
        let by_field = sortable.flat_map(|field| {
            let [first, last] = describe_directions(field);
            let name = &field.name;
            [
                (name.clone(), format!("{name}, {first}")),
                (format!("-{name}"), format!("{name}, {last}")),
            ]
        });
        let by_uri =
            [(String::new(), "URI".to_owned()), (format!("-{URI}"), "URI, descending".to_owned())];
        Select::new("sort", "Order", by_uri.into_iter().chain(by_field), Some(&self.0))
    }

    /// Returns the heads of these columns. If none of them is the label, the first one is the URI. `address` returns the
    /// address of the list in an order.
    pub(super) fn list_headers<'f>(
        &self,
        has_label: bool,
        columns: impl Iterator<Item = &'f Field>,
        address: &dyn Fn(&str) -> String,
    ) -> Vec<SortHeader> {
        let mut headers = Vec::new();
        if !has_label {
            headers.push(self.build_header("URI", URI, false, address));
        }
        for field in columns {
            headers.push(if is_sortable(field) {
                self.build_header(&field.name, &field.name, field.is_single_time(), address)
            } else {
                SortHeader { name: field.name.clone(), link: None, direction: None }
            });
        }
        headers
    }

    /// Times begin with the newest, everything else with the first. A second click reverses the order.
    fn build_header(
        &self,
        words: &str,
        name: &str,
        begins_descending: bool,
        address: &dyn Fn(&str) -> String,
    ) -> SortHeader {
        let is_current = self.field() == name;
        let descends = if is_current { !self.is_descending() } else { begins_descending };
        let sort = match (descends, name) {
            (true, name) => format!("-{name}"),
            (false, URI) => String::new(),
            (false, name) => name.to_owned(),
        };
        SortHeader {
            name: words.to_owned(),
            link: Some(address(&sort)),
            direction: is_current
                .then(|| if self.is_descending() { "descending" } else { "ascending" }),
        }
    }
}

/// Whether objects can be ordered by a field.
fn is_sortable(field: &Field) -> bool {
    field.property().is_some_and(Property::is_orderable)
        // Such a name would be read as a descending order.
        && !field.name.starts_with('-')
}

/// Returns what comes first in ascending and in descending order.
fn describe_directions(field: &Field) -> [&'static str; 2] {
    match &field.kind {
        _ if field.is_single_time() => ["oldest first", "newest first"],
        FieldKind::Property(property) if property.order().is_number() => {
            ["lowest first", "highest first"]
        }
        _ => ["ascending", "descending"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPPING: &str = "
type: object
path: A:.
fields:
  name: {type: string, path: <urn:n>}
  at: {type: dateTime, path: <urn:a>}
  tags: {type: array, path: <urn:t>}
";

    fn headers(sort: &str) -> Vec<(Option<String>, Option<&'static str>)> {
        let root = penstock_model::mapping::compile(MAPPING).unwrap().root;
        let sorting = Sorting::read(Some(sort));
        let headers = sorting.list_headers(true, root.fields.iter(), &|sort| sort.to_owned());
        headers.into_iter().map(|header| (header.link, header.direction)).collect()
    }

    #[test]
    fn the_first_click_on_a_time_shows_the_newest_first() {
        let link = |text: &str| Some(text.to_owned());
        let unsorted = [(link("name"), None), (link("-at"), None), (None, None)];
        assert_eq!(headers("uri"), unsorted);
        let newest = [(link("name"), None), (link("at"), Some("descending")), (None, None)];
        assert_eq!(headers("-at"), newest);
        let by_name = [(link("-name"), Some("ascending")), (link("-at"), None), (None, None)];
        assert_eq!(headers("name"), by_name);
    }

    #[test]
    fn the_form_offers_both_directions_of_each_sortable_field() {
        let root = penstock_model::mapping::compile(MAPPING).unwrap().root;
        let choices = Sorting::read(Some("-at")).list_choices(&root).choices;
        let values: Vec<_> = choices.iter().map(|choice| choice.value.as_str()).collect();
        assert_eq!(values, ["", "-uri", "name", "-name", "at", "-at"]);
        assert!(choices[5].is_chosen && choices[5].words == "at, newest first");
        let order = Sorting::read(Some("-at")).build_order(&root).unwrap();
        assert_eq!(order, Order { field: Some(1), descending: true });
        assert!(Sorting::read(Some("tags")).build_order(&root).is_err());
    }
}
