//! The columns of a CSV text: the fields of the mapping that they hold.
use super::CsvFormat;
use super::header::{ColumnName, CsvHeader, MAX_FINDINGS, refuse_header};
use super::records::{Cell, read_cells, record_error};
use crate::ingest::quote_excerpt;
use crate::mapping::{Field, Form, Mapping, Property, Shape, UnknownFields, Value};
use penstock_base::error::{Finding, GatewayError};
use penstock_base::json::Json;
use penstock_base::nearest::find_nearest;
use penstock_rdf::number::NumberKey;

/// The columns of a CSV text, as a tree of the fields that they hold.
#[derive(Debug)]
pub(crate) struct Columns {
    count: usize,
    format: CsvFormat,
    root: Vec<Node>,
}

/// A member of the objects that records become.
#[derive(Debug)]
struct Node {
    name: String,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Cell { index: usize, kind: CellKind },
    Object(Vec<Node>),
}

/// What the cells of a column hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CellKind {
    pub(super) form: Form,
    pub(super) is_array: bool,
}

impl CellKind {
    pub(super) const TEXT: Self = Self { form: Form::Text, is_array: false };
}

impl Columns {
    /// Finds the fields of the columns in the mapping.
    ///
    /// # Errors
    /// `ErrorClass::Invalid`, with the line and column of each name that is no field, or that CSV cannot hold.
    pub(crate) fn find(header: &CsvHeader, mapping: &Mapping) -> Result<Self, GatewayError> {
        let is_alone = header.names().len() == 1;
        Self::build(header, |name| {
            let ignores = mapping.unknown_fields == UnknownFields::Ignore;
            match find_cell(&mapping.root, name) {
                Ok(found) => Ok(found),
                Err(FieldError::Unknown(..)) if ignores => Ok((vec![name], CellKind::TEXT)),
                Err(error @ FieldError::Unknown(..)) if is_alone => {
                    Err(suggest_delimiter(name, error.describe()))
                }
                Err(error) => Err(error.describe()),
            }
        })
    }

    /// Builds the columns from the path and the kind of each name.
    pub(super) fn build<'n>(
        header: &'n CsvHeader,
        mut find: impl FnMut(&'n str) -> Result<(Vec<&'n str>, CellKind), String>,
    ) -> Result<Self, GatewayError> {
        let (mut root, mut findings) = (Vec::new(), Vec::new());
        for (index, ColumnName { name, column }) in header.names().iter().enumerate() {
            let added = find(name).and_then(|(path, kind)| {
                insert_cell(&mut root, &path, index, kind)
                    .ok_or_else(|| format!("another column holds the same field as {name:?}"))
            });
            if let Err(message) = added {
                findings.push(Finding::at_line(header.line, *column, message));
                // A message can take a while: it looks for a similar name.
                if findings.len() == MAX_FINDINGS {
                    break;
                }
            }
        }
        refuse_header(findings)?;
        Ok(Self { count: header.names().len(), format: header.format, root })
    }

    /// Reads a record without its line break, which begins in this line. A cell that does not have the type of its field
    /// becomes a string.
    ///
    /// # Errors
    /// `ErrorClass::Malformed` if it is not UTF-8, or has another number of cells than the header.
    pub(crate) fn read_record(&self, text: &[u8], line: u64) -> Result<Json, GatewayError> {
        let cells = read_cells(text, self.format, line, self.count)?;
        if cells.len() != self.count {
            let message = format!(
                "the record has {} cells, and the header has {}; each record needs as many",
                cells.len(),
                self.count
            );
            return Err(record_error(line, 1, message));
        }
        Ok(Json::Object(self.build_members(&self.root, &cells)))
    }

    fn build_members(&self, nodes: &[Node], cells: &[Cell]) -> Vec<(String, Json)> {
        let build = |node: &Node| {
            let json = match &node.content {
                Content::Cell { index, kind } => {
                    self.convert_cell(*kind, &cells.get(*index)?.value)?
                }
                Content::Object(nodes) => {
                    let members = self.build_members(nodes, cells);
                    (!members.is_empty()).then_some(Json::Object(members))?
                }
            };
            Some((node.name.clone(), json))
        };
        nodes.iter().filter_map(build).collect()
    }

    /// Returns the JSON of a cell; `None` if it is empty.
    fn convert_cell(&self, kind: CellKind, text: &str) -> Option<Json> {
        if !kind.is_array {
            return self.convert_value(kind.form, text);
        }
        let elements: Vec<Json> = match self.format.array_delimiter {
            Some(delimiter) => text
                .split(delimiter)
                .filter_map(|text| self.convert_value(kind.form, text))
                .collect(),
            None => self.convert_value(kind.form, text).into_iter().collect(),
        };
        (!elements.is_empty()).then_some(Json::Array(elements))
    }

    fn convert_value(&self, form: Form, text: &str) -> Option<Json> {
        let token = match form {
            Form::Text => text,
            Form::Token | Form::Number | Form::Boolean => text.trim(),
        };
        if token.is_empty() {
            return None;
        }
        let converted = match form {
            Form::Number => self.read_number(token).map(Json::Number),
            Form::Boolean => read_boolean(token).map(Json::Bool),
            Form::Text | Form::Token => None,
        };
        Some(converted.unwrap_or_else(|| Json::String(token.to_owned())))
    }

    /// Returns the lexical form of a number, if the text is one.
    fn read_number(&self, text: &str) -> Option<String> {
        let text = if self.format.decimal_comma {
            // A point would group the digits, or be a mistake.
            (!text.contains('.')).then(|| text.replace(',', "."))?
        } else {
            text.to_owned()
        };
        NumberKey::parse(&text).is_some().then_some(text)
    }
}

/// A field whose value comes as a text from elsewhere than the JSON of its object.
#[derive(Debug)]
pub(crate) struct TextField<'n> {
    path: Vec<&'n str>,
    kind: CellKind,
}

impl<'n> TextField<'n> {
    /// Finds the field of this name in the mapping. A name that is no field stands for itself.
    ///
    /// # Errors
    /// The reason, if the field holds objects.
    pub(crate) fn find(mapping: &Mapping, name: &'n str) -> Result<Self, String> {
        match find_cell(&mapping.root, name) {
            Ok((path, kind)) => Ok(Self { path, kind }),
            Err(FieldError::Unknown(..)) => Ok(Self { path: vec![name], kind: CellKind::TEXT }),
            Err(FieldError::Unusable(_)) => Err(describe_unusable(name)),
        }
    }

    /// Adds the value to the members of an object, converted to the type of the field. An empty text is no value. Returns
    /// false if the object has the field already.
    pub(crate) fn add_to(&self, members: &mut Vec<(String, Json)>, text: &str) -> bool {
        let columns = Columns { count: 1, format: CsvFormat::default(), root: Vec::new() };
        match columns.convert_cell(self.kind, text) {
            Some(value) => insert_member(members, &self.path, value),
            None => true,
        }
    }
}

/// Checks that a field can have a text as its value, such as a level of a topic.
///
/// # Errors
/// The reason: the mapping has no such field, or it holds objects.
pub fn check_text_field(mapping: &Mapping, name: &str) -> Result<(), String> {
    match find_cell(&mapping.root, name) {
        Ok(_) => Ok(()),
        Err(FieldError::Unknown(shape, name)) => Err(describe_unknown(shape, name)),
        Err(FieldError::Unusable(_)) => Err(describe_unusable(name)),
    }
}

fn describe_unusable(name: &str) -> String {
    format!("the field {name:?} holds objects, so it cannot have a text")
}

/// Inserts a value at a path. Returns false if there is one.
fn insert_member(members: &mut Vec<(String, Json)>, path: &[&str], value: Json) -> bool {
    let Some((first, rest)) = path.split_first() else { return false };
    let found = members.iter_mut().find(|(name, _)| name == first);
    match (found, rest) {
        (None, []) => members.push(((*first).to_owned(), value)),
        (None, _) => {
            let mut nested = Vec::new();
            insert_member(&mut nested, rest, value);
            members.push(((*first).to_owned(), Json::Object(nested)));
        }
        (Some((_, Json::Object(nested))), [_, ..]) => return insert_member(nested, rest, value),
        (Some(_), _) => return false,
    }
    true
}

fn read_boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// Adds a cell to the tree. Returns `None` if another one is at its place.
fn insert_cell(nodes: &mut Vec<Node>, path: &[&str], index: usize, kind: CellKind) -> Option<()> {
    let (name, rest) = path.split_first()?;
    let found = nodes.iter_mut().find(|node| node.name == *name);
    match (found, rest) {
        (None, rest) => {
            let content = if rest.is_empty() {
                Content::Cell { index, kind }
            } else {
                let mut nested = Vec::new();
                insert_cell(&mut nested, rest, index, kind)?;
                Content::Object(nested)
            };
            nodes.push(Node { name: (*name).to_owned(), content });
            Some(())
        }
        (Some(Node { content: Content::Object(nested), .. }), [_, ..]) => {
            insert_cell(nested, rest, index, kind)
        }
        (Some(_), _) => None,
    }
}

/// Why a column holds no field.
enum FieldError<'s, 'n> {
    /// The shape has no field of this name.
    Unknown(&'s Shape, &'n str),
    Unusable(String),
}

impl FieldError<'_, '_> {
    fn describe(self) -> String {
        match self {
            Self::Unknown(shape, name) => describe_unknown(shape, name),
            Self::Unusable(why) => why,
        }
    }
}

/// Finds the field that a column of this name holds: the names that lead to it, and its kind.
fn find_cell<'s, 'n>(
    shape: &'s Shape,
    name: &'n str,
) -> Result<(Vec<&'n str>, CellKind), FieldError<'s, 'n>> {
    if shape.is_id(name) {
        let kind = CellKind { form: Form::Token, is_array: false };
        return Ok((vec![name], kind));
    }
    if let Some(property) = shape.find_field(name).and_then(Field::property) {
        return match find_kind(property) {
            Some(kind) => Ok((vec![name], kind)),
            None => Err(FieldError::Unusable(describe_objects(name, property))),
        };
    }
    let mut error = None;
    for (dot, _) in name.match_indices('.') {
        let (parent, nested) = (name.get(..dot).unwrap_or_default(), name.get(dot + 1..));
        let Some(property) = shape.find_field(parent).and_then(Field::property) else { continue };
        let (Value::Object(shape), false) = (&property.value, property.is_array) else {
            error = Some(FieldError::Unusable(describe_objects(parent, property)));
            continue;
        };
        match find_cell(shape, nested.unwrap_or_default()) {
            Ok((mut path, kind)) => {
                path.insert(0, parent);
                return Ok((path, kind));
            }
            Err(found) => error = Some(found),
        }
    }
    Err(error.unwrap_or(FieldError::Unknown(shape, name)))
}

/// Returns the kind of a field's cells; `None` if it holds objects.
fn find_kind(property: &Property) -> Option<CellKind> {
    let is_cell = property.value.shape().is_none();
    is_cell.then(|| CellKind { form: property.value.kind().form, is_array: property.is_array })
}

fn describe_objects(name: &str, property: &Property) -> String {
    match &property.value {
        Value::Object(_) if property.is_array => format!(
            "the field {name:?} is an array of objects, which CSV cannot hold; send these objects as JSON"
        ),
        Value::Object(shape) => {
            let field = shape.fields.first().map_or("uri", |field| &field.name);
            format!("the field {name:?} is an object; name a field of it, such as {name}.{field}")
        }
        _ => format!("the field {name:?} has values, and no fields of its own"),
    }
}

fn describe_unknown(shape: &Shape, name: &str) -> String {
    let names = || shape.fields.iter().map(|field| field.name.as_str());
    let hint = match find_nearest(name, names()) {
        Some(near) => format!("did you mean {near:?}?"),
        None => format!("it has {}", names().take(20).collect::<Vec<_>>().join(", ")),
    };
    format!("the mapping has no field {}; {hint}", quote_excerpt(name))
}

/// Suggests another delimiter if the only name of the header has one.
fn suggest_delimiter(name: &str, why: String) -> String {
    let found = [(';', "%3B"), ('\t', "tab"), ('|', "%7C"), (',', "%2C")].into_iter();
    let mut found = found.filter(|(delimiter, _)| name.contains(*delimiter));
    match found.next() {
        Some((delimiter, parameter)) => format!(
            "{why}. The header has only this name; if {delimiter:?} is between its cells, send ?delimiter={parameter}"
        ),
        None => why,
    }
}
