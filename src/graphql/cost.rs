//! What a document asks for, told before anything is done for it.
//!
//! The library has limits of its own, and finds them by walking through all that fragments spread to: a
//! document of some lines, each fragment spreading the next one twice, would keep it busy for years. Here each
//! fragment is counted once.
//!
//! `check` looks at the document before it is validated, as a text and by its selections alone; [`Cost`] is what
//! an operation asks for by the schema, when it is known to be valid.
use super::document::Document;
use super::input;
use super::model::{Model, Role, Root};
use super::system::{self, NODE, QUERY, REFERRERS};
use async_graphql::Name;
use async_graphql::parser::types::{ExecutableDocument, Field, Selection, SelectionSet};
use std::collections::HashMap;

/// Levels of brackets in the text; the parser goes down one level of its stack for each.
const NESTING: usize = 64;

/// Levels of selections within selections, those of fragments within fragments counted too.
const LEVELS: usize = 64;

/// The most fields of all operations of a document, those of a fragment counted wherever it is spread: what validating
/// it costs.
const FIELDS: usize = 1_000;

/// The deepest selection of a document: the introspection query of common tools has 15 levels.
const DEPTH: usize = 20;

/// How many objects a list counts for, whose length nobody knows before.
pub(super) const LIST: u64 = 5;

/// `__schema` and `__type` in one operation.
const INTROSPECTIONS: usize = 10;

/// Lists of fields within lists of fields that introspection goes down; common tools need one.
const INTROSPECTED: usize = 2;

/// What a selection holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Size {
    fields: usize,
    depth: usize,
}

/// Checks the text before it is parsed.
///
/// # Errors
/// What is wrong, in words.
pub(super) fn check_text(text: &str) -> Result<(), String> {
    let mut depth = 0_usize;
    for byte in text.bytes() {
        match byte {
            b'{' | b'[' | b'(' => depth += 1,
            b'}' | b']' | b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        // Brackets in strings and comments are counted too, which does no harm at this height.
        if depth > NESTING {
            return Err(format!("the document is nested deeper than {NESTING} brackets"));
        }
    }
    Ok(())
}

/// Checks every operation of a document; selections may be as deep as introspection needs, or as `depth` says.
///
/// # Errors
/// What is too much, in words.
pub(super) fn check(document: &ExecutableDocument, depth: usize) -> Result<(), String> {
    let mut known = HashMap::new();
    let depth = depth.max(DEPTH);
    let mut fields = 0_usize;
    let mut add = |size: Size| {
        if size.depth > depth {
            return Err(format!("the document is nested deeper than {depth} levels of fields"));
        }
        fields = fields.saturating_add(size.fields.max(1));
        if fields > FIELDS {
            return Err(format!(
                "the document has more than {FIELDS} fields in all its operations"
            ));
        }
        Ok(())
    };
    // All of them are validated, whichever is asked for.
    for (_, operation) in document.operations.iter() {
        add(selection(&operation.node.selection_set.node, document, &mut known, LEVELS)?)?;
    }
    // So are fragments that no operation spreads.
    for (name, fragment) in &document.fragments {
        if !known.contains_key(name) {
            add(selection(&fragment.node.selection_set.node, document, &mut known, LEVELS)?)?;
        }
    }
    Ok(())
}

/// `None` stands for a fragment whose cost is being told: it spreads itself.
fn selection<'a>(
    set: &'a SelectionSet,
    document: &'a ExecutableDocument,
    known: &mut HashMap<&'a Name, Option<Size>>,
    levels: usize,
) -> Result<Size, String> {
    let Some(left) = levels.checked_sub(1) else {
        return Err(format!(
            "the document is nested deeper than {LEVELS} levels of fragments and fields"
        ));
    };
    let mut sum = Size::default();
    for item in &set.items {
        let size = match &item.node {
            Selection::Field(field) => {
                let inner = selection(&field.node.selection_set.node, document, known, left)?;
                Size {
                    fields: inner.fields.saturating_add(1),
                    depth: inner.depth.saturating_add(1),
                }
            }
            Selection::InlineFragment(fragment) => {
                selection(&fragment.node.selection_set.node, document, known, left)?
            }
            Selection::FragmentSpread(spread) => {
                let name = &spread.node.fragment_name.node;
                match (known.get(name), document.fragments.get(name)) {
                    (Some(Some(size)), _) => *size,
                    (Some(None), _) => return Err(format!("the fragment {name} spreads itself")),
                    // The validation says that there is no such fragment.
                    (None, None) => Size::default(),
                    (None, Some(fragment)) => {
                        known.insert(name, None);
                        let size =
                            selection(&fragment.node.selection_set.node, document, known, left)?;
                        known.insert(name, Some(size));
                        size
                    }
                }
            }
        };
        // A spread costs something even where it leads to nothing.
        sum.fields = sum.fields.saturating_add(size.fields.max(1));
        sum.depth = sum.depth.max(size.depth);
    }
    Ok(sum)
}

/// What an operation asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Cost {
    /// Its fields, those below a page as often as the page has items, those below a list [`LIST`] times.
    pub(super) complexity: u64,
    /// Items of all pages together: those of a page within a page as often as that one has items.
    pub(super) rows: u64,
    /// Levels of fields.
    pub(super) depth: u64,
}

impl Cost {
    /// Of a validated operation. What introspection asks for is not part of it, and has bounds of its own.
    ///
    /// # Errors
    /// What introspection asks too much for, in words; what is wrong with `first`.
    pub(super) fn of(model: &Model, document: &Document<'_>) -> Result<Self, String> {
        let mut telling = Telling { model, document, known: HashMap::new(), introspections: 0 };
        telling.selection(QUERY, &document.operation.selection_set.node)
    }

    fn and(self, other: Self) -> Self {
        Self {
            complexity: self.complexity.saturating_add(other.complexity),
            rows: self.rows.saturating_add(other.rows),
            depth: self.depth.max(other.depth),
        }
    }
}

struct Telling<'t> {
    model: &'t Model,
    document: &'t Document<'t>,
    /// Of fragments, which are always of one type.
    known: HashMap<&'t Name, Cost>,
    introspections: usize,
}

/// How many objects a field leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Many {
    One,
    List,
    Page,
}

impl<'t> Telling<'t> {
    fn selection(&mut self, type_name: &str, set: &'t SelectionSet) -> Result<Cost, String> {
        let mut sum = Cost::default();
        for item in &set.items {
            if !self.document.includes(item.node.directives()) {
                continue;
            }
            let cost = match &item.node {
                Selection::Field(field) => self.field(type_name, &field.node)?,
                Selection::InlineFragment(fragment) => {
                    let on = fragment.node.type_condition.as_ref();
                    let on = on.map_or(type_name, |on| on.node.on.node.as_str());
                    self.selection(on, &fragment.node.selection_set.node)?
                }
                Selection::FragmentSpread(spread) => {
                    let name = &spread.node.fragment_name.node;
                    match (self.known.get(name), self.document.fragment(name)) {
                        (Some(cost), _) => *cost,
                        (None, None) => Cost::default(),
                        (None, Some(fragment)) => {
                            let on = &fragment.type_condition.node.on.node;
                            let cost = self.selection(on, &fragment.selection_set.node)?;
                            self.known.insert(name, cost);
                            cost
                        }
                    }
                }
            };
            sum = sum.and(cost);
        }
        Ok(sum)
    }

    fn field(&mut self, type_name: &str, field: &'t Field) -> Result<Cost, String> {
        let name = field.name.node.as_str();
        let leaf = Cost { complexity: 1, rows: 0, depth: 1 };
        if type_name == QUERY && matches!(name, "__schema" | "__type") {
            self.introspections += 1;
            if self.introspections > INTROSPECTIONS {
                return Err(format!(
                    "the document asks for the schema more than {INTROSPECTIONS} times"
                ));
            }
            self.introspected(&field.selection_set.node, INTROSPECTED, LEVELS)?;
            return Ok(Cost::default());
        }
        let Some((inner, many)) = leads_to(self.model, type_name, name) else { return Ok(leaf) };
        let below = self.selection(&inner, &field.selection_set.node)?;
        let (times, items) = match many {
            Many::One => (1, 0),
            Many::List => (LIST, 0),
            Many::Page => {
                let first = input::first(&self.document.arguments(field));
                let first = first.map_err(|fault| fault.detail)? as u64;
                (first.max(1), first)
            }
        };
        Ok(Cost {
            complexity: below.complexity.saturating_mul(times).saturating_add(1),
            rows: below.rows.saturating_mul(times).saturating_add(items),
            depth: below.depth.saturating_add(1),
        })
    }

    /// Types lead to fields, and those to types, on and on.
    fn introspected(&self, set: &SelectionSet, lists: usize, levels: usize) -> Result<(), String> {
        let too_deep = || {
            "the document asks for fields of types of fields of types; ask for those types by `__type`".to_owned()
        };
        let levels = levels.checked_sub(1).ok_or_else(too_deep)?;
        for item in &set.items {
            match &item.node {
                Selection::Field(field) => {
                    let name = field.node.name.node.as_str();
                    let is_list =
                        matches!(name, "fields" | "interfaces" | "possibleTypes" | "inputFields");
                    let left =
                        if is_list { lists.checked_sub(1).ok_or_else(too_deep)? } else { lists };
                    self.introspected(&field.node.selection_set.node, left, levels)?;
                }
                Selection::InlineFragment(fragment) => {
                    self.introspected(&fragment.node.selection_set.node, lists, levels)?;
                }
                Selection::FragmentSpread(spread) => {
                    if let Some(fragment) = self.document.fragment(&spread.node.fragment_name.node)
                    {
                        self.introspected(&fragment.selection_set.node, lists, levels)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// The type that a field leads to, when it is one with fields.
fn leads_to(model: &Model, type_name: &str, field: &str) -> Option<(String, Many)> {
    let many = |is_list: bool| if is_list { Many::List } else { Many::One };
    let object = |place: usize| model.objects.get(place).map(|object| object.name.as_str());
    let business = |place: usize| object(model.business.get(place)?.object);
    if type_name == QUERY {
        return Some(match (model.roots.get(field), field) {
            (Some(Root::One(place)), _) => (business(*place)?.to_owned(), Many::One),
            (Some(Root::Many(place)), _) => {
                (super::model::connection(business(*place)?), Many::Page)
            }
            (None, "authenticatedUser") => ("AuthenticatedUser".to_owned(), Many::One),
            (None, "businessObjects") => ("BusinessObject".to_owned(), Many::List),
            (None, "targets") => ("Target".to_owned(), Many::List),
            (None, "exports") => ("ExportConnection".to_owned(), Many::Page),
            (None, "object") => (NODE.to_owned(), Many::One),
            (None, "referredBy") => (REFERRERS.to_owned(), Many::Page),
            _ => return None,
        });
    }
    if let Some(place) = model.by_name.get(type_name) {
        return Some(match model.objects.get(*place)?.field(field)?.role {
            Role::Nested(_, to, is_list) => (object(to)?.to_owned(), many(is_list)),
            Role::Followed(_, is_list) => (NODE.to_owned(), many(is_list)),
            Role::AsObject => (NODE.to_owned(), Many::One),
            Role::ReferredBy => (REFERRERS.to_owned(), Many::Page),
            Role::Uri | Role::Leaf(..) => return None,
        });
    }
    if let Some(members) = system::members(type_name) {
        let (_, kind, _) = members.iter().find(|(name, ..)| *name == field)?;
        let (inner, is_list) = system::inner(kind);
        system::members(inner)?;
        // The items of a page are counted where the page is asked for.
        let is_page = matches!(field, "nodes" | "edges");
        return Some((inner.to_owned(), many(is_list && !is_page)));
    }
    let (edges, node) = match type_name {
        NODE if field == "referredBy" => return Some((REFERRERS.to_owned(), Many::Page)),
        REFERRERS | "ReferrerEdge" => ("ReferrerEdge".to_owned(), NODE.to_owned()),
        page => {
            let node = page.strip_suffix("Connection").or_else(|| page.strip_suffix("Edge"))?;
            (format!("{node}Edge"), node.to_owned())
        }
    };
    match field {
        "nodes" | "node" => Some((node, Many::One)),
        "edges" => Some((edges, Many::One)),
        "pageInfo" => Some(("PageInfo".to_owned(), Many::One)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_graphql::parser::parse_query;
    use std::fmt::Write;

    fn cost(text: &str) -> Result<(), String> {
        check_text(text)?;
        check(&parse_query(text).unwrap(), DEPTH)
    }

    #[test]
    fn fragments_count_wherever_they_are_spread() {
        let mut laughs = String::from("{ ...f0 } ");
        for i in 0..40 {
            write!(laughs, "fragment f{i} on Query {{ ...f{n} ...f{n} }} ", n = i + 1).unwrap();
        }
        laughs.push_str("fragment f40 on Query { __typename }");
        assert!(cost(&laughs).unwrap_err().contains("more than 1000 fields"));
        assert!(
            cost("{ ...a } fragment a on Query { b { ...a } }")
                .unwrap_err()
                .contains("spreads itself")
        );
        let chain = (0..5000).fold(String::from("{ ...f0 } "), |mut text, i| {
            write!(text, "fragment f{i} on Query {{ ...f{} }} ", i + 1).unwrap();
            text
        });
        assert!(cost(&chain).unwrap_err().contains("deeper than 64"));
        assert_eq!(cost("{ ...a ...a } fragment a on Query { b }"), Ok(()));
    }

    #[test]
    fn the_fields_of_all_operations_and_fragments_count() {
        let repeated = |count: usize, part: &dyn Fn(usize) -> String| -> String {
            (0..count).map(part).collect()
        };
        let operations = |count| repeated(count, &|i| format!("query q{i} {{ a }} "));
        assert_eq!(cost(&operations(1000)), Ok(()));
        assert!(cost(&operations(1001)).unwrap_err().contains("more than 1000 fields"));
        let fragments = |count| {
            "{ a } ".to_owned() + &repeated(count, &|i| format!("fragment f{i} on Query {{ a }} "))
        };
        assert_eq!(cost(&fragments(999)), Ok(()));
        assert!(cost(&fragments(1000)).unwrap_err().contains("more than 1000 fields"));
        let unused = format!("{{ a }} fragment f on Query {{ {} }}", "b ".repeat(1000));
        assert!(cost(&unused).unwrap_err().contains("more than 1000 fields"));
    }

    #[test]
    fn depth_and_number_are_bounded() {
        let nested = |n| format!("{}a{}", "{a".repeat(n), "}".repeat(n));
        assert_eq!(cost(&nested(19)), Ok(()));
        assert!(cost(&nested(21)).unwrap_err().contains("deeper than 20"));
        assert!(cost(&nested(100_000)).unwrap_err().contains("brackets"));
        assert!(cost(&format!("{{{}}}", "a ".repeat(1001))).unwrap_err().contains("1000"));
    }
}
