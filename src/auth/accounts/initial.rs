//! The first account, `admin`. Its random password is in a file that only the service can read.
use super::super::Account;
use super::super::password::{self, Hash};
use super::{Accounts, event_without_requester, new_account};
use penstock_base::commit::NoClient;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::files::{sync_folder, write_atomically};
use penstock_resources::account::AccountSource;
use penstock_resources::role::Role;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

/// The name of the file in the data directory.
const PASSWORD_FILE: &str = "initial-admin-password";
/// The email of the first account.
const INITIAL_EMAIL: &str = "admin";

impl Accounts {
    /// Creates the first account if there is no built-in account.
    pub(super) fn create_initial_account(&self) -> Result<(), GatewayError> {
        let writer = self.inner.writer.lock();
        let entries = self.inner.entries.read();
        let has_no_built_in =
            entries.iter_accounts().all(|account| account.source() != AccountSource::BuiltIn);
        let has_initial_password = entries.iter_accounts().any(|account| account.initial_password);
        drop(entries);
        if self.inner.people != AccountSource::BuiltIn || !has_no_built_in {
            if !has_initial_password {
                self.remove_file();
            }
            return Ok(());
        }
        let path = self.initial_password_path();
        let password = password::generate_password();
        let mut account = new_account(INITIAL_EMAIL.to_owned(), Role::Admin);
        account.password = Some(Hash::from_password(&password)?);
        account.initial_password = true;
        // The file is written before the account is committed. After a power cut in between, the file has a password
        // without an account, and the next start replaces it. So the password of the account is always known.
        write_atomically(&path, format!("{password}\n").as_bytes()).map_err(|error| {
            GatewayError::new(
                ErrorClass::Internal,
                format!("writing the initial password to {} failed: {error}", path.display()),
            )
        })?;
        let detail = "the first account, with the role Admin and a random password";
        let created = event_without_requester("account.created", &account, detail);
        self.commit_account(&writer, &NoClient, account, std::slice::from_ref(&created))?;
        tracing::warn!(
            file = %path.display(),
            "Created the account admin. Its initial password is in the file, which is deleted when the password is changed."
        );
        Ok(())
    }

    /// Returns the account that still has the initial password, if any.
    pub fn find_with_initial_password(&self) -> Option<Arc<Account>> {
        self.inner.entries.read().iter_accounts().find(|account| account.initial_password).cloned()
    }

    /// Deletes the password file if the account had the initial password until now.
    pub(super) fn discard_initial_password(&self, before: &Account) {
        if before.initial_password {
            self.remove_file();
        }
    }

    fn initial_password_path(&self) -> PathBuf {
        self.inner.data_dir.join(PASSWORD_FILE)
    }

    fn remove_file(&self) {
        let removed = std::fs::remove_file(self.initial_password_path());
        match removed.and_then(|()| sync_folder(&self.inner.data_dir)) {
            Err(error) if error.kind() != ErrorKind::NotFound => tracing::warn!(
                %error,
                file = %self.initial_password_path().display(),
                "The file with the initial password, which is no longer valid, could not be deleted."
            ),
            _ => {}
        }
    }
}
