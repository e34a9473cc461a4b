//! What a request for the page or a part of it is about, and what the page says of what was not found.
use super::address::{Pair, find_value};
use super::saved;
use super::state::State;
use crate::admin::frame::read_cookie;
use penstock_auth::Authorized;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::time_zone::Zone;
use penstock_http::caller::caller;
use penstock_http::origin::origin;
use penstock_http::path::path_parameter;
use penstock_http::problem::Problem;
use penstock_http::state::gateway;
use penstock_model::mapping::Shape;
use penstock_model::resource::Compiled;
use penstock_service::business_objects::find_business_object;
use penstock_service::gateway::Gateway;
use penstock_service::objects::{Explored, SharedTime};
use salvo::{Depot, Request};
use std::sync::Arc;

/// The cookie with the time zone of the browser.
const ZONE_COOKIE: &str = "penstock_zone";

/// What a request for the page or a part of it is about.
pub(super) struct PartRequest {
    pub(super) gateway: Gateway,
    pub(super) by: Authorized,
    pub(super) compiled: Arc<Compiled>,
    pub(super) state: State,
    /// The time zone of the person.
    pub(super) zone: Zone,
    /// The prefix of every path.
    pub(super) prefix: String,
    /// The time for all parts of the page.
    time: SharedTime,
}

impl PartRequest {
    /// Reads a request with these parameters.
    pub(super) fn new(req: &Request, depot: &Depot, pairs: &[Pair]) -> Result<Self, Problem> {
        let gateway = gateway(depot)?;
        let by = caller(depot).clone();
        let compiled = find_business_object(&gateway, path_parameter(req, "id"))?;
        let view = saved::find_view_of(&gateway, &by, &compiled, find_value(pairs, "view"))?;
        let zone = find_zone(req, &compiled);
        let state = State::new(&compiled.mapping.root, view, pairs, &zone);
        let prefix = origin(depot).prefix.clone();
        let time = SharedTime::default();
        Ok(Self { gateway, by, compiled, state, zone, prefix, time })
    }

    pub(super) fn shape(&self) -> &Shape {
        &self.compiled.mapping.root
    }

    /// Returns the objects that pass the filter.
    pub(super) fn explore(&self) -> Result<Explored, GatewayError> {
        let filter = self.state.build_filter(self.shape())?;
        let business_object = Arc::clone(&self.compiled);
        Ok(Explored { business_object, filter, time: self.time.clone() })
    }

    /// Returns the address of the page without parameters.
    pub(super) fn path(&self) -> String {
        format!("{}/admin/objects/{}", self.prefix, self.compiled.object.id)
    }

    /// Returns the address of the page with a state.
    pub(super) fn address_of(&self, state: &State) -> String {
        format!("{}{}", self.path(), state.to_query(self.shape()))
    }

    /// Returns the address of a part with the state.
    pub(super) fn part_address(&self, part: &str) -> String {
        format!("{}/{part}{}", self.path(), self.state.to_query(self.shape()))
    }
}

/// Returns the time zone of the browser, otherwise that of the Business Object, otherwise UTC.
fn find_zone(req: &Request, compiled: &Compiled) -> Zone {
    let of_browser = read_cookie(req, ZONE_COOKIE).and_then(|name| name.parse().ok());
    let of_definition = || compiled.object.definition.timezone.as_ref()?.parse().ok();
    of_browser.or_else(of_definition).unwrap_or(Zone::UTC)
}

/// Returns what was found, or why it cannot be shown: the filters or the fields do not fit, or it would take too long.
pub(super) fn explain<T>(found: Result<T, GatewayError>) -> Result<Result<T, String>, Problem> {
    match found {
        Ok(found) => Ok(Ok(found)),
        Err(error)
            if matches!(
                error.class,
                ErrorClass::Invalid | ErrorClass::Malformed | ErrorClass::TooLarge
            ) =>
        {
            Ok(Err(error.detail))
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns what the page can do without: nothing while too many searches and queries are running.
pub(super) fn skip_if_busy<T: Default>(found: Result<T, GatewayError>) -> Result<T, GatewayError> {
    match found {
        Err(error) if matches!(error.class, ErrorClass::Unavailable(_)) => Ok(T::default()),
        found => found,
    }
}
