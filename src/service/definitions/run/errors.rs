//! Collects the errors of all definitions of a run.
use super::super::resources::{Resource, files_error};
use crate::definitions::kind::Result;
use penstock_base::error::{ErrorClass, Finding};

/// The errors of definitions, with their places.
#[derive(Default)]
pub(super) struct Errors {
    findings: Vec<Finding>,
    class: Option<ErrorClass>,
}

impl Errors {
    /// Keeps the error of a definition and returns `None`. An error that is not about the definition ends the run.
    pub(super) fn collect<T>(
        &mut self,
        resource: &Resource<'_>,
        result: Result<T>,
    ) -> Result<Option<T>> {
        let error = match result {
            Ok(value) => return Ok(Some(value)),
            Err(error) => error,
        };
        match error.class {
            ErrorClass::Invalid
            | ErrorClass::Malformed
            | ErrorClass::Conflict
            | ErrorClass::Unconfirmed
            | ErrorClass::TooLarge => {
                self.class.get_or_insert(error.class);
                self.findings.extend(resource.place.place_error(error));
                Ok(None)
            }
            _ => Err(error),
        }
    }

    pub(super) fn finish(self) -> Result<()> {
        match self.class {
            Some(class) => Err(files_error(class, self.findings)),
            None => Ok(()),
        }
    }
}
