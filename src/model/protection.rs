//! What protects the members of a Business Object, whichever route changes them: its shapes, and its review.
//!
//! A commit touches a Business Object if it changes, adds or removes an object that is a member before or after the
//! commit, or that is nested in one. An ingestion is then validated by its shapes ([`find_violations`]). Every other
//! commit of a client is refused ([`check_untouched`]), unless an Admin overrides it. If it requires a review, every
//! commit is refused that does not publish a change of it ([`check_reviewed_untouched`]), except its own retention and
//! the move of a namespace. An Admin can override that too, for a change when it is sent.
use crate::change_feed::{HolderLinks, Watch, WatchedDefinitions};
use crate::ingest::Request;
use crate::list::changed_objects;
use crate::members::satisfies_any;
use crate::resource::{BusinessObject, Compiled};
use oxrdf::{NamedNode, NamedOrBlankNode, Term};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_resources::business_object::{Review, Validation, ValidationMode};
use penstock_shapes::{
    Budget, Data, Limits, Properties, Scope, Severity, ShapesGraph, StoredTriples, Targets,
    Violation, lend_triples,
};
use penstock_store::{Pattern, Read, SubjectFilter, Transaction};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// The maximum number of members that one commit may touch.
const MAX_TOUCHED: usize = 10_000;

/// How a message names the objects of a Business Object that the credential of the request may not know.
const UNSEEN_OBJECTS: &str =
    "objects of another Business Object, which this credential is not for,";

/// What protects the members of one Business Object.
#[derive(Debug)]
pub(crate) struct Protection {
    /// Its id.
    id: String,
    /// Its name.
    name: String,
    mode: ValidationMode,
    /// Whether only approved changes may change its members.
    requires_review: bool,
    /// Its shapes graphs, or why one cannot be read.
    shapes: Result<Vec<Arc<ShapesGraph>>, GatewayError>,
    /// The filters of its members. If this version of the gateway cannot determine them, they are the filters of all
    /// objects that may be members or nested in one.
    members: Vec<SubjectFilter>,
    /// Whether this version of the gateway can determine the members.
    has_known_members: bool,
    links: HolderLinks,
}

/// A violation that a commit would cause, or that existed before it.
#[derive(Debug)]
pub(crate) struct FoundViolation {
    pub(crate) violation: Violation,
    /// The name of the Business Object whose shapes it violates.
    pub(crate) business_object: String,
    /// Whether it was there before the commit.
    pub(crate) is_old: bool,
    /// Whether it prevents the commit.
    pub(crate) is_refused: bool,
    /// The validated objects that make its focus node a target, if that is none of them.
    pub(crate) holders: Arc<[Holder]>,
}

/// An object that has a value of `sh:targetObjectsOf`.
#[derive(Debug, Clone)]
pub(crate) struct Holder {
    pub(crate) uri: NamedNode,
    pub(crate) property: NamedNode,
}

/// The objects that have each value of the scope.
type Holders = HashMap<Term, Vec<Holder>>;

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
    fn is_member(&self, read: &dyn Read, uri: &NamedNode) -> Result<bool, GatewayError> {
        Ok(satisfies_any(read, &self.members, uri)?)
    }

    /// Returns whether an object is a member or nested in one. If it is nested in too many objects to look at each, it
    /// counts as such.
    fn holds(&self, read: &dyn Read, uri: &NamedNode) -> Result<bool, GatewayError> {
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
    fn find_touched(
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
    fn is_touched(
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
    fn touched_error(&self) -> GatewayError {
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

    fn too_many_error(&self) -> GatewayError {
        GatewayError::new(
            ErrorClass::Conflict,
            format!(
                "more than {MAX_TOUCHED} members of the Business Object {:?} would change, or hold or refer to what would change, too many to check in one commit; change fewer objects at once, or override this as an Admin with bypass=true",
                self.name
            ),
        )
    }

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

    /// Returns the violations of the touched members, and of what is nested in them.
    fn find_violations(
        &self,
        transaction: &mut Transaction<'_>,
        limits: &Limits,
    ) -> Result<Vec<FoundViolation>, GatewayError> {
        if self.mode == ValidationMode::Off {
            return Ok(Vec::new());
        }
        let budget = Budget::new(limits.clone());
        if !self.has_known_members {
            // What it protects must not become unprotected because it does not compile.
            let is_refused =
                self.mode == ValidationMode::Reject && self.is_touched(transaction, &budget)?;
            return if is_refused { Err(self.touched_error()) } else { Ok(Vec::new()) };
        }
        let usable = self.shapes.as_deref().unwrap_or_default();
        let mut properties = Properties::default();
        for graph in usable {
            properties.forward.extend(graph.properties().forward.iter().cloned());
            properties.inverse.extend(graph.properties().inverse.iter().cloned());
        }
        let targets = Targets::of_graphs(usable.iter().map(Arc::as_ref));
        // A value that changes is a target because of the members that have it.
        properties.forward.extend(targets.objects_of.iter().cloned());
        let members = self.find_touched(transaction, &properties, MAX_TOUCHED + 1, &budget)?;
        if members.is_empty() {
            return Ok(Vec::new());
        }
        if members.len() > MAX_TOUCHED {
            return Err(self.too_many_error());
        }
        if let Err(error) = &self.shapes {
            let mut error = error.clone();
            error.detail = format!(
                "the objects of the Business Object {:?} cannot be validated: {}",
                self.name, error.detail
            );
            return Err(error);
        }
        let transaction = &*transaction;
        // What the commit deletes is never refused.
        let (scope, holders) =
            build_scope(transaction, &self.links, members.clone(), &targets, limits)?;
        // A value can have many holders, and many violations.
        let holders: HashMap<Term, Arc<[Holder]>> =
            holders.into_iter().map(|(value, holders)| (value, holders.into())).collect();
        let mut found = Vec::new();
        for graph in usable {
            let triples = StoredTriples(transaction);
            let data = Data::new(Box::new(&triples), limits.clone());
            let doubtful = graph.find_doubtful(&data, &scope)?;
            if doubtful.is_empty() {
                continue;
            }
            let now = lend_triples(&triples, |lent| {
                graph.validate(&Data::new(lent, limits.clone()), &doubtful)
            })?;
            if now.is_empty() {
                continue;
            }
            let prior = transaction.prior_state();
            let validated_before =
                self.find_prior_scope(&prior, &members, doubtful, &targets, limits)?;
            let before = lend_triples(&StoredTriples(&prior), |lent| {
                graph.validate(&Data::new(lent, limits.clone()), &validated_before)
            })?;
            let before: HashSet<_> = before.iter().map(Violation::identity).collect();
            found.extend(now.into_iter().map(|violation| {
                let is_old = before.contains(&violation.identity());
                FoundViolation {
                    is_refused: self.mode == ValidationMode::Reject
                        && violation.severity == Severity::Violation
                        && !is_old,
                    is_old,
                    holders: holders.get(&violation.focus_node).cloned().unwrap_or_default(),
                    violation,
                    business_object: self.name.clone(),
                }
            }));
        }
        Ok(found)
    }

    /// Returns those of these objects that the shapes applied to before the commit: they were stored, and members or
    /// nested in one. `touched` has all such members. What the commit brings under the shapes has no earlier violation.
    fn find_prior_scope(
        &self,
        prior: &dyn Read,
        touched: &BTreeSet<NamedNode>,
        Scope { members, nested, mut values }: Scope,
        targets: &Targets,
        limits: &Limits,
    ) -> Result<Scope, GatewayError> {
        let mut members_before = BTreeSet::new();
        for uri in touched {
            if self.is_member(prior, uri)? {
                members_before.insert(uri.clone());
            }
        }
        let (before, _) = build_scope(prior, &self.links, members_before, targets, limits)?;
        values.retain(|value| before.contains(value));
        let (mut still, mut others) = (BTreeSet::new(), BTreeSet::new());
        for uri in members {
            if before.members.contains(&uri) {
                still.insert(uri);
            } else if before.contains(&Term::from(uri.clone())) {
                others.insert(uri);
            }
        }
        others.extend(nested.into_iter().filter(|uri| before.contains(&Term::from(uri.clone()))));
        Ok(Scope { members: still, nested: others, values })
    }
}

/// Returns what is validated of these members: they, and what is nested in them, as far as it is stored, and what they make
/// targets, stored or not, with the objects that do.
///
/// # Errors
/// `ErrorClass::Invalid` past a limit: a member may hold any number of objects
pub(crate) fn build_scope(
    read: &dyn Read,
    links: &HolderLinks,
    members: BTreeSet<NamedNode>,
    targets: &Targets,
    limits: &Limits,
) -> Result<(Scope, Holders), GatewayError> {
    let budget = Budget::new(limits.clone());
    let nested = links.find_nested(read, &members, &|| budget.check())?;
    let named = nested.iter().cloned().map(Term::from);
    let named = named.filter(|node| targets.nodes.contains(node));
    let mut holders: Holders = named.map(|node| (node, Vec::new())).collect();
    let mut scope = Scope { members, nested, values: HashSet::new() };
    scope.retain(|uri| {
        budget.check_time()?;
        Ok::<_, GatewayError>(
            read.any(&Pattern { subject: Some(uri.clone().into()), ..Pattern::default() })?,
        )
    })?;
    for uri in scope.members.iter().chain(&scope.nested) {
        for property in &targets.objects_of {
            let pattern = Pattern {
                subject: Some(uri.clone().into()),
                predicate: Some(property.clone()),
                ..Pattern::default()
            };
            let mut checked = Ok(());
            read.for_each(&pattern, &mut |quad| {
                let holder = Holder { uri: uri.clone(), property: property.clone() };
                holders.entry(quad.object).or_default().push(holder);
                checked = budget.check();
                if checked.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            checked?;
        }
    }
    holders.retain(|value, _| !scope.contains(value));
    scope.values = holders.keys().cloned().collect();
    Ok((scope, holders))
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
