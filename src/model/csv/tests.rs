use super::columns::Columns;
use super::records::{Cell, read_cells};
use super::*;
use crate::mapping::{Mapping, compile};
use csv_core::{ReadFieldResult, ReaderBuilder, Terminator};
use penstock_base::error::{ErrorClass, GatewayError, Place};
use penstock_base::json::SampleLimits;
use proptest::prelude::*;

const MAPPING: &str = "\
type: object
path: Pump:.
fields:
  id: {type: id}
  name: {type: string, path: <urn:name>}
  flow: {type: number, path: <urn:flow>}
  stages: {type: integer, path: <urn:stages>}
  running: {type: boolean, path: <urn:running>}
  built: {type: date, path: <urn:built>}
  maker: {type: resource, path: <urn:maker>}
  tags: {type: array, path: <urn:tags>}
  limits: {type: array, path: <urn:limits>, elements: number}
  a.b: {type: string, path: <urn:ab>}
  position:
    type: object
    path: <urn:position>/Position:.
    fields:
      latitude: {type: number, path: <urn:latitude>}
      site.code: {type: string, path: <urn:site>}
  parts:
    type: array
    path: <urn:part>
    elements:
      type: object
      path: Part:.
      fields:
        label: {type: string, path: <urn:label>}
";

#[test]
fn a_column_holds_a_field_in_a_group() {
    let config = "\
type: object
path: Pump:.
fields:
  limits:
    type: group
    fields:
      low: {type: number, path: <urn:low>}
      place: {type: object, path: \"<urn:place>/Place:.\", fields: {room: {type: string, path: <urn:room>}}}
";
    let header = CsvHeader::read(b"limits.low,limits.place.room", CsvFormat::default(), 1).unwrap();
    let mapping = compile(config).unwrap();
    let columns = Columns::find(&header, &mapping).unwrap();
    let record = columns.read_record(b"1.50,R1", 2).unwrap();
    assert_eq!(record.to_string(), r#"{"limits":{"low":1.50,"place":{"room":"R1"}}}"#);
}

fn mapping() -> Mapping {
    compile(MAPPING).unwrap()
}

fn semicolons() -> CsvFormat {
    CsvFormat {
        delimiter: ';',
        array_delimiter: Some('|'),
        decimal_comma: true,
        ..CsvFormat::default()
    }
}

/// Returns the JSON of a record below a header.
fn read_record(header: &str, record: &str, format: CsvFormat) -> Result<String, GatewayError> {
    let header = CsvHeader::read(header.as_bytes(), format, 1)?;
    let mapping = mapping();
    let columns = Columns::find(&header, &mapping)?;
    columns.read_record(record.as_bytes(), 7).map(|json| json.to_string())
}

/// Returns the columns and the messages of the errors in a header.
fn header_errors(header: &str) -> Vec<(u64, String)> {
    let error = read_record(header, "", CsvFormat::default()).unwrap_err();
    assert_eq!(error.class, ErrorClass::Invalid, "{error}");
    let place = |place| match place {
        Place::Line { line: 1, column } => column,
        other => panic!("{other:?}"),
    };
    error.findings.into_iter().map(|found| (place(found.place), found.message)).collect()
}

#[test]
fn cells_get_the_types_of_their_fields() {
    let header =
        "uri,name,flow,stages,running,built,maker,tags,a.b,position.latitude,position.site.code";
    let record = r#"urn:p:1," P ""1"" ", 12.50 ,+007,TRUE,2019-05-04 ,urn:m,"x|y",z,.5,S"#;
    let json = read_record(header, record, CsvFormat::default()).unwrap();
    assert_eq!(
        json,
        r#"{"uri":"urn:p:1","name":" P \"1\" ","flow":12.50,"stages":+007,"running":true,"built":"2019-05-04","#
            .to_owned()
            + r#""maker":"urn:m","tags":["x|y"],"a.b":"z","position":{"latitude":.5,"site.code":"S"}}"#
    );
    let json = read_record("id;tags;limits;flow", "urn:p;x||y;1,5|2;-0,10", semicolons()).unwrap();
    assert_eq!(json, r#"{"id":"urn:p","tags":["x","y"],"limits":[1.5,2],"flow":-0.10}"#);
}

#[test]
fn scalars_and_json_are_read_as_json_writes_them() {
    let mapping = "type: object\npath: A:.\nfields:\n  s: {type: scalar, path: <urn:s>}\n  j: {type: json, path: <urn:j>}\n";
    let mapping = compile(mapping).unwrap();
    let read = |record: &str, format: CsvFormat| {
        let header = CsvHeader::read(b"s;j", format, 1).unwrap();
        let columns = Columns::find(&header, &mapping).unwrap();
        columns.read_record(record.as_bytes(), 2).unwrap().to_string()
    };
    let format = semicolons();
    for (record, json) in [
        ("7.50;[1.50, null]", r#"{"s":7.50,"j":[1.50,null]}"#),
        ("007; ", r#"{"s":"007"}"#),
        ("true;open", r#"{"s":true,"j":"open"}"#),
        (r#""""7""";7"#, r#"{"s":"7","j":7}"#),
        (" a ;", r#"{"s":" a "}"#),
    ] {
        assert_eq!(read(record, CsvFormat { decimal_comma: false, ..format }), json);
    }
    let format = CsvFormat { decimal_comma: true, ..format };
    assert_eq!(read("7,50;", format), r#"{"s":7.50}"#);
    assert_eq!(read("7.50;", format), r#"{"s":"7.50"}"#);
}

#[test]
fn an_empty_cell_is_absent() {
    let header = "name,flow,tags,position.latitude,running";
    let format = CsvFormat::default();
    assert_eq!(read_record(header, "\"\",,,,", format).unwrap(), "{}");
    assert_eq!(read_record(header, " , ,,,1", format).unwrap(), r#"{"name":" ","running":true}"#);
}

#[test]
fn a_cell_of_another_type_stays_a_string() {
    let (header, expected) =
        ("flow;stages;running", r#"{"flow":"1.000,5","stages":"x","running":"2"}"#);
    assert_eq!(read_record(header, "1.000,5;x;2", semicolons()).unwrap(), expected);
    let json = read_record("flow", "INF", CsvFormat::default()).unwrap();
    assert_eq!(json, r#"{"flow":"INF"}"#);
}

#[test]
fn each_error_of_a_header_has_its_column() {
    let found = header_errors("naem,parts,\"position\",,flow,flow,position.depth");
    let columns: Vec<u64> = found.iter().map(|(column, _)| *column).collect();
    // Names that are empty or occur twice are found first.
    assert_eq!(columns, [23, 29], "{found:?}");
    let found = header_errors("naem,parts,\"position\",flow,position.depth,parts.label,uri,id");
    let columns: Vec<u64> = found.iter().map(|(column, _)| *column).collect();
    assert_eq!(columns, [1, 6, 12, 28, 43], "{found:?}");
    assert!(found[0].1.contains("did you mean \"name\"?"), "{found:?}");
    assert!(found[1].1.contains("array of objects"), "{found:?}");
    assert!(found[2].1.contains("position.latitude"), "{found:?}");
}

#[test]
fn a_carriage_return_alone_ends_no_line() {
    let read = |text: &str| CsvHeader::read(text.as_bytes(), CsvFormat::default(), 1);
    // Otherwise a mapping that ignores unknown fields would take all records for names of columns.
    for (text, column) in [
        ("tag,name\rP-1,Feed\rP-2,Drain\r", 9),
        ("\"tag\",\"na\"\"me\"\r\"P-1\",\"Feed\"\r", 15),
        ("5\" pipe,name\r,\r", 13),
    ] {
        let error = read(text).unwrap_err();
        assert_eq!(error.class, ErrorClass::Invalid, "{error}");
        assert_eq!(error.findings[0].place, Place::Line { line: 1, column }, "{text:?}");
        assert!(error.detail.contains("end each line with CR LF or LF"), "{error}");
    }
    // Also before the limits of a header.
    let long = read(&"P-1,Feed\r".repeat(20_000)).unwrap_err();
    assert_eq!(long.class, ErrorClass::Invalid, "{long}");
    // A name in quotes may have any line break.
    for text in ["\"flow\r\n(m3/h)\",name\r", "\"flow\r(m3/h)\",name\r\r\n"] {
        assert!(read(text).is_ok(), "{text:?}");
    }
}

#[test]
fn the_delimiter_of_elements_divides_no_numbers() {
    let mapping = compile(
        "type: object
path: Pump:.
fields:
  numbers: {type: array, path: <urn:n>, elements: number}
  whole: {type: array, path: <urn:w>, elements: integer}
  commas: {type: array, path: <urn:c>, elements: {type: number, accept: {decimal: ',', group: \"'\"}}}
  texts: {type: array, path: <urn:t>, elements: {type: number, accept: text}}
  any: {type: array, path: <urn:a>, elements: scalar}
  one: {type: number, path: <urn:o>}
  names: {type: array, path: <urn:names>}
",
    )
    .unwrap();
    let refused = |format: CsvFormat| -> Vec<Place> {
        let header = CsvHeader::read(b"numbers;whole;commas;texts;any;one;names", format, 1);
        match Columns::find(&header.unwrap(), &mapping) {
            Ok(_) => Vec::new(),
            Err(error) => {
                assert_eq!(error.class, ErrorClass::Invalid, "{error}");
                let message = &error.findings[0].message;
                assert!(message.contains("choose another arrayDelimiter"), "{message}");
                error.findings.into_iter().map(|found| found.place).collect()
            }
        }
    };
    let [numbers, commas, texts, any] =
        [1, 15, 22, 28].map(|column| Place::Line { line: 1, column });
    for (delimiter, decimal_comma, expected) in [
        (',', true, vec![&numbers, &commas, &any]),
        (',', false, vec![&commas]),
        ('.', true, vec![&numbers, &texts, &any]),
        ('.', false, vec![&numbers, &texts, &any]),
        ('\'', false, vec![&commas]),
        ('|', true, vec![]),
    ] {
        let format = CsvFormat { array_delimiter: Some(delimiter), decimal_comma, ..semicolons() };
        let found = refused(format);
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{delimiter} {decimal_comma}");
        // A `\` can stand before the separator.
        assert!(refused(format.with_array_escape().unwrap()).is_empty());
    }
}

#[test]
fn a_wrong_delimiter_is_suggested() {
    let found = header_errors("name;flow");
    assert!(found[0].1.contains("?delimiter=%3B"), "{found:?}");
}

#[test]
fn a_record_needs_as_many_cells_as_the_header() {
    for record in ["a", "a,1,b", "a,1,"] {
        let error = read_record("name,flow", record, CsvFormat::default()).unwrap_err();
        assert_eq!(error.class, ErrorClass::Malformed, "{record}");
        assert_eq!(error.findings[0].place, Place::Line { line: 7, column: 1 });
    }
    let error = read_record("name,flow", "a,1,5", CsvFormat::default()).unwrap_err();
    assert!(error.detail.contains("the 2 columns") && error.detail.contains("quotes"), "{error}");
}

#[test]
fn columns_after_the_last_name_are_empty() {
    let format = CsvFormat::default();
    let json = r#"{"name":"a","flow":1}"#;
    assert_eq!(read_record("name,flow,, ", "a,1,, ", format).unwrap(), json);
    for (record, words) in [
        ("a,1,,x", "a value in the column 4, which has no name"),
        ("a,1", "has 2 cells, and the header has 4"),
        ("a,1,,,", "more cells than the 4 columns"),
    ] {
        let error = read_record("name,flow,, ", record, format).unwrap_err();
        assert_eq!(error.class, ErrorClass::Malformed, "{record}");
        assert_eq!(error.findings[0].place, Place::Line { line: 7, column: 1 });
        assert!(error.detail.contains(words), "{error}");
    }
    let columns = |header: &str| CsvHeader::read(header.as_bytes(), format, 1);
    assert_eq!(columns("name,flow,,").unwrap().column_count(), 4);
    let unnamed = columns("\"\",").unwrap_err();
    assert_eq!(unnamed.findings.len(), 2, "{unnamed}");
}

#[test]
fn a_sample_may_begin_with_the_delimiter_and_end_its_records_with_it() {
    for first in ["sep=|\r\n", "\u{feff}sep=|\n"] {
        let text = format!("{first}name|flow|\na;b|1|\nc|2|\n");
        let sample = CsvSample::read(&text, guess_format(&text).unwrap(), LIMITS).unwrap().unwrap();
        let objects: Vec<String> =
            sample.to_objects().unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(objects, [r#"{"name":"a;b","flow":1}"#, r#"{"name":"c","flow":2}"#]);
        assert_eq!(sample.to_chunk().1, [3, 4]);
        // Also where the guess was another one.
        let sample = CsvSample::read(&text, CsvFormat::default(), LIMITS).unwrap().unwrap();
        assert_eq!(sample.header().format.delimiter, '|');
    }
}

#[test]
fn a_header_has_limits() {
    let read = |text: String| CsvHeader::read(text.as_bytes(), CsvFormat::default(), 1);
    let names: Vec<String> = (0..2001).map(|number| format!("n{number}")).collect();
    assert!(read(names[1..].join(",")).is_ok());
    assert_eq!(read(names.join(",")).unwrap_err().class, ErrorClass::Malformed);
    let longest = "x".repeat(CsvHeader::MAX_BYTES);
    assert!(read(longest.clone()).is_ok());
    assert_eq!(read(longest + "x").unwrap_err().class, ErrorClass::TooLarge);
}

#[test]
fn bytes_that_are_not_utf_8_are_an_error_with_their_column() {
    let error = read_cells(b"M\xC3\xBCll,\xFC", CsvFormat::default(), 3, 9).unwrap_err();
    assert_eq!(error.findings[0].place, Place::Line { line: 3, column: 6 });
    assert!(error.detail.contains("charset=windows-1252"), "{error}");
}

#[test]
fn delimiters_are_checked() {
    assert_eq!(CsvFormat::new(Some("tab"), Some("|"), false).unwrap().delimiter, '\t');
    for (delimiter, array) in
        [("", None), (";;", None), ("\"", None), ("ä", None), (";", Some(";"))]
    {
        let error = CsvFormat::new(Some(delimiter), array, false).unwrap_err();
        assert_eq!(error.class, ErrorClass::Malformed, "{delimiter}");
    }
}

#[test]
fn the_debug_form_of_a_format_is_that_of_stored_digests() {
    let format = semicolons();
    let stored = "CsvFormat { delimiter: ';', array_delimiter: Some('|'), decimal_comma: true }";
    assert_eq!(format!("{format:?}"), stored);
    assert_ne!(format!("{:?}", format.with_array_escape().unwrap()), stored);
}

const LIMITS: SampleLimits = SampleLimits { nesting: 9, elements: 4, values: 100, bytes: 9999 };

#[test]
fn the_format_and_the_types_of_a_sample_are_guessed() {
    let text = "\u{feff}tag;flow;code;on;position.latitude\r\n\r\nP-1;1,50;007;true;47,1\r\n;;;;\r\n\"P;2\";;12;false;";
    let format = guess_format(text).unwrap();
    let expected = CsvFormat { delimiter: ';', decimal_comma: true, ..CsvFormat::default() };
    assert_eq!(format, expected);
    let sample = CsvSample::read(text, format, LIMITS).unwrap().unwrap();
    let objects: Vec<String> =
        sample.to_objects().unwrap().iter().map(ToString::to_string).collect();
    let first = r#"{"tag":"P-1","flow":1.50,"code":"007","on":true,"position":{"latitude":47.1}}"#;
    assert_eq!(objects, [first, r#"{"tag":"P;2","code":"12","on":false}"#]);
    assert_eq!(guess_format("a;b\n1.5;1,5\n").map(|format| format.decimal_comma), Some(false));
    assert_eq!(guess_format("a;b\n1,5;1.5\n").map(|format| format.decimal_comma), Some(false));
    assert_eq!(guess_format("\"a,b,c\";d\n1;2\n").map(|format| format.delimiter), Some(';'));
    assert_eq!(guess_format("a\tb\n1\t2").map(|format| format.delimiter), Some('\t'));
    for json in ["{\"a\":\n1}", "[\n]", "{\"a\": 1}\n{\"a\": 2}", "7", ""] {
        assert_eq!(guess_format(json), None, "{json}");
    }
}

#[test]
fn only_the_beginning_of_a_text_is_read_to_guess_its_format() {
    let records = |record: &str, bytes: usize| record.repeat(bytes / record.len() + 1);
    let (first, rest) = (records("1,5;x\n", 64 << 10), "1.5;x\n");
    let guess = |text: &str| guess_format(text).map(|format| format.decimal_comma);
    assert_eq!(guess(&format!("a;b\n{rest}{first}")), Some(false));
    assert_eq!(guess(&format!("a;b\n{first}{rest}")), Some(true));
    // A header that is too long, and a quote that nothing closes.
    let names = records("name;", 100 << 10);
    let format = guess_format(&format!("{names}\n1,5\n")).unwrap();
    assert_eq!((format.delimiter, format.decimal_comma), (';', false));
    assert_eq!(guess(&format!("a;b\n\"{first}")), Some(false));
    let cells = records("1,5;", 60 << 10);
    assert_eq!(guess(&format!("a;b\n{cells}\n")), Some(false), "no record has 2,000 cells");
}

#[test]
fn a_sample_is_a_chunk_of_records_at_even_distances() {
    let text = "name,flow\n4711,1\n\n\"47\n12\",2\r\n4713,3\n4714,4\n4715,5\n";
    let sample = CsvSample::read(text, CsvFormat::default(), LIMITS).unwrap().unwrap();
    assert_eq!(sample.counts(), (3, 5));
    let (chunk, lines) = sample.to_chunk();
    assert_eq!((chunk, lines), (b"4711,1\n4713,3\n4715,5\n".to_vec(), vec![2, 6, 8]));
    let text = "name,flow\n\"47\n12\",2\r\n4713,3\n";
    let sample = CsvSample::read(text, CsvFormat::default(), LIMITS).unwrap().unwrap();
    assert_eq!(sample.to_chunk(), (b"\"47\n12\",2\n4713,3\n".to_vec(), vec![2, 4]));
}

#[test]
fn a_name_with_too_many_levels_is_refused() {
    let text = format!("name,a{}\nnorth,1\n", ".a".repeat(30_000));
    let sample = CsvSample::read(&text, CsvFormat::default(), LIMITS).unwrap().unwrap();
    let error = sample.to_objects().unwrap_err();
    assert!(error.to_string().contains("has 30001 levels; the maximum is 20"), "{error}");
}

#[test]
fn a_sample_of_long_records_is_smaller() {
    let text = format!("name\n{0}\n{0}\n{0}\n{0}\n", "x".repeat(400));
    let read = |bytes| {
        let limits = SampleLimits { bytes, ..LIMITS };
        CsvSample::read(&text, CsvFormat::default(), limits).map(|sample| sample.unwrap().counts())
    };
    assert_eq!(read(1600), Ok((4, 4)));
    assert_eq!(read(1000), Ok((2, 4)));
    assert_eq!(read(399).unwrap_err().class, ErrorClass::TooLarge);
}

#[test]
fn a_quoted_blank_record_is_a_record_and_an_empty_line_is_none() {
    for (text, expected) in [
        ("name\n\"\"\n", 1),
        ("name\n\n \n\r\n", 0),
        ("name\n\"\"\r\n\n\"\"", 2),
        ("name,flow\n,\n\"\",\n", 1),
    ] {
        let sample = CsvSample::read(text, CsvFormat::default(), LIMITS).unwrap().unwrap();
        assert_eq!(sample.counts(), (expected, expected), "{text:?}");
    }
}

#[test]
fn a_byte_order_mark_before_a_quoted_header_is_no_part_of_a_name() {
    let text = "\u{feff}\"na\nme\";flow\n1;2\n";
    let format = CsvFormat { delimiter: ';', ..CsvFormat::default() };
    let sample = CsvSample::read(text, format, LIMITS).unwrap().unwrap();
    assert_eq!(sample.counts(), (1, 1));
    assert_eq!(sample.to_objects().unwrap()[0].to_string(), r#"{"na\nme":1,"flow":2}"#);
}

fn write_cell(cell: &str) -> String {
    format!("\"{}\"", cell.replace('"', "\"\""))
}

/// Reads the cells of a record with csv-core, which finds the ends of records.
fn read_with_csv_core(text: &[u8]) -> Vec<String> {
    let mut reader = ReaderBuilder::new().terminator(Terminator::Any(b'\n')).build();
    let (mut value, mut cells, mut read, mut written) = (vec![0; 100], Vec::new(), 0, 0);
    // Only at its start the reader skips a byte order mark.
    reader.read_field(b",", &mut value);
    loop {
        let (result, more, copied) = reader.read_field(&text[read..], &mut value[written..]);
        read += more;
        written += copied;
        let ReadFieldResult::Field { record_end } = result else { continue };
        cells.push(String::from_utf8(value[..written].to_vec()).unwrap());
        if record_end {
            return cells;
        }
        written = 0;
    }
}

proptest! {
    #[test]
    fn quoted_cells_are_read_as_written(
        cells in prop::collection::vec("[\",;\\n\\r a\u{e9}\u{feff}]{0,6}", 1..5),
        size in 1_usize..9,
    ) {
        let record = cells.iter().map(|cell| write_cell(cell)).collect::<Vec<_>>().join(",");
        let text = format!("{record}\r\n");
        let mut scanner = RecordScanner::new(CsvFormat::default());
        let mut end = None;
        for (number, piece) in text.as_bytes().chunks(size).enumerate() {
            prop_assert!(end.is_none());
            end = scanner.find_end(piece).map(|length| number * size + length);
        }
        prop_assert_eq!(end, Some(text.len()));
        let range = trim_record(text.as_bytes());
        let read = read_cells(&text.as_bytes()[range], CsvFormat::default(), 1, 9).unwrap();
        let values: Vec<String> = read.into_iter().map(|Cell { value, .. }| value).collect();
        prop_assert_eq!(values, cells);
    }

    #[test]
    fn any_text_is_divided_without_a_gap_as_csv_core_does(text in "[\",;\\n\\r a\u{e9}]{0,40}") {
        let bytes = text.as_bytes();
        let (mut scanner, mut start) = (RecordScanner::new(CsvFormat::default()), 0);
        while let Some(length) = scanner.find_end(&bytes[start..]) {
            let record = &bytes[start..start + length];
            prop_assert!(record.ends_with(b"\n"));
            let trimmed = trim_record(record);
            let cells = read_cells(&record[trimmed.clone()], CsvFormat::default(), 1, 99).unwrap();
            let values: Vec<String> = cells.into_iter().map(|cell| cell.value).collect();
            prop_assert_eq!(values, read_with_csv_core(&record[trimmed]));
            start += length;
        }
        prop_assert!(start == bytes.len() || !bytes[start..].is_empty());
    }
}

#[test]
fn columns_name_the_members_of_maps() {
    let config = "\
type: object
path: Pump:.
fields:
  sensors:
    type: map
    path: <urn:sensor>/Sensor:.
    key: {path: <urn:code>}
    elements: {type: object, fields: {value: {type: number, path: <urn:value>}}}
  marks: {type: map, path: <urn:mark>/Mark:., key: {path: <urn:code>}, elements: {type: array, path: <urn:text>}}
  names: {type: map, path: <urn:names>/Name:., key: {path: <urn:code>}, elements: {type: languageMap, path: <urn:name>}}
";
    let mapping = compile(config).unwrap();
    let read = |names: &str, record: &str| {
        let header = CsvHeader::read(names.as_bytes(), CsvFormat::default(), 1).unwrap();
        let columns = Columns::find(&header, &mapping);
        columns.map(|columns| columns.read_record(record.as_bytes(), 2).unwrap().to_string())
    };
    let names = r#"sensors.T1.value,"sensors[""10.0.0.1""].value",marks.a,names.a.en"#;
    let object = r#"{"sensors":{"T1":{"value":1.50},"10.0.0.1":{"value":2}},"marks":{"a":["x"]},"names":{"a":{"en":"A"}}}"#;
    assert_eq!(read(names, "1.50,2,x,A").unwrap(), object);
    for name in
        ["sensors", "sensors.T1", "sensors.T1.size", "sensors..value", "marks.a.b", "names.a"]
    {
        assert!(read(name, "1").is_err(), "{name}");
    }
}
