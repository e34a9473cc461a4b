//! Writes objects as records of CSV. Each cell is read again as an ingestion would read it, so that the text can be sent back,
//! unless numbers have points whatever an ingestion reads.
use super::CsvFormat;
use super::columns::{CellKind, Columns, FieldError, find_cell};
use super::header::{CsvHeader, MAX_COLUMNS};
use crate::mapping::{
    Field, FieldKind, Form, Mapping, Shape, Value, code_text, format_language_tag,
};
use oxrdf::NamedNode;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::json::Json;
use penstock_rdf::number::NumberKey;

/// What ends a record (RFC 4180).
const RECORD_END: &[u8] = b"\r\n";
/// The characters with which spreadsheets begin formulas, and the ones that some drop before a formula.
const FORMULA_STARTS: [char; 7] = ['=', '+', '-', '@', '\t', '\r', '\n'];

/// The maximum number of wrong names in `fields` that an error shows.
const MAX_SHOWN_ERRORS: usize = 20;

/// How objects are written.
#[derive(Debug, Clone, Default)]
pub struct CsvOptions {
    /// The fields, separated by commas; without it, all that CSV can hold and whose names the mapping has.
    pub fields: Option<String>,
    /// The format of the records.
    pub format: CsvFormat,
    /// Whether each number has a decimal point, also in a field that takes another separator.
    pub has_decimal_points: bool,
    /// Whether a `'` is put before what a spreadsheet would take for a formula.
    pub is_for_spreadsheets: bool,
}

/// Writes objects of a mapping.
#[derive(Debug)]
pub struct CsvWriter<'m> {
    columns: Vec<WrittenColumn<'m>>,
    omitted: Vec<String>,
    reader: Columns<'m>,
    format: CsvFormat,
    has_decimal_points: bool,
    is_for_spreadsheets: bool,
}

/// A column, and the names that lead to its value in the JSON of an object.
#[derive(Debug)]
struct WrittenColumn<'m> {
    name: String,
    path: Vec<String>,
    kind: CellKind<'m>,
}

impl<'m> CsvWriter<'m> {
    /// Finds the columns.
    ///
    /// # Errors
    /// `ErrorClass::Invalid` if a field does not exist, cannot be in CSV or is named twice, or if there are more columns than
    /// an ingestion takes.
    pub fn new(mapping: &'m Mapping, options: &CsvOptions) -> Result<Self, GatewayError> {
        let CsvOptions { ref fields, format, has_decimal_points, is_for_spreadsheets } = *options;
        let root = &mapping.root;
        let (mut columns, mut omitted) = (Vec::new(), Vec::new());
        if let Some(text) = fields {
            columns = choose_columns(root, text)?;
        } else {
            list_columns(root, root, ("", &mut Vec::new()), &mut columns, &mut omitted);
        }
        let reader = Columns::of_cells(format);
        let writer =
            Self { columns, omitted, reader, format, has_decimal_points, is_for_spreadsheets };
        let mut header = Vec::new();
        writer.write_header(&mut header);
        let count = writer.columns.len();
        if count > MAX_COLUMNS || header.len() > CsvHeader::MAX_BYTES {
            return Err(invalid_error(format!(
                "the CSV would have {count} columns and a header of {} bytes; the maximum is {MAX_COLUMNS} columns and {} \
                 bytes; choose some with `fields`",
                header.len(),
                CsvHeader::MAX_BYTES
            )));
        }
        Ok(writer)
    }

    /// Returns the names of the fields that have no column, unless the columns were chosen.
    pub fn omitted_fields(&self) -> &[String] {
        &self.omitted
    }

    /// Appends the header.
    pub fn write_header(&self, out: &mut Vec<u8>) {
        let names = self.columns.iter().map(|column| self.disarm(column.name.clone()));
        let names: Vec<String> = names.collect();
        self.write_cells(names.iter().map(String::as_str), out);
    }

    /// Appends the record of an object in the view.
    ///
    /// # Errors
    /// `ErrorClass::Invalid` if an ingestion would read a cell as another value.
    pub fn write_record(
        &self,
        uri: &NamedNode,
        object: &Json,
        out: &mut Vec<u8>,
    ) -> Result<(), GatewayError> {
        let mut cells = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            let value = column.path.iter().try_fold(object, |json, name| json.member(name));
            let cell = value.map_or(Ok(String::new()), |value| self.format_cell(column, value));
            cells.push(cell.map_err(|why| {
                invalid_error(format!(
                    "the object {} cannot be written as CSV, because of its field {:?}: {why}; or download NDJSON, or name \
                     the other fields in `fields`",
                    uri.as_str(),
                    column.name
                ))
            })?);
        }
        self.write_cells(cells.iter().map(String::as_str), out);
        Ok(())
    }

    fn write_cells<'c>(&self, cells: impl Iterator<Item = &'c str>, out: &mut Vec<u8>) {
        let start = out.len();
        for (index, cell) in cells.enumerate() {
            if index > 0 {
                out.push(self.format.delimiter_byte());
            }
            let is_special = |c: char| c == self.format.delimiter || matches!(c, '"' | '\r' | '\n');
            if cell.contains(is_special) {
                out.push(b'"');
                out.extend_from_slice(cell.replace('"', "\"\"").as_bytes());
                out.push(b'"');
            } else {
                out.extend_from_slice(cell.as_bytes());
            }
        }
        if out.len() == start {
            // An empty line is no record.
            out.extend_from_slice(b"\"\"");
        }
        out.extend_from_slice(RECORD_END);
    }

    /// Returns the text of a cell.
    ///
    /// # Errors
    /// Why there is none that an ingestion reads as this value, and what to do.
    fn format_cell(&self, column: &WrittenColumn<'_>, value: &Json) -> Result<String, String> {
        let kind = column.kind;
        let text = match value {
            Json::Null => String::new(),
            Json::Array(elements) if kind.is_array => self.format_array(kind, elements)?,
            // As every empty cell, it says nothing about the field.
            Json::String(text) if text.is_empty() && kind.form != Form::Scalar => String::new(),
            one => self.format_value(kind.of_element(), one)?,
        };
        Ok(if matches!(value, Json::Number(_)) { text } else { self.disarm(text) })
    }

    /// Puts a `'` before a text that a spreadsheet would take for a formula.
    fn disarm(&self, text: String) -> String {
        let is_formula = text.starts_with(FORMULA_STARTS) && NumberKey::parse(&text).is_none();
        if self.is_for_spreadsheets && is_formula { format!("'{text}") } else { text }
    }

    fn format_array(&self, kind: CellKind<'_>, elements: &[Json]) -> Result<String, String> {
        let texts: Result<Vec<String>, String> =
            elements.iter().map(|element| self.format_value(kind.of_element(), element)).collect();
        let text = self.format.join_array(&texts?).ok_or(
            "an element has the delimiter of elements; choose another one with `arrayDelimiter`, or send arrayEscape=true",
        )?;
        let is_number = |element: &Json| matches!(element, Json::Number(_));
        if self.has_decimal_points && !elements.is_empty() && elements.iter().all(is_number) {
            return Ok(text);
        }
        // As a whole it may mean no value.
        let read = self.reader.read_value(kind, &text);
        let is_same = match &read {
            None => elements.is_empty(),
            Some(Json::Array(read)) => {
                read.len() == elements.len()
                    && read.iter().zip(elements).all(|(read, one)| is_same(kind, read, one))
            }
            Some(_) => false,
        };
        if is_same { Ok(text) } else { Err(describe_unwritable(&text)) }
    }

    /// Returns the text of one value.
    fn format_value(&self, kind: CellKind<'_>, value: &Json) -> Result<String, String> {
        let mut texts = Vec::new();
        match value {
            Json::String(text) if kind.form != Form::Json => texts.push(text.clone()),
            Json::Number(digits) if self.has_decimal_points => return Ok(digits.clone()),
            Json::Number(digits) => {
                let comma = self.format.decimal_comma.then_some(',');
                let separators = kind.decimal_separators().chain(comma);
                texts.push(digits.clone());
                texts.extend(separators.map(|mark| digits.replacen('.', &mark.to_string(), 1)));
            }
            _ => {}
        }
        if !matches!(value, Json::Number(_)) && (texts.is_empty() || kind.form == Form::Scalar) {
            texts.push(value.to_string());
        }
        let is_read = |text: &String| {
            let read = self.reader.read_value(kind, text);
            read.is_some_and(|read| is_same(kind, &read, value))
        };
        texts.into_iter().find(is_read).ok_or_else(|| describe_unwritable(&value.to_string()))
    }
}

/// Returns whether a value that was read from a cell is the one that was written. A string in a field of numbers or booleans
/// was stored by others; an ingestion of the field would refuse it.
fn is_same(kind: CellKind<'_>, read: &Json, written: &Json) -> bool {
    let is_misfit = matches!(kind.form, Form::Number | Form::Boolean);
    match written {
        Json::String(text) if is_misfit => code_text(read) == text.as_str(),
        _ => read == written,
    }
}

fn describe_unwritable(text: &str) -> String {
    let shown: String = text.chars().take(80).collect();
    format!("no cell is read as its value {shown:?}; correct the value")
}

/// Finds the columns of these names.
fn choose_columns<'m>(root: &'m Shape, text: &str) -> Result<Vec<WrittenColumn<'m>>, GatewayError> {
    let mut columns: Vec<WrittenColumn<'m>> = Vec::new();
    let mut errors = Vec::new();
    for name in split_names(text) {
        match WrittenColumn::find(root, name) {
            Err(why) => errors.push(why),
            Ok(column) if columns.iter().any(|known| known.path == column.path) => {
                errors.push(format!("{name:?} is there twice"));
            }
            Ok(column) => columns.push(column),
        }
        // A message can take a while: it looks for a similar name.
        if errors.len() == MAX_SHOWN_ERRORS {
            break;
        }
    }
    if errors.is_empty() {
        return Ok(columns);
    }
    Err(invalid_error(format!("`fields`: {}", errors.join("; "))))
}

/// Splits names at the commas between them, but not within `["…"]`.
fn split_names(text: &str) -> Vec<&str> {
    let (mut names, mut start, mut is_quoted) = (Vec::new(), 0, false);
    for (at, character) in text.char_indices() {
        let (before, rest) = text.split_at(at);
        match character {
            '[' if rest.starts_with("[\"") => is_quoted = true,
            ']' if before.ends_with('"') => is_quoted = false,
            ',' if !is_quoted => {
                names.push(before.get(start..).unwrap_or_default().trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    names.push(text.get(start..).unwrap_or_default().trim());
    names
}

impl<'m> WrittenColumn<'m> {
    fn find(root: &'m Shape, name: &str) -> Result<Self, String> {
        let (path, kind) = match find_cell(root, name) {
            Ok((path, kind)) => (path, kind),
            Err(FieldError::ArrayOfObjects(name)) => {
                return Err(format!(
                    "the field {name:?} is an array of objects, which CSV cannot hold; leave it out, or use format=ndjson \
                     without `fields`"
                ));
            }
            Err(error) => return Err(error.describe()),
        };
        let mut path: Vec<String> = path.into_iter().map(str::to_owned).collect();
        if kind.has_language()
            && let Some(tag) = path.last_mut()
        {
            // As the view writes it.
            *tag = format_language_tag(tag).into_owned();
        }
        Ok(Self { name: name.to_owned(), path, kind })
    }
}

/// Adds the columns of the fields of a shape, to which this prefix and path lead: single values, arrays of values, and those of
/// single nested objects. A language map has a column for each of its languages. Arrays of objects have none, nor maps: they are
/// `omitted`.
fn list_columns<'m>(
    root: &'m Shape,
    shape: &Shape,
    (prefix, path): (&str, &mut Vec<String>),
    columns: &mut Vec<WrittenColumn<'m>>,
    omitted: &mut Vec<String>,
) {
    let is_uri = |field: &Field| field.kind == FieldKind::Id && field.name == "uri";
    if !shape.fields.iter().any(is_uri) {
        path.push("uri".to_owned());
        add_column(root, &format!("{prefix}uri"), path, columns);
        path.pop();
    }
    for field in shape.fields.iter().filter(|field| !field.is_nameless()) {
        let depth = path.len();
        path.extend(field.path().map(str::to_owned));
        let name = format!("{prefix}{}", field.name);
        let value = field.property().map(|property| &property.value);
        match (value, value.and_then(Value::language_map)) {
            (Some(Value::Object(nested)), _) => {
                let is_array = field.property().is_some_and(|property| property.is_array);
                if is_array || nested.map_member().is_some() {
                    omitted.push(name);
                } else {
                    list_columns(root, nested, (&format!("{name}."), path), columns, omitted);
                }
            }
            (_, Some(map)) if map.languages.is_empty() => omitted.push(name),
            (_, Some(map)) => {
                for tag in &map.languages {
                    let tag = format_language_tag(tag).into_owned();
                    let name = format!("{name}.{tag}");
                    path.push(tag);
                    add_column(root, &name, path, columns);
                    path.pop();
                }
            }
            _ => add_column(root, &name, path, columns),
        }
        path.truncate(depth);
    }
}

/// Adds a column, unless another field has exactly its name.
fn add_column<'m>(
    root: &'m Shape,
    name: &str,
    path: &[String],
    columns: &mut Vec<WrittenColumn<'m>>,
) {
    if let Ok(column) = WrittenColumn::find(root, name)
        && column.path == path
    {
        columns.push(column);
    }
}

fn invalid_error(detail: String) -> GatewayError {
    GatewayError::new(ErrorClass::Invalid, detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::compile;
    use penstock_base::json::{self, MAX_NESTING};

    const MAPPING: &str = "
type: object
path: 'Pump:.'
fields:
  id: {type: id}
  name: {type: string, path: <urn:name>}
  flow: {type: number, path: <urn:flow>}
  price: {type: number, path: <urn:price>, accept: {decimal: ',', group: '.'}}
  running: {type: boolean, path: <urn:running>}
  state: {type: string, path: <urn:state>, values: {0: 'off', 1: 'on'}}
  any: {type: scalar, path: <urn:any>}
  raw: {type: json, path: <urn:raw>}
  title: {type: languageMap, path: <urn:title>, languages: [en, de-at]}
  note: {type: languageMap, path: <urn:note>}
  tags: {type: array, path: <urn:tags>}
  steps: {type: array, ordered: true, path: <urn:steps>, elements: {type: number}}
  limits: {type: group, fields: {low: {type: number, path: <urn:low>}}}
  place.room: {type: string, path: <urn:pr>}
  place: {type: object, path: '<urn:place>/Place:.', fields: {room: {type: string, path: <urn:room>}, floor: {type: integer, path: <urn:floor>}}}
  parts: {type: array, elements: {type: object, path: '<urn:part>/Part:.', fields: {label: {type: string, path: <urn:label>}}}}
  sensors: {type: map, path: '<urn:sensor>/Sensor:.', key: {path: <urn:key>}, elements: {type: number, path: <urn:v>}}
";

    const HEADER: &str = "uri,id,name,flow,price,running,state,any,raw,title.en,title.de-AT,tags,steps,limits.low,place.room,\
        place.uri,place.floor";

    fn options(format: CsvFormat) -> CsvOptions {
        let format = CsvFormat { array_delimiter: Some('|'), ..format };
        CsvOptions { format, ..CsvOptions::default() }
    }

    /// Returns the header and the record of an object.
    fn write(options: &CsvOptions, object: &str) -> Result<(String, String), GatewayError> {
        let mapping = compile(MAPPING).unwrap();
        let writer = CsvWriter::new(&mapping, options)?;
        let object = json::parse(object.as_bytes(), MAX_NESTING).unwrap();
        let (mut header, mut record) = (Vec::new(), Vec::new());
        writer.write_header(&mut header);
        writer.write_record(&NamedNode::new_unchecked("urn:p:1"), &object, &mut record)?;
        let text = |bytes: Vec<u8>| {
            String::from_utf8(bytes).unwrap().strip_suffix("\r\n").unwrap().to_owned()
        };
        Ok((text(header), text(record)))
    }

    /// Returns the object that an ingestion reads from a record.
    fn read(format: CsvFormat, (header, record): &(String, String)) -> String {
        let mapping = compile(MAPPING).unwrap();
        let header = CsvHeader::read(header.as_bytes(), format, 1).unwrap();
        let columns = Columns::find(&header, &mapping).unwrap();
        columns.read_record(record.as_bytes(), 2).unwrap().to_string()
    }

    #[test]
    fn a_record_is_read_as_the_object_that_was_written() {
        let format = CsvFormat { array_delimiter: Some('|'), ..CsvFormat::default() };
        let object = r#"{"uri":"urn:p:1","id":"urn:p:1","name":"a \"b\", c\r\nd ","flow":12.50,"running":true,"state":0,"any":"7","raw":{"a":[1.0,null]},"title":{"en":"Pump","de-AT":"Pumpe"},"tags":["x","y z"],"steps":[2,1,2],"limits":{"low":-1},"place.room":"other","place":{"uri":"urn:pl:1","floor":3}}"#;
        let written = write(&options(format), object).unwrap();
        assert_eq!(written.0, HEADER);
        assert_eq!(
            written.1,
            "urn:p:1,urn:p:1,\"a \"\"b\"\", c\r\nd \",12.50,,true,0,\"\"\"7\"\"\",\"{\"\"a\"\":[1.0,null]}\",Pump,Pumpe,x|y z,2|1|2,-1,\
             other,urn:pl:1,3"
        );
        assert_eq!(read(format, &written), object);
        // Without values, only the URI.
        let empty = write(&options(format), r#"{"uri":"urn:p:1","tags":[],"name":""}"#).unwrap();
        assert_eq!(empty.1, format!("urn:p:1{}", ",".repeat(16)));
    }

    #[test]
    fn numbers_are_written_as_the_field_and_the_format_read_them() {
        let fields = |fields: &str, format| CsvOptions {
            fields: Some(fields.to_owned()),
            ..options(format)
        };
        let semicolons = CsvFormat { delimiter: ';', decimal_comma: true, ..CsvFormat::default() };
        let object = r#"{"flow":-1.50,"price":1.234,"any":2.5,"steps":[0.5,3]}"#;
        let (header, record) = write(&fields("price, flow,any,steps", semicolons), object).unwrap();
        assert_eq!(
            (header.as_str(), record.as_str()),
            ("price;flow;any;steps", "1,234;-1,50;2,5;0,5|3")
        );
        let (_, record) = write(&fields("price,flow", CsvFormat::default()), object).unwrap();
        assert_eq!(record, "\"1,234\",-1.50");
        let points = CsvOptions {
            has_decimal_points: true,
            ..fields("price,flow,any,steps", CsvFormat::default())
        };
        assert_eq!(write(&points, object).unwrap().1, "1.234,-1.50,2.5,0.5|3");
        // A string in a field of numbers was stored by others.
        let (_, record) = write(&fields("flow", CsvFormat::default()), r#"{"flow":"5"}"#).unwrap();
        assert_eq!(record, "5");
    }

    #[test]
    fn a_boolean_is_written_although_the_field_accepts_its_text() {
        let accept = "accept: {true: ['true', 'on'], false: ['false']}";
        let mapping = compile(&format!(
            "type: object\npath: Pump:.\nfields:\n  run: {{type: boolean, path: <urn:run>, {accept}}}\n  \
             all: {{type: array, path: <urn:all>, elements: {{type: boolean, {accept}}}}}\n"
        ))
        .unwrap();
        let writer = CsvWriter::new(&mapping, &options(CsvFormat::default())).unwrap();
        let object = json::parse(br#"{"run":true,"all":[false,true]}"#, MAX_NESTING).unwrap();
        let mut record = Vec::new();
        writer.write_record(&NamedNode::new_unchecked("urn:p:1"), &object, &mut record).unwrap();
        assert_eq!(record, b",true,false|true\r\n");
    }

    #[test]
    fn delimiters_in_elements_need_the_escape() {
        let fields = |format| CsvOptions { fields: Some("tags".to_owned()), ..options(format) };
        let object = r#"{"tags":["a|b","c\\d"]}"#;
        let error = write(&fields(CsvFormat::default()), object).unwrap_err();
        assert!(error.detail.contains("arrayEscape=true"), "{error}");
        let format = CsvFormat { array_delimiter: Some('|'), ..CsvFormat::default() };
        let format = format.with_array_escape().unwrap();
        let written = write(&fields(format), object).unwrap();
        assert_eq!(written.1, r"a\|b|c\\d");
        assert_eq!(read(format, &written), object);
        // An empty element would be lost.
        let error = write(&fields(format), r#"{"tags":["","a"]}"#).unwrap_err();
        assert!(error.detail.contains("the object urn:p:1"), "{error}");
    }

    #[test]
    fn spreadsheets_get_no_formulas() {
        let fields = |is_for_spreadsheets| CsvOptions {
            fields: Some("name".to_owned()),
            is_for_spreadsheets,
            ..CsvOptions::default()
        };
        for (name, cell) in
            [("=1+1", "'=1+1"), ("@a", "'@a"), ("-x", "'-x"), ("-5", "-5"), ("a=", "a=")]
        {
            let object = format!(r#"{{"name":"{name}"}}"#);
            assert_eq!(write(&fields(true), &object).unwrap().1, cell);
            assert_eq!(write(&fields(false), &object).unwrap().1, name);
        }
        for (name, cell) in [(r"\t=1+1", "'\t=1+1"), (r"\r@a", "\"'\r@a\""), (r"\n=x", "\"'\n=x\"")]
        {
            let object = format!(r#"{{"name":"{name}"}}"#);
            assert_eq!(write(&fields(true), &object).unwrap().1, cell);
        }
        assert_eq!(write(&fields(false), "{}").unwrap().1, "\"\"", "an empty line is no record");
        let config = "type: object\npath: Pump:.\nfields: {'=a': {type: string, path: <urn:a>}}\n";
        let mapping = compile(config).unwrap();
        let options = CsvOptions { is_for_spreadsheets: true, ..CsvOptions::default() };
        let mut header = Vec::new();
        CsvWriter::new(&mapping, &options).unwrap().write_header(&mut header);
        assert_eq!(header, b"uri,'=a\r\n");
    }

    #[test]
    fn fields_without_a_column_are_named() {
        let mapping = compile(MAPPING).unwrap();
        let writer = CsvWriter::new(&mapping, &CsvOptions::default()).unwrap();
        assert_eq!(writer.omitted_fields(), ["note", "parts", "sensors"]);
    }

    #[test]
    fn chosen_fields_may_be_members_and_languages() {
        let fields =
            |text: &str| CsvOptions { fields: Some(text.to_owned()), ..CsvOptions::default() };
        let object = r#"{"note":{"fr":"x"},"sensors":{"a,b":1,"T1":2}}"#;
        let (header, record) =
            write(&fields(r#"note.FR,sensors["a,b"],sensors.T1"#), object).unwrap();
        assert_eq!(
            (header.as_str(), record.as_str()),
            (r#"note.FR,"sensors[""a,b""]",sensors.T1"#, "x,1,2")
        );
        for (text, words) in [
            ("none", "no field"),
            ("parts", "an array of objects"),
            ("sensors", "is a map"),
            ("name,name", "twice"),
            ("", "no field"),
        ] {
            let error = write(&fields(text), "{}").unwrap_err();
            assert_eq!(error.class, ErrorClass::Invalid);
            assert!(error.detail.contains(words), "{error}");
        }
    }
}
