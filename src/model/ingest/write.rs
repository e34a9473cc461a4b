//! Writes objects over existing data: ADD, UPDATE and REPLACE.
//!
//! An object's own quads, including its links, are written before its nested objects. Each object is read again before
//! it is written. So several mentions of one object in a request see each other, as if they were separate requests.
use super::Mode;
use super::answer::{Nested, Outcome, Status, Warnings};
use super::convert::{show, show_both};
use super::findings::Findings;
use super::node::{Given, Node, Value};
use super::orphans::Orphans;
use super::repeats::{Mention, Repeats};
use super::spaces::Spaces;
use super::write_scope::WriteScope;
use crate::mapping::{self, FieldKind, Property};
use crate::namespace::{self, Generator};
use crate::view::owner;
use oxrdf::{GraphName, NamedNode, NamedOrBlankNode, Quad, QuadRef, Term};
use penstock_base::fault::Fault;
use penstock_store::{Read, Transaction};
use std::collections::HashSet;

/// Writes the objects of one request.
#[derive(Debug)]
pub(super) struct Writer<'w, 's, 'm> {
    pub(super) transaction: &'w mut Transaction<'s>,
    pub(super) spaces: &'w Spaces,
    pub(super) scope: &'w WriteScope<'w>,
    pub(super) mode: Mode,
    pub(super) findings: Findings,
    pub(super) warnings: Warnings,
    pub(super) orphans: Orphans<'m>,
    pub(super) repeats: Repeats,
    /// The URIs that counters minted for this request. A URI given later must not equal one of them.
    pub(super) minted: HashSet<NamedNode>,
    /// The URIs given in this request, perhaps not written yet, which counters must skip.
    pub(super) claimed: HashSet<NamedNode>,
    /// The nested objects with given URIs that this request created. If they follow as objects of the request itself,
    /// they count as created too.
    pub(super) made: HashSet<NamedNode>,
    pub(super) nested: Vec<Nested>,
}

/// A URI, and whether it was just minted, so that nothing can be stored about it.
#[derive(Debug, Clone)]
struct Name {
    uri: NamedNode,
    minted: bool,
}

/// The object whose own quads are being written.
struct Target<'t> {
    pointer: &'t str,
    name: &'t Name,
    subject: NamedOrBlankNode,
    graph: &'t GraphName,
    /// Whether nothing was stored about it before.
    new: bool,
}

/// What writing one object changed.
#[derive(Debug, Clone, Copy)]
struct Change {
    /// Whether nothing was stored about it before.
    new: bool,
    /// Whether a quad about it or about an object nested in it was added or removed.
    changed: bool,
}

impl<'m> Writer<'_, '_, 'm> {
    /// Writes one object of the request. Returns `None` if the object has an error.
    pub(super) fn root(&mut self, index: usize, node: Node<'m>) -> Result<Option<Outcome>, Fault> {
        let before = self.findings.count();
        self.nested.clear();
        if self.mode == Mode::Update && node.uri.is_none() {
            self.findings
                .invalid(&node.pointer, "the uri is missing; UPDATE changes only existing objects");
            return Ok(None);
        }
        let Some(name) = self.name(&node, None)? else { return Ok(None) };
        let change = self.object(node, &name, true)?;
        if self.findings.count() > before {
            return Ok(None);
        }
        let status = match change {
            Change { new: true, .. } => Status::Created,
            Change { changed: true, .. } => Status::Updated,
            Change { .. } => Status::Unchanged,
        };
        let uri = name.uri.into_string();
        Ok(Some(Outcome { index, uri, status, nested: std::mem::take(&mut self.nested) }))
    }

    /// Returns the URI of an object: given, found through the link of its parent, or minted.
    fn name(&mut self, node: &Node<'m>, found: Option<NamedNode>) -> Result<Option<Name>, Fault> {
        if let Some(uri) = &node.uri {
            if self.minted.contains(uri) {
                self.findings.invalid(
                    &node.pointer,
                    format!(
                        "the URI {} was just minted for another object of this request; place objects with URIs first",
                        uri.as_str()
                    ),
                );
                return Ok(None);
            }
            if self.spaces.may_count_to(uri) {
                self.claimed.insert(uri.clone());
            }
            return Ok(Some(Name { uri: uri.clone(), minted: false }));
        }
        if let Some(uri) = found {
            return Ok(Some(Name { uri, minted: false }));
        }
        let (namespace, _) = self.spaces.of(node.shape);
        if namespace.generator == Generator::Manual {
            self.findings.invalid(
                &node.pointer,
                format!(
                    "the uri is missing, and the namespace {:?} mints none (its generator is manual)",
                    namespace.name
                ),
            );
            return Ok(None);
        }
        let mut uri = namespace::mint(self.transaction, namespace)?;
        while self.claimed.contains(&uri) {
            uri = namespace::mint(self.transaction, namespace)?;
        }
        if namespace.generator == Generator::Counter {
            self.minted.insert(uri.clone());
        }
        Ok(Some(Name { uri, minted: true }))
    }

    fn object(&mut self, node: Node<'m>, name: &Name, root: bool) -> Result<Change, Fault> {
        let subject: NamedOrBlankNode = name.uri.clone().into();
        if !root {
            self.nested
                .push(Nested { pointer: node.pointer.clone(), uri: name.uri.as_str().to_owned() });
            if node.is_reference() {
                return Ok(Change { new: false, changed: false });
            }
        }
        let existing =
            if name.minted { Vec::new() } else { self.transaction.quads_about(&subject)? };
        if !name.minted
            && let Some(why) = self.scope.forbids(self.transaction, &name.uri, &existing)?
        {
            self.findings.invalid(&node.pointer, why);
            return Ok(Change { new: false, changed: false });
        }
        let mut new = existing.is_empty();
        if root {
            new |= self.made.remove(&name.uri);
        } else if new && !name.minted {
            self.made.insert(name.uri.clone());
        }
        if root && !self.takes_root(&node, new) {
            return Ok(Change { new, changed: false });
        }
        let shape = node.shape;
        let (_, graph) = self.spaces.of(shape);
        let target = Target { pointer: &node.pointer, name, subject, graph, new };
        let owner = |quad: &Quad| owner(shape, quad.predicate.as_ref(), quad.object.as_ref());
        let owned: Vec<(usize, Quad)> =
            existing.into_iter().filter_map(|quad| Some((owner(&quad)?, quad))).collect();
        let mut children = Vec::new();
        let mut changed = false;
        let mut given = node.given.into_iter().peekable();
        for (place, field) in shape.fields.iter().enumerate() {
            let FieldKind::Property(property) = &field.kind else { continue };
            let given = given.next_if(|given| given.place == place);
            let current: Vec<&Quad> =
                owned.iter().filter(|(owner, _)| *owner == place).map(|(_, quad)| quad).collect();
            let field = &field.name;
            changed |= self.field(&target, field, property, given, &current, &mut children)?;
        }
        for (child, name) in children {
            changed |= self.object(child, &name, false)?.changed;
        }
        Ok(Change { new, changed })
    }

    /// Checks whether the mode accepts this object of the request.
    fn takes_root(&mut self, node: &Node<'m>, new: bool) -> bool {
        let wrong = match self.mode {
            Mode::Update if new => {
                "no object with this uri exists, and UPDATE changes only existing ones; ADD and REPLACE create objects"
            }
            Mode::Replace if !node.has_values() => {
                "the object has no value, so there is nothing to store; DELETE removes objects"
            }
            Mode::Add | Mode::Validate if new && !node.has_values() => {
                "the object has no value, so there is nothing to store"
            }
            _ => return true,
        };
        self.findings.invalid(&node.pointer, wrong);
        false
    }

    /// Writes the quads of one field, whose present quads are `current`, and adds the nested objects to `children` to
    /// be written later. Returns true if a quad changed.
    fn field(
        &mut self,
        target: &Target<'_>,
        field: &str,
        property: &'m Property,
        given: Option<Given<'m>>,
        current: &[&Quad],
        children: &mut Vec<(Node<'m>, Name)>,
    ) -> Result<bool, Fault> {
        self.require(target, field, property, given.as_ref(), current);
        let mention = self.mention(target, field, property, given.as_ref());
        if mention == Mention::Different {
            return Ok(false);
        }
        let Some(given) = given.or_else(|| {
            (self.mode == Mode::Replace).then(|| Given { place: 0, values: Vec::new() })
        }) else {
            return Ok(false);
        };
        let mut wanted = Vec::with_capacity(given.values.len());
        for value in given.values {
            match value {
                Value::Term(term) => {
                    wanted.push(term);
                }
                // An earlier, equal mention has minted its URI already.
                Value::Object(node) if mention == Mention::Same && node.uri.is_none() => {}
                Value::Object(node) => {
                    let found = if property.many { None } else { first_link(current) };
                    if let Some(name) = self.name(&node, found)? {
                        wanted.push(name.uri.clone().into());
                        children.push((node, name));
                    }
                }
            }
        }
        if mention == Mention::Same {
            return Ok(false);
        }
        if self.mode == Mode::Replace || self.mode == Mode::Update {
            return self.exchange(target, field, property, current, &wanted);
        }
        if !property.many
            && let Some(term) = wanted.first()
            && let Some(there) = current.first()
            && !current.iter().any(|quad| quad.object == *term)
        {
            let pointer = pointer_to(target.pointer, field);
            let (has, given) = show_both(&there.object, term);
            let message = format!(
                "the field holds one value, and {} already has {has}, not {given}; use UPDATE or REPLACE to change it",
                target.name.uri.as_str(),
            );
            self.findings.conflict(&pointer, message);
            return Ok(false);
        }
        self.insert(target, property, &wanted)
    }

    fn insert(
        &mut self,
        target: &Target<'_>,
        property: &Property,
        wanted: &[Term],
    ) -> Result<bool, Fault> {
        let mut changed = false;
        for term in wanted {
            changed |= self.transaction.insert(QuadRef::new(
                target.subject.as_ref(),
                property.predicate.as_ref(),
                term.as_ref(),
                target.graph.as_ref(),
            ))?;
        }
        Ok(changed)
    }

    /// Replaces the current values by the wanted ones in all graphs of the write scope. Changes only the quads that
    /// differ.
    fn exchange(
        &mut self,
        target: &Target<'_>,
        field: &str,
        property: &'m Property,
        current: &[&Quad],
        wanted: &[Term],
    ) -> Result<bool, Fault> {
        let mut changed = false;
        let kept: HashSet<&Term> = wanted.iter().collect();
        for quad in current {
            if quad.graph_name == *target.graph && kept.contains(&quad.object) {
                continue;
            }
            if !self.scope.has(quad) {
                if !kept.contains(&quad.object) {
                    let message = format!(
                        "the value {} stays, because this API key cannot change data outside the graphs of its \
                         namespaces",
                        show(&quad.object)
                    );
                    self.warnings.push(&pointer_to(target.pointer, field), message);
                }
                continue;
            }
            changed |= self.transaction.remove(quad.as_ref())?;
            if self.mode == Mode::Replace
                && let (mapping::Value::Object(shape), Term::NamedNode(uri)) =
                    (&property.value, &quad.object)
            {
                self.orphans.suspect(uri.clone(), shape);
            }
        }
        Ok(self.insert(target, property, wanted)? || changed)
    }

    fn require(
        &mut self,
        target: &Target<'_>,
        field: &str,
        property: &Property,
        given: Option<&Given<'_>>,
        current: &[&Quad],
    ) {
        if !property.required || given.is_some_and(|given| !given.values.is_empty()) {
            return;
        }
        let lacking = match self.mode {
            Mode::Update => given.is_some() || target.new,
            Mode::Replace => true,
            Mode::Add | Mode::Validate | Mode::Delete => current.is_empty(),
        };
        if lacking {
            let pointer = pointer_to(target.pointer, field);
            self.findings.invalid(&pointer, "the field is required and has no value");
        }
    }

    /// Compares the field with an earlier mention of the same object in a REPLACE or UPDATE.
    fn mention(
        &mut self,
        target: &Target<'_>,
        field: &str,
        property: &Property,
        given: Option<&Given<'_>>,
    ) -> Mention {
        let values = given.map(|given| given.values.as_slice());
        let values = match self.mode {
            Mode::Replace => Some(values.unwrap_or_default()),
            Mode::Update => values,
            Mode::Add | Mode::Validate | Mode::Delete => return Mention::First,
        };
        if target.name.minted {
            return Mention::First;
        }
        let mention = self.repeats.note(&target.name.uri, property, values);
        if mention == Mention::Different {
            let message = format!(
                "the request gives {} twice with different values; give its values once, and only {{\"uri\": ...}} elsewhere",
                target.name.uri.as_str()
            );
            self.findings.invalid(&pointer_to(target.pointer, field), message);
        }
        mention
    }
}

fn pointer_to(object: &str, field: &str) -> String {
    let mut pointer = object.to_owned();
    penstock_base::json::push_pointer(&mut pointer, field);
    pointer
}

/// Returns the object that a single nested object without a URI refers to: the one that its parent links to.
fn first_link(current: &[&Quad]) -> Option<NamedNode> {
    current
        .iter()
        .filter_map(|quad| match &quad.object {
            Term::NamedNode(uri) => Some(uri),
            _ => None,
        })
        .min()
        .cloned()
}
