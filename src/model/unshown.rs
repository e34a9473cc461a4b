//! Counts the stored values that the fields of a mapping cannot show, for the warnings about a definition.
use crate::list::{Lists, may_have_lists};
use crate::mapping::{Mapping, Property, Shape, Value};
use crate::namespace;
use crate::view::{FieldValues, read_members};
use oxrdf::{GraphName, NamedNode, NamedNodeRef};
use penstock_base::error::Finding;
use penstock_store::{Error, Pattern, Read};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// The maximum number of stored values, nodes of lists and members of maps that are examined.
const MAX_EXAMINED: usize = 100_000;

/// Returns a warning for each field with values in the graph of its namespace that it cannot show, and one if not all could
/// be examined.
pub(crate) fn check_stored_values(
    read: &dyn Read,
    mapping: &Mapping,
) -> Result<Vec<Finding>, Error> {
    check_some_values(read, mapping, MAX_EXAMINED)
}

fn check_some_values(
    read: &dyn Read,
    mapping: &Mapping,
    limit: usize,
) -> Result<Vec<Finding>, Error> {
    let has_lists = may_have_lists(read)?;
    let mut count = UnshownCount { read, has_lists, left: limit, is_complete: true };
    let mut found = Vec::new();
    let mut waiting = vec![(&mapping.root, String::new())];
    while let Some((shape, path)) = waiting.pop() {
        for (place, field, property) in shape.iter_properties() {
            let name = format!("{path}{}", field.name);
            let unshown = count.count_values(shape, place, property)?;
            if unshown > 0 {
                let begin = if count.is_complete { "" } else { "at least " };
                let values = if unshown == 1 { "value" } else { "values" };
                let message = format!(
                    "{begin}{unshown} stored {values} of the field `{name}` cannot be shown with this mapping; the view and the \
                     exports leave them out, with a warning"
                );
                found.push(Finding::at_pointer("/config", message));
            }
            waiting.extend(property.value.shape().map(|nested| (nested, format!("{name}."))));
        }
    }
    if !count.is_complete {
        let message = format!(
            "not all stored values were examined, only the first {limit}; others may not be shown with this mapping \
             either, and the view has a warning about each of them"
        );
        found.push(Finding::at_pointer("/config", message));
    }
    Ok(found)
}

struct UnshownCount<'r> {
    read: &'r dyn Read,
    /// Whether there are lists, which only ordered arrays show.
    has_lists: bool,
    /// How many may still be examined.
    left: usize,
    /// Whether all were.
    is_complete: bool,
}

impl UnshownCount<'_> {
    /// Counts the values that the field at this index cannot show.
    fn count_values(
        &mut self,
        shape: &Shape,
        place: usize,
        property: &Property,
    ) -> Result<usize, Error> {
        let may_be_lists = self.has_lists && !matches!(property.value, Value::Literal(_));
        if !property.may_hide_values() && !may_be_lists {
            return Ok(0);
        }
        let Some(namespace) = namespace::get(self.read, &shape.namespace)? else { return Ok(0) };
        let pattern = Pattern {
            predicate: Some(property.predicate.clone()),
            graph: Some(GraphName::from(namespace.graph_name())),
            ..Pattern::default()
        };
        let mut unshown = 0;
        let mut maps: BTreeMap<String, Vec<NamedNode>> = BTreeMap::new();
        let mut failed = None;
        let Self { read, left, is_complete, .. } = self;
        read.for_each(&pattern, &mut |quad| {
            if *left == 0 {
                *is_complete = false;
                return ControlFlow::Break(());
            }
            let about = std::iter::once((quad.predicate.as_ref(), quad.object.as_ref()));
            let mut lists = Lists::default();
            match lists.add_object(*read, shape, about.clone()) {
                Ok(nodes) => *left = left.saturating_sub(1 + nodes),
                Err(error) => {
                    failed = Some(error);
                    return ControlFlow::Break(());
                }
            }
            let values = FieldValues::new(shape, about).with_lists(&lists);
            let shown = values.collect_values(place, property, &mut |_, _| unshown += 1);
            if property.map().is_some() {
                let members = maps.entry(quad.subject.to_string()).or_default();
                members.extend(shown.iris().map(NamedNodeRef::into_owned));
            }
            ControlFlow::Continue(())
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        if let Some((members, _)) = property.map() {
            for uris in maps.values() {
                if self.left < uris.len() {
                    self.is_complete = false;
                    break;
                }
                self.left -= uris.len();
                let uris: Vec<NamedNodeRef<'_>> = uris.iter().map(NamedNode::as_ref).collect();
                read_members(*read, members, &uris, &mut |_, _| unshown += 1)?;
            }
        }
        Ok(unshown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::Mode;
    use crate::mapping::compile;
    use crate::testing::{Fixture, insert_quad};
    use oxrdf::Literal;

    #[test]
    fn values_that_a_field_cannot_show_are_counted() {
        let mapping = compile(
            "type: object\npath: Pump:.\nfields:\n  \
             state: {type: string, path: <urn:state>, values: {off: 'A', on: 'B'}}\n  \
             note: {type: string, path: <urn:note>}\n",
        )
        .unwrap();
        let fixture = Fixture::new(mapping.root.clone());
        for (index, text) in ["A", "off", "on", "other"].iter().enumerate() {
            let pump = format!("http://x/Pump/{index}");
            for property in ["urn:state", "urn:note"] {
                let value = Literal::new_simple_literal(*text);
                insert_quad(&fixture.store, &pump, property, value, "http://x/Pump/");
            }
        }
        let found = check_stored_values(&fixture.store.read(), &mapping).unwrap();
        let messages: Vec<String> = found.iter().map(|one| one.message.clone()).collect();
        assert_eq!(messages.len(), 1, "{messages:?}");
        assert!(messages[0].starts_with("2 stored values of the field `state`"), "{messages:?}");
        let found = check_some_values(&fixture.store.read(), &mapping, 3).unwrap();
        assert!(found[0].message.starts_with("at least "), "{found:?}");
        assert!(found[1].message.starts_with("not all stored values were examined"), "{found:?}");
    }

    #[test]
    fn nodes_of_lists_and_members_of_maps_are_counted_too() {
        let mapping = compile(
            "type: object\npath: Pump:.\nfields:\n  \
             steps: {type: array, ordered: true, path: <urn:step>, elements: integer}\n  \
             levels: {type: map, path: <urn:level>/Level:., key: {path: <urn:code>}, elements: {type: number, path: <urn:value>}}\n",
        )
        .unwrap();
        let fixture = Fixture::new(mapping.root.clone());
        let object = r#"{"uri": "urn:p", "steps": [1, 2, 3], "levels": {"a": 1, "b": 2}}"#;
        fixture.send(Mode::Add, object).unwrap();
        // A value with three nodes, and two members, each also a value.
        for (limit, warnings) in [(8, 0), (7, 1), (3, 1)] {
            let found = check_some_values(&fixture.store.read(), &mapping, limit).unwrap();
            assert_eq!(found.len(), warnings, "{limit}: {found:?}");
        }
    }
}
