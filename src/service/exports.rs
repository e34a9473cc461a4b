//! Exports: listing them, their files, what operators do with them, and pushes.
mod changed;
mod difference;
mod objects;

pub use changed::{ChangedMember, ChangedObject};
pub use difference::{DifferenceList, ExportDifference, compare_export};
pub use objects::ExportObject;

use crate::audit::change_event;
use crate::gateway::Gateway;
use crate::pages::{FoundPage, collect_matches};
use objects::ObjectReader;
use penstock_auth::{Authorized, Caller, Role};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_export::{EmptyRun, ExportRequester, Exporter, OpenedExport};
use penstock_model::mapping::{Entry, Field, Form, Level};
use penstock_model::resource::Compiled;
use penstock_resources::export::{Export, ExportStatus, Push};
use serde_json::{Map, Value};
use std::io::Read as _;
use std::sync::Arc;

/// The maximum number of bytes after which a preview reads no further object.
const MAX_PREVIEW_BYTES: u64 = 1 << 20;

/// The maximum number of exports that are read to find some by their keys.
const MAX_SEARCHED_EXPORTS: usize = 2_000;

/// What an operator does with an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportAction {
    /// Retries the delivery of a queued export now, or queues a parked one again at its place.
    Retry,
    /// Parks a queued export, so that the exports after it are delivered.
    Park,
    /// Queues a delivered file again under its own key.
    Replay,
}

/// Selects exports. The default selects all.
#[derive(Debug, Clone, Default)]
pub struct ExportFilter {
    /// The id of the Business Object.
    pub business_object: Option<String>,
    /// The bucketName.
    pub target: Option<String>,
    /// The states.
    pub statuses: Option<&'static [ExportStatus]>,
}

/// A search for exports, newest first.
#[derive(Debug, Clone)]
pub struct ExportSearch {
    /// Which exports to find.
    pub filter: ExportFilter,
    /// The id of the export after which the search begins.
    pub after: Option<String>,
    /// The maximum number of exports to find.
    pub limit: usize,
    /// The maximum number of exports to read.
    pub max_read: usize,
}

/// An export with the beginning of its file.
#[derive(Debug)]
pub struct ExportPreview {
    /// The export.
    pub entry: Export,
    /// The first bytes of the file, or the reason why it cannot be read.
    pub beginning: Result<Vec<u8>, String>,
    /// The first objects of the file, or the reason why there are none to show.
    pub objects: Result<Vec<ExportObject>, String>,
}

impl ExportFilter {
    /// Returns whether the filter selects this export.
    pub fn is_match(&self, entry: &Export) -> bool {
        let is = |wanted: &Option<String>, value: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted == value)
        };
        is(&self.business_object, &entry.business_object)
            && is(&self.target, &entry.target)
            && self.statuses.is_none_or(|statuses| statuses.contains(&entry.status))
    }
}

/// Lists the exports that the caller may see, newest first, starting after the export with the id `after`. The exports
/// that wait for spool capacity come first.
///
/// # Errors
/// `ErrorClass::Malformed` if there is no export with the id `after`, for example because it was removed.
pub async fn list_exports(
    gateway: &Gateway,
    by: &Authorized,
    after: Option<String>,
    limit: usize,
) -> Result<FoundPage<Export>, GatewayError> {
    let by = by.clone();
    gateway
        .read(move |gateway| {
            let is_visible = |entry: &Export| by.may_use(&entry.business_object);
            let places = &gateway.hidden_places;
            let entries = gateway.exporter.iterate(after.map(|after| places.find_entry(after)));
            places.collect_visible(entries, is_visible, |entry| entry.id.as_str(), limit)
        })
        .await
}

/// Finds exports with a filter.
///
/// # Errors
/// As [`list_exports`].
pub async fn find_exports(
    gateway: &Gateway,
    search: ExportSearch,
) -> Result<FoundPage<Export>, GatewayError> {
    let ExportSearch { filter, after, limit, max_read } = search;
    gateway
        .read(move |gateway| {
            let entries = gateway.exporter.iterate(after);
            let is_match = |entry: &Export| filter.is_match(entry);
            collect_matches(entries, is_match, |entry| entry.id.as_str(), limit, max_read)
        })
        .await
}

/// Finds the export with this id, or else those whose key contains the text in any case, among the newest ones, newest
/// first.
///
/// # Errors
/// The errors of the store.
pub async fn find_exports_by_text(
    gateway: &Gateway,
    text: &str,
    limit: usize,
) -> Result<Vec<Export>, GatewayError> {
    let text = text.to_owned();
    gateway
        .read(move |gateway| {
            if uuid::Uuid::parse_str(&text).is_ok()
                && let Some(found) = gateway.exporter.get(&text)?
            {
                return Ok(vec![found]);
            }
            let part = text.to_lowercase();
            let newest = gateway.exporter.iterate(None).take(MAX_SEARCHED_EXPORTS);
            let is_match = |entry: &Result<Export, GatewayError>| {
                entry.as_ref().map_or(true, |entry| entry.key.to_lowercase().contains(&part))
            };
            newest.filter(is_match).take(limit).collect()
        })
        .await
}

/// Returns the first exports in a target's queue, in delivery order, and the length of the queue.
///
/// # Errors
/// The errors of the store.
pub async fn list_queue(
    gateway: &Gateway,
    target: &str,
    limit: usize,
) -> Result<(Vec<Export>, usize), GatewayError> {
    let target = target.to_owned();
    gateway.read(move |gateway| gateway.exporter.list_queue(&target, limit)).await
}

/// Returns the export with this id.
///
/// # Errors
/// `ErrorClass::NotFound` if there is none.
pub async fn find_export(gateway: &Gateway, id: &str) -> Result<Export, GatewayError> {
    let id = id.to_owned();
    gateway.read(move |gateway| read_entry(&gateway.exporter, &id)).await
}

fn read_entry(exporter: &Exporter, id: &str) -> Result<Export, GatewayError> {
    exporter.get(id)?.ok_or_else(|| {
        GatewayError::new(ErrorClass::NotFound, format!("there is no export with the id {id:?}"))
    })
}

/// Opens the file of an export.
///
/// # Errors
/// - `ErrorClass::NotFound` if there is no such export, or if its file is no longer kept
/// - `ErrorClass::Forbidden` if the caller is limited to Business Objects, and the file may show objects of others
pub async fn open_export(
    gateway: &Gateway,
    by: &Caller,
    id: &str,
) -> Result<OpenedExport, GatewayError> {
    let (is_limited, id) = (by.business_objects().is_some(), id.to_owned());
    gateway
        .read(move |gateway| {
            let opened = gateway.exporter.open_content(&id)?;
            if is_limited {
                check_shows_no_others(gateway, &opened)?;
            }
            Ok(opened)
        })
        .await
}

/// Checks that the file of an export cannot show objects of other Business Objects. It shows nested objects in full to
/// every reader.
fn check_shows_no_others(gateway: &Gateway, opened: &OpenedExport) -> Result<(), GatewayError> {
    let entry = &opened.entry;
    let shows_no_others = match gateway.catalogue.get(&entry.business_object) {
        None => false,
        Some(compiled) => {
            let root = &compiled.mapping.root;
            let nests_objects = root.fields.iter().any(Field::contains_objects);
            // An earlier mapping may have nested objects, so its file is read. Times do not show which mapping it was:
            // an export that is rendered before a change of the definition can be queued after it.
            let is_of_mapping = opened.schema_version == Some(compiled.object.version);
            !nests_objects
                && (is_of_mapping
                    || fits_mapping(root.level(), gateway.exporter.open_content(&entry.id)?))
        }
    };
    if shows_no_others {
        return Ok(());
    }
    Err(GatewayError::new(
        ErrorClass::Forbidden,
        "an export shows nested objects in full, also those that this API key may not read; read the objects instead, or \
         the file with a key that is not limited to Business Objects",
    ))
}

/// Returns whether no object of a file may show another one, if these are the members of its objects. A file that cannot be
/// read may show some.
fn fits_mapping(level: Level<'_>, content: OpenedExport) -> bool {
    let Ok(mut reader) = ObjectReader::new(content) else { return false };
    loop {
        match reader.next_object() {
            Ok(Some(object)) if may_show_others(level, &object.members) => return false,
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// Returns whether members of an object, or of a group in it, may show another object: JSON objects, but no groups,
/// language maps or `json` values. Of these, one with a `uri` may show another object of an earlier mapping.
fn may_show_others(level: Level<'_>, members: &Map<String, Value>) -> bool {
    let is_other = |_: &Map<String, Value>| true;
    let has_uri = |object: &Map<String, Value>| object.contains_key("uri");
    members.iter().any(|(name, value)| match (level.find(name), value) {
        (Some(Entry::Group(inner)), Value::Object(members)) => {
            has_uri(members) || may_show_others(inner, members)
        }
        (Some(Entry::Field(_, field)), _) if has_own_objects(field) => {
            contains_object(value, &has_uri)
        }
        _ => contains_object(value, &is_other),
    })
}

/// Returns whether the values of a field are JSON objects that belong to the object of the field.
fn has_own_objects(field: &Field) -> bool {
    field.property().is_some_and(|property| {
        property.value.language_map().is_some() || property.value.kind().form == Form::Json
    })
}

fn contains_object(value: &Value, is_wanted: &dyn Fn(&Map<String, Value>) -> bool) -> bool {
    match value {
        Value::Object(members) => {
            is_wanted(members) || members.values().any(|value| contains_object(value, is_wanted))
        }
        Value::Array(values) => values.iter().any(|value| contains_object(value, is_wanted)),
        _ => false,
    }
}

/// Returns the export with this id, at most `max_bytes` of its file, and at most `max_objects` of its objects that
/// begin in its first MiB.
///
/// # Errors
/// `ErrorClass::NotFound` if there is no such export.
pub async fn preview_export(
    gateway: &Gateway,
    id: &str,
    max_bytes: usize,
    max_objects: usize,
) -> Result<ExportPreview, GatewayError> {
    let id = id.to_owned();
    gateway
        .read(move |gateway| {
            let exporter = &gateway.exporter;
            let entry = read_entry(exporter, &id)?;
            let open = || exporter.open_content(&id).map_err(|error| error.detail);
            let beginning = open().and_then(|content| read_beginning(content, max_bytes));
            let objects = open().and_then(|content| read_first_objects(content, max_objects));
            Ok(ExportPreview { entry, beginning, objects })
        })
        .await
}

fn read_first_objects(
    content: OpenedExport,
    max_objects: usize,
) -> Result<Vec<ExportObject>, String> {
    let mut reader = ObjectReader::new(content)?;
    let mut objects = Vec::new();
    while objects.len() < max_objects
        && reader.read_bytes() < MAX_PREVIEW_BYTES
        && let Some(object) = reader.next_object()?
    {
        objects.push(object);
    }
    Ok(objects)
}

/// Returns the last run of a Business Object, if it exported nothing. It is known since the start of the gateway.
pub fn find_empty_run(gateway: &Gateway, business_object: &str) -> Option<EmptyRun> {
    gateway.exporter.find_empty_run(business_object)
}

fn read_beginning(content: OpenedExport, max_bytes: usize) -> Result<Vec<u8>, String> {
    let length = usize::try_from(content.length).unwrap_or(max_bytes);
    let mut bytes = Vec::with_capacity(max_bytes.min(length));
    match content.file.take(max_bytes as u64).read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(error) => Err(format!("it could not be read: {error}")),
    }
}

/// Retries, parks or replays an export, and returns it after the change.
///
/// # Errors
/// `ErrorClass::NotFound` if there is no such export; `ErrorClass::Conflict` if its state does not allow the action;
/// the errors of the check of `by`.
pub async fn change_export(
    gateway: &Gateway,
    by: &Authorized,
    id: &str,
    action: ExportAction,
) -> Result<Export, GatewayError> {
    let id = id.to_owned();
    gateway
        .run(by, Role::Admin, move |gateway, by| {
            let exporter = &gateway.exporter;
            let (what, changed) = match action {
                ExportAction::Retry => ("export.retried", exporter.retry(by, &id)?),
                ExportAction::Park => ("export.parked", exporter.park(by, &id)?),
                ExportAction::Replay => ("export.replayed", exporter.replay(by, &id)?),
            };
            let detail = format!("{}, {}", changed.id, changed.key);
            gateway.auth.audit.record_event(change_event(by, what, detail));
            Ok(changed)
        })
        .await
}

/// Exports all objects of a Business Object now. `traceparent` is the trace of the request (W3C Trace Context). When
/// this returns, the files are on disk and queued. Waits for a permit; if the caller drops the future meanwhile, nothing
/// is exported.
///
/// # Errors
/// Those of [`Exporter::acquire_push_permit`] and [`Exporter::push`].
pub async fn push_business_object(
    gateway: &Gateway,
    by: &Authorized,
    business_object: Arc<Compiled>,
    traceparent: String,
) -> Result<Push, GatewayError> {
    by.require_role(Role::Contributor)?;
    let permit = gateway.exporter.acquire_push_permit(by.id(), &business_object).await?;
    gateway
        .run(by, Role::Contributor, move |gateway, by| {
            // The permit is held until the thread is done, even if the client has disconnected.
            let _permit = permit;
            let (account, traceparent) = (Some(by.id()), Some(traceparent.as_str()));
            let requester = ExportRequester { check: by, account, traceparent };
            Ok(gateway.exporter.push(&business_object, requester)?.into())
        })
        .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_resources::export::ExportKind;

    fn entry(id: usize, target: &str) -> Export {
        Export {
            id: id.to_string(),
            business_object: "Pump".to_owned(),
            business_object_name: "Pump".to_owned(),
            target: target.to_owned(),
            sequence: 1,
            kind: ExportKind::Full,
            status: if id.is_multiple_of(2) {
                ExportStatus::Delivered
            } else {
                ExportStatus::Blocked
            },
            object_count: 0,
            bytes: 0,
            data_checksum: String::new(),
            sha256: String::new(),
            key: String::new(),
            created_at: String::new(),
            clock: None,
            commit: None,
            delivered_at: None,
            attempts: 0,
            last_error: None,
            pushed_by: None,
            traceparent: None,
            warnings: Vec::new(),
        }
    }

    /// Returns the ids that all pages of a search in a list of ten exports find, and the number of pages.
    fn find_all(filter: &ExportFilter, limit: usize, max_read: usize) -> (Vec<usize>, usize) {
        let all: Vec<_> = (0..10).map(|id| entry(id, if id < 7 { "a" } else { "b" })).collect();
        let (mut ids, mut pages, mut start) = (Vec::new(), 0, Some(0));
        while let Some(first) = start {
            let entries = all.iter().skip(first).cloned().map(Ok);
            let is_match = |entry: &Export| filter.is_match(entry);
            let found =
                collect_matches(entries, is_match, |entry| entry.id.as_str(), limit, max_read);
            let found = found.unwrap();
            assert!(found.items.len() <= limit);
            if let (Some(next), Some(last)) = (&found.next, found.items.get(limit - 1)) {
                assert_eq!(*next, last.id, "the cursor of a full page names its last entry");
            }
            ids.extend(found.items.iter().map(|entry| entry.id.parse::<usize>().unwrap()));
            start = found.next.map(|id| id.parse::<usize>().unwrap() + 1);
            pages += 1;
        }
        (ids, pages)
    }

    #[test]
    fn pages_of_a_search_find_each_match_once() {
        let all = ExportFilter::default();
        assert_eq!(find_all(&all, 3, usize::MAX), ((0..10).collect(), 4));
        assert_eq!(find_all(&all, 10, usize::MAX), ((0..10).collect(), 1));
        let blocked = ExportFilter { statuses: Some(&[ExportStatus::Blocked]), ..all.clone() };
        assert_eq!(find_all(&blocked, 2, usize::MAX), (vec![1, 3, 5, 7, 9], 3));
        // A page ends early once enough is read; the next one continues there.
        assert_eq!(find_all(&blocked, 2, 4), (vec![1, 3, 5, 7, 9], 3));
        let elsewhere = ExportFilter { target: Some("b".to_owned()), ..all };
        assert_eq!(find_all(&elsewhere, 5, 4), (vec![7, 8, 9], 3));
        let nothing = ExportFilter { business_object: Some("Valve".to_owned()), ..elsewhere };
        assert_eq!(find_all(&nothing, 5, 20), (vec![], 1));
    }
}
