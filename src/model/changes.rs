//! What changed: for each Business Object that exports on change, the durable set of objects that no
//! export holds as they are now; and for each with a retention, when each object last changed.
//!
//! [`note`] runs in the commit that changes the graph, whatever changes it: so nothing is missed, and
//! nothing is noted that did not happen. A Business Object that asks for neither costs nothing; when none
//! asks, one document is looked up in each commit.
//!
//! A change counts for the objects that belong and show it: the subject itself, and all that hold it nested,
//! at any depth of the mapping. It is enough to walk up the links as they are after the commit: a link that
//! the commit removed is itself a change of the object that held it.
//!
//! | collection | key | value |
//! |---|---|---|
//! | `change-cursors` | Business Object id | [`Cursor`] as JSON; there while it is watched |
//! | `changes` | id, 0, generation (u64, big endian), URI | exports made before the object began to belong (u64), or nothing |
//! | `object-ages` | id, 0, URI, or nothing for all of them | elapsed time of the last change, generation (u64 each); for all, `u64::MAX` as the generation says that ages from before are of no use |
//! | `watched` | nothing | a number that is another after each change of what is watched (u64) |
//!
//! # Generations
//! Changes are noted in the open generation. An export first closes it, in a commit of its own, and then
//! reads: whatever it misses is noted in the next one. Its own commit says that the generation is done, with
//! the sequence and the queue entry. So that commit is small however much has changed, and after a crash the
//! generation is still there. What is done is swept away later.
//!
//! What thousands of objects hold nested is not noted for each of them, since the commit would take memory by
//! what is stored and not by what is asked. The cursor says in which generation that happened
//! ([`Cursor::anew`]), and until that one is done nothing but full exports are made: a full export holds what a
//! consumer lacks, whatever it is. All objects are then as young as that change.

mod cursor;
mod holders;
mod note;
mod watch;

pub use cursor::{Changed, changed, has_changes, sweep, sweep_all};
pub use cursor::{Cursor, Known, age, close_generation, cursor, forget_age, put_age, put_cursor};
pub(super) use cursor::{defined, removed};
pub use note::{note, note_but};
pub use watch::{Mark, Watch};

/// The collection of cursors.
const CURSORS: &str = "change-cursors";
/// The collection of the objects that changed.
const CHANGES: &str = "changes";
/// The collection of when objects changed last.
const AGES: &str = "object-ages";
/// The collection of the watched set's number.
const WATCHED: &str = "watched";

fn number(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_be_bytes)
}
