//! One call of an operation: the request, and how a handler reads it.
use super::body::{self, BufferedBody};
use super::caller::caller;
use super::origin::origin;
use super::path::path_parameter;
use super::problem::Problem;
use super::state::{State, gateway, state};
use super::trace::trace;
use penstock_auth::Authorized;
use penstock_base::telemetry::trace::Trace;
use penstock_service::gateway::Gateway;
use salvo::{Depot, Request};
use std::sync::Arc;

/// One call of an operation.
#[expect(missing_debug_implementations, reason = "a depot has values of any type")]
pub struct Call<'a> {
    /// The request.
    pub req: &'a mut Request,
    /// The values that earlier handlers have added to it.
    pub depot: &'a mut Depot,
}

impl Call<'_> {
    /// Returns the gateway.
    ///
    /// # Errors
    /// 503 until it is open.
    pub fn gateway(&self) -> Result<Gateway, Problem> {
        gateway(self.depot)
    }

    /// Returns the state that all requests share.
    pub fn state(&self) -> Arc<State> {
        state(self.depot)
    }

    /// Returns the caller, on routes that require a role.
    ///
    /// # Panics
    /// On routes that require no role.
    pub fn caller(&self) -> &Authorized {
        caller(self.depot)
    }

    /// Returns the trace of the request.
    pub fn trace(&self) -> Trace {
        trace(self.depot)
    }

    /// Returns a decoded parameter of the path.
    pub fn path(&self, name: &str) -> &str {
        path_parameter(self.req, name)
    }

    /// Returns the address of a path of this gateway, for `Location`.
    pub fn locate(&self, path: &str) -> String {
        format!("{}{path}", origin(self.depot).prefix)
    }

    /// Reads the whole body of a JSON request: [`body::read_json_body`].
    ///
    /// # Errors
    /// 408, 413, 415, or an error of the caller's credential.
    pub async fn read_json(&mut self) -> Result<BufferedBody, Problem> {
        body::read_json_body(self.req, self.depot).await
    }

    /// Reads the whole body of a JSON request with a few fields: [`body::read_small_json`].
    ///
    /// # Errors
    /// As [`Self::read_json`].
    pub async fn read_small_json(&mut self) -> Result<BufferedBody, Problem> {
        body::read_small_json(self.req, self.depot).await
    }
}
