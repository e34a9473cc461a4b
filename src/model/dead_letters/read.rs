//! Reads dead letters, in pages.
use super::record::{BY_INGESTION, DeadLetter, LETTERS, Origin, TEXTS};
use super::shares::{Share, Totals, read_removed, read_share};
use penstock_base::error::GatewayError;
use penstock_store::{Error, Read, ReadStore};
use uuid::Uuid;

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
pub fn find_letter(read: &dyn Read, id: &str) -> Result<Option<DeadLetter>, GatewayError> {
    let Ok(id) = Uuid::parse_str(id) else { return Ok(None) };
    Ok(LETTERS.get(read, id)?)
}

/// Returns the text of the dead letter with this id, as received.
pub fn read_text(read: &dyn Read, id: &str) -> Result<Option<Vec<u8>>, GatewayError> {
    let Ok(id) = Uuid::parse_str(id) else { return Ok(None) };
    Ok(TEXTS.get(read, id)?)
}

/// Returns the totals of all dead letters.
pub fn read_totals(read: &dyn Read) -> Result<Totals, GatewayError> {
    let Share { letters, bytes } = read_share(read, None)?;
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
    let Ok(ingestion) = Uuid::parse_str(ingestion) else { return Ok(ListedLetters::default()) };
    let after = after.and_then(|after| Some((ingestion, after.parse().ok()?)));
    let rows = BY_INGESTION.scan().prefix::<Uuid>(ingestion).after(after);
    let letters = rows.pages(|| store.read(), ENTRIES_PER_READ).map(|row| {
        let (_, id) = row?.key()?;
        LETTERS.get_or_log(&store.read(), id)
    });
    collect_letters(letters, origin, limit)
}

/// Lists dead letters of all ingestions, newest first, those before the id `after`: at most `limit`, and only those of
/// this origin, if one is given.
pub fn list_letters(
    store: &ReadStore,
    origin: Option<&Origin>,
    after: Option<&str>,
    limit: usize,
) -> Result<ListedLetters, GatewayError> {
    let rows = LETTERS.scan().after(after.and_then(|id| id.parse().ok())).reverse();
    let letters = rows.pages(|| store.read(), ENTRIES_PER_READ);
    collect_letters(letters.map(|row| Ok(row?.value_or_log())), origin, limit)
}

/// Lists dead letters of one origin, oldest first, those after the id `after`: at most `limit`.
pub fn list_oldest_letters(
    store: &ReadStore,
    origin: &Origin,
    after: Option<&str>,
    limit: usize,
) -> Result<ListedLetters, GatewayError> {
    let rows = LETTERS.scan().after(after.and_then(|id| id.parse().ok()));
    let letters = rows.pages(|| store.read(), ENTRIES_PER_READ);
    collect_letters(letters.map(|row| Ok(row?.value_or_log())), Some(origin), limit)
}

/// Collects the dead letters of this origin, if one is given. Those that cannot be read are `None`, and hide no others.
fn collect_letters(
    letters: impl Iterator<Item = Result<Option<DeadLetter>, Error>>,
    origin: Option<&Origin>,
    limit: usize,
) -> Result<ListedLetters, GatewayError> {
    let mut found = ListedLetters::default();
    for letter in letters {
        let Some(letter) = letter? else { continue };
        if origin.is_some_and(|origin| letter.origin != *origin) {
            continue;
        }
        if found.letters.len() == limit {
            found.next = found.letters.last().map(|letter| letter.id.clone());
            break;
        }
        found.letters.push(letter);
    }
    Ok(found)
}
