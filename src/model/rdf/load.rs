//! Loads an RDF document into the store in commits of bounded size.
use super::dump;
use super::read::{DocumentReader, LoadOptions, ReadRules};
use crate::change_feed::{self, Watch};
use crate::protection;
use oxrdf::Quad;
use penstock_base::commit::{CommitCheck, GuardedStore};
use penstock_base::disk::Disk;
use penstock_base::error::{ErrorClass, GatewayError};
use std::io::Read;
use std::time::Duration;

/// The maximum number of quads in one commit.
const MAX_COMMIT_QUADS: usize = 10_000;
/// The maximum size in bytes of the terms in one commit, which a single quad may exceed.
const MAX_COMMIT_BYTES: usize = 4 << 20;
/// The rules of a load.
const LOAD_RULES: ReadRules = ReadRules {
    skolemize_option: "--skolemize IRI",
    blank_node_class: ErrorClass::Malformed,
    allows_named_graphs: true,
};

/// The destination of a load.
#[derive(Debug)]
pub struct LoadTarget<'a> {
    /// The store.
    pub store: &'a GuardedStore,
    /// The check of the client that loads the document, which runs in each commit.
    pub check: &'a dyn CommitCheck,
    /// The disk of the store, whose reserve is kept free.
    pub disk: &'a Disk,
    /// Records the changed objects for exports on change.
    pub watch: &'a Watch,
    /// The setting `service.limits.shapes.time`, for finding out which Business Objects a commit changes.
    pub check_time: Duration,
}

/// The progress of a load. It counts only quads that survive a power cut.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoadProgress {
    /// The number of quads loaded.
    pub quads: u64,
    /// The number of these quads that were not stored before.
    pub added: u64,
    /// The number of commits.
    pub commits: u64,
}

/// The reason why a load failed, and its progress until then.
#[derive(Debug)]
pub struct LoadError {
    /// The cause; an error in the document has its line and column.
    pub error: GatewayError,
    /// The progress until then.
    pub loaded: LoadProgress,
}

/// Loads a document into the store, in addition to the stored quads. It is committed in parts, in the order of the
/// document. `on_progress` is called after each commit, and an error from it stops the load. Blocking.
///
/// # Errors
/// - `ErrorClass::Malformed` for an error in the document
/// - `ErrorClass::Conflict` if it changes objects of a Business Object that refuses what violates its shapes
/// - `ErrorClass::InsufficientStorage` if the disk is full up to its reserve
pub fn load_document(
    target: &LoadTarget<'_>,
    options: &LoadOptions,
    text: impl Read,
    on_progress: &mut dyn FnMut(LoadProgress) -> Result<(), GatewayError>,
) -> Result<LoadProgress, LoadError> {
    let mut loaded = LoadProgress::default();
    match load_parts(target, options, text, on_progress, &mut loaded) {
        Ok(()) => Ok(loaded),
        Err(fault) => Err(LoadError { error: fault, loaded }),
    }
}

fn load_parts(
    target: &LoadTarget<'_>,
    options: &LoadOptions,
    text: impl Read,
    on_progress: &mut dyn FnMut(LoadProgress) -> Result<(), GatewayError>,
    loaded: &mut LoadProgress,
) -> Result<(), GatewayError> {
    let mut reader = DocumentReader::new(options, &LOAD_RULES, text)?;
    let mut gathered = Vec::new();
    let mut bytes = 0;
    while let Some(quad) = reader.next_quad()? {
        bytes += dump::estimate_bytes(&quad);
        gathered.push(quad);
        if gathered.len() >= MAX_COMMIT_QUADS || bytes >= MAX_COMMIT_BYTES {
            commit_quads(target, options, &gathered, loaded)?;
            on_progress(*loaded)?;
            gathered.clear();
            bytes = 0;
        }
    }
    commit_quads(target, options, &gathered, loaded)?;
    on_progress(*loaded)
}

fn commit_quads(
    target: &LoadTarget<'_>,
    options: &LoadOptions,
    quads: &[Quad],
    loaded: &mut LoadProgress,
) -> Result<(), GatewayError> {
    if quads.is_empty() {
        return Ok(());
    }
    target.disk.check_reserve()?;
    let (added, _) = target.store.commit(target.check, |transaction| {
        let mut added = 0;
        for quad in quads {
            added += u64::from(transaction.insert(quad.as_ref())?);
        }
        protection::check_untouched(transaction, target.watch, target.check_time, options.bypass)?;
        change_feed::record_changes(transaction, target.watch)?;
        Ok::<_, GatewayError>(added)
    })?;
    loaded.quads += quads.len() as u64;
    loaded.added += added;
    loaded.commits += 1;
    Ok(())
}
