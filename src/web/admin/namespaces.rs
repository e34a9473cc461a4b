//! `/admin/namespaces`: names, URI bases, and how identifiers are created.
use super::definitions::{DefinitionPages, TextPart, View, refuse_name};
use super::form::{Form, FormErrors};
use super::frame::Frame;
use super::menu::Section;
use super::pager::Pager;
use super::words;
use askama::Template;
use penstock_base::Role;
use penstock_base::error::GatewayError;
use penstock_base::json::Json;
use penstock_http::path;
use penstock_model::namespace;
use penstock_resources::namespace::{DefinedNamespace, Generator, Namespace};
use penstock_service::namespaces::{NamespaceUse, Namespaces, find_namespace_use};

/// The choices of the generator.
const GENERATORS: [(&str, &str); 4] = [
    ("uuid", "UUID: globally unique, ordered by time"),
    ("counter", "Counter: 1, 2, 3, ..., never reused"),
    ("alphanumeric", "Alphanumeric: ten characters of 0-9 and a-z"),
    ("manual", "Manual: the sender of the data sets each URI"),
];

#[derive(Template)]
#[template(path = "admin/namespaces.html")]
struct List {
    frame: Frame,
    rows: Vec<Namespace>,
    pager: Pager,
}

/// The form of a new or an existing namespace.
#[derive(Template)]
#[template(path = "admin/namespace.html")]
struct One {
    frame: Frame,
    faults: FormErrors,
    /// The stored namespace; `None` for a new one.
    details: Option<NamespaceUse>,
    filled: Form,
    /// The default base of a namespace called `Name`, as an example for the field's hint.
    base: String,
}

impl One {
    /// Whether the form can be sent. A namespace that is used can no longer be changed.
    fn may_save(&self) -> bool {
        let used = self.details.as_ref().and_then(|details| details.unchangeable_reason.as_ref());
        used.is_none() && self.frame.may_edit(Role::Contributor)
    }
}

impl DefinitionPages for Namespaces {
    const SECTION: Section = Section::Namespaces;
    const PATH: &'static str = "/admin/namespaces";
    const FIELDS: &'static [&'static str] = &["name", "uriBase", "generator"];
    const SAVED: &'static str = "changed";
    type Details = NamespaceUse;

    async fn read_details(view: &View, name: &str) -> Result<NamespaceUse, GatewayError> {
        find_namespace_use(&view.gateway, name).await
    }

    fn new_form() -> Form {
        Form::with_values([("generator", Some(Generator::default().name().to_owned()))])
    }

    fn fill_form(_: &View, NamespaceUse { namespace, .. }: &NamespaceUse) -> Form {
        Form::with_values([
            ("uriBase", Some(namespace.uri_base.clone())),
            ("generator", Some(namespace.generator.name().to_owned())),
        ])
    }

    fn read_form(name: &str, form: &Form) -> Result<DefinedNamespace, GatewayError> {
        namespace::check_name(name).map_err(refuse_name)?;
        namespace::read_definition(name, Json::Object(form.to_members(&["uriBase", "generator"])))
    }

    fn build_list(view: View, rows: Vec<Namespace>, pager: Pager) -> impl Template {
        List { frame: view.frame, rows, pager }
    }

    fn build_form(
        view: View,
        details: Option<NamespaceUse>,
        filled: Form,
        faults: FormErrors,
    ) -> impl Template {
        let base = view.gateway.catalogue.default_base("Name");
        One { frame: view.frame, faults, details, filled, base }
    }

    fn describe_deletion(_: &View, shown: &Namespace) -> Result<Vec<TextPart>, String> {
        let counter = if shown.generator == Generator::Counter {
            " A namespace with the same base continues counting where this one stopped."
        } else {
            ""
        };
        let begin = "No data is lost: a namespace with data cannot be deleted. The name ";
        Ok(vec![
            TextPart::Plain(begin.to_owned()),
            TextPart::Strong(shown.name.clone()),
            TextPart::Plain(" no longer means ".to_owned()),
            TextPart::Code(shown.uri_base.clone()),
            TextPart::Plain(format!(", and mappings that name it are refused.{counter}")),
        ])
    }
}
