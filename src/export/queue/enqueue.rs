//! Adding entries to the queue.
use super::ExportQueue;
use crate::file::{FinishedFile, MetadataSource};
use crate::key::{ExportExt as _, FileSettings, KeyValues};
use crate::record::{
    EXPORT_IDS, EXPORT_OBJECT_COUNTS, EXPORT_SEQUENCES, EXPORTS, Record, file_name,
};
use crate::state::QueueState;
use penstock_base::clock::Stamp;
use penstock_base::commit::{CommitCheck, NoClient, commit};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_config::ExportFormat;
use penstock_resources::export::{Export, ExportKind, ExportStatus};
use penstock_store::{Error, Format, Transaction};
use std::time::Duration;

/// The requester of an export.
#[derive(Debug, Clone, Copy)]
pub struct ExportRequester<'a> {
    /// The authorization check of the requester. It runs inside the commit.
    pub check: &'a dyn CommitCheck,
    /// The account of the requester.
    pub account: Option<&'a str>,
    /// The `traceparent` header of the request (W3C Trace Context).
    pub traceparent: Option<&'a str>,
}

impl ExportRequester<'_> {
    /// Returns the gateway itself as the requester.
    pub fn gateway() -> Self {
        Self { check: &NoClient, account: None, traceparent: None }
    }
}

/// Rendered files to queue.
#[derive(Debug)]
pub(crate) struct NewExports<'a> {
    pub(crate) business_object: &'a str,
    /// What the metadata of the files has in common, with the name of the Business Object.
    pub(crate) source: &'a MetadataSource<'a>,
    /// In sequence order.
    pub(crate) exports: &'a [NewExport],
    pub(crate) targets: &'a [QueueTarget],
    /// The sequence of the only commit that the files show. `None` if they may mix several.
    pub(crate) commit: Option<u64>,
    /// The generations of changes that the files contain ([`Record::covers`]).
    pub(crate) covers: Option<(u64, u64)>,
    pub(crate) by: ExportRequester<'a>,
    /// When the files were created.
    pub(crate) created_at: Stamp,
}

/// A target to queue files for.
#[derive(Debug)]
pub(crate) struct QueueTarget {
    pub(crate) name: String,
    /// How it names and writes its files.
    pub(crate) files: FileSettings,
    /// The configured target as text ([`Record::made_for`]).
    pub(crate) place: Option<String>,
}

/// A hook that adds further writes to the commit of new entries.
pub(crate) type EntriesCommitHook<'a> =
    &'a mut dyn FnMut(&mut Transaction<'_>, &[Export]) -> Result<(), Error>;

/// The rendered objects of an export to queue.
#[derive(Debug)]
pub(crate) struct NewExport {
    pub(crate) kind: ExportKind,
    /// The number of objects.
    pub(crate) objects: u64,
    pub(crate) warnings: Vec<String>,
    /// The files, one for each target.
    pub(crate) files: Vec<TargetFile>,
}

/// A file of one target.
#[derive(Debug)]
pub(crate) struct TargetFile {
    /// The id of its entry.
    pub(crate) id: String,
    pub(crate) finished: FinishedFile,
    /// The sequence in the file, if its metadata is extended.
    pub(crate) sequence: Option<u64>,
}

impl ExportQueue {
    /// Queues files for their targets. One commit writes the entries, the sequences, the object counts of the
    /// consumers, and what `hook` adds. The files must be synced already.
    pub(crate) fn enqueue_files(
        &self,
        new: &NewExports<'_>,
        hook: EntriesCommitHook<'_>,
    ) -> Result<Vec<Export>, EnqueueError> {
        let mut state = self.lock_state();
        let first = state.next_order;
        let (records, _) = commit::<_, EnqueueError>(&self.store, new.by.check, |t| {
            let mut records = Vec::with_capacity(new.exports.len() * new.targets.len());
            for export in new.exports {
                for (target_file, to) in export.files.iter().zip(new.targets) {
                    let order = first + records.len() as u64;
                    let record = new.create_record(t, export, target_file, to, order)?;
                    if record.metadata.is_some() || record.entry.graph().is_some() {
                        // An older version would deliver lines without their metadata, and quads into a bucket.
                        t.require_format(Format::V3);
                    }
                    EXPORT_IDS.put(t, &target_file.id, order)?;
                    EXPORTS.put(t, order, &record)?;
                    records.push((order, record));
                    let key = (to.name.as_str(), new.source.object_type);
                    let count = match export.kind {
                        ExportKind::Full => export.objects,
                        ExportKind::Incremental => {
                            EXPORT_OBJECT_COUNTS.get_or_log(t, key)?.unwrap_or(0) + export.objects
                        }
                        ExportKind::Deleted => continue,
                    };
                    EXPORT_OBJECT_COUNTS.put(t, key, count)?;
                }
            }
            for (_, record) in &records {
                self.store_event(t, &record.entry)?;
            }
            let entries: Vec<Export> =
                records.iter().map(|(_, record): &(u64, Record)| record.entry.clone()).collect();
            hook(t, &entries)?;
            Ok(records)
        })?;
        for (order, record) in &records {
            state.add_record(*order, record);
            self.publish_entry(&record.entry);
        }
        self.remove_unconfirmed(&mut state);
        // This does not end the backoff of a blocked target, because only the head of its queue is delivered.
        self.entry_added.notify_one();
        Ok(records.into_iter().map(|(_, record)| record.entry).collect())
    }

    /// Removes the files of exports whose commit failed before. A commit has succeeded since, so the store was reopened, which
    /// cut the failed one off.
    fn remove_unconfirmed(&self, state: &mut QueueState) {
        for id in std::mem::take(&mut state.unconfirmed) {
            if matches!(EXPORT_IDS.contains(&self.store.read(), &id), Ok(false)) {
                self.spool.remove(&file_name(&id));
            }
        }
    }

    /// Returns whether the consumers of one of these targets may have objects of this Business Object.
    pub(crate) fn may_have_objects(&self, targets: &[String], name: &str) -> Result<bool, Error> {
        let read = self.store.read();
        for target in targets {
            let key = (target.as_str(), name);
            let count = match EXPORT_OBJECT_COUNTS.get_or_log(&read, key)? {
                Some(count) => count,
                // A restore has forgotten the number. It is 0 if nothing can have been exported.
                None => EXPORT_SEQUENCES.last_number(&read, key)?,
            };
            if count > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The reason why exports were not queued.
#[derive(Debug)]
pub(crate) enum EnqueueError {
    /// The requester is no longer authorized; nothing was committed.
    Refused(GatewayError),
    /// The store failed.
    Store(Error),
}

impl From<GatewayError> for EnqueueError {
    fn from(error: GatewayError) -> Self {
        Self::Refused(error)
    }
}

impl From<Error> for EnqueueError {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl From<EnqueueError> for GatewayError {
    fn from(error: EnqueueError) -> Self {
        match error {
            EnqueueError::Refused(error) => error,
            EnqueueError::Store(error) => error.into(),
        }
    }
}

impl NewExports<'_> {
    /// Creates the record of one file for one target, and assigns it the next sequence.
    fn create_record(
        &self,
        t: &mut Transaction<'_>,
        export: &NewExport,
        TargetFile { id, finished, sequence: sequence_in_file }: &TargetFile,
        to: &QueueTarget,
        order: u64,
    ) -> Result<Record, EnqueueError> {
        let source = self.source;
        let name = source.object_type;
        let sequence = EXPORT_SEQUENCES.last_number(t, (&to.name, name))? + 1;
        if sequence_in_file.is_some_and(|in_file| in_file != sequence) {
            return Err(EnqueueError::Refused(GatewayError::new(
                ErrorClass::Unavailable(Duration::from_secs(1)),
                format!("another export of `{name}` was queued at the same time; try again"),
            )));
        }
        EXPORT_SEQUENCES.put(t, (&to.name, name), sequence)?;
        let FinishedFile { objects, bytes, ref data_checksum, ref sha256 } = *finished;
        let key = KeyValues {
            prefix: &to.files.prefix,
            name,
            kind: export.kind,
            date: &source.export_date,
            sequence,
            gateway: source.gateway_id,
        };
        let key = to.files.build_key(&key);
        let metadata = (to.files.format == ExportFormat::JsonLines).then(|| {
            source.metadata_of(id, export.kind, sequence, objects, data_checksum).to_document()
        });
        Ok(Record {
            entry: Export {
                id: id.clone(),
                business_object: self.business_object.to_owned(),
                business_object_name: name.to_owned(),
                target: to.name.clone(),
                sequence,
                kind: export.kind,
                status: ExportStatus::Queued,
                object_count: objects,
                bytes,
                data_checksum: data_checksum.clone(),
                sha256: sha256.clone(),
                key,
                created_at: self.created_at.to_rfc3339(),
                clock: self.created_at.doubt,
                commit: self.commit.filter(|_| export.kind == ExportKind::Full),
                delivered_at: None,
                attempts: 0,
                last_error: None,
                pushed_by: self.by.account.map(str::to_owned),
                traceparent: self.by.traceparent.map(str::to_owned),
                warnings: export.warnings.clone(),
            },
            place: order,
            kept: true,
            covers: self.covers,
            made_for: to.place.clone(),
            metadata,
            schema_version: Some(source.schema_version),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::HistoryLimits;
    use crate::spool::Spool;
    use penstock_base::events::EventBus;
    use penstock_store::Store;

    #[test]
    fn a_file_with_a_sequence_that_another_export_took_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let options = penstock_store::Options::default();
        let store = Store::open(&dir.path().join("store"), options, &mut |_| {}).unwrap();
        let spool = Spool::open(dir.path().join("spool")).unwrap();
        let limits = HistoryLimits { records: 9, bytes: 1 << 20 };
        let queue = ExportQueue::open(store, spool, limits, EventBus::default(), false).unwrap();
        let source = MetadataSource {
            export_date: "20260301T120000Z".to_owned(),
            object_type: "Pump",
            gateway_id: "gateway-1",
            schema_version: 1,
            commit: 1,
            is_extended: true,
        };
        let files = FileSettings::default();
        let targets = [QueueTarget { name: "north".to_owned(), files, place: None }];
        let enqueue = |id: &str, sequence| {
            let (data_checksum, sha256) = (String::new(), String::new());
            let finished = FinishedFile { objects: 1, bytes: 10, data_checksum, sha256 };
            let file = TargetFile { id: id.to_owned(), finished, sequence: Some(sequence) };
            let (kind, warnings) = (ExportKind::Full, Vec::new());
            let new = NewExports {
                business_object: "id",
                source: &source,
                exports: &[NewExport { kind, objects: 1, warnings, files: vec![file] }],
                targets: &targets,
                commit: None,
                covers: None,
                by: ExportRequester::gateway(),
                created_at: Stamp::of_system(),
            };
            queue.enqueue_files(&new, &mut |_, _| Ok(()))
        };
        assert_eq!(enqueue("first", 1).unwrap()[0].sequence, 1);
        let Err(EnqueueError::Refused(refused)) = enqueue("late", 1) else {
            panic!("the sequence was used twice");
        };
        assert!(matches!(refused.class, ErrorClass::Unavailable(_)), "{refused}");
        assert_eq!(queue.list(None, 9).unwrap().len(), 1);
        assert_eq!(enqueue("again", 2).unwrap()[0].sequence, 2);
    }
}
