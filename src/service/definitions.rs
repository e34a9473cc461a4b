//! Definitions as files: namespaces, shapes graphs, groups and Business Objects in YAML and JSON, applied together in one
//! commit or not at all.
//!
//! `penstock apply` sends the files of a folder. The gateway reads `service.definitions.dir` at the start and at SIGHUP. Both
//! call [`apply_files`].
//!
//! - `folder` reads the files, `resources` the definitions in them
//! - `run` compares them with what is stored, and writes what differs
//! - `difference` shows what differs
//! - `service_folder` applies the folder of the service
//! - `drift` finds what has changed since
//!
//! Invariant: a dry run makes the same transaction as a run, with the same checks, and discards it. It differs in one point:
//! it creates no index for new keys, so it does not find stored objects without a key.
mod difference;
mod drift;
mod folder;
mod resources;
mod run;
mod service_folder;
#[cfg(test)]
mod tests;

pub use drift::{Drift, DriftState, find_drift, find_source_file};
pub use folder::read_folder;
pub use run::apply_files;
pub use service_folder::{FolderOutcome, FolderRun, FolderState, apply_service_folder};

use penstock_base::managed::DefinitionKind;
use std::fmt;

/// A file with definitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionFile {
    /// Its name, without a folder.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// The kind and the name of a definition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DefinitionId {
    /// The kind.
    pub kind: DefinitionKind,
    /// The name.
    pub name: String,
}

impl fmt::Display for DefinitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.kind, self.name)
    }
}

/// How files are applied.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ApplyOptions {
    /// The folder of the files. Only its own definitions become unmanaged or are deleted.
    pub folder: String,
    /// Whether the folder is that of `service.definitions.dir`, so that nothing else changes its definitions.
    pub is_service_folder: bool,
    /// Whether it is a dry run, whose report has differences.
    pub is_dry_run: bool,
    /// The definitions to delete. Only a definition that a file of the folder created, and that has no file any more, is
    /// deleted.
    pub prune: Vec<DefinitionId>,
}

/// What happens to a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplyAction {
    /// It is new.
    Created,
    /// It has another content.
    Changed,
    /// It is deleted.
    Deleted,
    /// No file has it any more. It stays.
    Unmanaged,
    /// It was to be deleted, and stays because it is in use.
    Kept,
}

impl ApplyAction {
    /// Returns its name, as answers and lines of text write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Deleted => "deleted",
            Self::Unmanaged => "unmanaged",
            Self::Kept => "kept",
        }
    }
}

/// A change of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedChange {
    /// What happens.
    pub action: ApplyAction,
    /// The definition.
    pub id: DefinitionId,
    /// The name of its file; of a definition without one, the last.
    pub file: String,
    /// The lines that the change removes (`-`) and adds (`+`), with some around them; only in a dry run.
    pub difference: Vec<String>,
    /// Why a definition is kept.
    pub reason: Option<String>,
}

/// What applying files does, or in a dry run would do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ApplyReport {
    /// Each definition that changes.
    pub changes: Vec<AppliedChange>,
    /// The number of definitions that are the same as before.
    pub unchanged: usize,
    /// The definitions that files of the folder created and no file has any more.
    pub prunable: Vec<DefinitionId>,
    /// What is valid and probably not meant.
    pub warnings: Vec<String>,
}
