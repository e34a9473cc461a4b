//! The use cases of saved views. An account has its own ones, which nobody else sees. Everybody sees the shared ones, and
//! Contributors change them.
use crate::audit::change_event;
use crate::business_objects::find_business_object_id;
use crate::definitions::kind::Result;
use crate::gateway::Gateway;
use penstock_auth::{Authorized, Caller, Role};
use penstock_base::Preconditions;
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_model::resource::Compiled;
use penstock_model::views::{
    StoredView, ViewContent, ViewRequester, ViewsWriter, invalid_view_error,
};
use penstock_resources::view::SavedView;
use penstock_store::Transaction;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The views of a Business Object.
#[derive(Debug)]
pub struct BusinessObjectViews {
    /// The Business Object.
    pub business_object: Arc<Compiled>,
    /// Its views, ordered by name.
    pub views: Vec<Arc<StoredView>>,
}

/// Lists at most `limit` views that the caller sees, after the id `after`, ordered by id, which is the order of their
/// creation. With `business_object`, only those of the Business Object with this id or name.
pub fn list_views(
    gateway: &Gateway,
    by: &Caller,
    business_object: Option<&str>,
    after: Option<&str>,
    limit: usize,
) -> Vec<SavedView> {
    let id = business_object.map(|id_or_name| find_business_object_id(gateway, id_or_name));
    let is_wanted = |view: &StoredView| {
        may_see(by, view) && id.as_ref().is_none_or(|id| *id == view.content.business_object)
    };
    let views = gateway.views.list(after, limit, is_wanted);
    views.iter().map(|view| show_view(gateway, view)).collect()
}

/// Lists the views that the caller sees, by Business Object and name. Those of deleted Business Objects are left out.
pub fn list_views_by_business_object(gateway: &Gateway, by: &Caller) -> Vec<BusinessObjectViews> {
    let mut by_id: BTreeMap<String, Vec<Arc<StoredView>>> = BTreeMap::new();
    for view in gateway.views.list(None, usize::MAX, |view| may_see(by, view)) {
        by_id.entry(view.content.business_object.clone()).or_default().push(view);
    }
    if by_id.is_empty() {
        return Vec::new();
    }
    let all = gateway.catalogue.list().into_iter();
    all.filter_map(|business_object| {
        let mut views = by_id.remove(&business_object.object.id)?;
        views.sort_by(|one, other| one.content.name.cmp(&other.content.name));
        Some(BusinessObjectViews { business_object, views })
    })
    .collect()
}

/// Returns the view with this id.
///
/// # Errors
/// `ErrorClass::NotFound`, also for one that the caller does not see.
pub fn find_view(gateway: &Gateway, by: &Caller, id: &str) -> Result<SavedView> {
    let view = require_visible(by, id, gateway.views.get(id))?;
    Ok(show_view(gateway, &view))
}

/// Returns whether the caller may change a view that it sees.
pub fn may_change_view(by: &Caller, view: &SavedView) -> bool {
    by.role >= Role::Contributor || is_owner(by, view.owner.as_deref())
}

/// Saves a view of the caller. If the caller has saved the same one before, returns that: the answer was lost.
///
/// # Errors
/// - `ErrorClass::Invalid` if it does not fit its Business Object, or if it is not shared and the caller has no account
/// - `ErrorClass::Forbidden` if it is shared and the caller is no Contributor
/// - `ErrorClass::Conflict` if the account has another view of the Business Object with this name, and when a limit is
///   reached
/// - `ErrorClass::TooManyRequests` after many changes
/// - `ErrorClass::InsufficientStorage` when less than the reserve is free on the disk
pub async fn create_view(
    gateway: &Gateway,
    by: &Authorized,
    content: ViewContent,
) -> Result<SavedView> {
    gateway
        .run(by, Role::User, move |gateway, by| {
            let by = &authorize(by, None, content.shared)?;
            let owner = by.account.as_ref().map(|account| account.id.as_str());
            if owner.is_none() && !content.shared {
                return Err(sharing_error(
                    ErrorClass::Invalid,
                    "local administration and API keys without an account have no views of their own; set it to true",
                ));
            }
            let content = check_content(gateway, content)?;
            change_view(gateway, by, "view.created", |writer, requester| {
                let view = match find_namesake(gateway, by, owner, &content, None) {
                    Some(same) if same.content == content => same,
                    Some(other) => return Err(taken_name_error(&other)),
                    None => writer.create(requester, owner, content)?,
                };
                Ok(show_view(gateway, &view))
            })
        })
        .await
}

/// Replaces a view. The same content changes nothing.
///
/// # Errors
/// As [`create_view`]; `ErrorClass::NotFound` and `ErrorClass::PreconditionFailed`; `ErrorClass::Forbidden` also for a view
/// of others, if the caller is no Contributor, or makes it private.
pub async fn replace_view(
    gateway: &Gateway,
    by: &Authorized,
    id: &str,
    content: ViewContent,
    conditions: Preconditions,
) -> Result<SavedView> {
    let id = id.to_owned();
    gateway
        .run(by, Role::User, move |gateway, by| {
            let view = require_visible(by, &id, gateway.views.get(&id))?;
            let by = &authorize(by, Some(&view), content.shared)?;
            if !content.shared && !is_owner(by, view.owner.as_deref()) {
                return Err(sharing_error(
                    ErrorClass::Forbidden,
                    "only the account that saved the view can make it private; leave it true, or delete the view",
                ));
            }
            let content = check_content(gateway, content)?;
            change_view(gateway, by, "view.replaced", |writer, requester| {
                let view = require_current(by, &id, writer, conditions)?;
                let owner = view.owner.as_deref();
                // Two views can have one name: a Contributor who renames a shared one does not see the private ones.
                let is_renamed = view.content.name != content.name
                    || view.content.business_object != content.business_object;
                if is_renamed
                    && let Some(other) = find_namesake(gateway, by, owner, &content, Some(&id))
                {
                    return Err(taken_name_error(&other));
                }
                let view = writer.replace(requester, &view, content)?;
                Ok(show_view(gateway, &view))
            })
        })
        .await
}

/// Deletes a view.
///
/// # Errors
/// `ErrorClass::NotFound` and `ErrorClass::PreconditionFailed`; `ErrorClass::Forbidden` for a view of others, if the caller
/// is no Contributor; `ErrorClass::TooManyRequests` after many changes.
pub async fn delete_view(
    gateway: &Gateway,
    by: &Authorized,
    id: &str,
    conditions: Preconditions,
) -> Result<()> {
    let id = id.to_owned();
    gateway
        .run(by, Role::User, move |gateway, by| {
            let view = require_visible(by, &id, gateway.views.get(&id))?;
            let by = &authorize(by, Some(&view), false)?;
            change_view(gateway, by, "view.deleted", |writer, requester| {
                let view = require_current(by, &id, writer, conditions)?;
                writer.delete(requester, &view)
            })
        })
        .await
}

/// Runs a change of a view with its audit event. Others wait for its end.
fn change_view<T>(
    gateway: &Gateway,
    by: &Authorized,
    what: &'static str,
    change: impl FnOnce(&ViewsWriter<'_>, ViewRequester<'_>) -> Result<T>,
) -> Result<T> {
    let audit = &gateway.auth.audit;
    audit.check_view_rate(by)?;
    audit.flush();
    let on_commit = |transaction: &mut Transaction<'_>, view: &StoredView| {
        let detail = format!("{:?} ({}), version {}", view.content.name, view.id, view.version);
        audit.add_event(transaction, &change_event(by, what, detail))
    };
    let requester = ViewRequester { check: by, id: by.id(), on_commit: &on_commit };
    change(&gateway.views.begin_change(), requester)
}

/// Returns the caller with the role that it needs: Contributor for a view that others see, or that others have saved.
fn authorize(by: &Authorized, view: Option<&StoredView>, shared: bool) -> Result<Authorized> {
    let is_of_others = view.is_some_and(|view| !is_owner(by, view.owner.as_deref()));
    let role = if shared || is_of_others { Role::Contributor } else { Role::User };
    by.require_role(role)?;
    Ok(by.with_min_role(role))
}

/// Returns the content with the id of its Business Object.
fn check_content(gateway: &Gateway, content: ViewContent) -> Result<ViewContent> {
    gateway.disk.check_reserve()?;
    let Some(found) = gateway.catalogue.get(&content.business_object) else {
        let name = &content.business_object;
        let message = format!("there is no Business Object with the id or name {name:?}");
        return Err(invalid_view_error(vec![Finding::at_pointer("/businessObject", message)]));
    };
    let misfits = content.find_misfits(&found.mapping.root);
    if !misfits.is_empty() {
        return Err(invalid_view_error(misfits));
    }
    Ok(ViewContent { business_object: found.object.id.clone(), ..content })
}

/// Returns a view of this account with the name and the Business Object of `content`, unless it is the one with the id
/// `except`. Only one that the caller sees, so that nobody learns of the private views of others.
fn find_namesake(
    gateway: &Gateway,
    by: &Caller,
    owner: Option<&str>,
    content: &ViewContent,
    except: Option<&str>,
) -> Option<Arc<StoredView>> {
    let is_namesake = |view: &StoredView| {
        view.owner.as_deref() == owner
            && view.content.name == content.name
            && view.content.business_object == content.business_object
            && except != Some(view.id.as_str())
            && may_see(by, view)
    };
    gateway.views.list(None, 1, is_namesake).pop()
}

fn taken_name_error(other: &StoredView) -> GatewayError {
    let message = format!(
        "the account has a view of the Business Object with this name, {}; choose another name, or replace that view",
        other.id
    );
    unsaved_error(ErrorClass::Conflict, "/name", message)
}

fn sharing_error(class: ErrorClass, message: &str) -> GatewayError {
    unsaved_error(class, "/shared", message)
}

fn unsaved_error(class: ErrorClass, pointer: &str, message: impl Into<String>) -> GatewayError {
    let findings = vec![Finding::at_pointer(pointer, message)];
    GatewayError::with_findings(class, "the view cannot be saved like this", findings)
}

/// Returns the view as it is under the lock of changes, if it fulfils the conditions.
fn require_current(
    by: &Caller,
    id: &str,
    writer: &ViewsWriter<'_>,
    conditions: Preconditions,
) -> Result<Arc<StoredView>> {
    let view = require_visible(by, id, writer.get(id))?;
    conditions.check_version(Some(view.version), &format!("the view {:?}", view.content.name))?;
    Ok(view)
}

fn require_visible(
    by: &Caller,
    id: &str,
    view: Option<Arc<StoredView>>,
) -> Result<Arc<StoredView>> {
    view.filter(|view| may_see(by, view)).ok_or_else(|| {
        GatewayError::new(ErrorClass::NotFound, format!("there is no view with the id {id:?}"))
    })
}

fn may_see(by: &Caller, view: &StoredView) -> bool {
    view.content.shared || is_owner(by, view.owner.as_deref())
}

fn is_owner(by: &Caller, owner: Option<&str>) -> bool {
    owner.is_some() && by.account.as_ref().map(|account| account.id.as_str()) == owner
}

fn show_view(gateway: &Gateway, view: &StoredView) -> SavedView {
    let StoredView { id, owner, content, version, created_at, updated_at, updated_by } =
        view.clone();
    let misfits = match gateway.catalogue.get(&content.business_object) {
        Some(found) => content.find_misfits(&found.mapping.root),
        None => vec![Finding::at_pointer(
            "/businessObject",
            "this Business Object was deleted, or its stored definition is not valid",
        )],
    };
    let ViewContent { name, business_object, filters, order_by, columns, chart, shared } = content;
    SavedView {
        id,
        name,
        business_object,
        filters,
        order_by,
        columns,
        chart,
        shared,
        owner,
        version,
        created_at,
        updated_at,
        updated_by,
        warnings: misfits.into_iter().map(Into::into).collect(),
    }
}
