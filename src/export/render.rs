//! Rendering: what belongs to a Business Object, or what of it changed, as export files, in bounded memory.
//!
//! No reader lives longer than one page or one object takes, so that commits go on. An object is always
//! rendered whole, as it is at that moment.
use super::file::{FileWriter, Finished};
use super::spool;
use oxrdf::NamedNode;
use penstock_base::disk::Disk;
use penstock_base::fault::{Fault, Kind};
use penstock_model::changes::{self, Changed};
use penstock_model::resource::Compiled;
use penstock_model::{members, namespace, view};
use penstock_store::{About, Listed, Pattern, Read, Store};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// URIs held at once.
const PAGE: usize = 500;
/// Warnings kept with an export.
const WARNINGS: usize = 20;
/// Characters of one of them.
const WARNING: usize = 400;
/// Bytes of a file after which it is looked what room is left. A smaller file is no danger to the reserve.
const STEP: u64 = 4 << 20;

/// What is rendered, and when to leave off.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rendering<'a> {
    pub(super) store: &'a Store,
    pub(super) business_object: &'a Compiled,
    pub(super) export_date: &'a str,
    pub(super) stop: &'a AtomicBool,
    /// The disk that the file is written to.
    pub(super) disk: &'a Disk,
}

/// An object to be written.
#[derive(Debug, Clone, Copy)]
enum Wanted<'a> {
    /// It belonged as of this commit.
    Listed(&'a Listed, u64),
    /// It may belong.
    Changed(&'a NamedNode),
}

/// A file in the making, with what the view warns of.
struct File {
    path: PathBuf,
    writer: FileWriter,
    /// How long it was when it was looked what room is left.
    looked_at: u64,
    object: Vec<u8>,
    about: About,
    warnings: Vec<String>,
    more_warnings: u64,
}

/// A finished file, with what the view warned of.
pub(super) type Rendered = (Finished, Vec<String>);

impl Rendering<'_> {
    /// Writes the export file of all objects that belong, ordered by URI. One that ceased to belong since
    /// its page was read is left out.
    pub(super) fn full(&self, path: &Path) -> Result<Rendered, Fault> {
        let mut file = File::create(path.to_owned(), self)?;
        let mut after: Option<NamedNode> = None;
        loop {
            self.go_on()?;
            let from = after.as_ref().map(NamedNode::as_str);
            let (page, seen) = members::listed(self.store, self.business_object, from, PAGE)?;
            for one in &page {
                self.object(&mut file, Wanted::Listed(one, seen))?;
            }
            match page.into_iter().last() {
                Some(last) => after = Some(last.iri),
                None => return file.finish(),
            }
        }
    }

    /// Writes what changed in a generation, ordered by URI: into the first file the objects that belong, as
    /// they are, into the second the URIs of those that do not. A file is made only if something is in it.
    /// An object that nobody can have been told of is not among those gone: no export was made since
    /// `exports` was what it is, when it began to belong.
    pub(super) fn changes(
        &self,
        generation: u64,
        exports: u64,
        objects: &Path,
        gone: &Path,
    ) -> Result<(Option<Rendered>, Option<Rendered>), Fault> {
        let id = self.business_object.object.id.as_str();
        let (mut changed_file, mut gone_file): (Option<File>, Option<File>) = (None, None);
        let mut after: Option<String> = None;
        loop {
            self.go_on()?;
            let page =
                changes::changed(&self.store.read(), id, generation, after.as_deref(), PAGE)?;
            for Changed { uri, new_at } in &page {
                let uri = NamedNode::new_unchecked(uri);
                let file = match &mut changed_file {
                    Some(file) => file,
                    // One that turns out to have no object is taken back.
                    none => none.insert(File::create(objects.to_owned(), self)?),
                };
                if self.object(file, Wanted::Changed(&uri))? || *new_at == Some(exports) {
                    continue;
                }
                let file = match &mut gone_file {
                    Some(file) => file,
                    none => none.insert(File::create(gone.to_owned(), self)?),
                };
                file.gone(&uri)?;
            }
            match page.into_iter().last() {
                Some(last) => after = Some(last.uri),
                None => break,
            }
        }
        let changed_file = changed_file.map(File::finish).transpose()?;
        let gone_file = gone_file.map(File::finish).transpose()?;
        Ok((changed_file.filter(|(finished, _)| finished.objects > 0), gone_file))
    }

    /// Writes one object if it belongs.
    fn object(&self, file: &mut File, wanted: Wanted<'_>) -> Result<bool, Fault> {
        file.object.clear();
        let mut findings = Vec::new();
        let uri = match wanted {
            Wanted::Listed(Listed { iri, .. }, _) | Wanted::Changed(iri) => iri,
        };
        {
            let read = self.store.read();
            let is_known = match wanted {
                Wanted::Listed(listed, seen) => {
                    read.about_listed(listed, &mut file.about)?;
                    seen == read.sequence()
                }
                Wanted::Changed(uri) => {
                    read.about(uri.as_ref().into(), &mut file.about)?;
                    false
                }
            };
            if !is_known && !members::holds(&read, self.business_object, &file.about)? {
                return Ok(false);
            }
            let root = &self.business_object.mapping.root;
            let (about, out) = (&file.about, &mut file.object);
            view::render_about(&read, root, uri, about, out, &mut findings)?;
        }
        file.write()?;
        self.leave_room(file)?;
        for finding in findings {
            file.warn(&format!("{}: {finding}", uri.as_str()));
        }
        Ok(true)
    }

    fn go_on(&self) -> Result<(), Fault> {
        go_on(self.stop)
    }

    /// Leaves half of the disk's reserve to the commits and to what frees room.
    fn leave_room(&self, file: &mut File) -> Result<(), Fault> {
        let length = file.writer.bytes();
        if length < file.looked_at + STEP {
            return Ok(());
        }
        file.looked_at = length;
        if !self.disk.is_half_used() {
            return Ok(());
        }
        Err(Fault::new(
            Kind::NoRoom,
            format!(
                "the export was left off after {} MiB, when half of the room was used up that is kept in \
                 reserve on the disk of the gateway (service.limits.disk-reserve); make room there",
                length >> 20
            ),
        ))
    }
}

/// Refuses once the gateway stops.
pub(super) fn go_on(stop: &AtomicBool) -> Result<(), Fault> {
    if stop.load(Ordering::Relaxed) {
        return Err(Fault::new(
            Kind::Unavailable(std::time::Duration::from_secs(5)),
            "the gateway stops; the export was left off",
        ));
    }
    Ok(())
}

impl File {
    fn create(path: PathBuf, rendering: &Rendering<'_>) -> Result<Self, Fault> {
        let name = &rendering.business_object.object.definition.name;
        let writer = FileWriter::create(&path, name, rendering.export_date)
            .map_err(|error| spool::fault("writing", &path, &error))?;
        let (object, about) = (Vec::new(), About::default());
        let (warnings, more_warnings) = (Vec::new(), 0);
        Ok(Self { path, writer, looked_at: 0, object, about, warnings, more_warnings })
    }

    /// Appends `object`.
    fn write(&mut self) -> Result<(), Fault> {
        let written = self.writer.object(&self.object);
        written.map_err(|error| spool::fault("writing", &self.path, &error))
    }

    /// Appends an object of its URI alone.
    fn gone(&mut self, uri: &NamedNode) -> Result<(), Fault> {
        let object = serde_json::json!({ "uri": uri.as_str() });
        self.object = object.to_string().into_bytes();
        self.write()
    }

    fn warn(&mut self, warning: &str) {
        if self.warnings.len() < WARNINGS {
            self.warnings.push(warning.chars().take(WARNING).collect());
        } else {
            self.more_warnings += 1;
        }
    }

    fn finish(mut self) -> Result<Rendered, Fault> {
        if self.more_warnings > 0 {
            self.warnings.push(format!("and {} more", self.more_warnings));
        }
        let finished = self.writer.finish();
        let finished = finished.map_err(|error| spool::fault("writing", &self.path, &error))?;
        Ok((finished, self.warnings))
    }
}

/// Why no object belongs: the condition that matched nothing, in words.
pub(super) fn why_none(store: &Store, business_object: &Compiled) -> Result<String, Fault> {
    let read = store.read();
    for (predicate, value) in &business_object.conditions {
        let pattern = Pattern {
            predicate: Some(predicate.clone()),
            object: Some(value.clone()),
            ..Pattern::default()
        };
        if !read.any(&pattern)? {
            return Ok(format!(
                "no stored object has {value} as {predicate}, which a condition of this Business Object asks \
                 for; ingest such data or mend the condition"
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
        namespace::get(&read, name)?.map_or_else(String::new, |n| format!(" <{}>", n.uri_base));
    Ok(format!(
        "the graph{base} of the namespace `{name}` holds no object, and the Business Object has no condition"
    ))
}
