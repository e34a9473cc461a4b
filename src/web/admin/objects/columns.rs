//! The columns of the table: which ones it has, and which ones it can have.
use penstock_model::mapping::{Field, FieldKind, Mapping, Property, Shape};
use penstock_model::search::{Columns, find_search_property, list_search_fields};
use penstock_resources::view::MAX_COLUMNS;

/// The maximum number of columns of a mapping that nobody has chosen.
const MAX_DEFAULT_COLUMNS: usize = 4;
/// The maximum number of fields that can be added.
const MAX_OFFERED_FIELDS: usize = 200;

/// A column of the table.
#[derive(Debug, Clone)]
pub(super) struct TableColumn<'s> {
    /// The name of the field.
    pub(super) name: String,
    /// The field; `None` for a URI.
    pub(super) property: Option<&'s Property>,
}

impl TableColumn<'_> {
    pub(super) fn is_number(&self) -> bool {
        self.property.is_some_and(|property| property.order().is_number())
    }

    /// Whether it has dates with times, which a time zone changes.
    pub(super) fn is_date_time(&self) -> bool {
        self.property.is_some_and(Property::is_date_time)
    }

    pub(super) fn holds_iris(&self) -> bool {
        self.property.is_none_or(Property::holds_iris)
    }
}

/// Returns those of these names that a table can show, each once.
pub(super) fn find_columns(shape: &Shape, names: Vec<String>) -> Vec<String> {
    let mut columns = Vec::new();
    for name in names {
        let is_shown = Columns::new(shape, [name.as_str()]).is_ok();
        if is_shown && !columns.contains(&name) && columns.len() < MAX_COLUMNS {
            columns.push(name);
        }
    }
    columns
}

/// Returns the columns of these names.
pub(super) fn list_columns<'s>(shape: &'s Shape, names: &[String]) -> Vec<TableColumn<'s>> {
    let columns = names.iter().map(|name| TableColumn {
        name: name.clone(),
        property: find_search_property(shape, name),
    });
    columns.collect()
}

/// Returns the fields that a table shows beside the label if nobody has chosen others: the first ones that have values, and the
/// first time.
pub(super) fn list_default_columns(mapping: &Mapping) -> Vec<String> {
    let label = mapping.find_label_field().map(|(_, field)| &field.name);
    let holds_values = |field: &&Field| {
        Some(&field.name) != label && field.kind != FieldKind::Id && !field.contains_objects()
    };
    let fields = || mapping.root.fields.iter().filter(holds_values);
    let mut columns: Vec<&Field> = fields().take(MAX_DEFAULT_COLUMNS).collect();
    if !columns.iter().any(|field| field.is_single_time())
        && let Some(time) = fields().find(|field| field.is_single_time())
    {
        columns.truncate(MAX_DEFAULT_COLUMNS - 1);
        columns.push(time);
    }
    columns.into_iter().map(|field| field.name.clone()).collect()
}

/// Returns the fields that can be added to these columns.
pub(super) fn list_offered(shape: &Shape, columns: &[String]) -> Vec<String> {
    let fields = list_search_fields(shape).into_iter().map(|field| field.name);
    let names = std::iter::once("uri".to_owned()).chain(fields);
    names.filter(|name| !columns.contains(name)).take(MAX_OFFERED_FIELDS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_model::mapping::compile;

    const MAPPING: &str = "
type: object
path: A:.
fields:
  name: {type: string, path: <urn:n>}
  a: {type: string, path: <urn:1>}
  b: {type: number, path: <urn:2>}
  c: {type: boolean, path: <urn:3>}
  d: {type: string, path: <urn:4>}
  at: {type: dateTime, path: <urn:5>}
  data: {type: json, path: <urn:6>}
  place: {type: object, path: '<urn:p>/Place:.', fields: {room: {type: string, path: <urn:r>}}}
  sensors: {type: map, path: '<urn:s>/Sensor:.', key: {path: <urn:k>}, elements: {type: number, path: <urn:v>}}
";

    #[test]
    fn the_columns_of_a_mapping_are_the_first_fields_and_the_first_time() {
        let mapping = compile(MAPPING).unwrap();
        assert_eq!(list_default_columns(&mapping), ["a", "b", "c", "at"]);
        let offered = list_offered(&mapping.root, &["a".to_owned()]);
        assert!(offered.contains(&"place.room".to_owned()) && !offered.contains(&"a".to_owned()));
    }

    #[test]
    fn columns_that_do_not_exist_are_left_out() {
        let root = compile(MAPPING).unwrap().root;
        let names = ["place.room", "gone", "b", "b", "sensors", "sensors.T1", "data", "uri"];
        let found = find_columns(&root, names.map(str::to_owned).to_vec());
        assert_eq!(found, ["place.room", "b", "sensors.T1", "data", "uri"]);
        let columns = list_columns(&root, &found);
        assert!(columns[1].is_number() && columns[2].is_number() && columns[4].holds_iris());
        let at = list_columns(&root, &["at".to_owned()]);
        assert!(at[0].is_date_time() && !at[0].holds_iris());
    }
}
