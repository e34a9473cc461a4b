//! What a form sent: read before its handler runs, and only from a page of this gateway.
use crate::body;
use crate::caller::caller;
use crate::page::check_session;
use crate::problem::Problem;
use crate::sign_in::fields;
use penstock_auth::Credential;
use penstock_base::fault::Place;
use salvo::http::StatusCode;
use salvo::{Depot, FlowCtrl, Request, Response, Writer as _, handler};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The fields of a form, by name. A field that was not sent reads as empty, as browsers leave out boxes
/// that are not ticked.
#[derive(Debug, Default)]
pub(crate) struct Form(BTreeMap<String, String>);

impl Form {
    /// A field, with the line ends that people mean: browsers send `\r\n`.
    pub(super) fn text(&self, name: &str) -> String {
        self.0.get(name).map(|text| text.replace("\r\n", "\n")).unwrap_or_default()
    }

    /// A field without white space around it; `None` when nothing is left.
    pub(super) fn word(&self, name: &str) -> Option<String> {
        let text = self.0.get(name)?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Whether a box is ticked.
    pub(super) fn is_ticked(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// A JSON object of these fields under their own names, those that are filled in: what the API would
    /// have been sent.
    pub(super) fn members(&self, names: &[&str]) -> Map<String, Value> {
        let filled = names.iter().filter_map(|name| Some(((*name).to_owned(), self.word(name)?)));
        filled.map(|(name, text)| (name, text.into())).collect()
    }
}

/// Whether two texts are the same, for templates, which have them in various types.
pub(crate) fn is_same(
    one: &(impl AsRef<str> + ?Sized),
    other: &(impl AsRef<str> + ?Sized),
) -> bool {
    one.as_ref() == other.as_ref()
}

/// The form of this request. For handlers behind [`Sent`].
pub(super) fn form(depot: &mut Depot) -> Form {
    depot.remove_typed::<Form>().unwrap_or_default()
}

/// Stands before the handler of each form, after `access`: reads the fields, and refuses those that
/// another site's page sent.
pub(crate) struct Sent {
    /// Whether it may be as long as data may: it holds a definition.
    pub(crate) is_long: bool,
}

#[handler]
impl Sent {
    async fn handle(
        &self,
        req: &mut Request,
        depot: &mut Depot,
        res: &mut Response,
        ctrl: &mut FlowCtrl,
    ) {
        match read(req, depot, self.is_long).await {
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

async fn read(req: &mut Request, depot: &mut Depot, is_long: bool) -> Result<Form, Problem> {
    let sent =
        if is_long { body::whole(req, depot).await? } else { body::form(req, depot).await? };
    let fields = fields(sent.bytes())?;
    // A credential in a header is no browser's, which would send it with what any page makes it send.
    if matches!(caller(depot).credential, Credential::Session(_)) {
        check_session(req, depot, fields.get("_csrf").map(String::as_str))?;
    }
    Ok(Form(fields))
}

/// What is wrong with a form that was sent, to be shown with it.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// The status of the page that shows them.
    pub(super) status: StatusCode,
    /// What is wrong, in one sentence; empty when nothing is.
    pub(super) detail: String,
    /// What is wrong with a field, by its name.
    fields: BTreeMap<String, Vec<String>>,
    /// What has no field to stand beside.
    pub(super) others: Vec<String>,
}

impl Faults {
    /// The findings of a problem, each beside the field that its JSON Pointer names first, when that is one
    /// of `fields`.
    pub(super) fn of(problem: &Problem, fields: &[&str]) -> Self {
        let mut faults = Self {
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
                Some(field) => faults.add(field, &finding.message),
                None => faults.others.push(finding.to_string()),
            }
        }
        faults
    }

    /// One, beside this field.
    pub(super) fn one(field: &str, message: &str) -> Self {
        let mut faults = Self {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            detail: "This could not be saved.".to_owned(),
            ..Self::default()
        };
        faults.add(field, message);
        faults
    }

    /// One more, beside this field.
    pub(super) fn add(&mut self, field: &str, message: &str) {
        self.fields.entry(field.to_owned()).or_default().push(message.to_owned());
    }

    /// What is wrong with a field, empty when nothing is.
    pub(super) fn at(&self, field: &str) -> String {
        self.fields.get(field).map(|messages| messages.join("; ")).unwrap_or_default()
    }

    /// The fields that have something wrong, each with it, for the summary at the top.
    pub(super) fn each(&self) -> impl Iterator<Item = (&str, String)> {
        self.fields.keys().map(|field| (field.as_str(), self.at(field)))
    }

    /// Whether nothing is wrong.
    pub(super) fn is_empty(&self) -> bool {
        self.detail.is_empty()
    }
}
