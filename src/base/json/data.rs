//! Reads the body of an ingestion, `{"data": [...]}`, with only one object in memory at a time.
use super::pointer::push_pointer;
use super::reader::{self, TextCursor, ValueReader};
use super::text::decode_utf8;
use super::value::Json;
use crate::error::{ErrorClass, Finding, GatewayError};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

/// The maximum number of unknown members that are reported one by one.
const MAX_FINDINGS: usize = 100;

/// The maximum number of names that the error of a body without `data` shows.
const MAX_SHOWN_NAMES: usize = 3;

/// What to do if another system sends the body so. Its mapping may have `items`.
const DOCUMENT_HINT: &str = "; or send it as it is, with the query parameter form=document";

/// An element of `data`.
#[derive(Debug, PartialEq, Eq)]
pub struct Element {
    /// Its index in `data`, from 0.
    pub index: usize,
    /// Where its text is in the body, in bytes, without white space around it.
    pub range: Range<usize>,
    /// The value.
    pub json: Json,
}

/// What a body has around its objects.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct DataBody {
    /// The members of `metadata`, which an export file has.
    pub metadata: Option<Vec<(String, Json)>>,
    /// Where the text of `data` is in the body, in bytes.
    pub data: Range<usize>,
    /// The number of its elements.
    pub count: usize,
}

/// Parses an ingestion body `{"data": [...]}`, which may have `metadata` too, and calls `each` with one element of `data` at a time, so that only one of
/// them is in memory. The first error of `each` stops it. `each` must check that an element is an object.
///
/// # Errors
/// As [`parse`](super::parse), and:
/// - `ErrorClass::Invalid`, with JSON Pointers, if the body is not an object, `data` is missing or not an array, or
///   there are other members
/// - `ErrorClass::TooLarge` for more than `limit` objects
///
/// The caller must check the metadata.
pub fn parse_data(
    text: &[u8],
    nesting: usize,
    limit: usize,
    each: &mut dyn FnMut(Element) -> Result<(), GatewayError>,
) -> Result<DataBody, GatewayError> {
    let (mut findings, mut around) = (Vec::new(), DataBody::default());
    reader::read_text(decode_utf8(text)?, nesting, |cursor, text| {
        cursor.remedy_for_objects = "to send one object a line, use application/x-ndjson";
        if cursor.peek() == Some(b'{') {
            return text.deserialize_map(BodyReader {
                cursor,
                limit,
                each,
                findings: &mut findings,
                around: &mut around,
            });
        }
        let body = ValueReader(cursor).deserialize(text)?;
        let names = match &body {
            Json::Array(elements) => match elements.first() {
                Some(Json::Object(members)) => {
                    members.iter().map(|(name, _)| name.as_str()).collect()
                }
                _ => Vec::new(),
            },
            _ => Vec::new(),
        };
        let (kind, expected) = (body.kind_name(), describe_expected_body(&names));
        let hint = if matches!(body, Json::Array(_)) { DOCUMENT_HINT } else { "" };
        let message = format!("the body is {kind}; wrap the objects in `data`: {expected}{hint}");
        findings.push(Finding::at_pointer("", message));
        Ok(())
    })?;
    match findings.first() {
        None => Ok(around),
        Some(first) => {
            Err(GatewayError::with_findings(ErrorClass::Invalid, first.message.clone(), findings))
        }
    }
}

/// The objects of a message.
#[derive(Debug, PartialEq, Eq)]
pub enum MessageObjects {
    /// One value, and where its text is.
    One(Range<usize>, Json),
    /// The texts of the elements of an array. All of them can be parsed.
    Several(Vec<Range<usize>>),
}

/// Parses a message: one object, an array of objects, or `{"data": [...]}` without other members. The caller must check
/// that the values are objects. Of an array, only one element is in memory at a time.
///
/// # Errors
/// As [`parse`](super::parse); `ErrorClass::TooLarge` for more than `limit` objects.
pub fn parse_message(
    text: &[u8],
    nesting: usize,
    limit: usize,
) -> Result<MessageObjects, GatewayError> {
    let mut ranges = Vec::new();
    let mut add_range = |element: Element| {
        ranges.push(element.range);
        Ok(())
    };
    let one = reader::read_text(decode_utf8(text)?, nesting, |cursor, text| {
        cursor.remedy_for_objects = "send several objects as an array";
        if cursor.peek() != Some(b'[') {
            return ElementReader(cursor).deserialize(text).map(Some);
        }
        let (each, findings, around) = (&mut add_range, &mut Vec::new(), &mut DataBody::default());
        text.deserialize_seq(BodyReader { cursor, limit, each, findings, around })?;
        Ok(None)
    })?;
    match one {
        None => Ok(MessageObjects::Several(ranges)),
        Some((_, Json::Object(members))) if matches!(members.as_slice(), [(name, Json::Array(_))] if name == "data") =>
        {
            drop(members);
            parse_data(text, nesting, limit, &mut add_range)?;
            Ok(MessageObjects::Several(ranges))
        }
        Some((range, json)) => Ok(MessageObjects::One(range, json)),
    }
}

/// Reads the body; as a seed, it reads the array under `data`.
struct BodyReader<'c, 'de> {
    cursor: &'c mut TextCursor<'de>,
    limit: usize,
    each: &'c mut dyn FnMut(Element) -> Result<(), GatewayError>,
    findings: &'c mut Vec<Finding>,
    around: &'c mut DataBody,
}

impl<'de> Visitor<'de> for BodyReader<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the body of an ingestion")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { cursor, limit, each, findings, around } = self;
        cursor.enter_nested()?;
        let mut names = HashSet::new();
        let mut first_names = Vec::new();
        while let Some(name) = cursor.read_name(&mut map, &mut names)? {
            if name == "data" && cursor.peek() == Some(b'[') {
                map.next_value_seed(BodyReader { cursor, limit, each, findings, around })?;
                continue;
            }
            let value = map.next_value_seed(ValueReader(cursor))?;
            let kind = value.kind_name();
            if first_names.len() <= MAX_SHOWN_NAMES {
                first_names.push(name.clone());
            }
            if name == "metadata"
                && let Json::Object(members) = value
            {
                around.metadata = Some(members);
                continue;
            }
            if findings.len() < MAX_FINDINGS {
                let mut pointer = String::new();
                push_pointer(&mut pointer, &name);
                let message = if name == "data" {
                    format!("`data` is {kind}; expected an array of objects")
                } else {
                    format!("`{name}` is not known beside `data`; remove it{DOCUMENT_HINT}")
                };
                findings.push(Finding::at_pointer(pointer, message));
            }
        }
        cursor.leave_nested();
        if !names.contains("data") {
            // The members are those of an object, and none of them is wrong by itself.
            findings.clear();
            let message = format!(
                "`data` is missing; wrap the objects in it: {}{DOCUMENT_HINT}",
                describe_expected_body(&first_names)
            );
            findings.push(Finding::at_pointer("/data", message));
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        self.cursor.peek();
        let start = self.cursor.offset;
        self.cursor.enter_nested()?;
        let mut index = 0;
        while let Some((range, json)) = seq.next_element_seed(ElementReader(self.cursor))? {
            if index == self.limit {
                return Err(self.cursor.stop_with(too_many_error(self.limit)));
            }
            if self.findings.is_empty() {
                (self.each)(Element { index, range, json })
                    .map_err(|error| self.cursor.stop_with(error))?;
            }
            index += 1;
        }
        self.cursor.leave_nested();
        self.around.data = start..self.cursor.offset;
        self.around.count = index;
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for BodyReader<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

/// Returns the body that was probably meant, for an object that has members with these names.
fn describe_expected_body(names: &[impl AsRef<str>]) -> String {
    let shown = |name: &str| {
        let cut: String = name.chars().take(40).collect();
        if cut.len() < name.len() { "\u{2026}".to_owned() } else { format!("{cut:?}: \u{2026}") }
    };
    let mut members: Vec<String> =
        names.iter().take(MAX_SHOWN_NAMES).map(|name| shown(name.as_ref())).collect();
    if names.len() > MAX_SHOWN_NAMES || names.is_empty() {
        members.push("\u{2026}".to_owned());
    }
    format!("{{\"data\": [{{{}}}]}}", members.join(", "))
}

/// Reads one value and where its text is.
struct ElementReader<'c, 'de>(&'c mut TextCursor<'de>);

impl<'de> DeserializeSeed<'de> for ElementReader<'_, 'de> {
    type Value = (Range<usize>, Json);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        self.0.peek();
        let start = self.0.offset;
        let json = ValueReader(self.0).deserialize(deserializer)?;
        Ok((start..self.0.offset, json))
    }
}

fn too_many_error(limit: usize) -> GatewayError {
    GatewayError::with_findings(
        ErrorClass::TooLarge,
        format!(
            "the request holds more than {limit} objects (service.limits.objects); split it, or send \
             application/x-ndjson, which has no such limit"
        ),
        vec![Finding::at_pointer(format!("/data/{limit}"), "the first object over the limit")],
    )
}
