//! Definition files that `penstock apply` sends, and what applying them does.
use crate::names::wire_names;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The body of `POST /control/definitions`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ApplyDefinitions {
    /// The folder of the files.
    pub folder: String,
    /// The files.
    pub files: Vec<DefinitionFile>,
    /// Whether it is a dry run.
    pub dry_run: bool,
    /// The definitions to delete.
    pub prune: Vec<DefinitionId>,
    /// Whether all definitions that may be deleted are deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prune_all: bool,
}

/// A file with definitions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinitionFile {
    /// Its name, without a folder.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// The kind and the name of a definition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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

/// The kind of a definition, in the order in which definitions depend on each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum DefinitionKind {
    /// A namespace.
    Namespace,
    /// A shapes graph.
    Shapes,
    /// A group of accounts.
    Group,
    /// A Business Object.
    BusinessObject,
}

wire_names!(DefinitionKind {
    Namespace: "Namespace",
    Shapes: "Shapes",
    Group: "Group",
    BusinessObject: "BusinessObject",
});

impl DefinitionKind {
    /// Returns what people call it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Namespace => "namespace",
            Self::Shapes => "shapes graph",
            Self::Group => "group",
            Self::BusinessObject => "Business Object",
        }
    }
}

/// What applying files does, or in a dry run would do.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AppliedDefinitions {
    /// Each definition that changes.
    pub changes: Vec<AppliedDefinition>,
    /// The number of definitions that are the same as before.
    pub unchanged: usize,
    /// The definitions that files of the folder created and no file has any more.
    pub prunable: Vec<DefinitionId>,
    /// What is valid and probably not meant.
    pub warnings: Vec<String>,
}

/// A change of a definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AppliedDefinition {
    /// What happens.
    pub action: ApplyAction,
    /// The definition.
    #[serde(flatten)]
    pub id: DefinitionId,
    /// The name of its file; of a definition without one, the last.
    pub file: String,
    /// The lines that the change removes (`-`) and adds (`+`), with some around them; only in a dry run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub difference: Vec<String>,
    /// Why it is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What happens to a definition, in the order of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
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

wire_names!(ApplyAction {
    Created: "created",
    Changed: "changed",
    Deleted: "deleted",
    Unmanaged: "unmanaged",
    Kept: "kept",
});
