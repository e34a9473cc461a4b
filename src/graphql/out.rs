//! A result under construction, and its JSON.
use async_graphql::{Name, PathSegment, ServerError};
use penstock_base::error::GatewayError;
use std::rc::Rc;

/// The maximum number of errors of one answer.
pub(super) const MAX_ERRORS: usize = 100;

/// A value of the result. Numbers are text, so that they keep all their digits.
#[derive(Debug)]
pub(super) enum ResultValue {
    Null,
    /// JSON that is written unchanged.
    Raw(String),
    Text(String),
    List(Vec<ResultValue>),
    Object(Vec<(Name, ResultValue)>),
    /// A value that occurs several times.
    Shared(Rc<ResultValue>),
    /// A value that could not be read: `null`, and an entry in `errors`.
    Failed(Box<GatewayError>),
    /// A value that is `null` because the value at this place in it could not be read and must not be null (GraphQL, 6.4.4).
    FailedBelow(PathSegment, Box<GatewayError>),
}

impl ResultValue {
    pub(super) fn from_text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(super) fn from_bool(flag: bool) -> Self {
        Self::Raw(flag.to_string())
    }

    /// Returns the value, or null.
    pub(super) fn or_null(value: Option<Self>) -> Self {
        value.unwrap_or(Self::Null)
    }

    /// Returns a list whose items must not be null. If one of them could not be read, the list is null.
    pub(super) fn list_non_null(mut items: Vec<Self>) -> Self {
        let failed = items.iter().position(|item| matches!(item, Self::Failed(_)));
        match failed.map(|index| (index, items.swap_remove(index))) {
            Some((index, Self::Failed(cause))) => {
                Self::FailedBelow(PathSegment::Index(index), cause)
            }
            _ => Self::List(items),
        }
    }

    /// Converts any JSON value.
    pub(super) fn from_json(value: &serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Self::Null,
            other => Self::Raw(other.to_string()),
        }
    }

    /// Returns the approximate number of bytes of its JSON.
    pub(super) fn count_bytes(&self) -> usize {
        match self {
            Self::Raw(text) | Self::Text(text) => text.len() + 3,
            Self::List(items) => items.iter().map(|item| item.count_bytes() + 1).sum(),
            Self::Object(members) => {
                members.iter().map(|(key, out)| key.len() + 4 + out.count_bytes()).sum()
            }
            Self::Shared(shared) => shared.count_bytes(),
            Self::Null | Self::Failed(_) | Self::FailedBelow(..) => 4,
        }
    }

    /// Writes the result as JSON. Also returns the errors, each with its path, up to [`MAX_ERRORS`].
    pub(super) fn write_json(&self) -> (String, Vec<ServerError>) {
        let mut writer = Writer { out: String::new(), path: Vec::new(), errors: Vec::new() };
        writer.write_value(self);
        (writer.out, writer.errors)
    }
}

struct Writer {
    out: String,
    path: Vec<PathSegment>,
    errors: Vec<ServerError>,
}

impl Writer {
    fn write_value(&mut self, value: &ResultValue) {
        match value {
            ResultValue::Null => self.out.push_str("null"),
            ResultValue::Raw(json) => self.out.push_str(json),
            ResultValue::Text(text) => self.write_text(text),
            ResultValue::Shared(shared) => self.write_value(shared),
            ResultValue::List(items) => {
                self.out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        self.out.push(',');
                    }
                    self.path.push(PathSegment::Index(index));
                    self.write_value(item);
                    self.path.pop();
                }
                self.out.push(']');
            }
            ResultValue::Object(members) => {
                self.out.push('{');
                for (index, (name, value)) in members.iter().enumerate() {
                    if index > 0 {
                        self.out.push(',');
                    }
                    self.write_text(name);
                    self.out.push(':');
                    self.path.push(PathSegment::Field(name.to_string()));
                    self.write_value(value);
                    self.path.pop();
                }
                self.out.push('}');
            }
            ResultValue::Failed(cause) => self.write_failure(cause),
            ResultValue::FailedBelow(place, cause) => {
                self.path.push(place.clone());
                self.write_failure(cause);
                self.path.pop();
            }
        }
    }

    fn write_failure(&mut self, cause: &GatewayError) {
        self.out.push_str("null");
        if self.errors.len() < MAX_ERRORS {
            let mut error = ServerError::new(cause.to_string(), None);
            error.path.clone_from(&self.path);
            self.errors.push(error);
        }
    }

    fn write_text(&mut self, text: &str) {
        self.out.push_str(&serde_json::to_string(text).expect("a text is always JSON"));
    }
}
