//! Rendering: everything that belongs to a Business Object, as an export file, in bounded memory.
use super::file::{FileWriter, Finished};
use super::spool;
use crate::business_object::resource::Compiled;
use crate::business_object::{members, namespace, view};
use crate::fault::Fault;
use oxrdf::NamedNode;
use penstock_store::{Pattern, Read, Store};
use std::path::Path;

/// URIs held at once.
const PAGE: usize = 500;
/// Warnings kept with an export.
const WARNINGS: usize = 20;
/// Characters of one of them.
const WARNING: usize = 400;

/// Writes the export file of all objects that belong, ordered by URI, and returns what it says of
/// itself and what the view warned of.
///
/// No reader lives longer than one page or one object takes, so that commits go on. An object is
/// always rendered whole, as it is at that moment; one that ceased to belong since its page was read
/// is left out.
pub(super) fn full(
    store: &Store,
    business_object: &Compiled,
    path: &Path,
    export_date: &str,
) -> Result<(Finished, Vec<String>), Fault> {
    let written = |error: &_| spool::fault("writing", path, error);
    let name = &business_object.object.definition.name;
    let mut file = FileWriter::create(path, name, export_date).map_err(|e| written(&e))?;
    let mut warnings = Vec::new();
    let mut more_warnings = 0_u64;
    let mut object = Vec::new();
    let mut after: Option<NamedNode> = None;
    loop {
        let (page, seen) = {
            let read = store.read();
            let after = after.as_ref().map(NamedNode::as_str);
            (members::page(&read, business_object, after, PAGE)?, read.sequence())
        };
        for uri in &page {
            object.clear();
            let mut findings = Vec::new();
            {
                let read = store.read();
                if read.sequence() != seen && !members::contains(&read, business_object, uri)? {
                    continue;
                }
                view::render(
                    &read,
                    &business_object.mapping.root,
                    uri,
                    &mut object,
                    &mut findings,
                )?;
            }
            file.object(&object).map_err(|e| written(&e))?;
            for finding in findings {
                if warnings.len() < WARNINGS {
                    let warning = format!("{}: {finding}", uri.as_str());
                    warnings.push(warning.chars().take(WARNING).collect());
                } else {
                    more_warnings += 1;
                }
            }
        }
        match page.into_iter().last() {
            Some(last) => after = Some(last),
            None => break,
        }
    }
    if more_warnings > 0 {
        warnings.push(format!("and {more_warnings} more"));
    }
    Ok((file.finish().map_err(|e| written(&e))?, warnings))
}

/// Why no object belongs: the condition that matched nothing, in words.
pub(super) fn why_none(store: &Store, business_object: &Compiled) -> Result<String, Fault> {
    let read = store.read();
    for (predicate, value) in &business_object.conditions {
        let pattern = Pattern {
            predicate: Some(predicate.clone()),
            object: Some(value.clone()),
            ..Pattern::default()
        };
        if !read.any(&pattern)? {
            return Ok(format!(
                "no stored object has {value} as {predicate}, which a condition of this Business Object asks \
                 for; ingest such data or mend the condition"
            ));
        }
    }
    let conditions: Vec<String> =
        business_object.conditions.iter().map(|(p, v)| format!("{p} {v}")).collect();
    if !conditions.is_empty() {
        return Ok(format!(
            "no stored object satisfies all conditions of this Business Object at once: {}",
            conditions.join(" and ")
        ));
    }
    let name = &business_object.mapping.root.namespace;
    let base =
        namespace::get(&read, name)?.map_or_else(String::new, |n| format!(" <{}>", n.uri_base));
    Ok(format!(
        "the graph{base} of the namespace `{name}` holds no object, and the Business Object has no condition"
    ))
}
