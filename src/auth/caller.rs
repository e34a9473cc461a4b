//! The sender of a request.
use super::Account;
use jiff::Timestamp;
use penstock_base::commit::CommitCheck;
use penstock_base::error::GatewayError;
use penstock_resources::role::Role;
use penstock_store::Transaction;
use std::net::IpAddr;
use std::sync::Arc;

/// The sender of a request and its permissions.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The account; `None` for local administration over the control socket, and for the API keys created by it.
    pub account: Option<Arc<Account>>,
    /// The role of this request: the account's role, or a lower one of an API key.
    pub role: Role,
    /// The credential that authenticated it.
    pub credential: Credential,
    /// The client's address.
    pub from: Option<IpAddr>,
}

/// The credential that authenticated a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// The control socket, which only the service's user and root can open.
    Local,
    /// A browser's session, by the hash of its id.
    Session(String),
    /// An API key.
    ApiKey {
        /// The id of the key.
        id: String,
        /// The ids of the only Business Objects that it can be used for; `None` for all.
        business_objects: Option<Arc<[String]>>,
    },
    /// A source, which acts for no request.
    Source {
        /// The ids of the only Business Objects that it can write.
        business_objects: Arc<[String]>,
    },
    /// An access token.
    Bearer {
        /// When it stops being accepted; `None` if that is later than any representable time.
        expires_at: Option<Timestamp>,
    },
}

/// The requester of a change to accounts or credentials: the caller that the change is recorded for, and the check
/// of its commit.
pub trait Requester: CommitCheck {
    /// Returns the caller.
    fn caller(&self) -> &Caller;

    /// Checks that the caller still has the role in [`Self::caller`] or a higher one, for changes that depend on it.
    ///
    /// # Errors
    /// As [`CommitCheck::check_commit`].
    fn check_role(&self, transaction: &Transaction<'_>) -> Result<(), GatewayError>;
}

impl Caller {
    /// Creates the caller of local administration.
    pub fn local() -> Self {
        Self { account: None, role: Role::Admin, credential: Credential::Local, from: None }
    }

    /// Returns the id of the API key of the request, if it was sent with one.
    pub fn api_key_id(&self) -> Option<&str> {
        match &self.credential {
            Credential::ApiKey { id, .. } => Some(id),
            _ => None,
        }
    }

    /// Returns the ids of the only Business Objects that the credential can be used for; `None` for all.
    pub fn business_objects(&self) -> Option<&[String]> {
        match &self.credential {
            Credential::ApiKey { business_objects, .. } => business_objects.as_deref(),
            Credential::Source { business_objects } => Some(business_objects),
            _ => None,
        }
    }

    /// Returns whether the credential can be used for the Business Object with this id.
    pub fn may_use(&self, business_object: &str) -> bool {
        self.business_objects().is_none_or(|own| own.iter().any(|id| id == business_object))
    }

    /// Returns the id of the actor for the audit trail: the API key's id if one was used.
    pub fn actor_id(&self) -> &str {
        match &self.credential {
            Credential::ApiKey { id, .. } => id,
            _ => self.id(),
        }
    }

    /// Returns the id for records and logs: the account's, that of an API key without an account, or `local`.
    pub fn id(&self) -> &str {
        match (&self.account, &self.credential) {
            (Some(account), _) => &account.id,
            (None, Credential::ApiKey { id, .. }) => id,
            (None, _) => "local",
        }
    }
}
