//! Compares the file of an export with the ones before of the same Business Object and target.
use super::changed::ChangedObject;
use super::objects::{ExportObject, ObjectReader};
use super::read_entry;
use crate::gateway::Gateway;
use penstock_base::error::GatewayError;
use penstock_export::Exporter;
use penstock_resources::export::{Export, ExportKind, ExportStatus};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The maximum number of objects that are listed for each kind of difference.
const MAX_LISTED_OBJECTS: usize = 20;
/// The maximum number of bytes of the URIs that are listed for each kind of difference.
const MAX_LISTED_URI_BYTES: usize = 256 << 10;
/// The maximum number of bytes that are read of all files.
const MAX_READ_BYTES: u64 = 64 << 20;
/// The maximum number of objects of an export of changes that are compared.
const MAX_CHANGED_OBJECTS: u64 = 2_000;
/// The maximum number of bytes of an export of changes that is compared. Its objects are held in memory.
const MAX_CHANGED_BYTES: u64 = 4 << 20;
/// The maximum number of exports, of all Business Objects and targets, that are searched for the ones before.
const MAX_READ_EXPORTS: usize = 2_000;

/// What an export changes for a consumer.
#[derive(Debug, Default)]
pub struct ExportDifference {
    /// The newest export that it is compared with; `None` if consumers had no object before.
    pub previous: Option<Export>,
    /// The sequence of the oldest export that it is compared with.
    pub oldest_sequence: Option<u64>,
    /// The URIs of objects that the consumer did not have.
    pub added: DifferenceList<String>,
    /// Objects with other values.
    pub changed: DifferenceList<ChangedObject>,
    /// The URIs of objects that the consumer had.
    pub removed: DifferenceList<String>,
    /// The number of objects with the same values.
    pub unchanged_count: u64,
}

/// The first objects of one kind of difference.
#[derive(Debug)]
pub struct DifferenceList<T> {
    /// The number of all of them.
    pub count: u64,
    /// The first ones.
    pub first: Vec<T>,
    /// The bytes of the URIs of the first ones.
    listed_bytes: usize,
}

impl<T> Default for DifferenceList<T> {
    fn default() -> Self {
        Self { count: 0, first: Vec::new(), listed_bytes: 0 }
    }
}

impl<T> DifferenceList<T> {
    /// Counts an object, and lists it if it is one of the first.
    fn add(&mut self, uri: &str, to_item: impl FnOnce() -> T) {
        self.count += 1;
        if !self.is_full() {
            self.listed_bytes += uri.len();
            self.first.push(to_item());
        }
    }

    fn is_full(&self) -> bool {
        self.first.len() == MAX_LISTED_OBJECTS || self.listed_bytes > MAX_LISTED_URI_BYTES
    }
}

impl DifferenceList<String> {
    fn add_uri(&mut self, uri: &str) {
        self.add(uri, || uri.to_owned());
    }
}

impl ExportDifference {
    /// Adds an object that consumers had before.
    fn compare(&mut self, before: &ExportObject, now: &ExportObject) {
        if before.members == now.members {
            self.unchanged_count += 1;
        } else {
            self.changed.add(&now.uri, || ChangedObject::new(before, now));
        }
    }
}

/// Compares an export with the one before. The inner error says why that is not possible. Only one comparison runs at a
/// time, because it reads a lot.
///
/// # Errors
/// `ErrorClass::NotFound` if there is no such export.
pub async fn compare_export(
    gateway: &Gateway,
    id: &str,
) -> Result<Result<ExportDifference, String>, GatewayError> {
    let Ok(permit) = Arc::clone(&gateway.comparison_permit).try_acquire_owned() else {
        return Ok(Err("another comparison is running; try again in a few seconds".to_owned()));
    };
    let id = id.to_owned();
    gateway
        .read(move |gateway| {
            // The permit is held until the thread is done, even if the client has disconnected.
            let _permit = permit;
            let entry = read_entry(&gateway.exporter, &id)?;
            let files = Files { exporter: &gateway.exporter };
            match entry.kind {
                ExportKind::Full => files.compare_full(&entry),
                ExportKind::Incremental => files.compare_changes(&entry),
                ExportKind::Deleted => Ok(files
                    .list_first(&entry)
                    .map(|removed| ExportDifference { removed, ..ExportDifference::default() })),
            }
        })
        .await
}

/// The objects of an export that are not found in an earlier one yet: their JSON by URI. Parsed, they would take many
/// times the memory.
type PendingObjects = BTreeMap<String, String>;

/// The files of the exports.
struct Files<'a> {
    exporter: &'a Exporter,
}

impl Files<'_> {
    fn open_file(&self, entry: &Export) -> Result<ObjectReader, String> {
        let opened = self.exporter.open_content(&entry.id).map_err(|error| {
            format!("the file of export {} is not kept: {}", entry.sequence, error.detail)
        })?;
        ObjectReader::new(opened)
    }

    /// Returns the earlier exports for the same target, the newest first.
    fn list_earlier(&self, entry: &Export) -> impl Iterator<Item = Result<Export, GatewayError>> {
        let all = self.exporter.iterate(Some(entry.id.clone())).take(MAX_READ_EXPORTS);
        let (target, name, sequence) =
            (entry.target.clone(), entry.business_object_name.clone(), entry.sequence);
        all.filter(move |other| {
            other.as_ref().map_or(true, |other| {
                other.target == target
                    && other.business_object_name == name
                    && other.sequence < sequence
            })
        })
    }

    /// Compares all objects with those of the full export before. Both files have the order of the URIs.
    fn compare_full(
        &self,
        entry: &Export,
    ) -> Result<Result<ExportDifference, String>, GatewayError> {
        let mut reaches_first = entry.sequence == 1;
        for earlier in self.list_earlier(entry) {
            let earlier = earlier?;
            reaches_first |= earlier.sequence == 1;
            // Consumers do not have what is parked.
            if earlier.kind == ExportKind::Full && earlier.status != ExportStatus::Parked {
                return Ok(self.merge_files(earlier, entry));
            }
        }
        if !reaches_first {
            return Ok(Err(describe_missing_base()));
        }
        Ok(self
            .list_first(entry)
            .map(|added| ExportDifference { added, ..ExportDifference::default() }))
    }

    /// Lists the first objects of a file. Their number is known without reading the others.
    fn list_first(&self, entry: &Export) -> Result<DifferenceList<String>, String> {
        let mut reader = self.open_file(entry)?;
        let mut list = DifferenceList::default();
        while !list.is_full()
            && let Some(object) = reader.next_object()?
        {
            list.add_uri(&object.uri);
        }
        Ok(DifferenceList { count: entry.object_count, ..list })
    }

    fn merge_files(&self, previous: Export, entry: &Export) -> Result<ExportDifference, String> {
        let (mut old, mut new) = (
            SortedReader::new(self.open_file(&previous)?),
            SortedReader::new(self.open_file(entry)?),
        );
        let mut found = ExportDifference {
            oldest_sequence: Some(previous.sequence),
            previous: Some(previous),
            ..ExportDifference::default()
        };
        let (mut before, mut now) = (old.next_object()?, new.next_object()?);
        loop {
            if old.reader.read_bytes() + new.reader.read_bytes() > MAX_READ_BYTES {
                return Err(describe_too_large());
            }
            let order = match (&before, &now) {
                (None, None) => return Ok(found),
                (None, Some(_)) => Ordering::Greater,
                (Some(_), None) => Ordering::Less,
                (Some(before), Some(now)) => before.uri.cmp(&now.uri),
            };
            let taken_before = if order.is_le() { before.take() } else { None };
            let taken_now = if order.is_ge() { now.take() } else { None };
            match (taken_before, taken_now) {
                (Some(was), Some(is)) => found.compare(&was, &is),
                (Some(was), None) => found.removed.add_uri(&was.uri),
                (None, Some(is)) => found.added.add_uri(&is.uri),
                (None, None) => {}
            }
            if order.is_le() {
                before = old.next_object()?;
            }
            if order.is_ge() {
                now = new.next_object()?;
            }
        }
    }

    /// Compares changed objects with their last version in the exports before, back to the last full one.
    fn compare_changes(
        &self,
        entry: &Export,
    ) -> Result<Result<ExportDifference, String>, GatewayError> {
        let mut pending = match self.read_pending(entry) {
            Ok(objects) => objects,
            Err(why) => return Ok(Err(why)),
        };
        let mut found = ExportDifference::default();
        let mut budget = MAX_READ_BYTES.saturating_sub(entry.bytes);
        let mut reaches_base = entry.sequence == 1;
        for earlier in self.list_earlier(entry) {
            let earlier = earlier?;
            reaches_base |= earlier.sequence == 1;
            // Consumers do not have what is parked.
            if earlier.status == ExportStatus::Parked {
                continue;
            }
            if let Err(why) = self.find_in_file(&earlier, &mut pending, &mut found, &mut budget) {
                return Ok(Err(why));
            }
            let is_full = earlier.kind == ExportKind::Full;
            reaches_base |= is_full;
            found.oldest_sequence = Some(earlier.sequence);
            found.previous.get_or_insert(earlier);
            if is_full || pending.is_empty() {
                break;
            }
        }
        if !pending.is_empty() && !reaches_base {
            return Ok(Err(describe_missing_base()));
        }
        for uri in pending.keys() {
            found.added.add_uri(uri);
        }
        Ok(Ok(found))
    }

    fn read_pending(&self, entry: &Export) -> Result<PendingObjects, String> {
        if entry.object_count > MAX_CHANGED_OBJECTS || entry.bytes > MAX_CHANGED_BYTES {
            return Err(format!(
                "only exports of up to {MAX_CHANGED_OBJECTS} changed objects and {} MiB are compared here",
                MAX_CHANGED_BYTES >> 20
            ));
        }
        let mut reader = self.open_file(entry)?;
        let mut objects = BTreeMap::new();
        while let Some(object) = reader.next_object()? {
            let text = serde_json::to_string(&object.members)
                .map_err(|error| format!("an object could not be kept: {error}"))?;
            objects.insert(object.uri, text);
        }
        Ok(objects)
    }

    /// Compares the pending objects that an earlier export has.
    fn find_in_file(
        &self,
        earlier: &Export,
        pending: &mut PendingObjects,
        found: &mut ExportDifference,
        budget: &mut u64,
    ) -> Result<(), String> {
        *budget = budget.checked_sub(earlier.bytes).ok_or_else(describe_too_large)?;
        let mut reader = self.open_file(earlier)?;
        while let Some(before) = reader.next_object()? {
            let Some(text) = pending.remove(&before.uri) else { continue };
            if earlier.kind == ExportKind::Deleted {
                found.added.add_uri(&before.uri);
            } else {
                found.compare(&before, &ExportObject::parse(text.as_bytes())?);
            }
        }
        Ok(())
    }
}

fn describe_too_large() -> String {
    format!("the files have more than the {} MiB that are compared here", MAX_READ_BYTES >> 20)
}

fn describe_missing_base() -> String {
    format!(
        "no earlier full export for the same target is among the last {MAX_READ_EXPORTS} exports that are recorded \
         before it"
    )
}

/// Reads a file whose objects have the order of their URIs.
struct SortedReader {
    reader: ObjectReader,
    last: String,
}

impl SortedReader {
    fn new(reader: ObjectReader) -> Self {
        Self { reader, last: String::new() }
    }

    fn next_object(&mut self) -> Result<Option<ExportObject>, String> {
        let next = self.reader.next_object()?;
        if let Some(object) = &next {
            if object.uri <= self.last {
                return Err("the objects of a file are not in the order of their URIs".to_owned());
            }
            self.last.clone_from(&object.uri);
        }
        Ok(next)
    }
}
