//! Shapes graphs: reading them, and validating with them.
use crate::data::Data;
use crate::shacl::Shacl;
use crate::shex::Shex;
use crate::violation::Violation;
use oxrdf::{NamedNode, Term, Triple};
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::unwind::catch;
use penstock_rdf::{Format, QuadReader, ReadError, ReadOptions, count_term_bytes};
use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

/// The maximum size of a shapes graph in bytes.
pub const MAX_GRAPH_BYTES: usize = 1 << 20;
/// The size of the stack for the parser of `ShEx`. Only pages that are used take memory.
const PARSER_STACK_BYTES: usize = 64 << 20;
/// The maximum number of triples of a shapes graph.
const MAX_TRIPLES: usize = 20_000;
/// The maximum length of all terms of a shapes graph in bytes: prefixes can make a short text long.
const MAX_TERM_BYTES: usize = 16 << 20;

/// The language of a shapes graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// SHACL Core
    Shacl,
    /// `ShEx` 2.1
    Shex,
}

/// The format of the text of a shapes graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShapesFormat {
    /// SHACL, as RDF.
    Rdf(Format),
    /// `ShEx` in its compact syntax.
    ShexC,
}

/// The objects that are validated.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// The members of the Business Object: what a `ShEx` schema validates.
    pub members: BTreeSet<NamedNode>,
    /// The objects nested in them. SHACL's targets choose among both.
    pub nested: BTreeSet<NamedNode>,
    /// What else these objects make targets of SHACL: the values of `sh:targetObjectsOf`, and those of `sh:targetNode` that
    /// they refer to. They need not be stored, and may be literals.
    pub values: HashSet<Term>,
}

impl Scope {
    /// Returns whether there is nothing to validate.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.nested.is_empty() && self.values.is_empty()
    }

    /// Returns whether a term is validated.
    pub fn contains(&self, term: &Term) -> bool {
        self.values.contains(term)
            || matches!(term, Term::NamedNode(node) if self.members.contains(node) || self.nested.contains(node))
    }

    /// Keeps the members and nested objects for which `is_kept` holds.
    ///
    /// # Errors
    /// The first error of `is_kept`.
    pub fn retain<E>(
        &mut self,
        mut is_kept: impl FnMut(&NamedNode) -> Result<bool, E>,
    ) -> Result<(), E> {
        for nodes in [&mut self.members, &mut self.nested] {
            for node in std::mem::take(nodes) {
                if is_kept(&node)? {
                    nodes.insert(node);
                }
            }
        }
        Ok(())
    }
}

/// The properties that a shapes graph reads: objects that have them must be validated when what they refer to changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Properties {
    /// Those from the validated object to a value.
    pub forward: BTreeSet<NamedNode>,
    /// Those from a value to the validated object (`sh:inversePath`, `^`).
    pub inverse: BTreeSet<NamedNode>,
}

/// The targets of a shapes graph that need not be subjects. They may be literals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Targets {
    /// The values of `sh:targetNode`.
    pub nodes: HashSet<Term>,
    /// The values of `sh:targetObjectsOf`.
    pub objects_of: BTreeSet<NamedNode>,
}

impl Targets {
    /// Returns the targets of all of these graphs.
    pub fn of_graphs<'g>(graphs: impl IntoIterator<Item = &'g ShapesGraph>) -> Self {
        let mut all = Self::default();
        for Self { nodes, objects_of } in graphs.into_iter().map(ShapesGraph::targets) {
            all.nodes.extend(nodes);
            all.objects_of.extend(objects_of);
        }
        all
    }
}

/// A shapes graph, checked and compiled.
#[derive(Debug)]
pub struct ShapesGraph {
    compiled: Compiled,
}

#[derive(Debug)]
enum Compiled {
    Shacl(Box<Shacl>),
    Shex(Box<Shex>),
}

impl ShapesGraph {
    /// Reads a shapes graph, and checks that every part of it is supported.
    ///
    /// # Errors
    /// - `ErrorClass::Invalid` with the line and column, or the shape and the constraint that is not supported
    /// - `ErrorClass::TooLarge` past [`MAX_GRAPH_BYTES`]
    pub fn read(text: &str, format: ShapesFormat) -> Result<Self, GatewayError> {
        if text.len() > MAX_GRAPH_BYTES {
            return Err(GatewayError::new(
                ErrorClass::TooLarge,
                format!(
                    "the shapes graph has {} bytes, and at most {MAX_GRAPH_BYTES} are allowed; divide it into several",
                    text.len()
                ),
            ));
        }
        let compiled = match format {
            ShapesFormat::Rdf(format) => {
                let triples = read_triples(text, format)?;
                let compile = || Shacl::compile(&triples).map_err(invalid_graph_error);
                Compiled::Shacl(Box::new(catch("reading the shapes graph", compile)?))
            }
            ShapesFormat::ShexC => {
                let compile = || Shex::compile(text).map_err(invalid_graph_error);
                let read = || catch("reading the schema", compile);
                Compiled::Shex(Box::new(run_on_deep_stack(read)??))
            }
        };
        Ok(Self { compiled })
    }

    /// Returns its language.
    pub fn language(&self) -> Language {
        match &self.compiled {
            Compiled::Shacl(_) => Language::Shacl,
            Compiled::Shex(_) => Language::Shex,
        }
    }

    /// Returns the properties that it reads.
    pub fn properties(&self) -> &Properties {
        match &self.compiled {
            Compiled::Shacl(shacl) => shacl.properties(),
            Compiled::Shex(shex) => shex.properties(),
        }
    }

    /// Returns the targets that need not be subjects. A `ShEx` schema has none.
    pub fn targets(&self) -> Targets {
        match &self.compiled {
            Compiled::Shacl(shacl) => shacl.targets().clone(),
            Compiled::Shex(_) => Targets::default(),
        }
    }

    /// Returns the objects of the scope that may violate a shape: all others conform. Much faster than [`Self::validate`],
    /// and on any thread.
    ///
    /// # Errors
    /// As [`Self::validate`].
    pub fn find_doubtful(&self, data: &Data<'_>, scope: &Scope) -> Result<Scope, GatewayError> {
        catch("the validation", || match &self.compiled {
            Compiled::Shacl(shacl) => Ok(shacl.find_doubtful(data, scope)),
            Compiled::Shex(_) => Ok(Scope { members: scope.members.clone(), ..Scope::default() }),
        })
    }

    /// Validates the objects of the scope. The violations are in the order of their focus nodes, paths and constraints.
    ///
    /// # Errors
    /// - `ErrorClass::Invalid` past a limit
    /// - the errors of reading the data
    pub fn validate(
        &self,
        data: &Data<'static>,
        scope: &Scope,
    ) -> Result<Vec<Violation>, GatewayError> {
        catch("the validation", || match &self.compiled {
            Compiled::Shacl(shacl) => shacl.validate(data, scope),
            Compiled::Shex(shex) => shex.validate(data, &scope.members),
        })
    }

    /// Validates nodes of a document: SHACL's targets choose among all of them, and a `ShEx` schema validates those with an
    /// IRI.
    ///
    /// # Errors
    /// As [`Self::validate`].
    pub fn validate_nodes(
        &self,
        data: &Data<'static>,
        nodes: &[Term],
    ) -> Result<Vec<Violation>, GatewayError> {
        catch("the validation", || match &self.compiled {
            Compiled::Shacl(shacl) => {
                shacl.validate_nodes(data, &shacl.find_doubtful_nodes(data, nodes))
            }
            Compiled::Shex(shex) => {
                let named = nodes.iter().filter_map(|node| match node {
                    Term::NamedNode(node) => Some(node.clone()),
                    _ => None,
                });
                shex.validate(data, &named.collect())
            }
        })
    }
}

/// Runs `work` on a thread with a stack that is deep enough for rudof's parser of `ShEx`.
fn run_on_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, GatewayError> {
    let failed = |why: &dyn std::fmt::Display| {
        let class = ErrorClass::Unavailable(Duration::from_secs(1));
        GatewayError::new(class, format!("starting a thread for the schema failed: {why}"))
    };
    std::thread::scope(|scope| {
        let thread =
            std::thread::Builder::new().name("schema".into()).stack_size(PARSER_STACK_BYTES);
        let running = thread.spawn_scoped(scope, work).map_err(|error| failed(&error))?;
        running.join().map_err(|_| failed(&"the thread ended"))
    })
}

/// Creates the error of a shapes graph that cannot be used.
fn invalid_graph_error(findings: Vec<Finding>) -> GatewayError {
    GatewayError::with_findings(ErrorClass::Invalid, "the shapes graph cannot be used", findings)
}

fn read_triples(text: &str, format: Format) -> Result<Vec<Triple>, GatewayError> {
    let invalid = |error| {
        invalid_graph_error(vec![match error {
            ReadError::Malformed(finding) => finding,
            error => Finding::whole(error.to_string()),
        }])
    };
    let (mut triples, mut term_bytes) = (Vec::new(), 0);
    let mut quads =
        QuadReader::new(text.as_bytes(), format, &ReadOptions::default()).map_err(invalid)?;
    while let Some(quad) = quads.next_quad().map_err(invalid)? {
        if triples.len() == MAX_TRIPLES {
            let why = format!("it has more than {MAX_TRIPLES} triples; divide it into several");
            return Err(invalid_graph_error(vec![Finding::whole(why)]));
        }
        term_bytes += count_term_bytes(&quad);
        if term_bytes > MAX_TERM_BYTES {
            let why = format!("its terms have more than {MAX_TERM_BYTES} bytes; use shorter IRIs");
            return Err(invalid_graph_error(vec![Finding::whole(why)]));
        }
        triples.push(Triple::from(quad));
    }
    Ok(triples)
}
