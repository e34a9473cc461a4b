//! Reading the quads of one subject.
use super::key::{self, DEFAULT_GRAPH, key, numbered, object, tree};
use super::{Index, Near, damaged};
use crate::varint::{self, Input};
use crate::{About, Error, Listed, term};
use oxrdf::{GraphNameRef, LiteralRef, NamedOrBlankNodeRef, TermRef};

impl Index {
    /// Reads the quads of a subject into `about`.
    pub(crate) fn about(
        &self,
        subject: NamedOrBlankNodeRef<'_>,
        about: &mut About,
    ) -> Result<(), Error> {
        self.reading(|| {
            about.clear();
            match self.code(subject.into())? {
                Some(code) => self.about_id(code.id(), about),
                None => Ok(()),
            }
        })
    }

    /// Reads the quads of a listed subject. If it was listed from another index, its id is looked up again.
    pub(crate) fn about_listed(&self, subject: &Listed, about: &mut About) -> Result<(), Error> {
        self.reading(|| {
            if subject.instance != self.instance {
                return self.about(subject.iri.as_ref().into(), about);
            }
            about.clear();
            let mut id = Vec::with_capacity(9);
            varint::put(&mut id, subject.id);
            self.about_id(&id, about)
        })
    }

    fn about_id(&self, subject: &[u8], about: &mut About) -> Result<(), Error> {
        let state = (self.instance, self.sequence());
        let prefix = key(tree::SPOG, &[subject]);
        let mut stand = std::mem::take(&mut about.stand);
        let mut near = std::mem::take(&mut about.near);
        let (mut predicate, mut graph) = (None, Some(DEFAULT_GRAPH));
        self.blocks.read_on(&mut stand, state, &prefix, &mut |rest| {
            let fault = || damaged("a quad", &[prefix.as_slice(), rest].concat());
            let mut input = Input::new(rest);
            let id = input.number();
            let object = key::code(&mut input);
            if id != predicate {
                let mut is_iri = false;
                self.read_name(id.ok_or_else(fault)?, &mut near, &mut |name| {
                    if let TermRef::NamedNode(iri) = name {
                        about.set_predicate(iri);
                        is_iri = true;
                    }
                })?;
                predicate = id.filter(|_| is_iri);
            }
            let id = input.number().filter(|_| input.is_empty());
            if id != graph {
                self.read_graph(id.ok_or_else(fault)?, &mut near, about)?;
                graph = id;
            }
            predicate.ok_or_else(fault)?;
            self.push_object(object.ok_or_else(fault)?, &mut near, about)
        })?;
        (about.stand, about.near) = (stand, near);
        Ok(())
    }

    fn read_graph(&self, id: u64, near: &mut Near, about: &mut About) -> Result<(), Error> {
        if id == DEFAULT_GRAPH {
            about.set_graph(GraphNameRef::DefaultGraph);
            return Ok(());
        }
        self.read_name(id, near, &mut |name| match name {
            TermRef::NamedNode(iri) => about.set_graph(iri.into()),
            TermRef::BlankNode(node) => about.set_graph(node.into()),
            // An id never belongs to a literal.
            TermRef::Literal(_) => {}
        })
    }

    fn push_object(&self, code: &[u8], near: &mut Near, about: &mut About) -> Result<(), Error> {
        let fault = || damaged("the object", code);
        let mut input = Input::new(code);
        match input.byte() {
            Some(object::NAMED) => {
                let id = input.number().ok_or_else(fault)?;
                self.read_name(id, near, &mut |name| about.push(name))
            }
            Some(object::STRING) => {
                let value = input.text().ok_or_else(fault)?;
                about.push(LiteralRef::new_simple_literal(value).into());
                Ok(())
            }
            Some(object::TYPED) => {
                let id = input.number().ok_or_else(fault)?;
                let value = input.text().ok_or_else(fault)?;
                let mut is_iri = false;
                self.read_name(id, near, &mut |name| {
                    if let TermRef::NamedNode(datatype) = name {
                        about.push(LiteralRef::new_typed_literal(value, datatype).into());
                        is_iri = true;
                    }
                })?;
                if is_iri { Ok(()) } else { Err(fault()) }
            }
            _ => {
                about.push(self.term(code)?.as_ref());
                Ok(())
            }
        }
    }

    /// Passes the IRI or blank node of an id to `read`.
    fn read_name(
        &self,
        id: u64,
        near: &mut Near,
        read: &mut dyn FnMut(TermRef<'_>),
    ) -> Result<(), Error> {
        if self.names.read(id, &mut *read).is_some() {
            return Ok(());
        }
        let key = numbered(tree::ID_NAME, &[id]);
        let state = (self.instance, self.sequence());
        let name = self
            .blocks
            .get_near(near, state, &key, |bytes| term::decode(bytes).map(TermRef::into_owned))?;
        let name = name.flatten().ok_or_else(|| damaged("the name of", &key))?;
        self.names.put(id, &name);
        read(name.as_ref());
        Ok(())
    }
}
