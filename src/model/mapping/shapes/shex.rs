//! Writes the compact syntax of ShEx (ShExC).
use super::{
    PropertyGroup, ShapeSource, field_iri, group_by_predicate, is_plain_name, list_datatypes,
    list_iri, nested_iri, requires_something,
};
use crate::mapping::{Property, Shape, Value};
use oxrdf::vocab::rdf;
use oxrdf::{NamedNode, Term};
use std::fmt::Write;

/// Returns the shapes of a Business Object as a schema, whose `start` is the shape of the members.
pub fn write_shex(source: &ShapeSource<'_>) -> String {
    // Not all parsers read other prefixes correctly.
    let mut prefixes = source.prefixes();
    prefixes.retain(|(_, iri)| iri.ends_with(['/', '#']));
    let mut writer = Writer { prefixes, out: String::new() };
    for (name, iri) in writer.prefixes.clone() {
        writer.line(format_args!("PREFIX {name}: <{iri}>"));
    }
    let root = source.root_iri();
    writer.line(format_args!(
        "\n# What the mapping of the Business Object {:?} requires",
        source.name
    ));
    writer.line(format_args!("start = @{root}"));
    writer.write_shape(&root, &source.mapping.root, false);
    writer.out
}

struct Writer<'a> {
    prefixes: Vec<(&'a str, &'a str)>,
    out: String,
}

impl Writer<'_> {
    fn line(&mut self, text: impl std::fmt::Display) {
        // Writing to a string does not fail.
        let _ = writeln!(self.out, "{text}");
    }

    /// Writes the shape of an object, and those of the objects nested in it. A nested object may be a reference.
    fn write_shape(&mut self, iri: &NamedNode, shape: &Shape, is_nested: bool) {
        let extra = if shape.types.is_empty() { "" } else { "EXTRA a " };
        let may_be_reference = is_nested && requires_something(shape);
        let begin = if may_be_reference { " AND (" } else { " AND " };
        self.line(format_args!("\n{iri} IRI{begin}{extra}{{"));
        let types: Vec<String> = shape.types.iter().map(|class| self.shorten(class)).collect();
        for class in &types {
            self.line(format_args!("  a [{class}] ;"));
        }
        let groups = group_by_predicate(shape);
        for group in &groups {
            self.write_group(iri, group);
        }
        if may_be_reference {
            self.line("} OR {");
            self.line("  # a reference");
            for group in &groups {
                self.line(format_args!("  {} . {{0}} ;", self.shorten(group.predicate)));
            }
            self.line("})");
        } else {
            self.line("}");
        }
        for group in &groups {
            self.write_list(iri, group);
        }
        for (field, _, nested) in shape.iter_nested() {
            self.write_shape(&nested_iri(&field_iri(iri, &field.name)), nested, true);
        }
    }

    /// Writes the shape of the list of an ordered array.
    fn write_list(&mut self, object: &NamedNode, group: &PropertyGroup<'_>) {
        let Some((_, field, property)) = group.ordered_array() else { return };
        let list = list_iri(&field_iri(object, &field.name));
        let values = self.describe_values(object, &field.name, group, property);
        let [nil, first, rest] =
            [rdf::NIL, rdf::FIRST, rdf::REST].map(|iri| self.shorten(&iri.into_owned()));
        self.line(format_args!("\n{list} [{nil}] OR (IRI AND {{"));
        self.line(format_args!("  {first} {values} ;"));
        self.line(format_args!("  {rest} @{list} ;"));
        self.line("})");
    }

    /// Writes the constraints of a property: one for each field, and one for texts in languages of no field.
    fn write_group(&mut self, object: &NamedNode, group: &PropertyGroup<'_>) {
        let predicate = self.shorten(group.predicate);
        if let Some((_, field, property)) = group.ordered_array() {
            let list = list_iri(&field_iri(object, &field.name));
            let cardinality = if property.required { "" } else { " ?" };
            self.line(format_args!("  # {:?}", field.name));
            return self.line(format_args!("  {predicate} @{list}{cardinality} ;"));
        }
        for (_, field, property) in &group.fields {
            let values = self.describe_values(object, &field.name, group, property);
            let is_single = !property.is_array && property.value.language_map().is_none();
            let cardinality = match (!is_single, property.required) {
                (false, true) => "",
                (false, false) => " ?",
                (true, true) => " +",
                (true, false) => " *",
            };
            self.line(format_args!("  # {:?}", field.name));
            self.line(format_args!("  {predicate} {values}{cardinality} ;"));
        }
        let languages = group.all_languages().unwrap_or_default();
        if !languages.is_empty() {
            let others = self.describe_other_languages(&languages);
            self.line("  # other languages");
            self.line(format_args!("  {predicate} {others} * ;"));
        }
    }

    fn describe_values(
        &self,
        object: &NamedNode,
        field: &str,
        group: &PropertyGroup<'_>,
        property: &Property,
    ) -> String {
        if let Some(codes) = property.codes.as_ref().and_then(|codes| codes.list()) {
            let values = codes.shown().map(|(_, value)| match value {
                Term::NamedNode(iri) => self.shorten(iri),
                other => other.to_string(),
            });
            return format!("[{}]", values.collect::<Vec<_>>().join(" "));
        }
        match (&property.value, property.value.language()) {
            (Value::Resource, _) => "IRI".to_owned(),
            (Value::Object(nested), _) => {
                let shape = nested_iri(&field_iri(object, field));
                let Some(prefix) = &nested.uri_prefix else { return format!("@{shape}") };
                let mut stems = vec![format!("<{prefix}>~")];
                stems.extend(group.inner_prefixes(prefix).map(|inner| format!("<{inner}>~")));
                format!("([{}] AND @{shape})", stems.join(" - "))
            }
            (_, Some(tag)) => format!("[@{tag}]"),
            (value, None) if let Some(map) = value.language_map() => {
                let others: Vec<&str> = group.languages().collect();
                let is_own = |tag: &&String| !others.contains(&tag.as_str());
                let own: Vec<_> =
                    map.languages.iter().filter(is_own).map(|tag| format!("@{tag}")).collect();
                match own.as_slice() {
                    [] => self.describe_other_languages(&others),
                    own => format!("[{}]", own.join(" ")),
                }
            }
            (value, None) => {
                let datatypes = list_datatypes(value);
                let names: Vec<_> =
                    datatypes.iter().map(|iri| self.shorten(&iri.into_owned())).collect();
                match names.as_slice() {
                    [] => "LITERAL".to_owned(),
                    [only] => only.clone(),
                    several => format!("({})", several.join(" OR ")),
                }
            }
        }
    }

    /// Describes the texts in other languages than these.
    fn describe_other_languages(&self, languages: &[&str]) -> String {
        let text = self.shorten(&rdf::LANG_STRING.into_owned());
        if languages.is_empty() {
            return text;
        }
        let tags: Vec<String> = languages.iter().map(|tag| format!("@{tag}")).collect();
        format!("({text} AND NOT [{}])", tags.join(" "))
    }

    /// Writes an IRI with a prefix, if it has one and the rest is a plain name.
    fn shorten(&self, iri: &NamedNode) -> String {
        let text = iri.as_str();
        let short = self.prefixes.iter().find_map(|(name, base)| {
            let local = text.strip_prefix(base)?;
            is_plain_name(local).then(|| format!("{name}:{local}"))
        });
        short.unwrap_or_else(|| iri.to_string())
    }
}
