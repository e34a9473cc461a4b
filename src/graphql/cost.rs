//! What a document asks for, told before anything is done for it.
//!
//! The library has limits of its own, and finds them by walking through all that fragments spread to: a
//! document of some lines, each fragment spreading the next one twice, would keep it busy for years. Here each
//! fragment is counted once.
use super::{COMPLEXITY, DEPTH};
use async_graphql::Name;
use async_graphql::parser::types::{ExecutableDocument, Selection, SelectionSet};
use std::collections::HashMap;

/// Levels of brackets in the text; the parser goes down one level of its stack for each.
const NESTING: usize = 64;

/// Levels of selections within selections, those of fragments within fragments counted too.
const LEVELS: usize = 64;

/// What a selection costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Cost {
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

/// Checks every operation of a document.
///
/// # Errors
/// What is too much, in words.
pub(super) fn check(document: &ExecutableDocument) -> Result<(), String> {
    let mut known = HashMap::new();
    for (_, operation) in document.operations.iter() {
        let cost = selection(&operation.node.selection_set.node, document, &mut known, LEVELS)?;
        if cost.fields > COMPLEXITY {
            return Err(format!("the document asks for more than {COMPLEXITY} fields"));
        }
        if cost.depth > DEPTH {
            return Err(format!("the document is nested deeper than {DEPTH} levels of fields"));
        }
    }
    Ok(())
}

/// `None` stands for a fragment whose cost is being told: it spreads itself.
fn selection<'a>(
    set: &'a SelectionSet,
    document: &'a ExecutableDocument,
    known: &mut HashMap<&'a Name, Option<Cost>>,
    levels: usize,
) -> Result<Cost, String> {
    let Some(left) = levels.checked_sub(1) else {
        return Err(format!(
            "the document is nested deeper than {LEVELS} levels of fragments and fields"
        ));
    };
    let mut sum = Cost::default();
    for item in &set.items {
        let cost = match &item.node {
            Selection::Field(field) => {
                let inner = selection(&field.node.selection_set.node, document, known, left)?;
                Cost {
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
                    (Some(Some(cost)), _) => *cost,
                    (Some(None), _) => return Err(format!("the fragment {name} spreads itself")),
                    // The validation says that there is no such fragment.
                    (None, None) => Cost::default(),
                    (None, Some(fragment)) => {
                        known.insert(name, None);
                        let cost =
                            selection(&fragment.node.selection_set.node, document, known, left)?;
                        known.insert(name, Some(cost));
                        cost
                    }
                }
            }
        };
        // A spread costs something even where it leads to nothing.
        sum.fields = sum.fields.saturating_add(cost.fields.max(1));
        sum.depth = sum.depth.max(cost.depth);
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_graphql::parser::parse_query;
    use std::fmt::Write;

    fn cost(text: &str) -> Result<(), String> {
        check_text(text)?;
        check(&parse_query(text).unwrap())
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
    fn depth_and_number_are_bounded() {
        let nested = |n| format!("{}a{}", "{a".repeat(n), "}".repeat(n));
        assert_eq!(cost(&nested(19)), Ok(()));
        assert!(cost(&nested(21)).unwrap_err().contains("deeper than 20"));
        assert!(cost(&nested(100_000)).unwrap_err().contains("brackets"));
        assert!(cost(&format!("{{{}}}", "a ".repeat(1001))).unwrap_err().contains("1000"));
    }
}
