//! The errors of rejected objects, as they are stored and shown.
use penstock_base::error::{self, GatewayError};
use penstock_resources::problem::{Finding, ViolatedConstraint};

/// The maximum number of errors that are kept of one object.
pub(crate) const MAX_LISTED_ERRORS: usize = 10;
/// The maximum length of a pointer or a message that is kept, in bytes.
const MAX_TEXT_BYTES: usize = 500;

/// Returns the error of an object whose errors are no longer stored.
pub(crate) fn not_stored_error() -> Finding {
    let message = "the object was rejected; only the first answer to the request had its errors";
    Finding { message: message.to_owned(), ..Finding::default() }
}

/// Returns the first errors of an object.
pub(crate) fn list_first_errors(error: &GatewayError) -> Vec<Finding> {
    if error.findings.is_empty() {
        let message = cut_text(error.detail.clone());
        return vec![Finding { message, ..Finding::default() }];
    }
    error.findings.iter().take(MAX_LISTED_ERRORS).cloned().map(keep_error).collect()
}

/// Returns an error as it is kept: names of fields are in errors, and come from outside, so what is too long is shortened.
pub(crate) fn keep_error(finding: error::Finding) -> Finding {
    let Finding { pointer, line, column, message, mut violation } = finding.into();
    if let Some(violation) = &mut violation {
        violation.value = violation.value.take().map(cut_text);
    }
    Finding { pointer: pointer.map(cut_text), line, column, message: cut_text(message), violation }
}

/// Returns about how many bytes the error takes.
pub(crate) fn count_error_bytes(error: &Finding) -> usize {
    let violation = error.violation.as_ref().map_or(0, |violation| {
        let ViolatedConstraint { focus_node, path, value, shape, constraint, severity } =
            &**violation;
        let optional = [path, value].map(|text| text.as_ref().map_or(0, String::len));
        let texts = [focus_node, shape, constraint, severity].map(String::len);
        texts.iter().chain(&optional).sum()
    });
    error.message.len() + error.pointer.as_ref().map_or(0, String::len) + violation
}

fn cut_text(mut text: String) -> String {
    if text.len() > MAX_TEXT_BYTES {
        text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
        text.push_str("...");
    }
    text
}
