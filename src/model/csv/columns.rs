//! The columns of a CSV text: the fields of the mapping that they hold.
use super::CsvFormat;
use super::header::{ColumnName, CsvHeader, MAX_FINDINGS, refuse_header};
use super::members::split_member;
use super::records::{Cell, read_cells, record_error};
use crate::ingest::{MAX_JSON_BYTES, describe_unknown_field};
use crate::mapping::{
    AcceptedForm, Field, Form, Mapping, Property, Reading, Shape, UnknownFields, Value,
    format_language_tag, parse_scalar,
};
use oxrdf::Literal;
use penstock_base::error::{Finding, GatewayError};
use penstock_base::json::{self, Json, MAX_NESTING};
use penstock_rdf::number::NumberKey;
use std::borrow::Cow;

/// The columns of a CSV text, as a tree of the fields that they hold.
#[derive(Debug)]
pub(crate) struct Columns<'m> {
    count: usize,
    /// The number of columns with a name. The cells after them are empty.
    named: usize,
    format: CsvFormat,
    root: Vec<Node<'m>>,
}

/// A member of the objects that records become.
#[derive(Debug)]
struct Node<'m> {
    name: String,
    content: Content<'m>,
}

#[derive(Debug)]
enum Content<'m> {
    Cell { index: usize, kind: CellKind<'m> },
    Object(Vec<Node<'m>>),
}

/// What the cells of a column hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CellKind<'m> {
    pub(super) form: Form,
    pub(super) is_array: bool,
    /// The field; `None` if the mapping has none, or it is the URI.
    property: Option<&'m Property>,
}

impl CellKind<'_> {
    pub(super) const TEXT: Self = Self::single(Form::Text);

    /// Returns the kind of one element of an array.
    pub(super) fn of_element(self) -> Self {
        Self { is_array: false, ..self }
    }

    /// Returns whether the cells have the texts of a language map in one language.
    pub(super) fn has_language(&self) -> bool {
        self.property.is_some_and(|property| property.value.language_map().is_some())
    }

    /// Returns the decimal separators of texts that the field accepts.
    pub(super) fn decimal_separators(&self) -> impl Iterator<Item = char> {
        let accepted = self.reading().into_iter().flat_map(|reading| &reading.accept);
        accepted.filter_map(|form| match form {
            AcceptedForm::Decimal { decimal, .. } => Some(*decimal),
            _ => None,
        })
    }

    /// Returns the characters that can separate the digits of a number in a cell.
    fn number_separators(&self, format: CsvFormat) -> Vec<char> {
        let reading = self.reading();
        if let Some(reading) = reading.filter(|reading| reading.reads_number_texts()) {
            let separators = reading.accept.iter().filter_map(AcceptedForm::separators);
            return separators
                .flat_map(|(decimal, group)| std::iter::once(decimal).chain(group))
                .collect();
        }
        let has_fractions =
            self.property.is_none_or(|property| (property.value.kind().check_text)("0.5").is_ok());
        match self.form {
            Form::Number if !has_fractions && reading.is_none() => Vec::new(),
            // A point would group the digits, or be a mistake.
            Form::Number | Form::Scalar if format.decimal_comma && reading.is_none() => {
                vec![',', '.']
            }
            Form::Number | Form::Scalar => vec!['.'],
            Form::Text | Form::Token | Form::Boolean | Form::Json => Vec::new(),
        }
    }

    /// Checks that the delimiter of elements does not divide a number into several.
    fn check_array_delimiter(&self, name: &str, format: CsvFormat) -> Result<(), String> {
        let Some(delimiter) = format.array_delimiter else { return Ok(()) };
        let is_divided = self.is_array
            && !format.array_escape
            && self.number_separators(format).contains(&delimiter);
        if !is_divided {
            return Ok(());
        }
        Err(format!(
            "numbers of the field {name:?} can have {delimiter:?} between their digits, and arrayDelimiter would divide them \
             there; choose another arrayDelimiter, or send arrayEscape=true with `\\` before each {delimiter:?} in a number"
        ))
    }

    /// Creates the kind of a single value of no field.
    pub(super) const fn single(form: Form) -> Self {
        Self { form, is_array: false, property: None }
    }

    /// Returns what counts of a text.
    fn token<'t>(&self, text: &'t str) -> &'t str {
        match self.form {
            Form::Text | Form::Scalar => text,
            Form::Token | Form::Number | Form::Boolean | Form::Json => text.trim(),
        }
    }

    /// Returns the forms in which the field accepts values, and so decides about numbers.
    fn reading(&self) -> Option<&Reading> {
        let reading = self.property?.reading.as_deref();
        reading.filter(|reading| !reading.accept.is_empty())
    }
}

impl CsvHeader {
    /// Checks that each column is a field of the mapping.
    ///
    /// # Errors
    /// `ErrorClass::Invalid`, with the line and column of each name that is no field, that CSV cannot hold, or whose numbers
    /// the delimiter of elements would divide.
    pub fn check_columns(&self, mapping: &Mapping) -> Result<(), GatewayError> {
        Columns::find(self, mapping).map(drop)
    }
}

impl<'m> Columns<'m> {
    /// Creates columns of no text, to read single cells.
    pub(super) fn of_cells(format: CsvFormat) -> Self {
        Self { count: 0, named: 0, format, root: Vec::new() }
    }

    /// Returns the format of the text.
    pub(crate) fn format(&self) -> CsvFormat {
        self.format
    }

    /// Finds the fields of the columns in the mapping.
    ///
    /// # Errors
    /// `ErrorClass::Invalid`, with the line and column of each name that is no field, that CSV cannot hold, or whose numbers
    /// the delimiter of elements would divide.
    pub(crate) fn find(header: &CsvHeader, mapping: &'m Mapping) -> Result<Self, GatewayError> {
        let is_alone = header.names().len() == 1;
        Self::build(header, |name| {
            let ignores = mapping.unknown_fields == UnknownFields::Ignore;
            match find_cell(&mapping.root, name) {
                Ok((path, kind)) => {
                    kind.check_array_delimiter(name, header.format)?;
                    Ok((path, kind))
                }
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
        mut find: impl FnMut(&'n str) -> Result<(Vec<&'n str>, CellKind<'m>), String>,
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
        let (count, named) = (header.column_count(), header.names().len());
        Ok(Self { count, named, format: header.format, root })
    }

    /// Reads a record without its line break, which begins in this line. A cell that does not have the type of its field
    /// becomes a string.
    ///
    /// # Errors
    /// `ErrorClass::Malformed` if it is not UTF-8, has another number of cells than the header, or has a value in a column
    /// without a name.
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
        let mut unnamed = (1_usize..).zip(&cells).skip(self.named);
        if let Some((number, _)) = unnamed.find(|(_, cell)| !cell.value.trim().is_empty()) {
            let message = format!(
                "the record has a value in the column {number}, which has no name in the header; name the column, or leave \
                 out the value"
            );
            return Err(record_error(line, 1, message));
        }
        Ok(Json::Object(self.build_members(&self.root, &cells)))
    }

    fn build_members(&self, nodes: &[Node<'_>], cells: &[Cell]) -> Vec<(String, Json)> {
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

    /// Returns the value that an ingestion reads from a cell; `None` if it is empty.
    pub(super) fn read_value(&self, kind: CellKind<'_>, text: &str) -> Option<Json> {
        let json = self.convert_cell(kind, text)?;
        let is_boolean = kind.form == Form::Boolean;
        let reading = kind.reading().filter(|reading| is_boolean || reading.reads_number_texts());
        let (Some(property), Some(reading)) = (kind.property, reading) else { return Some(json) };
        let read = |json: Json| match reading.read(property.value.kind(), json.clone()) {
            Ok(read) => read.json,
            Err(_) => json,
        };
        Some(match json {
            Json::Array(elements) => Json::Array(elements.into_iter().map(read).collect()),
            one => read(one),
        })
    }

    /// Returns the JSON of a cell; `None` if it is empty.
    fn convert_cell(&self, kind: CellKind<'_>, text: &str) -> Option<Json> {
        if !kind.is_array {
            return self.convert_value(kind, text);
        }
        // As in JSON, such a value in place of an array is no value.
        let reading = kind.property.and_then(|property| property.reading.as_ref());
        let token = kind.token(text);
        if let Some(absent) = reading.and_then(|reading| reading.find_absent(token))
            && !token.is_empty()
        {
            return Some(absent.clone());
        }
        let is_ordered = kind.property.is_some_and(|property| property.is_ordered);
        let texts = self.format.split_array(text);
        // An empty element of an ordered array is an error of the object.
        let keeps_empty =
            is_ordered && self.format.array_delimiter.is_some() && !text.trim().is_empty();
        let convert = |text: &Cow<'_, str>| {
            self.convert_value(kind, text).or_else(|| keeps_empty.then_some(Json::Null))
        };
        let elements: Vec<Json> = texts.iter().filter_map(convert).collect();
        (!elements.is_empty()).then_some(Json::Array(elements))
    }

    fn convert_value(&self, kind: CellKind<'_>, text: &str) -> Option<Json> {
        let token = kind.token(text);
        if token.is_empty() {
            return None;
        }
        if let Some(listed) = kind.property.and_then(|property| property.find_listed(token)) {
            return Some(listed.clone());
        }
        let converted = match kind.form {
            Form::Number => self.read_number(kind.reading(), token).map(Json::Number),
            Form::Boolean => read_boolean(token).map(Json::Bool),
            Form::Scalar => Some(self.read_scalar(token)),
            Form::Json => read_json(token),
            Form::Text | Form::Token => None,
        };
        Some(converted.unwrap_or_else(|| Json::String(token.to_owned())))
    }

    /// Returns the value of a `scalar`. A string that reads as a number or boolean is in quotes.
    fn read_scalar(&self, text: &str) -> Json {
        if !self.format.decimal_comma {
            return parse_scalar(text);
        }
        match parse_scalar(&text.replace(',', ".")) {
            number @ Json::Number(_) if !text.contains('.') => number,
            Json::Number(_) => Json::String(text.to_owned()),
            _ => parse_scalar(text),
        }
    }

    /// Returns the lexical form of a number, if the text is one, and no form of the field decides it.
    fn read_number(&self, reading: Option<&Reading>, text: &str) -> Option<String> {
        if reading.is_some_and(Reading::reads_number_texts) {
            return None;
        }
        let text = if self.format.decimal_comma && reading.is_none() {
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
    kind: CellKind<'n>,
}

impl<'n> TextField<'n> {
    /// Finds the field of this name in the mapping. A name that is no field is kept as it is.
    ///
    /// # Errors
    /// The reason, if the field holds objects.
    pub(crate) fn find(mapping: &'n Mapping, name: &'n str) -> Result<Self, String> {
        match find_cell(&mapping.root, name) {
            Ok((path, kind)) => Ok(Self { path, kind }),
            Err(FieldError::Unknown(..)) => Ok(Self { path: vec![name], kind: CellKind::TEXT }),
            Err(_) => Err(describe_unusable(name)),
        }
    }

    /// Adds the value to the members of an object, converted to the type of the field. An empty text is no value. Returns
    /// false if the object has the field already.
    pub(crate) fn add_to(&self, members: &mut Vec<(String, Json)>, text: &str) -> bool {
        let columns = Columns::of_cells(CsvFormat::default());
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
        Err(_) => Err(describe_unusable(name)),
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

/// Returns the value of a field of type `json`; `None` if the text is not JSON, or larger than such a value may be. Then it
/// becomes a string, which the field refuses if it is too large. `service.limits.values` does not count what is in a cell.
fn read_json(text: &str) -> Option<Json> {
    let text = json::compact(text).filter(|text| text.len() <= MAX_JSON_BYTES)?;
    json::parse(text.as_bytes(), MAX_NESTING).ok()
}

fn read_boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

/// Adds a cell to the tree. Returns `None` if another one is at its place.
fn insert_cell<'m>(
    nodes: &mut Vec<Node<'m>>,
    path: &[&str],
    index: usize,
    kind: CellKind<'m>,
) -> Option<()> {
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
pub(super) enum FieldError<'s, 'n> {
    /// The shape has no field of this name.
    Unknown(&'s Shape, &'n str),
    /// The field of this name is an array of objects.
    ArrayOfObjects(String),
    Unusable(String),
}

impl FieldError<'_, '_> {
    pub(super) fn describe(self) -> String {
        match self {
            Self::Unknown(shape, name) => describe_unknown(shape, name),
            Self::ArrayOfObjects(name) => format!(
                "the field {name:?} is an array of objects, which CSV cannot hold; send these objects as JSON"
            ),
            Self::Unusable(why) => why,
        }
    }
}

/// Finds the field that a column of this name holds: the names that lead to it, and its kind.
pub(super) fn find_cell<'s: 'n, 'n>(
    shape: &'s Shape,
    name: &'n str,
) -> Result<(Vec<&'n str>, CellKind<'s>), FieldError<'s, 'n>> {
    if shape.is_id(name) {
        let kind = CellKind::single(Form::Token);
        return Ok((vec![name], kind));
    }
    if let Some((field, property)) = find_property(shape, name) {
        return match find_kind(property) {
            Some(kind) => Ok((field.path().collect(), kind)),
            None => Err(objects_error(name, property)),
        };
    }
    let mut error = None;
    for (end, separator) in name.match_indices(['.', '[']) {
        let (parent, nested) = (name.get(..end).unwrap_or_default(), name.get(end + 1..));
        let Some((field, property)) = find_property(shape, parent) else { continue };
        if property.map().is_some() {
            match find_member_cell(property, (parent, name.get(end..).unwrap_or_default())) {
                Ok((mut path, kind)) => {
                    path.splice(..0, field.path());
                    return Ok((path, kind));
                }
                Err(found) => error = Some(found),
            }
            continue;
        }
        if separator != "." {
            continue;
        }
        if let (Some(_), Some(tag)) = (property.value.language_map(), nested) {
            if let Some(kind) = find_text_kind(property, tag) {
                return Ok((field.path().chain([tag]).collect(), kind));
            }
            error = Some(objects_error(parent, property));
            continue;
        }
        let (Value::Object(shape), false) = (&property.value, property.is_array) else {
            error = Some(objects_error(parent, property));
            continue;
        };
        match find_cell(shape, nested.unwrap_or_default()) {
            Ok((mut path, kind)) => {
                path.splice(..0, field.path());
                return Ok((path, kind));
            }
            Err(found) => error = Some(found),
        }
    }
    Err(error.unwrap_or(FieldError::Unknown(shape, name)))
}

/// Finds the field that a column holds in a member of a map. The name of the column is that of the map, and what follows it.
fn find_member_cell<'s: 'n, 'n>(
    property: &'s Property,
    (name, rest): (&'n str, &'n str),
) -> Result<(Vec<&'n str>, CellKind<'s>), FieldError<'s, 'n>> {
    let unusable = || objects_error(name, property);
    let (shape, map) = property.map().ok_or_else(unusable)?;
    let (member, rest) = split_member(rest).ok_or_else(unusable)?;
    let (mut path, kind) = match (map.value, rest.strip_prefix('.')) {
        (None, Some(field)) => find_cell(shape, field)?,
        (None, None) => return Err(unusable()),
        (Some((_, value)), _) if value.map().is_some() => find_member_cell(value, (name, rest))?,
        (Some((_, value)), Some(tag)) => {
            (vec![tag], find_text_kind(value, tag).ok_or_else(unusable)?)
        }
        (Some((_, value)), None) => (Vec::new(), find_kind(value).ok_or_else(unusable)?),
    };
    path.insert(0, member);
    Ok((path, kind))
}

/// Returns the kind of the cells with the texts of a language map in one language.
fn find_text_kind<'s>(property: &'s Property, tag: &str) -> Option<CellKind<'s>> {
    let map = property.value.language_map()?;
    let is_language = map.accepts(tag) && Literal::new_language_tagged_literal("", tag).is_ok();
    let (is_array, property) = (map.has_arrays, Some(property));
    is_language.then_some(CellKind { form: Form::Text, is_array, property })
}

/// Returns the field of this name, with the names of its groups, and its property.
fn find_property<'s>(shape: &'s Shape, name: &str) -> Option<(&'s Field, &'s Property)> {
    let field = shape.find_field(name)?;
    Some((field, field.property()?))
}

/// Returns the kind of a field's cells; `None` if it holds objects.
fn find_kind(property: &Property) -> Option<CellKind<'_>> {
    let is_cell = property.value.shape().is_none() && property.value.language_map().is_none();
    is_cell.then(|| CellKind {
        form: property.value.kind().form,
        is_array: property.is_array,
        property: Some(property),
    })
}

/// Returns why a column of this name cannot hold the field.
fn objects_error(name: &str, property: &Property) -> FieldError<'static, 'static> {
    if property.is_array && property.map().is_none() && property.value.shape().is_some() {
        return FieldError::ArrayOfObjects(name.to_owned());
    }
    FieldError::Unusable(match &property.value {
        Value::Object(_) if let Some((inner, map)) = property.map() => {
            let field = inner.fields.first().filter(|_| map.value.is_none());
            let field = field.map_or_else(String::new, |field| format!(".{}", field.name));
            format!(
                "the field {name:?} is a map; name a member of it and what it holds, such as {name}.NAME{field}, or \
                 {name}[\"NAME\"]{field} if there is a dot in the name"
            )
        }
        Value::Object(shape) => {
            let field = shape.fields.first().map_or("uri", |field| &field.name);
            format!("the field {name:?} is an object; name a field of it, such as {name}.{field}")
        }
        value => match value.language_map() {
            Some(map) => {
                let tag = map.languages.first().map_or("en", String::as_str);
                let tag = format_language_tag(tag);
                format!(
                    "the field {name:?} is a language map; name a language of it, such as {name}.{tag}"
                )
            }
            None => format!("the field {name:?} has values, and no fields of its own"),
        },
    })
}

fn describe_unknown(shape: &Shape, name: &str) -> String {
    let named = shape.fields.iter().filter(|field| !field.is_nameless());
    let known: Vec<&str> = named.map(|field| field.name.as_str()).collect();
    describe_unknown_field(name, "", &known, true)
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
