//! Pages of the wanted entries of a list, such as the ones that the caller may see.
use penstock_base::error::GatewayError;

/// The maximum number of entries that are read for a page of an API key for certain Business Objects.
pub(crate) const MAX_READ_ENTRIES: usize = 10_000;

/// A page of the entries that were found.
#[derive(Debug)]
pub struct FoundPage<T> {
    /// The entries, in the order of the list.
    pub items: Vec<T>,
    /// The id of the entry after which the next page begins. `None` if there are no more entries. A page that has one can
    /// have fewer entries than asked for, even none: then enough was read.
    pub next: Option<String>,
}

/// Collects a page of the entries that match.
pub(crate) fn collect_matches<T>(
    entries: impl Iterator<Item = Result<T, GatewayError>>,
    is_match: impl Fn(&T) -> bool,
    id_of: impl Fn(&T) -> &str,
    limit: usize,
    max_read: usize,
) -> Result<FoundPage<T>, GatewayError> {
    let mut items: Vec<T> = Vec::new();
    // The last entry that was read, unless it is the last of `items`.
    let mut skipped = None;
    for (read_count, entry) in entries.enumerate() {
        let entry = entry?;
        let is_wanted = is_match(&entry);
        if read_count == max_read || is_wanted && items.len() == limit {
            let last = items.last().map(|last| id_of(last).to_owned());
            // The entries after the last of a full page are read again, so that its cursor names none that is not wanted.
            let next = if items.len() == limit { last } else { skipped.or(last) };
            return Ok(FoundPage { items, next });
        }
        if is_wanted {
            skipped = None;
            items.push(entry);
        } else {
            skipped = Some(id_of(&entry).to_owned());
        }
    }
    Ok(FoundPage { items, next: None })
}
