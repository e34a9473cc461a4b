//! Finds and removes nested objects that nothing refers to any more.
//!
//! A request removes links to objects. Whether these objects are orphans is decided after the whole request is
//! written. Counting references would keep a ring of objects that refer only to each other. So the gateway first
//! collects everything that is reachable from the suspects through the mapping. An object of this set is alive if
//! something outside the set, or another live object, refers to it. The others are removed.
use super::Answer;
use crate::list::{List, is_list_node, remove_quads};
use crate::mapping::Shape;
use crate::members::satisfies_any;
use crate::view::find_owning_field;
use crate::write_scope::WriteScope;
use oxrdf::vocab::rdf;
use oxrdf::{NamedNode, NamedOrBlankNode, Quad, Term};
use penstock_base::error::GatewayError;
use penstock_store::{FastMap, FastSet, Pattern, Read, SubjectFilter, Transaction};
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
    /// Each with the shapes under which it lost a link.
    suspects: FastMap<NamedNode, Vec<&'m Shape>>,
    /// The suspects that [`Self::remove_given`] has removed since the savepoint; `None` without one.
    removed_given: Option<Vec<(NamedNode, Vec<&'m Shape>)>>,
    named: FastSet<NamedNode>,
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
        let shapes = self.suspects.entry(uri).or_default();
        if !shapes.iter().any(|known| std::ptr::eq(*known, shape)) {
            shapes.push(shape);
        }
    }

    pub(super) fn set_savepoint(&mut self) {
        self.removed_given.get_or_insert_default().clear();
    }

    /// Suspects again what is stored again, because the object of the request that gave it is rejected.
    pub(super) fn roll_back_to_savepoint(&mut self) {
        self.suspects.extend(self.removed_given.take().into_iter().flatten().rev());
    }

    /// Removes what is stored about an object that the request gives, if it lost a link before and is an orphan now. So
    /// it keeps nothing of what it had, as if the two were separate requests. The objects nested in it lose their links;
    /// whether they are orphans is decided at the end, because the request may refer to them. Returns whether the object
    /// was removed. The caller links it, so it is no suspect until it loses a link again.
    pub(super) fn remove_given(
        &mut self,
        transaction: &mut Transaction<'_>,
        scope: &WriteScope<'_>,
        uri: &NamedNode,
    ) -> Result<bool, GatewayError> {
        let Some(shapes) = self.suspects.remove(uri) else { return Ok(false) };
        let suspect: FastMap<_, _> = std::iter::once((uri.clone(), shapes.clone())).collect();
        let links = Pattern { object: Some(uri.clone().into()), ..Pattern::default() };
        // What refers to it may be nested in it.
        let reached = if transaction.any(&links)? {
            collect_reachable(transaction, suspect)?
        } else {
            suspect
        };
        let (alive, _) = self.find_living(transaction, scope, &reached)?;
        if alive.contains(uri) {
            return Ok(false);
        }
        let mut quads = transaction.quads_about(&uri.clone().into())?;
        quads.retain(|quad| scope.contains(quad));
        for shape in shapes.iter().copied() {
            self.suspect_all(&*transaction, shape, &quads)?;
        }
        remove_quads(transaction, &quads)?;
        if let Some(removed) = &mut self.removed_given {
            removed.push((uri.clone(), shapes));
        }
        Ok(true)
    }

    /// Records that each nested object that these quads link to lost a link, those in an ordered array too. The quads are
    /// about an object of this shape.
    pub(super) fn suspect_all<'q>(
        &mut self,
        read: &dyn Read,
        shape: &'m Shape,
        quads: impl IntoIterator<Item = &'q Quad>,
    ) -> Result<(), GatewayError> {
        for quad in quads {
            let Term::NamedNode(uri) = &quad.object else { continue };
            let Some((nested, is_list)) = find_nested_shape(shape, quad) else { continue };
            self.suspect(uri.clone(), nested);
            if is_list && let Ok(list) = List::read(read, uri.clone())? {
                for value in list.values() {
                    if let Term::NamedNode(element) = value {
                        self.suspect(element.clone(), nested);
                    }
                }
            }
        }
        Ok(())
    }

    /// Records that the request itself gives these objects, if another one lost a link.
    pub(super) fn keep_answered(&mut self, answer: &Answer) {
        if !self.suspects.is_empty() {
            let uris = answer.objects.iter().map(|object| &object.uri);
            self.named.extend(uris.map(NamedNode::new_unchecked));
        }
    }

    /// Records that the request itself gives this object, so it is not an orphan.
    pub(super) fn keep_named(&mut self, uri: NamedNode) {
        self.named.insert(uri);
    }

    /// Removes the quads of the write scope about the orphans, except those of foreign and of kept objects.
    pub(super) fn remove_orphans(
        mut self,
        transaction: &mut Transaction<'_>,
        scope: &WriteScope<'_>,
    ) -> Result<RemovedOrphans, GatewayError> {
        let suspects = std::mem::take(&mut self.suspects);
        if suspects.is_empty() {
            return Ok(RemovedOrphans::default());
        }
        let reached = collect_reachable(transaction, suspects)?;
        let (alive, kept) = self.find_living(transaction, scope, &reached)?;
        let mut found = RemovedOrphans { removed: Vec::new(), kept };
        for uri in reached.into_keys().filter(|uri| !alive.contains(uri)) {
            let mut quads = transaction.quads_about(&uri.clone().into())?;
            quads.retain(|quad| scope.contains(quad));
            remove_quads(transaction, &quads)?;
            if !quads.is_empty() && !is_list_node(&uri) {
                found.removed.push(uri);
            }
        }
        // The order of a map would differ from run to run.
        found.removed.sort_unstable();
        found.kept.sort_unstable();
        Ok(found)
    }

    /// Returns which of these objects are alive, and which of them only because they satisfy a filter.
    fn find_living(
        &self,
        read: &dyn Read,
        scope: &WriteScope<'_>,
        reached: &FastMap<NamedNode, Vec<&Shape>>,
    ) -> Result<(FastSet<NamedNode>, Vec<NamedNode>), GatewayError> {
        let (mut living, mut kept) = (Vec::new(), Vec::new());
        for uri in reached.keys() {
            if self.named.contains(uri)
                || is_referred_from_outside(read, uri, reached, scope)?
                || scope.is_foreign(read, uri)?
            {
                living.push(uri.clone());
            } else if satisfies_any(read, self.kept, uri)? {
                living.push(uri.clone());
                kept.push(uri.clone());
            }
        }
        let mut alive: FastSet<NamedNode> = FastSet::default();
        while let Some(uri) = living.pop() {
            if !alive.insert(uri.clone()) {
                continue;
            }
            for quad in read.quads_about(&uri.into())? {
                if let Term::NamedNode(object) = quad.object
                    && reached.contains_key(&object)
                    && !alive.contains(&object)
                {
                    living.push(object);
                }
            }
        }
        Ok((alive, kept))
    }
}

/// Returns the suspects and everything nested in them, each with the shapes under which it occurs. A node of a list of objects
/// occurs under their shape.
fn collect_reachable<'m>(
    read: &dyn Read,
    suspects: FastMap<NamedNode, Vec<&'m Shape>>,
) -> Result<FastMap<NamedNode, Vec<&'m Shape>>, GatewayError> {
    let shapes = |(uri, shapes): (NamedNode, Vec<&'m Shape>)| {
        shapes.into_iter().map(move |shape| (uri.clone(), shape))
    };
    let mut waiting: Vec<(NamedNode, &'m Shape)> = suspects.into_iter().flat_map(shapes).collect();
    let mut reached: FastMap<NamedNode, Vec<&'m Shape>> = FastMap::default();
    while let Some((uri, shape)) = waiting.pop() {
        let shapes = reached.entry(uri.clone()).or_default();
        if shapes.iter().any(|known| std::ptr::eq(*known, shape)) {
            continue;
        }
        shapes.push(shape);
        for quad in read.quads_about(&uri.into())? {
            let nested = find_nested_shape(shape, &quad).map(|(nested, _)| nested);
            if let Some(nested) = nested
                && let Term::NamedNode(object) = quad.object
            {
                waiting.push((object, nested));
            }
        }
    }
    Ok(reached)
}

fn is_referred_from_outside(
    read: &dyn Read,
    uri: &NamedNode,
    inside: &FastMap<NamedNode, Vec<&Shape>>,
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

/// Returns the shape of the nested object that a quad about an object of `shape` links to, if there is one, and whether the link
/// is to a list of such objects. Lists that other software wrote are not followed, because they stay.
fn find_nested_shape<'m>(shape: &'m Shape, quad: &Quad) -> Option<(&'m Shape, bool)> {
    let is_own = matches!(&quad.object, Term::NamedNode(object) if is_list_node(object));
    if let NamedOrBlankNode::NamedNode(subject) = &quad.subject
        && is_list_node(subject)
    {
        let is_part = quad.predicate == rdf::FIRST || quad.predicate == rdf::REST && is_own;
        return is_part.then_some((shape, false));
    }
    let place = find_owning_field(shape, quad.predicate.as_ref(), quad.object.as_ref())?;
    let property = shape.property_at(place)?;
    let is_followed = !property.is_ordered || is_own;
    is_followed.then_some((property.value.shape()?, is_own))
}
