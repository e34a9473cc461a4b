//! The fields of a form, and the errors that are shown with it. [`FormReader`] reads the fields before the form's
//! handler runs. With a session, it accepts only forms from pages of this gateway.
use super::words::format_count;
use crate::sign_in::parse_form_fields;
use penstock_auth::Credential;
use penstock_base::IfMatch;
use penstock_base::error::{GatewayError, Place};
use penstock_base::json::Json;
use penstock_http::body;
use penstock_http::caller::caller;
use penstock_http::problem::Problem;
use penstock_http::sender_page::check_session_sender;
use salvo::http::StatusCode;
use salvo::{Depot, FlowCtrl, Request, Response, Writer as _, handler};
use std::collections::BTreeMap;

/// The summary of an error at a single field.
pub(super) const NOT_SAVED: &str = "This could not be saved.";

/// The fields of a form, by name. A missing field counts as empty, because browsers do not send check boxes
/// that are not ticked. It is a map and no struct: serde stops at the first wrong field, but a page shows
/// all of them.
#[derive(Debug, Default)]
pub(crate) struct Form(BTreeMap<String, String>);

impl Form {
    /// Creates a form with these values in its fields. A check box that is not ticked has no value.
    pub(super) fn with_values<const N: usize>(values: [(&str, Option<String>); N]) -> Self {
        let given = values.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Self(given.collect())
    }

    /// Returns the form with this value in a field.
    pub(super) fn with_value(mut self, name: &str, value: &str) -> Self {
        self.0.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Returns a field with `\n` as line ends; browsers send `\r\n`.
    pub(super) fn text(&self, name: &str) -> String {
        self.0.get(name).map(|text| text.replace("\r\n", "\n")).unwrap_or_default()
    }

    /// Returns a field without surrounding white space; `None` if it is empty.
    pub(super) fn trimmed(&self, name: &str) -> Option<String> {
        let text = self.0.get(name)?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Returns a field as [`text`](Self::text) does; `None` if the form does not have it.
    pub(super) fn text_if_sent(&self, name: &str) -> Option<String> {
        self.0.contains_key(name).then(|| self.text(name))
    }

    /// Whether a check box is ticked.
    pub(super) fn is_ticked(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns the rest of the name of each ticked check box whose name begins with `prefix`.
    pub(super) fn ticked_below<'f>(&'f self, prefix: &'f str) -> impl Iterator<Item = &'f str> {
        self.0.keys().filter_map(move |name| name.strip_prefix(prefix))
    }

    /// Returns the lines of a field without surrounding white space; empty ones are ignored.
    pub(super) fn lines(&self, name: &str) -> Vec<String> {
        let text = self.text(name);
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.map(str::to_owned).collect()
    }

    /// Returns the version of what the form changes, with which the form was loaded.
    pub(super) fn version(&self) -> Option<u64> {
        self.trimmed("version")?.parse().ok()
    }

    /// Returns the condition that what the form changes still has the version with which the form was loaded.
    pub(super) fn if_match(&self) -> IfMatch {
        self.version().map_or(IfMatch::Exists, IfMatch::Version)
    }

    /// Returns the text of each field whose name begins with `prefix`, as it was sent.
    pub(super) fn texts_below<'f>(&'f self, prefix: &'f str) -> impl Iterator<Item = &'f str> {
        let fields = self.0.iter().filter(move |(name, _)| name.starts_with(prefix));
        fields.map(|(_, text)| text.as_str())
    }

    /// Returns these fields, except empty ones, for the readers of definitions: a form has the same fields as the
    /// JSON of the API.
    pub(super) fn to_members(&self, names: &[&str]) -> Vec<(String, Json)> {
        let filled =
            names.iter().filter_map(|name| Some(((*name).to_owned(), self.trimmed(name)?)));
        filled.map(|(name, text)| (name, Json::String(text))).collect()
    }
}

/// Whether two texts are equal. For templates, where a text may be a `String`, a `&str` or a reference to one.
pub(crate) fn is_same(
    one: &(impl AsRef<str> + ?Sized),
    other: &(impl AsRef<str> + ?Sized),
) -> bool {
    one.as_ref() == other.as_ref()
}

/// Takes the form of this request. Only for handlers behind [`FormReader`].
pub(super) fn take_form(depot: &mut Depot) -> Form {
    depot.remove_typed::<Form>().unwrap_or_default()
}

/// Runs before the handler of each form, after `access`: reads the fields, and refuses forms from other
/// sites' pages.
pub(crate) struct FormReader {
    /// How large the form may be.
    pub(crate) limit: FormLimit,
}

/// How large a form may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FormLimit {
    /// A few fields.
    Small,
    /// As large as data (`service.limits.body`), because it contains a definition.
    Data,
    /// So many bytes, and no more than data.
    Bytes(u64),
}

#[handler]
impl FormReader {
    async fn handle(
        &self,
        req: &mut Request,
        depot: &mut Depot,
        res: &mut Response,
        ctrl: &mut FlowCtrl,
    ) {
        match read_form(req, depot, self.limit).await {
            Ok(form) => {
                depot.insert_typed(form);
            }
            Err(problem) => {
                problem.write(req, depot, res).await;
                ctrl.skip_rest();
            }
        }
    }
}

async fn read_form(
    req: &mut Request,
    depot: &mut Depot,
    limit: FormLimit,
) -> Result<Form, Problem> {
    let body = match limit {
        FormLimit::Small => body::read_small_form(req, depot).await?,
        FormLimit::Data => body::read_whole_body(req, depot).await?,
        FormLimit::Bytes(max_bytes) => body::read_body_up_to(req, depot, max_bytes).await?,
    };
    let fields = parse_form_fields(body.bytes())?;
    // Only a session needs this check. Browsers send its cookie automatically, but never a key or a token.
    if matches!(caller(depot).credential, Credential::Session(_)) {
        check_session_sender(req, depot, fields.get("_csrf").map(String::as_str))?;
    }
    Ok(Form(fields))
}

/// The errors of a form, to be shown with it.
#[derive(Debug, Default)]
pub(crate) struct FormErrors {
    /// The status of the page that shows them.
    pub(super) status: StatusCode,
    /// The error in one sentence; empty without errors.
    pub(super) detail: String,
    /// The errors of each field, by its name.
    fields: BTreeMap<String, Vec<String>>,
    /// Errors that belong to no field.
    pub(super) others: Vec<String>,
    /// Errors in a text, which are listed below its field: line, column and message.
    pub(super) in_text: Vec<(u64, u64, String)>,
}

impl FormErrors {
    /// Creates the errors from the findings of an error. A finding belongs to the field that the first part of
    /// its JSON Pointer names, if that is one of `fields`.
    pub(super) fn from_error(error: GatewayError, fields: &[&str]) -> Self {
        let problem = Problem::from(error);
        let mut errors = Self {
            status: problem.status(),
            detail: problem.detail().to_owned(),
            ..Self::default()
        };
        for finding in problem.errors() {
            let field = match &finding.place {
                Place::Pointer(pointer) => pointer.split('/').nth(1),
                _ => None,
            };
            match field.filter(|field| fields.contains(field)) {
                Some(field) => errors.add(field, &finding.message),
                None => errors.others.push(finding.to_string()),
            }
        }
        errors
    }

    /// Creates the errors as [`from_error`](Self::from_error), but for those with a line in the text of the field `text`.
    /// They are listed below it, and the field has an error that counts them, with `subject`.
    pub(super) fn with_text(
        mut error: GatewayError,
        fields: &[&str],
        text: &str,
        subject: &str,
    ) -> Self {
        let mut in_text = Vec::new();
        error.findings.retain(|finding| match finding.place {
            Place::Line { line, column } => {
                in_text.push((line, column, finding.message.clone()));
                false
            }
            _ => true,
        });
        let mut errors = Self::from_error(error, fields);
        if !in_text.is_empty() {
            let count = format_count(in_text.len() as u64, "error", "errors");
            errors.add(text, &format!("{subject} has {count}, listed below it"));
        }
        Self { in_text, ..errors }
    }

    /// Adds an error at this field.
    pub(super) fn add(&mut self, field: &str, message: &str) {
        self.fields.entry(field.to_owned()).or_default().push(message.to_owned());
    }

    /// Returns the errors of a field, empty if there are none.
    pub(super) fn at(&self, field: &str) -> String {
        self.fields.get(field).map(|messages| messages.join("; ")).unwrap_or_default()
    }

    /// Returns the fields that have errors, for the summary at the top.
    pub(super) fn each(&self) -> impl Iterator<Item = (&str, String)> {
        self.fields.keys().map(|field| (field.as_str(), self.at(field)))
    }

    /// Whether there are no errors.
    pub(super) fn is_empty(&self) -> bool {
        self.detail.is_empty()
    }
}
