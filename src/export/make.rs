//! Creates an export: renders it into the spool, syncs it, and queues it. The same commit records how far the
//! changes are exported.
use super::file::{DataFile, FinishedFile, MetadataSource};
use super::key;
use super::queue::{self, EnqueueError, NewExport, NewExports, QueueTarget, TargetFile};
use super::record::{self, EXPORT_SEQUENCES};
use super::render::{self, ChangedFiles, RenderOutput, Rendered, RenderedState, Rendering};
use super::spool::{self, Spool};
use super::{ExportOptions, ExportRequester, ExporterParts, PushResult, target};
use penstock_base::clock::Stamp;
use penstock_base::commit::{CommitCheck, commit};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::hex::encode_hex;
use penstock_base::telemetry::metrics;
use penstock_base::{run_in_background, time};
use penstock_config::ExportFormat;
use penstock_model::catalogue::{self, Catalogue};
use penstock_model::change_feed::{self, ExportCursor, KnownTarget};
use penstock_model::resource::{BusinessObject, Compiled};
use penstock_resources::export::{Export, ExportKind};
use penstock_store::{Error, Read, Transaction};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::time::Instant;
use uuid::Uuid;

/// A hook that adds further writes to the commit of an export.
pub(super) type ExportCommitHook<'a> = &'a mut dyn FnMut(&mut Transaction<'_>) -> Result<(), Error>;

/// Checks that a Business Object can be exported.
pub(super) fn check_exportable(
    options: &ExportOptions,
    business_object: &Compiled,
) -> Result<(), GatewayError> {
    let definition = &business_object.object.definition;
    let name = definition.name.as_str();
    let kind = if definition.export_on_change { ExportKind::Incremental } else { ExportKind::Full };
    let conflict = |why| {
        GatewayError::new(ErrorClass::Conflict, format!("the Business Object `{name}` {why}"))
    };
    options.catalogue.watch().check_not_closed(&business_object.object)?;
    if !definition.enabled {
        return Err(conflict("is disabled; enable it to export it"));
    }
    for push_target in &definition.push_targets {
        let bucket_name = &push_target.bucket_name;
        let files = target::file_settings(&options.targets, bucket_name);
        target::check_target(options, bucket_name)
            .and_then(|()| key::check_key(&files, name, kind, &options.gateway_id))
            .map_err(|cause| GatewayError::new(ErrorClass::Invalid, cause))?;
    }
    if definition.push_targets.is_empty() {
        return Err(conflict("has no pushTargets; add one to export it"));
    }
    Ok(())
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

/// Returns the bucketNames of all targets, without duplicates.
pub(super) fn all_targets(business_object: &Compiled) -> Vec<String> {
    let mut targets: Vec<String> = Vec::new();
    for push_target in &business_object.object.definition.push_targets {
        if !targets.contains(&push_target.bucket_name) {
            targets.push(push_target.bucket_name.clone());
        }
    }
    targets
}

/// Returns the targets that need a full export before they can receive changes.
pub(super) fn targets_without_full(
    inner: &ExporterParts,
    business_object: &Compiled,
    cursor: &ExportCursor,
) -> Result<Vec<String>, GatewayError> {
    let mut targets = all_targets(business_object);
    if cursor.view != view_digest(business_object) || cursor.needs_full_export() {
        return Ok(targets);
    }
    let read = inner.queue.store.read();
    let name = &business_object.object.definition.name;
    let mut lacking = Vec::new();
    for target in targets.drain(..) {
        let sequence = EXPORT_SEQUENCES.last_number(&read, (&target, name))?;
        let known = cursor.targets.get(&target).is_some_and(|known| {
            known.place == target::identify_place(&inner.options, &target)
                && known.sequence == sequence
        });
        if !known {
            lacking.push(target);
        }
    }
    Ok(lacking)
}

/// Renders all members and queues the export for these targets, or returns the reason why there is nothing to
/// export. The caller holds the Business Object's lock.
///
/// If the definition is replaced meanwhile, the targets do not count as having everything: an earlier definition may not
/// have recorded the changes since the file was rendered. With `exportOnChange`, another full export follows.
pub(super) fn create_full_export(
    inner: &ExporterParts,
    business_object: &Compiled,
    targets: &[String],
    by: ExportRequester<'_>,
    hook: ExportCommitHook<'_>,
) -> Result<PushResult, GatewayError> {
    let started = Instant::now();
    let object = &business_object.object;
    let id = object.id.as_str();
    let name = object.definition.name.as_str();
    let store = &inner.queue.store;
    let is_for_all = targets.len() == all_targets(business_object).len();
    // If the store accepts no commits, fail before a file is written for nothing.
    commit::<_, GatewayError>(store, by.check, |_| Ok(()))?;
    let cursor = if is_for_all {
        change_feed::close_generation(store, id)?
    } else {
        change_feed::read_cursor(&store.read(), id)?
    };
    let covers = match &cursor {
        Some(cursor) if targets_without_full(inner, business_object, cursor)?.is_empty() => {
            Some((cursor.done, cursor.open - 1))
        }
        Some(cursor) => Some((0, cursor.open - 1)),
        None => None,
    };
    let mut builder = ExportBuilder::new(inner, business_object, targets);
    builder.by = by;
    let outputs = builder.add_file();
    let rendered = builder.render_full(&outputs)?;
    let mut queued = |t: &mut Transaction<'_>, _: &[Export]| {
        hook(t)?;
        let Some(mut cursor) = change_feed::read_cursor(t, id)? else { return Ok(()) };
        if catalogue::is_current(t, object)? {
            if is_for_all {
                cursor.done = covers.map_or(cursor.done, |(_, to)| to.max(cursor.done));
                cursor.view = view_digest(business_object);
                cursor.targets.clear();
            }
            mark_targets_current(&inner.options, t, name, &mut cursor, targets)?;
        } else {
            // The exports of the new definition may have come before this one, and nothing may change after it.
            inner.options.catalogue.watch().mark(id);
        }
        cursor.exports += 1;
        change_feed::CURSORS.put(t, id, &cursor)
    };
    // If there are changes, the file is queued even without objects: a target that still lacks its full export
    // would block the changes for the other targets.
    let has_pending_changes = match &cursor {
        Some(cursor) if !is_for_all => change_feed::has_changes(&store.read(), id, cursor)?,
        _ => false,
    };
    if rendered.objects == 0
        && !has_pending_changes
        && !inner.queue.may_have_objects(targets, name)?
    {
        let reason = render::explain_no_members(&store.read(), business_object)?;
        // No consumer has an object of this Business Object, so there is nothing to report. Once there are
        // objects, each target still gets a full export first.
        commit::<_, GatewayError>(store, by.check, |t| {
            builder.check_instance(t)?;
            hook(t)?;
            let Some(mut cursor) = change_feed::read_cursor(t, id)? else { return Ok(()) };
            if is_for_all && catalogue::is_current(t, object)? {
                cursor.done = covers.map_or(cursor.done, |(_, to)| to.max(cursor.done));
            }
            Ok(change_feed::CURSORS.put(t, id, &cursor)?)
        })?;
        inner.record_empty_run(id, &reason, false);
        return Ok(PushResult { exports: Vec::new(), reason: Some(reason) });
    }
    let exports =
        builder.enqueue(vec![(ExportKind::Full, rendered)], covers, &mut queued, started)?;
    inner.empty_runs.clear(id);
    Ok(PushResult { exports, reason: None })
}

/// Renders the changes of the oldest unfinished generation and queues them for all targets. No target may still
/// need a full export. The caller holds the Business Object's lock. If the definition is replaced meanwhile, the
/// generation stays unfinished, and a full export follows.
pub(super) fn create_incremental_export(
    inner: &ExporterParts,
    business_object: &Compiled,
) -> Result<Vec<Export>, GatewayError> {
    let started = Instant::now();
    let object = &business_object.object;
    let id = object.id.as_str();
    let name = object.definition.name.as_str();
    let store = &inner.queue.store;
    // Read inside a transaction, so that a commit in progress is visible.
    let (cursor, _) = store.transact::<_, Error>(|t| match change_feed::read_cursor(t, id)? {
        Some(cursor) if change_feed::has_changes(t, id, &cursor)? => Ok(Some(cursor)),
        _ => Ok(None),
    })?;
    let Some(mut cursor) = cursor else { return Ok(Vec::new()) };
    // An earlier export that was not queued may have closed a generation already.
    if cursor.open == cursor.done + 1 {
        match change_feed::close_generation(store, id)? {
            Some(closed) => cursor = closed,
            None => return Ok(Vec::new()),
        }
    }
    if cursor.needs_full_export() {
        // Since the last check, more has changed than is recorded. So a full export is due instead.
        return Ok(Vec::new());
    }
    let generation = cursor.done + 1;
    let targets = all_targets(business_object);
    let mut builder = ExportBuilder::new(inner, business_object, &targets);
    let outputs = [builder.add_file(), builder.add_file()];
    let ChangedFiles { changed, removed } =
        builder.render_changes(generation, &cursor, &outputs)?;
    let mut hook = |t: &mut Transaction<'_>, entries: &[Export]| {
        let Some(mut cursor) = change_feed::read_cursor(t, id)? else { return Ok(()) };
        let is_current = catalogue::is_current(t, object)?;
        if is_current {
            cursor.done = cursor.done.max(generation);
        }
        if !entries.is_empty() {
            cursor.exports += 1;
        }
        if is_current && !entries.is_empty() {
            cursor.targets.retain(|target, _| targets.contains(target));
            let known: Vec<String> = cursor.targets.keys().cloned().collect();
            mark_targets_current(&inner.options, t, name, &mut cursor, &known)?;
        }
        change_feed::CURSORS.put(t, id, &cursor)
    };
    builder.drop_empty_files([changed.is_some(), removed.is_some()]);
    let files: Vec<(ExportKind, Rendered)> =
        [(ExportKind::Incremental, changed), (ExportKind::Deleted, removed)]
            .into_iter()
            .filter_map(|(kind, rendered)| Some((kind, rendered?)))
            .collect();
    if files.is_empty() {
        store.transact::<_, Error>(|t| {
            builder.check_instance(t)?;
            hook(t, &[])
        })?;
        return Ok(Vec::new());
    }
    let exports = builder.enqueue(files, Some((generation - 1, generation)), &mut hook, started)?;
    inner.empty_runs.clear(id);
    Ok(exports)
}

/// Records that these targets have everything up to their last sequence.
fn mark_targets_current(
    options: &ExportOptions,
    read: &impl Read,
    name: &str,
    cursor: &mut ExportCursor,
    targets: &[String],
) -> Result<(), Error> {
    for target in targets {
        let sequence = EXPORT_SEQUENCES.last_number(read, (target, name))?;
        let place = target::identify_place(options, target);
        cursor.targets.insert(target.clone(), KnownTarget { place, sequence });
    }
    Ok(())
}

/// Returns a digest of everything in the definition that determines the content and the name of a full export.
fn view_digest(business_object: &Compiled) -> String {
    let definition = &business_object.object.definition;
    let conditions = business_object.expand_conditions();
    let view = serde_json::json!([definition.name, definition.config, conditions]);
    encode_hex(&Sha256::digest(view.to_string()))
}

/// An export that is being created. Its files are removed unless it is queued.
pub(super) struct ExportBuilder<'a> {
    inner: &'a ExporterParts,
    /// What the rendered files show.
    state: Option<RenderedState>,
    business_object: &'a Compiled,
    targets: Vec<QueueTarget>,
    started_at: Stamp,
    source: MetadataSource<'a>,
    by: ExportRequester<'a>,
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
    fn render_changes(
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
    fn drop_empty_files(&mut self, keep: [bool; 2]) {
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
    fn check_instance(&self, transaction: &Transaction<'_>) -> Result<(), Error> {
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
