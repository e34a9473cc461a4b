//! The fields of an object as a list that folds.
use super::header::{ObjectAddress, Tab};
use super::link::{Cell, object_link};
use crate::admin::frame::Frame;
use crate::admin::words::{self, shorten_text};
use penstock_http::path::encode_segment;
use penstock_model::tree::{FieldWindow, ObjectTree, PAGE_ELEMENTS, TreeField, TreeValue};
use penstock_service::objects::IriNames;
use std::collections::HashMap;

/// The maximum number of columns of a table of nested objects.
const MAX_COLUMNS: usize = 6;
/// Up to so many nested objects are unfolded.
const MAX_UNFOLDED: usize = 3;

/// The fields of an object.
pub(super) struct FieldList {
    pub(super) items: Vec<TreeItem>,
    /// The field whose elements are shown, and the address of all fields.
    pub(super) only: Option<(String, String)>,
}

/// A part of the list, in the order of the page. What opens has an end of its own.
pub(super) enum TreeItem {
    /// A field with values.
    Values {
        name: String,
        type_name: String,
        cells: Vec<Cell>,
        more: Option<More>,
        notes: Vec<String>,
    },
    /// A field with objects begins.
    Objects {
        name: String,
        count: String,
        is_open: bool,
        order: Option<String>,
        notes: Vec<String>,
    },
    /// A field with objects ends.
    EndObjects { more: Option<More>, earlier: Option<More> },
    /// An object in a field begins.
    Object { label: String, link: String },
    /// An object in a field ends.
    EndObject,
    /// An object that is not shown here.
    Link { label: String, link: String },
    /// Objects without nested ones, as a table.
    Table { name: String, columns: Vec<String>, rows: Vec<TableRow> },
}

/// A row of a table of nested objects.
pub(super) struct TableRow {
    pub(super) label: String,
    pub(super) link: String,
    pub(super) values: Vec<(String, Vec<Cell>)>,
}

/// A link to further elements.
pub(super) struct More {
    pub(super) link: String,
    pub(super) words: String,
}

/// Builds the list of the fields of an object.
pub(super) struct ListBuilder<'b> {
    items: Vec<TreeItem>,
    labels: &'b HashMap<String, String>,
    names: &'b IriNames,
    address: &'b ObjectAddress,
    frame: &'b Frame,
}

impl<'b> ListBuilder<'b> {
    pub(super) fn new(
        labels: &'b HashMap<String, String>,
        names: &'b IriNames,
        address: &'b ObjectAddress,
        frame: &'b Frame,
    ) -> Self {
        Self { items: Vec::new(), labels, names, address, frame }
    }

    /// Lists the fields; with a window, only its field.
    pub(super) fn list_fields(
        mut self,
        tree: &ObjectTree,
        window: Option<&FieldWindow>,
    ) -> FieldList {
        for field in tree.fields.iter().flatten() {
            self.add_field(field, None, window.is_some());
        }
        let all = self.address.tab(Tab::Fields);
        FieldList { items: self.items, only: window.map(|window| (window.field.clone(), all)) }
    }

    /// Adds a field of the object of this page, or of the nested object `owner`.
    fn add_field(&mut self, field: &TreeField, owner: Option<&ObjectTree>, is_open: bool) {
        if owner.is_some() && field.total == 0 {
            return;
        }
        if !field.holds_objects || field.total == 0 {
            let more = self.link_more(field, owner);
            self.items.push(TreeItem::Values {
                name: field.name.clone(),
                type_name: describe_type(field),
                cells: field.values.iter().filter_map(|value| self.to_cell(value)).collect(),
                more,
                notes: field.notes.clone(),
            });
            return;
        }
        let is_short = field.total <= MAX_UNFOLDED || field.is_flat && field.newest_by.is_some();
        let is_open = is_open || owner.is_none() && is_short;
        let count = words::format_count(field.total as u64, "object", "objects");
        self.items.push(TreeItem::Objects {
            name: field.name.clone(),
            count: if field.is_array { count } else { String::new() },
            is_open,
            order: field.newest_by.clone().filter(|_| field.total > 1),
            notes: field.notes.clone(),
        });
        if field.is_array && field.is_flat {
            self.add_table(field);
        } else {
            for (index, value) in field.values.iter().enumerate() {
                let unlabelled = name_element(field, index);
                self.add_object(value, field.is_array, unlabelled);
            }
        }
        let (more, earlier) = (self.link_more(field, owner), self.link_earlier(field, owner));
        self.items.push(TreeItem::EndObjects { more, earlier });
    }

    fn add_object(&mut self, value: &TreeValue, is_element: bool, unlabelled: String) {
        let TreeValue::Object(tree) = value else { return };
        let (label, link) = self.name_object(tree, unlabelled);
        let Some(fields) = &tree.fields else {
            self.items.push(TreeItem::Link { label, link });
            return;
        };
        if is_element {
            self.items.push(TreeItem::Object { label, link });
        } else {
            self.items.push(TreeItem::Link { label, link });
        }
        for field in fields {
            self.add_field(field, Some(tree), false);
        }
        if is_element {
            self.items.push(TreeItem::EndObject);
        }
    }

    fn add_table(&mut self, field: &TreeField) {
        let trees = || {
            field.values.iter().filter_map(|value| match value {
                TreeValue::Object(tree) => Some(tree),
                TreeValue::Literal { .. } | TreeValue::Resource(_) => None,
            })
        };
        let mut columns: Vec<String> = Vec::new();
        for one in trees().flat_map(|tree| tree.fields.iter().flatten()) {
            let is_new = one.total > 0 && !columns.contains(&one.name);
            if is_new && columns.len() < MAX_COLUMNS {
                columns.push(one.name.clone());
            }
        }
        let first = trees().find_map(|tree| tree.fields.as_ref());
        let place =
            |name: &String| first.and_then(|all| all.iter().position(|one| one.name == *name));
        columns.sort_by_key(place);
        let rows = trees().enumerate().map(|(index, tree)| {
            let (label, link) = self.name_object(tree, name_element(field, index));
            let values = columns.iter().map(|column| {
                let field = tree.fields.iter().flatten().find(|one| one.name == *column);
                let cells = field.map(|field| {
                    field.values.iter().filter_map(|value| self.to_cell(value)).collect()
                });
                (column.clone(), cells.unwrap_or_default())
            });
            TableRow { label, link, values: values.collect() }
        });
        let rows = rows.collect();
        self.items.push(TreeItem::Table { name: field.name.clone(), columns, rows });
    }

    fn to_cell(&self, value: &TreeValue) -> Option<Cell> {
        match value {
            TreeValue::Literal { text, is_cut: false } => Some(Cell::for_text(text.clone())),
            TreeValue::Literal { text, is_cut: true } => {
                let whole = Some(self.address.tab(Tab::Rdf));
                Some(Cell { whole, ..Cell::for_text(format!("{text}…")) })
            }
            TreeValue::Resource(iri) => {
                Some(Cell::for_iri(iri.as_str(), self.labels, self.names, self.frame))
            }
            TreeValue::Object(_) => None,
        }
    }

    /// Returns the label of a nested object, and the address of its page. Without a label, it is named by its field.
    fn name_object(&self, tree: &ObjectTree, unlabelled: String) -> (String, String) {
        let label = tree.label.as_deref().map_or(unlabelled, shorten_text);
        (label, object_link(self.frame, tree.uri.as_str()))
    }

    /// Returns the link to the elements after the shown ones.
    fn link_more(&self, field: &TreeField, owner: Option<&ObjectTree>) -> Option<More> {
        let next = field.first + field.covered;
        if next >= field.total {
            return None;
        }
        let to = (next + PAGE_ELEMENTS).min(field.total);
        let words = format!("{} to {to} of {}", next + 1, words::format_number(field.total as u64));
        Some(More {
            link: self.elements(field, owner, next),
            words: format!("{}: {words}", field.name),
        })
    }

    /// Returns the link to the elements before the shown ones.
    fn link_earlier(&self, field: &TreeField, owner: Option<&ObjectTree>) -> Option<More> {
        let from = field.first.saturating_sub(PAGE_ELEMENTS);
        let to = (from + PAGE_ELEMENTS).min(field.total);
        (field.first > 0).then(|| More {
            link: self.elements(field, owner, from),
            words: format!("{}: {} to {to}", field.name, from + 1),
        })
    }

    /// Returns the address of the elements of a field from this index.
    fn elements(&self, field: &TreeField, owner: Option<&ObjectTree>, from: usize) -> String {
        match owner {
            None => self.address.elements(&field.name, from),
            Some(tree) => {
                let page = object_link(self.frame, tree.uri.as_str());
                format!("{page}&field={}&from={from}", encode_segment(&field.name))
            }
        }
    }
}

/// Returns the name of an object without a label: that of its field, in an array with its number.
fn name_element(field: &TreeField, index: usize) -> String {
    if field.is_array {
        format!("{} {}", field.name, field.first + index + 1)
    } else {
        field.name.clone()
    }
}

fn describe_type(field: &TreeField) -> String {
    if field.is_array { format!("array of {}", field.type_name) } else { field.type_name.clone() }
}
