//! SHACL Core (<https://www.w3.org/TR/shacl/>, sections 2 to 4).
mod check;
mod engine;
mod patterns;
mod quick;

use crate::data::{Data, TriplePattern, to_named_node, to_subject};
use crate::describe::{describe_constraint, to_severity};
use crate::paths::{collect_properties, format_path};
use crate::scope::{Properties, Scope, Targets};
use crate::violation::Violation;
pub(crate) use check::SHACL;
use check::{check_complete, check_supported};
use engine::CorrectedEngine;
use oxrdf::vocab::{rdf, rdfs};
use oxrdf::{NamedNode, Term, Triple};
use patterns::{Patterns, compile_patterns, quote_patterns};
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use quick::QuickShapes;
use rudof_iri::IriS;
use rudof_rdf::rdf_core::BuildRDF;
use rudof_rdf::rdf_core::term::Object;
use rudof_rdf::rdf_core::{NeighsRDF as _, SHACLPath};
use rudof_rdf::rdf_impl::OxigraphInMemory;
use shacl::ir::{IRComponent, IRSchema, IRShape, IRTarget, RecursionSemantics, ShapeLabelIdx};
use shacl::rdf::ShaclParser;
use shacl::types::Target;
use shacl::validator::engine::{Retention, Validate};
use shacl::validator::nodes::FocusNodes;
use shacl::validator::report::ValidationResult;
use std::collections::{BTreeSet, HashMap, HashSet};

/// A compiled shapes graph.
#[derive(Debug)]
pub(crate) struct Shacl {
    schema: IRSchema,
    /// The shapes with targets, ordered by name.
    targeted: Vec<ShapeLabelIdx>,
    /// The IRI of each shape, or of the nearest shape that it is part of and that has one.
    names: HashMap<Object, String>,
    properties: Properties,
    targets: Targets,
    patterns: Patterns,
    quick: QuickShapes,
}

impl Shacl {
    /// Compiles the triples of a shapes graph.
    ///
    /// # Errors
    /// Every part that is not supported or not valid.
    pub(crate) fn compile(triples: &[Triple]) -> Result<Self, Vec<Finding>> {
        check_supported(triples)?;
        let refused = |error: &dyn std::fmt::Display| vec![Finding::whole(error.to_string())];
        let mut graph = OxigraphInMemory::new();
        for Triple { subject, predicate, object } in quote_patterns(triples) {
            graph.add_triple(subject, predicate, object).map_err(|error| refused(&error))?;
        }
        let parsed = ShaclParser::new(graph).parse().map_err(|error| refused(&error))?;
        let schema = IRSchema::compile_with_recursion(&parsed, RecursionSemantics::None)
            .map_err(|error| refused(&error))?;
        check_complete(triples, &schema)?;
        let mut targeted = Vec::new();
        for (id, shape) in schema.iter_with_targets() {
            shape.targets().iter().try_for_each(|target| check_target(id, target))?;
            targeted.extend(schema.get_idx(id).map(|index| (id.to_string(), *index)));
        }
        if targeted.is_empty() {
            return Err(vec![Finding::whole(
                "no shape has a target, so nothing would be validated; add sh:targetClass or another target to one"
                    .to_owned(),
            )]);
        }
        targeted.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let names = name_shapes(&schema);
        let properties = collect_properties(&schema);
        let targets = collect_targets(&schema);
        let targeted = targeted.into_iter().map(|(_, index)| index).collect();
        let patterns = compile_patterns(&schema)?;
        let quick = QuickShapes::compile(&schema, &patterns);
        Ok(Self { schema, targeted, names, properties, targets, patterns, quick })
    }

    pub(crate) fn properties(&self) -> &Properties {
        &self.properties
    }

    pub(crate) fn targets(&self) -> &Targets {
        &self.targets
    }

    /// Returns the objects of the scope that are not certain to conform.
    pub(crate) fn find_doubtful(&self, data: &Data<'_>, scope: &Scope) -> Scope {
        let mut classes = Classes::default();
        let mut choose = |nodes: &BTreeSet<NamedNode>| {
            let doubtful = nodes.iter().filter(|node| {
                self.is_doubtful(data, &mut classes, &Term::NamedNode((*node).clone()))
            });
            doubtful.cloned().collect()
        };
        let (members, nested) = (choose(&scope.members), choose(&scope.nested));
        let values = scope.values.iter();
        let values = values.filter(|value| self.is_doubtful(data, &mut classes, value)).cloned();
        Scope { members, nested, values: values.collect() }
    }

    /// Returns those of the nodes that are not certain to conform.
    pub(crate) fn find_doubtful_nodes(&self, data: &Data<'_>, nodes: &[Term]) -> Vec<Term> {
        let mut classes = Classes::default();
        let doubtful = nodes.iter().filter(|node| self.is_doubtful(data, &mut classes, node));
        doubtful.cloned().collect()
    }

    fn is_doubtful(&self, data: &Data<'_>, classes: &mut Classes, node: &Term) -> bool {
        self.targeted.iter().any(|index| {
            self.schema.get_shape_from_idx(index).is_some_and(|shape| {
                is_any_target(data, classes, shape.targets(), node)
                    && !self.quick.conforms(data, *index, node)
            })
        })
    }

    /// Validates the objects of the scope that are targets of a shape.
    pub(crate) fn validate(
        &self,
        data: &Data<'static>,
        scope: &Scope,
    ) -> Result<Vec<Violation>, GatewayError> {
        let nodes: BTreeSet<&NamedNode> = scope.members.iter().chain(&scope.nested).collect();
        let nodes = nodes.into_iter().cloned().map(Term::from);
        let nodes: Vec<Term> = nodes.chain(scope.values.iter().cloned()).collect();
        self.validate_nodes(data, &nodes)
    }

    /// Validates those of the nodes that are targets of a shape.
    pub(crate) fn validate_nodes(
        &self,
        data: &Data<'static>,
        nodes: &[Term],
    ) -> Result<Vec<Violation>, GatewayError> {
        let max_results = Some(data.budget().max_violations());
        let retention = Retention { max_results, store_evidences: false };
        let mut engine = CorrectedEngine::new(retention, self.patterns.clone());
        let mut found = Vec::new();
        let mut classes = Classes::default();
        for index in &self.targeted {
            let Some(shape) = self.schema.get_shape_from_idx(index) else { continue };
            let focus: Vec<Term> = nodes
                .iter()
                .filter(|node| is_any_target(data, &mut classes, shape.targets(), node))
                .cloned()
                .collect();
            if focus.is_empty() {
                continue;
            }
            // rudof's results have literals in canonical form.
            let literals = focus.iter().filter(|node| matches!(node, Term::Literal(_)));
            let literals: Vec<Term> = literals.cloned().collect();
            let focus = FocusNodes::from_iter(focus);
            let outcome = shape
                .validate(data, &mut engine, Some(&focus), Some(shape), &self.schema)
                .map_err(|error| {
                    let why = format!("the objects cannot be validated: {error}");
                    GatewayError::new(ErrorClass::Invalid, why)
                })?;
            for result in outcome.violations() {
                let focus = find_original(&literals, result.focus_node());
                found.push(self.to_violation(data, focus, result));
            }
        }
        found.sort_by_cached_key(|violation| {
            (
                violation.focus_node.to_string(),
                violation.path.clone(),
                violation.constraint.clone(),
                violation.value.as_ref().map(ToString::to_string),
                violation.source_shape.to_string(),
            )
        });
        found.dedup();
        Ok(found)
    }

    fn to_violation(
        &self,
        data: &Data<'static>,
        focus_node: Term,
        result: &ValidationResult,
    ) -> Violation {
        let source = result.source();
        let shape = source.and_then(|id| self.schema.get_shape(id));
        let component = shape.and_then(|shape| {
            shape.components().iter().find(|component| {
                Object::iri(IriS::from(*component)) == *result.constraint_component()
            })
        });
        let own = shape.and_then(IRShape::message);
        let messages = if let Some(own) = own {
            own.iter()
                .map(|(language, text)| (language.as_ref().map(ToString::to_string), text.clone()))
                .collect()
        } else {
            let described = component.map(describe_constraint);
            let given = || result.message().iter().map(|(_, text)| text.clone()).next();
            vec![(None, described.or_else(given).unwrap_or_default())]
        };
        let source_shape = source.cloned().map_or_else(
            || Term::BlankNode(oxrdf::BlankNode::new_unchecked("unknown")),
            Term::from,
        );
        let value = result.value().map(|value| match (result.path(), value) {
            (Some(path), Object::Literal(_)) => {
                let values = data.objects_for_shacl_path(&focus_node, path).unwrap_or_default();
                find_original(&values, value)
            }
            (None, Object::Literal(_)) => find_original([&focus_node], value),
            _ => value.clone().into(),
        });
        Violation {
            focus_node,
            path: result.path().map(format_path),
            predicate: result.path().and_then(SHACLPath::pred).map(to_named_node),
            value,
            shape: source.and_then(|id| self.names.get(id)).cloned().unwrap_or_default(),
            source_shape,
            constraint: match result.constraint_component().clone().into() {
                Term::NamedNode(node) => node,
                other => NamedNode::new_unchecked(other.to_string()),
            },
            severity: to_severity(result.severity()),
            messages,
        }
    }
}

/// Returns the term that rudof has as this object, in its lexical form. Of several, it is the first in their order.
fn find_original<'t>(terms: impl IntoIterator<Item = &'t Term>, object: &Object) -> Term {
    let is_same = |term: &&Term| Object::try_from((*term).clone()).is_ok_and(|one| one == *object);
    let found = terms.into_iter().filter(is_same).min_by_key(ToString::to_string);
    found.cloned().unwrap_or_else(|| object.clone().into())
}

fn check_target(shape: &Object, target: &IRTarget) -> Result<(), Vec<Finding>> {
    let is_valid = match target {
        Target::Node(node) => node.as_constant().is_some(),
        Target::Class(_)
        | Target::SubjectsOf(_)
        | Target::ObjectsOf(_)
        | Target::ImplicitClass(_) => true,
        _ => false,
    };
    if is_valid {
        return Ok(());
    }
    Err(vec![Finding::whole(format!(
        "the shape {shape} has the target {target}, which is not valid"
    ))])
}

/// Returns the targets that need not be subjects.
fn collect_targets(schema: &IRSchema) -> Targets {
    let mut targets = Targets::default();
    for (_, shape) in schema.iter_with_targets() {
        for target in shape.targets() {
            match target {
                Target::Node(node) => targets.nodes.extend(node.as_constant().map(Term::from)),
                Target::ObjectsOf(property) => {
                    targets.objects_of.insert(to_named_node(property));
                }
                _ => {}
            }
        }
    }
    targets
}

/// The superclasses of the classes that were asked for, by class.
#[derive(Default)]
struct Classes(HashMap<Term, HashSet<Term>>);

impl Classes {
    /// Returns whether `class` is `ancestor`, or a subclass of it at any depth.
    fn is_subclass(&mut self, data: &Data<'_>, class: &Term, ancestor: &Term) -> bool {
        class == ancestor
            || self
                .0
                .entry(class.clone())
                .or_insert_with(|| find_ancestors(data, class))
                .contains(ancestor)
    }
}

fn find_ancestors(data: &Data<'_>, class: &Term) -> HashSet<Term> {
    let (mut found, mut pending) = (HashSet::new(), vec![class.clone()]);
    while let Some(class) = pending.pop() {
        for parent in data.objects(&class, &rdfs::SUB_CLASS_OF.into_owned()) {
            if found.insert(parent.clone()) {
                pending.push(parent);
            }
        }
    }
    found
}

/// Returns whether the shape with these targets validates the node (SHACL, 2.1.3).
fn is_any_target(
    data: &Data<'_>,
    classes: &mut Classes,
    targets: &[IRTarget],
    node: &Term,
) -> bool {
    targets.iter().any(|target| is_target(data, classes, target, node))
}

fn is_target(data: &Data<'_>, classes: &mut Classes, target: &IRTarget, node: &Term) -> bool {
    match target {
        Target::Node(constant) => {
            constant.as_constant().is_some_and(|constant| Term::from(constant) == *node)
        }
        Target::Class(class) | Target::ImplicitClass(class) => {
            let class = Term::from(class.clone());
            let types = data.objects(node, &rdf::TYPE.into_owned());
            types.iter().any(|found| classes.is_subclass(data, found, &class))
        }
        Target::SubjectsOf(property) => {
            let property = to_named_node(property);
            to_subject(node).is_some_and(|node| {
                let (subject, predicate) = (Some(&node), Some(&property));
                data.any(TriplePattern { subject, predicate, object: None })
            })
        }
        Target::ObjectsOf(property) => {
            let property = to_named_node(property);
            let (predicate, object) = (Some(&property), Some(node));
            data.any(TriplePattern { subject: None, predicate, object })
        }
        _ => false,
    }
}

/// Returns the shapes that a shape refers to.
fn list_references(shape: &IRShape) -> Vec<ShapeLabelIdx> {
    let mut found = shape.property_shapes().clone();
    for component in shape.components() {
        match component {
            IRComponent::And(and) => found.extend(and.shapes()),
            IRComponent::Or(or) => found.extend(or.shapes()),
            IRComponent::Xone(xone) => found.extend(xone.shapes()),
            IRComponent::Not(not) => found.push(*not.shape()),
            IRComponent::Node(node) => found.push(*node.shape()),
            IRComponent::QualifiedValueShape(qualified) => found.push(*qualified.shape()),
            _ => {}
        }
    }
    found
}

fn name_shapes(schema: &IRSchema) -> HashMap<Object, String> {
    let mut named: Vec<_> = schema
        .iter()
        .filter_map(|(id, shape)| match id {
            Object::Iri(iri) => Some((iri.as_str().to_owned(), id.clone(), shape)),
            _ => None,
        })
        .collect();
    named.sort_by(|(one, ..), (other, ..)| one.cmp(other));
    let mut names: HashMap<Object, String> =
        named.iter().map(|(name, id, _)| (id.clone(), name.clone())).collect();
    for (name, _, shape) in named {
        let mut pending = list_references(shape);
        while let Some(index) = pending.pop() {
            let Some(part) = schema.get_shape_from_idx(&index) else { continue };
            if names.contains_key(part.id()) {
                continue;
            }
            names.insert(part.id().clone(), name.clone());
            pending.extend(list_references(part));
        }
    }
    names
}
