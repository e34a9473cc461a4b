//! What protects the members of a Business Object, whichever route changes them: its shapes, and its review.
//!
//! A commit touches a Business Object if it changes, adds or removes an object that is a member before or after the
//! commit, or that is nested in one. An ingestion is then validated by its shapes ([`find_violations`]). Every other
//! commit of a client is refused ([`check_untouched`]), unless an Admin overrides it. If it requires a review, every
//! commit is refused that does not publish a change of it ([`check_reviewed_untouched`]), except its own retention and
//! the move of a namespace. An Admin can override that too, for a change when it is sent.
//!
//! - `touched` has what protects one Business Object, and finds the members that a commit touches
//! - `violations` finds the violations of its shapes

pub(crate) mod touched;
mod violations;

pub(crate) use violations::{FoundViolation, build_scope};

use crate::change_feed::{Watch, WatchedDefinitions};
use crate::ingest::Request;
use oxrdf::NamedNode;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_resources::business_object::ValidationMode;
use penstock_shapes::{Budget, Limits};
use penstock_store::{Read, SubjectFilter, Transaction};
use std::time::Duration;
use touched::Protection;

/// How a message names the objects of a Business Object that the credential of the request may not know.
const UNSEEN_OBJECTS: &str =
    "objects of another Business Object, which this credential is not for,";

/// What the validation of a commit has found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) violations: Vec<FoundViolation>,
    /// Why objects were not validated, in the mode `warn` or because the requester overrides it.
    pub(crate) not_validated: Vec<String>,
    /// The names of the Business Objects in the mode `reject` whose validation the requester overrides.
    pub(crate) bypassed: Vec<String>,
}

impl Protection {
    /// Returns an error about the touched members without what the credential of the request may not know.
    fn withhold(&self, error: GatewayError, request: &Request<'_>) -> GatewayError {
        // An error of the store, such as damage on the disk, keeps its cause.
        let names_it = error.detail.contains(&format!("{:?}", self.name));
        if !names_it || request.may_name(&self.name) {
            return error;
        }
        GatewayError::new(
            error.class,
            format!(
                "{UNSEEN_OBJECTS} would change, which its review or its shapes do not allow; leave them out, or send them \
                 with a credential that is not limited to Business Objects"
            ),
        )
    }

    /// Says that the touched members were not validated, and why, as far as the credential of the request may know it.
    fn describe_not_validated(&self, request: &Request<'_>, why: &str) -> String {
        if request.may_name(&self.name) {
            format!("objects of the Business Object {:?} were not validated{why}", self.name)
        } else {
            format!("{UNSEEN_OBJECTS} were not validated")
        }
    }
}

/// Returns the violations of the shapes of every Business Object that the ingestion touches. The limits count for all of
/// them together. In the mode `warn`, an error is only a warning. `bypass` of the request overrides an
/// `ErrorClass::Conflict`.
///
/// # Errors
/// - `ErrorClass::Conflict` if more than 10,000 members are touched, or if a touched Business Object does not compile
/// - `ErrorClass::Invalid` past a limit of the validation
/// - `ErrorClass::Damaged` if this version cannot use the shapes of a touched member
pub(crate) fn find_violations(
    transaction: &mut Transaction<'_>,
    definitions: &WatchedDefinitions,
    limits: &Limits,
    request: &Request<'_>,
) -> Result<Found, GatewayError> {
    let mut found = Found::default();
    for protection in &definitions.protections {
        match protection.find_violations(transaction, limits) {
            Ok(violations) => found.violations.extend(violations),
            Err(error) if request.bypass && error.class == ErrorClass::Conflict => {
                let why = format!(", because bypass=true overrides this: {}", error.detail);
                found.not_validated.push(protection.describe_not_validated(request, &why));
                found.bypassed.push(protection.name.clone());
            }
            Err(error)
                if protection.mode == ValidationMode::Warn
                    && matches!(
                        error.class,
                        ErrorClass::Conflict | ErrorClass::Invalid | ErrorClass::Damaged
                    ) =>
            {
                let why = format!(": {}", error.detail);
                found.not_validated.push(protection.describe_not_validated(request, &why));
            }
            Err(error) => return Err(protection.withhold(error, request)),
        }
    }
    Ok(found)
}

/// Checks that a commit that is no ingestion touches no Business Object that refuses violations of its shapes or requires a
/// review. Returns their names if the requester overrides the check. Those that cannot be checked within `time`
/// (`service.limits.shapes.time`) count as touched.
///
/// # Errors
/// `ErrorClass::Conflict` with the name of the first one.
pub fn check_untouched(
    transaction: &mut Transaction<'_>,
    watch: &Watch,
    time: Duration,
    is_overridden: bool,
) -> Result<Vec<String>, GatewayError> {
    let budget = Budget::of_time(time);
    let definitions = watch.current_definitions(transaction)?;
    let mut touched = Vec::new();
    for protection in &definitions.protections {
        if protection.mode != ValidationMode::Reject && !protection.requires_review {
            continue;
        }
        if !protection.is_touched(transaction, &budget)? {
            continue;
        }
        if !is_overridden {
            return Err(protection.touched_error());
        }
        touched.push(protection.name.clone());
    }
    Ok(touched)
}

/// Checks that an ingestion touches no other Business Object that requires a review. Returns their names if `bypass` of the
/// request overrides the check. A Business Object that cannot be checked within `time` counts as touched.
///
/// # Errors
/// `ErrorClass::Conflict` with the name of the first one, if the credential of the request may know it.
pub(crate) fn check_reviewed_untouched(
    transaction: &mut Transaction<'_>,
    definitions: &WatchedDefinitions,
    request: &Request<'_>,
    time: Duration,
) -> Result<Vec<String>, GatewayError> {
    let own_id = &request.business_object.object.id;
    let budget = Budget::of_time(time);
    let mut touched = Vec::new();
    for protection in &definitions.protections {
        if !protection.requires_review
            || protection.id == *own_id
            || !protection.is_touched(transaction, &budget)?
        {
            continue;
        }
        if !request.bypass {
            return Err(protection.withhold(protection.touched_error(), request));
        }
        touched.push(protection.name.clone());
    }
    Ok(touched)
}

impl WatchedDefinitions {
    /// Returns the filters of the members of the Business Objects that require a review, except the one with this id.
    pub(crate) fn list_reviewed_members(&self, except: &str) -> Vec<SubjectFilter> {
        self.list_reviewed(except).flat_map(|protection| protection.members.clone()).collect()
    }

    /// Returns the name of a Business Object that requires a review, other than the one with this id, and that has the
    /// object as a member or nested in one.
    ///
    /// # Errors
    /// The errors of the store.
    pub(crate) fn find_reviewed_holder(
        &self,
        read: &dyn Read,
        except: &str,
        uri: &NamedNode,
    ) -> Result<Option<String>, GatewayError> {
        for protection in self.list_reviewed(except) {
            if protection.holds(read, uri)? {
                return Ok(Some(protection.name.clone()));
            }
        }
        Ok(None)
    }

    fn list_reviewed(&self, except: &str) -> impl Iterator<Item = &Protection> {
        let is_other =
            move |protection: &&Protection| protection.requires_review && protection.id != except;
        self.protections.iter().filter(is_other)
    }
}
