//! Reading the quads of one subject.
use super::key::{self, DEFAULT_GRAPH, build_key, build_numbered_key, damaged_entry, object, tree};
use super::prefix_cursor::ReadNearby as _;
use super::{BlockHint, View};
use crate::subject_quads::WantedPredicates;
use crate::varint::{self, Input};
use crate::{Error, ListedSubject, SubjectQuads, term};
use oxrdf::{GraphNameRef, LiteralRef, NamedOrBlankNodeRef, Term, TermRef};

impl View<'_> {
    /// Reads the quads of a subject into `quads`.
    pub(crate) fn read_subject(
        &self,
        subject: NamedOrBlankNodeRef<'_>,
        quads: &mut SubjectQuads,
    ) -> Result<(), Error> {
        self.track_damage(|| {
            quads.clear();
            match self.find_code(subject.into())? {
                Some(code) => self.read_subject_by_id(code.id(), quads),
                None => Ok(()),
            }
        })
    }

    /// Reads the quads of a listed subject. If it was listed from another index, its id is looked up again.
    pub(crate) fn read_listed(
        &self,
        subject: &ListedSubject,
        quads: &mut SubjectQuads,
    ) -> Result<(), Error> {
        self.track_damage(|| {
            if subject.instance != self.instance {
                return self.read_subject(subject.iri.as_ref().into(), quads);
            }
            quads.clear();
            let mut id = Vec::with_capacity(9);
            varint::write_number(&mut id, subject.id);
            self.read_subject_by_id(&id, quads)
        })
    }

    fn read_subject_by_id(&self, subject: &[u8], quads: &mut SubjectQuads) -> Result<(), Error> {
        let mut prefix = build_key(tree::SPOG, &[subject]);
        let mut graph = Some(DEFAULT_GRAPH);
        let Some(mut wanted) = quads.wanted.take() else {
            return self.read_quads(&prefix, false, &mut graph, quads);
        };
        let subject_bytes = prefix.len();
        let read = self.find_wanted(&mut wanted).and_then(|()| {
            wanted.ids.iter().try_for_each(|(id, predicate)| {
                prefix.truncate(subject_bytes);
                prefix.extend_from_slice(id);
                quads.set_predicate(predicate.as_ref());
                self.read_quads(&prefix, true, &mut graph, quads)
            })
        });
        quads.wanted = Some(wanted);
        read
    }

    /// Looks up the ids of the predicates that are read, in their order.
    fn find_wanted(&self, wanted: &mut WantedPredicates) -> Result<(), Error> {
        let state = Some((self.instance, self.sequence));
        if wanted.state == state {
            return Ok(());
        }
        // After a failure the ids are not those of any state.
        (wanted.state, wanted.ids) = (None, Vec::new());
        for predicate in &wanted.all {
            if let Some(code) = self.find_code(predicate.as_ref().into())? {
                wanted.ids.push((code.id().to_vec(), predicate.clone()));
            }
        }
        wanted.ids.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        wanted.ids.dedup();
        wanted.state = state;
        Ok(())
    }

    /// Reads the quads whose keys begin with `prefix`: a subject, or a subject and a predicate, which `quads` knows. `graph`
    /// is the graph of the last quad.
    fn read_quads(
        &self,
        prefix: &[u8],
        has_predicate: bool,
        graph: &mut Option<u64>,
        quads: &mut SubjectQuads,
    ) -> Result<(), Error> {
        let state = (self.instance, self.sequence);
        let mut cursor = std::mem::take(&mut quads.cursor);
        let mut hint = std::mem::take(&mut quads.block_hint);
        let mut predicate = None;
        self.blocks.read_prefix(&mut cursor, state, prefix, &mut |rest| {
            let damaged = || damaged_entry("a quad", &[prefix, rest].concat());
            let mut input = Input::new(rest);
            if !has_predicate {
                let id = input.read_number();
                if id != predicate {
                    let mut is_iri = false;
                    self.read_name(id.ok_or_else(damaged)?, &mut hint, &mut |name| {
                        if let TermRef::NamedNode(iri) = name {
                            quads.set_predicate(iri);
                            is_iri = true;
                        }
                    })?;
                    predicate = id.filter(|_| is_iri);
                }
                predicate.ok_or_else(damaged)?;
            }
            let object = key::read_code_bytes(&mut input).ok_or_else(damaged)?;
            let id = input.read_number().filter(|_| input.is_empty());
            if id != *graph {
                self.read_graph(id.ok_or_else(damaged)?, &mut hint, quads)?;
                *graph = id;
            }
            self.push_object(object, &mut hint, quads)
        })?;
        (quads.cursor, quads.block_hint) = (cursor, hint);
        Ok(())
    }

    fn read_graph(
        &self,
        id: u64,
        hint: &mut BlockHint,
        quads: &mut SubjectQuads,
    ) -> Result<(), Error> {
        if id == DEFAULT_GRAPH {
            quads.set_graph(GraphNameRef::DefaultGraph);
            return Ok(());
        }
        self.read_name(id, hint, &mut |name| match name {
            TermRef::NamedNode(iri) => quads.set_graph(iri.into()),
            TermRef::BlankNode(node) => quads.set_graph(node.into()),
            // An id belongs to an IRI or a blank node.
            TermRef::Literal(_) | TermRef::Triple(_) => {}
        })
    }

    fn push_object(
        &self,
        code: &[u8],
        hint: &mut BlockHint,
        quads: &mut SubjectQuads,
    ) -> Result<(), Error> {
        let damaged = || damaged_entry("the object", code);
        let mut input = Input::new(code);
        match input.read_byte() {
            Some(object::NAMED) => {
                let id = input.read_number().ok_or_else(damaged)?;
                self.read_name(id, hint, &mut |name| quads.push(name))
            }
            Some(object::STRING) => {
                let value = input.read_text().ok_or_else(damaged)?;
                quads.push(LiteralRef::new_simple_literal(value).into());
                Ok(())
            }
            Some(object::TYPED) => {
                let id = input.read_number().ok_or_else(damaged)?;
                let value = input.read_text().ok_or_else(damaged)?;
                let mut is_iri = false;
                self.read_name(id, hint, &mut |name| {
                    if let TermRef::NamedNode(datatype) = name {
                        quads.push(LiteralRef::new_typed_literal(value, datatype).into());
                        is_iri = true;
                    }
                })?;
                if is_iri { Ok(()) } else { Err(damaged()) }
            }
            _ => {
                quads.push(self.decode_term(code)?.as_ref());
                Ok(())
            }
        }
    }

    /// Passes the IRI or blank node of an id to `read`.
    fn read_name(
        &self,
        id: u64,
        hint: &mut BlockHint,
        read: &mut dyn FnMut(TermRef<'_>),
    ) -> Result<(), Error> {
        if self.names.by_id.with_name(id, &mut *read).is_some() {
            return Ok(());
        }
        let name = self.read_stored_name(id, hint)?;
        self.names.by_id.cache_name(id, &name);
        read(name.as_ref());
        Ok(())
    }

    /// Returns the IRI or blank node of an id, of which no cache is expected to have it.
    pub(super) fn read_stored_name(&self, id: u64, hint: &mut BlockHint) -> Result<Term, Error> {
        let key = build_numbered_key(tree::ID_NAME, &[id]);
        let state = (self.instance, self.sequence);
        let name = self.blocks.get_with_hint(hint, state, &key, |bytes| {
            term::decode(bytes).map(TermRef::into_owned)
        })?;
        name.flatten().ok_or_else(|| damaged_entry("the name of", &key))
    }
}
