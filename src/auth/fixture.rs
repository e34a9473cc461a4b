//! The fixture of this layer's tests.
use super::{Account, Auth, Caller, Credential};
use crate::accounts::NewAccount;
use crate::keys::NewApiKey;
use crate::password::Hash;
use penstock_base::clock::Clock;
use penstock_config::{Settings, Sources, load};
use penstock_resources::role::Role;
use penstock_store::{Options, Store};
use std::path::Path;
use std::sync::Arc;

/// The settings with which people sign in at a provider.
pub(super) const OAUTH: [&str; 8] = [
    "--security=oauth2",
    "--profiles.active=oauth2",
    "--service.security.registration=idp",
    "--framework.security.oauth2.client.registration.idp.client-id=a",
    "--framework.security.oauth2.client.registration.idp.client-secret=b",
    "--framework.security.oauth2.client.provider.idp.issuer-uri=https://idp.example",
    "--framework.security.oauth2.client.provider.idp.user-name-attribute=sub",
    "--service.base-url=https://gateway.example",
];

/// A data directory with all parts opened.
pub(super) struct Fixture {
    pub(super) auth: Auth,
    pub(super) store: Store,
    pub(super) dir: tempfile::TempDir,
}

pub(super) fn load_settings(dir: &Path, more: &[&str]) -> Arc<Settings> {
    let mut arguments = vec![format!("--service.data-dir={}", dir.display())];
    arguments.extend(more.iter().map(|argument| (*argument).to_owned()));
    Arc::new(load(&Sources { arguments, ..Sources::default() }).unwrap().settings)
}

impl Fixture {
    pub(super) fn new() -> Self {
        Self::open(tempfile::tempdir().unwrap(), &[])
    }

    /// Opens an existing directory with these settings.
    pub(super) fn open(dir: tempfile::TempDir, more: &[&str]) -> Self {
        let settings = load_settings(dir.path(), more);
        let store = Store::open(&dir.path().join("store"), Options::default(), &mut |_| {});
        let store = store.unwrap();
        let clock = Clock::open(store.clone()).unwrap();
        let auth = Auth::open(&store, &settings, &clock).unwrap();
        Self { auth, store, dir }
    }

    /// Restarts the service.
    pub(super) fn restart(self, more: &[&str]) -> Self {
        let Self { auth, store, dir } = self;
        drop(auth);
        drop(store);
        Self::open(dir, more)
    }

    /// Returns the first account's password.
    pub(super) fn initial_password(&self) -> Option<String> {
        let text = std::fs::read_to_string(self.dir.path().join("initial-admin-password")).ok()?;
        Some(text.trim().to_owned())
    }

    /// Creates an account with the password `correct horse battery`.
    pub(super) fn create_account(&self, email: &str, role: Role) -> Arc<Account> {
        let new = new_account(email, role);
        let hash = Hash::from_password(&new.password).unwrap();
        self.auth.accounts.create(&Caller::local(), new, hash).unwrap()
    }
}

pub(super) fn new_account(email: &str, role: Role) -> NewAccount {
    NewAccount {
        given_name: None,
        family_name: None,
        email: email.to_owned(),
        organization: None,
        role,
        enabled: true,
        password: "correct horse battery".to_owned(),
    }
}

/// The definition of a key for all Business Objects.
pub(super) fn new_key(role: Role) -> NewApiKey {
    NewApiKey {
        name: "line 4".to_owned(),
        role,
        expires_at: None,
        business_object: None,
        business_objects: Vec::new(),
    }
}

/// Creates the caller of this account, as if signed in with a session.
pub(super) fn session_caller(account: &Arc<Account>) -> Caller {
    let credential = Credential::Session(String::new());
    Caller { account: Some(account.clone()), role: account.role, credential, from: None }
}
