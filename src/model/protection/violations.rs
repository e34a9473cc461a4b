//! The violations of the shapes of one Business Object by the members that a commit touches.
use super::touched::{MAX_TOUCHED, Protection};
use crate::change_feed::HolderLinks;
use oxrdf::{NamedNode, Term};
use penstock_base::error::GatewayError;
use penstock_resources::business_object::ValidationMode;
use penstock_shapes::{
    Budget, Data, Limits, Properties, Scope, Severity, StoredTriples, Targets, Violation,
    lend_triples,
};
use penstock_store::{Pattern, Read, Transaction};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

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

impl Protection {
    /// Returns the violations of the touched members, and of what is nested in them.
    pub(super) fn find_violations(
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
