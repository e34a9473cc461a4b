//! Exports whose files are gone or damaged, after a gateway was restored from its continuous backup on another machine.
//! They are parked, and a full export of their Business Object replaces them.
use super::ExporterParts;
use super::backup::data_dir::{has_lost_exports, record_lost_exports};
use super::blocking::run_blocking;
use super::queue::{ExportQueue, RECORDS_PER_COMMIT, RECORDS_PER_READ};
use super::record::{EXPORTS, Record};
use super::spool::Loss;
use super::state::QueueState;
use super::{ExportRequester, make};
use penstock_base::backoff::exponential_delay;
use penstock_base::error::GatewayError;
use penstock_base::shared::Shared;
use penstock_resources::export::{Export, ExportKind, ExportStatus};
use penstock_store::{Error, Transaction};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::watch;

/// The delay before lost exports are replaced again after a failure of the disk or the store. It doubles with each failure.
const FIRST_RETRY_DELAY: Duration = Duration::from_mins(1);
/// The maximum of this delay.
const MAX_RETRY_DELAY: Duration = Duration::from_hours(1);

/// Why an export without a file was parked.
const LOST_FILE: &str = "its file was lost with the machine that rendered it; a full export of the Business Object, which \
     the restored gateway creates, replaces it";
/// Why an export whose file has another length than was written was parked.
const WRONG_LENGTH: &str = "its file in the spool of the restored gateway is damaged; a full export of the Business Object, \
     which the gateway creates, replaces it";

/// Lost exports: by Business Object and target, the order of the last one.
type LostExports = BTreeMap<String, BTreeMap<String, u64>>;

/// What became of the lost exports. Of several outcomes the greatest counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    /// All are replaced.
    Replaced,
    /// Somebody has to push a Business Object, or to change it or the configuration.
    NeedsPerson,
    /// The disk or the store failed, or one is being delivered.
    Failed,
}

/// Replaces lost exports once after a restore. Returns whether to try again; what needs a person is tried again at the next
/// start.
pub(super) async fn replace_lost_exports(inner: &Shared<ExporterParts>) -> bool {
    let replaced = run_blocking(inner, |inner| {
        let data_dir = &inner.options.data_dir;
        if !has_lost_exports(data_dir) {
            return Ok(false);
        }
        let outcome = replace_all(inner)?;
        if outcome == Outcome::Replaced {
            record_lost_exports(data_dir, false)?;
        }
        Ok(outcome == Outcome::Failed)
    });
    replaced.await.unwrap_or_else(|error| {
        tracing::warn!(%error, "Exports whose files are gone could not be replaced; the gateway retries.");
        true
    })
}

/// Replaces lost exports again, at growing intervals, as long as `must_retry`, until `stop` becomes true.
pub(super) async fn retry_lost_exports(
    inner: &Shared<ExporterParts>,
    mut must_retry: bool,
    mut stop: watch::Receiver<bool>,
) {
    let mut failures = 0;
    while must_retry {
        failures += 1;
        let delay = exponential_delay(FIRST_RETRY_DELAY, failures, MAX_RETRY_DELAY);
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
        must_retry = replace_lost_exports(inner).await;
    }
}

/// Parks and replaces all lost exports. Blocking.
pub(super) fn replace_all(inner: &ExporterParts) -> Result<Outcome, GatewayError> {
    let (lost, mut outcome) = inner.queue.park_lost()?;
    for (business_object, targets) in &inner.queue.without_replaced(lost)? {
        let replaced = replace_exports(inner, business_object, targets).unwrap_or_else(|error| {
            if error.class.is_temporary() {
                tracing::warn!(
                    business_object,
                    %error,
                    "Exports of a Business Object whose files are gone could not be replaced; the gateway retries."
                );
                return Outcome::Failed;
            }
            tracing::error!(
                business_object,
                %error,
                "Exports of a Business Object whose files are gone could not be replaced; push it, or restart the \
                 gateway once it can be exported."
            );
            Outcome::NeedsPerson
        });
        outcome = outcome.max(replaced);
    }
    Ok(outcome)
}

/// Creates a full export for these targets, unless the next automatic one is full anyway: after a restore no target is
/// known to have the current sequence.
fn replace_exports(
    inner: &ExporterParts,
    business_object: &str,
    targets: &BTreeMap<String, u64>,
) -> Result<Outcome, GatewayError> {
    let Some(compiled) = inner.options.catalogue.get(business_object) else {
        return Ok(Outcome::Replaced);
    };
    let current = make::all_targets(&compiled);
    let targets: Vec<String> =
        current.into_iter().filter(|target| targets.contains_key(target)).collect();
    let definition = &compiled.object.definition;
    if targets.is_empty() || definition.export_on_change {
        return Ok(Outcome::Replaced);
    }
    if !definition.enabled {
        // Nothing is wrong: somebody has disabled it.
        tracing::info!(
            business_object,
            "A disabled Business Object has exports whose files are gone. Each start says so until it is enabled and \
             pushed."
        );
        return Ok(Outcome::NeedsPerson);
    }
    make::check_exportable(&inner.options, &compiled)?;
    let export_lock = inner.export_lock(business_object);
    let _one_at_a_time = export_lock.lock();
    make::create_full_export(
        inner,
        &compiled,
        &targets,
        ExportRequester::gateway(),
        &mut |_| Ok(()),
    )
    .map(|_| Outcome::Replaced)
}

impl ExportQueue {
    /// Parks the queued exports whose files are gone or damaged. Returns all that were parked so, now or by an attempt
    /// before, and whether one is left because it is being delivered. A record that cannot be read is left out; it is in
    /// the log.
    fn park_lost(&self) -> Result<(LostExports, Outcome), GatewayError> {
        let mut state = self.lock_state();
        let (mut lost, mut outcome) = (LostExports::new(), Outcome::Replaced);
        let orders = state.readable_undelivered_orders();
        for orders in orders.chunks(RECORDS_PER_COMMIT) {
            outcome = outcome.max(self.park_lost_of(&mut state, orders, &mut lost)?);
        }
        Ok((lost, outcome))
    }

    /// Parks those of these exports whose files are gone or damaged, in one commit. Adds them to `lost`, with those that were
    /// parked so before.
    fn park_lost_of(
        &self,
        state: &mut QueueState,
        orders: &[u64],
        lost: &mut LostExports,
    ) -> Result<Outcome, GatewayError> {
        let mut outcome = Outcome::Replaced;
        let mut parked: Vec<(u64, Record)> = Vec::new();
        for &order in orders {
            let Some(mut record) = EXPORTS.get_or_log(&self.store.read(), order)? else { continue };
            let entry = &record.entry;
            let was_parked = matches!(entry.last_error.as_deref(), Some(LOST_FILE | WRONG_LENGTH));
            let is_queued = entry.status != ExportStatus::Parked;
            let file = record.spool_file_name();
            let loss = self.spool.find_loss(&file, entry.bytes).filter(|_| is_queued);
            let target_queue = state.queues.get(&entry.target);
            if loss.is_some() && target_queue.is_some_and(|queue| queue.delivering == Some(order)) {
                outcome = Outcome::Failed;
                continue;
            }
            if was_parked || loss.is_some() {
                let targets = lost.entry(entry.business_object.clone()).or_default();
                let last = targets.entry(entry.target.clone()).or_insert(order);
                *last = order.max(*last);
            }
            if let Some(loss) = loss {
                let cause = match loss {
                    Loss::Missing => LOST_FILE,
                    Loss::Damaged => WRONG_LENGTH,
                };
                record.entry.status = ExportStatus::Parked;
                record.entry.last_error = Some(cause.to_owned());
                parked.push((order, record));
            }
        }
        if parked.is_empty() {
            return Ok(outcome);
        }
        self.store.transact::<_, Error>(|t: &mut Transaction<'_>| {
            for (order, record) in &parked {
                EXPORTS.put(t, *order, record)?;
                self.store_event(t, &record.entry)?;
            }
            Ok(())
        })?;
        for (order, record) in &parked {
            let Export { id, target, business_object_name, last_error, .. } = &record.entry;
            tracing::warn!(
                export_id = id,
                target_name = target,
                business_object = business_object_name,
                "An export was parked: {}.",
                last_error.as_deref().unwrap_or_default()
            );
            let target_queue = state.queues.entry(target.clone()).or_default();
            target_queue.remove(*order, record);
            target_queue.wake.notify_one();
            let bytes = self.spool.used_bytes(&record.spool_file_name(), record.entry.bytes);
            state.parked.insert(*order, bytes);
            self.publish_entry(&record.entry);
        }
        Ok(outcome)
    }

    /// Removes those that were replaced already, by an attempt before or by a push.
    fn without_replaced(&self, mut lost: LostExports) -> Result<LostExports, GatewayError> {
        if lost.is_empty() {
            return Ok(lost);
        }
        for row in EXPORTS.scan().pages(|| self.store.read(), RECORDS_PER_READ) {
            let Ok((order, Record { entry, .. })) = row?.entry() else { continue };
            let is_full = entry.kind == ExportKind::Full && entry.status != ExportStatus::Parked;
            if let Some(targets) = lost.get_mut(&entry.business_object).filter(|_| is_full) {
                targets.retain(|target, last| *target != entry.target || order < *last);
            }
        }
        Ok(lost)
    }
}
