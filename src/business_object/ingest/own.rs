//! What a request may change with an API key that is for one Business Object alone.
//!
//! That Business Object's are its members, and whatever has a value in the graph of a namespace that its
//! mapping names. What is stored of any other object is for others to change: it can be referred to.
use super::Request;
use super::spaces::Spaces;
use crate::business_object::members;
use crate::business_object::resource::Compiled;
use crate::fault::Fault;
use oxrdf::{NamedNode, Quad};
use penstock_store::Read;

/// The objects that a request may change: all of them, unless its key is for one Business Object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Own<'r>(Option<(&'r Compiled, &'r Spaces)>);

impl<'r> Own<'r> {
    pub(super) const ALL: Self = Self(None);

    pub(super) fn of(request: &Request<'r>, spaces: &'r Spaces) -> Self {
        let is_bound = request.api_key.is_some_and(|key| key.is_bound);
        Self(is_bound.then_some((request.business_object, spaces)))
    }

    /// Whether an object is another Business Object's.
    pub(super) fn is_foreign(self, read: &impl Read, uri: &NamedNode) -> Result<bool, Fault> {
        if self.0.is_none() {
            return Ok(false);
        }
        Ok(self.forbids(read, uri, &read.quads_about(&uri.clone().into())?)?.is_some())
    }

    /// Why an object may not be changed about which this is stored.
    pub(super) fn forbids(
        self,
        read: &impl Read,
        uri: &NamedNode,
        quads: &[Quad],
    ) -> Result<Option<String>, Fault> {
        let Some((business_object, spaces)) = self.0 else { return Ok(None) };
        if quads.is_empty()
            || quads.iter().any(|quad| spaces.has(&quad.graph_name))
            || members::contains(read, business_object, uri)?
        {
            return Ok(None);
        }
        Ok(Some(format!(
            "{} is no object of the Business Object {:?}, and this API key is for that one alone: refer to it as \
             {{\"uri\": ...}} without any value, or change it with another key",
            uri.as_str(),
            business_object.object.definition.name
        )))
    }
}
