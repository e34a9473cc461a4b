//! rudof's engine, with the constraints that compare values corrected. rudof distinguishes the case of language tags,
//! orders IRIs, compares texts of dates and invalid values, does not compare `INF` and some integers, and passes over the
//! values of a literal. It counts the bytes of a text instead of its characters, and matches regular expressions without a
//! limit.
use super::patterns::{Patterns, pattern_key};
use super::quick::{text_of, to_folded};
use crate::data::{Data, to_named_node};
use oxrdf::{NamedNode, Term};
use penstock_rdf::compare::{compare, fold_language, is_valid};
use rudof_iri::IriS;
use rudof_rdf::rdf_core::SHACLPath;
use rudof_rdf::rdf_core::term::Object;
use rudof_rdf::rdf_core::term::literal::ConcreteLiteral;
use shacl::error::ValidationError;
use shacl::ir::{IRComponent, IRSchema, IRShape, RecursionSemantics, ShapeLabelIdx};
use shacl::validator::constraints::NativeValidator;
use shacl::validator::engine::{Engine, NativeEngine, NodeExprState, Retention};
use shacl::validator::nodes::{FocusNodes, ValueNodes};
use shacl::validator::report::{ValidationOutcome, ValidationResult};
use std::cmp::Ordering;
use std::collections::HashSet;

type Rdf = Data<'static>;

/// Evaluates shapes.
pub(super) struct CorrectedEngine {
    engine: NativeEngine,
    patterns: Patterns,
}

impl CorrectedEngine {
    pub(super) fn new(retention: Retention, patterns: Patterns) -> Self {
        let mut engine = NativeEngine::new(RecursionSemantics::None);
        Engine::<Rdf>::set_retention(&mut engine, retention);
        Self { engine, patterns }
    }

    fn inner(&self) -> &dyn Engine<Rdf> {
        &self.engine
    }

    fn inner_mut(&mut self) -> &mut dyn Engine<Rdf> {
        &mut self.engine
    }
}

/// A constraint of a shape, and the values that it is for.
struct Check<'a> {
    data: &'a Rdf,
    shape: &'a IRShape,
    component: Object,
    path: Option<&'a SHACLPath>,
    values: &'a ValueNodes<Rdf>,
    outcome: ValidationOutcome,
}

impl Check<'_> {
    fn add(&mut self, focus: &Term, value: Option<&Term>) -> Result<(), ValidationError> {
        self.data.budget().check_or_abort();
        let to_object = <Rdf as rudof_rdf::rdf_core::Rdf>::term_as_object;
        let result = ValidationResult::new(
            to_object(focus)?,
            self.component.clone(),
            self.shape.severity().clone(),
        );
        self.outcome.push_violation(
            result
                .with_source(Some(self.shape.id().clone()))
                .with_path(self.path.cloned())
                .with_value(value.map(to_object).transpose()?),
        );
        Ok(())
    }

    /// Adds the values that do not conform.
    fn check_values(
        mut self,
        conforms: impl Fn(&Term) -> bool,
    ) -> Result<ValidationOutcome, ValidationError> {
        for (focus, values) in self.values.iter() {
            for value in values.iter() {
                if !conforms(value) {
                    self.add(focus, Some(value))?;
                }
            }
        }
        Ok(self.outcome)
    }

    /// Adds the values whose text is not valid, and blank nodes (SHACL, 4.4).
    fn check_text(
        self,
        is_valid: impl Fn(&str) -> bool,
    ) -> Result<ValidationOutcome, ValidationError> {
        self.check_values(|value| text_of(value).is_some_and(&is_valid))
    }

    /// Adds the values for which `is_valid` does not hold, with the bound as its second argument. Values that cannot be
    /// compared have none (SHACL, 4.3).
    fn check_bound(
        self,
        bound: ConcreteLiteral,
        is_valid: impl Fn(Ordering) -> bool,
    ) -> Result<ValidationOutcome, ValidationError> {
        let bound = Term::from(Object::Literal(bound));
        self.check_values(|value| compare(value, &bound).is_some_and(&is_valid))
    }

    /// Adds a value for each value of the other property for which `is_valid` does not hold (SHACL, 4.5.3).
    fn check_other(
        mut self,
        other: &NamedNode,
        is_valid: impl Fn(Ordering) -> bool,
    ) -> Result<ValidationOutcome, ValidationError> {
        for (focus, values) in self.values.iter() {
            for bound in self.data.objects(focus, other) {
                for value in values.iter() {
                    // There may be millions of pairs.
                    self.data.budget().check_or_abort();
                    if !compare(value, &bound).is_some_and(&is_valid) {
                        self.add(focus, Some(value))?;
                    }
                }
            }
        }
        Ok(self.outcome)
    }

    /// Adds the focus nodes without this value (SHACL, 4.8.1).
    fn check_has_value(mut self, sought: &Term) -> Result<ValidationOutcome, ValidationError> {
        for (focus, values) in self.values.iter() {
            if !values.iter().any(|value| *fold_language(value) == *sought) {
                self.add(focus, None)?;
            }
        }
        Ok(self.outcome)
    }

    /// Adds the values that only one of the properties has (SHACL, 4.5.1).
    fn check_equal(mut self, other: &NamedNode) -> Result<ValidationOutcome, ValidationError> {
        for (focus, values) in self.values.iter() {
            let others: HashSet<Term> = self.data.objects(focus, other).into_iter().collect();
            let own: HashSet<&Term> = values.iter().collect();
            for value in &others {
                if !own.contains(value) {
                    self.add(focus, Some(value))?;
                }
            }
            for value in own {
                if !others.contains(value) {
                    self.add(focus, Some(value))?;
                }
            }
        }
        Ok(self.outcome)
    }
}

impl Engine<Rdf> for CorrectedEngine {
    fn fork(&self) -> Box<dyn Engine<Rdf>> {
        Box::new(Self::new(self.inner().retention(), self.patterns.clone()))
    }

    fn evaluate(
        &mut self,
        data: &Rdf,
        shape: &IRShape,
        component: &IRComponent,
        values: &ValueNodes<Rdf>,
        source: Option<&IRShape>,
        path: Option<&SHACLPath>,
        schema: &IRSchema,
    ) -> Result<ValidationOutcome, ValidationError> {
        data.budget().check_or_abort();
        let check = Check {
            data,
            shape,
            component: Object::iri(IriS::from(component)),
            path,
            values,
            outcome: ValidationOutcome::new(),
        };
        let validator: &dyn NativeValidator<Rdf> = match component {
            IRComponent::MinExclusive(than) => {
                return check.check_bound(than.min_exclusive().clone(), Ordering::is_gt);
            }
            IRComponent::MinInclusive(than) => {
                return check.check_bound(than.min_inclusive().clone(), Ordering::is_ge);
            }
            IRComponent::MaxExclusive(than) => {
                return check.check_bound(than.max_exclusive().clone(), Ordering::is_lt);
            }
            IRComponent::MaxInclusive(than) => {
                return check.check_bound(than.max_inclusive().clone(), Ordering::is_le);
            }
            IRComponent::LessThan(than) => {
                return check.check_other(&to_named_node(than.iri()), Ordering::is_lt);
            }
            IRComponent::LessThanOrEquals(than) => {
                return check.check_other(&to_named_node(than.iri()), Ordering::is_le);
            }
            IRComponent::Equals(equals) => return check.check_equal(&to_named_node(equals.iri())),
            IRComponent::Class(inner) => inner,
            IRComponent::Datatype(datatype) => {
                let datatype = to_named_node(datatype.datatype());
                // A literal of the datatype that is not certain to be invalid (SHACL, 4.1.2).
                return check.check_values(|value| {
                    matches!(value, Term::Literal(literal)
                        if literal.datatype() == datatype.as_ref() && is_valid(literal) != Some(false))
                });
            }
            IRComponent::NodeKind(inner) => inner,
            IRComponent::MinCount(inner) => inner,
            IRComponent::MaxCount(inner) => inner,
            IRComponent::MinLength(inner) => match usize::try_from(inner.min_length()) {
                Ok(min) => return check.check_text(|text| text.chars().count() >= min),
                Err(_) => inner,
            },
            IRComponent::MaxLength(inner) => match usize::try_from(inner.max_length()) {
                Ok(max) => return check.check_text(|text| text.chars().count() <= max),
                Err(_) => inner,
            },
            IRComponent::Pattern(inner) => match self.patterns.get(&pattern_key(inner)) {
                Some(pattern) => return check.check_text(|text| data.is_match(pattern, text)),
                None => inner,
            },
            IRComponent::UniqueLang(inner) => inner,
            IRComponent::LanguageIn(inner) => inner,
            IRComponent::Disjoint(inner) => inner,
            IRComponent::SubsetOf(inner) => inner,
            IRComponent::Or(inner) => inner,
            IRComponent::And(inner) => inner,
            IRComponent::Not(inner) => inner,
            IRComponent::Xone(inner) => inner,
            IRComponent::Node(inner) => inner,
            IRComponent::HasValue(inner) => {
                return check.check_has_value(&to_folded(inner.value()));
            }
            IRComponent::In(inner) => {
                let allowed: HashSet<Term> = inner.values().iter().map(to_folded).collect();
                return check.check_values(|value| allowed.contains(&*fold_language(value)));
            }
            IRComponent::QualifiedValueShape(inner) => inner,
            IRComponent::Closed(inner) => inner,
            IRComponent::Deactivated(inner) => inner,
            IRComponent::BasicSparql(inner) => inner,
        };
        validator.validate_native(component, shape, data, self, values, source, path, schema)
    }

    fn target_node(&self, data: &Rdf, node: &Object) -> Result<FocusNodes<Rdf>, ValidationError> {
        self.inner().target_node(data, node)
    }

    fn target_class(&self, data: &Rdf, class: &Object) -> Result<FocusNodes<Rdf>, ValidationError> {
        self.inner().target_class(data, class)
    }

    fn target_subject_of(
        &self,
        data: &Rdf,
        property: &IriS,
    ) -> Result<FocusNodes<Rdf>, ValidationError> {
        self.inner().target_subject_of(data, property)
    }

    fn target_object_of(
        &self,
        data: &Rdf,
        property: &IriS,
    ) -> Result<FocusNodes<Rdf>, ValidationError> {
        self.inner().target_object_of(data, property)
    }

    fn implicit_target_class(
        &self,
        data: &Rdf,
        shape: &Object,
    ) -> Result<FocusNodes<Rdf>, ValidationError> {
        self.inner().implicit_target_class(data, shape)
    }

    fn record_validation(
        &mut self,
        node: Object,
        shape: ShapeLabelIdx,
        outcome: ValidationOutcome,
    ) {
        self.inner_mut().record_validation(node, shape, outcome);
    }

    fn has_validated(&self, node: &Object, shape: ShapeLabelIdx) -> bool {
        self.inner().has_validated(node, shape)
    }

    fn get_cached_outcome(&self, node: &Object, shape: ShapeLabelIdx) -> Option<ValidationOutcome> {
        self.inner().get_cached_outcome(node, shape)
    }

    fn recursion_semantics(&self) -> RecursionSemantics {
        self.inner().recursion_semantics()
    }

    fn is_in_chain(&self, node: &Object, shape: ShapeLabelIdx) -> bool {
        self.inner().is_in_chain(node, shape)
    }

    fn chain_enter(&mut self, node: Object, shape: ShapeLabelIdx) {
        self.inner_mut().chain_enter(node, shape);
    }

    fn chain_exit(&mut self, node: &Object, shape: ShapeLabelIdx) {
        self.inner_mut().chain_exit(node, shape);
    }

    fn node_expr_state(&mut self) -> &mut NodeExprState {
        self.inner_mut().node_expr_state()
    }

    fn retention(&self) -> Retention {
        self.inner().retention()
    }

    fn set_retention(&mut self, retention: Retention) {
        self.inner_mut().set_retention(retention);
    }
}
