//! Builds SHACL Core.
use super::{
    PropertyGroup, SHACL_NAMESPACE, ShapeSource, Target, field_iri, group_by_predicate,
    has_repeated_languages, is_unchecked, list_datatypes, list_iri, list_languages, nested_iri,
    requires_something, shared_iri,
};
use crate::mapping::schema::escape_pattern;
use crate::mapping::{Detail, Property, Shape, Value};
use oxrdf::vocab::{rdf, rdfs, xsd};
use oxrdf::{BlankNode, GraphName, Literal, NamedNode, NamedNodeRef, NamedOrBlankNode, Quad, Term};

/// Returns the shapes of a Business Object as triples.
pub fn build_shacl(source: &ShapeSource<'_>) -> Vec<Quad> {
    let mut builder = Builder::default();
    let root = source.root_iri();
    builder.add(&root, rdf::TYPE, sh("NodeShape"));
    builder.add(&root, rdfs::LABEL, Literal::from(source.name));
    let target = source.find_target();
    builder.add(&root, rdfs::COMMENT, Literal::from(target.describe()));
    match target {
        Target::ConditionClass(class) | Target::WrittenClass(class) => {
            builder.add(&root, sh("targetClass"), class.clone());
        }
        Target::ConditionProperty(property) | Target::RequiredProperty(property) => {
            builder.add(&root, sh("targetSubjectsOf"), property.clone());
        }
        Target::AnyProperty(properties) => {
            for property in properties {
                builder.add(&root, sh("targetSubjectsOf"), property.clone());
            }
        }
    }
    builder.add(&root, sh("nodeKind"), sh("IRI"));
    for class in &source.mapping.root.types {
        builder.add(&root, sh("class"), class.clone());
    }
    builder.add_fields(&root, &root, &source.mapping.root, true);
    builder.quads
}

fn sh(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{SHACL_NAMESPACE}{name}"))
}

/// Collects the triples.
#[derive(Default)]
struct Builder {
    quads: Vec<Quad>,
    blank_nodes: usize,
}

impl Builder {
    fn add(
        &mut self,
        subject: &(impl Clone + Into<NamedOrBlankNode>),
        predicate: impl Into<NamedNode>,
        object: impl Into<Term>,
    ) {
        self.quads.push(Quad::new(subject.clone(), predicate, object, GraphName::DefaultGraph));
    }

    /// Returns a new blank node. The same mapping gives the same ones.
    fn create_node(&mut self) -> BlankNode {
        self.blank_nodes += 1;
        BlankNode::new_unchecked(format!("b{}", self.blank_nodes))
    }

    /// Adds a list, and returns its first node.
    fn add_list(&mut self, values: impl IntoIterator<Item = Term>) -> Term {
        let mut list = Term::from(rdf::NIL.into_owned());
        let mut values: Vec<Term> = values.into_iter().collect();
        while let Some(value) = values.pop() {
            let node = self.create_node();
            self.add(&node, rdf::FIRST, value);
            self.add(&node, rdf::REST, list);
            list = node.into();
        }
        list
    }

    /// Adds to a shape what it requires of the fields of an object. `counts_required` is false for a nested object,
    /// which may be a reference.
    fn add_fields(
        &mut self,
        subject: &(impl Clone + Into<NamedOrBlankNode>),
        object: &NamedNode,
        shape: &Shape,
        counts_required: bool,
    ) {
        for group in group_by_predicate(shape) {
            if let Some((index, field, property)) = group.ordered_array() {
                let iri = field_iri(object, &field.name);
                self.add(subject, sh("property"), iri.clone());
                self.add_field(&iri, index, &field.name, property);
                if counts_required && property.required {
                    self.add_count(&iri, "minCount", 1);
                }
                self.add_count(&iri, "maxCount", 1);
                self.add_list_values(&iri, &group, property);
            } else if let Some((index, field, property)) = group.sole_owner() {
                let iri = field_iri(object, &field.name);
                self.add(subject, sh("property"), iri.clone());
                self.add_field(&iri, index, &field.name, property);
                self.add_value(&iri, &group, property);
                if counts_required && property.required {
                    self.add_count(&iri, "minCount", 1);
                }
                if property.value.language_map().is_some() {
                    if !has_repeated_languages(property) {
                        self.add(&iri, sh("uniqueLang"), Literal::from(true));
                    }
                } else if !property.is_array {
                    self.add_count(&iri, "maxCount", 1);
                }
                if let Value::Object(nested) = &property.value {
                    self.add_nested(&iri, &iri, nested);
                }
            } else {
                self.add_shared_fields(subject, object, &group, counts_required);
            }
        }
    }

    /// Adds to the shape of an ordered array what each value of its list is.
    fn add_list_values(&mut self, iri: &NamedNode, group: &PropertyGroup<'_>, property: &Property) {
        self.add(iri, sh("nodeKind"), sh("IRI"));
        let (values, rests) = (list_iri(iri), self.create_node());
        self.add(iri, sh("property"), values.clone());
        self.add(&values, rdf::TYPE, sh("PropertyShape"));
        self.add(&rests, sh("zeroOrMorePath"), rdf::REST.into_owned());
        let path = self.add_list([rests.into(), rdf::FIRST.into_owned().into()]);
        self.add(&values, sh("path"), path);
        self.add_value(&values, group, property);
        if let Value::Object(nested) = &property.value {
            self.add_nested(&values, iri, nested);
        }
    }

    /// Adds property shapes for fields that share a property: each counts the values that belong to it, and one more
    /// states that each value belongs to one of them.
    fn add_shared_fields(
        &mut self,
        subject: &(impl Clone + Into<NamedOrBlankNode>),
        object: &NamedNode,
        group: &PropertyGroup<'_>,
        counts_required: bool,
    ) {
        let mut names = Vec::new();
        for (index, field, property) in &group.fields {
            let iri = field_iri(object, &field.name);
            names.push(field.name.as_str());
            self.add(subject, sh("property"), iri.clone());
            self.add_field(&iri, *index, &field.name, property);
            self.add_qualified_counts(&iri, group, property, counts_required);
            if let Value::Object(nested) = &property.value {
                let (others, outside, inside) =
                    (self.create_node(), self.create_node(), self.create_node());
                self.add_value(&others, group, property);
                self.add(&outside, sh("not"), others);
                self.add_nested(&inside, &iri, nested);
                let list = self.add_list([outside.into(), inside.into()]);
                self.add(&iri, sh("or"), list);
            }
        }
        let iri = shared_iri(object, &names);
        self.add(subject, sh("property"), iri.clone());
        self.add(&iri, rdf::TYPE, sh("PropertyShape"));
        self.add(&iri, sh("path"), group.predicate.clone());
        let mut alternatives: Vec<Term> = Vec::new();
        let mut has_languages = false;
        for (_, _, property) in &group.fields {
            if property.value.has_languages() {
                has_languages = true;
                continue;
            }
            let node = self.create_node();
            self.add_value(&node, group, property);
            alternatives.push(node.into());
        }
        if has_languages {
            let node = self.create_node();
            self.add(&node, sh("datatype"), rdf::LANG_STRING.into_owned());
            alternatives.push(node.into());
            if !group.fields.iter().any(|(_, _, property)| has_repeated_languages(property)) {
                self.add(&iri, sh("uniqueLang"), Literal::from(true));
            }
        }
        let list = self.add_list(alternatives);
        self.add(&iri, sh("or"), list);
    }

    /// Adds what every property shape of a field has.
    fn add_field(&mut self, iri: &NamedNode, index: usize, name: &str, property: &Property) {
        self.add(iri, rdf::TYPE, sh("PropertyShape"));
        self.add(iri, sh("path"), property.predicate.clone());
        self.add(iri, sh("name"), Literal::from(name));
        self.add_count(iri, "order", index);
    }

    fn add_count(
        &mut self,
        subject: &(impl Clone + Into<NamedOrBlankNode>),
        name: &str,
        count: usize,
    ) {
        self.add(subject, sh(name), Literal::new_typed_literal(count.to_string(), xsd::INTEGER));
    }

    /// Counts those values of a shared property that belong to a field. `sh:uniqueLang` counts texts in a language,
    /// because `sh:languageIn` includes the regional variants of a language.
    fn add_qualified_counts(
        &mut self,
        iri: &NamedNode,
        group: &PropertyGroup<'_>,
        property: &Property,
        counts_required: bool,
    ) {
        let minimum = usize::from(counts_required && property.required);
        let has_maximum =
            !property.is_array && !property.value.has_languages() && !has_unchecked_text(property);
        if has_unchecked_text(property) {
            // A value of the field cannot be told from the others without a check of its text.
            if minimum > 0 {
                self.add_count(iri, "minCount", minimum);
            }
            return;
        }
        let node = self.create_node();
        self.add_value(&node, group, property);
        self.add(iri, sh("qualifiedValueShape"), node);
        self.add_count(iri, "qualifiedMinCount", minimum);
        if has_maximum {
            self.add_count(iri, "qualifiedMaxCount", 1);
        }
    }

    /// Adds to a shape what one value of a field is.
    fn add_value(
        &mut self,
        subject: &(impl Clone + Into<NamedOrBlankNode>),
        group: &PropertyGroup<'_>,
        property: &Property,
    ) {
        match &property.value {
            Value::Resource => self.add(subject, sh("nodeKind"), sh("IRI")),
            Value::Object(nested) => {
                self.add(subject, sh("nodeKind"), sh("IRI"));
                if let Some(prefix) = &nested.uri_prefix {
                    self.add(subject, sh("pattern"), begins_with(prefix));
                    for inner in group.inner_prefixes(prefix) {
                        let node = self.create_node();
                        self.add(&node, sh("pattern"), begins_with(inner));
                        self.add(subject, sh("not"), node);
                    }
                }
            }
            value @ Value::Literal(_) => match (&*list_languages(value), &*list_datatypes(value)) {
                ([], []) => self.add(subject, sh("nodeKind"), sh("Literal")),
                ([], [datatype]) => self.add(subject, sh("datatype"), datatype.into_owned()),
                ([], several) => self.add_any_datatype(subject, several),
                (languages, _) => {
                    self.add(subject, sh("datatype"), rdf::LANG_STRING.into_owned());
                    let tags = languages.iter().map(|tag| Literal::from(*tag).into());
                    let list = self.add_list(tags);
                    self.add(subject, sh("languageIn"), list);
                }
            },
        }
        if let Some(codes) = property.codes.as_ref().and_then(|codes| codes.list()) {
            let list = self.add_list(codes.shown().map(|(_, value)| value.clone()));
            self.add(subject, sh("in"), list);
        }
    }

    fn add_any_datatype(
        &mut self,
        subject: &(impl Clone + Into<NamedOrBlankNode>),
        datatypes: &[NamedNodeRef<'_>],
    ) {
        let mut alternatives: Vec<Term> = Vec::new();
        for datatype in datatypes {
            let node = self.create_node();
            self.add(&node, sh("datatype"), datatype.into_owned());
            alternatives.push(node.into());
        }
        let list = self.add_list(alternatives);
        self.add(subject, sh("or"), list);
    }

    /// Adds to a shape what it requires of a nested object: that it is complete, or only a reference.
    fn add_nested(
        &mut self,
        subject: &(impl Clone + Into<NamedOrBlankNode>),
        field: &NamedNode,
        shape: &Shape,
    ) {
        let object = nested_iri(field);
        self.add_fields(subject, &object, shape, false);
        if !requires_something(shape) {
            return;
        }
        let (reference, complete) = (self.create_node(), self.create_node());
        for group in group_by_predicate(shape) {
            let node = self.create_node();
            self.add(&reference, sh("property"), node.clone());
            self.add(&node, sh("path"), group.predicate.clone());
            self.add_count(&node, "maxCount", 0);
            for (_, _, property) in group.fields.iter().filter(|(_, _, field)| field.required) {
                let node = self.create_node();
                self.add(&complete, sh("property"), node.clone());
                self.add(&node, sh("path"), group.predicate.clone());
                if property.is_ordered
                    || group.sole_owner().is_some()
                    || has_unchecked_text(property)
                {
                    self.add_count(&node, "minCount", 1);
                } else {
                    let value = self.create_node();
                    self.add_value(&value, &group, property);
                    self.add(&node, sh("qualifiedValueShape"), value);
                    self.add_count(&node, "qualifiedMinCount", 1);
                }
            }
        }
        for class in &shape.types {
            self.add(&complete, sh("class"), class.clone());
        }
        let list = self.add_list([reference.into(), complete.into()]);
        self.add(subject, sh("or"), list);
    }
}

/// Returns whether the texts of a field are not checked against their datatype.
fn has_unchecked_text(property: &Property) -> bool {
    matches!(property.value.detail(), Detail::Datatype(datatype) if is_unchecked(datatype))
}

/// Returns a regular expression for IRIs that begin so.
fn begins_with(prefix: &str) -> Literal {
    Literal::from(format!("^{}", escape_pattern(prefix)))
}
