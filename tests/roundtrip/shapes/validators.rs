//! Validates quads by shapes, with a SHACL and a ShEx processor that are no part of the gateway.
use oxrdf::{Literal, NamedNode, Quad, Term};
use penstock_model::mapping::{ShapeSource, build_shacl, write_shex};
use penstock_model::rdf::{Format, write_document};
use prefixmap::{PrefixMap, PrefixMapError};
use rudof_iri::IriS;
use rudof_rdf::rdf_core::query::{QueryRDF, QueryResultFormat, QuerySolutions};
use rudof_rdf::rdf_core::term::literal::Lang;
use rudof_rdf::rdf_core::{Matcher, NeighsRDF, RDFFormat, Rdf};
use rudof_rdf::rdf_impl::{OxigraphInMemory, ReaderMode};
use shacl::ir::IRSchema;
use shacl::validator::processor::{GraphValidation, ShaclProcessor};
use shacl::validator::store::Graph;
use shacl::validator::{ShaclConfig, ShaclValidationMode};
use shex_ast::ir::ast2ir::AST2IR;
use shex_ast::ir::map_state::MapState;
use shex_ast::ir::schema_ir::SchemaIR;
use shex_ast::ir::semantic_actions_registry::SemanticActionsRegistry;
use shex_ast::ir::shape_label::ShapeLabel;
use shex_ast::{Node, ResolveMethod, ShExParser};
use shex_validation::{Validator, ValidatorConfig};

/// Returns the violations of the SHACL shapes.
pub(crate) fn validate_shacl(source: &ShapeSource<'_>, quads: &[Quad]) -> Vec<String> {
    let shapes = write_document(Format::Turtle, &build_shacl(source), &source.prefixes()).unwrap();
    let shapes = String::from_utf8(shapes).unwrap();
    let schema =
        IRSchema::from_str(&shapes, &RDFFormat::Turtle, None, &ReaderMode::Strict).unwrap();
    let data = Graph::from(to_graph(quads));
    let report = GraphValidation::new(data)
        .validate(&schema, &ShaclValidationMode::Native, &ShaclConfig::default())
        .unwrap();
    assert_eq!(report.conforms(), report.results().is_empty());
    report.results().iter().map(|result| format!("{result:?}")).collect()
}

/// Returns those of the members that do not conform to the ShEx schema.
pub(crate) fn validate_shex(
    source: &ShapeSource<'_>,
    quads: &[Quad],
    members: &[String],
) -> Vec<String> {
    let base = IriS::new_unchecked("http://example.org/");
    let text = write_shex(source);
    let ast = ShExParser::parse(&text, Some(base.clone()), &base)
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let config = ValidatorConfig::default();
    let mut map_state = MapState::default();
    let registry = SemanticActionsRegistry::default();
    registry.set_map_state(&mut map_state);
    let mut schema = SchemaIR::new(registry);
    AST2IR::new(&ResolveMethod::default(), map_state)
        .compile(&ast, &base, &Some(base.clone()), &mut schema, config.external_resolvers())
        .unwrap();
    let root: NamedNode = source.root_iri();
    let root = ShapeLabel::iri(IriS::new_unchecked(root.as_str()));
    let graph = LocalGraph(to_graph(quads));
    let mut validator = Validator::new(&schema, &config).unwrap();
    let mut refused = Vec::new();
    for member in members {
        let node = Node::parse(member, None).unwrap();
        let results = validator.validate_node_shape(&node, &root, &graph, &schema, &None).unwrap();
        if !results.get_info(&node, &root).unwrap().is_conformant() {
            refused.push(member.clone());
        }
    }
    refused
}

/// Returns the quads as one graph. The SHACL processor compares the language tags of `sh:in` as texts, in the case in which
/// [`Lang`] writes them.
fn to_graph(quads: &[Quad]) -> OxigraphInMemory {
    let mut graph = OxigraphInMemory::new();
    for Quad { subject, predicate, object, .. } in quads {
        let object = match object {
            Term::Literal(literal) if let Some(tag) = literal.language() => {
                let (text, tag) = (literal.value(), Lang::new(tag).unwrap().to_string());
                Literal::new_language_tagged_literal_unchecked(text, tag).into()
            }
            other => other.clone(),
        };
        graph.add_triple_ref(subject, predicate, &object).unwrap();
    }
    graph
}

/// A graph that answers no SPARQL queries. The ShEx processor asks none for the nodes that it is given.
#[derive(Debug)]
struct LocalGraph(OxigraphInMemory);

impl Rdf for LocalGraph {
    type Subject = <OxigraphInMemory as Rdf>::Subject;
    type IRI = <OxigraphInMemory as Rdf>::IRI;
    type Term = <OxigraphInMemory as Rdf>::Term;
    type BNode = <OxigraphInMemory as Rdf>::BNode;
    type Literal = <OxigraphInMemory as Rdf>::Literal;
    type Triple = <OxigraphInMemory as Rdf>::Triple;
    type Err = <OxigraphInMemory as Rdf>::Err;

    fn qualify_iri(&self, iri: &Self::IRI) -> String {
        self.0.qualify_iri(iri)
    }

    fn qualify_subject(&self, subject: &Self::Subject) -> String {
        self.0.qualify_subject(subject)
    }

    fn qualify_term(&self, term: &Self::Term) -> String {
        self.0.qualify_term(term)
    }

    fn prefixmap(&self) -> Option<PrefixMap> {
        Rdf::prefixmap(&self.0)
    }

    fn resolve_prefix_local(&self, prefix: &str, local: &str) -> Result<IriS, PrefixMapError> {
        self.0.resolve_prefix_local(prefix, local)
    }
}

impl NeighsRDF for LocalGraph {
    fn triples(&self) -> Result<impl Iterator<Item = Self::Triple>, Self::Err> {
        self.0.triples()
    }

    fn triples_matching<S, P, O>(
        &self,
        subject: &S,
        predicate: &P,
        object: &O,
    ) -> Result<impl Iterator<Item = Self::Triple> + '_, Self::Err>
    where
        S: Matcher<Self::Subject>,
        P: Matcher<Self::IRI>,
        O: Matcher<Self::Term>,
    {
        self.0.triples_matching(subject, predicate, object)
    }
}

impl QueryRDF for LocalGraph {
    fn query_select(&self, _: &str) -> Result<QuerySolutions<Self>, Self::Err> {
        unreachable!("no query is needed")
    }

    fn query_construct(&self, _: &str, _: &QueryResultFormat) -> Result<String, Self::Err> {
        unreachable!("no query is needed")
    }

    fn query_ask(&self, _: &str) -> Result<bool, Self::Err> {
        unreachable!("no query is needed")
    }
}
