//! Rendering: writes the members of a Business Object, or their changes, into export files in bounded memory.
//!
//! All objects are rendered as they are in one snapshot of the store, while commits continue.
use super::entry::Kind;
use super::file::{DataFile, FileWriter, MetadataSource};
use super::spool;
use oxrdf::NamedNode;
use penstock_base::disk::Disk;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_config::ExportFormat;
use penstock_model::change_feed::{self, ChangedObject};
use penstock_model::resource::Compiled;
use penstock_model::{members, namespace, view};
use penstock_store::{ListedSubject, Pattern, Read, ReadStore, Snapshot, SubjectQuads};
use std::cell::{Cell, RefCell};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The maximum number of URIs read at a time.
const URIS_PER_PAGE: usize = 500;
/// The maximum number of warnings stored with an export.
const MAX_WARNINGS: usize = 20;
/// The maximum length of a warning in characters.
const MAX_WARNING_CHARS: usize = 400;
/// The bytes written to a file between two checks of the free disk space. The reserve has space for smaller files.
const SPACE_CHECK_BYTES: u64 = 4 << 20;

/// The inputs of rendering, and the flag that cancels it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rendering<'a> {
    pub(super) store: &'a ReadStore,
    /// What the files show, as long as the store can keep it; then the newest state.
    pub(super) snapshot: &'a RefCell<Snapshot>,
    /// Whether that state was lost. Then each page shows the newest one.
    pub(super) is_mixed: &'a Cell<bool>,
    pub(super) business_object: &'a Compiled,
    /// What the metadata of the files has in common.
    pub(super) source: &'a MetadataSource<'a>,
    pub(super) stop: &'a AtomicBool,
    /// The disk that the file is written to.
    pub(super) disk: &'a Disk,
}

/// An object to write.
#[derive(Debug, Clone, Copy)]
enum RenderItem<'a> {
    /// A listed member.
    Listed(&'a ListedSubject),
    /// A changed object, which may be a member.
    Changed(&'a NamedNode),
}

/// A file to render.
#[derive(Debug, Clone)]
pub(super) struct RenderOutput {
    /// The id of the export, which names the file.
    pub(super) export_id: String,
    pub(super) path: PathBuf,
    pub(super) format: ExportFormat,
}

/// The files with the same objects that are being written, one for each format, with the warnings of the view.
struct RenderedFile {
    writers: Vec<FileWriter>,
    /// Their length in bytes at the last check of the disk space.
    checked_at_bytes: u64,
    object: Vec<u8>,
    quads: SubjectQuads,
    warnings: Vec<String>,
    omitted_warnings: u64,
}

/// The files of changed members and of removed objects, if there are any.
#[derive(Default)]
struct ChangedFiles {
    changed: Option<RenderedFile>,
    removed: Option<RenderedFile>,
}

/// The rendered objects.
#[derive(Debug)]
pub(super) struct Rendered {
    /// One file for each format.
    pub(super) files: Vec<DataFile>,
    /// The number of objects in each file.
    pub(super) objects: u64,
    /// The warnings of the view.
    pub(super) warnings: Vec<String>,
}

impl Rendered {
    /// Returns the file in this format.
    pub(super) fn file_of(&self, format: ExportFormat) -> Result<&DataFile, GatewayError> {
        self.files.iter().find(|file| file.format == format).ok_or_else(|| {
            let text = format!("the export was not rendered in the format `{format}`");
            GatewayError::new(ErrorClass::Internal, text)
        })
    }
}

impl Rendering<'_> {
    /// Writes the export file of all members in URI order.
    pub(super) fn render_full(&self, outputs: &[RenderOutput]) -> Result<Rendered, GatewayError> {
        let mut file = RenderedFile::create(outputs, self)?;
        let mut after: Option<NamedNode> = None;
        loop {
            self.check_not_stopping()?;
            match self.renew_if_lost(self.render_members(&mut file, &mut after))? {
                Ok(0) => return file.finish(),
                Ok(_) => {}
                Err(warning) => file.add_warning(&warning),
            }
        }
    }

    /// Takes a new snapshot for the next page, if there is no state that all pages show.
    fn begin_page(&self) -> Result<(), GatewayError> {
        if self.is_mixed.get() {
            self.snapshot.replace(self.store.snapshot()?);
        }
        Ok(())
    }

    /// Renders a page of members after a URI, which is updated to the last one rendered. Returns how many were listed.
    fn render_members(
        &self,
        file: &mut RenderedFile,
        after: &mut Option<NamedNode>,
    ) -> Result<usize, GatewayError> {
        self.begin_page()?;
        let from = after.as_ref().map(NamedNode::as_str);
        let (snapshot, business_object) = (self.snapshot.borrow(), self.business_object);
        let page = members::list_members_to_read(&snapshot, business_object, from, URIS_PER_PAGE)?;
        for one in &page {
            self.render_object(&snapshot, file, RenderItem::Listed(one))?;
            *after = Some(one.iri.clone());
        }
        Ok(page.len())
    }

    /// Passes on the result of a read. If it failed because the state could not be kept, takes a new snapshot and returns
    /// a warning about it: the read is to be repeated.
    fn renew_if_lost<T>(
        &self,
        read: Result<T, GatewayError>,
    ) -> Result<Result<T, String>, GatewayError> {
        let lost = self.snapshot.borrow().lost_cause();
        match (read, lost) {
            (Err(error), Some(cause)) if matches!(error.class, ErrorClass::Unavailable(_)) => {
                self.snapshot.replace(self.store.snapshot()?);
                self.is_mixed.set(true);
                Ok(Err(format!(
                    "commits changed so much meanwhile that the state of one commit could not be kept ({cause}); the \
                     objects that follow show later commits too"
                )))
            }
            (read, _) => read.map(Ok),
        }
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
    ) -> Result<(Option<Rendered>, Option<Rendered>), GatewayError> {
        let mut files = ChangedFiles::default();
        let mut after: Option<String> = None;
        loop {
            self.check_not_stopping()?;
            let outputs = [objects, removed];
            let page = self.render_changed(&mut files, outputs, generation, exports, &mut after);
            match self.renew_if_lost(page)? {
                Ok(0) => break,
                Ok(_) => {}
                Err(warning) => {
                    for file in files.changed.iter_mut().chain(&mut files.removed) {
                        file.add_warning(&warning);
                    }
                }
            }
        }
        let changed = files.changed.map(RenderedFile::finish).transpose()?;
        let removed = files.removed.map(RenderedFile::finish).transpose()?;
        Ok((changed.filter(|rendered| rendered.objects > 0), removed))
    }

    /// Renders a page of changed objects after a URI, which is updated to the last one. Returns how many were listed.
    fn render_changed(
        &self,
        files: &mut ChangedFiles,
        [objects, removed]: [&[RenderOutput]; 2],
        generation: u64,
        exports: u64,
        after: &mut Option<String>,
    ) -> Result<usize, GatewayError> {
        self.begin_page()?;
        let snapshot = self.snapshot.borrow();
        let id = self.business_object.object.id.as_str();
        let from = after.as_deref();
        let page = change_feed::list_changed(&*snapshot, id, generation, from, URIS_PER_PAGE)?;
        let count = page.len();
        for ChangedObject { uri, new_at } in page {
            let named = NamedNode::new_unchecked(&uri);
            // If no object is written to the file, it is removed later.
            let file = RenderedFile::get_or_create(&mut files.changed, objects, self)?;
            let is_member = self.render_object(&snapshot, file, RenderItem::Changed(&named))?;
            if !is_member && new_at != Some(exports) {
                let file = RenderedFile::get_or_create(&mut files.removed, removed, self)?;
                file.append_removed(&named)?;
            }
            *after = Some(uri);
        }
        Ok(count)
    }

    /// Writes one object if it is a member. Returns whether it is.
    fn render_object(
        &self,
        snapshot: &Snapshot,
        file: &mut RenderedFile,
        item: RenderItem<'_>,
    ) -> Result<bool, GatewayError> {
        file.object.clear();
        let mut findings = Vec::new();
        let uri = match item {
            RenderItem::Listed(ListedSubject { iri, .. }) | RenderItem::Changed(iri) => iri,
        };
        match item {
            RenderItem::Listed(listed) => snapshot.read_listed(listed, &mut file.quads)?,
            RenderItem::Changed(uri) => {
                snapshot.read_subject(uri.as_ref().into(), &mut file.quads)?;
                let quads = &file.quads;
                if !members::is_member_by_quads(snapshot, self.business_object, quads)? {
                    return Ok(false);
                }
            }
        }
        let root = &self.business_object.mapping.root;
        let (about, out) = (&file.quads, &mut file.object);
        view::render_subject(snapshot, root, uri, about, out, &mut findings)?;
        file.append_object()?;
        self.check_disk_space(file)?;
        for finding in findings {
            file.add_warning(&format!("{}: {finding}", uri.as_str()));
        }
        Ok(true)
    }

    fn check_not_stopping(&self) -> Result<(), GatewayError> {
        check_not_stopping(self.stop)
    }

    fn check_disk_space(&self, file: &mut RenderedFile) -> Result<(), GatewayError> {
        let length = file.writers.iter().map(FileWriter::written_bytes).sum();
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
    let mut target = created.map_err(|error| failed(&error))?;
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

impl RenderedFile {
    /// Returns the file, which is created if there is none.
    fn get_or_create<'f>(
        file: &'f mut Option<Self>,
        outputs: &[RenderOutput],
        rendering: &Rendering<'_>,
    ) -> Result<&'f mut Self, GatewayError> {
        Ok(match file {
            Some(file) => file,
            none => none.insert(Self::create(outputs, rendering)?),
        })
    }

    fn create(outputs: &[RenderOutput], rendering: &Rendering<'_>) -> Result<Self, GatewayError> {
        let writers = outputs.iter().map(|RenderOutput { export_id, path, format }| {
            let metadata = rendering.source.metadata_of(export_id, Kind::Full, 0, 0, "");
            FileWriter::create(path, *format, &metadata)
                .map_err(|error| spool::spool_error("writing", path, &error))
        });
        let writers = writers.collect::<Result<_, _>>()?;
        let (object, about) = (Vec::new(), SubjectQuads::default());
        let (warnings, more_warnings) = (Vec::new(), 0);
        Ok(Self {
            writers,
            checked_at_bytes: 0,
            object,
            quads: about,
            warnings,
            omitted_warnings: more_warnings,
        })
    }

    /// Appends the rendered object in the field `object`.
    fn append_object(&mut self) -> Result<(), GatewayError> {
        self.writers.iter_mut().try_for_each(|writer| {
            writer
                .append_object(&self.object)
                .map_err(|error| spool::spool_error("writing", writer.path(), &error))
        })
    }

    /// Appends an object that consists only of its URI.
    fn append_removed(&mut self, uri: &NamedNode) -> Result<(), GatewayError> {
        let object = serde_json::json!({ "uri": uri.as_str() });
        self.object = object.to_string().into_bytes();
        self.append_object()
    }

    fn add_warning(&mut self, warning: &str) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(warning.chars().take(MAX_WARNING_CHARS).collect());
        } else {
            self.omitted_warnings += 1;
        }
    }

    fn finish(mut self) -> Result<Rendered, GatewayError> {
        if self.omitted_warnings > 0 {
            self.warnings.push(format!("and {} more", self.omitted_warnings));
        }
        let files = self.writers.into_iter().map(|writer| {
            let path = writer.path().to_owned();
            writer.finish().map_err(|error| spool::spool_error("writing", &path, &error))
        });
        let files = files.collect::<Result<Vec<_>, _>>()?;
        let objects = files.first().map_or(0, |file| file.objects);
        Ok(Rendered { files, objects, warnings: self.warnings })
    }
}

/// Explains why there are no members. Names the condition that no stored object satisfies, if there is one.
pub(super) fn explain_no_members(
    read: &impl Read,
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
