//! Reads the body of an ingestion, `{"data": [...]}`, with only one object in memory at a time.
use super::reader::{self, Cursor, Value};
use super::{Json, push_pointer, utf8};
use crate::fault::{Fault, Finding, Kind};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use std::collections::HashSet;
use std::fmt;

/// The maximum number of unknown members that are reported one by one.
const MAX_FINDINGS: usize = 100;

/// Parses an ingestion body `{"data": [...]}` and calls `each` with one element of `data` at a time and its index, so
/// that only one of them is in memory. The first error of `each` stops it. `each` must check that an element is an
/// object.
///
/// # Errors
/// As [`parse`](super::parse), and:
/// - `Kind::Invalid`, with JSON Pointers, if the body is not an object, `data` is missing or not an array, or there
///   are other members
/// - `Kind::TooLarge` for more than `limit` objects
pub fn parse_data(
    text: &[u8],
    nesting: usize,
    limit: usize,
    each: &mut dyn FnMut(usize, Json) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut findings = Vec::new();
    reader::read(utf8(text)?, nesting, |cursor, text| {
        if cursor.peek() == Some(b'{') {
            return text.deserialize_map(Body { cursor, limit, each, findings: &mut findings });
        }
        let kind = Value(cursor).deserialize(text)?.kind();
        let message = format!("the body is {kind}; expected an object {{\"data\": [...]}}");
        findings.push(Finding::at("", message));
        Ok(())
    })?;
    match findings.first() {
        None => Ok(()),
        Some(first) => Err(Fault::with(Kind::Invalid, first.message.clone(), findings)),
    }
}

/// Reads the body; as a seed, it reads the array under `data`.
struct Body<'c, 'de> {
    cursor: &'c mut Cursor<'de>,
    limit: usize,
    each: &'c mut dyn FnMut(usize, Json) -> Result<(), Fault>,
    findings: &'c mut Vec<Finding>,
}

impl<'de> Visitor<'de> for Body<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the body of an ingestion")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { cursor, limit, each, findings } = self;
        cursor.enter()?;
        let mut names = HashSet::new();
        while let Some(name) = cursor.name(&mut map, &mut names)? {
            if name == "data" && cursor.peek() == Some(b'[') {
                map.next_value_seed(Body { cursor, limit, each, findings })?;
                continue;
            }
            let kind = map.next_value_seed(Value(cursor))?.kind();
            if findings.len() < MAX_FINDINGS {
                let mut pointer = String::new();
                push_pointer(&mut pointer, &name);
                let message = if name == "data" {
                    format!("`data` is {kind}; expected an array of objects")
                } else {
                    format!("`{name}` is not known here; wrap the objects in {{\"data\": [...]}}")
                };
                findings.push(Finding::at(pointer, message));
            }
        }
        cursor.leave();
        if !names.contains("data") {
            findings.push(Finding::at(
                "/data",
                "`data` is missing; expected an array of objects under this name",
            ));
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        self.cursor.enter()?;
        let mut index = 0;
        while let Some(value) = seq.next_element_seed(Value(self.cursor))? {
            if index == self.limit {
                return Err(self.cursor.stop(too_many(self.limit)));
            }
            if self.findings.is_empty() {
                (self.each)(index, value).map_err(|fault| self.cursor.stop(fault))?;
            }
            index += 1;
        }
        self.cursor.leave();
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Body<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

fn too_many(limit: usize) -> Fault {
    Fault::with(
        Kind::TooLarge,
        format!(
            "the request holds more than {limit} objects (service.limits.objects); split it, or send \
             application/x-ndjson, which has no such limit"
        ),
        vec![Finding::at(format!("/data/{limit}"), "the first object over the limit")],
    )
}
