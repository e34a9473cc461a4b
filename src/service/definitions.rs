//! Definitions: namespaces, shapes graphs, groups and Business Objects.
//!
//! A kind is a type that implements [`Kind`], such as [`Groups`](crate::groups::Groups). The use cases are the same for all
//! kinds: `list::<Groups>(…)`, `find`, `save` and `delete`. The REST API and the pages call them.
//!
//! Definitions in YAML and JSON files are applied together in one commit or not at all. `penstock apply` sends the files of a
//! folder. The gateway reads `service.definitions.dir` at the start and at SIGHUP. Both call [`apply_files`].
//!
//! - `kind` says what a kind is, and has the use cases
//! - `folder` reads the files, `resources` the definitions in them, and `content` is the content of one
//! - `run` compares them with what is stored, and writes what differs with the `batch`
//! - `difference` shows what differs
//! - `service_folder` applies the folder of the service, and `folder_state` has how its runs ended
//! - `drift` finds what has changed since
//!
//! A new kind is a variant of `DefinitionKind`, an arm of `of_kind`, a variant of [`Content`](content::Content) with an arm
//! of `Run::write_content`, and a type of its own that implements [`Kind`] and [`StoredKind`](kind::StoredKind). The API
//! serves a type that implements `Served`, and the pages one that implements `DefinitionPages`.
//!
//! Invariant: a dry run makes the same transaction as a run, with the same checks, and discards it. It differs in one point:
//! it creates no index for new keys, so it does not find stored objects without a key.

/// Evaluates an expression with `$K` as the kind of a definition. It lists all kinds.
macro_rules! of_kind {
    ($kind:expr, $K:ident => $value:expr) => {
        match $kind {
            penstock_resources::definitions::DefinitionKind::Namespace => {
                type $K = crate::namespaces::Namespaces;
                $value
            }
            penstock_resources::definitions::DefinitionKind::Shapes => {
                type $K = crate::shapes_graphs::ShapesGraphs;
                $value
            }
            penstock_resources::definitions::DefinitionKind::Group => {
                type $K = crate::groups::Groups;
                $value
            }
            penstock_resources::definitions::DefinitionKind::BusinessObject => {
                type $K = crate::business_objects::BusinessObjects;
                $value
            }
        }
    };
}

pub(crate) mod batch;
pub(crate) mod content;
mod difference;
mod drift;
mod folder;
pub(crate) mod folder_state;
pub(crate) mod kind;
mod resources;
mod run;
mod service_folder;
#[cfg(test)]
mod tests;

pub use drift::{find_drift, find_source_file};
pub use folder::read_folder;
pub use folder_state::{FolderOutcome, FolderRun};
pub use kind::{Kind, Result, delete, find, list, save};
pub use run::apply_files;
pub use service_folder::{apply_service_folder, retry_service_folder};

use penstock_resources::definitions::{ApplyDefinitions, DefinitionId};

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
    /// Whether all of them are deleted.
    pub prunes_all: bool,
}

impl ApplyOptions {
    /// Returns how a request has its files applied.
    pub fn of_request(request: &ApplyDefinitions) -> Self {
        Self {
            folder: request.folder.clone(),
            is_service_folder: false,
            is_dry_run: request.dry_run,
            prune: request.prune.clone(),
            prunes_all: request.prune_all,
        }
    }
}
