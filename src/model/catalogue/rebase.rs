//! Rewrites stored definitions when a namespace moves to another base.
//!
//! The base among `namespaces` and the IRIs of `conditions` are rewritten. So is the text of the mapping if it names
//! properties with IRIs of the namespace, written in full or with a prefix: the quads get the new IRIs, and the mapping
//! must still find them. The rewritten text counts only if it compiles to the same mapping with the new IRIs;
//! otherwise the move is refused before it begins.
use super::entry::{BUSINESS_OBJECTS, StoredDefinition, iter_rows};
use crate::mapping::{self, Mapping};
use crate::namespace::moving::rebase::{Rebase, begins_iri};
use oxrdf::NamedNode;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::next_version;
use penstock_base::table::{AsJson, Row};
use penstock_base::time;
use penstock_resources::business_object::Condition;
use penstock_store::{Error, Read, Transaction};
use std::cell::RefCell;

/// The account that a rewritten definition names as that of its last change.
const UPDATED_BY: &str = "local";

/// What a move does with all definitions.
#[derive(Debug, Default)]
pub(crate) struct RebasePreview {
    /// Why a definition cannot be rewritten.
    pub(crate) refused: Vec<String>,
    /// What needs attention.
    pub(crate) warnings: Vec<String>,
}

/// Rewrites all definitions without storing them.
pub(crate) fn preview_rebase(read: &dyn Read, rebase: &Rebase) -> Result<RebasePreview, Error> {
    let mut preview = RebasePreview::default();
    for row in iter_rows(read) {
        let row = row?;
        match row.value() {
            Ok(mut stored) => match rewrite(&mut stored, rebase) {
                Ok(rewritten) => preview.warnings.extend(rewritten.warning),
                Err(why) => preview.refused.push(why),
            },
            Err(error) => preview.refused.push(format!(
                "the stored Business Object {} cannot be read, so its IRIs are unknown ({error}); replace or delete it \
                 first",
                row.key()?
            )),
        }
    }
    Ok(preview)
}

/// Rewrites and stores the definition as its next version. Returns whether this changes it.
pub(crate) fn rewrite_definition(
    transaction: &mut Transaction<'_>,
    rebase: &Rebase,
    row: &Row<String, AsJson<StoredDefinition>>,
) -> Result<bool, GatewayError> {
    let mut stored = row.value()?;
    let internal = |why: String| GatewayError::new(ErrorClass::Internal, why);
    if !rewrite(&mut stored, rebase).map_err(internal)?.is_changed {
        return Ok(false);
    }
    let object = &mut stored.object;
    object.version = next_version(transaction, Some(object.version))?;
    // Not before an export of an earlier definition.
    object.updated_at = time::now_rfc3339().max(std::mem::take(&mut object.updated_at));
    object.updated_by = Some(UPDATED_BY.to_owned());
    BUSINESS_OBJECTS.put(transaction, &row.key()?, &stored)?;
    Ok(true)
}

/// What a move does with one definition.
struct Rewritten {
    is_changed: bool,
    warning: Option<String>,
}

/// Rewrites a definition.
///
/// # Errors
/// Returns the reason why it cannot be rewritten as text.
fn rewrite(stored: &mut StoredDefinition, rebase: &Rebase) -> Result<Rewritten, String> {
    let (mut is_changed, mut warning) = (false, None);
    if let Some(deletion) = &mut stored.object.deleting {
        // Its members have other URIs now, so the pass begins again.
        is_changed |= deletion.last_visited.take().is_some();
    }
    let definition = &mut stored.object.definition;
    let name = &definition.name;
    for namespace in &mut definition.namespaces {
        if namespace.name == rebase.to().name
            && let Some(base) = &mut namespace.uri_base
            && *base != rebase.to().uri_base
        {
            base.clone_from(&rebase.to().uri_base);
            is_changed = true;
        }
    }
    let mapping = match rewrite_config(&definition.config, rebase) {
        Ok(ConfigEnd::Same(mapping)) => Some(mapping),
        Ok(ConfigEnd::Rewritten(text, mapping)) => {
            warning = Some(format!(
                "the mapping of the Business Object {name:?} names IRIs of the namespace; its text gets the new ones"
            ));
            definition.config = text;
            is_changed = true;
            Some(mapping)
        }
        Ok(ConfigEnd::NotCompiled) => {
            warning = Some(format!(
                "the mapping of the Business Object {name:?} does not compile and is not served; its text stays as it is"
            ));
            None
        }
        Err(why) => return Err(format!("the mapping of the Business Object {name:?} {why}")),
    };
    let stored_before = definition.conditions.clone();
    for text in definition.conditions.iter_mut().flat_map(list_iris) {
        rebase
            .check(text)
            .map_err(|why| format!("a condition of the Business Object {name:?}: {why}"))?;
        if let Some(new) = rebase.rewrite(text) {
            *text = new;
        }
    }
    is_changed |= definition.conditions != stored_before;
    if let (Some(given), Some(mapping)) = (&mut stored.given_conditions, &mapping) {
        for (given, full) in given.iter_mut().zip(&definition.conditions) {
            rewrite_given(&mut given.predicate, &full.predicate, mapping);
            if full.has_iri() {
                rewrite_given(&mut given.value, &full.value, mapping);
            }
        }
    }
    if stored.given_conditions.as_ref() == Some(&definition.conditions) {
        stored.given_conditions = None;
    }
    Ok(Rewritten { is_changed, warning })
}

/// Returns the IRIs of a condition. The datatypes of literals stay.
fn list_iris(condition: &mut Condition) -> impl Iterator<Item = &mut String> {
    let has_iri = condition.has_iri();
    let Condition { predicate, value, .. } = condition;
    std::iter::once(predicate).chain(has_iri.then_some(value))
}

/// Replaces a part of a condition as given by its full form, unless its prefix still leads there.
fn rewrite_given(given: &mut String, full: &str, mapping: &Mapping) {
    let leads_there = |iri: NamedNode| iri.as_str() == full;
    if !mapping.prefixes.expand_iri(given).is_ok_and(leads_there) {
        full.clone_into(given);
    }
}

/// What becomes of the text of a mapping.
enum ConfigEnd {
    Same(Mapping),
    Rewritten(String, Mapping),
    /// It does not compile, so what it names is unknown, and nothing uses it.
    NotCompiled,
}

fn rewrite_config(config: &str, rebase: &Rebase) -> Result<ConfigEnd, String> {
    let Ok(before) = mapping::compile(config) else { return Ok(ConfigEnd::NotCompiled) };
    let named = RefCell::new(Vec::new());
    let mut expected = before.root.clone();
    expected.rewrite_iris(&|iri| {
        named.borrow_mut().push(iri.to_owned());
        rebase.rewrite(iri)
    });
    for iri in named.borrow().iter() {
        rebase.check(iri).map_err(|why| format!("names an IRI that cannot be moved: {why}"))?;
    }
    let text = rebase.rewrite_text(config, begins_iri);
    if text != config
        && let Ok(rewritten) = mapping::compile(&text)
        && rewritten.root == expected
    {
        return Ok(ConfigEnd::Rewritten(text, rewritten));
    }
    if before.root == expected {
        return Ok(ConfigEnd::Same(before));
    }
    let named = named.into_inner();
    let iri = named.iter().find(|iri| rebase.rewrite(iri).is_some()).cloned().unwrap_or_default();
    Err(format!(
        "names <{iri}> in a form that cannot be rewritten, or has a code or other text with such a value; write the IRI in \
         full, as <{iri}>, or with a prefix whose IRI begins with <{}>, remove such texts, and save it",
        rebase.from().identifier_prefix()
    ))
}
