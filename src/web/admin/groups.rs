//! `/admin/groups`: groups of accounts.
use super::definitions::{DefinitionPages, TextPart, View};
use super::form::{Form, FormErrors};
use super::frame::Frame;
use super::menu::Section;
use super::pager::Pager;
use super::words;
use askama::Template;
use penstock_auth::groups::NewGroup;
use penstock_base::error::GatewayError;
use penstock_base::principal::Principal;
use penstock_http::path;
use penstock_resources::group::Group;
use penstock_service::definitions;
use penstock_service::gateway::Gateway;
use penstock_service::groups::Groups;
use serde_json::json;

#[derive(Template)]
#[template(path = "admin/groups.html")]
struct List {
    frame: Frame,
    rows: Vec<Row>,
    pager: Pager,
}

/// The form of a new or an existing group.
#[derive(Template)]
#[template(path = "admin/group.html")]
struct One {
    frame: Frame,
    faults: FormErrors,
    /// The stored group; `None` for a new one.
    row: Option<Row>,
    filled: Form,
}

/// A group, and what people call its accounts.
struct Row {
    group: Group,
    members: Vec<String>,
    changed_by: String,
}

impl Row {
    fn new(view: &View, group: Group) -> Self {
        let members = group.members.iter().flatten();
        Self {
            members: members.map(|id| name_member(&view.gateway, id)).collect(),
            changed_by: group
                .updated_by
                .as_deref()
                .map(|id| words::name_actor(&view.gateway, &view.by, id))
                .unwrap_or_default(),
            group,
        }
    }

    fn claim_values(&self) -> &[String] {
        self.group.claim_values.as_deref().unwrap_or_default()
    }

    fn changed(&self) -> String {
        self.group.updated_at.as_deref().map(words::format_minute).unwrap_or_default()
    }
}

/// Returns the email of an account, or its id if other accounts have the email too.
fn name_member(gateway: &Gateway, id: &str) -> String {
    let accounts = &gateway.auth.accounts;
    let email = accounts.get(id).map(|account| account.email.clone()).unwrap_or_default();
    let is_unique = accounts.find_user(&email).is_some_and(|account| account.id == id);
    if is_unique { email } else { id.to_owned() }
}

impl DefinitionPages for Groups {
    const SECTION: Section = Section::Groups;
    const PATH: &'static str = "/admin/groups";
    const FIELDS: &'static [&'static str] = &["name", "members", "claimValues"];
    const SHOWS_LIST_AFTER_SAVING: bool = true;
    type Details = Group;

    async fn read_details(view: &View, name: &str) -> Result<Group, GatewayError> {
        definitions::find::<Self>(&view.gateway, &view.by, name).await
    }

    fn new_form() -> Form {
        Form::default()
    }

    fn fill_form(view: &View, group: &Group) -> Form {
        let row = Row::new(view, group.clone());
        Form::with_values([
            ("members", Some(row.members.join("\n"))),
            ("claimValues", Some(row.claim_values().join("\n"))),
            ("version", group.version.map(|version| version.to_string())),
        ])
    }

    fn read_form(name: &str, form: &Form) -> Result<NewGroup, GatewayError> {
        let (members, values) = (form.lines("members"), form.lines("claimValues"));
        let body = json!({ "members": members, "claimValues": values });
        NewGroup::from_json(name, body.to_string().as_bytes())
    }

    fn build_list(view: View, rows: Vec<Group>, pager: Pager) -> impl Template {
        let rows = rows.into_iter().map(|group| Row::new(&view, group)).collect();
        List { frame: view.frame, rows, pager }
    }

    fn build_form(
        view: View,
        details: Option<Group>,
        filled: Form,
        faults: FormErrors,
    ) -> impl Template {
        let row = details.map(|group| Row::new(&view, group));
        One { frame: view.frame, faults, row, filled }
    }

    fn describe_deletion(view: &View, shown: &Group) -> Result<Vec<TextPart>, String> {
        let group = Principal::Group(shown.name.clone());
        let objects = view.gateway.catalogue.list();
        let approved = objects.iter().map(|one| &one.object.definition);
        let approved = approved.filter(|one| one.approvers().contains(&group));
        let names: Vec<&str> = approved.map(|one| one.name.as_str()).collect();
        let mut words = vec![TextPart::Plain(
            "Its members no longer see and approve what they see and approve as members. Definitions and changes that \
             name the group keep the name."
                .to_owned(),
        )];
        if !names.is_empty() {
            words.push(TextPart::Plain(" It approves changes of ".to_owned()));
            words.push(TextPart::Strong(names.join(", ")));
            words.push(TextPart::Plain(".".to_owned()));
        }
        Ok(words)
    }
}
