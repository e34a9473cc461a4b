//! The parts of the form that changes an object, and their words.
use penstock_base::json::Json;
use penstock_model::mapping::Property;

/// A part of the form, in the order of the page.
pub(in crate::admin::object) enum FormItem {
    /// The fields of a nested object, or the elements of an array, begin.
    Group { legend: String, note: String },
    /// They end. A button removes the object with this JSON Pointer.
    EndGroup { remove: Option<String>, legend: String },
    /// A field of the form.
    Input(Input),
    /// A value that cannot be changed.
    Fixed { caption: String, value: String, note: &'static str },
    /// A button that adds an element or an object.
    Add { pointer: String, words: String },
}

/// A field of the form.
#[derive(Default)]
pub(in crate::admin::object) struct Input {
    pub(in crate::admin::object) id: String,
    /// Its name: what the text is, and the JSON Pointer of the value.
    pub(in crate::admin::object) name: String,
    pub(in crate::admin::object) caption: String,
    pub(in crate::admin::object) hint: String,
    pub(in crate::admin::object) text: String,
    pub(in crate::admin::object) kind: InputKind,
    /// The texts to choose from.
    pub(in crate::admin::object) choices: Vec<String>,
    pub(in crate::admin::object) error: String,
    /// The JSON Pointer of the element that a button beside it removes.
    pub(in crate::admin::object) remove: Option<String>,
    /// Whether the page begins here, after a row was added or removed.
    pub(in crate::admin::object) has_focus: bool,
}

/// How a field is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::admin::object) enum InputKind {
    #[default]
    Line,
    Lines,
    /// One of the choices, or no value.
    Choice,
    Json,
}

impl Input {
    /// Whether it is at this JSON Pointer or inside it.
    pub(super) fn is_inside(&self, pointer: &str) -> bool {
        let own = self.name.find('/').and_then(|start| self.name.get(start..));
        let rest = own.and_then(|own| own.strip_prefix(pointer));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// Returns the message of an error at a value. A text that is not of its type was sent as a string.
pub(super) fn explain(property: &Property, value: Option<&Json>, message: &str) -> String {
    match (property.value.kind().text_error, value) {
        (Some(error), Some(Json::String(text))) if property.codes.is_none() => {
            format!("{text:?} is {error}")
        }
        _ => message.to_owned(),
    }
}
