//! The quads of one subject, without allocating a quad for each.
use crate::index::{Near, Stand};
use crate::term::{Parts, parts};
use oxrdf::{BlankNodeRef, GraphNameRef, LiteralRef, NamedNodeRef, TermRef};

/// Bytes of text kept allocated for the next subject. A subject with more text is still read.
const KEPT: usize = 16 << 10;
/// Bytes of text, and number of quads, allocated from the start.
const FIRST: (usize, usize) = (1 << 10, 16);

/// The quads of one subject, in all graphs. The memory is reused for the next subject. Reading is faster if
/// subjects are read in the order in which the store first saw them.
#[derive(Debug, Default)]
pub struct About {
    text: String,
    said: Vec<Said>,
    /// The predicate and the graph of the last quad. The next quad shares the text if they are equal.
    predicate: Span,
    graph: Graph,
    pub(crate) stand: Stand,
    /// The block in which names were last looked up.
    pub(crate) near: Near,
}

/// Start and end of a part of the text, in bytes.
type Span = (usize, usize);

#[derive(Debug, Clone, Copy)]
struct Said {
    predicate: Span,
    object: Object,
    graph: Graph,
}

#[derive(Debug, Clone, Copy)]
enum Object {
    Iri(Span),
    Blank(Span),
    String(Span),
    Language { language: Span, value: Span },
    Typed { datatype: Span, value: Span },
}

#[derive(Debug, Clone, Copy, Default)]
enum Graph {
    #[default]
    Default,
    Iri(Span),
    Blank(Span),
}

impl About {
    /// Iterates over predicate and object of each quad, once for each graph that has it. The order is
    /// unspecified, but quads with the same predicate follow each other.
    pub fn iter(&self) -> impl Iterator<Item = (NamedNodeRef<'_>, TermRef<'_>)> {
        self.said.iter().map(|said| {
            let object = match said.object {
                Object::Iri(iri) => NamedNodeRef::new_unchecked(self.get(iri)).into(),
                Object::Blank(node) => BlankNodeRef::new_unchecked(self.get(node)).into(),
                Object::String(value) => LiteralRef::new_simple_literal(self.get(value)).into(),
                Object::Language { language, value } => {
                    let (value, language) = (self.get(value), self.get(language));
                    LiteralRef::new_language_tagged_literal_unchecked(value, language).into()
                }
                Object::Typed { datatype, value } => {
                    let datatype = NamedNodeRef::new_unchecked(self.get(datatype));
                    LiteralRef::new_typed_literal(self.get(value), datatype).into()
                }
            };
            (NamedNodeRef::new_unchecked(self.get(said.predicate)), object)
        })
    }

    /// Returns whether some graph has a quad with this predicate and object.
    pub fn says(&self, predicate: NamedNodeRef<'_>, object: TermRef<'_>) -> bool {
        self.iter().any(|said| said == (predicate, object))
    }

    /// Returns whether this graph has a quad of the subject.
    pub fn is_in(&self, graph: GraphNameRef<'_>) -> bool {
        self.said.iter().any(|said| self.graph(said.graph) == graph)
    }

    fn get(&self, (from, to): Span) -> &str {
        self.text.get(from..to).unwrap_or_default()
    }

    fn graph(&self, graph: Graph) -> GraphNameRef<'_> {
        match graph {
            Graph::Default => GraphNameRef::DefaultGraph,
            Graph::Iri(iri) => NamedNodeRef::new_unchecked(self.get(iri)).into(),
            Graph::Blank(node) => BlankNodeRef::new_unchecked(self.get(node)).into(),
        }
    }

    /// Removes all quads, to prepare for another subject.
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.text.shrink_to(KEPT);
        self.text.reserve(FIRST.0);
        self.said.clear();
        self.said.shrink_to(KEPT / size_of::<Said>());
        self.said.reserve(FIRST.1);
        (self.predicate, self.graph) = Default::default();
    }

    /// Sets the predicate of the quads that follow.
    pub(crate) fn set_predicate(&mut self, iri: NamedNodeRef<'_>) {
        if self.get(self.predicate) != iri.as_str() {
            self.predicate = self.put(iri.as_str());
        }
    }

    /// Sets the graph of the quads that follow.
    pub(crate) fn set_graph(&mut self, graph: GraphNameRef<'_>) {
        if self.graph(self.graph) != graph {
            self.graph = match graph {
                GraphNameRef::DefaultGraph => Graph::Default,
                GraphNameRef::NamedNode(iri) => Graph::Iri(self.put(iri.as_str())),
                GraphNameRef::BlankNode(node) => Graph::Blank(self.put(node.as_str())),
            };
        }
    }

    /// Adds a quad with this object.
    pub(crate) fn push(&mut self, object: TermRef<'_>) {
        let object = match object {
            TermRef::NamedNode(iri) => Object::Iri(self.put(iri.as_str())),
            TermRef::BlankNode(node) => Object::Blank(self.put(node.as_str())),
            TermRef::Literal(literal) => match parts(literal) {
                Parts::String(value) => Object::String(self.put(value)),
                Parts::Language(language, value) => {
                    Object::Language { language: self.put(language), value: self.put(value) }
                }
                Parts::Typed(datatype, value) => {
                    Object::Typed { datatype: self.put(datatype.as_str()), value: self.put(value) }
                }
            },
        };
        self.said.push(Said { predicate: self.predicate, object, graph: self.graph });
    }

    fn put(&mut self, text: &str) -> Span {
        let from = self.text.len();
        self.text.push_str(text);
        (from, self.text.len())
    }
}
