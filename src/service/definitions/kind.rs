//! What a kind of definitions is, and the use cases, one function for each, whatever the kind.
use super::batch::DefinitionBatch;
use super::content::Content;
use crate::gateway::Gateway;
use penstock_auth::{Authorized, Role};
use penstock_base::error::GatewayError;
use penstock_base::json::Json;
use penstock_base::{Preconditions, Put};
use penstock_resources::definitions::DefinitionKind;
use penstock_store::{Read, Transaction};

/// The result of a use case.
pub type Result<T, E = GatewayError> = std::result::Result<T, E>;

/// A function that returns the stored version of the definition with this name, `None` if there is none. Never blocks.
pub(crate) type FindVersion = fn(&Gateway, &str) -> Option<u64>;

/// A kind of definitions. Its functions run on a thread that may block.
#[expect(
    private_bounds,
    reason = "a definition is changed with `save`, `delete` and `apply_files`"
)]
pub trait Kind: StoredKind + 'static {
    /// The kind in records and files.
    const KIND: DefinitionKind;
    /// The minimum role that changes definitions. Everybody reads them.
    const MIN_ROLE: Role = Role::Admin;
    /// Finds the stored version of a definition; `None` if the kind has no versions.
    const STORED_VERSION: Option<FindVersion> = None;
    /// What a client sends.
    type New: Send + 'static;
    /// What is shown.
    type Shown: Send + 'static;

    /// Returns the name in what is shown.
    fn name(shown: &Self::Shown) -> &str;

    /// Returns the version in what is shown; `None` if there is none that the caller sees.
    fn version(_: &Self::Shown) -> Option<u64> {
        None
    }

    /// Lists at most `limit` definitions after the name `after`, ordered by name.
    fn list(
        gateway: &Gateway,
        by: &Authorized,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Self::Shown>>;

    /// Returns a definition.
    fn find(gateway: &Gateway, by: &Authorized, name: &str) -> Result<Self::Shown>;
}

/// How the definitions of a kind are changed, and what files have of them.
pub(crate) trait StoredKind {
    /// Creates a definition, or replaces the one of the same name. [`save`] has checked the role and the disk.
    fn put(
        gateway: &Gateway,
        by: &Authorized,
        new: Self::New,
        conditions: Preconditions,
    ) -> Result<Put<Self::Shown>>
    where
        Self: Kind;

    /// Deletes a definition. [`delete`] has checked the role.
    fn delete(
        gateway: &Gateway,
        by: &Authorized,
        name: &str,
        conditions: Preconditions,
    ) -> Result<()>;

    /// Reads the members of a definition in a file, without `kind` and `force`, as its PUT reads its body.
    fn read_members(gateway: &Gateway, name: &str, members: Vec<(String, Json)>)
    -> Result<Content>;

    /// Returns a text that every change of a definition changes; `None` if it does not exist. Namespaces are in the store,
    /// and the other definitions in memory.
    fn find_fingerprint(gateway: &Gateway, read: &dyn Read, name: &str) -> Result<Option<String>>;

    /// Returns the lines of a definition as the run has left it so far; none if it does not exist.
    fn describe(batch: &DefinitionBatch<'_>, read: &dyn Read, name: &str) -> Result<Vec<String>>;

    /// Deletes a definition in the transaction of a run, never its data.
    fn erase(
        batch: &mut DefinitionBatch<'_>,
        transaction: &mut Transaction<'_>,
        name: &str,
    ) -> Result<()>;
}

/// Lists at most `limit` definitions after the name `after`, ordered by name.
///
/// # Errors
/// The errors of the store.
pub async fn list<K: Kind>(
    gateway: &Gateway,
    by: &Authorized,
    after: Option<String>,
    limit: usize,
) -> Result<Vec<K::Shown>> {
    let by = by.clone();
    gateway.read(move |gateway| K::list(gateway, &by, after.as_deref(), limit)).await
}

/// Returns the definition with this name. A Business Object may also be named by its id.
///
/// # Errors
/// `ErrorClass::NotFound`.
pub async fn find<K: Kind>(gateway: &Gateway, by: &Authorized, name: &str) -> Result<K::Shown> {
    let (by, name) = (by.clone(), name.to_owned());
    gateway.read(move |gateway| K::find(gateway, &by, &name)).await
}

/// Creates a definition, or replaces the one of the same name. One with the same content stays as it is.
///
/// # Errors
/// - `ErrorClass::Invalid` with the findings in the definition
/// - `ErrorClass::PreconditionFailed`
/// - `ErrorClass::Conflict` if a file of `service.definitions.dir` defines it, a limit is reached, or its use forbids it
/// - `ErrorClass::Forbidden` without the role of the kind
/// - `ErrorClass::InsufficientStorage` when less than the reserve is free on the disk
pub async fn save<K: Kind>(
    gateway: &Gateway,
    by: &Authorized,
    new: K::New,
    conditions: Preconditions,
) -> Result<Put<K::Shown>> {
    let put = move |gateway: &Gateway, by: &Authorized| {
        gateway.disk.check_reserve()?;
        K::put(gateway, by, new, conditions)
    };
    gateway.run(by, K::MIN_ROLE, put).await
}

/// Deletes the definition with this name.
///
/// # Errors
/// - `ErrorClass::NotFound` and `ErrorClass::PreconditionFailed`
/// - `ErrorClass::Conflict` if a file of `service.definitions.dir` defines it, or it is used
/// - `ErrorClass::Forbidden` without the role of the kind
pub async fn delete<K: Kind>(
    gateway: &Gateway,
    by: &Authorized,
    name: &str,
    conditions: Preconditions,
) -> Result<()> {
    let name = name.to_owned();
    gateway.run(by, K::MIN_ROLE, move |gateway, by| K::delete(gateway, by, &name, conditions)).await
}
