//! Opens the parts of the gateway that the layers above share, and runs use cases on them.
mod data_dir;
pub mod data_events;
mod gauges;
pub mod levels;
pub mod restored;
pub mod status;

pub use data_dir::{
    GATEWAY_ID_FILE, create_private_folder, describe_in_use, disk_error, find_gateway_id,
    store_path, write_gateway_id,
};

use crate::blocking::run_blocking;
use crate::changes::recent_checks::ApplicabilityChecks;
use crate::changes::waiting_counts::WaitingCounts;
use crate::definitions::folder_state::FolderState;
use crate::pages::HiddenPlaces;
use crate::sources::states::SourceStates;
use crate::sparql::service::SparqlService;
use crate::validations::queue::Validations;
use data_dir::{load_or_create_id, open_error, warn_if_accessible};
use penstock_auth::{Auth, Authorized, Role};
use penstock_base::clock::Clock;
use penstock_base::collections;
use penstock_base::commit::GuardedStore;
use penstock_base::disk::Disk;
use penstock_base::error::GatewayError;
use penstock_base::events::webhook_queues::{WebhookQueueOptions, WebhookSubscription};
use penstock_base::events::{self, EventBus};
use penstock_base::memory::Memory;
use penstock_base::permits::Permits;
use penstock_base::shared::Shared;
use penstock_base::table::Table;
use penstock_config::{Settings, Source};
use penstock_export::backup::{self, Backups};
use penstock_export::{self as export, Exporter, Webhooks};
use penstock_model::catalogue::{Catalogue, CatalogueSettings};
use penstock_model::ingest;
use penstock_model::namespace::moving::find_pending_move;
use penstock_model::views::Views;
use penstock_store::{Options, Progress, SEQUENCE_JUMP, SnapshotLimits, Store, Transaction};
use restored::{RestoreNote, finish_restore, refuse_unfinished_restore};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The folder in the data directory with the reports of validations.
const VALIDATIONS_FOLDER: &str = "validations";
/// The maximum number of concurrent queries and searches. They use threads that ingestion needs too.
const MAX_CONCURRENT_QUERIES: usize = 4;
/// The maximum number of downloads at once, one of each account. Each keeps a snapshot and a thread.
pub(crate) const MAX_DOWNLOADS: u64 = 2;

/// The last epoch of event identifiers, among the documents about the gateway.
const EVENT_EPOCH: Table<String, u32> = Table::new(collections::GATEWAY);
const EVENT_EPOCH_KEY: &str = "event-epoch";

/// The collections of counters. A restore advances them beyond the backup, so that no number issued after the backup
/// is issued again.
pub const COUNTER_COLLECTIONS: [&str; 2] =
    [collections::COUNTERS.name, collections::EXPORT_SEQUENCES.name];

/// The opened gateway. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Gateway(Shared<Parts>);

impl Deref for Gateway {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

/// The parts of the gateway. Those that only one module of use cases needs are not public.
#[derive(Debug)]
pub struct Parts {
    /// The configuration.
    pub settings: Arc<Settings>,
    /// The store; each commit needs a check.
    pub store: GuardedStore,
    /// The current time and elapsed time.
    pub clock: Clock,
    /// The Business Objects.
    pub catalogue: Catalogue,
    /// The saved views.
    pub views: Views,
    /// The exporter.
    pub exporter: Exporter,
    /// The continuous backup, if there is one.
    pub backups: Option<Backups>,
    /// The disk of the data directory.
    pub disk: Disk,
    /// The memory of the process.
    pub memory: Memory,
    /// Authentication and authorization.
    pub auth: Auth,
    /// The runs of `service.definitions.dir`.
    pub definition_files: FolderState,
    /// The permits for reads that may look at many objects: GraphQL queries, searches of the pages, and summaries. They wait
    /// for `service.limits.graphql.time`.
    pub query_permits: Permits<String>,
    /// The permits for downloads of objects.
    pub(crate) download_permits: Permits<String>,
    /// The permits for SPARQL, and the endpoints that its queries may ask.
    pub(crate) sparql: SparqlService,
    /// The validations of everything that Business Objects have.
    pub validations: Validations,
    /// The webhooks.
    pub webhooks: Webhooks,
    /// The connections of the sources.
    pub sources: Arc<SourceStates>,
    /// Whether changes under review still do what their differences show.
    pub(crate) applicability_checks: ApplicabilityChecks,
    /// How many changes wait for the approval of each caller.
    pub(crate) waiting_counts: WaitingCounts,
    /// Where pages of lists begin among entries that their callers may not see.
    pub(crate) hidden_places: HiddenPlaces,
    /// The permit for comparing an export with the ones before.
    pub(crate) comparison_permit: Arc<Semaphore>,
    /// The bus of events for listeners.
    pub events: EventBus,
    /// `service.gateway-id`, configured or generated.
    pub gateway_id: String,
    /// A number that grows with each start.
    pub(crate) epoch: u32,
}

impl Gateway {
    /// Opens the parts in `settings.data_dir`, and creates the directory with mode 0700 if it is missing. Blocking.
    ///
    /// # Errors
    /// - `ErrorClass::Forbidden` when the process may not use the directory
    /// - `ErrorClass::InsufficientStorage` or `ErrorClass::Internal` when the disk fails
    /// - `ErrorClass::Conflict` when another process has the store open
    /// - `ErrorClass::Damaged` when the store is damaged, has a newer format, or has a namespace whose move was
    ///   interrupted
    pub fn open(
        settings: Arc<Settings>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, GatewayError> {
        let dir = &settings.data_dir;
        create_private_folder(dir)
            .map_err(|error| disk_error(&error, "creating the data directory", dir))?;
        warn_if_accessible(dir);
        refuse_unfinished_restore(dir)?;
        // The store's lock comes first: nothing in the directory may change before this process holds it.
        let snapshots = SnapshotLimits {
            memory_bytes: settings.limits.snapshot_memory_bytes,
            disk_bytes: settings.limits.snapshot_disk_bytes,
            reserve_bytes: settings.limits.disk_reserve_bytes,
        };
        let mut is_backup_checked = false;
        if let Some(backup) = &settings.backup
            && !store_path(dir).exists()
            && let Some(id) = find_gateway_id(&settings)
        {
            backup::refuse_empty_store(backup, &settings.targets, dir, &id)?;
            is_backup_checked = true;
        }
        let retain_after = match &settings.backup {
            Some(_) => backup::retain_after(dir)?,
            None => None,
        };
        let options = Options {
            snapshots,
            value_index: settings.value_index,
            retain_after,
            ..Options::default()
        };
        let store =
            Store::open(&store_path(dir), options, progress).map_err(|error| open_error(&error))?;
        if let Some(pending) = find_pending_move(&store.read())? {
            return Err(pending.to_error());
        }
        let gateway_id = match &settings.gateway_id {
            Some(id) => id.clone(),
            None => load_or_create_id(dir, &store)?,
        };
        let catalogue = Catalogue::open(
            store.clone(),
            CatalogueSettings {
                base_url: settings.base_url.clone(),
                gateway_id: gateway_id.clone(),
                auto_create_namespaces: settings.auto_create_namespaces,
                sources: list_sources_by_business_object(&settings.sources),
            },
        )?;
        let clock = Clock::open(store.clone())?;
        let catalogue = catalogue.with_clock(clock.clone());
        let auth = Auth::open(&store, &settings, &clock)?;
        let views = Views::open(&store)?;
        let disk = Disk::new(dir.clone(), settings.limits.disk_reserve_bytes);
        let is_restored = RestoreNote::find_unrecorded(dir, &store)?.is_some();
        let epoch = next_event_epoch(&store, is_restored)?;
        let memory = Memory::new(settings.limits.memory_bytes);
        let events = EventBus::new(events::EventOptions {
            source: settings
                .base_url
                .clone()
                .unwrap_or_else(|| format!("urn:penstock:{gateway_id}")),
            epoch,
            depth: settings.events.depth,
            listeners: settings.events.listeners,
            webhooks: list_webhook_subscriptions(&settings),
        });
        events.webhooks().continue_numbers(&store)?;
        // The events that a backup has may be delivered already, and newer ones with them.
        let drop_events =
            || events.webhooks().drop_waiting_events(&store).map_err(GatewayError::from);
        finish_restore(dir, &store, &auth, settings.limits.audit, drop_events)?;
        let exporter = Exporter::open(
            store.clone(),
            export::ExportOptions {
                targets: settings.targets.clone(),
                gateway_id: gateway_id.clone(),
                data_dir: dir.clone(),
                history: settings.limits.history,
                timings: export::DeliveryTimings::default(),
                events: events.clone(),
                spool: settings.targets.spool_bytes,
                disk: disk.clone(),
                catalogue: catalogue.clone(),
            },
        )?;
        let backups = settings
            .backup
            .as_ref()
            .map(|backup| Backups::open(&exporter, backup, clock.clone(), is_backup_checked))
            .transpose()?;
        let webhooks = Webhooks::new(&exporter, &settings.webhooks);
        let sparql = SparqlService::new(&settings, &memory)?;
        let validations = Validations::open(&dir.join(VALIDATIONS_FOLDER));
        let sources = Arc::new(SourceStates::new(&settings.sources));
        raise_stamps(&clock, &store, &exporter)?;
        Ok(Self(Shared::new(Parts {
            settings,
            store: store.into(),
            clock,
            catalogue,
            views,
            exporter,
            backups,
            disk,
            memory,
            auth,
            definition_files: FolderState::default(),
            query_permits: Permits::for_accounts(MAX_CONCURRENT_QUERIES),
            download_permits: Permits::new(MAX_DOWNLOADS, 1),
            sparql,
            validations,
            webhooks,
            sources,
            applicability_checks: ApplicabilityChecks::default(),
            waiting_counts: WaitingCounts::default(),
            hidden_places: HiddenPlaces::default(),
            comparison_permit: Arc::new(Semaphore::new(1)),
            events,
            gateway_id,
            epoch,
        })))
    }

    /// Runs a use case that needs at least this role, as [`run_blocking`] does. Its commits check the role again.
    ///
    /// # Errors
    /// `ErrorClass::Forbidden` if the caller has a lower role; those of [`run_blocking`].
    pub async fn run<T: Send + 'static>(
        &self,
        by: &Authorized,
        min_role: Role,
        work: impl FnOnce(&Self, &Authorized) -> Result<T, GatewayError> + Send + 'static,
    ) -> Result<T, GatewayError> {
        by.require_role(min_role)?;
        let by = by.with_min_role(min_role);
        self.read(move |gateway| work(gateway, &by)).await
    }

    /// Runs a use case that needs no other role than its route, as [`run_blocking`] does.
    ///
    /// # Errors
    /// Those of [`run_blocking`].
    pub fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, GatewayError> + Send + 'static,
    ) -> impl Future<Output = Result<T, GatewayError>> {
        let gateway = self.clone();
        run_blocking(move || work(&gateway))
    }
}

/// Returns the names of the sources that ingest into each Business Object, by its name or id as the settings have it.
fn list_sources_by_business_object(
    sources: &BTreeMap<String, Source>,
) -> BTreeMap<String, BTreeSet<String>> {
    let mut found = BTreeMap::<String, BTreeSet<String>>::new();
    for (name, source) in sources {
        for business_object in source.business_objects() {
            found.entry(business_object.to_owned()).or_default().insert(name.clone());
        }
    }
    found
}

/// Returns which events each webhook gets, and the limits of its queue.
fn list_webhook_subscriptions(settings: &Settings) -> WebhookQueueOptions {
    let webhooks = settings.webhooks.iter().map(|(name, webhook)| WebhookSubscription {
        name: name.clone(),
        kinds: webhook.events.clone(),
    });
    WebhookQueueOptions {
        webhooks: webhooks.collect(),
        max_events: settings.limits.webhook_events,
        max_bytes: settings.limits.webhook_bytes,
    }
}

/// Ensures that new stamps are not earlier than the newest ones that an earlier process issued.
fn raise_stamps(clock: &Clock, store: &Store, exporter: &Exporter) -> Result<(), GatewayError> {
    // One that cannot be read is in the log. Then the state of the clock counts, which is stored at intervals.
    for record in ingest::list_records(store, None, 1).into_iter().flatten() {
        clock.raise_stamp(&record.at);
    }
    for entry in exporter.list(None, 1)? {
        clock.raise_stamp(&entry.created_at);
        entry.delivered_at.iter().for_each(|at| clock.raise_stamp(at));
    }
    Ok(())
}

/// Returns an epoch for event identifiers that is greater than that of any earlier start, even if the clock went back, and
/// after a restore than those since the backup.
fn next_event_epoch(store: &Store, is_restored: bool) -> Result<u32, penstock_store::Error> {
    let step = if is_restored { SEQUENCE_JUMP } else { 1 };
    let kept = EVENT_EPOCH.get_readable(&store.read(), EVENT_EPOCH_KEY)?.unwrap_or(0);
    let epoch = u32::try_from(u64::from(kept) + step).unwrap_or(u32::MAX);
    let epoch = epoch.max(seconds_since_1970());
    let put = |change: &mut Transaction<'_>| EVENT_EPOCH.put(change, EVENT_EPOCH_KEY, epoch);
    if let Err(error) = store.transact::<_, penstock_store::Error>(put) {
        tracing::warn!(%error, "Storing the epoch of events failed; without a clock the next start may repeat identifiers of events.");
    }
    Ok(epoch)
}

/// Returns the seconds since 1970; they fit until 2106.
fn seconds_since_1970() -> u32 {
    u32::try_from(jiff::Timestamp::now().as_second()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::open_gateway;
    use penstock_store::faults::{Failure, Faults};

    #[test]
    fn an_unreadable_record_of_an_ingestion_does_not_keep_the_gateway_from_opening() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&store_path(dir.path()), Options::default(), &mut |_| {}).unwrap();
        let put = |change: &mut Transaction<'_>| {
            let name = collections::INGESTIONS.name;
            change.put_document(name, &u64::MAX.to_be_bytes(), b"of the future")
        };
        store.transact::<_, penstock_store::Error>(put).unwrap();
        drop(store);
        drop(open_gateway(dir.path(), &[]));
    }

    #[test]
    fn a_full_disk_and_a_clock_that_went_back_do_not_lower_the_epoch() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        let far = 4_000_000_000;
        let put = |change: &mut Transaction<'_>| EVENT_EPOCH.put(change, EVENT_EPOCH_KEY, far);
        store.transact::<_, penstock_store::Error>(put).unwrap();
        assert_eq!(next_event_epoch(&store, false).unwrap(), far + 1);
        let faults = Faults::inject_below(dir.path());
        faults.fail_nth(1, Failure::DiskFull, true);
        assert_eq!(next_event_epoch(&store, false).unwrap(), far + 2);
        assert_eq!(next_event_epoch(&store, true).unwrap(), far + 1_000_001);
    }
}
