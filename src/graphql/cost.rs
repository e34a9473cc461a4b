//! Computes the cost of a document before it is executed.
//!
//! The library's own limits expand every fragment. A short document in which each fragment spreads the next one twice
//! would take it years. This module measures each fragment once.
//!
//! `check_document` examines the document before validation, by its text and selections, also what it asks of the
//! schema: the library answers that together with the validation. [`Cost`] is the cost of a valid operation according
//! to the schema.
use super::document::Document;
use super::gateway_types::{CHANGE_TYPE, find_members, inner_type};
use super::input;
use super::model::{FieldRole, Model, RootField};
use super::system::{
    self, NODE_TYPE, QUERY_TYPE, REFERRERS_TYPE, SUMMARY_ROW_TYPE, SUMMARY_TYPE, TEXT_TYPE,
};
use async_graphql::Name;
use async_graphql::parser::types::{ExecutableDocument, Field, Selection, SelectionSet};
use std::collections::{HashMap, HashSet};

/// The maximum nesting of brackets in the text. The parser uses a stack frame for each level.
const MAX_BRACKET_DEPTH: usize = 64;

/// The maximum nesting of selections, including those of fragments within fragments.
const MAX_SELECTION_LEVELS: usize = 64;

/// The maximum number of fields of all operations of a document, which determines the cost of validation. The fields
/// of a fragment count at each spread.
const MAX_DOCUMENT_FIELDS: usize = 1_000;

/// The depth of selections that is always allowed. The introspection query of common tools has 15 levels.
const INTROSPECTION_DEPTH: usize = 20;

/// The number of items assumed for a list, because its length is unknown before execution.
pub(super) const ASSUMED_LIST_ITEMS: u64 = 5;

/// The maximum number of `__schema` and `__type` fields in one operation.
const MAX_INTROSPECTIONS: usize = 10;

/// The maximum nesting of lists of fields or types within `__schema`. Common tools need one.
const MAX_LISTS_OF_SCHEMA: usize = 1;

/// The same within `__type`.
const MAX_LISTS_OF_TYPE: usize = 2;

/// The number of fields and the depth of a selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct SelectionSize {
    fields: usize,
    depth: usize,
}

/// Checks the text before it is parsed.
///
/// # Errors
/// Describes what is wrong.
pub(super) fn check_text(text: &str) -> Result<(), String> {
    let mut depth = 0_usize;
    for byte in text.bytes() {
        match byte {
            b'{' | b'[' | b'(' => depth += 1,
            b'}' | b']' | b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        // Brackets in strings and comments count too, which is harmless with a limit this high.
        if depth > MAX_BRACKET_DEPTH {
            return Err(format!(
                "the document nests brackets more than {MAX_BRACKET_DEPTH} levels deep"
            ));
        }
    }
    Ok(())
}

/// Returns whether a document may ask for the schema. A comment or a string that names the fields for it counts too.
pub(super) fn may_introspect(text: &str) -> bool {
    let is_field = |after: &str| !after.starts_with("name");
    text.contains("__schema") || text.split("__type").skip(1).any(is_field)
}

/// Checks every operation of a document. The maximum depth is `depth`, or what introspection needs if that is more.
///
/// # Errors
/// Describes which limit is exceeded.
pub(super) fn check_document(document: &ExecutableDocument, depth: usize) -> Result<(), String> {
    let mut known = HashMap::new();
    let depth = depth.max(INTROSPECTION_DEPTH);
    let mut fields = 0_usize;
    let mut add = |size: SelectionSize| {
        if size.depth > depth {
            return Err(format!("the document is nested deeper than {depth} levels of fields"));
        }
        fields = fields.saturating_add(size.fields.max(1));
        if fields > MAX_DOCUMENT_FIELDS {
            return Err(format!(
                "the document has more than {MAX_DOCUMENT_FIELDS} fields in all its operations"
            ));
        }
        Ok(())
    };
    // The library validates all operations, not only the one that is executed.
    for (_, operation) in document.operations.iter() {
        let set = &operation.node.selection_set.node;
        add(measure_selection(set, document, &mut known, MAX_SELECTION_LEVELS)?)?;
        IntrospectionChecker::new(document).check_root(set)?;
    }
    // The library also validates fragments that no operation spreads.
    for (name, fragment) in &document.fragments {
        if !known.contains_key(name) {
            add(measure_selection(
                &fragment.node.selection_set.node,
                document,
                &mut known,
                MAX_SELECTION_LEVELS,
            )?)?;
        }
    }
    Ok(())
}

/// Measures a selection. `known` has the sizes of fragments. `None` marks a fragment that is being measured: if a
/// selection spreads it again, the fragment spreads itself.
fn measure_selection<'a>(
    set: &'a SelectionSet,
    document: &'a ExecutableDocument,
    known: &mut HashMap<&'a Name, Option<SelectionSize>>,
    levels: usize,
) -> Result<SelectionSize, String> {
    let Some(left) = levels.checked_sub(1) else {
        return Err(format!(
            "the document is nested deeper than {MAX_SELECTION_LEVELS} levels of fragments and fields"
        ));
    };
    let mut sum = SelectionSize::default();
    for item in &set.items {
        let size = match &item.node {
            Selection::Field(field) => {
                let inner =
                    measure_selection(&field.node.selection_set.node, document, known, left)?;
                SelectionSize {
                    fields: inner.fields.saturating_add(1),
                    depth: inner.depth.saturating_add(1),
                }
            }
            Selection::InlineFragment(fragment) => {
                measure_selection(&fragment.node.selection_set.node, document, known, left)?
            }
            Selection::FragmentSpread(spread) => {
                let name = &spread.node.fragment_name.node;
                match (known.get(name), document.fragments.get(name)) {
                    (Some(Some(size)), _) => *size,
                    (Some(None), _) => return Err(format!("the fragment {name} spreads itself")),
                    // The validation reports the missing fragment.
                    (None, None) => SelectionSize::default(),
                    (None, Some(fragment)) => {
                        known.insert(name, None);
                        let size = measure_selection(
                            &fragment.node.selection_set.node,
                            document,
                            known,
                            left,
                        )?;
                        known.insert(name, Some(size));
                        size
                    }
                }
            }
        };
        // A spread has a cost even if the fragment is empty.
        sum.fields = sum.fields.saturating_add(size.fields.max(1));
        sum.depth = sum.depth.max(size.depth);
    }
    Ok(sum)
}

/// Checks what an operation asks of the schema. Only for a document whose fragments do not spread themselves.
struct IntrospectionChecker<'a> {
    document: &'a ExecutableDocument,
    /// The fragments on the query type that were checked.
    known: HashSet<&'a Name>,
    /// How often the operation asks for the schema.
    count: usize,
}

impl<'a> IntrospectionChecker<'a> {
    fn new(document: &'a ExecutableDocument) -> Self {
        Self { document, known: HashSet::new(), count: 0 }
    }

    /// Checks a selection of the query type. Skipped fields count too, because variables are not known yet.
    fn check_root(&mut self, set: &'a SelectionSet) -> Result<(), String> {
        for item in &set.items {
            match &item.node {
                Selection::Field(field) => {
                    let lists = match field.node.name.node.as_str() {
                        "__schema" => MAX_LISTS_OF_SCHEMA,
                        "__type" => MAX_LISTS_OF_TYPE,
                        _ => continue,
                    };
                    self.count += 1;
                    if self.count > MAX_INTROSPECTIONS {
                        return Err(format!(
                            "the document asks for the schema more than {MAX_INTROSPECTIONS} times"
                        ));
                    }
                    self.check_selection(
                        &field.node.selection_set.node,
                        lists,
                        MAX_SELECTION_LEVELS,
                    )?;
                }
                Selection::InlineFragment(fragment) => {
                    self.check_root(&fragment.node.selection_set.node)?;
                }
                Selection::FragmentSpread(spread) => {
                    let name = &spread.node.fragment_name.node;
                    if self.known.insert(name)
                        && let Some(fragment) = self.document.fragments.get(name)
                    {
                        self.check_root(&fragment.node.selection_set.node)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Limits the nesting, because types lead to fields, and fields to types, without end. Refuses aliases: each would be
    /// answered for every element of a list, so that some hundred of them would take all memory.
    fn check_selection(
        &mut self,
        set: &SelectionSet,
        lists: usize,
        levels: usize,
    ) -> Result<(), String> {
        let too_deep = || {
            "the document nests fields of types too deeply; query those types with `__type`"
                .to_owned()
        };
        let levels = levels.checked_sub(1).ok_or_else(too_deep)?;
        for item in &set.items {
            match &item.node {
                Selection::Field(field) => {
                    let name = field.node.name.node.as_str();
                    if field.node.alias.as_ref().is_some_and(|alias| alias.node.as_str() != name) {
                        return Err(format!(
                            "the document has an alias for {name} within __schema or __type; ask for it without an alias"
                        ));
                    }
                    let is_list =
                        matches!(name, "fields" | "interfaces" | "possibleTypes" | "inputFields");
                    let left =
                        if is_list { lists.checked_sub(1).ok_or_else(too_deep)? } else { lists };
                    self.check_selection(&field.node.selection_set.node, left, levels)?;
                }
                Selection::InlineFragment(fragment) => {
                    self.check_selection(&fragment.node.selection_set.node, lists, levels)?;
                }
                Selection::FragmentSpread(spread) => {
                    let name = &spread.node.fragment_name.node;
                    if let Some(fragment) = self.document.fragments.get(name) {
                        self.check_selection(&fragment.node.selection_set.node, lists, levels)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// The cost of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Cost {
    /// The number of fields. Fields below a page count once for each item, those below a list [`ASSUMED_LIST_ITEMS`]
    /// times.
    pub(super) complexity: u64,
    /// The number of items of all pages. The items of a nested page count once for each item of the outer page.
    pub(super) rows: u64,
    /// The number of levels of fields.
    pub(super) depth: u64,
}

impl Cost {
    /// Computes the cost of a validated operation, without introspection, which has limits of its own.
    ///
    /// # Errors
    /// Describes what is wrong with `first`.
    pub(super) fn of_document(model: &Model, document: &Document<'_>) -> Result<Self, String> {
        let mut calculator = CostCalculator { model, document, known: HashMap::new() };
        calculator.compute_selection_cost(QUERY_TYPE, &document.operation.selection_set.node)
    }

    fn combine_with(self, other: Self) -> Self {
        Self {
            complexity: self.complexity.saturating_add(other.complexity),
            rows: self.rows.saturating_add(other.rows),
            depth: self.depth.max(other.depth),
        }
    }
}

struct CostCalculator<'t> {
    model: &'t Model,
    document: &'t Document<'t>,
    /// The costs of fragments. A fragment always has the same type.
    known: HashMap<&'t Name, Cost>,
}

/// The number of objects that a field leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cardinality {
    One,
    List,
    Page,
}

impl<'t> CostCalculator<'t> {
    fn compute_selection_cost(
        &mut self,
        type_name: &str,
        set: &'t SelectionSet,
    ) -> Result<Cost, String> {
        let mut sum = Cost::default();
        for item in &set.items {
            if !self.document.is_included(item.node.directives()) {
                continue;
            }
            let cost = match &item.node {
                Selection::Field(field) => self.compute_field_cost(type_name, &field.node)?,
                Selection::InlineFragment(fragment) => {
                    let on = fragment.node.type_condition.as_ref();
                    let on = on.map_or(type_name, |on| on.node.on.node.as_str());
                    self.compute_selection_cost(on, &fragment.node.selection_set.node)?
                }
                Selection::FragmentSpread(spread) => {
                    let name = &spread.node.fragment_name.node;
                    match (self.known.get(name), self.document.find_fragment(name)) {
                        (Some(cost), _) => *cost,
                        (None, None) => Cost::default(),
                        (None, Some(fragment)) => {
                            let on = &fragment.type_condition.node.on.node;
                            let cost =
                                self.compute_selection_cost(on, &fragment.selection_set.node)?;
                            self.known.insert(name, cost);
                            cost
                        }
                    }
                }
            };
            sum = sum.combine_with(cost);
        }
        Ok(sum)
    }

    fn compute_field_cost(&mut self, type_name: &str, field: &'t Field) -> Result<Cost, String> {
        let name = field.name.node.as_str();
        let leaf = Cost { complexity: 1, rows: 0, depth: 1 };
        if type_name == QUERY_TYPE && matches!(name, "__schema" | "__type") {
            return Ok(Cost::default());
        }
        let Some((inner, many)) = find_target_type(self.model, type_name, name) else {
            return Ok(leaf);
        };
        let below = self.compute_selection_cost(&inner, &field.selection_set.node)?;
        let (times, items) = match many {
            Cardinality::One => (1, 0),
            Cardinality::List => (ASSUMED_LIST_ITEMS, 0),
            Cardinality::Page => {
                let first = input::parse_first(&self.document.resolve_arguments(field));
                let first = first.map_err(|error| error.detail)? as u64;
                (first.max(1), first)
            }
        };
        Ok(Cost {
            complexity: below.complexity.saturating_mul(times).saturating_add(1),
            rows: below.rows.saturating_mul(times).saturating_add(items),
            depth: below.depth.saturating_add(1),
        })
    }
}

/// Returns the type that a field leads to, if that type has fields.
fn find_target_type(model: &Model, type_name: &str, field: &str) -> Option<(String, Cardinality)> {
    let many = |is_list: bool| if is_list { Cardinality::List } else { Cardinality::One };
    let object = |place: usize| model.object_types.get(place).map(|object| object.name.as_str());
    let business = |place: usize| object(model.business_objects.get(place)?.object);
    if type_name == QUERY_TYPE {
        return Some(match (model.roots.get(field), field) {
            (Some(RootField::One(place)), _) => (business(*place)?.to_owned(), Cardinality::One),
            (Some(RootField::Many(place)), _) => {
                (super::model::connection_type_name(business(*place)?), Cardinality::Page)
            }
            (Some(RootField::Summary(_)), _) => (SUMMARY_TYPE.to_owned(), Cardinality::One),
            (None, "authenticatedUser") => ("AuthenticatedUser".to_owned(), Cardinality::One),
            (None, "businessObjects") => ("BusinessObject".to_owned(), Cardinality::List),
            (None, system::CHANGES_FIELD) => (CHANGE_TYPE.to_owned(), Cardinality::List),
            (None, "targets") => ("Target".to_owned(), Cardinality::List),
            (None, "exports") => ("ExportConnection".to_owned(), Cardinality::Page),
            (None, "object") => (NODE_TYPE.to_owned(), Cardinality::One),
            (None, "referredBy") => (REFERRERS_TYPE.to_owned(), Cardinality::Page),
            _ => return None,
        });
    }
    if let Some(place) = model.by_name.get(type_name) {
        return Some(match model.object_types.get(*place)?.find_field(field)?.role {
            FieldRole::Nested(_, to, is_list) => (object(to)?.to_owned(), many(is_list)),
            FieldRole::Group(to) | FieldRole::Member(to) => {
                (object(to)?.to_owned(), Cardinality::One)
            }
            FieldRole::Followed(_, is_list) => (NODE_TYPE.to_owned(), many(is_list)),
            FieldRole::AsObject => (NODE_TYPE.to_owned(), Cardinality::One),
            FieldRole::ReferredBy => (REFERRERS_TYPE.to_owned(), Cardinality::Page),
            FieldRole::Texts(..) => (TEXT_TYPE.to_owned(), Cardinality::List),
            FieldRole::Uri | FieldRole::Leaf(..) => return None,
        });
    }
    if let Some(members) = find_members(type_name) {
        let member = members.iter().find(|member| member.name == field)?;
        let (inner, is_list) = inner_type(&member.kind);
        find_members(inner)?;
        // The items of a page are counted at the field of the page.
        let is_page = matches!(field, "nodes" | "edges");
        return Some((inner.to_owned(), many(is_list && !is_page)));
    }
    let (edges, node) = match type_name {
        SUMMARY_TYPE if field == "rows" => {
            return Some((SUMMARY_ROW_TYPE.to_owned(), Cardinality::List));
        }
        SUMMARY_TYPE | SUMMARY_ROW_TYPE => return None,
        NODE_TYPE if field == "referredBy" => {
            return Some((REFERRERS_TYPE.to_owned(), Cardinality::Page));
        }
        REFERRERS_TYPE | "ReferrerEdge" => ("ReferrerEdge".to_owned(), NODE_TYPE.to_owned()),
        page => {
            let node = page.strip_suffix("Connection").or_else(|| page.strip_suffix("Edge"))?;
            (format!("{node}Edge"), node.to_owned())
        }
    };
    match field {
        "nodes" | "node" => Some((node, Cardinality::One)),
        "edges" => Some((edges, Cardinality::One)),
        "pageInfo" => Some(("PageInfo".to_owned(), Cardinality::One)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_graphql::parser::parse_query;
    use std::fmt::Write;

    fn check_query(text: &str) -> Result<(), String> {
        check_text(text)?;
        check_document(&parse_query(text).unwrap(), INTROSPECTION_DEPTH)
    }

    #[test]
    fn fragments_count_at_each_spread() {
        let mut bomb = String::from("{ ...f0 } ");
        for i in 0..40 {
            write!(bomb, "fragment f{i} on Query {{ ...f{n} ...f{n} }} ", n = i + 1).unwrap();
        }
        bomb.push_str("fragment f40 on Query { __typename }");
        assert!(check_query(&bomb).unwrap_err().contains("more than 1000 fields"));
        assert!(
            check_query("{ ...a } fragment a on Query { b { ...a } }")
                .unwrap_err()
                .contains("spreads itself")
        );
        let chain = (0..5000).fold(String::from("{ ...f0 } "), |mut text, i| {
            write!(text, "fragment f{i} on Query {{ ...f{} }} ", i + 1).unwrap();
            text
        });
        assert!(check_query(&chain).unwrap_err().contains("deeper than 64"));
        assert_eq!(check_query("{ ...a ...a } fragment a on Query { b }"), Ok(()));
    }

    #[test]
    fn the_fields_of_all_operations_and_fragments_count() {
        let repeated = |count: usize, part: &dyn Fn(usize) -> String| -> String {
            (0..count).map(part).collect()
        };
        let operations = |count| repeated(count, &|i| format!("query q{i} {{ a }} "));
        assert_eq!(check_query(&operations(1000)), Ok(()));
        assert!(check_query(&operations(1001)).unwrap_err().contains("more than 1000 fields"));
        let fragments = |count| {
            "{ a } ".to_owned() + &repeated(count, &|i| format!("fragment f{i} on Query {{ a }} "))
        };
        assert_eq!(check_query(&fragments(999)), Ok(()));
        assert!(check_query(&fragments(1000)).unwrap_err().contains("more than 1000 fields"));
        let unused = format!("{{ a }} fragment f on Query {{ {} }}", "b ".repeat(1000));
        assert!(check_query(&unused).unwrap_err().contains("more than 1000 fields"));
    }

    #[test]
    fn introspection_is_limited_before_the_schema_is_known() {
        let spiral = "{ __schema { types { possibleTypes { fields { type { possibleTypes { name } } } } } } }";
        let in_fragments = "{ ...a } fragment a on Query { ... { __type(name: \"A\") { ...b } } }
            fragment b on __Type { fields { type { ...c } } }
            fragment c on __Type { fields { type { fields { name } } } }";
        // The variable is not known yet.
        let skipped =
            format!("query($a: Boolean!) {}", spiral.replace("__schema", "__schema @skip(if: $a)"));
        for document in [spiral, in_fragments, &skipped] {
            let refused = check_query(document).unwrap_err();
            assert!(refused.contains("nests fields of types too deeply"), "{refused}");
        }
        let repeated = |count: usize| -> String {
            let parts = (0..count).map(|i| format!("a{i}: __schema {{ queryType {{ name }} }} "));
            parts.collect::<Vec<_>>().concat()
        };
        assert_eq!(check_query(&format!("{{ {} }}", repeated(10))), Ok(()));
        let refused = check_query(&format!("{{ {} }}", repeated(11))).unwrap_err();
        assert!(refused.contains("more than 10 times"), "{refused}");
        // Only one operation of a document is executed.
        let operations = format!("query a {{ {0} }} query b {{ {0} }}", repeated(10));
        assert_eq!(check_query(&operations), Ok(()));
        // Each of these names would be answered for every field of every type.
        let renamed = "{ __schema { types { fields { a: name b: name } } } }";
        let refused = check_query(renamed).unwrap_err();
        assert!(refused.contains("an alias for name within __schema"), "{refused}");
        let nested = "{ __type(name: \"A\") { fields { type { fields { name name: name } } } } }";
        assert_eq!(check_query(nested), Ok(()));
    }

    #[test]
    fn depth_and_number_of_fields_are_limited() {
        let nested = |n| format!("{}a{}", "{a".repeat(n), "}".repeat(n));
        assert_eq!(check_query(&nested(19)), Ok(()));
        assert!(check_query(&nested(21)).unwrap_err().contains("deeper than 20"));
        assert!(check_query(&nested(100_000)).unwrap_err().contains("brackets"));
        assert!(check_query(&format!("{{{}}}", "a ".repeat(1001))).unwrap_err().contains("1000"));
    }
}
