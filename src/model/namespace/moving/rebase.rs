//! Decides which IRIs a move rewrites, and to what.
//!
//! An IRI belongs to the namespace with the longest base that contains it. It is rewritten only if it belongs to the
//! namespace that moves.
//!
//! Invariant: what was rewritten is not rewritten again, so that a move can start from the beginning after a power cut.
//! If the new base lies in the old one, IRIs below the new base count as rewritten. [`Rebase::check`] finds the IRIs
//! for which the IRI itself does not decide this; a store with such an IRI refuses the move.
use crate::list::ListNode;
use crate::namespace::{self, Namespace};
use oxrdf::{GraphName, NamedNode, NamedNodeRef, NamedOrBlankNode, Quad, Term};
use penstock_store::{Error, Read};

/// The change of the base of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rebase {
    from: Namespace,
    to: Namespace,
    /// All other namespaces.
    others: Vec<Namespace>,
    /// Whether the new identifiers lie in the old namespace.
    is_nested: bool,
}

impl Rebase {
    /// Returns the change of the base of this namespace from one to another, between the other namespaces in the store.
    pub(super) fn read(read: &dyn Read, from: &Namespace, to: &str) -> Result<Self, Error> {
        let mut others = namespace::list(read, None, usize::MAX)?;
        others.retain(|other| other.name != from.name);
        let to = with_base(from, to);
        let is_nested = is_below(&to.identifier_prefix(), &from.identifier_prefix());
        Ok(Self { from: from.clone(), to, others, is_nested })
    }

    /// Returns the namespace with the old base.
    pub(crate) fn from(&self) -> &Namespace {
        &self.from
    }

    /// Returns the namespace with the new base.
    pub(crate) fn to(&self) -> &Namespace {
        &self.to
    }

    /// Returns all other namespaces.
    pub(super) fn others(&self) -> &[Namespace] {
        &self.others
    }

    /// Returns what an IRI becomes; `None` if it stays.
    pub(crate) fn rewrite(&self, iri: &str) -> Option<String> {
        if let Some(node) = ListNode::parse(iri) {
            return node.rewrite(&|iri| self.rewrite(iri));
        }
        if self.is_nested && contains(&self.to, iri) {
            return None;
        }
        self.image_of(iri)
    }

    /// Returns what a quad becomes; `None` if it stays. A literal stays, with its datatype.
    pub(crate) fn rewrite_quad(&self, quad: &Quad) -> Option<Quad> {
        let node = |node: &NamedNode| self.rewrite(node.as_str()).map(NamedNode::new_unchecked);
        let subject = match &quad.subject {
            NamedOrBlankNode::NamedNode(iri) => node(iri).map(NamedOrBlankNode::from),
            NamedOrBlankNode::BlankNode(_) => None,
        };
        let predicate = node(&quad.predicate);
        let object = match &quad.object {
            Term::NamedNode(iri) => node(iri).map(Term::from),
            _ => None,
        };
        let graph = match &quad.graph_name {
            GraphName::NamedNode(iri) => node(iri).map(GraphName::from),
            _ => None,
        };
        if subject.is_none() && predicate.is_none() && object.is_none() && graph.is_none() {
            return None;
        }
        Some(Quad {
            subject: subject.unwrap_or_else(|| quad.subject.clone()),
            predicate: predicate.unwrap_or_else(|| quad.predicate.clone()),
            object: object.unwrap_or_else(|| quad.object.clone()),
            graph_name: graph.unwrap_or_else(|| quad.graph_name.clone()),
        })
    }

    /// Returns the text with the IRIs of the namespace rewritten if they begin after such a character.
    pub(crate) fn rewrite_text(&self, text: &str, delimits: impl Fn(char) -> bool) -> String {
        let (base, prefix) = (&self.from.uri_base, self.from.identifier_prefix());
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(base.as_str()) {
            let (before, found) = rest.split_at(at);
            out.push_str(before);
            let begins = out.chars().next_back().is_none_or(&delimits);
            let is_end = |c: char| c.is_whitespace() || "<>\"{}|^`\\".contains(c);
            let (iri, after) = found.split_at(found.find(is_end).unwrap_or(found.len()));
            match self.rewrite(iri).filter(|_| begins) {
                // A prefix may be the beginning of all identifiers, and stays one.
                Some(_) if iri.starts_with(&prefix) => {
                    out.push_str(&self.to.identifier_prefix());
                    out.push_str(iri.get(prefix.len()..).unwrap_or_default());
                    rest = after;
                }
                Some(new) => {
                    out.push_str(&new);
                    rest = after;
                }
                None => {
                    out.push_str(base);
                    rest = found.get(base.len()..).unwrap_or_default();
                }
            }
        }
        out.push_str(rest);
        out
    }

    /// Checks that this IRI, which occurs in the store or in a definition, can be moved.
    ///
    /// # Errors
    /// Returns the reason why not as text.
    pub(crate) fn check(&self, iri: &str) -> Result<(), String> {
        let Some(image) = self.image_of(iri) else { return Ok(()) };
        let (from, to) = (&self.from.uri_base, &self.to.uri_base);
        if let Some(owner) = self.owner_among_others(&image, &self.to) {
            return Err(format!(
                "<{iri}> would become <{image}>, which lies in the namespace {:?}; choose another base",
                owner.name
            ));
        }
        if self.rewrite(iri).is_none() || self.rewrite(&image).is_some() {
            return Err(format!(
                "after a power cut nothing could tell whether <{iri}> was moved already, because <{from}> and <{to}> \
                 lie in each other; move the namespace to a third base first, then to this one"
            ));
        }
        Ok(())
    }

    /// Returns the IRIs of the namespace that would become this one.
    pub(super) fn origins_of(&self, iri: &str) -> Vec<String> {
        let mut origins = Vec::new();
        if iri == self.to.uri_base {
            origins.push(self.from.uri_base.clone());
        }
        if let Some(local) = iri.strip_prefix(&self.to.identifier_prefix()) {
            origins.push(format!("{}{local}", self.from.identifier_prefix()));
        }
        origins.retain(|origin| origin != iri && self.image_of(origin).as_deref() == Some(iri));
        origins.dedup();
        origins
    }

    /// Returns what an IRI of the namespace becomes, whether or not it may have been rewritten already.
    fn image_of(&self, iri: &str) -> Option<String> {
        if !contains(&self.from, iri) || self.owner_among_others(iri, &self.from).is_some() {
            return None;
        }
        let image = if iri == self.from.uri_base {
            self.to.uri_base.clone()
        } else {
            let local = iri.strip_prefix(&self.from.identifier_prefix())?;
            format!("{}{local}", self.to.identifier_prefix())
        };
        (image != iri).then_some(image)
    }

    /// Returns another namespace that an IRI belongs to, because its base is longer than that of `namespace`.
    fn owner_among_others(&self, iri: &str, namespace: &Namespace) -> Option<&Namespace> {
        self.others
            .iter()
            .filter(|other| other.uri_base.len() > namespace.uri_base.len())
            .find(|other| contains(other, iri))
    }
}

/// Returns whether an IRI can begin after this character in the text of a mapping.
pub(crate) fn begins_iri(before: char) -> bool {
    before.is_whitespace() || "<\"'[{(,".contains(before)
}

/// Returns whether `prefix` is a real prefix of `text`.
fn is_below(text: &str, prefix: &str) -> bool {
    text.len() > prefix.len() && text.starts_with(prefix)
}

/// Returns the namespace with another base.
fn with_base(namespace: &Namespace, uri_base: &str) -> Namespace {
    Namespace { uri_base: uri_base.to_owned(), ..namespace.clone() }
}

fn contains(namespace: &Namespace, iri: &str) -> bool {
    namespace.contains(NamedNodeRef::new_unchecked(iri))
}

#[cfg(test)]
mod tests;
