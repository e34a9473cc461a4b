//! `/admin/keys`: API keys. A key is shown once, on the page after its creation.
use super::form::{Form, FormErrors, take_form};
use super::frame::{self, Frame, Section};
use super::pager::Pager;
use super::words;
use askama::Template;
use jiff::Timestamp;
use penstock_api::api_keys::{create_key, find_key, revoke_key};
use penstock_auth::keys::{Key, NewApiKey};
use penstock_auth::{Auth, Role};
use penstock_http::caller::caller;
use penstock_http::problem::Problem;
use penstock_http::query::{Query, truncate_page};
use penstock_http::service::origin;
use penstock_http::state::{gateway, state};
use penstock_service::gateway::Gateway;
use salvo::{Depot, Request, Response, handler};
use serde_json::Value;

/// Rows of one page.
const ROWS_PER_PAGE: usize = 50;
/// The fields that can have errors.
const FIELDS: &[&str] = &["name", "role", "expiresAt", "businessObject"];

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
    name: String,
    role: String,
    expires: String,
    business_object: String,
    roles: Vec<(&'static str, &'static str)>,
    business_objects: Vec<(String, String)>,
}

#[derive(Template)]
#[template(path = "admin/key_made.html")]
struct Made {
    frame: Frame,
    row: Row,
    key: String,
    /// The base URL for programs.
    address: String,
}

#[derive(Template)]
#[template(path = "admin/key_revoke.html")]
struct Revocation {
    frame: Frame,
    row: Row,
}

/// A key in the list.
struct Row {
    id: String,
    name: String,
    role: Role,
    /// The display name of its owner, and the address of that account's page.
    owner: String,
    owner_path: Option<String>,
    business_object: String,
    created: String,
    expires: String,
    is_over: bool,
    last_used: String,
}

impl Row {
    fn from_key(key: &Key, gateway: &Gateway, now: Timestamp) -> Self {
        let at = key.expires_at.as_deref().and_then(|at| at.parse::<Timestamp>().ok());
        let (owner, owner_path) = describe_owner(key.owner.as_deref(), &gateway.auth);
        let business_object = key.business_object.as_ref().map(|id| {
            let found = gateway.catalogue.get(id);
            found
                .map_or_else(|| format!("{id} (deleted)"), |one| one.object.definition.name.clone())
        });
        Self {
            id: key.id.clone(),
            name: key.name.clone(),
            role: key.role,
            owner,
            owner_path,
            business_object: business_object.unwrap_or_else(|| "all".to_owned()),
            created: words::format_minute(&key.created_at),
            expires: key.expires_at.as_deref().map_or_else(|| "never".into(), words::format_minute),
            is_over: key.expires_at.is_some() && at.is_none_or(|at| at <= now),
            last_used: key
                .last_used
                .as_deref()
                .map_or_else(|| "never".into(), words::format_minute),
        }
    }
}

/// Returns the display name of a key's owner, and the address of its account.
fn describe_owner(id: Option<&str>, auth: &Auth) -> (String, Option<String>) {
    let Some(id) = id else { return ("Local administration".to_owned(), None) };
    match auth.accounts.get(id) {
        Some(account) => (words::display_name(&account), Some(format!("/admin/users/{id}"))),
        None => (id.to_owned(), None),
    }
}

/// Lists the caller's own keys; for an Admin all keys.
#[handler]
pub(crate) async fn list(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let query = Query::read(req, &["cursor"])?;
    let after = query.read_uuid_cursor()?;
    let gateway = gateway(depot)?;
    let mut keys = gateway.auth.keys.list(caller(depot), after.as_deref(), ROWS_PER_PAGE + 1);
    let next = truncate_page(&mut keys, ROWS_PER_PAGE, |key| &key.id);
    let now = gateway.clock.now();
    let frame = Frame::for_caller(req, depot, res, Section::Keys);
    let page = List {
        rows: keys.iter().map(|key| Row::from_key(key, &gateway, now)).collect(),
        pager: Pager::new(&frame, "/admin/keys", &[], after.is_none(), next.as_deref()),
        frame,
    };
    frame::show_page(res, depot, &page);
    Ok(())
}

/// Shows the form for a new key.
#[handler]
pub(crate) async fn creation(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    Query::read(req, &[])?;
    render_new_key(req, depot, res, FormErrors::default(), &Form::default())
}

fn render_new_key(
    req: &Request,
    depot: &Depot,
    res: &mut Response,
    faults: FormErrors,
    form: &Form,
) -> Result<(), Problem> {
    let gateway = gateway(depot)?;
    let frame = Frame::for_caller(req, depot, res, Section::Keys);
    let mut roles = vec![("User", "User: reads")];
    if frame.may(Role::Contributor) {
        roles.push(("Contributor", "Contributor: also ingests, exports, and manages namespaces"));
    }
    if frame.may(Role::Admin) {
        roles.push(("Admin", "Admin: may do everything"));
        roles.push(("Metrics", "Metrics: reads only /metrics, for monitoring"));
    }
    let names = gateway.catalogue.list();
    let names = names.iter().map(|one| {
        let name = one.object.definition.name.clone();
        (name.clone(), name)
    });
    let all = (String::new(), "All".to_owned());
    let page = Creation {
        name: form.text("name"),
        role: form.trimmed("role").unwrap_or_else(|| {
            if frame.may(Role::Contributor) { "Contributor" } else { "User" }.to_owned()
        }),
        expires: form.text("expiresAt"),
        business_object: form.text("businessObject"),
        business_objects: std::iter::once(all).chain(names).collect(),
        roles,
        frame,
        faults,
    };
    let status = page.faults.status;
    frame::show_page_with_status(res, depot, status, &page);
    Ok(())
}

/// Creates a key, and shows it.
#[handler]
pub(crate) async fn create(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let (form, gateway) = (take_form(depot), gateway(depot)?);
    let mut sent = form.to_members(&["name", "role", "businessObject"]);
    if let Some(day) = form.trimmed("expiresAt") {
        // Until the end of the chosen day.
        let is_day = day.len() == 10;
        sent.insert(
            "expiresAt".into(),
            if is_day { format!("{day}T23:59:59Z") } else { day }.into(),
        );
    }
    let made = match NewApiKey::from_json(Value::Object(sent).to_string().as_bytes()) {
        Ok(new) => create_key(gateway.clone(), caller(depot), new).await,
        Err(error) => Err(error.into()),
    };
    let (key, secret) = match made {
        Ok(made) => made,
        Err(problem) => {
            return render_new_key(
                req,
                depot,
                res,
                FormErrors::from_problem(&problem, FIELDS),
                &form,
            );
        }
    };
    let page = Made {
        frame: Frame::for_caller(req, depot, res, Section::Keys),
        row: Row::from_key(&key, &gateway, gateway.clock.now()),
        key: secret,
        address: origin(depot).base_url(state(depot).settings()).unwrap_or_default(),
    };
    frame::show_page(res, depot, &page);
    Ok(())
}

/// Asks for confirmation before a key is revoked.
#[handler]
pub(crate) async fn revocation(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    Query::read(req, &[])?;
    let gateway = gateway(depot)?;
    let row = Row::from_key(&*find_key(req, depot)?, &gateway, gateway.clock.now());
    let page = Revocation { frame: Frame::for_caller(req, depot, res, Section::Keys), row };
    frame::show_page(res, depot, &page);
    Ok(())
}

/// Revokes a key.
#[handler]
pub(crate) async fn end(
    req: &mut Request,
    depot: &mut Depot,
    res: &mut Response,
) -> Result<(), Problem> {
    let key = find_key(req, depot)?;
    revoke_key(gateway(depot)?, caller(depot), &key.id).await?;
    let words = format!("The API key {:?} was revoked.", key.name);
    frame::redirect_with_notice(res, depot, "/admin/keys", &words);
    Ok(())
}
