//! Writes a search as a query, for people who go on from there.
use super::model::{BusinessObjectTypes, FieldRole, Model, ObjectType};
use super::schema::GraphqlService;
use penstock_auth::Caller;
use penstock_base::json::Json;
use penstock_model::search::{Filter, Order, ValueTest};
use std::fmt::Write as _;

/// A search for objects of a Business Object.
#[derive(Debug, Clone, Copy)]
pub struct WrittenSearch<'s> {
    /// The id of the Business Object.
    pub business_object: &'s str,
    /// What an object must have.
    pub filter: Option<&'s Filter>,
    /// The order of the objects.
    pub order: Order,
    /// The names of fields of the mapping whose values are read.
    pub columns: &'s [String],
    /// The number of objects.
    pub limit: usize,
}

impl GraphqlService {
    /// Writes a search as a query. `None` if the Business Object has no type, or the filter has no form in GraphQL. Blocking.
    pub fn write_search(&self, caller: &Caller, search: WrittenSearch<'_>) -> Option<String> {
        let built = self.schema_for_caller(caller);
        write_query(&built.model, search)
    }
}

fn write_query(model: &Model, search: WrittenSearch<'_>) -> Option<String> {
    let WrittenSearch { business_object, filter, order, columns, limit } = search;
    let all = model.business_objects.iter();
    let mut all = all.filter(|one| one.compiled.object.id == business_object);
    let business: &BusinessObjectTypes = all.next()?;
    let root = model.object_types.get(business.object)?;
    let mut arguments = format!("first: {limit}");
    if let Some(filter) = filter {
        let filter = FilterWriter { model }.write_filter(root, filter)?;
        let _ = write!(arguments, ", where: {filter}");
    }
    if order != Order::default() {
        let (name, _) = business.orders.iter().find(|(_, field)| *field == order.field)?;
        let direction = if order.descending { "DESC" } else { "ASC" };
        let _ = write!(arguments, ", orderBy: {{field: {name}, direction: {direction}}}");
    }
    let shape = &business.compiled.mapping.root;
    let mut selected = vec!["uri".to_owned()];
    for name in columns {
        let place = shape.fields.iter().position(|field| field.name == *name);
        let selection = place.and_then(|place| write_selection(model, root, place));
        selected.extend(selection.filter(|selection| !selected.contains(selection)));
    }
    Some(format!(
        "{{\n  {}({arguments}) {{\n    nodes {{ {} }}\n    pageInfo {{ endCursor hasNextPage }}\n  }}\n}}\n",
        business.many,
        selected.join(" ")
    ))
}

/// Returns the selection of the values of the field at this place, in the groups that have it. `None` for fields with fields of
/// their own.
fn write_selection(model: &Model, object: &ObjectType, place: usize) -> Option<String> {
    object.fields.iter().find_map(|field| match field.role {
        FieldRole::Leaf(found, ..) if found == place => Some(field.name.clone()),
        FieldRole::Group(to) => {
            let inner = write_selection(model, model.object_types.get(to)?, place)?;
            Some(format!("{} {{ {inner} }}", field.name))
        }
        _ => None,
    })
}

/// Writes filters as arguments.
struct FilterWriter<'m> {
    model: &'m Model,
}

impl FilterWriter<'_> {
    fn write_filter(&self, object: &ObjectType, filter: &Filter) -> Option<String> {
        let all = |filters: &[Filter]| -> Option<String> {
            let each = filters.iter().map(|filter| self.write_filter(object, filter));
            Some(each.collect::<Option<Vec<_>>>()?.join(", "))
        };
        Some(match filter {
            Filter::All(filters) if filters.is_empty() => "{}".to_owned(),
            Filter::All(filters) => format!("{{and: [{}]}}", all(filters)?),
            Filter::Any(filters) => format!("{{or: [{}]}}", all(filters)?),
            Filter::Not(filter) => format!("{{not: {}}}", self.write_filter(object, filter)?),
            Filter::Uri(test) => {
                let is_uri = |role: FieldRole| role == FieldRole::Uri;
                let text = write_test(test, quote);
                self.write_field(object, &is_uri, &|_, _| Some(format!("{{{text}}}")))?
            }
            Filter::Field { field, test } => {
                let is_field = |role: FieldRole| matches!(role, FieldRole::Leaf(found, ..) | FieldRole::Texts(found, _) if found == *field);
                self.write_field(object, &is_field, &|_, role| {
                    let is_boolean =
                        matches!(role, FieldRole::Leaf(_, scalar, _) if scalar.name == "Boolean");
                    let write: fn(&str) -> String = if is_boolean { str::to_owned } else { quote };
                    Some(format!("{{{}}}", write_test(test, write)))
                })?
            }
            Filter::Text { field, language, test } => {
                let is_field =
                    |role: FieldRole| matches!(role, FieldRole::Texts(found, _) if found == *field);
                let language = language.as_deref().map(|tag| format!("language: {}, ", quote(tag)));
                let language = language.unwrap_or_default();
                let text = write_test(test, quote);
                self.write_field(object, &is_field, &|_, _| Some(format!("{{{language}{text}}}")))?
            }
            Filter::Nested { field, filter } => {
                let is_field = |role: FieldRole| matches!(role, FieldRole::Nested(found, ..) if found == *field);
                self.write_field(object, &is_field, &|writer, role| {
                    let FieldRole::Nested(_, to, _) = role else { return None };
                    writer.write_filter(writer.model.object_types.get(to)?, filter)
                })?
            }
        })
    }

    /// Writes the filter of the first field with a role, in the groups and the members of maps that have it.
    fn write_field(
        &self,
        object: &ObjectType,
        is_meant: &dyn Fn(FieldRole) -> bool,
        write: &dyn Fn(&Self, FieldRole) -> Option<String>,
    ) -> Option<String> {
        object.fields.iter().find_map(|field| {
            let inner = match field.role {
                role if is_meant(role) => write(self, role)?,
                FieldRole::Group(to) | FieldRole::Member(to) => {
                    self.write_field(self.model.object_types.get(to)?, is_meant, write)?
                }
                _ => return None,
            };
            Some(format!("{{{}: {inner}}}", field.name))
        })
    }
}

/// Returns a test with its value, which `write` writes.
fn write_test(test: &ValueTest, write: fn(&str) -> String) -> String {
    match test {
        ValueTest::In(wanted) => match wanted.as_slice() {
            [one] => format!("eq: {}", write(one)),
            wanted => {
                let wanted: Vec<String> = wanted.iter().map(|text| write(text)).collect();
                format!("in: [{}]", wanted.join(", "))
            }
        },
        ValueTest::Contains(part) => format!("contains: {}", write(part)),
        ValueTest::ContainsAnyCase(part) => format!("containsAnyCase: {}", write(part)),
        ValueTest::StartsWith(prefix) => format!("startsWith: {}", write(prefix)),
        ValueTest::Before(limit) => format!("before: {}", write(limit)),
        ValueTest::After(limit) => format!("after: {}", write(limit)),
        ValueTest::AtLeast(limit) => format!("atLeast: {}", write(limit)),
        ValueTest::AtMost(limit) => format!("atMost: {}", write(limit)),
        ValueTest::Exists => "exists: true".to_owned(),
    }
}

/// Writes a value as a string, which every type but `Boolean` takes.
fn quote(text: &str) -> String {
    Json::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_model::mapping::compile;
    use penstock_model::search::TextFilter;
    use penstock_model::testing::compile_object;
    use std::sync::Arc;

    const CONFIG: &str = "
type: object
path: Pump:.
fields:
  name: {type: string, path: <urn:n>}
  flow: {type: number, path: <urn:f>}
  on: {type: boolean, path: <urn:o>}
  title: {type: languageMap, path: <urn:t>}
  limits: {type: group, fields: {low: {type: number, path: <urn:low>}}}
  parts:
    type: array
    elements: {type: object, path: '<urn:p>/Part:.', fields: {label: {type: string, path: <urn:l>}}}
  sensors: {type: map, path: '<urn:s>/Sensor:.', key: {path: <urn:k>}, elements: {type: number, path: <urn:v>}}
";

    fn write(conditions: &[[&'static str; 3]], order: &str, columns: &[&str]) -> String {
        let compiled = compile_object("1", "Pump", compile(CONFIG).unwrap());
        let shape = &compiled.mapping.root;
        let conditions = conditions.iter();
        let conditions = conditions.map(|[field, test, value]| TextFilter { field, test, value });
        let filter = TextFilter::build_all(conditions, shape).unwrap();
        let order = Order::parse(shape, order).unwrap();
        let columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
        let model = Model::new(&[Arc::new(compiled.clone())], 1_000, true);
        let search = WrittenSearch {
            business_object: "1",
            filter: filter.as_ref(),
            order,
            columns: &columns,
            limit: 50,
        };
        write_query(&model, search).unwrap()
    }

    #[test]
    fn a_search_is_a_query() {
        let query = write(
            &[["flow", "after", "10"]],
            "-limits.low",
            &["name", "limits.low", "parts.label"],
        );
        assert_eq!(
            query,
            "{\n  pumpConnection(first: 50, where: {flow: {after: \"10\"}}, orderBy: {field: limits_low, direction: DESC}) {\n    \
             nodes { uri name limits { low } }\n    pageInfo { endCursor hasNextPage }\n  }\n}\n"
        );
    }

    #[test]
    fn each_condition_is_a_filter() {
        for (condition, expected) in [
            (["name", "eq", "a\"b"], r#"{name: {eq: "a\"b"}}"#),
            (["on", "eq", "true"], "{on: {eq: true}}"),
            (["flow", "exists", "false"], "{not: {flow: {exists: true}}}"),
            (["title.de", "contains", "x"], r#"{title: {language: "de", contains: "x"}}"#),
            (["limits.low", "atMost", "3"], r#"{limits: {low: {atMost: "3"}}}"#),
            (["parts.label", "startsWith", "s"], r#"{parts: {label: {startsWith: "s"}}}"#),
            (
                ["sensors.T1", "eq", "3"],
                r#"{sensors: {and: [{key: {eq: "T1"}}, {value: {eq: "3"}}]}}"#,
            ),
            (["uri", "startsWith", "urn:"], r#"{uri: {startsWith: "urn:"}}"#),
        ] {
            let query = write(&[condition], "uri", &[]);
            let expected = format!("where: {expected})");
            assert!(query.contains(&expected), "{expected} is not in {query}");
        }
        let several =
            write(&[["name", "in", "a"], ["name", "in", "b"], ["flow", "before", "1"]], "uri", &[]);
        let expected = r#"where: {and: [{flow: {before: "1"}}, {name: {in: ["a", "b"]}}]}"#;
        assert!(several.contains(expected), "{several}");
    }
}
