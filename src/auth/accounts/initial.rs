//! The first account, `admin`. Its random password is in a file that only the service can read.
use super::super::password::{self, Hash};
use super::super::{Account, Role, Source};
use super::{Accounts, blank, event};
use penstock_base::commit::NoClient;
use penstock_base::fault::{Fault, Kind};
use penstock_base::files::{sync_folder, write_atomically};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

/// The file in the data directory.
const FILE: &str = "initial-admin-password";
/// The email of the first account.
const EMAIL: &str = "admin";

impl Accounts {
    /// Creates the first account if there is no built-in account.
    pub(super) fn initial(&self) -> Result<(), Fault> {
        let writer = self.write();
        let entries = self.entries();
        let is_new = entries.all().all(|account| account.source() != Source::BuiltIn);
        let is_initial = entries.all().any(|account| account.initial_password);
        drop(entries);
        if self.inner.people != Source::BuiltIn || !is_new {
            if !is_initial {
                self.remove_file();
            }
            return Ok(());
        }
        let path = self.path();
        let password = password::random();
        let mut account = blank(EMAIL.to_owned(), Role::Admin);
        account.password = Some(Hash::of(&password)?);
        account.initial_password = true;
        // Before the account: a power cut in between leaves a password without an account, and the next start creates
        // another one. There is never an account whose password is unknown.
        write_atomically(&path, format!("{password}\n").as_bytes()).map_err(|error| {
            Fault::new(
                Kind::Internal,
                format!("writing the initial password to {} failed: {error}", path.display()),
            )
        })?;
        let detail = "the first account, with the role Admin and a random password";
        let created = event("account.created", &account, detail);
        self.save(&writer, &NoClient, account, std::slice::from_ref(&created))?;
        tracing::warn!(
            file = %path.display(),
            "Created the account admin. Its initial password is in the file, which is deleted when the password is changed."
        );
        Ok(())
    }

    /// Returns the account that still has the initial password, if any.
    pub fn with_initial_password(&self) -> Option<Arc<Account>> {
        self.entries().all().find(|account| account.initial_password).cloned()
    }

    /// Deletes the file if its password has been replaced.
    pub(super) fn password_changed(&self, before: &Account) {
        if before.initial_password {
            self.remove_file();
        }
    }

    fn path(&self) -> PathBuf {
        self.inner.data_dir.join(FILE)
    }

    fn remove_file(&self) {
        let removed = std::fs::remove_file(self.path());
        match removed.and_then(|()| sync_folder(&self.inner.data_dir)) {
            Err(error) if error.kind() != ErrorKind::NotFound => tracing::warn!(
                %error,
                file = %self.path().display(),
                "The file with the initial password, which is no longer valid, could not be deleted."
            ),
            _ => {}
        }
    }
}
