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

mod cleanup;
mod cursor;
mod holders;
mod record;
mod watch;
mod watched_number;

pub use cleanup::{clean_up, clean_up_all};
pub use cursor::{CURSORS, ExportCursor, KnownTarget, close_generation, read_age, read_cursor};
pub use cursor::{ChangedObject, has_changes, list_changed};
pub(super) use cursor::{rewrite_age, rewrite_change, stop_watching, update_watching};
pub(crate) use holders::HolderLinks;
pub(super) use record::require_full_exports;
pub(super) use record::{record_changed_objects, update_key_index};
pub use record::{record_changes, record_changes_except};
pub(crate) use watch::WatchedDefinitions;
pub use watch::{ChangeMark, Watch};
pub(crate) use watched_number::change_watched_number;

use penstock_base::collections;
use penstock_base::table::Table;

/// The changed objects: by the id of the Business Object, the generation and the URI, the number of exports before the
/// object became a member in this generation, if it did.
pub(super) const CHANGES: Table<(String, u64, String), Option<u64>> =
    Table::new(collections::CHANGES);
/// The elapsed time of the last change of an object and its generation, by the id of the Business Object and the URI. An
/// empty URI means all objects. Its generation `u64::MAX` means that earlier ages are invalid.
pub const AGES: Table<(String, String), (u64, u64)> = Table::new(collections::OBJECT_AGES);
