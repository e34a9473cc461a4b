//! What protects one Business Object, and which of its members a commit touches.
use crate::change_feed::HolderLinks;
use crate::list::changed_objects;
use crate::members::satisfies_any;
use crate::resource::{BusinessObject, Compiled};
use oxrdf::{NamedNode, NamedOrBlankNode};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_resources::business_object::{Review, Validation, ValidationMode};
use penstock_shapes::{Budget, Properties, ShapesGraph};
use penstock_store::{Pattern, Read, SubjectFilter, Transaction};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The maximum number of members that one commit may touch.
pub(super) const MAX_TOUCHED: usize = 10_000;

/// What protects the members of one Business Object.
#[derive(Debug)]
pub(crate) struct Protection {
    /// Its id.
    pub(super) id: String,
    /// Its name.
    pub(super) name: String,
    pub(super) mode: ValidationMode,
    /// Whether only approved changes may change its members.
    pub(super) requires_review: bool,
    /// Its shapes graphs, or why one cannot be read.
    pub(super) shapes: Result<Vec<Arc<ShapesGraph>>, GatewayError>,
    /// The filters of its members. If this version of the gateway cannot determine them, they are the filters of all
    /// objects that may be members or nested in one.
    pub(super) members: Vec<SubjectFilter>,
    /// Whether this version of the gateway can determine the members.
    pub(super) has_known_members: bool,
    pub(super) links: HolderLinks,
}

impl Protection {
    /// Returns the protection of a Business Object, with the shapes graphs that `graphs` returns; `None` if it has none, or
    /// is being deleted with its objects. Without `compiled` the members are unknown, and `members` are the filters of all
    /// possible ones.
    pub(crate) fn new(
        object: &BusinessObject,
        compiled: Option<&Compiled>,
        members: &[SubjectFilter],
        graphs: &mut dyn FnMut(&str) -> Result<Arc<ShapesGraph>, GatewayError>,
    ) -> Option<Self> {
        let definition = &object.definition;
        let requires_review = definition.review() == Review::Required;
        let validation = definition.validation.clone().unwrap_or_default();
        let validates = validation.mode != ValidationMode::Off && !validation.shapes.is_empty();
        let validation = if validates { validation } else { Validation::default() };
        if object.deleting.is_some() || !validates && !requires_review {
            return None;
        }
        Some(Self {
            id: object.id.clone(),
            name: definition.name.clone(),
            mode: validation.mode,
            requires_review,
            shapes: validation.shapes.iter().map(|name| graphs(name)).collect(),
            members: members.to_vec(),
            has_known_members: compiled.is_some(),
            links: compiled.map_or_else(HolderLinks::default, |compiled| {
                HolderLinks::of_mapping(&compiled.mapping.root)
            }),
        })
    }

    /// Returns whether an object is a member, or may be one if the members are unknown.
    pub(super) fn is_member(&self, read: &dyn Read, uri: &NamedNode) -> Result<bool, GatewayError> {
        Ok(satisfies_any(read, &self.members, uri)?)
    }

    /// Returns whether an object is a member or nested in one. If it is nested in too many objects to look at each, it
    /// counts as such.
    pub(super) fn holds(&self, read: &dyn Read, uri: &NamedNode) -> Result<bool, GatewayError> {
        if self.is_member(read, uri)? {
            return Ok(true);
        }
        let mut is_held = false;
        let is_complete = self.links.visit_holders(
            read,
            [uri.clone()],
            MAX_TOUCHED,
            &|| Ok(()),
            &mut |holder| {
                is_held = self.is_member(read, &holder)?;
                Ok(if is_held { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            },
        )?;
        Ok(is_held || !is_complete)
    }

    /// Returns the members, before or after the commit, that it changes or that hold what it changes, and those that
    /// refer to it by one of these properties. Stops once it has found `most` of them.
    ///
    /// # Errors
    /// `ErrorClass::Conflict` if there are too many, and `ErrorClass::Invalid` if it takes too long
    pub(super) fn find_touched(
        &self,
        transaction: &mut Transaction<'_>,
        properties: &Properties,
        most: usize,
        budget: &Budget,
    ) -> Result<BTreeSet<NamedNode>, GatewayError> {
        let changed = changed_objects(transaction)?;
        let mut touched = BTreeSet::new();
        let mut known: BTreeSet<NamedNode> = BTreeSet::new();
        for (uri, is_known) in changed {
            budget.check_time()?;
            if self.is_member(transaction, &uri)?
                || is_known && self.is_member(&transaction.prior_state(), &uri)?
            {
                touched.insert(uri.clone());
                if touched.len() == most {
                    return Ok(touched);
                }
            }
            // Only changed objects can refer to an object that no quad named before.
            if is_known {
                known.insert(uri);
            }
        }
        let mut related = known.clone();
        for uri in known.iter().filter(|_| !properties.forward.is_empty()) {
            self.add_referrers(transaction, &properties.forward, uri, &mut related, budget)?;
        }
        if related.len() > known.len() + MAX_TOUCHED {
            return Err(self.too_many_error());
        }
        for property in &properties.inverse {
            let pattern = Pattern { predicate: Some(property.clone()), ..Pattern::default() };
            let objects = transaction.find_changed_objects(&pattern)?;
            related.extend(objects.into_iter().map(|(uri, _)| uri));
        }
        for uri in &related {
            budget.check_time()?;
            if !known.contains(uri) && self.is_member(transaction, uri)? {
                touched.insert(uri.clone());
            }
        }
        let read = &*transaction;
        let check = || budget.check_time();
        let is_complete =
            self.links.visit_holders(read, related, MAX_TOUCHED, &check, &mut |holder| {
                if !touched.contains(&holder) && self.is_member(read, &holder)? {
                    touched.insert(holder);
                }
                let is_enough = touched.len() >= most;
                Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            })?;
        if is_complete { Ok(touched) } else { Err(self.too_many_error()) }
    }

    /// Adds the objects that refer to an object by one of these properties, if they are members or may be nested in one.
    fn add_referrers(
        &self,
        read: &dyn Read,
        properties: &BTreeSet<NamedNode>,
        uri: &NamedNode,
        found: &mut BTreeSet<NamedNode>,
        budget: &Budget,
    ) -> Result<(), GatewayError> {
        let most = found.len() + MAX_TOUCHED;
        let mut failed = None;
        // One look at all of its referrers costs as much as one at those of a single property, unless there are many.
        let pattern = Pattern { object: Some(uri.clone().into()), ..Pattern::default() };
        read.for_each(&pattern, &mut |quad| {
            let NamedOrBlankNode::NamedNode(subject) = quad.subject else {
                return ControlFlow::Continue(());
            };
            if !properties.contains(&quad.predicate) || found.contains(&subject) {
                return ControlFlow::Continue(());
            }
            let may_belong = budget.check_time().and_then(|()| self.may_belong(read, &subject));
            match may_belong {
                Ok(true) => drop(found.insert(subject)),
                Ok(false) => {}
                Err(error) => failed = Some(error),
            }
            // One more than is allowed is enough to refuse the commit.
            if failed.is_some() || found.len() > most {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        failed.map_or(Ok(()), Err)
    }

    /// Returns whether an object is a member, or may be nested in one.
    fn may_belong(&self, read: &dyn Read, uri: &NamedNode) -> Result<bool, GatewayError> {
        Ok(self.is_member(read, uri)? || self.links.has_holder(read, uri)?)
    }

    /// Returns whether the commit changes a member, or what is nested in one. If what it changes is nested in too many
    /// objects to look at each within the time, it counts as such.
    pub(super) fn is_touched(
        &self,
        transaction: &mut Transaction<'_>,
        budget: &Budget,
    ) -> Result<bool, GatewayError> {
        match self.find_touched(transaction, &Properties::default(), 1, budget) {
            Ok(touched) => Ok(!touched.is_empty()),
            Err(error) if matches!(error.class, ErrorClass::Conflict | ErrorClass::Invalid) => {
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the error of a commit that may not touch the Business Object.
    pub(super) fn touched_error(&self) -> GatewayError {
        let name = &self.name;
        let (protection, remedy) = if self.requires_review {
            ("requires a review", "ingest them into it, so that an approver sees the change")
        } else {
            ("refuses what violates its shapes", "ingest them instead, so that they are validated")
        };
        let message = if self.has_known_members {
            format!(
                "the request changes objects of the Business Object {name:?}, which {protection}; {remedy}, or override this as an Admin with bypass=true"
            )
        } else {
            format!(
                "the request changes objects that may belong to the Business Object {name:?}, which {protection} and does not compile in this version; replace its definition, or override this as an Admin with bypass=true"
            )
        };
        GatewayError::new(ErrorClass::Conflict, message)
    }

    pub(super) fn too_many_error(&self) -> GatewayError {
        GatewayError::new(
            ErrorClass::Conflict,
            format!(
                "more than {MAX_TOUCHED} members of the Business Object {:?} would change, or hold or refer to what would change, too many to check in one commit; change fewer objects at once, or override this as an Admin with bypass=true",
                self.name
            ),
        )
    }
}
