//! Reads dead letters, in pages.
use super::shares::{Share, read_removed, read_share};
use super::{BY_INGESTION, DeadLetter, LETTERS, Origin, TEXTS, Totals, parse_id};
use penstock_base::error::GatewayError;
use penstock_store::{DocumentRange, Read, ReadStore};

/// The number of entries that are read at a time.
const ENTRIES_PER_READ: usize = 200;

/// A page of dead letters.
#[derive(Debug, Default)]
pub struct ListedLetters {
    /// The dead letters.
    pub letters: Vec<DeadLetter>,
    /// The id to continue after; `None` at the end of the list.
    pub next: Option<String>,
}

/// Returns the dead letter with this id.
pub fn find_letter(read: &impl Read, id: &str) -> Result<Option<DeadLetter>, GatewayError> {
    let Some(id) = parse_id(id) else { return Ok(None) };
    read.read_document(LETTERS, &id)?.as_deref().map(DeadLetter::decode).transpose()
}

/// Returns the text of the dead letter with this id, as received.
pub fn read_text(read: &impl Read, id: &str) -> Result<Option<Vec<u8>>, GatewayError> {
    let Some(id) = parse_id(id) else { return Ok(None) };
    Ok(read.read_document(TEXTS, &id)?)
}

/// Returns the totals of all dead letters.
pub fn read_totals(read: &impl Read) -> Result<Totals, GatewayError> {
    let Share { letters, bytes } = read_share(read, b"")?;
    let (evicted, expired) = read_removed(read)?;
    Ok(Totals { letters, bytes, evicted, expired })
}

/// Lists dead letters of one ingestion in the order of the request, those after the id `after`: at most `limit`, and
/// only those of this origin, if one is given.
pub fn list_ingestion_letters(
    store: &ReadStore,
    ingestion: &str,
    origin: Option<&Origin>,
    after: Option<&str>,
    limit: usize,
) -> Result<ListedLetters, GatewayError> {
    let Some(ingestion) = parse_id(ingestion) else { return Ok(ListedLetters::default()) };
    let after = after.and_then(parse_id).map(|after| [ingestion, after].concat());
    let page = Page { collection: BY_INGESTION, prefix: &ingestion, is_reverse: false };
    page.list(store, origin, after, limit)
}

/// Lists dead letters of all ingestions, newest first, those before the id `after`: at most `limit`, and only those of
/// this origin, if one is given.
pub fn list_letters(
    store: &ReadStore,
    origin: Option<&Origin>,
    after: Option<&str>,
    limit: usize,
) -> Result<ListedLetters, GatewayError> {
    let after = after.and_then(parse_id).map(|after| after.to_vec());
    let page = Page { collection: LETTERS, prefix: &[], is_reverse: true };
    page.list(store, origin, after, limit)
}

/// Lists dead letters of one origin, oldest first, those after the id `after`: at most `limit`.
pub fn list_oldest_letters(
    store: &ReadStore,
    origin: &Origin,
    after: Option<&str>,
    limit: usize,
) -> Result<ListedLetters, GatewayError> {
    let after = after.and_then(parse_id).map(|after| after.to_vec());
    let page = Page { collection: LETTERS, prefix: &[], is_reverse: false };
    page.list(store, Some(origin), after, limit)
}

/// A list whose keys end with the id of a dead letter.
struct Page<'p> {
    collection: &'static str,
    prefix: &'p [u8],
    is_reverse: bool,
}

impl Page<'_> {
    fn list(
        &self,
        store: &ReadStore,
        origin: Option<&Origin>,
        mut after: Option<Vec<u8>>,
        limit: usize,
    ) -> Result<ListedLetters, GatewayError> {
        let mut found = ListedLetters::default();
        loop {
            let read = store.read();
            let range = DocumentRange {
                prefix: self.prefix,
                after: after.as_deref(),
                reverse: self.is_reverse,
                limit: ENTRIES_PER_READ,
            };
            let entries = read.read_documents(self.collection, range)?;
            let Some((last, _)) = entries.last() else { return Ok(found) };
            after = Some(last.clone());
            for (key, value) in &entries {
                let value = match key.get(self.prefix.len()..) {
                    Some(id) if !self.prefix.is_empty() => read.read_document(LETTERS, id)?,
                    _ => Some(value.clone()),
                };
                // What cannot be read is logged, and does not hide the others.
                let letter = value.as_deref().and_then(|value| DeadLetter::decode(value).ok());
                let Some(letter) = letter else { continue };
                if origin.is_some_and(|origin| letter.origin != *origin) {
                    continue;
                }
                if found.letters.len() == limit {
                    found.next = found.letters.last().map(|letter| letter.id.clone());
                    return Ok(found);
                }
                found.letters.push(letter);
            }
        }
    }
}
