//! The draft of an object while a person edits it: JSON as the view shows it. A form sends the draft that it was built from,
//! and the texts of its fields. A text that is not changed leaves its value as it was, digit by digit, and what the form does
//! not show stays.
use super::patch::URI;
use penstock_base::json::{self, Json, unescape_token};
use penstock_model::mapping::{Field, Form, Property, Shape, Value, parse_scalar};

/// What the name of a field of the form begins with, before the JSON Pointer of its value.
pub const VALUE_FIELD: &str = "v";
/// What the name of a field of the form begins with, if its text is JSON.
pub const JSON_FIELD: &str = "j";

/// Returns the text of a field of the form by its name, with `\n` as line ends; `None` if the form does not have it.
pub type DraftTexts<'t> = dyn Fn(&str) -> Option<String> + 't;

/// A text of the form that should be JSON and is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadText {
    /// The JSON Pointer of its field.
    pub pointer: String,
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub why: String,
}

/// Puts the texts of the form into the draft of an object of this shape. Returns the texts that are not JSON; their fields
/// stay as they were.
pub fn apply_texts(
    shape: &Shape,
    draft: &mut Json,
    texts: &DraftTexts<'_>,
    nesting: usize,
) -> Vec<UnreadText> {
    let mut reading = FormReading { texts, nesting, unread: Vec::new() };
    reading.read_object(shape, draft, "");
    reading.unread
}

struct FormReading<'f> {
    texts: &'f DraftTexts<'f>,
    nesting: usize,
    unread: Vec<UnreadText>,
}

impl FormReading<'_> {
    fn read_object(&mut self, shape: &Shape, object: &mut Json, pointer: &str) {
        for (_, field, property) in shape.iter_properties() {
            let here = field.pointer_in(pointer);
            if let Some(text) = (self.texts)(&format!("{JSON_FIELD}{here}")) {
                if text != show_json(field.value_in(object)) {
                    match read_json(property, &text, self.nesting) {
                        Ok(value) => field.set_value(object, value),
                        Err(why) => self.unread.push(UnreadText { pointer: here, text, why }),
                    }
                }
                continue;
            }
            match (&property.value, property.is_array) {
                (Value::Object(inner), false) => {
                    if let Some(nested) = field.value_mut(object) {
                        self.read_object(inner, nested, &here);
                    }
                }
                (_, true) => {
                    if let Some(Json::Array(elements)) = field.value_mut(object) {
                        self.read_elements(property, elements, &here);
                    }
                }
                (_, false) => {
                    if let Some(text) = (self.texts)(&format!("{VALUE_FIELD}{here}")) {
                        let value = read_text(property, &text, field.value_in(object));
                        field.set_value(object, value);
                    }
                }
            }
        }
    }

    fn read_elements(&mut self, property: &Property, elements: &mut [Json], pointer: &str) {
        for (index, element) in elements.iter_mut().enumerate() {
            let here = format!("{pointer}/{index}");
            if let Value::Object(inner) = &property.value {
                self.read_object(inner, element, &here);
            } else if let Some(text) = (self.texts)(&format!("{VALUE_FIELD}{here}")) {
                *element = read_text(property, &text, Some(element)).unwrap_or(Json::Null);
            }
        }
    }
}

/// Reads the JSON of a field; `None` if there is no text.
///
/// # Errors
/// Returns what is wrong with the text.
fn read_json(property: &Property, text: &str, nesting: usize) -> Result<Option<Json>, String> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    json::parse(text.as_bytes(), nesting).map(Some).map_err(|error| match property.value {
        Value::Object(_) => error.detail,
        _ => format!("{}; a text has quotation marks here, such as \"open\"", error.detail),
    })
}

/// Reads the text of one value. A text that has not the form of its type is kept as a string, which an ingestion refuses.
fn read_text(property: &Property, text: &str, old: Option<&Json>) -> Option<Json> {
    if text == show_value(old) {
        return old.cloned();
    }
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return None;
    }
    if let Some(listed) = property.find_typed(text) {
        return Some(listed.clone());
    }
    let keep = || Some(Json::String(trimmed.to_owned()));
    match property.value.kind().form {
        Form::Number => match json::parse(trimmed.as_bytes(), 1) {
            Ok(number @ Json::Number(_)) => Some(number),
            _ => keep(),
        },
        Form::Boolean => match trimmed {
            "true" => Some(Json::Bool(true)),
            "false" => Some(Json::Bool(false)),
            _ => keep(),
        },
        Form::Token => keep(),
        Form::Scalar => Some(parse_scalar(text)),
        // A form has a value of type `json` as JSON.
        Form::Text | Form::Json => Some(Json::String(text.to_owned())),
    }
}

/// Returns a value as a field of the form shows it, with `\n` as line ends.
pub fn show_value(value: Option<&Json>) -> String {
    match value {
        None | Some(Json::Null) => String::new(),
        Some(Json::String(text)) => text.replace("\r\n", "\n").replace('\r', "\n"),
        Some(other) => other.to_string(),
    }
}

/// Returns a value as a field with JSON shows it.
pub fn show_json(value: Option<&Json>) -> String {
    match value {
        None | Some(Json::Null) => String::new(),
        Some(other) => format!("{other:#}"),
    }
}

/// Adds an empty element or nested object at the field with this JSON Pointer. A single nested object that `base` has comes
/// back: without a URI, an ingestion would take another one for it.
pub fn add_at(shape: &Shape, base: &Json, draft: &mut Json, pointer: &str) {
    let Some((field, property, parent)) = find_field(shape, draft, pointer) else { return };
    let empty = match property.value {
        Value::Object(_) => Json::Object(Vec::new()),
        _ => Json::Null,
    };
    if !property.is_array {
        let before = find_member(base, pointer).filter(|value| value.member(URI).is_some());
        field.set_value(parent, Some(before.cloned().unwrap_or(empty)));
    } else if let Some(Json::Array(elements)) = field.value_mut(parent) {
        elements.push(empty);
    } else {
        field.set_value(parent, Some(Json::Array(vec![empty])));
    }
}

/// Removes the element or the nested object with this JSON Pointer.
pub fn remove_at(shape: &Shape, draft: &mut Json, pointer: &str) {
    let Some((above, last)) = pointer.rsplit_once('/') else { return };
    if let Ok(index) = last.parse::<usize>()
        && let Some((field, _, parent)) = find_field(shape, draft, above)
        && let Some(Json::Array(elements)) = field.value_mut(parent)
    {
        if index < elements.len() {
            elements.remove(index);
        }
    } else if let Some((field, _, parent)) = find_field(shape, draft, pointer) {
        field.set_value(parent, None);
    }
}

/// Removes what has no value: empty elements, and nested objects without URI and values.
pub fn remove_empty(shape: &Shape, object: &mut Json) {
    for (_, field, property) in shape.iter_properties() {
        // What is empty in a value of type `json` belongs to it.
        if holds_json(property) {
            continue;
        }
        let Some(value) = field.value_mut(object) else { continue };
        if let Some((inner, map)) = property.map() {
            if let (None, Json::Object(members)) = (map.value, &mut *value) {
                for (_, member) in members {
                    remove_empty(inner, member);
                }
            }
            let is_json = map.value.is_some_and(|(_, one)| holds_json(one));
            if is_empty(value, &|_| is_json) {
                field.set_value(object, None);
            }
            continue;
        }
        let inner = property.value.shape();
        let is_json = |name: &str| {
            let field = inner.and_then(|inner| inner.find_field(name));
            field.and_then(Field::property).is_some_and(holds_json)
        };
        if let Json::Array(elements) = value {
            for element in elements.iter_mut() {
                if let Some(inner) = inner {
                    remove_empty(inner, element);
                }
            }
            elements.retain(|element| !is_empty(element, &is_json));
        } else {
            if let Some(inner) = inner {
                remove_empty(inner, value);
            }
            if is_empty(value, &is_json) {
                field.set_value(object, None);
            }
        }
    }
}

/// Returns whether a value is none. `is_json` says which members of an object are of type `json`, so that an empty array is
/// a value.
fn is_empty(value: &Json, is_json: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Json::Null => true,
        Json::Object(members) => members.iter().all(|(name, value)| match value {
            Json::Null => true,
            Json::Array(elements) => elements.is_empty() && !is_json(name),
            _ => false,
        }),
        _ => false,
    }
}

fn holds_json(property: &Property) -> bool {
    property.value.kind().form == Form::Json
}

/// Returns the field at a JSON Pointer, its property, and the object that has it.
fn find_field<'s, 'd>(
    shape: &'s Shape,
    draft: &'d mut Json,
    pointer: &str,
) -> Option<(&'s Field, &'s Property, &'d mut Json)> {
    let mut names = pointer.split('/').skip(1).map(unescape_token).peekable();
    let (mut shape, mut object) = (shape, draft);
    loop {
        let field = shape.level().follow(&mut names)?;
        let property = field.property()?;
        if names.peek().is_none() {
            return Some((field, property, object));
        }
        let Value::Object(inner) = &property.value else { return None };
        object = field.value_mut(object)?;
        if property.is_array {
            let index: usize = names.next()?.parse().ok()?;
            let Json::Array(elements) = object else { return None };
            object = elements.get_mut(index)?;
        }
        shape = inner;
    }
}

/// Returns the value at a JSON Pointer that names only members.
fn find_member<'j>(value: &'j Json, pointer: &str) -> Option<&'j Json> {
    let mut names = pointer.split('/').skip(1);
    names.try_fold(value, |value, name| value.member(&unescape_token(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_model::mapping::compile;

    const MAPPING: &str = "
type: object
path: Pump:.
fields:
  name: {type: string, path: <urn:name>}
  flow: {type: number, path: <urn:flow>}
  on: {type: boolean, path: <urn:on>}
  tags: {type: array, path: <urn:tag>}
  place: {type: object, path: <urn:place>/Place:., fields: {room: {type: string, path: <urn:room>}}}
  parts: {type: array, path: <urn:part>, elements: {type: object, path: Part:., fields: {label: {type: string, path: <urn:label>}}}}
  limits: {type: group, fields: {low: {type: integer, path: <urn:low>}, notes: {type: array, path: <urn:note>}}}
";
    const OBJECT: &str = r#"{"uri":"u:1","name":"Feed\r\npump","flow":1.50,"on":true,"tags":["a",""],"parts":[{"uri":"u:3","label":"seal"}]}"#;

    fn shape() -> Shape {
        compile(MAPPING).unwrap().root
    }

    fn parse(text: &str) -> Json {
        json::parse(text.as_bytes(), 20).unwrap()
    }

    fn sent<const N: usize>(fields: [(&str, &str); N]) -> String {
        let find = |name: &str| {
            let field = fields.iter().find(|(known, _)| *known == name);
            field.map(|(_, text)| text.replace("\r\n", "\n"))
        };
        let mut draft = parse(OBJECT);
        apply_texts(&shape(), &mut draft, &find, 20);
        draft.to_string()
    }

    #[test]
    fn json_and_scalars_keep_their_types() {
        let mapping = "type: object\npath: Pump:.\nfields:\n  setting: {type: scalar, path: <urn:setting>}\n  state: {type: json, path: <urn:state>}\n";
        let shape = compile(mapping).unwrap().root;
        let send = |object: &str, name: &str, text: &str| {
            let mut draft = parse(object);
            apply_texts(&shape, &mut draft, &|field| (field == name).then(|| text.to_owned()), 20);
            remove_empty(&shape, &mut draft);
            draft.to_string()
        };
        assert_eq!(send(r#"{"setting":"7"}"#, "v/setting", "7"), r#"{"setting":"7"}"#);
        assert_eq!(send(r#"{"setting":"7"}"#, "v/setting", "8"), r#"{"setting":8}"#);
        assert_eq!(send(r#"{"setting":7}"#, "v/setting", "\"8\""), r#"{"setting":"8"}"#);
        let text = r#"{"state":"7"}"#;
        assert_eq!(send(text, "j/state", r#""7""#), text);
        assert_eq!(send(text, "j/state", "7"), r#"{"state":7}"#);
        let nested = r#"{"state":[null,{"a":null},[]]}"#;
        assert_eq!(send(nested, "j/other", ""), nested);
        assert_eq!(send(nested, "j/state", " "), "{}");
    }

    #[test]
    fn an_empty_array_of_json_is_a_value() {
        let mapping = "
type: object
path: Pump:.
fields:
  curves: {type: map, path: <urn:curve>/Curve:., key: {path: <urn:code>}, elements: {type: json, path: <urn:points>}}
  place: {type: object, path: <urn:place>/Place:., fields: {areas: {type: json, path: <urn:area>}, doors: {type: array, path: <urn:door>}}}
";
        let shape = compile(mapping).unwrap().root;
        let remove = |object: &str| {
            let mut draft = parse(object);
            remove_empty(&shape, &mut draft);
            draft.to_string()
        };
        for kept in [r#"{"curves":{"a":[],"b":null}}"#, r#"{"place":{"areas":[],"doors":[]}}"#] {
            assert_eq!(remove(kept), kept);
        }
        let empty = r#"{"curves":{"a":null},"place":{"areas":null,"doors":[]}}"#;
        assert_eq!(remove(empty), "{}");
    }

    #[test]
    fn a_text_that_is_not_json_is_an_error_and_changes_nothing() {
        let mapping =
            "type: object\npath: Pump:.\nfields:\n  state: {type: json, path: <urn:state>}\n";
        let shape = compile(mapping).unwrap().root;
        for typed in ["open", "{\"a\": 1", "tru"] {
            let mut draft = parse(r#"{"state":7}"#);
            let texts = |name: &str| (name == "j/state").then(|| typed.to_owned());
            let unread = apply_texts(&shape, &mut draft, &texts, 20);
            assert_eq!(draft.to_string(), r#"{"state":7}"#);
            let [UnreadText { pointer, text, why }] = unread.as_slice() else {
                panic!("{unread:?}")
            };
            assert_eq!((pointer.as_str(), text.as_str()), ("/state", typed));
            assert!(why.contains("line 1, column") && why.contains("quotation marks"), "{why}");
        }
    }

    #[test]
    fn a_typed_text_is_a_code_or_itself() {
        let mapping = "type: object\npath: Pump:.\nabsent: [-9999]\nfields:\n  note: {type: string, path: <urn:note>}\n  \
                       flow: {type: number, path: <urn:flow>}\n  valve: {type: string, path: <urn:valve>, values: {0: 'off', 1: 'on'}}\n";
        let shape = compile(mapping).unwrap().root;
        let send = |name: &str, text: &str| {
            let mut draft = parse("{}");
            apply_texts(&shape, &mut draft, &|field| (field == name).then(|| text.to_owned()), 20);
            draft.to_string()
        };
        assert_eq!(send("v/note", "-9999"), r#"{"note":"-9999"}"#);
        assert_eq!(send("v/flow", "-9999"), r#"{"flow":-9999}"#);
        assert_eq!(send("v/valve", "1"), r#"{"valve":1}"#);
    }

    #[test]
    fn texts_that_were_not_changed_leave_their_values_as_they_are() {
        let all = [
            ("v/name", "Feed\r\npump"),
            ("v/flow", "1.50"),
            ("v/on", "true"),
            ("v/tags/0", "a"),
            ("v/tags/1", ""),
            ("v/parts/0/label", "seal"),
        ];
        assert_eq!(sent(all), OBJECT);
        assert_eq!(sent([]), OBJECT);
    }

    #[test]
    fn texts_become_values_of_their_types() {
        let changed = sent([("v/flow", " 2.5 "), ("v/on", "false"), ("v/name", "")]);
        let expected = OBJECT.replace("1.50", "2.5").replace("true", "false");
        assert_eq!(changed, expected.replace(r#""name":"Feed\r\npump","#, ""));
        assert!(sent([("v/flow", "12,5")]).contains(r#""flow":"12,5""#));
        assert!(sent([("j/parts", "[{\"label\": 1}]")]).contains(r#""parts":[{"label":1}]"#));
        assert_eq!(sent([("j/parts", "[{")]), OBJECT);
        assert!(
            sent([("v/parts/0/label", "long seal")])
                .contains(r#"{"uri":"u:3","label":"long seal"}"#)
        );
    }

    #[test]
    fn rows_are_added_and_removed() {
        let mut draft = parse(OBJECT);
        for pointer in ["/tags", "/parts", "/place", "/other", "/parts/7/label"] {
            add_at(&shape(), &parse(OBJECT), &mut draft, pointer);
        }
        remove_at(&shape(), &mut draft, "/tags/0");
        remove_at(&shape(), &mut draft, "/tags/9");
        let text = draft.to_string();
        assert!(
            text.contains(
                r#""tags":["",null],"parts":[{"uri":"u:3","label":"seal"},{}],"place":{}"#
            ),
            "{text}"
        );
        remove_empty(&shape(), &mut draft);
        let text = draft.to_string();
        assert!(text.ends_with(r#""tags":[""],"parts":[{"uri":"u:3","label":"seal"}]}"#), "{text}");
        remove_at(&shape(), &mut draft, "/parts/0");
        assert!(draft.to_string().ends_with(r#""parts":[]}"#));
    }

    #[test]
    fn fields_of_groups_are_changed_in_their_groups() {
        let with_limits = OBJECT.replace("}]}", r#"}],"limits":{"low":3}}"#);
        let mut draft = parse(OBJECT);
        let texts = |name: &str| (name == "v/limits/low").then(|| "3".to_owned());
        apply_texts(&shape(), &mut draft, &texts, 20);
        assert_eq!(draft.to_string(), with_limits);
        add_at(&shape(), &parse(OBJECT), &mut draft, "/limits/notes");
        assert!(draft.to_string().ends_with(r#""limits":{"low":3,"notes":[null]}}"#), "{draft}");
        remove_at(&shape(), &mut draft, "/limits/notes/0");
        remove_at(&shape(), &mut draft, "/limits/notes");
        assert_eq!(draft.to_string(), with_limits);
        let texts = |name: &str| (name == "v/limits/low").then(String::new);
        apply_texts(&shape(), &mut draft, &texts, 20);
        assert_eq!(draft.to_string(), OBJECT);
    }

    #[test]
    fn a_nested_object_that_was_removed_comes_back() {
        let base = OBJECT.replace("}]}", r#"}],"place":{"uri":"u:2","room":"R1"}}"#);
        let mut draft = parse(&base);
        remove_at(&shape(), &mut draft, "/place");
        assert!(!draft.to_string().contains("place"), "{draft}");
        add_at(&shape(), &parse(&base), &mut draft, "/place");
        assert_eq!(draft.to_string(), base);
    }
}
