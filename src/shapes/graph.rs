//! Shapes graphs: reading them, and validating with them.
use crate::data::Data;
use crate::scope::{Properties, Scope, Targets};
use crate::shacl::Shacl;
use crate::shex::Shex;
use crate::violation::Violation;
use oxrdf::{Term, Triple};
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::unwind::catch;
use penstock_rdf::{Format, QuadReader, ReadError, ReadOptions, count_term_bytes};
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
    let invalid = |error| match error {
        ReadError::NoStack(error) => error,
        ReadError::Malformed(finding) => invalid_graph_error(vec![finding]),
        error => invalid_graph_error(vec![Finding::whole(error.to_string())]),
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
