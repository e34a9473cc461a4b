//! Authorizes requests. Every route has its [`MinimumRole`] in the router's tables, and [`Allow`] runs before its
//! handler. An address without a route requires `User`, so that unauthenticated clients learn nothing.
use super::accept::accepts_html;
use super::caller::{self, caller, caller_if_known, how_to_get_credentials};
use super::encoding::decode::decode_body;
use super::origin::{self, origin};
use super::path::path_parameter;
use super::problem::{BearerError, Problem};
use super::return_path::sign_in_location;
use super::sender_page;
use super::state::{State, run_blocking, state};
use penstock_auth::{Authorized, Caller, Credential, Role};
use penstock_base::error::ErrorClass;
use penstock_model::ingest;
use penstock_service::blocking::run_for_account;
use percent_encoding::percent_decode_str;
use salvo::http::header::{HeaderValue, LOCATION};
use salvo::http::uri::PathAndQuery;
use salvo::http::{Method, StatusCode};
use salvo::{Depot, FlowCtrl, Request, Response, handler};

/// The minimum that a request must present to use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MinimumRole {
    /// No credential.
    Anyone,
    /// The control socket. Other clients get 404.
    Local,
    /// Admin, a key of the role Metrics, or a program on this machine.
    Metrics,
    /// The role User.
    User,
    /// The role Contributor.
    Contributor,
    /// The role Admin.
    Admin,
}

impl From<Role> for MinimumRole {
    fn from(role: Role) -> Self {
        match role {
            Role::Metrics => Self::Metrics,
            Role::User => Self::User,
            Role::Contributor => Self::Contributor,
            Role::Admin => Self::Admin,
        }
    }
}

/// The routes that an API key for certain Business Objects may use: those about these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BoundKeyAccess {
    /// No route of this kind.
    Never,
    /// `{id}` names the Business Object.
    BusinessObject,
    /// `{id}` names an ingestion into it.
    Ingestion,
    /// `{id}` names an export of it.
    Export,
    /// `{id}` names a validation of it.
    Validation,
    /// The use case shows such a key only its own: GraphQL and the lists what belongs to its Business Objects, the
    /// routes of dead letters and changes what it sent.
    Limited,
}

impl BoundKeyAccess {
    /// Returns the access of a bound key to a route. Changing the definition is never allowed, because a
    /// mapping sees everything that is stored.
    fn for_route(method: &Method, path: &str) -> Self {
        let reads = matches!(*method, Method::GET | Method::HEAD);
        if matches!(path, "/graphql" | "/graphql/schema.graphql") {
            return Self::Limited;
        }
        match path.strip_prefix("/api/v1/") {
            Some("business-objects/{id}") if reads || *method == Method::POST => {
                Self::BusinessObject
            }
            Some(path) if path.starts_with("business-objects/{id}/") => Self::BusinessObject,
            Some(path) if path.starts_with("ingestions/{id}/rejected") => Self::Limited,
            Some("changes" | "changes/{id}" | "ingestions" | "exports" | "validations")
                if reads =>
            {
                Self::Limited
            }
            Some("ingestions/{id}") if reads => Self::Ingestion,
            Some("exports/{id}" | "exports/{id}/content") if reads => Self::Export,
            Some("validations/{id}") => Self::Validation,
            _ => Self::Never,
        }
    }
}

/// The ends of the paths of GraphQL and SPARQL, the only routes of the API whose POST only reads the store.
pub(super) const READ_ONLY_POST_SUFFIXES: [&str; 2] = ["graphql", "sparql"];

/// Whether a session may use the route only with its CSRF token, wherever the request comes from: changes with SPARQL,
/// which can reach everything that is stored.
fn requires_token(method: &Method, path: &str) -> bool {
    path.starts_with("/sparql/") && has_side_effects(method, path)
}

/// Whether requests of a route change or trigger something.
pub(super) fn has_side_effects(method: &Method, path: &str) -> bool {
    // The specification requires that a GET of `push` exports.
    !matches!(*method, Method::GET | Method::HEAD) || path.ends_with("/push")
}

/// Passes authorized requests on to the route's handler, and puts the caller into the depot for it.
#[derive(Debug, Clone, Copy)]
pub struct Allow {
    minimum_role: MinimumRole,
    /// Whether requests of the route change or trigger something.
    has_side_effects: bool,
    /// Whether a session needs its CSRF token.
    requires_token: bool,
    bound_key_access: BoundKeyAccess,
    /// Whether it accepts host names that are not the gateway's. Probes of load balancers and container
    /// platforms send their own.
    accepts_any_host: bool,
}

impl Allow {
    /// Creates the check of an API route.
    pub(super) fn new(minimum_role: MinimumRole, method: &Method, path: &str) -> Self {
        let accepts_any_host = path.starts_with("/health/");
        Self {
            minimum_role,
            has_side_effects: has_side_effects(method, path),
            requires_token: requires_token(method, path),
            bound_key_access: BoundKeyAccess::for_route(method, path),
            accepts_any_host,
        }
    }

    /// Creates the check of a page's route. It does not check which page sent a form, because the session's
    /// token is in a field of the body: `admin::form::FormReader` does.
    pub(super) fn for_page(minimum_role: MinimumRole) -> Self {
        Self {
            minimum_role,
            has_side_effects: false,
            requires_token: false,
            bound_key_access: BoundKeyAccess::Never,
            accepts_any_host: false,
        }
    }

    /// Creates the check of an address without a route.
    pub(super) fn for_unknown_path() -> Self {
        Self::for_page(MinimumRole::User)
    }

    /// Returns the authorized caller, or `None` if the route requires no credential. Nothing is read from the
    /// body, and no name is looked up, before the credential is checked.
    pub(super) async fn authorize_request(
        self,
        req: &Request,
        depot: &Depot,
    ) -> Result<Option<Authorized>, AccessError> {
        let caller = self.authorize_caller(req, depot).await?;
        check_percent_encoding(req.uri().path())?;
        check_percent_encoding(req.uri().query().unwrap_or_default())?;
        Ok(caller)
    }

    async fn authorize_caller(
        self,
        req: &Request,
        depot: &Depot,
    ) -> Result<Option<Authorized>, AccessError> {
        let state = state(depot);
        check_origin(depot)?;
        let Some(required_role) = self.required_role(req, depot, &state)? else { return Ok(None) };
        let Some(caller) = caller::authenticate(req, depot).await? else {
            return Err(AccessError::Unauthenticated);
        };
        if matches!(caller.credential, Credential::Session(_)) {
            sender_page::check_host(depot)?;
            if self.requires_token {
                sender_page::check_session_token(req, depot)?;
            } else if self.has_side_effects {
                sender_page::check_session_sender(req, depot, None)?;
            }
        }
        let required_role = match (self.minimum_role, caller.role) {
            (MinimumRole::Metrics, Role::Metrics) => Role::Metrics,
            _ => required_role,
        };
        if caller.credential == Credential::Local {
            return Ok(Some(Authorized::local()));
        }
        let caller = match state.gateway()?.auth.authorize(caller, required_role) {
            Ok(authorized) => authorized,
            Err(caller) => {
                let detail = format!(
                    "this request needs the role {required_role}, and the credential has {}; {}",
                    caller.role,
                    how_to_get_role(depot, required_role)
                );
                return Err(record_forbidden(req, depot, &caller, detail).into());
            }
        };
        let checked = self.check_bound_key(req, depot, &state, &caller);
        run_for_account(caller.id().to_owned(), checked).await?;
        Ok(Some(caller))
    }

    /// Returns the role that the route requires, or `None` if it requires no credential.
    fn required_role(
        self,
        req: &Request,
        depot: &Depot,
        state: &State,
    ) -> Result<Option<Role>, Problem> {
        match self.minimum_role {
            MinimumRole::Anyone => {
                if !self.accepts_any_host {
                    sender_page::check_host(depot)?;
                }
                if self.has_side_effects {
                    sender_page::check_unauthenticated(req, depot)?;
                }
                Ok(None)
            }
            MinimumRole::Local if origin(depot).control => Ok(Some(Role::Admin)),
            MinimumRole::Local => {
                let path = req.uri().path();
                Err(Problem::not_found(format!("there is nothing at {path}")))
            }
            MinimumRole::Metrics => {
                // A browser on this machine is not a local program.
                let is_local =
                    origin(depot).is_local && origin::is_own_host(origin(depot), &state.settings);
                Ok((!is_local).then_some(Role::Admin))
            }
            MinimumRole::User => Ok(Some(Role::User)),
            MinimumRole::Contributor => Ok(Some(Role::Contributor)),
            MinimumRole::Admin => Ok(Some(Role::Admin)),
        }
    }

    async fn check_bound_key(
        self,
        req: &Request,
        depot: &Depot,
        state: &State,
        caller: &Caller,
    ) -> Result<(), Problem> {
        let Some(business_objects) = caller.business_objects() else { return Ok(()) };
        let gateway = state.gateway()?.clone();
        let id = path_parameter(req, "id").to_owned();
        let requested = match self.bound_key_access {
            BoundKeyAccess::Limited => return Ok(()),
            BoundKeyAccess::Never => None,
            BoundKeyAccess::BusinessObject => {
                gateway.catalogue.get(&id).map(|compiled| compiled.object.id.clone())
            }
            BoundKeyAccess::Ingestion => {
                run_blocking(move || Ok(ingest::read_record(&gateway.store, &id)?))
                    .await?
                    .and_then(|record| record.business_object)
            }
            BoundKeyAccess::Export => run_blocking(move || Ok(gateway.exporter.get(&id)?))
                .await?
                .map(|entry| entry.business_object),
            BoundKeyAccess::Validation => gateway.validations.find_business_object(&id),
        };
        if requested.is_some_and(|id| caller.may_use(&id)) {
            return Ok(());
        }
        let detail = if business_objects.len() == 1 {
            "this API key is for one Business Object: it can read the definition, \
             schema, shapes, objects, ingestions, exports and validations of that one, ingest into it, push it, validate it, and query it with GraphQL"
                .to_owned()
        } else {
            format!(
                "this API key is for {} Business Objects: it can read the definitions, schemas, shapes, objects, ingestions, \
                 exports and validations of these, ingest into them, push them, validate them, and query them with GraphQL",
                business_objects.len()
            )
        };
        Err(record_forbidden(req, depot, caller, detail))
    }
}

#[handler]
impl Allow {
    async fn handle(
        &self,
        req: &mut Request,
        depot: &mut Depot,
        res: &mut Response,
        ctrl: &mut FlowCtrl,
    ) {
        match self.authorize_request(req, depot).await {
            Ok(None) => {}
            Ok(Some(found)) => {
                depot.insert_typed(found);
                decode_body(req, &state(depot));
                // Log lines on behalf of the request carry the user.
                let account = caller(depot).id().to_owned();
                tracing::Span::current().record("user_id", account.as_str());
                run_for_account(account, ctrl.call_next(req, depot, res)).await;
            }
            Err(refused) => {
                refused.write_response(req, depot, res);
                ctrl.skip_rest();
            }
        }
    }
}

/// Why a request is not authorized.
#[derive(Debug)]
pub(super) enum AccessError {
    /// The request has no credential, or a session that is over.
    Unauthenticated,
    /// Any other reason.
    Problem(Problem),
}

impl From<Problem> for AccessError {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl AccessError {
    /// Writes 401 or the problem. Browsers that ask for a page are redirected to the sign-in.
    pub(super) fn write_response(self, req: &Request, depot: &Depot, res: &mut Response) {
        match self {
            Self::Problem(problem) => problem.write_response(req, depot, res),
            Self::Unauthenticated
                if *req.method() == Method::GET && accepts_html(req.headers()) =>
            {
                let origin = origin(depot);
                let asked = req.uri().path_and_query().map_or("/", PathAndQuery::as_str);
                // A proxy may pass the prefix on or strip it.
                let own = asked.strip_prefix(&origin.prefix).filter(|rest| rest.starts_with('/'));
                let location = sign_in_location(origin, own.unwrap_or(asked));
                if let Ok(location) = HeaderValue::try_from(location) {
                    res.headers_mut().insert(LOCATION, location);
                }
                res.status_code(StatusCode::SEE_OTHER);
            }
            Self::Unauthenticated => unauthenticated_problem(depot).write_response(req, depot, res),
        }
    }
}

/// Refuses a request whose proxies or `Host` say where it came from in a way that two programs could read differently.
fn check_origin(depot: &Depot) -> Result<(), Problem> {
    if origin(depot).is_contradictory() {
        return Err(Problem::malformed(
            "Forwarded and X-Forwarded-For, -Proto or -Host disagree about where this request \
             came from, or one of them says less; configure the proxy to write one of them and to remove the other",
        ));
    }
    origin(depot).host_error().map_or(Ok(()), |why| Err(Problem::malformed(why)))
}

/// Checks that every percent sign begins an escape and that the escapes are UTF-8. Otherwise two programs
/// could read one address differently.
fn check_percent_encoding(part: &str) -> Result<(), Problem> {
    let escapes_are_whole = part.split('%').skip(1).all(|escape| {
        let mut digits = escape.bytes();
        (0..2).all(|_| digits.next().is_some_and(|digit| digit.is_ascii_hexdigit()))
    });
    if escapes_are_whole && percent_decode_str(part).decode_utf8().is_ok() {
        return Ok(());
    }
    Err(Problem::malformed(format!("{part:?} is not percent-encoded UTF-8 (RFC 3986, 2.1)")))
}

/// 401: the request has no credential, or a session that is over.
fn unauthenticated_problem(depot: &Depot) -> Problem {
    Problem::new(
        StatusCode::UNAUTHORIZED,
        format!(
            "sign in, or send an API key or an access token (Authorization: Bearer ...); {}",
            how_to_get_credentials(depot)
        ),
    )
    .with_challenge(None)
}

/// Describes where a credential with this role comes from.
fn how_to_get_role(depot: &Depot, required_role: Role) -> String {
    format!(
        "a user with that role can create such an API key on the page {}/admin/keys, and \
         `penstock api-key create --role {required_role}` creates one on the gateway's machine",
        origin(depot).prefix
    )
}

/// Checks again that the caller may use the route, now that the body has arrived, which may have taken
/// minutes. Updates the caller in the depot to its current role. Does nothing on public routes.
///
/// # Errors
/// 401 when the credential has ended; 403 when its role no longer suffices.
pub(super) fn check_after_body(req: &Request, depot: &mut Depot) -> Result<(), Problem> {
    let Some(caller) = caller_if_known(depot) else { return Ok(()) };
    let renewed = caller.with_current_role().map_err(|error| {
        if error.class == ErrorClass::Forbidden {
            return record_forbidden(req, depot, caller, error.detail);
        }
        let detail = format!("{} /{}: {}", req.method(), req.matched_path(), error.detail);
        caller::record_refusal(&state(depot), depot, Some(caller), detail);
        Problem::from(error)
    })?;
    depot.insert_typed(renewed);
    Ok(())
}

/// 403: the caller is authenticated and may not do this. Records the refusal in the audit trail.
fn record_forbidden(req: &Request, depot: &Depot, who: &Caller, detail: String) -> Problem {
    let route = req.matched_path();
    let method = req.method();
    caller::record_refusal(&state(depot), depot, Some(who), format!("{method} /{route}: {detail}"));
    let problem = Problem::new(StatusCode::FORBIDDEN, detail);
    match who.credential {
        Credential::Session(_) | Credential::Local => problem,
        _ => problem.with_challenge(Some(BearerError::InsufficientScope)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_key_reaches_no_definition_of_others_and_changes_none() {
        let of = |method: &Method, path| BoundKeyAccess::for_route(method, path);
        let one = "/api/v1/business-objects/{id}";
        assert_eq!(of(&Method::POST, one), BoundKeyAccess::BusinessObject);
        assert_eq!(of(&Method::GET, one), BoundKeyAccess::BusinessObject);
        assert_eq!(
            of(&Method::GET, "/api/v1/business-objects/{id}/objects/{uri}"),
            BoundKeyAccess::BusinessObject
        );
        assert_eq!(of(&Method::GET, "/api/v1/exports/{id}/content"), BoundKeyAccess::Export);
        for (method, path) in [
            (Method::POST, "/graphql"),
            (Method::GET, "/api/v1/exports"),
            (Method::GET, "/api/v1/ingestions"),
            (Method::GET, "/api/v1/validations"),
        ] {
            assert_eq!(of(&method, path), BoundKeyAccess::Limited, "{method} {path}");
        }
        for (method, path) in [
            (Method::PUT, one),
            (Method::DELETE, one),
            (Method::GET, "/api/v1/business-objects"),
            (Method::POST, "/api/v1/exports/{id}/park"),
            (Method::GET, "/api/v1/users/{id}"),
            (Method::GET, "/id/{namespace}/{local}"),
        ] {
            assert_eq!(of(&method, path), BoundKeyAccess::Never, "{method} {path}");
        }
    }

    #[test]
    fn escapes_are_whole_and_utf8() {
        for good in ["/a%2Fb", "/%C3%BC", "", "/a=1&b=%20"] {
            assert!(check_percent_encoding(good).is_ok(), "{good}");
        }
        for bad in ["/%", "/%2", "/%zz", "/%FF"] {
            assert!(check_percent_encoding(bad).is_err(), "{bad}");
        }
    }
}
