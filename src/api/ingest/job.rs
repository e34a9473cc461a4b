//! An ingestion that a client has requested, which gets one body, or the chunks of a stream.
use penstock_auth::Authorized;
use penstock_http::problem::Problem;
use penstock_http::state::State;
use penstock_model::csv::CsvHeader;
use penstock_model::ingest::{Answer, BegunIngestion, Body};
use penstock_service::gateway::Gateway;
use penstock_service::ingestions::{self, IngestionRequest};
use std::sync::Arc;

/// A requested ingestion, without its body.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) state: Arc<State>,
    pub(super) gateway: Gateway,
    pub(super) by: Authorized,
    pub(crate) request: IngestionRequest,
}

impl Job {
    /// Ingests this body, unless the client leaves too many responses unread. Blocking, except for the sync.
    pub(crate) fn ingest_body(&self, body: Body<'_>) -> Result<BegunIngestion<Answer>, Problem> {
        let capacity = self.state.unsent_responses.check_capacity(&self.by);
        capacity.inspect_err(|problem| self.log_refusal(problem))?;
        Ok(ingestions::begin_ingestion(&self.gateway, &self.by, &self.request, body)?)
    }

    /// Checks that the columns of a stream of CSV are fields.
    pub(crate) fn check_header(&self, header: &CsvHeader) -> Result<(), Problem> {
        Ok(ingestions::check_csv_header(&self.gateway, &self.by, &self.request, header)?)
    }

    /// Logs that the request was refused before an ingestion began. An ingestion logs its own refusals.
    pub(crate) fn log_refusal(&self, problem: &Problem) {
        self.request.log_refusal(&self.by, problem.detail(), problem.status().as_u16());
    }
}
