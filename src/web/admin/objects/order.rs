//! The order of the table: the heads of its columns.
use super::columns::TableColumn;
use super::state::{State, URI};
use penstock_model::mapping::{Field, Property, Shape};

/// The head of a column.
pub(super) struct SortHeader {
    pub(super) name: String,
    /// The address of the table in the order of this column, if it has one.
    pub(super) link: Option<String>,
    /// The value of `aria-sort`, if the table is in the order of this column.
    pub(super) direction: Option<&'static str>,
    /// Whether the column has numbers.
    pub(super) is_number: bool,
}

/// Returns the heads of the label, or the URI without one, and of these columns. `address` returns the address of the table in
/// an order.
pub(super) fn list_headers(
    state: &State,
    shape: &Shape,
    label: Option<&str>,
    columns: &[TableColumn<'_>],
    address: &dyn Fn(&str) -> String,
) -> Vec<SortHeader> {
    let build = |name: &str, words: &str, is_number: bool| {
        let field = shape.find_field(name);
        let is_sortable = name == URI || field.is_some_and(is_sortable);
        let begins_descending = field.is_some_and(Field::is_single_time);
        let sort = (name, begins_descending);
        let (link, direction) = if is_sortable {
            let (next, direction) = find_next_order(state, sort);
            (Some(address(&next)), direction)
        } else {
            (None, None)
        };
        SortHeader { name: words.to_owned(), link, direction, is_number }
    };
    let first = label.map_or_else(|| build(URI, "URI", false), |label| build(label, label, false));
    let others = columns.iter().map(|column| build(&column.name, &column.name, column.is_number()));
    std::iter::once(first).chain(others).collect()
}

/// Returns the order after a click on a head, and the direction of the current one. Times begin with the newest, everything
/// else with the first. A second click reverses the order.
fn find_next_order(
    state: &State,
    (name, begins_descending): (&str, bool),
) -> (String, Option<&'static str>) {
    let (current, is_descending) = state.order_field();
    let is_current = current == name;
    let descends = if is_current { !is_descending } else { begins_descending };
    let next = match (descends, name) {
        (true, name) => format!("-{name}"),
        (false, URI) => String::new(),
        (false, name) => name.to_owned(),
    };
    let direction = if is_descending { "descending" } else { "ascending" };
    (next, is_current.then_some(direction))
}

/// Whether objects can be ordered by a field.
fn is_sortable(field: &Field) -> bool {
    field.property().is_some_and(Property::is_orderable)
        // Such a name would be read as a descending order.
        && !field.name.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::objects::columns::list_columns;
    use penstock_base::time_zone::Zone;
    use penstock_model::mapping::compile;

    const MAPPING: &str = "
type: object
path: A:.
fields:
  name: {type: string, path: <urn:n>}
  at: {type: dateTime, path: <urn:a>}
  tags: {type: array, path: <urn:t>}
  place: {type: object, path: '<urn:p>/Place:.', fields: {room: {type: string, path: <urn:r>}}}
";

    fn headers(sort: &str) -> Vec<(Option<String>, Option<&'static str>)> {
        let root = compile(MAPPING).unwrap().root;
        let pairs = [("orderBy".to_owned(), sort.to_owned())];
        let state = State::new(&root, None, &pairs, &Zone::UTC);
        let names = ["at", "tags", "place.room"].map(str::to_owned);
        let columns = list_columns(&root, &names);
        let headers = list_headers(&state, &root, Some("name"), &columns, &|sort| sort.to_owned());
        headers.into_iter().map(|header| (header.link, header.direction)).collect()
    }

    #[test]
    fn the_first_click_on_a_time_shows_the_newest_first() {
        let link = |text: &str| Some(text.to_owned());
        let others = [(None, None), (None, None)];
        let unsorted = [(link("name"), None), (link("-at"), None)];
        assert_eq!(headers("uri"), [unsorted, others.clone()].concat());
        let newest = [(link("name"), None), (link("at"), Some("descending"))];
        assert_eq!(headers("-at"), [newest, others.clone()].concat());
        let by_name = [(link("-name"), Some("ascending")), (link("-at"), None)];
        assert_eq!(headers("name"), [by_name, others].concat());
    }
}
