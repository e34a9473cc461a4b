//! Records changes durably. For each Business Object that exports on change, it has the set of objects whose current
//! state is in no export. For each with a retention, it has the time of each object's last change. The same commit
//! updates the index of natural keys.
//!
//! [`record_changes`] runs in every commit that changes the graph. So no change is missed, and no change is recorded
//! that was not committed. A Business Object with neither setting costs nothing. What is watched is read from the store
//! and not from memory, so that no commit slips between a definition and its effect. What an object looks like, and
//! whether it belongs, is decided when the export is created.
//!
//! A change counts for the members that show it: the subject itself, and all objects that hold it nested, at any
//! depth of the mapping. It is enough to follow the links as they are after the commit: a link that the commit
//! removed is itself a change of the object that held it.
//!
//! | collection | key | value |
//! |---|---|---|
//! | `change-cursors` | Business Object id. | [`ExportCursor`] as JSON. Exists while the Business Object is watched. |
//! | `changes` | id, 0, generation (u64, big endian), URI. | Number of exports before the object became a member (u64), or empty. |
//! | `object-ages` | id, 0, URI (empty for all objects). | Elapsed time of the last change, generation (u64 each). For all objects, the generation `u64::MAX` means that earlier ages are invalid. |
//! | `watched` | Empty. | A number that differs after each change of a definition (u64). |
//!
//! # Generations
//! Changes are recorded in the open generation. An export first closes it, in a commit of its own, and then reads:
//! changes that it misses are recorded in the next generation. The commit of the export marks the generation as
//! done, together with the sequence and the queue entry. So that commit is small regardless of the number of
//! changes, and the generation survives a crash. A cleanup later removes generations that are done.
//!
//! If thousands of objects hold a changed object nested, the change is not recorded for each of them. Otherwise the
//! memory of the commit would depend on what is stored and not on the request. Instead, the cursor stores the
//! generation of that change ([`ExportCursor::full_since`]). Until that generation is done, only full exports run,
//! because a full export contains everything that a consumer lacks. All objects then have the age of that change.

mod cursor;
mod holders;
mod record;
mod watch;

pub(crate) use cursor::change_watched_number;
pub use cursor::{ChangedObject, clean_up, clean_up_all, has_changes, list_changed};
pub use cursor::{
    ExportCursor, KnownTarget, close_generation, delete_age, read_age, read_cursor, write_age,
    write_cursor,
};
pub(super) use cursor::{rewrite_age, rewrite_change, stop_watching, update_watching};
pub(crate) use holders::HolderLinks;
pub(super) use record::require_full_exports;
pub(super) use record::{record_changed_objects, update_key_index};
pub use record::{record_changes, record_changes_except};
pub(crate) use watch::WatchedDefinitions;
pub use watch::{ChangeMark, Watch};

/// The collection of [`ExportCursor`]s.
const CURSORS: &str = "change-cursors";
/// The collection of changed objects.
pub(super) const CHANGES: &str = "changes";
/// The collection of the times of the objects' last changes.
pub(super) const AGES: &str = "object-ages";
/// The collection with the number of the definitions.
const WATCHED: &str = "watched";

fn decode_u64(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_be_bytes)
}
