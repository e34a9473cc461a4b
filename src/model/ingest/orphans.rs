//! Finds and removes nested objects that nothing refers to any more.
//!
//! A request removes links to objects. Whether these objects are orphans is decided after the whole request is
//! written. Counting references would keep a ring of objects that refer only to each other. So the gateway first
//! collects everything that is reachable from the suspects through the mapping. An object of this set is alive if
//! something outside the set, or another live object, refers to it. The others are removed.
use crate::mapping::Shape;
use crate::members::satisfies_any;
use crate::view::find_owning_field;
use crate::write_scope::WriteScope;
use oxrdf::{NamedNode, NamedOrBlankNode, Quad, Term};
use penstock_base::error::GatewayError;
use penstock_store::{Pattern, Read, SubjectFilter, Transaction};
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

/// What became of the objects that nothing refers to any more.
#[derive(Debug, Default)]
pub(super) struct RemovedOrphans {
    /// The objects that lost quads.
    pub(super) removed: Vec<NamedNode>,
    /// The objects that stay, because they satisfy one of the filters.
    pub(super) kept: Vec<NamedNode>,
}

/// The objects that lost a link in this request and may now be orphans.
#[derive(Debug, Default)]
pub(super) struct Orphans<'m> {
    suspects: Vec<(NamedNode, &'m Shape)>,
    named: HashSet<NamedNode>,
    /// The filters of the objects that stay even if nothing refers to them.
    kept: &'m [SubjectFilter],
}

impl<'m> Orphans<'m> {
    /// Creates an empty set. Objects that satisfy one of these filters are no orphans.
    pub(super) fn keeping(kept: &'m [SubjectFilter]) -> Self {
        Self { kept, ..Self::default() }
    }

    /// Records that a nested object lost a link.
    pub(super) fn suspect(&mut self, uri: NamedNode, shape: &'m Shape) {
        self.suspects.push((uri, shape));
    }

    /// Records that each nested object that these quads link to lost a link. The quads are about an object of this
    /// shape.
    pub(super) fn suspect_all<'q>(
        &mut self,
        shape: &'m Shape,
        quads: impl IntoIterator<Item = &'q Quad>,
    ) {
        for quad in quads {
            let Term::NamedNode(uri) = &quad.object else { continue };
            if let Some(nested) = nested_shape(shape, quad) {
                self.suspects.push((uri.clone(), nested));
            }
        }
    }

    /// Records that the request itself gives this object, so it is not an orphan.
    pub(super) fn keep_named(&mut self, uri: NamedNode) {
        self.named.insert(uri);
    }

    /// Removes the quads of the write scope about the orphans, except those of foreign and of kept objects.
    pub(super) fn remove_orphans(
        self,
        transaction: &mut Transaction<'_>,
        scope: &WriteScope<'_>,
    ) -> Result<RemovedOrphans, GatewayError> {
        let Self { suspects, named, kept: filters } = self;
        let mut found = RemovedOrphans::default();
        if suspects.is_empty() {
            return Ok(found);
        }
        let reached = collect_reachable(transaction, suspects)?;
        let mut living: Vec<NamedNode> = Vec::new();
        for uri in reached.keys() {
            if named.contains(uri)
                || is_referred_from_outside(transaction, uri, &reached, scope)?
                || scope.is_foreign(transaction, uri)?
            {
                living.push(uri.clone());
            } else if satisfies_any(transaction, filters, uri)? {
                living.push(uri.clone());
                found.kept.push(uri.clone());
            }
        }
        let mut alive: HashSet<NamedNode> = HashSet::new();
        while let Some(uri) = living.pop() {
            if !alive.insert(uri.clone()) {
                continue;
            }
            for quad in transaction.quads_about(&uri.into())? {
                if let Term::NamedNode(object) = quad.object
                    && reached.contains_key(&object)
                    && !alive.contains(&object)
                {
                    living.push(object);
                }
            }
        }
        for uri in reached.into_keys().filter(|uri| !alive.contains(uri)) {
            let mut quads = transaction.quads_about(&uri.clone().into())?;
            quads.retain(|quad| scope.contains(quad));
            for quad in &quads {
                transaction.remove(quad.as_ref())?;
            }
            if !quads.is_empty() {
                found.removed.push(uri);
            }
        }
        // The order of a map would differ from run to run.
        found.removed.sort_unstable();
        found.kept.sort_unstable();
        Ok(found)
    }
}

/// Returns the suspects and everything nested in them, each with the shapes under which it occurs.
fn collect_reachable<'m>(
    read: &impl Read,
    mut waiting: Vec<(NamedNode, &'m Shape)>,
) -> Result<HashMap<NamedNode, Vec<&'m Shape>>, GatewayError> {
    let mut reached: HashMap<NamedNode, Vec<&'m Shape>> = HashMap::new();
    while let Some((uri, shape)) = waiting.pop() {
        let shapes = reached.entry(uri.clone()).or_default();
        if shapes.iter().any(|known| std::ptr::eq(*known, shape)) {
            continue;
        }
        shapes.push(shape);
        for quad in read.quads_about(&uri.into())? {
            if let Some(nested) = nested_shape(shape, &quad)
                && let Term::NamedNode(object) = quad.object
            {
                waiting.push((object, nested));
            }
        }
    }
    Ok(reached)
}

fn is_referred_from_outside(
    read: &impl Read,
    uri: &NamedNode,
    inside: &HashMap<NamedNode, Vec<&Shape>>,
    scope: &WriteScope<'_>,
) -> Result<bool, GatewayError> {
    let pattern = Pattern { object: Some(uri.clone().into()), ..Pattern::default() };
    let mut found = false;
    read.for_each(&pattern, &mut |quad| match &quad.subject {
        NamedOrBlankNode::NamedNode(subject)
            if inside.contains_key(subject) && scope.contains(&quad) =>
        {
            ControlFlow::Continue(())
        }
        _ => {
            found = true;
            ControlFlow::Break(())
        }
    })?;
    Ok(found)
}

/// Returns the shape of the nested object that a quad about an object of `shape` links to, if there is one.
fn nested_shape<'m>(shape: &'m Shape, quad: &Quad) -> Option<&'m Shape> {
    let place = find_owning_field(shape, quad.predicate.as_ref(), quad.object.as_ref())?;
    shape.fields.get(place)?.shape()
}
