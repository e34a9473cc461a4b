//! The table of contents of the pages: every route, its minimum role and its handler. `access` enforces the roles.
use crate::admin::approval_count::ApprovalCounter;
use crate::admin::changes::StepForm;
use crate::admin::definitions::DefinitionPage;
use crate::admin::exports::ActionForm;
use crate::admin::form::{FormLimit, FormReader};
use crate::{admin, sign_in};
use penstock_http::access::MinimumRole;
use penstock_http::operation::Operation;
use penstock_http::router::{self, Route, plain_route};
use penstock_model::changes::ChangeAction;
use penstock_service::definitions::Kind as _;
use penstock_service::exports::ExportAction;
use penstock_service::groups::Groups;
use penstock_service::namespaces::Namespaces;
use penstock_service::shapes_graphs::ShapesGraphs;
use salvo::Handler;
use salvo::http::Method;
use std::sync::Arc;

/// What the paths of the parts of pages end with.
const FRAGMENTS: [&str; 5] = ["/progress", "/histogram", "/chart", "/facets", "/suggestions"];

/// Returns the operations to sign in and out. The OpenAPI document describes them, since programs use them too.
pub fn sign_in_operations() -> Vec<Operation> {
    let mut operations = sign_in::sign_in_operations();
    operations.push(sign_in::sign_out_operation());
    operations
}

/// Returns the addresses that only a browser uses to sign in and out.
#[rustfmt::skip]
pub fn sign_in_routes() -> Vec<Route> {
    use MinimumRole::Anyone;
    let get = Method::GET;
    vec![
        plain_route(get.clone(), "/",                                      Anyone, sign_in::redirect_home),
        plain_route(get.clone(), "/signed-out",                            Anyone, sign_in::show_signed_out),
        plain_route(get.clone(), "/oauth2/authorization/{registrationId}", Anyone, sign_in::begin_provider_sign_in),
        plain_route(get,         "/login/oauth2/code/{registrationId}",    Anyone, sign_in::complete_provider_sign_in),
    ]
}

/// Returns the routes of the pages of a kind of definitions. The parameters are the kind, the role that reads the pages, the
/// path of the list, and that of the form of a new one. It is not below the list, because a definition may be named `new`.
macro_rules! definition_routes {
    ($kind:ty, $reader:expr, $list:literal, $new:literal) => {{
        type Page = DefinitionPage<$kind>;
        let (get, post) = (Method::GET, Method::POST);
        let writer = MinimumRole::from(<$kind>::MIN_ROLE);
        [
            page_route(&get, $list, $reader, Page::LIST),
            page_route(&get, concat!($list, "/{name}"), $reader, Page::SHOW),
            page_route(&post, concat!($list, "/{name}"), writer, Page::SAVE),
            page_route(&get, concat!($list, "/{name}/delete"), writer, Page::CONFIRM_DELETION),
            page_route(&post, concat!($list, "/{name}/delete"), writer, Page::DELETE),
            page_route(&get, $new, writer, Page::SHOW_NEW),
            page_route(&post, $new, writer, Page::CREATE),
        ]
    }};
}

/// Returns the routes of the administration interface. A POST sends a form.
#[rustfmt::skip]
pub fn page_routes() -> Vec<Route> {
    use MinimumRole::{Admin, Anyone, Contributor, User};
    let (get, post) = (Method::GET, Method::POST);
    let mut routes = vec![
        page_route(&get,  "/admin",                              User,        admin::overview::show_overview),
        page_route(&get,  "/admin/assets/{hash}/{name}",         Anyone,      admin::assets::serve_asset),
        page_route(&get,  "/admin/search",                       User,        admin::search::show_search),
        page_route(&get,  "/admin/profile",                      User,        admin::profile::show_profile),
        page_route(&post, "/admin/profile",                      User,        admin::profile::change_profile),
        page_route(&post, "/admin/profile/password",             User,        admin::profile::set_password),
        page_route(&get,  "/admin/quality",                      User,        admin::quality::list_validations),
        page_route(&post, "/admin/quality",                      Contributor, admin::quality::start_validation),
        page_route(&get,  "/admin/quality/{id}",                 User,        admin::quality::show_validation),
        page_route(&post, "/admin/quality/{id}/cancel",          Contributor, admin::quality::cancel_validation),
        page_route(&get,  "/admin/keys",                         User,        admin::keys::list_keys),
        page_route(&get,  "/admin/keys/new",                     User,        admin::keys::show_new_key),
        page_route(&post, "/admin/keys/new",                     User,        admin::keys::create_key),
        page_route(&get,  "/admin/keys/{id}/revoke",             User,        admin::keys::confirm_revocation),
        page_route(&post, "/admin/keys/{id}/revoke",             User,        admin::keys::revoke_key),
        page_route(&get,  "/admin/users",                        Admin,       admin::users::list_users),
        page_route(&get,  "/admin/users/new",                    Admin,       admin::users::show_new_user),
        page_route(&post, "/admin/users/new",                    Admin,       admin::users::create_user),
        page_route(&get,  "/admin/users/{id}",                   Admin,       admin::users::show_user),
        page_route(&post, "/admin/users/{id}",                   Admin,       admin::users::change_user),
        page_route(&post, "/admin/users/{id}/password",          Admin,       admin::users::set_password),
        page_route(&get,  "/admin/users/{id}/delete",            Admin,       admin::users::confirm_deletion),
        page_route(&post, "/admin/users/{id}/delete",            Admin,       admin::users::delete_user),
        page_route(&get,  "/admin/audit",                        Admin,       admin::audit::show_audit_trail),
        page_route(&get,  "/admin/settings",                     Admin,       admin::settings::show_settings),
        page_route(&get,  "/admin/business-objects",             User,        admin::business_objects::list_business_objects),
        // Before the routes with an id, since the router takes the first match.
        page_route(&get,  "/admin/business-objects/derive",      Admin,       admin::samples::show_sample_form),
        page_route(&post, "/admin/business-objects/derive",      Admin,       admin::samples::derive_business_object),
        page_route(&get,  "/admin/business-objects/new",         Admin,       admin::editor::show_new_business_object),
        page_route(&post, "/admin/business-objects/new",         Admin,       admin::editor::create_business_object),
        page_route(&post, "/admin/business-objects/check",       Admin,       admin::check::check_form),
        page_route(&get,  "/admin/business-objects/{id}",        User,        admin::business_objects::show_business_object),
        page_route(&get,  "/admin/business-objects/{id}/edit",   Admin,       admin::editor::show_editor),
        page_route(&post, "/admin/business-objects/{id}/edit",   Admin,       admin::editor::save_business_object),
        page_route(&get,  "/admin/business-objects/{id}/delete", Admin,       admin::business_objects::confirm_deletion),
        page_route(&post, "/admin/business-objects/{id}/delete", Admin,       admin::business_objects::delete_business_object),
        page_route(&post, "/admin/business-objects/{id}/push",   Contributor, admin::business_objects::push_business_object),
        page_route(&get,  "/admin/object",                       User,        admin::object::show_object),
        page_route(&get,  "/admin/object/edit",                  Contributor, admin::object::edit::show_editor),
        page_route(&post, "/admin/object/edit",                  Contributor, admin::object::edit::change_object),
        page_route(&get,  "/admin/object/delete",                Contributor, admin::object::delete::confirm_deletion),
        page_route(&post, "/admin/object/delete",                Contributor, admin::object::delete::delete_object),
        page_route(&get,  "/admin/objects/{id}",                 User,        admin::objects::explore_objects),
        page_route(&get,  "/admin/objects/{id}/histogram",       User,        admin::objects::parts::show_histogram),
        page_route(&get,  "/admin/objects/{id}/chart",           User,        admin::objects::parts::show_chart),
        page_route(&get,  "/admin/objects/{id}/facets",          User,        admin::objects::parts::show_facets),
        page_route(&get,  "/admin/objects/{id}/suggestions",     User,        admin::objects::parts::suggest_values),
        page_route(&get,  "/admin/objects/{id}/requests",        User,        admin::objects::requests::show_requests),
        page_route(&post, "/admin/objects/{id}/columns",         User,        admin::objects::column_form::change_columns),
        page_route(&get,  "/admin/views",                        User,        admin::views::show_views),
        page_route(&post, "/admin/views",                        User,        admin::objects::saved::save_view),
        page_route(&get,  "/admin/views/{id}/delete",            User,        admin::views::confirm_deletion),
        page_route(&post, "/admin/views/{id}/delete",            User,        admin::views::delete_saved_view),
        page_route(&get,  "/admin/changes",                      User,        admin::changes::list::list_changes),
        // Before the routes with an id, since the router takes the first match.
        page_route(&get,  "/admin/changes/to-approve",           User,        admin::changes::to_approve::show_count),
        page_route(&get,  "/admin/changes/{id}",                 User,        admin::changes::show_change),
        page_route(&get,  "/admin/changes/{id}/progress",        User,        admin::changes::show_progress),
        page_route(&post, "/admin/changes/{id}/submit",          User,        StepForm(ChangeAction::Submit)),
        page_route(&post, "/admin/changes/{id}/approve",         Contributor, StepForm(ChangeAction::Approve)),
        page_route(&post, "/admin/changes/{id}/reject",          Contributor, StepForm(ChangeAction::Reject)),
        page_route(&post, "/admin/changes/{id}/withdraw",        User,        StepForm(ChangeAction::Withdraw)),
        page_route(&post, "/admin/changes/{id}/rebase",          User,        StepForm(ChangeAction::Rebase)),
        page_route(&get,  "/admin/exports",                      User,        admin::exports::list_exports),
        page_route(&get,  "/admin/exports/{id}",                 User,        admin::exports::show_export),
        page_route(&post, "/admin/exports/{id}/retry",           Admin,       ActionForm(ExportAction::Retry)),
        page_route(&post, "/admin/exports/{id}/park",            Admin,       ActionForm(ExportAction::Park)),
        page_route(&post, "/admin/exports/{id}/replay",          Admin,       ActionForm(ExportAction::Replay)),
        page_route(&get,  "/admin/ingestions/{id}",              User,        admin::ingestions::show_ingestion),
        page_route(&get,  "/admin/rejected",                     Contributor, admin::rejected::list_rejected),
        page_route(&get,  "/admin/rejected/{id}",                Contributor, admin::rejected::show_dead_letter),
        page_route(&post, "/admin/rejected/{id}/retry",          Contributor, admin::rejected::retry_dead_letter),
        page_route(&post, "/admin/rejected/{id}/delete",         Contributor, admin::rejected::delete_dead_letter),
        page_route(&get,  "/admin/targets",                      User,        admin::targets::list_targets),
        page_route(&get,  "/admin/targets/{bucketName}",         User,        admin::targets::show_target),
        page_route(&post, "/admin/targets/{bucketName}/test",    Admin,       admin::targets::test_target),
        page_route(&post, "/admin/webhooks/{name}/test",         Admin,       admin::targets::test_webhook),
        page_route(&get,  "/admin/backup",                       User,        admin::backup::show_backup),
        page_route(&get,  "/admin/sources",                      User,        admin::sources::list_sources),
        page_route(&get,  "/admin/sources/{name}",               User,        admin::sources::show_source),
        page_route(&post, "/admin/sources/{name}/test",          Admin,       admin::sources::test_source),
        page_route(&get,  "/admin/query",                        User,        admin::query::show_query),
        page_route(&post, "/admin/query",                        User,        admin::query::show_answer),
        page_route(&get,  "/admin/sparql",                       User,        admin::sparql::show_query),
        page_route(&post, "/admin/sparql",                       User,        admin::sparql::show_answer),
    ];
    routes.extend(definition_routes!(Namespaces, User, "/admin/namespaces", "/admin/new-namespace"));
    routes.extend(definition_routes!(ShapesGraphs, User, "/admin/shapes", "/admin/new-shapes"));
    routes.extend(definition_routes!(Groups, Admin, "/admin/groups", "/admin/new-group"));
    routes
}

fn page_route(
    method: &Method,
    path: &'static str,
    minimum_role: MinimumRole,
    handler: impl Handler,
) -> Route {
    let mut preparers: Vec<Arc<dyn Handler>> = Vec::new();
    if *method == Method::POST {
        // Only Admins send definitions, which are long.
        let limit = match minimum_role {
            MinimumRole::Admin => FormLimit::Data,
            _ if path == "/admin/object/edit" => {
                FormLimit::Bytes(admin::object::edit::MAX_FORM_BYTES)
            }
            _ => FormLimit::Small,
        };
        preparers.push(Arc::new(FormReader { limit }));
    }
    // A part of a page has no menu.
    let is_part = FRAGMENTS.iter().any(|fragment| path.ends_with(fragment));
    if minimum_role != MinimumRole::Anyone && !is_part {
        preparers.push(Arc::new(ApprovalCounter));
    }
    router::page_route(method, path, minimum_role, handler, preparers)
}
