//! Who may use a route. Every route has its [`Least`] in the router's tables, and [`Allow`] before its
//! handler; an address without a route is asked for as a `User`, so that a stranger learns nothing.
use super::caller::{self, caller, find};
use super::origin;
use super::page;
use super::problem::{BearerError, Problem};
use super::service::origin;
use super::state::{State, blocking, state};
use crate::auth::{Caller, Credential, Role};
use crate::business_object::ingest;
use salvo::http::{Method, StatusCode};
use salvo::{Depot, FlowCtrl, Request, Response, handler};
use tracing::Instrument;

/// The least that a request must show to use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Least {
    /// Nothing.
    Anyone,
    /// The control socket; to everybody else there is nothing.
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

/// Which routes an API key that is for one Business Object alone may use: those about that one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    /// None such.
    Never,
    /// `{id}` names the Business Object.
    BusinessObject,
    /// `{id}` names an ingestion into it.
    Ingestion,
    /// `{id}` names an export of it.
    Export,
}

impl Bound {
    /// Whoever may change the definition sees through it whatever is stored: that is never bound.
    fn of(method: &Method, path: &str) -> Self {
        let reads = matches!(*method, Method::GET | Method::HEAD);
        match path.strip_prefix("/api/v1/") {
            Some("business-objects/{id}") if reads || *method == Method::POST => {
                Self::BusinessObject
            }
            Some(path) if path.starts_with("business-objects/{id}/") => Self::BusinessObject,
            Some("ingestions/{id}") if reads => Self::Ingestion,
            Some("exports/{id}" | "exports/{id}/content") if reads => Self::Export,
            _ => Self::Never,
        }
    }
}

/// Lets on to the route's handler whoever may use it. The handler finds the caller in the depot.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allow {
    least: Least,
    bound: Bound,
}

impl Allow {
    /// For this route.
    pub(super) fn new(least: Least, method: &Method, path: &str) -> Self {
        Self { least, bound: Bound::of(method, path) }
    }

    /// For an address that has no route.
    pub(super) fn elsewhere() -> Self {
        Self { least: Least::User, bound: Bound::Never }
    }

    /// The caller, who may; `None` where anyone may.
    pub(super) async fn admit(
        self,
        req: &Request,
        depot: &Depot,
    ) -> Result<Option<Caller>, Problem> {
        let state = state(depot);
        let least = match self.least {
            Least::Anyone => {
                page::check_host(depot)?;
                page::check_stranger(req, depot)?;
                return Ok(None);
            }
            Least::Local if origin(depot).control => Role::Admin,
            Least::Local => {
                let path = req.uri().path();
                return Err(Problem::not_found(format!("there is nothing at {path}")));
            }
            Least::Metrics => {
                // A browser on this machine is not a program of it.
                if origin(depot).is_local && origin::is_ours(origin(depot), &state.settings) {
                    return Ok(None);
                }
                Role::Admin
            }
            Least::User => Role::User,
            Least::Contributor => Role::Contributor,
            Least::Admin => Role::Admin,
        };
        let Some(caller) = find(req, depot).await? else { return Err(unknown()) };
        if matches!(caller.credential, Credential::Session(_)) {
            page::check_host(depot)?;
            page::check_session(req, depot, None)?;
        }
        let is_enough =
            caller.role >= least || (self.least == Least::Metrics && caller.role == Role::Metrics);
        if !is_enough {
            return Err(forbidden(
                req,
                depot,
                &caller,
                format!("it needs the role {least:?}, and this credential has {:?}", caller.role),
            ));
        }
        self.check_bound(req, depot, &state, &caller).await?;
        Ok(Some(caller))
    }

    async fn check_bound(
        self,
        req: &Request,
        depot: &Depot,
        state: &State,
        caller: &Caller,
    ) -> Result<(), Problem> {
        let Credential::ApiKey { business_object: Some(own), .. } = &caller.credential else {
            return Ok(());
        };
        let gateway = state.gateway()?.clone();
        let id = req.params().get("id").cloned().unwrap_or_default();
        let bound = self.bound;
        let asked = blocking(move || {
            Ok(match bound {
                Bound::Never => None,
                Bound::BusinessObject => {
                    gateway.catalogue.get(&id).map(|compiled| compiled.object.id.clone())
                }
                Bound::Ingestion => {
                    ingest::record(&gateway.store, &id)?.map(|record| record.business_object)
                }
                Bound::Export => gateway.exporter.get(&id)?.map(|entry| entry.business_object),
            })
        });
        if asked.await?.as_ref() == Some(own) {
            return Ok(());
        }
        let detail = "this API key is for one Business Object alone: it reads that one's definition, \
                      schema, objects, ingestions and exports, ingests into it, and pushes it";
        Err(forbidden(req, depot, caller, detail.to_owned()))
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
        match self.admit(req, depot).await {
            Ok(None) => {}
            Ok(Some(found)) => {
                depot.insert_typed(found);
                // Whatever is logged on behalf of the request says for whom.
                let span = tracing::error_span!("request", user = caller(depot).id());
                ctrl.call_next(req, depot, res).instrument(span).await;
            }
            Err(problem) => {
                problem.answer(req.uri().path(), res);
                ctrl.skip_rest();
            }
        }
    }
}

/// 401: the request shows nothing, or a session that is over.
fn unknown() -> Problem {
    Problem::new(
        StatusCode::UNAUTHORIZED,
        "sign in, or send an API key or an access token (Authorization: Bearer ...)",
    )
    .challenged(None)
}

/// 403: known, and not allowed.
fn forbidden(req: &Request, depot: &Depot, who: &Caller, detail: String) -> Problem {
    let route = req.matched_path();
    let method = req.method();
    caller::note(&state(depot), depot, Some(who), format!("{method} /{route}: {detail}"));
    let problem = Problem::new(StatusCode::FORBIDDEN, detail);
    match who.credential {
        Credential::Session(_) | Credential::Local => problem,
        _ => problem.challenged(Some(BearerError::InsufficientScope)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_key_reaches_no_definition_of_others_and_changes_none() {
        let of = |method: &Method, path| Bound::of(method, path);
        let one = "/api/v1/business-objects/{id}";
        assert_eq!(of(&Method::POST, one), Bound::BusinessObject);
        assert_eq!(of(&Method::GET, one), Bound::BusinessObject);
        assert_eq!(
            of(&Method::GET, "/api/v1/business-objects/{id}/objects/{uri}"),
            Bound::BusinessObject
        );
        assert_eq!(of(&Method::GET, "/api/v1/exports/{id}/content"), Bound::Export);
        for (method, path) in [
            (Method::PUT, one),
            (Method::DELETE, one),
            (Method::GET, "/api/v1/business-objects"),
            (Method::POST, "/api/v1/exports/{id}/park"),
            (Method::GET, "/api/v1/exports"),
            (Method::GET, "/api/v1/users/{id}"),
            (Method::GET, "/id/{namespace}/{local}"),
        ] {
            assert_eq!(of(&method, path), Bound::Never, "{method} {path}");
        }
    }
}
