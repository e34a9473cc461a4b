//! The columns of a table of objects: their fields, and those of the objects nested in them.
use super::budget::SearchBudget;
use super::fields::{FieldTree, FoundValue, Slots};
use super::matching::TestedObject;
use crate::mapping::{Property, Shape};
use crate::view::NestingPath;
use oxrdf::NamedNode;
use penstock_base::error::GatewayError;
use penstock_store::Read;

/// The columns of a table of objects of one shape.
#[derive(Debug)]
pub struct Columns<'s> {
    shape: &'s Shape,
    tree: FieldTree,
    all: Vec<Column<'s>>,
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub struct Column<'s> {
    slot: usize,
    /// The field; `None` for the URI of the object or of one nested in it.
    pub property: Option<&'s Property>,
}

/// The values of an object in a column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CellValues {
    /// The first values, as the view shows them.
    pub texts: Vec<String>,
    /// Whether there are more.
    pub has_more: bool,
}

impl Column<'_> {
    /// Returns whether the values are IRIs.
    pub fn holds_iris(&self) -> bool {
        self.property.is_none_or(Property::holds_iris)
    }
}

impl<'s> Columns<'s> {
    /// Finds the columns with these names, as [`find_field_path`](super::find_field_path) takes them.
    ///
    /// # Errors
    /// `ErrorClass::Invalid` if there is no such field.
    pub fn new<'n>(
        shape: &'s Shape,
        names: impl IntoIterator<Item = &'n str>,
    ) -> Result<Self, GatewayError> {
        let (mut slots, mut columns) = (Slots::default(), Vec::new());
        for name in names {
            let (slot, property) = slots.add_shown(shape, name)?;
            columns.push(Column { slot, property });
        }
        Ok(Self { shape, tree: FieldTree::build(shape, &slots)?, all: columns })
    }

    /// Returns the columns.
    pub fn as_slice(&self) -> &[Column<'s>] {
        &self.all
    }

    /// Reads the first `limit` values of an object in each column.
    ///
    /// # Errors
    /// `ErrorClass::TooLarge` if this would examine more objects than the bounds allow; the errors of the store.
    pub fn read(
        &self,
        read: &dyn Read,
        uri: &NamedNode,
        limit: usize,
        bounds: &SearchBudget,
    ) -> Result<Vec<CellValues>, GatewayError> {
        let path = NestingPath { uri, above: None };
        let object = TestedObject { read, shape: self.shape, path, listed: None, budget: bounds };
        let element = self.tree.read_root(&object)?;
        let read_cell = |column: &Column<'_>| {
            let instances = self.tree.list_instances(&element, column.slot);
            let values: Vec<&FoundValue<'_>> =
                instances.iter().filter_map(|instance| instance.value).collect();
            CellValues {
                texts: values
                    .iter()
                    .take(limit)
                    .map(|value| value.text.clone().into_owned())
                    .collect(),
                has_more: values.len() > limit,
            }
        };
        Ok(self.all.iter().map(read_cell).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::Mode;
    use crate::mapping::compile;
    use crate::testing::Fixture;
    use std::time::Duration;

    const CONFIG: &str = "
type: object
path: Root:.
fields:
  uri: {type: id}
  n: {type: number, path: <urn:p:n>}
  next: {type: resource, path: <urn:p:next>}
  site: {type: object, path: '<urn:p:site>/Site:.', fields: {name: {type: string, path: <urn:p:name>}}}
  readings:
    type: array
    path: <urn:p:reading>
    elements: {type: object, path: 'Reading:.', fields: {value: {type: number, path: <urn:p:value>}}}
  levels: {type: map, path: '<urn:p:level>/Level:.', key: {path: <urn:p:key>}, elements: {type: number, path: <urn:p:value>}}
";

    #[test]
    fn nested_values_are_read_in_the_order_of_their_objects() {
        let fixture = Fixture::new(compile(CONFIG).unwrap().root);
        let object = r#"{"uri": "urn:r:1", "n": 1.50, "next": "urn:r:2", "site": {"uri": "urn:s:1", "name": "A"},
            "readings": [{"uri": "urn:v:1", "value": 3}, {"uri": "urn:v:2", "value": 1}, {"uri": "urn:v:3"}],
            "levels": {"L1": 7, "L2": 8}}"#;
        fixture.send(Mode::Add, object).unwrap();
        let shape = &fixture.business_object.mapping.root;
        let names =
            ["n", "uri", "next", "site", "site.name", "readings.value", "levels.L2", "levels.@key"];
        let columns = Columns::new(shape, names).unwrap();
        let iris: Vec<bool> = columns.as_slice().iter().map(Column::holds_iris).collect();
        assert_eq!(iris, [false, true, true, true, false, false, false, false]);
        let bounds = SearchBudget::new(100, Duration::from_mins(1));
        let uri = NamedNode::new_unchecked("urn:r:1");
        let cells = columns.read(&fixture.store.read(), &uri, 1, &bounds).unwrap();
        let texts: Vec<Vec<&str>> =
            cells.iter().map(|cell| cell.texts.iter().map(String::as_str).collect()).collect();
        let expected = ["1.50", "urn:r:1", "urn:r:2", "urn:s:1", "A", "3", "8", "L1"];
        assert_eq!(texts, expected.map(|text| vec![text]));
        assert!(cells[5].has_more && cells[7].has_more && !cells[4].has_more);
        assert!(Columns::new(shape, ["nothing"]).is_err());
        let narrow = SearchBudget::new(2, Duration::from_mins(1));
        assert!(columns.read(&fixture.store.read(), &uri, 1, &narrow).is_err());
    }
}
