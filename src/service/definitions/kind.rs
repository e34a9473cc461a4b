//! The use cases of definitions, one function for each, whatever their kind.
use crate::gateway::Gateway;
use penstock_auth::{Authorized, Role};
use penstock_base::error::GatewayError;
use penstock_base::{Preconditions, Put};
use penstock_resources::definitions::DefinitionKind;

/// The result of a use case.
pub type Result<T, E = GatewayError> = std::result::Result<T, E>;

/// The gateway, and the client for which it acts.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The gateway.
    pub gateway: &'a Gateway,
    /// The client.
    pub by: &'a Authorized,
}

/// A kind of definitions. Its functions run on a thread that may block, after the role was checked.
pub trait Kind: 'static {
    /// The kind in records and files.
    const KIND: DefinitionKind;
    /// The minimum role that changes definitions. Everybody reads them.
    const MIN_ROLE: Role = Role::Admin;
    /// Whether a definition has versions, so that `If-Match` can name one.
    const HAS_VERSIONS: bool = true;
    /// What a client sends.
    type New: Send + 'static;
    /// What is shown.
    type Shown: Send + 'static;

    /// Returns the name in what is shown.
    fn name(shown: &Self::Shown) -> &str;

    /// Returns the version in what is shown; `None` if the caller does not see one.
    fn version(shown: &Self::Shown) -> Option<u64>;

    /// Returns the stored version of a definition, `None` if there is none. Never blocks.
    fn stored_version(gateway: &Gateway, name: &str) -> Option<u64>;

    /// Lists at most `limit` definitions after the name `after`, ordered by name.
    fn list(context: Context<'_>, after: Option<&str>, limit: usize) -> Result<Vec<Self::Shown>>;

    /// Returns a definition.
    fn find(context: Context<'_>, name: &str) -> Result<Self::Shown>;

    /// Creates a definition, or replaces the one of the same name.
    fn put(
        context: Context<'_>,
        new: Self::New,
        conditions: Preconditions,
    ) -> Result<Put<Self::Shown>>;

    /// Deletes a definition.
    fn delete(context: Context<'_>, name: &str, conditions: Preconditions) -> Result<()>;
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
    let list =
        move |gateway: &Gateway| K::list(Context { gateway, by: &by }, after.as_deref(), limit);
    gateway.read(list).await
}

/// Returns the definition with this name. A Business Object may also be named by its id.
///
/// # Errors
/// `ErrorClass::NotFound`.
pub async fn find<K: Kind>(gateway: &Gateway, by: &Authorized, name: &str) -> Result<K::Shown> {
    let (by, name) = (by.clone(), name.to_owned());
    gateway.read(move |gateway| K::find(Context { gateway, by: &by }, &name)).await
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
        gateway.auth.audit.flush();
        K::put(Context { gateway, by }, new, conditions)
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
    let delete = move |gateway: &Gateway, by: &Authorized| {
        gateway.auth.audit.flush();
        K::delete(Context { gateway, by }, &name, conditions)
    };
    gateway.run(by, K::MIN_ROLE, delete).await
}
