//! Decides what an export has and whom it goes to. The commit that queues it records how far the changes are exported.
use super::builder::ExportBuilder;
use super::record::EXPORT_SEQUENCES;
use super::render::{self, ChangedFiles, Rendered};
use super::{ExportOptions, ExportRequester, ExporterParts, key, target};
use penstock_base::commit::commit;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::hex::encode_hex;
use penstock_model::catalogue;
use penstock_model::change_feed::{self, ExportCursor, KnownTarget};
use penstock_model::resource::Compiled;
use penstock_resources::export::{Export, ExportKind, Push, PushedExport};
use penstock_store::{Error, Read, Transaction};
use sha2::{Digest, Sha256};
use std::time::Instant;

/// A hook that adds further writes to the commit of an export.
pub(super) type ExportCommitHook<'a> = &'a mut dyn FnMut(&mut Transaction<'_>) -> Result<(), Error>;

/// The result of a push.
#[derive(Debug, Clone)]
pub struct PushResult {
    /// The queued exports, one for each target.
    pub exports: Vec<Export>,
    /// The reason why no export was queued.
    pub reason: Option<String>,
}

impl From<PushResult> for Push {
    fn from(result: PushResult) -> Self {
        let exports = result.exports.into_iter().map(PushedExport::from).collect();
        Self { exports, reason: result.reason }
    }
}

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
    read: &dyn Read,
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
