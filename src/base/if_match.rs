//! `If-Match` and `If-None-Match` (RFC 9110, section 13.1): the version that a change expects. And what a change that may
//! create did.
use crate::collections;
use crate::error::{ErrorClass, GatewayError};
use crate::table::Table;
use penstock_store::{Error, Read, Transaction};

/// The counters. The one with the empty key is where the last restore put them ([`penstock_store::NEW_COUNTERS`]).
const COUNTERS: Table<String, u64> = Table::new(collections::COUNTERS);

/// The highest version whose name was freed. It is one number for all names, so it stays small however many are freed.
const FREED_VERSION: Table<String, u64> = Table::new(collections::GATEWAY);
const FREED_VERSION_KEY: &str = "freed-version";

/// The condition of a change on the stored version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IfMatch {
    /// No condition.
    #[default]
    Any,
    /// A version must exist (`If-Match: *`).
    Exists,
    /// The stored version must be this one.
    Version(u64),
}

/// The preconditions of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Preconditions {
    /// The version that is changed.
    pub if_match: IfMatch,
    /// No version may exist (`If-None-Match: *`).
    pub only_if_new: bool,
}

impl Preconditions {
    /// The conditions of a change that only creates.
    pub const ONLY_IF_NEW: Self = Self { if_match: IfMatch::Any, only_if_new: true };

    /// Checks the stored version, `None` if there is none, under the lock of its changes. `what` names the resource.
    ///
    /// # Errors
    /// `ErrorClass::PreconditionFailed`.
    pub fn check_version(self, stored: Option<u64>, what: &str) -> Result<(), GatewayError> {
        let IfMatch::Version(expected) = self.if_match else {
            return self.check_existence(stored.is_some(), what);
        };
        match stored {
            Some(stored) if stored != expected => Err(GatewayError::new(
                ErrorClass::PreconditionFailed,
                format!("{what} has version {stored} now, not {expected}; read it again"),
            )),
            _ => Self { if_match: IfMatch::Exists, ..self }.check_existence(stored.is_some(), what),
        }
    }

    /// Checks a resource that has no versions, in the commit that changes it. `what` names it.
    ///
    /// # Errors
    /// `ErrorClass::PreconditionFailed`.
    pub fn check_existence(self, exists: bool, what: &str) -> Result<(), GatewayError> {
        let why = match self.if_match {
            _ if exists && self.only_if_new => "If-None-Match: * requires that it does not exist",
            IfMatch::Exists if !exists => "If-Match requires that it exists",
            IfMatch::Version(_) => "If-Match names a version, and it has none",
            IfMatch::Any | IfMatch::Exists => return Ok(()),
        };
        let state = if exists { "exists" } else { "does not exist" };
        let detail = format!("{what} {state}, and {why}; nothing was changed");
        Err(GatewayError::new(ErrorClass::PreconditionFailed, detail))
    }
}

impl From<IfMatch> for Preconditions {
    fn from(if_match: IfMatch) -> Self {
        Self { if_match, only_if_new: false }
    }
}

/// Returns the version that follows `before`, or that of something new. A client that has read a version must not overwrite
/// another content by its `ETag`. So in a restored store it is above all versions that the backup does not have. That of
/// something new is above those of the names that were freed ([`free_name`]).
///
/// # Errors
/// The errors of the store, and [`Error::Unreadable`].
pub fn next_version(read: &dyn Read, before: Option<u64>) -> Result<u64, Error> {
    let before = match before {
        Some(before) => before,
        None => last_freed_version(read)?,
    };
    Ok(COUNTERS.last_number(read, "")?.max(before) + 1)
}

/// As [`next_version`], of something that has this name from this commit on. `before` are the name and the version that it
/// has before.
///
/// # Errors
/// As [`next_version`].
pub fn next_version_named(
    transaction: &mut Transaction<'_>,
    before: Option<(&str, u64)>,
    name: &str,
) -> Result<u64, Error> {
    let before = match before {
        Some((old_name, version)) if old_name != name => {
            free_name(transaction, version)?;
            None
        }
        before => before.map(|(_, version)| version),
    };
    next_version(transaction, before)
}

/// Records, in the commit that deletes or renames something, the last version that it had under its name. What gets the name
/// next has higher versions.
///
/// # Errors
/// The errors of the store, and [`Error::Unreadable`].
pub fn free_name(transaction: &mut Transaction<'_>, version: u64) -> Result<(), Error> {
    if last_freed_version(transaction)? < version {
        FREED_VERSION.put(transaction, FREED_VERSION_KEY, version)?;
    }
    Ok(())
}

fn last_freed_version(read: &dyn Read) -> Result<u64, Error> {
    Ok(FREED_VERSION.get(read, FREED_VERSION_KEY)?.unwrap_or(0))
}

/// What became of something that was put, and its value now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Put<T> {
    /// It is new.
    Created(T),
    /// It was there. It has the new content, or had it before.
    Replaced(T),
}

impl<T> Put<T> {
    /// Returns the outcome for a value that was there before or not.
    pub fn new(value: T, was_there: bool) -> Self {
        if was_there { Self::Replaced(value) } else { Self::Created(value) }
    }

    /// Returns whether it is new.
    pub fn is_created(&self) -> bool {
        matches!(self, Self::Created(_))
    }

    /// Returns the value.
    pub fn value(&self) -> &T {
        match self {
            Self::Created(value) | Self::Replaced(value) => value,
        }
    }

    /// Returns the value.
    pub fn into_value(self) -> T {
        match self {
            Self::Created(value) | Self::Replaced(value) => value,
        }
    }

    /// Converts the value.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Put<U> {
        match self {
            Self::Created(value) => Put::Created(convert(value)),
            Self::Replaced(value) => Put::Replaced(convert(value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_store::{NEW_COUNTERS, Options, Store};

    #[test]
    fn a_version_is_checked_against_the_stored_one() {
        let check = |if_match: IfMatch, stored| {
            Preconditions::from(if_match).check_version(stored, "it").map_err(|error| error.detail)
        };
        for (if_match, stored) in [
            (IfMatch::Any, None),
            (IfMatch::Any, Some(3)),
            (IfMatch::Exists, Some(3)),
            (IfMatch::Version(3), Some(3)),
        ] {
            assert_eq!(check(if_match, stored), Ok(()), "{if_match:?} {stored:?}");
        }
        let stale = check(IfMatch::Version(2), Some(3)).unwrap_err();
        assert_eq!(stale, "it has version 3 now, not 2; read it again");
        for if_match in [IfMatch::Exists, IfMatch::Version(2)] {
            let missing = check(if_match, None).unwrap_err();
            assert!(missing.contains("does not exist, and If-Match requires"), "{missing}");
        }
        Preconditions::ONLY_IF_NEW.check_version(None, "it").unwrap();
        let taken = Preconditions::ONLY_IF_NEW.check_version(Some(3), "it").unwrap_err();
        assert_eq!(taken.class, ErrorClass::PreconditionFailed);
    }

    #[test]
    fn versions_of_a_restored_store_begin_where_its_counters_begin() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        let next = |before| next_version(&store.read(), before).unwrap();
        assert_eq!((next(None), next(Some(3))), (1, 4));
        let begin = 1_000_000_u64.to_be_bytes();
        let name = collections::COUNTERS.name;
        store.transact(|t| t.put_document(name, NEW_COUNTERS, &begin)).unwrap();
        assert_eq!(
            (next(None), next(Some(3)), next(Some(1_000_001))),
            (1_000_001, 1_000_001, 1_000_002)
        );
    }

    #[test]
    fn what_gets_a_freed_name_begins_above_its_last_version() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
        let next = |before| next_version(&store.read(), before).unwrap();
        for freed in [7, 3] {
            store.transact(|t| free_name(t, freed)).unwrap();
            assert_eq!((next(None), next(Some(2))), (8, 3));
        }
        let rename = |before| store.transact(|t| next_version_named(t, before, "b")).unwrap().0;
        assert_eq!((rename(Some(("b", 2))), next(None)), (3, 8));
        assert_eq!((rename(Some(("a", 2))), next(None)), (8, 8));
        assert_eq!((rename(Some(("a", 9))), next(None)), (10, 10));
        assert_eq!(rename(None), 10);
    }
}
