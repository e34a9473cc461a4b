//! The file of an export as a table, and its difference to the export before.
use super::frame::Frame;
use super::object::link::{find_distinct_label, object_link};
use super::words;
use penstock_resources::export::ExportKind;
use penstock_service::exports::{ChangedObject, DifferenceList, ExportDifference, ExportObject};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};

/// The maximum number of columns of a table, beside that of the URI.
const MAX_COLUMNS: usize = 7;
/// The maximum number of values of an array that a cell shows.
const MAX_CELL_VALUES: usize = 3;

/// The first objects of a file.
#[derive(Debug)]
pub(super) struct FileTable {
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<FileRow>,
    /// The number of members without a column.
    pub(super) more_columns: usize,
}

/// An object in the table.
#[derive(Debug)]
pub(super) struct FileRow {
    pub(super) uri: String,
    /// The address of its page.
    pub(super) link: String,
    /// The name of the column, and the text of the cell.
    pub(super) cells: Vec<(String, String)>,
}

impl FileTable {
    pub(super) fn new(objects: &[ExportObject], frame: &Frame) -> Self {
        let mut names: Vec<&str> = Vec::new();
        for object in objects {
            for (name, value) in &object.members {
                let is_uri = value.as_str() == Some(object.uri.as_str());
                if !is_uri && !names.contains(&name.as_str()) {
                    names.push(name);
                }
            }
        }
        let more_columns = names.len().saturating_sub(MAX_COLUMNS);
        names.truncate(MAX_COLUMNS);
        let row = |object: &ExportObject| FileRow {
            cells: names
                .iter()
                .map(|name| {
                    let value = object.members.get(*name);
                    ((*name).to_owned(), value.map(format_value).unwrap_or_default())
                })
                .collect(),
            link: object_link(frame, &object.uri),
            uri: object.uri.clone(),
        };
        Self {
            rows: objects.iter().map(row).collect(),
            columns: names.iter().map(|name| (*name).to_owned()).collect(),
            more_columns,
        }
    }
}

/// Formats a value for a cell.
fn format_value(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => words::shorten_text(text),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(values)
            if values.iter().any(|value| value.is_object() || value.is_array()) =>
        {
            words::format_count(values.len() as u64, "object", "objects")
        }
        Value::Array(values) => {
            let shown: Vec<_> = values.iter().take(MAX_CELL_VALUES).map(format_value).collect();
            let more = values.len().saturating_sub(MAX_CELL_VALUES);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("{}{more}", shown.join(", "))
        }
        Value::Object(members) => {
            let name =
                ["label", "name", "uri"].iter().find_map(|name| members.get(*name)?.as_str());
            words::shorten_text(name.unwrap_or("1 object"))
        }
    }
}

/// The difference of an export to the one before.
#[derive(Debug)]
pub(super) struct ShownDifference {
    /// The id and the sequence of the export before.
    pub(super) previous: Option<(String, u64)>,
    /// The sequence of the oldest export that was read, if it is another one.
    pub(super) back_to: Option<u64>,
    pub(super) kind: ExportKind,
    pub(super) added: ObjectLinks,
    pub(super) removed: ObjectLinks,
    pub(super) changed: Vec<ShownChange>,
    pub(super) changed_count: String,
    pub(super) more_changed: u64,
    pub(super) unchanged_count: String,
}

/// Links to the first objects of a list.
#[derive(Debug)]
pub(super) struct ObjectLinks {
    pub(super) count: String,
    pub(super) first: Vec<ObjectLink>,
    pub(super) more: u64,
}

/// A link to an object.
#[derive(Debug)]
pub(super) struct ObjectLink {
    /// The address of its page.
    pub(super) address: String,
    pub(super) uri: String,
    /// Its label, if it is stored and has one.
    pub(super) label: Option<String>,
}

impl ObjectLink {
    fn new(uri: &str, labels: &HashMap<String, String>, frame: &Frame) -> Self {
        Self {
            address: object_link(frame, uri),
            label: find_distinct_label(labels, uri),
            uri: uri.to_owned(),
        }
    }
}

/// Returns the URIs of the objects that a difference names.
pub(super) fn collect_uris(difference: &ExportDifference) -> BTreeSet<String> {
    let ExportDifference { added, changed, removed, .. } = difference;
    let changed = changed.first.iter().map(|object| &object.uri);
    added.first.iter().chain(&removed.first).chain(changed).cloned().collect()
}

/// An object with other values.
#[derive(Debug)]
pub(super) struct ShownChange {
    pub(super) object: ObjectLink,
    /// The field, its value before and its value now.
    pub(super) fields: Vec<(String, String, String)>,
    /// The number of fields that differ and are not shown.
    pub(super) more_fields: usize,
}

impl ShownDifference {
    /// `labels` are those of the objects that the difference names.
    pub(super) fn new(
        difference: ExportDifference,
        labels: &HashMap<String, String>,
        kind: ExportKind,
        frame: &Frame,
    ) -> Self {
        let ExportDifference {
            previous,
            oldest_sequence,
            added,
            changed,
            removed,
            unchanged_count,
        } = difference;
        let newest = previous.as_ref().map(|entry| entry.sequence);
        Self {
            back_to: oldest_sequence.filter(|oldest| newest != Some(*oldest)),
            previous: previous.map(|entry| (entry.id, entry.sequence)),
            kind,
            added: ObjectLinks::new(&added, labels, frame),
            removed: ObjectLinks::new(&removed, labels, frame),
            changed_count: words::format_number(changed.count),
            more_changed: changed.count - changed.first.len() as u64,
            changed: changed.first.iter().map(|one| ShownChange::new(one, labels, frame)).collect(),
            unchanged_count: words::format_number(unchanged_count),
        }
    }
}

impl ObjectLinks {
    fn new(list: &DifferenceList<String>, labels: &HashMap<String, String>, frame: &Frame) -> Self {
        let link = |uri: &String| ObjectLink::new(uri, labels, frame);
        Self {
            count: words::format_number(list.count),
            more: list.count - list.first.len() as u64,
            first: list.first.iter().map(link).collect(),
        }
    }
}

impl ShownChange {
    fn new(changed: &ChangedObject, labels: &HashMap<String, String>, frame: &Frame) -> Self {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let fields = changed.members.iter();
        Self {
            object: ObjectLink::new(&changed.uri, labels, frame),
            fields: fields
                .map(|one| (one.name.clone(), text(&one.before), text(&one.now)))
                .collect(),
            more_fields: changed.more_members,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn cells_show_values_briefly() {
        for (value, text) in [
            (json!(null), ""),
            (json!("a"), "a"),
            (json!(1.50), "1.5"),
            (json!([1, 2]), "1, 2"),
            (json!([1, 2, 3, 4, 5]), "1, 2, 3 and 2 more"),
            (json!([{"uri": "urn:a"}]), "1 object"),
            (json!({"uri": "urn:a", "name": "Pump"}), "Pump"),
            (json!({"flow": 1}), "1 object"),
        ] {
            assert_eq!(format_value(&value), text, "{value}");
        }
    }
}
