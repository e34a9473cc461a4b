//! Definition files that `penstock apply` sends, and what applying them does.
use penstock_base::managed::DefinitionKind;
use penstock_service::definitions::{
    AppliedChange, ApplyOptions, ApplyReport, DefinitionFile, DefinitionId,
};
use serde::{Deserialize, Serialize};

/// The body of `POST /control/definitions`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApplyDefinitions {
    /// The folder of the files.
    pub folder: String,
    /// The files.
    pub files: Vec<File>,
    /// Whether it is a dry run.
    pub dry_run: bool,
    /// The definitions to delete.
    pub prune: Vec<Id>,
}

/// A file with definitions.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct File {
    /// Its name.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// The kind and the name of a definition.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Id {
    /// The kind.
    pub kind: DefinitionKind,
    /// The name.
    pub name: String,
}

/// What applying files does, or in a dry run would do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AppliedDefinitions {
    /// Each definition that changes.
    pub changes: Vec<AppliedDefinition>,
    /// The number of definitions that are the same as before.
    pub unchanged: usize,
    /// The definitions that files of the folder created and no file has any more.
    pub prunable: Vec<Id>,
    /// What is valid and probably not meant.
    pub warnings: Vec<String>,
}

/// A change of a definition.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AppliedDefinition {
    /// `created`, `changed`, `deleted`, `unmanaged` or `kept`.
    pub action: String,
    /// The definition.
    #[serde(flatten)]
    pub id: Id,
    /// Its file.
    pub file: String,
    /// The lines that differ, in a dry run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub difference: Vec<String>,
    /// Why it is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl From<DefinitionId> for Id {
    fn from(DefinitionId { kind, name }: DefinitionId) -> Self {
        Self { kind, name }
    }
}

impl From<DefinitionFile> for File {
    fn from(DefinitionFile { name, text }: DefinitionFile) -> Self {
        Self { name, text }
    }
}

impl ApplyDefinitions {
    /// Returns the files, and how they are applied.
    pub fn into_parts(self) -> (Vec<DefinitionFile>, ApplyOptions) {
        let Self { folder, files, dry_run, prune } = self;
        let file = |File { name, text }| DefinitionFile { name, text };
        let id = |Id { kind, name }| DefinitionId { kind, name };
        let options = ApplyOptions {
            folder,
            is_service_folder: false,
            is_dry_run: dry_run,
            prune: prune.into_iter().map(id).collect(),
        };
        (files.into_iter().map(file).collect(), options)
    }
}

impl From<ApplyReport> for AppliedDefinitions {
    fn from(report: ApplyReport) -> Self {
        let ApplyReport { changes, unchanged, prunable, warnings } = report;
        let change = |AppliedChange { action, id, file, difference, reason }| AppliedDefinition {
            action: action.name().to_owned(),
            id: id.into(),
            file,
            difference,
            reason,
        };
        Self {
            changes: changes.into_iter().map(change).collect(),
            unchanged,
            prunable: prunable.into_iter().map(Id::from).collect(),
            warnings,
        }
    }
}
