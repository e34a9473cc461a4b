//! State that all requests share.
use super::body::quota::BodyQuotas;
use super::failures::FailedAuthentications;
use super::problem::Problem;
use super::unsent::UnsentResponses;
use parking_lot::Mutex;
use penstock_auth::Authorized;
use penstock_base::memory::Memory;
use penstock_base::shared::Shared;
use penstock_config::Settings;
use penstock_graphql::GraphqlService;
use penstock_resources::gateway::Status;
use penstock_service::blocking;
use penstock_service::gateway::Gateway;
use penstock_store::Progress;
use salvo::Depot;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::{Notify, Semaphore, watch};

/// The maximum number of responses that are compressed while they are sent. Further ones are sent uncompressed.
const MAX_STREAM_ENCODERS: usize = 16;

/// State that all requests share: the gateway once it is open, and the progress of opening it.
#[derive(Debug)]
pub struct State {
    pub(super) settings: Arc<Settings>,
    /// The memory that all bodies may use at once.
    pub body_quotas: BodyQuotas,
    /// The responses to callers that are not sent yet.
    pub unsent_responses: UnsentResponses,
    /// The permits of responses that are compressed while they are sent.
    pub(super) stream_encoders: Arc<Semaphore>,
    pub(super) failed_authentications: FailedAuthentications,
    opened_parts: OnceLock<Shared<(Gateway, GraphqlService)>>,
    replayed_frames: AtomicU64,
    total_frames: AtomicU64,
    /// Why opening waits, if it does.
    wait_reason: Mutex<Option<String>>,
    opened_notify: Notify,
    stopping: watch::Sender<bool>,
}

impl State {
    /// Creates the state before the gateway is open.
    pub fn new(settings: Arc<Settings>) -> Arc<Self> {
        Arc::new(Self {
            body_quotas: BodyQuotas::new(
                settings.limits.in_flight_bytes,
                &Memory::new(settings.limits.memory_bytes),
            ),
            unsent_responses: UnsentResponses::new(settings.limits.in_flight_bytes),
            stream_encoders: Arc::new(Semaphore::new(MAX_STREAM_ENCODERS)),
            failed_authentications: FailedAuthentications::default(),
            settings,
            opened_parts: OnceLock::new(),
            replayed_frames: AtomicU64::new(0),
            total_frames: AtomicU64::new(0),
            wait_reason: Mutex::default(),
            opened_notify: Notify::new(),
            stopping: watch::Sender::new(false),
        })
    }

    /// Returns the settings.
    pub fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    /// Records how far opening the store has come.
    pub fn set_progress(&self, progress: Progress) {
        self.replayed_frames.store(progress.done, Ordering::Relaxed);
        self.total_frames.store(progress.total, Ordering::Relaxed);
    }

    /// Makes the gateway available to requests.
    pub fn set_gateway(&self, gateway: Gateway) {
        let graphql = GraphqlService::new(&gateway);
        // A gateway is opened only once; a second one would be ignored.
        let _ = self.opened_parts.set(Shared::new((gateway, graphql)));
        self.opened_notify.notify_one();
    }

    /// Waits for [`Self::set_gateway`]. Only for one task.
    pub async fn wait_until_opened(&self) {
        self.opened_notify.notified().await;
    }

    /// Sets or clears the reason why opening waits.
    pub fn set_wait_reason(&self, why: Option<String>) {
        *self.wait_reason.lock() = why;
    }

    /// Describes why the gateway is not open yet.
    pub fn describe_opening(&self) -> String {
        if let Some(why) = self.wait_reason.lock().clone() {
            return why;
        }
        let (done, total) = self.replay_progress();
        format!("the store is opening: {done} of {total} journal frames replayed")
    }

    /// Makes streams end: ingestions after their current chunk, and events at once.
    pub fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Whether the gateway is stopping.
    pub fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Resolves when the gateway is stopping.
    pub fn wait_for_stop(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut stopping = self.stopping.subscribe();
        async move {
            // An error means that the state was dropped, which ends the wait, too.
            let _ = stopping.wait_for(|stopping| *stopping).await;
        }
    }

    /// Returns the gateway once it is open.
    pub fn gateway_if_open(&self) -> Option<&Gateway> {
        self.opened_parts.get().map(|parts| &parts.0)
    }

    /// Returns the number of replayed frames and of all frames to replay.
    pub fn replay_progress(&self) -> (u64, u64) {
        (self.replayed_frames.load(Ordering::Relaxed), self.total_frames.load(Ordering::Relaxed))
    }

    /// Whether opening waits for something. It continues automatically when that is there.
    pub fn is_waiting(&self) -> bool {
        self.wait_reason.lock().is_some()
    }

    /// Returns the gateway, or 503 until it is open.
    pub fn gateway(&self) -> Result<&Gateway, Problem> {
        self.opened_parts().map(|parts| &parts.0)
    }

    /// Returns the GraphQL schema, or 503 until the gateway is open.
    pub fn graphql(&self) -> Result<&GraphqlService, Problem> {
        self.opened_parts().map(|parts| &parts.1)
    }

    /// Collects the gateway's status for this caller.
    pub async fn collect_status(&self, by: &Authorized) -> Result<Status, Problem> {
        let (parts, by) = (self.opened_parts()?.clone(), by.clone());
        run_blocking(move || {
            let (gateway, graphql) = &*parts;
            let mut status = gateway.collect_status(&by)?;
            status.warnings.extend(graphql.describe_missing_types());
            Ok(status)
        })
        .await
    }

    fn opened_parts(&self) -> Result<&Shared<(Gateway, GraphqlService)>, Problem> {
        self.opened_parts.get().ok_or_else(|| {
            let seconds = if self.is_waiting() { 10 } else { 1 };
            Problem::unavailable(seconds, self.describe_opening())
        })
    }
}

/// Returns the shared state, which the service puts into every request's depot.
///
/// # Panics
/// Outside a request of the service.
pub fn state(depot: &Depot) -> Arc<State> {
    depot.get_typed::<Arc<State>>().expect("the service injects it before any handler runs").clone()
}

/// Returns the gateway of this request.
pub fn gateway(depot: &Depot) -> Result<Gateway, Problem> {
    Ok(state(depot).gateway()?.clone())
}

/// Runs work that reads or writes the store on a thread that may block: [`blocking::run_blocking`] with problems.
pub async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    blocking::run_blocking(work).await
}

/// Runs an ingestion: [`blocking::run_ingestion`] with problems.
pub async fn run_ingestion<T: Send + 'static, F>(
    work: impl FnOnce() -> Result<F, Problem> + Send + 'static,
) -> Result<T, Problem>
where
    F: Future<Output = Result<T, Problem>> + Send + 'static,
{
    blocking::run_ingestion(work).await
}
