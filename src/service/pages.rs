//! Pages of the wanted entries of a list, such as the ones that the caller may see.
use parking_lot::Mutex;
use penstock_base::error::GatewayError;
use std::collections::VecDeque;
use uuid::Uuid;

/// The maximum number of entries that are read for a page of an API key for certain Business Objects.
const MAX_READ_ENTRIES: usize = 10_000;
/// The maximum number of places among hidden entries that are remembered, each in about 150 bytes.
const MAX_HIDDEN_PLACES: usize = 1_000;

/// A page of the entries that were found.
#[derive(Debug)]
pub struct FoundPage<T> {
    /// The entries, in the order of the list.
    pub items: Vec<T>,
    /// The id after which the next page begins: of an entry, or of a place among entries that the caller may not see. `None`
    /// if there are no more entries. A page that has one can have fewer entries than asked for, even none: then enough was
    /// read.
    pub next: Option<String>,
}

/// Places among entries that a caller may not see, where pages begin. The cursor of such a page must not name an entry, so it
/// has an id that nothing else has in place of that of the entry. The oldest places are forgotten, and all when the gateway
/// stops. Then no list knows the id, so its client has to start again.
#[derive(Debug, Default)]
pub(crate) struct HiddenPlaces {
    /// The ids of the places with those of their entries, the oldest first.
    places: Mutex<VecDeque<(String, String)>>,
}

impl HiddenPlaces {
    /// Returns the id of the entry after which a page begins: that of a hidden place, or otherwise the given one.
    pub(crate) fn find_entry(&self, after: String) -> String {
        let places = self.places.lock();
        let place = places.iter().find(|(place, _)| *place == after);
        place.map_or(after, |(_, entry)| entry.clone())
    }

    fn remember(&self, entry: String) -> String {
        let place = Uuid::now_v7().to_string();
        let mut places = self.places.lock();
        if places.len() == MAX_HIDDEN_PLACES {
            places.pop_front();
        }
        places.push_back((place.clone(), entry));
        place
    }

    /// Collects a page of the entries that the caller may see.
    pub(crate) fn collect_visible<T>(
        &self,
        entries: impl Iterator<Item = Result<T, GatewayError>>,
        is_visible: impl Fn(&T) -> bool,
        id_of: impl Fn(&T) -> &str,
        limit: usize,
    ) -> Result<FoundPage<T>, GatewayError> {
        let page = collect_matches(entries, is_visible, &id_of, limit, MAX_READ_ENTRIES)?;
        let last = page.items.last().map(id_of);
        let next = page.next.map(|next| {
            let is_shown = last.is_some_and(|last| last == next);
            if is_shown { next } else { self.remember(next) }
        });
        Ok(FoundPage { next, ..page })
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_of_a_page_names_no_hidden_entry() {
        let count = MAX_READ_ENTRIES + 3;
        let all: Vec<String> = (0..count).map(|id| format!("entry {id}")).collect();
        // The caller sees the second entry and the last one.
        let is_visible = |entry: &String| [&all[1], &all[count - 1]].contains(&entry);
        let places = HiddenPlaces::default();
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let begin = after.map_or(0, |after: String| {
                let entry = places.find_entry(after);
                all.iter().position(|id| *id == entry).unwrap() + 1
            });
            let entries = all[begin..].iter().cloned().map(Ok);
            let page = places.collect_visible(entries, is_visible, String::as_str, 1).unwrap();
            found.push(page.items);
            let Some(next) = page.next else { break };
            assert!(next == all[1] || !next.starts_with("entry"), "{next}");
            after = Some(next);
        }
        assert_eq!(found, [vec![all[1].clone()], vec![], vec![all[count - 1].clone()]]);
    }

    #[test]
    fn the_oldest_places_are_forgotten() {
        let places = HiddenPlaces::default();
        let first = places.remember("a".to_owned());
        let second = places.remember("b".to_owned());
        for _ in 1..MAX_HIDDEN_PLACES {
            places.remember("c".to_owned());
        }
        assert_eq!(places.find_entry(first.clone()), first);
        assert_eq!(places.find_entry(second), "b");
    }
}
