//! `/admin/keys`: API keys. A key is shown once, on the page after its creation.
use super::business_objects::{build_command, build_ingestion_address};
use super::form::{Form, FormErrors, take_form};
use super::frame::{Frame, PageReply, PageResult};
use super::menu::Section;
use super::pager::Pager;
use super::words;
use askama::Template;
use jiff::Timestamp;
use penstock_auth::Role;
use penstock_auth::keys::NewApiKey;
use penstock_base::json::Json;
use penstock_http::caller::caller;
use penstock_http::origin::origin;
use penstock_http::parameters::page_of;
use penstock_http::path::path_parameter;
use penstock_http::query::{Query, UuidCursor};
use penstock_http::state::{gateway, state};
use penstock_model::resource::Compiled;
use penstock_resources::api_key::ApiKey;
use penstock_service::api_keys::{self, find_key};
use penstock_service::business_objects::find_business_object;
use penstock_service::gateway::Gateway;
use salvo::{Depot, Request, handler};
use std::sync::Arc;

/// Rows of one page.
const ROWS_PER_PAGE: usize = 50;
/// The maximum number of Business Objects whose command the page of a new key shows.
const MAX_COMMANDS: usize = 10;
/// The beginning of the names of the check boxes for Business Objects, before the id.
const CHOICE_PREFIX: &str = "businessObject.";
/// The fields that can have errors.
const FIELDS: &[&str] = &["name", "role", "expiresAt", "businessObjects"];

#[derive(Template)]
#[template(path = "admin/keys.html")]
struct List {
    frame: Frame,
    rows: Vec<Row>,
    pager: Pager,
}

#[derive(Template)]
#[template(path = "admin/key_new.html")]
struct Creation {
    frame: Frame,
    faults: FormErrors,
    filled: Form,
    roles: Vec<(&'static str, &'static str)>,
    business_objects: Vec<Choice>,
}

/// A Business Object that the key can be restricted to.
struct Choice {
    id: String,
    name: String,
    is_ticked: bool,
}

impl Choice {
    fn list(gateway: &Gateway, filled: &Form) -> Vec<Self> {
        let choice = |compiled: &Arc<Compiled>| {
            let (id, name) = (compiled.object.id.clone(), compiled.object.definition.name.clone());
            Self { is_ticked: filled.is_ticked(&format!("{CHOICE_PREFIX}{id}")), id, name }
        };
        gateway.catalogue.list().iter().map(choice).collect()
    }
}

#[derive(Template)]
#[template(path = "admin/key_made.html")]
struct Made {
    frame: Frame,
    row: Row,
    secret: String,
    /// The commands that use the key.
    commands: Vec<String>,
}

#[derive(Template)]
#[template(path = "admin/key_revoke.html")]
struct Revocation {
    frame: Frame,
    row: Row,
}

/// A key in the list.
struct Row {
    key: ApiKey,
    /// The display name of its owner.
    owner: String,
    /// The id of its owner, if that account exists.
    owner_id: Option<String>,
    /// The names of its Business Objects.
    business_objects: String,
    is_over: bool,
}

impl Row {
    fn new(key: ApiKey, gateway: &Gateway) -> Self {
        let now = gateway.clock.now();
        let is_over = |at: &str| at.parse::<Timestamp>().map_or(true, |at| at <= now);
        let account = key.owner.as_deref().and_then(|id| gateway.auth.accounts.get(id));
        let name_of = |id: &String| {
            let found = gateway.catalogue.get(id);
            found
                .map_or_else(|| format!("{id} (deleted)"), |one| one.object.definition.name.clone())
        };
        let business_objects = key.business_objects.as_ref();
        let business_objects =
            business_objects.map(|ids| ids.iter().map(name_of).collect::<Vec<_>>().join(", "));
        Self {
            owner: match (&account, &key.owner) {
                (Some(account), _) => words::display_name(account),
                (None, Some(id)) => id.clone(),
                (None, None) => "Local administration".to_owned(),
            },
            owner_id: account.map(|account| account.id.clone()),
            business_objects: business_objects.unwrap_or_else(|| "all".to_owned()),
            is_over: key.expires_at.as_deref().is_some_and(is_over),
            key,
        }
    }
}

/// Lists the caller's own keys; for an Admin all keys.
#[handler]
pub(crate) async fn list_keys(req: &mut Request, depot: &mut Depot) -> PageResult {
    let query = Query::read(req, &["cursor"])?;
    let (after, gateway) = (query.read_cursor::<UuidCursor>()?, gateway(depot)?);
    let keys = api_keys::list_keys(&gateway, caller(depot), after.as_deref(), ROWS_PER_PAGE + 1);
    let frame = Frame::new(req, depot, Section::Keys);
    let id = |key: &ApiKey| key.id.clone();
    let page = page_of(keys, ROWS_PER_PAGE, id);
    Ok(PageReply::show(&List {
        pager: Pager::for_query(&frame, "/admin/keys", &query, page.next.as_deref()),
        rows: page.items.into_iter().map(|key| Row::new(key, &gateway)).collect(),
        frame,
    }))
}

/// Shows the form for a new key.
#[handler]
pub(crate) async fn show_new_key(req: &mut Request, depot: &mut Depot) -> PageResult {
    let query = Query::read(req, &["businessObject"])?;
    let gateway = gateway(depot)?;
    let ticked = match query.get("businessObject") {
        Some(id) => format!("{CHOICE_PREFIX}{}", find_business_object(&gateway, id)?.object.id),
        None => String::new(),
    };
    let role = caller(depot).role.min(Role::Contributor);
    let is_ticked = (!ticked.is_empty()).then(String::new);
    let filled = [("role", Some(role.name().to_owned())), (ticked.as_str(), is_ticked)];
    let filled = Form::with_values(filled);
    Ok(build_new_key_page(req, depot, &gateway, filled, FormErrors::default()))
}

fn build_new_key_page(
    req: &Request,
    depot: &Depot,
    gateway: &Gateway,
    filled: Form,
    faults: FormErrors,
) -> PageReply {
    let frame = Frame::new(req, depot, Section::Keys);
    let mut roles = vec![("User", "User: reads")];
    if frame.may(Role::Contributor) {
        roles.push(("Contributor", "Contributor: also ingests, exports, and manages namespaces"));
    }
    if frame.may(Role::Admin) {
        roles.push(("Admin", "Admin: may do everything"));
        roles.push(("Metrics", "Metrics: reads only /metrics, for monitoring"));
    }
    let business_objects = Choice::list(gateway, &filled);
    let status = faults.status;
    let page = Creation { frame, faults, filled, roles, business_objects };
    PageReply::show_with_status(status, &page)
}

/// Creates a key, and shows it.
#[handler]
pub(crate) async fn create_key(req: &mut Request, depot: &mut Depot) -> PageResult {
    let (form, gateway) = (take_form(depot), gateway(depot)?);
    let mut members = form.to_members(&["name", "role"]);
    // Includes deleted Business Objects: a key for one that was just deleted must not become a key for all.
    let ticked: Vec<Json> =
        form.ticked_below(CHOICE_PREFIX).map(|id| Json::String(id.to_owned())).collect();
    if !ticked.is_empty() {
        members.push(("businessObjects".to_owned(), Json::Array(ticked)));
    }
    if let Some(day) = form.trimmed("expiresAt") {
        // Until the end of the chosen day.
        let is_day = day.len() == 10;
        let expiry = if is_day { format!("{day}T23:59:59Z") } else { day };
        members.push(("expiresAt".to_owned(), Json::String(expiry)));
    }
    let created = async {
        let new = NewApiKey::from_value(Json::Object(members))?;
        api_keys::create_key(&gateway, caller(depot), new).await
    };
    Ok(match created.await {
        Ok((key, secret)) => PageReply::show(&Made {
            frame: Frame::new(req, depot, Section::Keys),
            commands: {
                let base = origin(depot).base_url(state(depot).settings()).unwrap_or_default();
                build_commands(&gateway, &key, &secret, &base)
            },
            row: Row::new(key, &gateway),
            secret,
        }),
        Err(error) => {
            build_new_key_page(req, depot, &gateway, form, FormErrors::from_error(error, FIELDS))
        }
    })
}

/// Returns the commands that send an example to each Business Object of the key, or the one that reads the status if the
/// key is not made for ingestion into some of them.
fn build_commands(gateway: &Gateway, key: &ApiKey, secret: &str, base: &str) -> Vec<String> {
    let may_ingest = matches!(key.role, Role::Contributor | Role::Admin);
    let ids = key.business_objects.as_deref().unwrap_or_default().iter().filter(|_| may_ingest);
    let found = ids.take(MAX_COMMANDS).filter_map(|id| gateway.catalogue.get(id));
    let commands: Vec<String> = found
        .map(|one| build_command(&build_ingestion_address(base, &one), secret, &one.mapping))
        .collect();
    if commands.is_empty() {
        return vec![format!("curl -H 'Authorization: Bearer {secret}' {base}/api/v1/status")];
    }
    commands
}

/// Asks for confirmation before a key is revoked.
#[handler]
pub(crate) async fn confirm_revocation(req: &mut Request, depot: &mut Depot) -> PageResult {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let key = find_key(&gateway, caller(depot), path_parameter(req, "id"))?;
    let row = Row::new(key, &gateway);
    Ok(PageReply::show(&Revocation { frame: Frame::new(req, depot, Section::Keys), row }))
}

/// Revokes a key.
#[handler]
pub(crate) async fn revoke_key(req: &mut Request, depot: &mut Depot) -> PageResult {
    let gateway = gateway(depot)?;
    let key = find_key(&gateway, caller(depot), path_parameter(req, "id"))?;
    api_keys::revoke_key(&gateway, caller(depot), &key.id).await?;
    Ok(PageReply::redirect("/admin/keys", format!("The API key {:?} was revoked.", key.name)))
}
