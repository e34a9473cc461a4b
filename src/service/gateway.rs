//! Opens the parts of the gateway that the layers above share.
pub mod data_events;
mod gauges;
pub mod levels;
pub mod restored;
pub mod status;

use crate::changes::{ApplicabilityChecks, WaitingCounts};
use crate::definitions::FolderState;
use crate::sources::{self, SourceStates};
use crate::sparql::SparqlService;
use crate::validations::Validations;
use crate::webhooks;
use nix::unistd::geteuid;
use penstock_auth::Auth;
use penstock_base::clock::Clock;
use penstock_base::collections;
use penstock_base::commit::GuardedStore;
use penstock_base::disk::{Disk, describe_shortage};
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::events::{self, EventBus};
use penstock_base::files::{create_folders, sync_folder, write_atomically};
use penstock_base::memory::Memory;
use penstock_base::permits::Permits;
use penstock_base::shared::Shared;
use penstock_base::table::Table;
use penstock_config::Settings;
use penstock_export::{self as export, Exporter, Webhooks};
use penstock_model::catalogue::{Catalogue, CatalogueSettings};
use penstock_model::ingest;
use penstock_model::namespace::moving::find_pending_move;
use penstock_store::{DiskFull, Options, Progress, SnapshotLimits, Store, Transaction};
use restored::finish_restore;
use std::io;
use std::ops::Deref;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The store's folder in the data directory.
const STORE_FOLDER: &str = "store";
/// The folder in the data directory with the reports of validations.
const VALIDATIONS_FOLDER: &str = "validations";
/// The file in the data directory with the gateway's identifier.
const GATEWAY_ID_FILE: &str = "gateway-id";
/// The maximum number of concurrent queries and searches. They use threads that ingestion needs too.
const MAX_CONCURRENT_QUERIES: usize = 4;

/// A copy of the gateway's identifier, among the documents about the gateway.
const GATEWAY_ID: Table<String, String> = Table::new(collections::GATEWAY);
/// The last epoch of event identifiers, among the documents about the gateway.
const EVENT_EPOCH: Table<String, u32> = Table::new(collections::GATEWAY);
const EVENT_EPOCH_KEY: &str = "event-epoch";

/// The collections of counters. A restore advances them beyond the backup, so that no number issued after the backup
/// is issued again.
pub const COUNTER_COLLECTIONS: [&str; 2] =
    [collections::COUNTERS.name, collections::EXPORT_SEQUENCES.name];

/// Returns the path of the store in a data directory.
pub fn store_path(data_dir: &Path) -> PathBuf {
    data_dir.join(STORE_FOLDER)
}

/// The opened gateway. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Gateway(Shared<Parts>);

impl Deref for Gateway {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

/// The parts of the gateway.
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
    /// The exporter.
    pub exporter: Exporter,
    /// The disk of the data directory.
    pub disk: Disk,
    /// The memory of the process.
    pub memory: Memory,
    /// Authentication and authorization.
    pub auth: Auth,
    /// The runs of `service.definitions.dir`.
    pub definition_files: FolderState,
    /// The permits for reads that may look at many objects: GraphQL queries, and searches of the pages. They wait for
    /// `service.limits.graphql.time`.
    pub query_permits: Permits<String>,
    /// The permits for SPARQL, and the endpoints that its queries may ask.
    pub sparql: SparqlService,
    /// The validations of everything that Business Objects have.
    pub validations: Validations,
    /// The webhooks.
    pub webhooks: Webhooks,
    /// The connections of the sources.
    pub sources: Arc<SourceStates>,
    /// Whether changes under review still do what their differences show.
    pub applicability_checks: Arc<ApplicabilityChecks>,
    /// How many changes wait for the approval of each caller.
    pub waiting_counts: Arc<WaitingCounts>,
    /// The permit for comparing an export with the ones before.
    pub comparison_permit: Arc<Semaphore>,
    /// The bus of events for listeners.
    pub events: EventBus,
    /// `service.gateway-id`, configured or generated.
    pub gateway_id: String,
    /// A number that grows with each start.
    pub epoch: u32,
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
        // The store's lock comes first: nothing in the directory may change before this process holds it.
        let snapshots = SnapshotLimits {
            memory_bytes: settings.limits.snapshot_memory_bytes,
            disk_bytes: settings.limits.snapshot_disk_bytes,
            reserve_bytes: settings.limits.disk_reserve_bytes,
        };
        let options = Options { snapshots, ..Options::default() };
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
                sources: sources::list_by_business_object(&settings.sources),
            },
        )?;
        let clock = Clock::open(store.clone())?;
        let catalogue = catalogue.with_clock(clock.clone());
        let auth = Auth::open(&store, &settings, &clock)?;
        let disk = Disk::new(dir.clone(), settings.limits.disk_reserve_bytes);
        let epoch = next_event_epoch(&store);
        let memory = Memory::new(settings.limits.memory_bytes);
        let events = EventBus::new(events::EventOptions {
            source: settings
                .base_url
                .clone()
                .unwrap_or_else(|| format!("urn:penstock:{gateway_id}")),
            epoch,
            depth: settings.events.depth,
            listeners: settings.events.listeners,
            webhooks: webhooks::list_subscriptions(&settings),
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
            exporter,
            disk,
            memory,
            auth,
            definition_files: FolderState::default(),
            query_permits: Permits::for_accounts(MAX_CONCURRENT_QUERIES),
            sparql,
            validations,
            webhooks,
            sources,
            applicability_checks: Arc::default(),
            waiting_counts: Arc::default(),
            comparison_permit: Arc::new(Semaphore::new(1)),
            events,
            gateway_id,
            epoch,
        })))
    }
}

/// Ensures that new stamps are not earlier than the newest ones that an earlier process issued.
fn raise_stamps(clock: &Clock, store: &Store, exporter: &Exporter) -> Result<(), GatewayError> {
    for record in ingest::list_records(store, None, 1)? {
        clock.raise_stamp(&record.at);
    }
    for entry in exporter.list(None, 1)? {
        clock.raise_stamp(&entry.created_at);
        entry.delivered_at.iter().for_each(|at| clock.raise_stamp(at));
    }
    Ok(())
}

/// Creates the directory with mode 0700, and its missing parents. Does not change an existing directory.
pub fn create_private_folder(dir: &Path) -> io::Result<()> {
    let parent = match dir.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    create_folders(parent)?;
    match std::fs::DirBuilder::new().mode(0o700).create(dir) {
        // Acknowledged data must not be lost because the name of its directory was not synced.
        Ok(()) => sync_folder(parent),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Warns of a data directory that other users than its owner can access, since all data is in it.
fn warn_if_accessible(dir: &Path) {
    let Ok(found) = std::fs::metadata(dir) else { return };
    let mode = found.mode() & 0o7777;
    if mode & 0o077 != 0 {
        tracing::warn!(
            "The data directory {} has the mode {mode:o}, so other users of this machine can access all data and \
             the password hashes; run `chmod 700 {}`.",
            dir.display(),
            dir.display()
        );
    }
}

/// Returns the identifier from the data directory, and generates it at the first start. The store has a copy, so that
/// no other identifier is generated silently when the file is lost.
fn load_or_create_id(dir: &Path, store: &Store) -> Result<String, GatewayError> {
    let copy = GATEWAY_ID.get_readable(&store.read(), GATEWAY_ID_FILE)?;
    let id = read_or_create_id_file(dir, copy.as_deref())?;
    if copy.as_deref() != Some(&id) {
        let put = |change: &mut Transaction<'_>| GATEWAY_ID.put(change, GATEWAY_ID_FILE, &id);
        if let Err(error) = store.transact::<_, penstock_store::Error>(put) {
            tracing::warn!(%error, "Copying the gateway's identifier into the store failed; the next start tries again.");
        }
    }
    Ok(id)
}

/// Returns an epoch for event identifiers that is greater than that of any earlier start, even if the clock went back.
fn next_event_epoch(store: &Store) -> u32 {
    let next = |change: &mut Transaction<'_>| -> Result<u32, penstock_store::Error> {
        let kept = EVENT_EPOCH.get_readable(change, EVENT_EPOCH_KEY)?.unwrap_or(0);
        let epoch = kept.saturating_add(1).max(seconds_since_1970());
        EVENT_EPOCH.put(change, EVENT_EPOCH_KEY, epoch)?;
        Ok(epoch)
    };
    match store.transact(next) {
        Ok((epoch, _)) => epoch,
        Err(error) => {
            tracing::warn!(%error, "Storing the epoch of events failed; event identifiers are based on the clock.");
            seconds_since_1970()
        }
    }
}

/// Returns the seconds since 1970; they fit until 2106.
fn seconds_since_1970() -> u32 {
    u32::try_from(jiff::Timestamp::now().as_second()).unwrap_or_default()
}

fn read_or_create_id_file(dir: &Path, copy: Option<&str>) -> Result<String, GatewayError> {
    let path = dir.join(GATEWAY_ID_FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
        // URIs were minted with the lost identifier. Silently generating another would split the gateway's data.
        Ok(_) => Err(GatewayError::new(
            ErrorClass::Internal,
            format!(
                "{} is empty; write the gateway's identifier into it, or set service.gateway-id",
                path.display()
            ),
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let id = copy.map_or_else(|| uuid::Uuid::now_v7().to_string(), str::to_owned);
            write_atomically(&path, format!("{id}\n").as_bytes())
                .map_err(|error| disk_error(&error, "writing", &path))?;
            Ok(id)
        }
        Err(error) => Err(disk_error(&error, "reading", &path)),
    }
}

/// Converts an I/O error at the start into an error for the operator. It names the path, unlike the error of a request.
pub fn disk_error(error: &io::Error, action: &str, path: &Path) -> GatewayError {
    let kind = match error.kind() {
        io::ErrorKind::PermissionDenied => ErrorClass::Forbidden,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            ErrorClass::InsufficientStorage
        }
        _ => ErrorClass::Internal,
    };
    let remedy = match kind {
        ErrorClass::Forbidden => {
            format!(
                "; {}set service.data-dir to a directory that this user may write to",
                describe_owner(path)
            )
        }
        ErrorClass::InsufficientStorage => {
            "; free space on this disk, or set service.data-dir to a directory on another one"
                .to_owned()
        }
        _ => String::new(),
    };
    let mut described =
        GatewayError::new(kind, format!("{action} {} failed: {error}{remedy}", path.display()));
    if let Some(full) = DiskFull::from_io_error(error) {
        described.findings.push(Finding::whole(describe_shortage(full)));
    }
    described
}

/// Describes the owner of the path, or of its nearest existing parent, if this process runs as another user.
fn describe_owner(path: &Path) -> String {
    let found = path.ancestors().find_map(|path| Some((path, std::fs::metadata(path).ok()?.uid())));
    match found {
        Some((path, owner)) if owner != geteuid().as_raw() => format!(
            "{} belongs to user {owner}, and this is user {}; ",
            path.display(),
            geteuid().as_raw()
        ),
        _ => String::new(),
    }
}

fn open_error(error: &penstock_store::Error) -> GatewayError {
    use penstock_store::Error;
    match error {
        Error::Io { action, path, source } => disk_error(source, action, path),
        Error::InUse { .. } => GatewayError::new(ErrorClass::Conflict, error.to_string()),
        Error::NewerFormat { .. } | Error::UnfinishedRestore { .. } => {
            GatewayError::new(ErrorClass::Damaged, error.to_string())
        }
        Error::Corrupt(_) => GatewayError::new(
            ErrorClass::Damaged,
            format!(
                "{error}; `penstock verify` lists all damage, `penstock restore` restores a backup"
            ),
        ),
        _ => GatewayError::new(ErrorClass::Internal, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_identifier_is_generated_once_and_kept() {
        let (folder, store) = open_store();
        let first = load_or_create_id(folder.path(), &store).unwrap();
        assert_eq!(uuid::Uuid::parse_str(&first).unwrap().to_string(), first);
        assert_eq!(load_or_create_id(folder.path(), &store).unwrap(), first);
    }

    #[test]
    fn a_lost_identifier_is_read_from_the_store_and_a_changed_file_takes_precedence() {
        let (folder, store) = open_store();
        let path = folder.path().join(GATEWAY_ID_FILE);
        let first = load_or_create_id(folder.path(), &store).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(load_or_create_id(folder.path(), &store).unwrap(), first);
        assert_eq!(std::fs::read_to_string(&path).unwrap().trim(), first);
        std::fs::write(&path, "mine\n").unwrap();
        assert_eq!(load_or_create_id(folder.path(), &store).unwrap(), "mine");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(load_or_create_id(folder.path(), &store).unwrap(), "mine");
    }

    fn open_store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join(STORE_FOLDER), Options::default(), &mut |_| {});
        (folder, store.unwrap())
    }

    #[test]
    fn an_empty_identifier_is_never_replaced() {
        let (folder, store) = open_store();
        std::fs::write(folder.path().join(GATEWAY_ID_FILE), "").unwrap();
        assert_eq!(
            load_or_create_id(folder.path(), &store).unwrap_err().class,
            ErrorClass::Internal
        );
    }

    #[test]
    fn the_data_directory_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("a/b");
        create_private_folder(&dir).unwrap();
        create_private_folder(&dir).unwrap();
        assert_eq!(std::fs::metadata(&dir).unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::write(folder.path().join("file"), "").unwrap();
        assert!(create_private_folder(&folder.path().join("file")).is_err());
    }
}
