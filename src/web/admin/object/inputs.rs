//! The fields of the form that changes an object, from its draft and its mapping.
use penstock_base::error::{Finding, Place};
use penstock_base::json::Json;
use penstock_model::ingest::LockedFields;
use penstock_model::mapping::{Field, Form, Property, Shape, Value};
use penstock_model::tree::describe_type;
use penstock_service::objects::{
    JSON_FIELD, URI, UnreadText, VALUE_FIELD, explain_lock, show_json, show_value,
};

mod item;

pub(super) use item::{FormItem, Input, InputKind};

use item::explain;

/// The number of levels of nested objects that have fields of their own; deeper ones are JSON.
const MAX_LEVELS: usize = 2;
/// The maximum number of elements of an array that have fields of their own; longer arrays are JSON.
const MAX_ELEMENTS: usize = 50;
/// The maximum number of fields of a form; further values are JSON.
const MAX_INPUTS: usize = 300;
/// The maximum number of characters of a value that cannot be changed.
const MAX_FIXED_CHARS: usize = 1_000;
/// The number of characters from which a text gets several lines.
const LONG_TEXT_CHARS: usize = 60;

/// The form, and the errors that have no place in it.
pub(super) struct FormItems {
    pub(super) items: Vec<FormItem>,
    /// The errors for the summary: the field, if it has one, and the message.
    pub(super) errors: Vec<(Option<String>, String)>,
}

/// What a form shows besides its draft.
#[derive(Clone, Copy)]
pub(super) struct FormSource<'s> {
    /// The fields that cannot be changed.
    pub(super) locked: &'s LockedFields,
    /// The texts that are not JSON, which the person has to correct.
    pub(super) unread: &'s [UnreadText],
    /// The JSON Pointer of the field that a row was added to or removed from.
    pub(super) changed_at: Option<&'s str>,
}

/// Builds the form of an object. The findings are those of its ingestion as the only object of a request.
pub(super) fn build_form(
    shape: &Shape,
    draft: &Json,
    findings: &[Finding],
    source: FormSource<'_>,
) -> FormItems {
    let unread = source.unread.iter().map(|unread| PendingError::new(&unread.pointer, &unread.why));
    let findings = findings.iter().map(PendingError::from_finding);
    let mut errors: Vec<PendingError> = unread.chain(findings).collect();
    let mut builder = FormBuilder { items: Vec::new(), inputs: 0, errors: &mut errors, source };
    builder.add_object(shape, draft, "", 0);
    let mut items = builder.items;
    if let Some(pointer) = source.changed_at {
        focus_last(&mut items, pointer);
    }
    let errors = errors.into_iter().map(|error| {
        let words = match &error.caption {
            Some(caption) => format!("{caption}: {}", error.message),
            None if error.pointer.is_empty() => error.message.clone(),
            None => format!("{}: {}", error.pointer, error.message),
        };
        (error.input, words)
    });
    FormItems { errors: errors.collect(), items }
}

/// An error, and the field that shows it.
struct PendingError {
    /// The JSON Pointer into the object.
    pointer: String,
    message: String,
    input: Option<String>,
    caption: Option<String>,
}

impl PendingError {
    fn from_finding(finding: &Finding) -> Self {
        let pointer = match &finding.place {
            Place::Pointer(pointer) => pointer.strip_prefix("/data/0").unwrap_or(pointer),
            Place::Line { .. } | Place::Whole => "",
        };
        Self::new(pointer, &finding.message)
    }

    fn new(pointer: &str, message: &str) -> Self {
        let (pointer, message) = (pointer.to_owned(), message.to_owned());
        Self { pointer, message, input: None, caption: None }
    }
}

struct FormBuilder<'b> {
    items: Vec<FormItem>,
    inputs: usize,
    errors: &'b mut Vec<PendingError>,
    source: FormSource<'b>,
}

impl FormBuilder<'_> {
    fn add_object(&mut self, shape: &Shape, object: &Json, pointer: &str, level: usize) {
        let exists = object.member(URI).is_some();
        for (place, field, property) in shape.iter_properties() {
            let here = field.pointer_in(pointer);
            let value = field.value_in(object);
            let is_key = shape.key_fields().is_some_and(|key| key.indexes.contains(&place));
            if is_key && exists {
                let note = "It identifies the object, so it cannot be changed.";
                self.add_fixed(field, value, note);
            } else if let Some(reason) = self.source.locked.find(object, &field.name) {
                self.add_fixed(field, value, explain_lock(reason));
            } else {
                self.add_field(field, property, value, &here, level);
            }
        }
    }

    fn add_fixed(&mut self, field: &Field, value: Option<&Json>, note: &'static str) {
        let text = show_value(value);
        let value = match text.char_indices().nth(MAX_FIXED_CHARS) {
            Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
            None => text,
        };
        self.items.push(FormItem::Fixed { caption: field.name.clone(), value, note });
    }

    fn add_field(
        &mut self,
        field: &Field,
        property: &Property,
        value: Option<&Json>,
        here: &str,
        level: usize,
    ) {
        if !self.has_own_inputs(property, value, level) {
            // A text of JSON can change everything in it.
            match value.and_then(|value| self.source.locked.find_inside(value)) {
                Some(reason) => self.add_fixed(field, value, explain_lock(reason)),
                None => self.add_json(field, property, value, here),
            }
            return;
        }
        if value.is_some_and(has_unsendable_text) {
            let note = "A text in it has the character U+0000, which forms cannot send. Change it with the API.";
            self.add_fixed(field, value, note);
            return;
        }
        match (&property.value, property.is_array) {
            (Value::Object(inner), false) => {
                let name = &field.name;
                match value {
                    Some(object @ Json::Object(_)) => {
                        self.add_nested(inner, object, here, name.clone(), level + 1);
                    }
                    _ => self.add_button(here, format!("Add {name}")),
                }
            }
            (_, false) => {
                let caption = field.name.clone();
                self.add_input(property, value, here, caption, None);
            }
            (kind, true) => {
                let elements = elements(value);
                let note = describe_type(kind);
                let array = if property.is_ordered { "ordered array" } else { "array" };
                let note = match elements.len() {
                    0..MAX_ELEMENTS => format!("{array} of {note}"),
                    _ => format!(
                        "{array} of {note}; add more than {MAX_ELEMENTS} elements with the API"
                    ),
                };
                self.begin_group(&field.name, note);
                for (index, element) in elements.iter().enumerate() {
                    let at = format!("{here}/{index}");
                    let caption = format!("{} {}", field.name, index + 1);
                    if let Value::Object(inner) = kind {
                        self.add_nested(inner, element, &at, caption, level + 1);
                    } else {
                        self.add_input(property, Some(element), &at, caption, Some(at.clone()));
                    }
                }
                if elements.len() < MAX_ELEMENTS {
                    self.add_button(here, format!("Add to {}", field.name));
                }
                let legend = field.name.clone();
                self.items.push(FormItem::EndGroup { remove: None, legend });
            }
        }
    }

    fn add_nested(&mut self, shape: &Shape, object: &Json, at: &str, legend: String, level: usize) {
        self.begin_group(&legend, show_value(object.member(URI)));
        self.add_object(shape, object, at, level);
        self.items.push(FormItem::EndGroup { remove: Some(at.to_owned()), legend });
    }

    fn begin_group(&mut self, legend: &str, note: String) {
        self.items.push(FormItem::Group { legend: legend.to_owned(), note });
    }

    fn add_button(&mut self, pointer: &str, words: String) {
        self.items.push(FormItem::Add { pointer: pointer.to_owned(), words });
    }

    fn add_input(
        &mut self,
        property: &Property,
        value: Option<&Json>,
        here: &str,
        caption: String,
        remove: Option<String>,
    ) {
        let text = show_value(value);
        let mut choices = match &property.codes {
            Some(codes) => codes.list_choices(),
            None if property.value.kind().form == Form::Boolean => {
                ["true", "false"].map(str::to_owned).to_vec()
            }
            None => Vec::new(),
        };
        if !text.is_empty() && !choices.contains(&text) {
            choices.clear();
        }
        let kind = match choices.as_slice() {
            [_, ..] => InputKind::Choice,
            _ if text.contains('\n') || text.chars().count() > LONG_TEXT_CHARS => InputKind::Lines,
            _ => InputKind::Line,
        };
        let required = if property.required { ", required" } else { "" };
        let example = match &property.codes {
            Some(codes) => codes.hint(),
            None => property.value.kind().hint,
        };
        let hint = format!("{}{required}{example}", describe_type(&property.value));
        let error = self.take_error(here, &caption, &|message| explain(property, value, message));
        let input = Input { caption, hint, text, kind, choices, error, remove, ..Input::default() };
        self.push_input(VALUE_FIELD, here, input);
    }

    fn add_json(&mut self, field: &Field, property: &Property, value: Option<&Json>, here: &str) {
        let caption = field.name.clone();
        let (begin, value_type) = match (property.map(), property.is_array) {
            (Some((_, map)), _) => {
                ("map of ", map.value.map_or(&property.value, |(_, value)| &value.value))
            }
            (None, true) if property.is_ordered => ("ordered array of ", &property.value),
            (None, true) => ("array of ", &property.value),
            (None, false) => ("", &property.value),
        };
        let example = match property.value.kind().form {
            Form::Json => property.value.kind().hint,
            _ => "",
        };
        let hint = format!("{begin}{}, as JSON{example}", describe_type(value_type));
        let unread = self.source.unread.iter().find(|unread| unread.pointer == here);
        let text = unread.map_or_else(|| show_json(value), |unread| unread.text.clone());
        let error = self.take_error(here, &caption, &str::to_owned);
        let kind = InputKind::Json;
        let input = Input { caption, hint, text, kind, error, ..Input::default() };
        self.push_input(JSON_FIELD, here, input);
    }

    fn push_input(&mut self, prefix: &str, here: &str, input: Input) {
        let id = self.current_id();
        self.inputs += 1;
        self.items.push(FormItem::Input(Input { id, name: format!("{prefix}{here}"), ..input }));
    }

    /// Returns the id of the next field.
    fn current_id(&self) -> String {
        format!("field-{}", self.inputs + 1)
    }

    /// Returns the errors at a value or inside it that no other field has, for the next field.
    fn take_error(
        &mut self,
        here: &str,
        caption: &str,
        explain: &dyn Fn(&str) -> String,
    ) -> String {
        let id = self.current_id();
        let mut messages = Vec::new();
        for error in self.errors.iter_mut().filter(|error| error.input.is_none()) {
            let Some(inside) = error.pointer.strip_prefix(here) else { continue };
            if !inside.is_empty() && !inside.starts_with('/') {
                continue;
            }
            error.message = match inside {
                "" => explain(&error.message),
                inside => format!("{inside}: {}", error.message),
            };
            error.input = Some(id.clone());
            error.caption = Some(caption.to_owned());
            messages.push(error.message.clone());
        }
        messages.join("; ")
    }

    /// Whether a value has fields of its own, instead of one with JSON.
    fn has_own_inputs(&self, property: &Property, value: Option<&Json>, level: usize) -> bool {
        let is_map = property.value.language_map().is_some() || property.map().is_some();
        if property.value.kind().form == Form::Json || is_map {
            return false;
        }
        let is_element = |element: &Json| match (&property.value, element) {
            (Value::Object(_), Json::Object(_)) => true,
            (Value::Object(_), _) | (_, Json::Object(_) | Json::Array(_)) => false,
            _ => true,
        };
        let fits = match (property.is_array, value) {
            (_, None | Some(Json::Null)) => true,
            (true, Some(Json::Array(all))) => {
                all.len() <= MAX_ELEMENTS && all.iter().all(is_element)
            }
            (true, Some(_)) => false,
            (false, Some(value)) => is_element(value),
        };
        let is_shallow = match &property.value {
            Value::Object(inner) if property.is_array => {
                level == 0 && !inner.fields.iter().any(Field::contains_objects)
            }
            Value::Object(_) => level < MAX_LEVELS,
            _ => true,
        };
        let room = MAX_INPUTS.saturating_sub(self.inputs);
        let needed = elements(value).len() * fields_of(property);
        fits && is_shallow && needed.max(1) <= room
    }
}

/// Lets the page begin at the last field at this JSON Pointer or inside it.
fn focus_last(items: &mut [FormItem], pointer: &str) {
    let last = items.iter_mut().rev().find_map(|item| match item {
        FormItem::Input(input) if input.is_inside(pointer) => Some(input),
        _ => None,
    });
    if let Some(input) = last {
        input.has_focus = true;
    }
}

/// Returns whether a text in a value has a character that browsers replace.
fn has_unsendable_text(value: &Json) -> bool {
    match value {
        Json::String(text) => text.contains('\0'),
        Json::Array(elements) => elements.iter().any(has_unsendable_text),
        _ => false,
    }
}

fn elements(value: Option<&Json>) -> &[Json] {
    match value {
        Some(Json::Array(elements)) => elements,
        _ => &[],
    }
}

fn fields_of(property: &Property) -> usize {
    match &property.value {
        Value::Object(inner) => inner.fields.len(),
        _ => 1,
    }
}

#[cfg(test)]
mod tests;
