//! A SPARQL store as a target.
//!
//! With `protocol=update`, every export is staged first: its triples in the graph `<graph>:<export id>`, and in
//! `<graph>:<export id>:state` which object holds which subject. Another request moves them over the graph of the Business
//! Object and writes `<graph>:state`. Once the state shows the export, the staging graphs are dropped.
//!
//! Invariants:
//! - No delivery relies on what the store was before (`decision`). What may be missing there is delivered by a full export.
//! - A request that arrives late or again changes nothing once the state has the sequence of its export or a higher one.
//! - A chunk is staged only after the chunks before it, and an export is applied only if its last chunk is staged. So no
//!   request that arrives late applies a part of an export.
//! - The request that applies an export is not sent again before the store has had time to finish it. Two at the same time
//!   could leave triples of both in a store without conflict detection (Oxigraph on disk) or without transactions
//!   (Virtuoso). If the state then names two exports, a full export follows. Other traces of such a pair are not detected.
//! - A store that answers no queries is trusted if it accepts the updates. The target then has a remark.
//!
//! With `protocol=graph-store`, one PUT replaces the graph. The gateway writes no older export over a later one, but a
//! request that arrives late does.
mod chunks;
mod client;
mod decision;
mod explain;
mod stage;
mod state;
mod update;

use super::backoff::DeliveryTimings;
use super::blocking::{run_blocking, run_io};
use super::cause::{DeliveryFailure, DeliveryOutcome, unreadable_file_failure};
use super::delivery::{Delivery, ObjectContent};
use super::graph_lines;
use super::key::ExportExt as _;
use super::queue::ExportQueue;
use super::record::{EXPORT_DELIVERED, EXPORT_SEQUENCES};
use super::transport::{self, HttpAnswer, LostRequest};
use super::uplink::Uplink;
use client::StoreClient;
use decision::{KnownExports, Step, confirm, decide};
use penstock_base::shared::Shared;
use penstock_config::{Compression, ExportFormat, SparqlProtocol, SparqlStore};
use penstock_resources::export::{Cause, Export};
use state::StoreState;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use update::ExportGraphs;

/// The maximum number of lines in a request.
const MAX_LINES: usize = 10_000;
/// The assumed minimum rate in bytes per second at which a store processes an export.
const MIN_BYTES_PER_SECOND: u64 = 32 << 10;
/// The assumed minimum rate in bytes per second at which a store applies an export whose connection is lost.
const MIN_APPLIED_BYTES_PER_SECOND: u64 = 1 << 20;
/// The maximum number of earlier attempts that make the gateway wait longer for an answer.
const MAX_ATTEMPTS_TO_WAIT_FOR: u64 = 30;
/// The remark on a target whose store answers no queries.
const UNCHECKED: &str =
    "the store does not answer queries, so the gateway cannot check what it has written";

/// A SPARQL store.
#[derive(Debug)]
pub(super) struct StoreTarget {
    client: StoreClient,
    protocol: SparqlProtocol,
    /// The bucketName.
    target: String,
    idle_timeout: Duration,
    settle_time: Duration,
    /// The maximum number of lines in a request to this store.
    max_lines: AtomicUsize,
    /// Whether the store answers queries.
    may_query: AtomicBool,
}

/// What an export needs while it is delivered.
struct UpdateDelivery<'a> {
    entry: &'a Export,
    graphs: ExportGraphs,
    uplink: &'a Arc<Uplink>,
}

impl StoreTarget {
    /// Prepares the store of this target. Sends nothing.
    pub(super) fn open(
        store: &SparqlStore,
        bucket_name: &str,
        timings: &DeliveryTimings,
    ) -> Result<Self, DeliveryFailure> {
        Ok(Self {
            client: StoreClient::open(store, timings).map_err(DeliveryFailure::of_gateway)?,
            protocol: store.protocol,
            target: bucket_name.to_owned(),
            idle_timeout: timings.idle_timeout,
            settle_time: timings.settle_time,
            max_lines: AtomicUsize::new(MAX_LINES),
            may_query: AtomicBool::new(true),
        })
    }

    /// Returns whether the endpoint answers.
    pub(super) async fn is_reachable(&self) -> bool {
        self.client.is_reachable().await
    }

    /// Tests whether the store would accept exports, without writing one. Returns a remark on what could not be checked.
    pub(super) async fn test_access(&self) -> Result<Option<&'static str>, DeliveryFailure> {
        if self.protocol == SparqlProtocol::GraphStore {
            let answer = self.client.get_test_graph().await.map_err(|lost| self.lost(&lost))?;
            return match answer.status {
                200..=299 | 404 => {
                    if answer.status != 404 {
                        self.check_answer_is_of_store(&answer)?;
                    }
                    Ok(Some("the first delivery shows whether the target may write"))
                }
                _ => Err(self.refused(&answer)),
            };
        }
        let answer = self.client.update_nothing().await.map_err(|lost| self.lost(&lost))?;
        if !(200..=299).contains(&answer.status) {
            return Err(self.refused(&answer));
        }
        self.check_answer_is_of_store(&answer)?;
        let test = ExportGraphs::of_connection_test();
        let is_readable = self.read_state(&test).await?.is_some();
        Ok((!is_readable).then_some(UNCHECKED))
    }

    /// Writes an export to the store. Returns once the store has it.
    pub(super) async fn deliver(
        &self,
        delivery: Delivery<'_>,
    ) -> Result<DeliveryOutcome, DeliveryFailure> {
        let known = read_known(delivery.entry, delivery.queue).await?;
        match self.protocol {
            SparqlProtocol::Update => self.update_graph(delivery, known).await,
            SparqlProtocol::GraphStore => self.replace_graph(delivery, known).await,
        }
    }

    /// Replaces the graph in one request, unless a later export was delivered.
    async fn replace_graph(
        &self,
        delivery: Delivery<'_>,
        known: KnownSequences,
    ) -> Result<DeliveryOutcome, DeliveryFailure> {
        let (entry, uplink) = (delivery.entry, delivery.uplink);
        let last = known.delivered;
        if last > entry.sequence {
            let why = format!(
                "Nothing was written: a later export with the whole graph was delivered before (sequence {last})"
            );
            return Ok(DeliveryOutcome::with_warning(why, false));
        }
        let content = delivery.prepare_content(Compression::None).await?;
        check_format(&content, ExportFormat::Triples).await?;
        let extra = self.extra_timeout(entry, content.length);
        let graph = entry.graph().unwrap_or_default();
        let sent = self.client.put_graph(graph, &content, uplink, extra).await;
        self.expect_success(sent)?;
        Ok(DeliveryOutcome::default())
    }

    /// Stages the export, and moves it over the graph in one request.
    async fn update_graph(
        &self,
        delivery: Delivery<'_>,
        known: KnownSequences,
    ) -> Result<DeliveryOutcome, DeliveryFailure> {
        let Delivery { entry, uploads, uplink, unclear_since, .. } = delivery;
        let known_exports = KnownExports {
            target: &self.target,
            last_assigned: known.assigned,
            is_replay: delivery.is_replay,
        };
        let (staging, is_first) = self.record_staging(entry, uploads).await?;
        let graphs = ExportGraphs::new(entry.graph().unwrap_or_default(), &staging, entry.sequence);
        let update = UpdateDelivery { entry, graphs, uplink };
        let state = self.read_settled_state(&update, unclear_since).await?;
        let remark = state.is_none().then_some(UNCHECKED);
        let state = state.unwrap_or_else(|| StoreState::assumed(known.delivered));
        let step = decide(&state, entry, known_exports);
        let outcome = match step.map_err(|cause| DeliveryFailure::new(Cause::Conflict, cause))? {
            // An earlier attempt may still run. The cleanup drops the staging graphs later.
            Step::Finish(outcome) => return Ok(DeliveryOutcome { remark, ..outcome }),
            Step::Apply(outcome) => outcome,
        };
        let content = delivery.prepare_content(Compression::None).await?;
        let begin = check_format(&content, ExportFormat::Quads).await?;
        let end = self.stage(&update, &content, begin, state.staged_bytes.max(begin)).await?;
        let text = update.graphs.apply(end, entry.kind, &entry.id, &self.target);
        self.send_update(text, uplink, self.extra_timeout(entry, content.length)).await?;
        let outcome = outcome.and(self.confirm_applied(&update).await?);
        if unclear_since.is_none()
            && let Some((record, _)) = uploads.read_upload(&entry.id)
            && self.drop_delivered_staging(&entry.id, &record).await.is_ok()
            // With an earlier attempt, the cleanup drops them again.
            && is_first
        {
            uploads.remove_record(&entry.id);
        }
        Ok(DeliveryOutcome { remark, ..outcome })
    }

    /// Checks that the state shows the export after the store has accepted it.
    async fn confirm_applied(
        &self,
        update: &UpdateDelivery<'_>,
    ) -> Result<DeliveryOutcome, DeliveryFailure> {
        // The export may be applied even if this check gets no answer.
        let unconfirmed = |failure| DeliveryFailure { outcome_unknown: true, ..failure };
        match self.read_state(&update.graphs).await.map_err(unconfirmed)? {
            Some(state) if !state.has_export(update.entry) => {
                let endpoint = self.client.endpoint();
                Err(DeliveryFailure::new(
                    Cause::Broken,
                    format!(
                        "{endpoint} accepted the export but does not show it in the state of the graph"
                    ),
                ))
            }
            Some(state) => Ok(confirm(&state)),
            None => Ok(DeliveryOutcome::default()),
        }
    }

    /// Reads the state of the graph, after an earlier attempt ended at `unclear_since` without a clear result. The store
    /// may still be applying the export then, if it is staged completely. So the export counts as not applied only once
    /// the store has had time to finish.
    async fn read_settled_state(
        &self,
        update: &UpdateDelivery<'_>,
        unclear_since: Option<Instant>,
    ) -> Result<Option<StoreState>, DeliveryFailure> {
        let entry = update.entry;
        let seconds = Duration::from_secs(entry.bytes / MIN_APPLIED_BYTES_PER_SECOND);
        let settle_time = self.settle_time + seconds;
        loop {
            let state = self.read_state(&update.graphs).await?;
            let may_be_running = state.as_ref().is_none_or(|state| {
                state.last_sequence() < entry.sequence && state.staged_bytes >= entry.bytes
            });
            let left = unclear_since.map(|at| settle_time.saturating_sub(at.elapsed()));
            match left.filter(|left| may_be_running && !left.is_zero()) {
                None => return Ok(state),
                Some(left) => tokio::time::sleep(left.min(self.settle_time / 10)).await,
            }
        }
    }

    /// Reads the state of the graph. Returns `None` if the store does not answer queries.
    async fn read_state(
        &self,
        graphs: &ExportGraphs,
    ) -> Result<Option<StoreState>, DeliveryFailure> {
        if !self.may_query.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let answer = self.client.query(&graphs.query_state()).await;
        let answer = answer.map_err(|lost| self.lost(&lost))?;
        match answer.status {
            200..=299 => match StoreState::parse(&answer.body) {
                Some(state) => Ok(Some(state)),
                None => Err(explain::explain_other_answer(&answer, self.client.query_endpoint())),
            },
            // The store may accept updates all the same. The answer to the update shows it.
            401 | 403 | 404 | 405 => {
                self.may_query.store(false, Ordering::Relaxed);
                Ok(None)
            }
            _ => Err(explain::explain_answer(&answer, self.client.query_endpoint())),
        }
    }

    async fn send_update(
        &self,
        text: String,
        uplink: &Arc<Uplink>,
        extra: Duration,
    ) -> Result<(), DeliveryFailure> {
        let sent = self.client.update(text, uplink, extra).await;
        self.expect_success(sent)
    }

    /// Converts the answer to a request that writes.
    fn expect_success(&self, sent: Result<HttpAnswer, LostRequest>) -> Result<(), DeliveryFailure> {
        match sent {
            Ok(answer) if (200..=299).contains(&answer.status) => {
                self.check_answer_is_of_store(&answer)
            }
            Ok(answer) => Err(DeliveryFailure {
                outcome_unknown: matches!(answer.status, 500 | 502 | 504),
                ..self.refused(&answer)
            }),
            Err(lost) => {
                Err(DeliveryFailure { outcome_unknown: lost.fully_sent, ..self.lost(&lost) })
            }
        }
    }

    /// Fails if a page for people answered in place of the store, such as that of a proxy or a captive portal. Virtuoso
    /// answers a PUT with an empty page.
    fn check_answer_is_of_store(&self, answer: &HttpAnswer) -> Result<(), DeliveryFailure> {
        let is_page = answer.header("content-type").is_some_and(|kind| kind.contains("text/html"));
        if is_page && !answer.body.trim().is_empty() {
            return Err(explain::explain_other_answer(answer, self.client.endpoint()));
        }
        Ok(())
    }

    /// Returns the extra time that the store has to process this many bytes. It grows with each attempt, so that a slow
    /// store can finish some day.
    fn extra_timeout(&self, entry: &Export, bytes: u64) -> Duration {
        let attempts = u32::try_from(entry.attempts.min(MAX_ATTEMPTS_TO_WAIT_FOR)).unwrap_or(0);
        Duration::from_millis(bytes.saturating_mul(1_000) / MIN_BYTES_PER_SECOND)
            + self.idle_timeout * attempts
    }

    fn lost(&self, lost: &LostRequest) -> DeliveryFailure {
        transport::explain_lost(lost, self.client.endpoint())
    }

    fn refused(&self, answer: &HttpAnswer) -> DeliveryFailure {
        explain::explain_answer(answer, self.client.endpoint())
    }
}

/// The sequences of a Business Object and a target that the gateway knows.
#[derive(Debug, Clone, Copy)]
struct KnownSequences {
    /// The last one that was assigned to an export.
    assigned: u64,
    /// The last one that was delivered to a SPARQL store.
    delivered: u64,
}

async fn read_known(
    entry: &Export,
    queue: &Shared<ExportQueue>,
) -> Result<KnownSequences, DeliveryFailure> {
    let (target, name) = (entry.target.clone(), entry.business_object_name.clone());
    let known = run_blocking(queue, move |queue| {
        let read = queue.store.read();
        Ok(KnownSequences {
            assigned: EXPORT_SEQUENCES.last_number(&read, (&target, &name))?,
            delivered: EXPORT_DELIVERED.get_or_log(&read, (&target, &name))?.unwrap_or(0),
        })
    });
    known.await.map_err(|error| DeliveryFailure::of_gateway(error.to_string()))
}

/// Checks the first line of the file. Returns its length.
async fn check_format(
    content: &ObjectContent,
    expected: ExportFormat,
) -> Result<u64, DeliveryFailure> {
    let file = Arc::clone(&content.file);
    let first = run_io(move || chunks::read_first_line(&file)).await;
    let first = first.map_err(|error| unreadable_file_failure(&error))?;
    if graph_lines::format_of_header(&first) == Some(expected) {
        return Ok(first.len() as u64);
    }
    Err(DeliveryFailure::of_gateway(
        "the export was created with another `protocol` of the target; restore it, or park the export so that the \
         next ones can be delivered",
    ))
}
