//! The quads of one subject, without allocating a quad for each.
use crate::index::{BlockHint, PrefixCursor};
use crate::term::{LiteralParts, split_literal};
use oxrdf::{BlankNodeRef, GraphNameRef, LiteralRef, NamedNode, NamedNodeRef, TermRef};

/// Bytes of text kept allocated for the next subject. A subject with more text is still read.
const MAX_KEPT_TEXT_BYTES: usize = 16 << 10;
/// Bytes of text, and number of quads, allocated from the start.
const INITIAL_CAPACITY: (usize, usize) = (1 << 10, 16);

/// The quads of one subject, in all graphs. The memory is reused for the next subject. Reading is faster if
/// subjects are read in the order in which the store first saw them.
#[derive(Debug, Default)]
pub struct SubjectQuads {
    text: String,
    quads: Vec<QuadSpans>,
    /// The predicate and the graph of the last quad. The next quad shares the text if they are equal.
    predicate: Span,
    graph: Graph,
    pub(crate) cursor: PrefixCursor,
    /// The block in which names were last looked up.
    pub(crate) block_hint: BlockHint,
    /// The predicates that are read; `None` for all.
    pub(crate) wanted: Option<WantedPredicates>,
}

/// The predicates that are read, and their ids.
#[derive(Debug)]
pub(crate) struct WantedPredicates {
    pub(crate) all: Vec<NamedNode>,
    /// Those that the index knows, by their ids as encoded in keys.
    pub(crate) ids: Vec<(Vec<u8>, NamedNode)>,
    /// The instance and sequence of the index for which the ids are valid.
    pub(crate) state: Option<(u64, u64)>,
}

/// Start and end of a part of the text, in bytes.
type Span = (usize, usize);

#[derive(Debug, Clone, Copy)]
struct QuadSpans {
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

impl SubjectQuads {
    /// Creates one that only receives the quads with these predicates. That takes less time.
    pub fn limited_to(predicates: Vec<NamedNode>) -> Self {
        let wanted = WantedPredicates { all: predicates, ids: Vec::new(), state: None };
        Self { wanted: Some(wanted), ..Self::default() }
    }

    /// Iterates over predicate and object of each quad, once for each graph that has it. The order is
    /// unspecified, but quads with the same predicate follow each other.
    pub fn iter(&self) -> impl Iterator<Item = (NamedNodeRef<'_>, TermRef<'_>)> {
        self.quads.iter().map(|quad| {
            let object = match quad.object {
                Object::Iri(iri) => NamedNodeRef::new_unchecked(self.text_at(iri)).into(),
                Object::Blank(node) => BlankNodeRef::new_unchecked(self.text_at(node)).into(),
                Object::String(value) => LiteralRef::new_simple_literal(self.text_at(value)).into(),
                Object::Language { language, value } => {
                    let (value, language) = (self.text_at(value), self.text_at(language));
                    LiteralRef::new_language_tagged_literal_unchecked(value, language).into()
                }
                Object::Typed { datatype, value } => {
                    let datatype = NamedNodeRef::new_unchecked(self.text_at(datatype));
                    LiteralRef::new_typed_literal(self.text_at(value), datatype).into()
                }
            };
            (NamedNodeRef::new_unchecked(self.text_at(quad.predicate)), object)
        })
    }

    /// Returns whether some graph has a quad with this predicate and object.
    pub fn has_value(&self, predicate: NamedNodeRef<'_>, object: TermRef<'_>) -> bool {
        self.iter().any(|value| value == (predicate, object))
    }

    /// Returns whether this graph has a quad of the subject.
    pub fn is_in_graph(&self, graph: GraphNameRef<'_>) -> bool {
        self.quads.iter().any(|quad| self.graph_name(quad.graph) == graph)
    }

    fn text_at(&self, (from, to): Span) -> &str {
        self.text.get(from..to).unwrap_or_default()
    }

    fn graph_name(&self, graph: Graph) -> GraphNameRef<'_> {
        match graph {
            Graph::Default => GraphNameRef::DefaultGraph,
            Graph::Iri(iri) => NamedNodeRef::new_unchecked(self.text_at(iri)).into(),
            Graph::Blank(node) => BlankNodeRef::new_unchecked(self.text_at(node)).into(),
        }
    }

    /// Returns whether quads with this predicate are read.
    pub(crate) fn wants(&self, predicate: NamedNodeRef<'_>) -> bool {
        let is_wanted = |wanted: &WantedPredicates| wanted.all.iter().any(|one| *one == predicate);
        self.wanted.as_ref().is_none_or(is_wanted)
    }

    /// Removes all quads, to prepare for another subject. The predicates that are read stay.
    pub fn clear(&mut self) {
        self.text.clear();
        self.text.shrink_to(MAX_KEPT_TEXT_BYTES);
        self.text.reserve(INITIAL_CAPACITY.0);
        self.quads.clear();
        self.quads.shrink_to(MAX_KEPT_TEXT_BYTES / size_of::<QuadSpans>());
        self.quads.reserve(INITIAL_CAPACITY.1);
        (self.predicate, self.graph) = Default::default();
    }

    /// Sets the predicate of the quads that follow.
    pub(crate) fn set_predicate(&mut self, iri: NamedNodeRef<'_>) {
        if self.text_at(self.predicate) != iri.as_str() {
            self.predicate = self.push_text(iri.as_str());
        }
    }

    /// Sets the graph of the quads that follow.
    pub(crate) fn set_graph(&mut self, graph: GraphNameRef<'_>) {
        if self.graph_name(self.graph) != graph {
            self.graph = match graph {
                GraphNameRef::DefaultGraph => Graph::Default,
                GraphNameRef::NamedNode(iri) => Graph::Iri(self.push_text(iri.as_str())),
                GraphNameRef::BlankNode(node) => Graph::Blank(self.push_text(node.as_str())),
            };
        }
    }

    /// Adds a quad with this object.
    pub(crate) fn push(&mut self, object: TermRef<'_>) {
        let object = match object {
            TermRef::NamedNode(iri) => Object::Iri(self.push_text(iri.as_str())),
            TermRef::BlankNode(node) => Object::Blank(self.push_text(node.as_str())),
            TermRef::Literal(literal) => match split_literal(literal) {
                LiteralParts::String(value) => Object::String(self.push_text(value)),
                LiteralParts::Language(language, value) => Object::Language {
                    language: self.push_text(language),
                    value: self.push_text(value),
                },
                LiteralParts::Typed(datatype, value) => Object::Typed {
                    datatype: self.push_text(datatype.as_str()),
                    value: self.push_text(value),
                },
            },
            // The store refuses it, so no quad has one.
            TermRef::Triple(_) => return,
        };
        self.quads.push(QuadSpans { predicate: self.predicate, object, graph: self.graph });
    }

    fn push_text(&mut self, text: &str) -> Span {
        let from = self.text.len();
        self.text.push_str(text);
        (from, self.text.len())
    }
}
