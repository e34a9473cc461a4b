//! A state of the index that can be read: the current one, or that of a snapshot.
//!
//! The files beside this one read through it: `dictionary` terms, `quads` patterns, `subject_reader` and `subjects`
//! subjects, `value_scan` values, `documents` documents, `page` everything.
use super::block_source::BlockSource;
use super::names::Names;
use super::runs::NameSource;
use super::values::FrozenValues;
use crate::Error;

/// A state of the index.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) blocks: &'a dyn BlockSource,
    pub(crate) runs: &'a dyn NameSource,
    /// The index of values, if there is one.
    pub(crate) values: Option<&'a FrozenValues>,
    pub(crate) names: &'a Names,
    pub(crate) health: &'a dyn Health,
    /// See [`super::Index::instance`].
    pub(crate) instance: u64,
    /// The newest frame in this state.
    pub(crate) sequence: u64,
}

/// Whether an index can be trusted.
pub(crate) trait Health {
    /// Fails if a frame was applied only in part, or if the index was closed.
    fn check_usable(&self) -> Result<(), Error>;

    /// Records damage, so that the index is rebuilt.
    fn record_damage(&self, error: &Error);
}

impl View<'_> {
    /// Runs a read, and records damage that it finds.
    pub(crate) fn track_damage<T>(
        &self,
        read: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.health.check_usable()?;
        read().inspect_err(|error| self.health.record_damage(error))
    }
}
