//! The table of objects.
use super::columns::TableColumn;
use super::state::State;
use crate::admin::frame::Frame;
use crate::admin::object::link::{Cell, object_link};
use crate::admin::words::{name_text, shorten_text};
use jiff::Timestamp;
use penstock_base::time_zone::Zone;
use penstock_http::path::encode_segment;
use penstock_model::mapping::Shape;
use penstock_model::search::{CellValues, list_tests};
use penstock_resources::view::ViewFilter;
use penstock_service::objects::{FoundPage, FoundRow, IriNames};
use std::collections::{BTreeSet, HashMap};

/// The maximum length in bytes of a value that a click filters by. It becomes a part of addresses.
const MAX_FILTER_BYTES: usize = 1_000;

/// One object in the table.
pub(super) struct Row {
    pub(super) uri: String,
    pub(super) label: Option<String>,
    pub(super) link: String,
    pub(super) cells: Vec<TableCell>,
}

/// The values of an object in a column.
pub(super) struct TableCell {
    /// The name of the column.
    pub(super) name: String,
    /// The class, which aligns the values.
    pub(super) class: &'static str,
    pub(super) values: Vec<TableValue>,
    /// Whether there are more values.
    pub(super) has_more: bool,
}

/// A value in the table.
pub(super) struct TableValue {
    pub(super) text: String,
    /// The whole value, if the text is another form of it.
    pub(super) title: Option<String>,
    /// The address of the page with a filter by this value.
    pub(super) filter: Option<String>,
    /// The address of the object that it names.
    pub(super) object: Option<String>,
}

/// Returns the IRIs in these columns.
pub(super) fn collect_iris(found: &FoundPage, columns: &[TableColumn<'_>]) -> BTreeSet<String> {
    let cells = found.rows.iter().flat_map(|row| row.cells.iter().zip(columns));
    let shown = cells.filter(|(_, column)| column.holds_iris());
    shown.flat_map(|(cell, _)| cell.texts.iter().cloned()).collect()
}

/// Builds the rows of a table.
pub(super) struct TableBuilder<'t> {
    pub(super) state: &'t State,
    pub(super) shape: &'t Shape,
    pub(super) columns: &'t [TableColumn<'t>],
    /// The labels of the objects that values name, by URI.
    pub(super) labels: HashMap<String, String>,
    pub(super) names: IriNames,
    pub(super) zone: &'t Zone,
    /// The address of the page without parameters.
    pub(super) path: &'t str,
    pub(super) frame: &'t Frame,
}

impl TableBuilder<'_> {
    /// Builds the row of an object of the Business Object with this id.
    pub(super) fn build_row(&self, uri: &str, row: FoundRow, id: &str) -> Row {
        let FoundRow { label, cells } = row;
        let cells = cells.into_iter().zip(self.columns);
        Row {
            cells: cells.map(|(values, column)| self.build_cell(values, column)).collect(),
            uri: uri.to_owned(),
            label: label.as_deref().map(name_text),
            link: format!("{}&view={}", object_link(self.frame, uri), encode_segment(id)),
        }
    }

    fn build_cell(&self, values: CellValues, column: &TableColumn<'_>) -> TableCell {
        let CellValues { texts, has_more } = values;
        let has_filter = list_tests(column.property).any(|test| test == "eq");
        let class = match column {
            column if column.is_number() => "number",
            column if column.is_date_time() => "time",
            _ => "",
        };
        let build = |text: &String| {
            let filter = if has_filter { self.build_filter(&column.name, text) } else { None };
            TableValue { filter, ..self.build_value(column, text) }
        };
        let values = texts.iter().map(build).collect();
        TableCell { name: column.name.clone(), class, values, has_more }
    }

    fn build_value(&self, column: &TableColumn<'_>, text: &str) -> TableValue {
        let value = |text: String, title: Option<String>| TableValue {
            text,
            title,
            filter: None,
            object: None,
        };
        if column.holds_iris() {
            let Cell { text, link, title, whole: _ } =
                Cell::for_iri(text, &self.labels, &self.names, self.frame);
            return TableValue { object: link, ..value(text, title) };
        }
        if column.is_date_time() {
            return value(format_in_zone(text, self.zone), Some(text.to_owned()));
        }
        value(name_text(text), None)
    }

    /// Returns the address of the page with a filter by a value; `None` if it has that already.
    fn build_filter(&self, field: &str, value: &str) -> Option<String> {
        let condition =
            ViewFilter { field: field.to_owned(), test: "eq".to_owned(), value: value.to_owned() };
        if value.is_empty()
            || value.len() > MAX_FILTER_BYTES
            || self.state.conditions.contains(&condition)
        {
            return None;
        }
        let state = self.state.with_condition(condition);
        Some(format!("{}{}", self.path, state.to_query(self.shape)))
    }
}

/// Formats a time in a time zone: `2026-03-01 14:05:09`. One without an offset stays as it is.
pub(super) fn format_in_zone(text: &str, zone: &Zone) -> String {
    match text.parse::<Timestamp>() {
        Ok(at) => zone.civil_time_at(at).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => shorten_text(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_in_the_time_zone() {
        let berlin = "Europe/Berlin".parse().unwrap();
        for (text, shown) in [
            ("2026-07-01T12:00:00Z", "2026-07-01 14:00:00"),
            ("2026-01-01T12:00:00.5+02:00", "2026-01-01 11:00:00"),
            ("2026-01-01T12:00:00", "2026-01-01T12:00:00"),
            ("soon", "soon"),
        ] {
            assert_eq!(format_in_zone(text, &berlin), shown);
        }
    }
}
