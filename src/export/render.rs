//! Rendering: writes the members of a Business Object, or their changes, into export files in bounded memory.
//!
//! All objects are rendered as they are in one snapshot of the store, while commits continue. It is dropped as soon as
//! everything is rendered.
mod output;
mod shown;

pub(super) use output::{RenderOutput, Rendered};
pub(super) use shown::RenderedState;

use super::file::MetadataSource;
use super::spool;
use output::{RenderedFile, append_fact, has_lines};
use oxrdf::NamedNode;
use penstock_base::disk::Disk;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::files::PeriodicallySynced;
use penstock_config::ExportFormat;
use penstock_model::change_feed::{self, ChangedObject};
use penstock_model::resource::Compiled;
use penstock_model::view::{self, ShownFact, ViewOutput};
use penstock_model::{members, namespace};
use penstock_store::{Error, Pattern, Read, ReadStore};
use shown::ShownState;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// The maximum number of URIs read at a time.
const URIS_PER_PAGE: usize = 500;
/// The bytes written to a file between two checks of the free disk space. The reserve has space for smaller files.
const SPACE_CHECK_BYTES: u64 = 4 << 20;

/// The inputs of rendering, and the flag that cancels it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rendering<'a> {
    pub(super) store: &'a ReadStore,
    pub(super) business_object: &'a Compiled,
    /// What the metadata of the files has in common.
    pub(super) source: &'a MetadataSource<'a>,
    pub(super) stop: &'a AtomicBool,
    /// The disk that the file is written to.
    pub(super) disk: &'a Disk,
}

/// The files of changed members and of removed objects, if there are any.
#[derive(Debug)]
pub(super) struct ChangedFiles<F> {
    pub(super) changed: Option<F>,
    pub(super) removed: Option<F>,
}

impl<F> Default for ChangedFiles<F> {
    fn default() -> Self {
        Self { changed: None, removed: None }
    }
}

impl Rendering<'_> {
    /// Writes the export file of all members in URI order.
    pub(super) fn render_full(
        &self,
        outputs: &[RenderOutput],
    ) -> Result<(Rendered, RenderedState), GatewayError> {
        let mut shown = ShownState::open(self.store)?;
        let mut file = RenderedFile::create(outputs, self.source)?;
        file.fills_whole_graphs = true;
        self.render_all_members(&mut shown, &mut file)?;
        let state = shown.to_rendered();
        Ok((file.finish(shown.mixed_warning)?, state))
    }

    /// Renders all members in URI order.
    fn render_all_members(
        &self,
        shown: &mut ShownState<'_>,
        file: &mut RenderedFile,
    ) -> Result<(), GatewayError> {
        let mut after: Option<NamedNode> = None;
        loop {
            self.check_not_stopping()?;
            let page = self.render_members(shown, file, &mut after);
            if shown.recover(page, after.as_ref().map(NamedNode::as_str))? == Some(0) {
                return Ok(());
            }
        }
    }

    /// Renders a page of members after a URI, which is updated to the last one rendered. Returns how many were listed.
    fn render_members(
        &self,
        shown: &ShownState<'_>,
        file: &mut RenderedFile,
        after: &mut Option<NamedNode>,
    ) -> Result<usize, GatewayError> {
        let from = after.as_ref().map(NamedNode::as_str);
        let business_object = self.business_object;
        let Some(snapshot) = &shown.snapshot else {
            let page =
                members::list_current_members(self.store, business_object, from, URIS_PER_PAGE)?;
            let count = page.len();
            for uri in page {
                self.render_if_member(&self.store.read(), file, &uri)?;
                *after = Some(uri);
            }
            return Ok(count);
        };
        let page = members::list_members_to_read(snapshot, business_object, from, URIS_PER_PAGE)?;
        let count = page.len();
        for listed in page {
            snapshot.read_listed(&listed, &mut file.quads)?;
            self.append_view(snapshot, file, &listed.iri)?;
            *after = Some(listed.iri);
        }
        Ok(count)
    }

    /// Writes the changes of a generation in URI order. The first file gets the changed members, the second the
    /// URIs of removed objects. A file without content is `None`. A removed object is left out if no consumer can
    /// have it, because no export was created since it became a member (`exports` has not changed).
    pub(super) fn render_changes(
        &self,
        generation: u64,
        exports: u64,
        objects: &[RenderOutput],
        removed: &[RenderOutput],
    ) -> Result<(ChangedFiles<Rendered>, RenderedState), GatewayError> {
        let mut shown = ShownState::open(self.store)?;
        let mut files = ChangedFiles::default();
        let mut after: Option<String> = None;
        loop {
            self.check_not_stopping()?;
            let page = match &shown.snapshot {
                Some(read) => self.list_changed(read, generation, after.as_deref()),
                None => self.list_changed(&self.store.read(), generation, after.as_deref()),
            };
            let page = page.map_err(GatewayError::from).and_then(|page| {
                let count = page.len();
                for changed in page {
                    let outputs = [objects, removed];
                    if let Some(read) = &shown.snapshot {
                        self.render_change(read, &mut files, outputs, &changed, exports)?;
                    } else {
                        let read = &self.store.read();
                        self.render_change(read, &mut files, outputs, &changed, exports)?;
                    }
                    after = Some(changed.uri);
                }
                Ok(count)
            });
            if shown.recover(page, after.as_deref())? == Some(0) {
                break;
            }
        }
        self.render_whole_graphs(&mut shown, &mut files)?;
        let state = shown.to_rendered();
        let finish = |file: RenderedFile| file.finish(shown.mixed_warning.clone());
        let changed = files.changed.map(finish).transpose()?;
        let removed = files.removed.map(finish).transpose()?;
        let changed = changed.filter(|rendered| rendered.objects > 0);
        Ok((ChangedFiles { changed, removed }, state))
    }

    /// Writes all members into those files of changes that hold the whole graph.
    fn render_whole_graphs(
        &self,
        shown: &mut ShownState<'_>,
        files: &mut ChangedFiles<RenderedFile>,
    ) -> Result<(), GatewayError> {
        let mut graphs = RenderedFile::of_writers(Vec::new());
        let mut taken = Vec::new();
        // Without objects, the file of changed members is dropped.
        files.changed.take_if(|file| file.objects == 0);
        for file in [&mut files.changed, &mut files.removed] {
            let writers = file.as_mut().map(|file| std::mem::take(&mut file.writers));
            let (whole, others): (Vec<_>, Vec<_>) = writers
                .unwrap_or_default()
                .into_iter()
                .partition(|writer| writer.format == ExportFormat::Triples);
            taken.push((whole.len(), others));
            graphs.writers.extend(whole);
        }
        if !graphs.writers.is_empty() {
            self.render_all_members(shown, &mut graphs)?;
        }
        let mut whole = graphs.writers.into_iter();
        for (file, (count, others)) in
            [&mut files.changed, &mut files.removed].into_iter().zip(taken)
        {
            let mut writers = others;
            writers.extend(whole.by_ref().take(count));
            if let Some(file) = file {
                file.writers = writers;
            }
        }
        Ok(())
    }

    fn list_changed(
        &self,
        read: &dyn Read,
        generation: u64,
        after: Option<&str>,
    ) -> Result<Vec<ChangedObject>, Error> {
        let id = self.business_object.object.id.as_str();
        change_feed::list_changed(read, id, generation, after, URIS_PER_PAGE)
    }

    /// Renders a changed object into the file that it belongs to.
    fn render_change(
        &self,
        read: &dyn Read,
        files: &mut ChangedFiles<RenderedFile>,
        [objects, removed]: [&[RenderOutput]; 2],
        changed: &ChangedObject,
        exports: u64,
    ) -> Result<(), GatewayError> {
        let uri = NamedNode::new_unchecked(&changed.uri);
        // If no object is written to the file, it is removed later.
        let file = RenderedFile::get_or_create(&mut files.changed, objects, self.source)?;
        if !self.render_if_member(read, file, &uri)? && changed.new_at != Some(exports) {
            file.append_removed_lines(&uri)?;
            RenderedFile::get_or_create(&mut files.removed, removed, self.source)?
                .append_removed(&uri)?;
        }
        Ok(())
    }

    /// Writes an object if it is a member. Returns whether it is.
    fn render_if_member(
        &self,
        read: &dyn Read,
        file: &mut RenderedFile,
        uri: &NamedNode,
    ) -> Result<bool, GatewayError> {
        read.read_subject(uri.as_ref().into(), &mut file.quads)?;
        let is_member = members::is_member_by_quads(read, self.business_object, &file.quads)?;
        if is_member {
            self.append_view(read, file, uri)?;
        }
        Ok(is_member)
    }

    /// Writes the object whose quads were read last.
    fn append_view(
        &self,
        read: &dyn Read,
        file: &mut RenderedFile,
        uri: &NamedNode,
    ) -> Result<(), GatewayError> {
        file.object.clear();
        let mut findings = Vec::new();
        let root = &self.business_object.mapping.root;
        let RenderedFile { quads, object, writers, lines, fills_whole_graphs, .. } = &mut *file;
        let mut graphs: Vec<_> =
            writers.iter_mut().filter(|writer| has_lines(writer, *fills_whole_graphs)).collect();
        let has_graphs = !graphs.is_empty();
        let mut report = |fact: ShownFact<'_>| {
            graphs.iter_mut().try_for_each(|writer| append_fact(writer, uri, fact, lines))
        };
        let mut output = ViewOutput::new(object, &mut findings);
        if has_graphs {
            output.report = Some(&mut report);
        }
        view::render_subject(read, root, uri, quads, output)?;
        file.append_object()?;
        self.check_disk_space(file)?;
        for finding in findings {
            file.add_warning(&format!("{}: {finding}", uri.as_str()));
        }
        Ok(())
    }

    fn check_not_stopping(&self) -> Result<(), GatewayError> {
        check_not_stopping(self.stop)
    }

    fn check_disk_space(&self, file: &mut RenderedFile) -> Result<(), GatewayError> {
        let length = file.writers.iter().map(|writer| writer.data_bytes).sum();
        if length < file.checked_at_bytes + SPACE_CHECK_BYTES {
            return Ok(());
        }
        file.checked_at_bytes = length;
        check_disk_space(self.disk, length)
    }
}

/// Fails if an export of this length would use more than half of the disk reserve. The other half stays for commits and
/// for operations that free space.
fn check_disk_space(disk: &Disk, length: u64) -> Result<(), GatewayError> {
    if !disk.is_half_used() {
        return Ok(());
    }
    Err(GatewayError::new(
        ErrorClass::InsufficientStorage,
        format!(
            "the export was cancelled after {} MiB, when half of the disk reserve of the gateway was used \
             up (service.limits.disk-reserve); free disk space",
            length >> 20
        ),
    ))
}

/// Copies a rendered file for a target whose file has other metadata. Fails if the copy would use more than half of the
/// disk reserve.
pub(super) fn copy_file(from: &Path, to: &Path, disk: &Disk) -> Result<(), GatewayError> {
    let failed = |error: &io::Error| spool::spool_error("copying", to, error);
    let mut source = File::open(from).map_err(|error| failed(&error))?;
    let created = OpenOptions::new().write(true).create_new(true).open(to);
    let mut target = PeriodicallySynced::new(created.map_err(|error| failed(&error))?);
    let mut length = 0;
    loop {
        let copied = io::copy(&mut source.by_ref().take(SPACE_CHECK_BYTES), &mut target)
            .map_err(|error| failed(&error))?;
        length += copied;
        if copied < SPACE_CHECK_BYTES {
            return Ok(());
        }
        check_disk_space(disk, length)?;
    }
}

/// Fails once the gateway stops.
pub(super) fn check_not_stopping(stop: &AtomicBool) -> Result<(), GatewayError> {
    if stop.load(Ordering::Relaxed) {
        return Err(GatewayError::new(
            ErrorClass::Unavailable(std::time::Duration::from_secs(5)),
            "the gateway is stopping; the export was cancelled",
        ));
    }
    Ok(())
}

/// Explains why there are no members. Names the condition that no stored object satisfies, if there is one.
pub(super) fn explain_no_members(
    read: &dyn Read,
    business_object: &Compiled,
) -> Result<String, GatewayError> {
    for (predicate, value) in &business_object.conditions {
        let pattern = Pattern {
            predicate: Some(predicate.clone()),
            object: Some(value.clone()),
            ..Pattern::default()
        };
        if !read.any(&pattern)? {
            return Ok(format!(
                "no stored object has {value} as {predicate}, which a condition of this Business Object asks \
                 for; ingest such data or correct the condition"
            ));
        }
    }
    let conditions: Vec<String> =
        business_object.conditions.iter().map(|(p, v)| format!("{p} {v}")).collect();
    if !conditions.is_empty() {
        return Ok(format!(
            "no stored object satisfies all conditions of this Business Object at once: {}",
            conditions.join(" and ")
        ));
    }
    let name = &business_object.mapping.root.namespace;
    let base =
        namespace::get(read, name)?.map_or_else(String::new, |n| format!(" <{}>", n.uri_base));
    Ok(format!(
        "the graph{base} of the namespace `{name}` contains no object, and the Business Object has no condition"
    ))
}
