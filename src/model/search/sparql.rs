//! Writes a search as a query in SPARQL, for people who go on from there.
//!
//! The query finds what the search finds, as far as SPARQL compares stored terms as the view compares what it shows: fields
//! that share a property are not told apart, and values that a field does not show count.
use super::filter::{Filter, ValueTest, find_property};
use super::matching::ValueCheck;
use super::order::Order;
use crate::mapping::{CodeList, Codes, Form, Property, Shape, code_text, expand_code};
use crate::members;
use crate::resource::Compiled;
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{Literal, NamedNode};
use penstock_base::error::GatewayError;
use penstock_rdf::compare::ValueOrder;
use penstock_store::Read;
use std::fmt::Write as _;

/// The variable of the objects.
const OBJECT: &str = "?object";

/// Returns a query for the first `limit` objects that pass a filter, in an order, with the values of these fields. Fields that
/// are not single values of the objects themselves are left out.
///
/// # Errors
/// - `ErrorClass::Invalid` if the filter or the order does not fit the Business Object
/// - `ErrorClass::Conflict` if the namespace of the Business Object is not defined
pub fn write_sparql(
    read: &dyn Read,
    business_object: &Compiled,
    (filter, order): (Option<&Filter>, Order),
    columns: &[String],
    limit: usize,
) -> Result<String, GatewayError> {
    let shape = &business_object.mapping.root;
    let mut writer = QueryWriter { text: String::new(), depth: 1, variables: 0 };
    let members = members::build_member_filter(read, business_object)?;
    match &members.graph {
        Some(graph) => writer.add_line(&format!("GRAPH {graph} {{ {OBJECT} ?property ?value }}")),
        None => {
            for (property, value) in &members.having {
                writer.add_line(&format!("{OBJECT} {property} {value} ."));
            }
        }
    }
    if let Some(filter) = filter {
        writer.add_filter(filter, shape, OBJECT)?;
    }
    let own = |name: &String| {
        let property = shape.find_field(name)?.property()?;
        let is_single = !property.is_array && property.value.language_map().is_none();
        is_single.then_some(property)
    };
    let mut selected = vec![OBJECT.to_owned()];
    for (number, property) in columns.iter().filter_map(own).enumerate() {
        let variable = format!("?column{}", number + 1);
        writer.add_optional(property, &variable);
        selected.push(variable);
    }
    let mut key = OBJECT;
    if let Some(field) = order.field {
        let (_, property) = find_property(shape, field)?;
        key = "?key";
        writer.add_optional(property, key);
    }
    let key = match order.field {
        _ if order.descending => format!("DESC({key})"),
        // Objects without a value come last.
        Some(_) => format!("(!BOUND({key})) {key}"),
        None => key.to_owned(),
    };
    let tie = if order.field.is_some() { " ?object" } else { "" };
    Ok(format!(
        "SELECT DISTINCT {} WHERE {{\n{}}} ORDER BY {key}{tie} LIMIT {limit}\n",
        selected.join(" "),
        writer.text
    ))
}

/// Writes the patterns of a query.
struct QueryWriter {
    text: String,
    depth: usize,
    variables: usize,
}

impl QueryWriter {
    fn add_line(&mut self, line: &str) {
        // Writing into a string cannot fail.
        let _ = writeln!(self.text, "{}{line}", "  ".repeat(self.depth));
    }

    fn new_variable(&mut self) -> String {
        self.variables += 1;
        format!("?v{}", self.variables)
    }

    /// Adds what `write` writes in braces, after a word.
    fn add_group(
        &mut self,
        word: &str,
        write: impl FnOnce(&mut Self) -> Result<(), GatewayError>,
    ) -> Result<(), GatewayError> {
        self.add_line(&format!("{word}{{"));
        self.depth += 1;
        write(self)?;
        self.depth -= 1;
        self.add_line("}");
        Ok(())
    }

    fn add_optional(&mut self, property: &Property, variable: &str) {
        let path = write_path(property);
        self.add_line(&format!("OPTIONAL {{ {OBJECT} {path} {variable} }}"));
    }

    fn add_filter(
        &mut self,
        filter: &Filter,
        shape: &Shape,
        subject: &str,
    ) -> Result<(), GatewayError> {
        match filter {
            Filter::All(filters) => {
                filters.iter().try_for_each(|filter| self.add_filter(filter, shape, subject))
            }
            Filter::Any(filters) => {
                for (number, filter) in filters.iter().enumerate() {
                    let word = if number == 0 { "" } else { "UNION " };
                    self.add_group(word, |writer| writer.add_filter(filter, shape, subject))?;
                }
                if filters.is_empty() {
                    self.add_line("FILTER(false)");
                }
                Ok(())
            }
            Filter::Not(filter) => self.add_group("FILTER NOT EXISTS ", |writer| {
                writer.add_filter(filter, shape, subject)
            }),
            Filter::Uri(test) => {
                self.add_test(&write_text_test(test, &format!("STR({subject})")));
                Ok(())
            }
            Filter::Field { field, test } => {
                let (_, property) = find_property(shape, *field)?;
                let variable = self.add_value(property, subject);
                self.add_test(&write_value_test(test, property, &variable));
                Ok(())
            }
            Filter::Text { field, language, test } => {
                let (_, property) = find_property(shape, *field)?;
                let variable = self.add_value(property, subject);
                if let Some(language) = language {
                    let tag = Literal::from(language.to_lowercase());
                    self.add_line(&format!("FILTER(LCASE(LANG({variable})) = {tag})"));
                }
                self.add_test(&write_text_test(test, &format!("STR({variable})")));
                Ok(())
            }
            Filter::Nested { field, filter } => {
                let (_, property) = find_property(shape, *field)?;
                let variable = self.add_value(property, subject);
                match property.value.shape() {
                    Some(nested) => self.add_filter(filter, nested, &variable),
                    None => Ok(()),
                }
            }
        }
    }

    fn add_value(&mut self, property: &Property, subject: &str) -> String {
        let variable = self.new_variable();
        self.add_line(&format!("{subject} {} {variable} .", write_path(property)));
        variable
    }

    fn add_test(&mut self, test: &str) {
        if !test.is_empty() {
            self.add_line(&format!("FILTER({test})"));
        }
    }
}

fn write_path(property: &Property) -> String {
    let predicate = &property.predicate;
    if property.is_ordered {
        format!("{predicate}/{}*/{}", rdf::REST, rdf::FIRST)
    } else {
        predicate.to_string()
    }
}

/// Returns the condition on a value; empty if every value fulfils it.
fn write_value_test(test: &ValueTest, property: &Property, variable: &str) -> String {
    if *test == ValueTest::Exists {
        return String::new();
    }
    let order = property.order();
    match property.codes.as_deref() {
        Some(Codes::Base(base)) => return write_base_test(test, base, variable),
        Some(codes) => {
            let check = ValueCheck::new(test, order);
            let codes = codes.list().into_iter().flat_map(CodeList::iter);
            let terms = codes.filter(|(code, _)| check.matches_text(code_text(code), order));
            let terms: Vec<String> = terms.map(|(_, term)| term.to_string()).collect();
            return format!("{variable} IN ({})", terms.join(", "));
        }
        None => {}
    }
    if property.holds_iris() {
        return write_text_test(test, &format!("STR({variable})"));
    }
    let is_boolean = property.value.kind().form == Form::Boolean;
    if order == ValueOrder::Text && !is_boolean {
        return write_text_test(test, &format!("STR({variable})"));
    }
    let value = |text: &str| -> String {
        let datatype = match order {
            ValueOrder::Date => xsd::DATE,
            ValueOrder::DateTime => xsd::DATE_TIME,
            ValueOrder::Text => xsd::BOOLEAN,
            ValueOrder::Number | ValueOrder::Scalar if !ValueOrder::Number.can_parse(text) => {
                xsd::STRING
            }
            ValueOrder::Number | ValueOrder::Scalar if text.contains(['e', 'E']) => xsd::DOUBLE,
            ValueOrder::Number | ValueOrder::Scalar => xsd::DECIMAL,
        };
        Literal::new_typed_literal(text, datatype).to_string()
    };
    match test {
        ValueTest::In(wanted) => {
            let wanted: Vec<String> = wanted.iter().map(|text| value(text)).collect();
            format!("{variable} IN ({})", wanted.join(", "))
        }
        ValueTest::Before(limit) => format!("{variable} < {}", value(limit)),
        ValueTest::After(limit) => format!("{variable} > {}", value(limit)),
        ValueTest::AtLeast(limit) => format!("{variable} >= {}", value(limit)),
        ValueTest::AtMost(limit) => format!("{variable} <= {}", value(limit)),
        ValueTest::Contains(_)
        | ValueTest::ContainsAnyCase(_)
        | ValueTest::StartsWith(_)
        | ValueTest::Exists => write_text_test(test, &format!("STR({variable})")),
    }
}

/// Returns the condition on an IRI that the view shows as what follows a base.
fn write_base_test(test: &ValueTest, base: &NamedNode, variable: &str) -> String {
    let ValueTest::In(wanted) = test else {
        let base = Literal::from(base.as_str());
        return write_text_test(test, &format!("STRAFTER(STR({variable}), {base})"));
    };
    let iris = wanted.iter().map(|code| {
        let iri = expand_code(base, code).unwrap_or_else(|| code.clone());
        NamedNode::new(iri)
            .map_or_else(|_| Literal::from(code.as_str()).to_string(), |iri| iri.to_string())
    });
    format!("{variable} IN ({})", iris.collect::<Vec<_>>().join(", "))
}

/// Returns the condition on a text; empty if every text fulfils it.
fn write_text_test(test: &ValueTest, text: &str) -> String {
    let string = |value: &str| Literal::from(value).to_string();
    match test {
        ValueTest::In(wanted) => {
            let wanted: Vec<String> = wanted.iter().map(|value| string(value)).collect();
            format!("{text} IN ({})", wanted.join(", "))
        }
        ValueTest::Contains(part) => format!("CONTAINS({text}, {})", string(part)),
        ValueTest::ContainsAnyCase(part) => {
            format!("CONTAINS(LCASE({text}), {})", string(&part.to_lowercase()))
        }
        ValueTest::StartsWith(prefix) => format!("STRSTARTS({text}, {})", string(prefix)),
        ValueTest::Before(limit) => format!("{text} < {}", string(limit)),
        ValueTest::After(limit) => format!("{text} > {}", string(limit)),
        ValueTest::AtLeast(limit) => format!("{text} >= {}", string(limit)),
        ValueTest::AtMost(limit) => format!("{text} <= {}", string(limit)),
        ValueTest::Exists => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::TextFilter;
    use crate::testing::Fixture;
    use serde_json::json;

    const CONFIG: &str = "
type: object
path: Root:.
prefixes: {s: 'urn:s:'}
fields:
  name: {type: string, path: <urn:p:name>}
  n: {type: number, path: <urn:p:n>}
  at: {type: dateTime, path: <urn:p:at>}
  on: {type: boolean, path: <urn:p:on>}
  state: {type: resource, path: <urn:p:state>, values: {RUN: 's:run', REST: 's:rest'}}
  maker: {type: resource, path: <urn:p:maker>, base: 'https://makers.example/'}
  title: {type: languageMap, path: <urn:p:title>}
  steps: {type: array, ordered: true, path: <urn:p:step>, elements: {type: integer}}
  parts:
    type: array
    elements: {type: object, path: '<urn:p:part>/Part:.', fields: {label: {type: string, path: <urn:p:label>}}}
";

    fn write(conditions: &[[&'static str; 3]], order: &str, columns: &[&str]) -> String {
        let fixture = Fixture::with_definition(&json!({"name": "Root", "config": CONFIG}));
        let shape = &fixture.business_object.mapping.root;
        let conditions = conditions.iter();
        let conditions = conditions.map(|[field, test, value]| TextFilter { field, test, value });
        let filter = TextFilter::build_all(conditions, shape).unwrap();
        let order = Order::parse(shape, order).unwrap();
        let columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
        let read = fixture.store.read();
        write_sparql(&read, &fixture.business_object, (filter.as_ref(), order), &columns, 50)
            .unwrap()
    }

    #[test]
    fn a_search_is_a_query() {
        let query = write(&[["n", "after", "10"]], "-n", &["name", "parts.label"]);
        assert!(
            query.starts_with("SELECT DISTINCT ?object ?column1 WHERE {\n  GRAPH <"),
            "{query}"
        );
        for line in [
            "  ?object <urn:p:n> ?v1 .\n",
            "  FILTER(?v1 > \"10\"^^<http://www.w3.org/2001/XMLSchema#decimal>)\n",
            "  OPTIONAL { ?object <urn:p:name> ?column1 }\n",
            "  OPTIONAL { ?object <urn:p:n> ?key }\n} ORDER BY DESC(?key) ?object LIMIT 50\n",
        ] {
            assert!(query.contains(line), "{line} is not in {query}");
        }
        let ascending = write(&[], "n", &[]);
        let order = "ORDER BY (!BOUND(?key)) ?key ?object LIMIT 50\n";
        assert!(ascending.ends_with(order), "{ascending}");
    }

    #[test]
    fn each_test_is_a_condition_on_stored_terms() {
        for (condition, expected) in [
            (["name", "eq", "a\"b"], "STR(?v1) IN (\"a\\\"b\")"),
            (["name", "containsAnyCase", "Pump"], "CONTAINS(LCASE(STR(?v1)), \"pump\")"),
            (["at", "atLeast", "2024-01-01T00:00:00Z"], "?v1 >= \"2024-01-01T00:00:00Z\"^^<"),
            (["on", "eq", "true"], "?v1 IN (\"true\"^^<"),
            (["state", "eq", "RUN"], "?v1 IN (<urn:s:run>)"),
            (["state", "startsWith", "R"], "?v1 IN (<urn:s:run>, <urn:s:rest>)"),
            (["maker", "eq", "K B"], "?v1 IN (<https://makers.example/K%20B>)"),
            (
                ["maker", "startsWith", "K"],
                "STRSTARTS(STRAFTER(STR(?v1), \"https://makers.example/\"), \"K\")",
            ),
            (["title.de", "eq", "Pumpe"], "FILTER(LCASE(LANG(?v1)) = \"de\")"),
            (
                ["steps", "eq", "3"],
                "?object <urn:p:step>/<http://www.w3.org/1999/02/22-rdf-syntax-ns#rest>*/<",
            ),
            (["n", "exists", "false"], "FILTER NOT EXISTS {\n    ?object <urn:p:n> ?v1 .\n  }"),
            (
                ["parts.label", "eq", "seal"],
                "?v1 <urn:p:label> ?v2 .\n  FILTER(STR(?v2) IN (\"seal\"))",
            ),
            (["uri", "startsWith", "urn:"], "FILTER(STRSTARTS(STR(?object), \"urn:\"))"),
        ] {
            let query = write(&[condition], "uri", &[]);
            assert!(query.contains(expected), "{expected} is not in {query}");
        }
    }
}
