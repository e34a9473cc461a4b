//! Renders an export into files of the spool, syncs them, and queues them.
use super::file::{DataFile, FinishedFile, MetadataSource};
use super::queue::{self, EnqueueError, NewExport, NewExports, QueueTarget, TargetFile};
use super::record::{self, EXPORT_SEQUENCES};
use super::render::{self, ChangedFiles, RenderOutput, Rendered, RenderedState, Rendering};
use super::spool::{self, Spool};
use super::{ExportRequester, ExporterParts, target};
use penstock_base::clock::Stamp;
use penstock_base::commit::CommitCheck;
use penstock_base::error::GatewayError;
use penstock_base::telemetry::metrics;
use penstock_base::{run_in_background, time};
use penstock_config::ExportFormat;
use penstock_model::catalogue::Catalogue;
use penstock_model::change_feed::ExportCursor;
use penstock_model::resource::{BusinessObject, Compiled};
use penstock_resources::export::{Export, ExportKind};
use penstock_store::{Error, Transaction};
use std::path::{Path, PathBuf};
use std::time::Instant;
use uuid::Uuid;

/// An export that is being created. Its files are removed unless it is queued.
pub(super) struct ExportBuilder<'a> {
    inner: &'a ExporterParts,
    /// What the rendered files show.
    state: Option<RenderedState>,
    business_object: &'a Compiled,
    targets: Vec<QueueTarget>,
    started_at: Stamp,
    source: MetadataSource<'a>,
    pub(super) by: ExportRequester<'a>,
    /// The ids of the entries of each file, one for each target. The files are named after them.
    ids: Vec<Vec<String>>,
    files: UnqueuedFiles<'a>,
}

impl<'a> ExportBuilder<'a> {
    pub(super) fn new(
        inner: &'a ExporterParts,
        business_object: &'a Compiled,
        targets: &[String],
    ) -> Self {
        let started_at = inner.current_stamp();
        let files = UnqueuedFiles { spool: &inner.queue.spool, names: Vec::new() };
        let configured = &inner.options.targets;
        let to = |name: &String| QueueTarget {
            name: name.clone(),
            files: target::file_settings(configured, name),
            place: target::describe_place(configured, name),
        };
        let source = MetadataSource {
            export_date: time::format_compact(started_at.at),
            object_type: &business_object.object.definition.name,
            gateway_id: &inner.options.gateway_id,
            schema_version: business_object.object.version,
            commit: 0,
            is_extended: configured.has_extended_metadata,
        };
        Self {
            inner,
            state: None,
            business_object,
            targets: targets.iter().map(to).collect(),
            started_at,
            source,
            by: ExportRequester::gateway(),
            ids: Vec::new(),
            files,
        }
    }

    /// Renders all members.
    pub(super) fn render_full(
        &mut self,
        outputs: &[RenderOutput],
    ) -> Result<Rendered, GatewayError> {
        let rendering = self.new_rendering();
        let (rendered, state) = run_in_background(|| rendering.render_full(outputs))?;
        self.source.commit = state.commit;
        self.state = Some(state);
        Ok(rendered)
    }

    /// Renders the changes of a generation: changed members, and removed objects.
    pub(super) fn render_changes(
        &mut self,
        generation: u64,
        cursor: &ExportCursor,
        [changed, removed]: &[Vec<RenderOutput>; 2],
    ) -> Result<ChangedFiles<Rendered>, GatewayError> {
        let rendering = self.new_rendering();
        let (files, state) = run_in_background(|| {
            rendering.render_changes(generation, cursor.exports, changed, removed)
        })?;
        // Later commits may have recorded their changes in the next generation.
        self.source.commit = cursor.closed_at;
        self.state = Some(state);
        Ok(files)
    }

    fn new_rendering(&self) -> Rendering<'_> {
        Rendering {
            store: &self.inner.queue.store,
            business_object: self.business_object,
            source: &self.source,
            stop: &self.inner.stopping,
            disk: &self.inner.options.disk,
        }
    }

    /// Adds a file, and returns where to render it in each format of the targets.
    pub(super) fn add_file(&mut self) -> Vec<RenderOutput> {
        let mut outputs: Vec<RenderOutput> = Vec::new();
        let mut ids = Vec::with_capacity(self.targets.len());
        for target in &self.targets {
            let export_id = Uuid::now_v7().to_string();
            let path = self.files.add_file_name(&export_id);
            ids.push(export_id.clone());
            let format = target.files.format;
            if outputs.iter().all(|output| output.format != format) {
                outputs.push(RenderOutput { export_id, path, format });
            }
        }
        self.ids.push(ids);
        outputs
    }

    /// Removes the files for which `keep` is false, because they would be empty.
    pub(super) fn drop_empty_files(&mut self, keep: [bool; 2]) {
        let mut keep = keep.into_iter();
        for ids in std::mem::take(&mut self.ids) {
            if keep.next().unwrap_or(true) {
                self.ids.push(ids);
            } else {
                for id in ids {
                    self.files.spool.remove(&record::file_name(&id));
                }
            }
        }
    }

    /// Fails if the store was reopened since rendering started, because the reopening may have cut off the
    /// data.
    pub(super) fn check_instance(&self, transaction: &Transaction<'_>) -> Result<(), Error> {
        let rendered = self.state.map(|state| state.instance);
        if rendered == Some(transaction.instance()) { Ok(()) } else { Err(Error::Reopening) }
    }

    /// Queues the files in the order they were added.
    pub(super) fn enqueue(
        mut self,
        rendered: Vec<(ExportKind, Rendered)>,
        covers: Option<(u64, u64)>,
        hook: queue::EntriesCommitHook<'_>,
        started: Instant,
    ) -> Result<Vec<Export>, GatewayError> {
        let exports = self.complete_files(rendered)?;
        let queue = &self.inner.queue;
        queue.spool.sync_folder()?;
        let stamp = self.inner.current_stamp();
        let new = NewExports {
            business_object: &self.business_object.object.id,
            source: &self.source,
            exports: &exports,
            targets: &self.targets,
            commit: self.state.filter(|state| !state.is_mixed).map(|state| state.commit),
            covers,
            by: self.by,
            created_at: Stamp { doubt: stamp.doubt.or(self.started_at.doubt), ..stamp },
        };
        let object = &self.business_object.object;
        let check = QueueCheck {
            requester: self.by.check,
            object,
            catalogue: &self.inner.options.catalogue,
        };
        let new = NewExports { by: ExportRequester { check: &check, ..self.by }, ..new };
        let added = queue.enqueue_files(&new, &mut |t, entries| {
            self.check_instance(t)?;
            hook(t, entries)
        });
        if !added.as_ref().is_err_and(|error| self.is_surely_not_committed(error)) {
            self.files.names.clear();
            if added.is_err() {
                queue.lock_state().unconfirmed.extend(self.ids.iter().flatten().cloned());
            }
        }
        let entries = added?;
        report_queued_exports(self.source.object_type, &exports, &entries, started);
        Ok(entries)
    }

    /// Completes the files, and gives each target its own.
    fn complete_files(
        &self,
        rendered: Vec<(ExportKind, Rendered)>,
    ) -> Result<Vec<NewExport>, GatewayError> {
        let mut exports = Vec::with_capacity(rendered.len());
        for (added_before, (ids, (kind, rendered))) in (0..).zip(self.ids.iter().zip(rendered)) {
            let mut shared: Vec<(ExportFormat, FinishedFile)> = Vec::new();
            let mut files = Vec::with_capacity(ids.len());
            for (id, to) in ids.iter().zip(&self.targets) {
                let data = rendered.file_of(to.files.format)?;
                files.push(if self.source.is_extended && data.format == ExportFormat::Json {
                    let sequence = self.read_last_sequence(to)? + 1 + added_before;
                    self.create_own_file(data, id, kind, sequence)?
                } else {
                    self.share_file(data, id, kind, &mut shared)?
                });
            }
            let Rendered { objects, warnings, .. } = rendered;
            exports.push(NewExport { kind, objects, warnings, files });
        }
        Ok(exports)
    }

    /// Returns the last sequence of a target. The queue refuses the export if another one takes the next sequence.
    fn read_last_sequence(&self, to: &QueueTarget) -> Result<u64, Error> {
        let read = self.inner.queue.store.read();
        EXPORT_SEQUENCES.last_number(&read, (&to.name, self.source.object_type))
    }

    /// Gives a target a file of its own, because the metadata in it is extended.
    fn create_own_file(
        &self,
        data: &DataFile,
        id: &str,
        kind: ExportKind,
        sequence: u64,
    ) -> Result<TargetFile, GatewayError> {
        let path = self.inner.queue.spool.path(&record::file_name(id));
        if path != data.path {
            render::copy_file(&data.path, &path, &self.inner.options.disk)?;
        }
        let finished = self.complete_file(data, &path, id, kind, sequence)?;
        Ok(TargetFile { id: id.to_owned(), finished, sequence: Some(sequence) })
    }

    /// Gives a target a link to the file that all targets of its format share.
    fn share_file(
        &self,
        data: &DataFile,
        id: &str,
        kind: ExportKind,
        shared: &mut Vec<(ExportFormat, FinishedFile)>,
    ) -> Result<TargetFile, GatewayError> {
        let path = self.inner.queue.spool.path(&record::file_name(id));
        let completed = shared.iter().find(|(format, _)| *format == data.format);
        let finished = if let Some((_, finished)) = completed {
            link_or_copy(&data.path, &path)
                .map_err(|error| spool::spool_error("linking", &path, &error))?;
            finished.clone()
        } else {
            let finished = self.complete_file(data, &path, id, kind, 0)?;
            shared.push((data.format, finished.clone()));
            finished
        };
        Ok(TargetFile { id: id.to_owned(), finished, sequence: None })
    }

    fn complete_file(
        &self,
        data: &DataFile,
        path: &Path,
        id: &str,
        kind: ExportKind,
        sequence: u64,
    ) -> Result<FinishedFile, GatewayError> {
        let DataFile { objects, data_checksum, .. } = data;
        let metadata = self.source.metadata_of(id, kind, sequence, *objects, data_checksum);
        data.complete(path, &metadata).map_err(|error| spool::spool_error("writing", path, &error))
    }

    /// Returns whether this error means that nothing was committed. After any other error, the next start may find the
    /// commit, whose entries need the files.
    fn is_surely_not_committed(&self, error: &EnqueueError) -> bool {
        match error {
            EnqueueError::Refused(_)
            | EnqueueError::Store(Error::TooLarge { .. } | Error::Reopening) => true,
            EnqueueError::Store(error) => {
                error.is_disk_full() && self.inner.queue.store.poison_cause().is_none()
            }
        }
    }
}

/// The check of the commit that queues an export: the requester's own; that the objects of the Business Object are not
/// being deleted, because a file that is rendered meanwhile lacks some of them; and that no other one has its name,
/// because sequences belong to names, and a consumer would have the old content after the new one.
#[derive(Debug)]
struct QueueCheck<'a> {
    requester: &'a dyn CommitCheck,
    object: &'a BusinessObject,
    catalogue: &'a Catalogue,
}

impl CommitCheck for QueueCheck<'_> {
    fn check_commit(&self, transaction: &Transaction<'_>) -> Result<(), GatewayError> {
        self.requester.check_commit(transaction)?;
        self.catalogue.watch().check_not_closed(self.object)?;
        self.catalogue.check_name_not_taken(self.object)
    }
}

/// Counts and logs the exports of a Business Object that were queued.
fn report_queued_exports(name: &str, exports: &[NewExport], entries: &[Export], started: Instant) {
    let seconds = started.elapsed().as_secs_f64();
    for export in exports {
        let bytes = export.files.first().map_or(0, |file| file.finished.bytes);
        metrics::count_queued_export(export.objects, bytes, seconds);
    }
    for entry in entries {
        let kind = entry.kind.name();
        metrics::count_business_object_export(name, kind, entry.object_count);
        tracing::info!(
            export_id = entry.id,
            business_object = name,
            target_name = entry.target,
            sequence = entry.sequence,
            kind,
            objects = entry.object_count,
            bytes = entry.bytes,
            duration_ms = started.elapsed().as_millis(),
            "An export was queued."
        );
    }
}

fn link_or_copy(path: &Path, link: &Path) -> std::io::Result<()> {
    std::fs::hard_link(path, link)
        .or_else(|_| std::fs::copy(path, link).and_then(|_| std::fs::File::open(link)?.sync_all()))
}

/// The files of an export that is not queued yet. They are removed on drop.
struct UnqueuedFiles<'a> {
    spool: &'a Spool,
    names: Vec<String>,
}

impl UnqueuedFiles<'_> {
    fn add_file_name(&mut self, id: &str) -> PathBuf {
        let name = record::file_name(id);
        let path = self.spool.path(&name);
        self.names.push(name);
        path
    }
}

impl Drop for UnqueuedFiles<'_> {
    fn drop(&mut self) {
        for name in &self.names {
            self.spool.remove(name);
        }
    }
}
