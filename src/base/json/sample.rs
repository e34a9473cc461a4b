//! Reads a sample of a JSON text in bounded memory: of long arrays it keeps only some elements.
//!
//! `serde_json` returns the elements of an array as raw text, which needs no memory of its own. The kept elements are
//! parsed afterwards, each from its place in the whole text, so that errors have the right line and column.
use super::reader::{TextCursor, read_text};
use super::text::decode_utf8;
use super::value::Json;
use crate::error::{ErrorClass, GatewayError, Place};
use serde::Deserialize as _;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::HashSet;
use std::fmt;

/// The limits of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleLimits {
    /// The maximum nesting, as for [`parse`](super::parse).
    pub nesting: usize,
    /// The maximum number of elements of each array.
    pub elements: usize,
    /// The maximum number of values: scalars, arrays and objects.
    pub values: usize,
    /// The maximum number of bytes of names, strings and numbers.
    pub bytes: usize,
}

/// A sample of the objects in a text.
#[derive(Debug, PartialEq, Eq)]
pub struct Sample {
    /// The objects, or other values in their place.
    pub objects: Vec<Json>,
    /// The number of objects in the text.
    pub total: usize,
    /// Where the objects are in the text.
    pub layout: SampleLayout,
    /// The length to which longer nested arrays were cut, if any were.
    pub cut_length: Option<usize>,
}

/// Where the objects of a sample are in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleLayout {
    /// The text is an object, or another value.
    One,
    /// The text is an array of them.
    Array,
    /// The text is the body of an ingestion: `{"data": [...]}`.
    Data,
    /// One is in each line.
    Lines,
}

/// Reads a sample of a text with an object, an array of objects, the body of an ingestion (`{"data": [...]}`), or one
/// object in each line. The elements of the sample are evenly spaced, and the first is one of them. Only kept elements
/// are checked for duplicate names and for their nesting. A byte order mark before the text does not count.
///
/// # Errors
/// - `ErrorClass::Malformed` as [`parse`](super::parse)
/// - `ErrorClass::TooLarge` if one object, with one element of each array, exceeds the limits
pub fn read_sample(text: &[u8], limits: SampleLimits) -> Result<Sample, GatewayError> {
    let text = decode_utf8(text)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let outline = match find_outline(text) {
        Ok(outline) => outline,
        Err(error) => outline_lines(text, error)?,
    };
    let mut sampler = Sampler::new(limits.elements);
    match outline {
        (SampleLayout::One, raw) => sampler.offer(raw),
        (SampleLayout::Array | SampleLayout::Data, raw) => {
            for_each_element(raw, &mut |element| sampler.offer(element));
        }
        (SampleLayout::Lines, text) => list_line_values(text).for_each(|line| sampler.offer(line)),
    }
    let (layout, Sampler { mut kept, offered: total, .. }) = (outline.0, sampler);
    // An array with more elements than the sample may have values cannot be kept whole.
    let mut elements = limits.values;
    loop {
        let SampleLimits { nesting, values, bytes, .. } = limits;
        let mut budget = SampleBudget { elements, values, bytes, is_cut: false };
        let objects: Result<Vec<Json>, GatewayError> =
            kept.iter().map(|raw| budget.read_value(text, raw, nesting)).collect();
        let is_too_large = match &objects {
            Ok(_) => budget.is_cut && elements > limits.elements,
            Err(error) => error.class == ErrorClass::TooLarge,
        };
        if !is_too_large || (elements == 1 && kept.len() == 1) {
            let elements = budget.is_cut.then_some(elements);
            return objects.map(|objects| Sample { objects, total, layout, cut_length: elements });
        }
        if elements > limits.elements {
            elements = limits.elements;
        } else {
            elements = (elements / 2).max(1);
            drop_every_other(&mut kept);
        }
    }
}

/// Returns where the objects are in a text of valid JSON, and the text of the object, of the array, or of the lines.
fn find_outline(text: &str) -> Result<(SampleLayout, &str), GatewayError> {
    let raw = read_text(text, usize::MAX, |_, text| <&RawValue>::deserialize(text))?.get();
    if raw.starts_with('[') {
        return Ok((SampleLayout::Array, raw));
    }
    let data = raw.starts_with('{').then(|| find_only_data(raw)).flatten();
    Ok(data.map_or((SampleLayout::One, raw), |data| (SampleLayout::Data, data)))
}

/// Returns the array of objects under `data`, if that is the only member of an object.
fn find_only_data(raw: &str) -> Option<&str> {
    let data = serde_json::Deserializer::from_str(raw).deserialize_map(DataVisitor).ok()??;
    let mut holds_objects = data.starts_with('[');
    for_each_element(data, &mut |element| holds_objects &= element.starts_with('{'));
    holds_objects.then_some(data)
}

struct DataVisitor;

impl<'de> Visitor<'de> for DataVisitor {
    type Value = Option<&'de str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut data = None;
        let mut count = 0;
        while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
            count += 1;
            data = (count == 1 && name == "data").then(|| value.get());
        }
        Ok(data)
    }
}

/// Returns the outline of a text with several lines, if each of them is JSON.
///
/// # Errors
/// That of the first line that is none, if the first line is an object and the next one begins like one. Otherwise `whole`,
/// that of the whole text.
fn outline_lines(text: &str, whole: GatewayError) -> Result<(SampleLayout, &str), GatewayError> {
    let is_json = |line: &str| serde_json::from_str::<&RawValue>(line).is_ok();
    let mut lines = list_line_values(text);
    let (Some(first), Some(second)) = (lines.next(), lines.next()) else { return Err(whole) };
    let Some(wrong) = list_line_values(text).find(|line| !is_json(line)) else {
        return Ok((SampleLayout::Lines, text));
    };
    if !(first.starts_with('{') && is_json(first) && second.starts_with('{')) {
        return Err(whole);
    }
    let read = read_text(wrong, usize::MAX, |_, line| <&RawValue>::deserialize(line));
    Err(read.map_or_else(|error| relocate_error(error, text, wrong), |_| whole))
}

fn list_line_values(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty())
}

/// Calls `each` with the raw text of each element of an array of valid JSON. Ignores a value that is not an array.
fn for_each_element<'t>(raw: &'t str, each: &mut dyn FnMut(&'t str)) {
    let _ = serde_json::Deserializer::from_str(raw).deserialize_seq(ElementVisitor(each));
}

struct ElementVisitor<'e, 't>(&'e mut dyn FnMut(&'t str));

impl<'de> Visitor<'de> for ElementVisitor<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(element) = seq.next_element::<&RawValue>()? {
            (self.0)(element.get());
        }
        Ok(())
    }
}

/// Keeps some of many elements, evenly spaced, without knowing their number in advance.
struct Sampler<'t> {
    kept: Vec<&'t str>,
    max_kept: usize,
    stride: usize,
    offered: usize,
}

impl<'t> Sampler<'t> {
    fn new(most: usize) -> Self {
        Self { kept: Vec::new(), max_kept: most.max(1), stride: 1, offered: 0 }
    }

    fn offer(&mut self, element: &'t str) {
        if self.offered.is_multiple_of(self.stride) {
            if self.kept.len() == self.max_kept {
                drop_every_other(&mut self.kept);
                self.stride *= 2;
            }
            if self.offered.is_multiple_of(self.stride) {
                self.kept.push(element);
            }
        }
        self.offered += 1;
    }
}

/// Removes every other element, but never the first.
fn drop_every_other(kept: &mut Vec<&str>) {
    let mut place = 0;
    kept.retain(|_| {
        place += 1;
        place % 2 == 1
    });
}

/// The remaining limits of a sample.
struct SampleBudget {
    /// The maximum number of elements of each array.
    elements: usize,
    values: usize,
    bytes: usize,
    /// Whether an array was cut.
    is_cut: bool,
}

impl SampleBudget {
    /// Reads the value `raw`, which is a part of `text`.
    fn read_value(&mut self, text: &str, raw: &str, nesting: usize) -> Result<Json, GatewayError> {
        read_text(raw, nesting, |cursor, raw| {
            ReducedReader { cursor, nesting, budget: self }.deserialize(raw)
        })
        .map_err(|error| relocate_error(error, text, raw))
    }

    fn take_value(&mut self) -> Result<(), GatewayError> {
        self.values = self.values.checked_sub(1).ok_or_else(too_large_error)?;
        Ok(())
    }

    fn take_bytes(&mut self, bytes: usize) -> Result<(), GatewayError> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or_else(too_large_error)?;
        Ok(())
    }
}

fn too_large_error() -> GatewayError {
    let why = "an object is too large for a sample; leave out most of its members";
    GatewayError::new(ErrorClass::TooLarge, why)
}

/// Changes the place of an error in a part of a text to its place in the whole text.
fn relocate_error(mut error: GatewayError, text: &str, part: &str) -> GatewayError {
    let before = text.get(..part.as_ptr().addr() - text.as_ptr().addr()).unwrap_or_default();
    let lines = before.bytes().filter(|&byte| byte == b'\n').count() as u64;
    let columns = before.rsplit('\n').next().unwrap_or_default().chars().count() as u64;
    for finding in &mut error.findings {
        if let Place::Line { line, column } = &mut finding.place {
            *column += if *line == 1 { columns } else { 0 };
            *line += lines;
            error.detail = format!("the JSON cannot be read: {finding}");
        }
    }
    error
}

/// Reads a value with only some elements of its arrays.
struct ReducedReader<'r, 'de> {
    cursor: &'r mut TextCursor<'de>,
    /// The number of levels that the value may nest.
    nesting: usize,
    budget: &'r mut SampleBudget,
}

impl<'de> DeserializeSeed<'de> for ReducedReader<'_, 'de> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        let first = self.cursor.peek();
        self.budget.take_value().map_err(|error| self.cursor.stop_with(error))?;
        match first {
            Some(b'[') => deserializer.deserialize_seq(self),
            Some(b'{') => deserializer.deserialize_map(self),
            _ => {
                let start = self.cursor.offset;
                let scalar = self.cursor.read_scalar(first, deserializer)?;
                self.budget
                    .take_bytes(self.cursor.offset - start)
                    .map_err(|error| self.cursor.stop_with(error))?;
                Ok(scalar)
            }
        }
    }
}

impl<'de> Visitor<'de> for ReducedReader<'_, 'de> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Json, A::Error> {
        let Self { cursor, nesting, budget } = self;
        cursor.enter_nested()?;
        let mut sampler = Sampler::new(budget.elements);
        cursor.peek();
        while let Some(raw) = seq.next_element::<&RawValue>()? {
            cursor.peek();
            cursor.offset += raw.get().len();
            sampler.offer(raw.get());
        }
        cursor.leave_nested();
        budget.is_cut |= sampler.kept.len() < sampler.offered;
        let read = |raw: &&str| budget.read_value(cursor.text, raw, nesting.saturating_sub(1));
        let elements: Result<_, GatewayError> = sampler.kept.iter().map(read).collect();
        elements.map(Json::Array).map_err(|error| cursor.stop_with(error))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let Self { cursor, nesting, budget } = self;
        cursor.enter_nested()?;
        let (mut members, mut names) = (Vec::new(), HashSet::new());
        while let Some(name) = cursor.read_name(&mut map, &mut names)? {
            budget.take_bytes(name.len()).map_err(|error| cursor.stop_with(error))?;
            let nesting = nesting.saturating_sub(1);
            let value = map.next_value_seed(ReducedReader { cursor, nesting, budget })?;
            members.push((name.into_owned(), value));
        }
        cursor.leave_nested();
        Ok(Json::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Finding;
    use crate::json::parse;

    const LIMITS: SampleLimits = SampleLimits { nesting: 8, elements: 4, values: 40, bytes: 1000 };

    fn sample_of(text: &str) -> Sample {
        read_sample(text.as_bytes(), LIMITS).unwrap()
    }

    fn objects_text(sample: &Sample) -> String {
        Json::Array(sample.objects.clone()).to_string()
    }

    #[test]
    fn a_text_within_the_limits_is_read_whole_with_its_digits() {
        let objects =
            r#"[{"a":1.50,"b":[{"c":"\u00fc"},null,[1,2,3,4,5,6]]},{"data":[],"d":true}]"#;
        let whole = parse(objects.as_bytes(), 8).unwrap();
        for (text, layout) in [
            (objects.to_owned(), SampleLayout::Array),
            (format!(" {{\"data\": {objects}}}\n"), SampleLayout::Data),
            (
                objects.trim_matches(['[', ']']).replace("},{\"data", "}\n\n {\"data"),
                SampleLayout::Lines,
            ),
        ] {
            let sample = sample_of(&text);
            assert_eq!(
                (Json::Array(sample.objects), sample.total, sample.layout, sample.cut_length),
                (whole.clone(), 2, layout, None)
            );
        }
        // An object with more members than `data`, or with something else under `data`, is a sample object itself.
        for text in [r#"{"data":[{"a":1}],"b":1}"#, r#"{"data":[1]}"#, r#"{"data":{}}"#, "{}"] {
            let sample = sample_of(text);
            assert_eq!(
                (objects_text(&sample), sample.layout),
                (format!("[{text}]"), SampleLayout::One)
            );
        }
        assert_eq!((sample_of("[]").objects, sample_of("7").total), (Vec::new(), 1));
    }

    #[test]
    fn objects_are_taken_at_even_distances() {
        let objects: Vec<String> = (0..1001).map(|n| format!("{{\"n\":{n}}}")).collect();
        for text in [format!("[{}]", objects.join(",")), objects.join("\n")] {
            let sample = sample_of(&text);
            assert_eq!((sample.total, sample.cut_length), (1001, None));
            assert_eq!(objects_text(&sample), r#"[{"n":0},{"n":256},{"n":512},{"n":768}]"#);
        }
    }

    #[test]
    fn long_arrays_and_many_objects_are_cut_until_the_sample_fits() {
        let numbers: Vec<String> = (0..100).map(|n| n.to_string()).collect();
        let object = format!("{{\"a\":[{}],\"b\":[[{}]]}}", numbers.join(","), numbers.join(","));
        let sample = sample_of(&object);
        assert_eq!(
            (objects_text(&sample).as_str(), sample.cut_length),
            (r#"[{"a":[0,32,64,96],"b":[[0,32,64,96]]}]"#, Some(4))
        );
        let sample = sample_of(&format!("{{\"a\":[{}]}}", numbers.join(",")));
        assert_eq!(
            (objects_text(&sample).as_str(), sample.cut_length),
            (r#"[{"a":[0,32,64,96]}]"#, Some(4)),
            "an array is kept whole, or cut to the common length"
        );
        let members: Vec<String> = (0..15).map(|n| format!("\"m{n}\":{n}")).collect();
        let object = format!("{{{}}}", members.join(","));
        let sample = sample_of(&[object.as_str(); 4].join("\n"));
        assert_eq!((sample.objects.len(), sample.total, sample.cut_length), (2, 4, None));
        let text = format!("[{}]", vec![format!("{{\"a\":\"{}\"}}", "x".repeat(400)); 4].join(","));
        assert_eq!(sample_of(&text).objects.len(), 2);
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_a_sample() {
        let marked = |text: &str| sample_of(&format!("\u{feff}{text}"));
        for text in ["{\"a\": 1}", "[{\"a\": 1}]", "{\"a\": 1}\n{\"a\": 2}\n"] {
            assert_eq!(marked(text), sample_of(text), "{text}");
        }
        let error = read_sample("\u{feff}{\"a\": x}".as_bytes(), LIMITS).unwrap_err();
        assert_eq!(error.findings[0].place, Place::Line { line: 1, column: 7 });
    }

    #[test]
    fn text_that_cannot_be_cut_or_parsed_is_refused_with_its_place() {
        let members: Vec<String> = (0..50).map(|n| format!("\"m{n}\":{n}")).collect();
        let error =
            read_sample(format!("{{{}}}", members.join(",")).as_bytes(), LIMITS).unwrap_err();
        assert_eq!(error.class, ErrorClass::TooLarge);
        for (text, line, column) in [
            ("[{\"a\": 1},\n {\"b\": 1, \"b\": 2}]", 2, 11),
            ("{\"a\": [\n1, {\"b\":\n[{\"c\": 1, \"c\": 2}]}]}", 3, 11),
            ("{\"a\": 1}\n{\"a\": [[[[[[[[1]]]]]]]]}", 2, 14),
            ("{\"a\": 1}\n\n {\"a\": 2,}\n{\"a\": 3}", 3, 10),
            ("{\"a\": 1}\n{\"a\": 2}\n{\"a\":", 3, 6),
            ("{\"a\": 1}\n}", 2, 1),
            ("[{\"a\": 1},\n {\"b\": x}]", 2, 8),
            ("[1,", 1, 4),
            ("", 1, 1),
        ] {
            let error = read_sample(text.as_bytes(), LIMITS).unwrap_err();
            let found: Vec<&Finding> = error.findings.iter().collect();
            assert_eq!(found[0].place, Place::Line { line, column }, "{text}: {error}");
            assert!(error.detail.contains(&format!("line {line}, column {column}")), "{error}");
            assert_eq!(error.class, ErrorClass::Malformed);
        }
    }
}
