//! The work of one request inside its transaction: from the body, object by object, to the answer.
use super::answer::{Outcome, Status, Warnings};
use super::convert::{Converter, format_value};
use super::delete::Deletion;
use super::findings::Findings;
use super::mapping_namespaces::MappingNamespaces;
use super::orphans::Orphans;
use super::repeats::RepeatedObjects;
use super::write::RequestWriter;
use super::write_scope::WriteScope;
use super::{Answer, Body, Limits, Mode, Request, lines};
use crate::mapping::Shape;
use crate::members;
use crate::resource::Compiled;
use oxrdf::NamedNode;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::json::{self, Json};
use penstock_store::Transaction;
use std::collections::HashSet;

/// Applies the request to the transaction without committing it. Returns the answer, and the nested objects that were
/// removed because nothing refers to them any more.
pub(super) fn apply_request(
    transaction: &mut Transaction<'_>,
    limits: &Limits,
    request: &Request<'_>,
) -> Result<(Answer, Vec<NamedNode>), GatewayError> {
    let mapping = &request.business_object.mapping;
    let spaces = MappingNamespaces::read(transaction, mapping)?;
    let scope = match request.write_scope {
        Some(business_objects) => WriteScope::limited_to(transaction, business_objects)?,
        None => WriteScope::ALL,
    };
    let mut writer = RequestWriter {
        transaction,
        namespaces: &spaces,
        scope: &scope,
        mode: request.mode,
        findings: Findings::default(),
        warnings: Warnings::default(),
        orphans: Orphans::default(),
        repeats: RepeatedObjects::default(),
        minted: HashSet::new(),
        claimed: HashSet::new(),
        created_nested: HashSet::new(),
        nested: Vec::new(),
    };
    let mut answer = Answer::new(request.mode);
    let mut each = |index, json| {
        if let Some(outcome) = apply_object(&mut writer, &mapping.root, index, json)? {
            answer.push(outcome);
        }
        if writer.findings.is_full() {
            writer.findings.take_error().map_or(Ok(()), Err)
        } else {
            Ok(())
        }
    };
    let read = match request.body {
        Body::Json(text) => json::parse_data(text, limits.nesting, limits.objects, &mut each),
        Body::Lines { text, first } => lines::parse_lines(text, limits.nesting, first, &mut each),
    };
    if let Err(error) = read {
        if error.class != ErrorClass::Invalid {
            return Err(error);
        }
        // Report the errors of the body together with those of its objects.
        writer.findings.extend(error.findings.clone());
        return Err(writer.findings.take_error().unwrap_or(error));
    }
    if let Some(error) = writer.findings.take_error() {
        return Err(error);
    }
    let RequestWriter { transaction, orphans, mut warnings, .. } = writer;
    let removed = orphans.remove_orphans(transaction, &scope)?;
    answer.deleted += removed.len() as u64;
    if request.mode != Mode::Delete {
        warn_of_non_members(transaction, request.business_object, &answer, &mut warnings)?;
    }
    answer.warnings = warnings.into_vec();
    Ok((answer, removed))
}

/// Removes these objects, and the objects nested in them that nothing refers to any more. Returns how many were
/// removed.
pub(super) fn remove_objects<'a>(
    transaction: &mut Transaction<'_>,
    business_object: &Compiled,
    uris: impl IntoIterator<Item = &'a NamedNode>,
) -> Result<u64, GatewayError> {
    let mut orphans = Orphans::default();
    let mut warnings = Warnings::default();
    let mut deleted = 0;
    for uri in uris {
        let shape = &business_object.mapping.root;
        let mut deletion = Deletion {
            transaction,
            orphans: &mut orphans,
            scope: &WriteScope::ALL,
            warnings: &mut warnings,
        };
        let outcome = deletion.delete(shape, 0, uri.clone())?;
        deleted += u64::from(outcome.is_ok_and(|outcome| outcome.status == Status::Deleted));
    }
    Ok(deleted + orphans.remove_orphans(transaction, &WriteScope::ALL)?.len() as u64)
}

/// Applies one object of the request. Returns `None` if the object has an error.
fn apply_object<'m>(
    writer: &mut RequestWriter<'_, '_, 'm>,
    shape: &'m Shape,
    index: usize,
    json: Json,
) -> Result<Option<Outcome>, GatewayError> {
    let before = writer.findings.count();
    let mut converter = Converter {
        findings: &mut writer.findings,
        warnings: &mut writer.warnings,
        pointer: format!("/data/{index}"),
    };
    if writer.mode == Mode::Delete {
        let Some(uri) = converter.convert_reference(shape, json) else { return Ok(None) };
        if writer.findings.count() > before {
            return Ok(None);
        }
        let RequestWriter { transaction, orphans, scope, warnings, .. } = writer;
        let mut deletion = Deletion { transaction, orphans, scope, warnings };
        return match deletion.delete(shape, index, uri)? {
            Ok(outcome) => Ok(Some(outcome)),
            Err(why) => {
                writer.findings.add_invalid(&format!("/data/{index}"), why);
                Ok(None)
            }
        };
    }
    let node = converter.convert_object(shape, json);
    match node {
        Some(node) if writer.findings.count() == before => {
            let outcome = writer.write_root(index, node)?;
            if let Some(outcome) = &outcome
                && writer.mode == Mode::Replace
            {
                writer.orphans.keep_named(NamedNode::new_unchecked(&outcome.uri));
            }
            Ok(outcome)
        }
        _ => Ok(None),
    }
}

/// Warns of the objects that were stored and do not belong to the Business Object.
fn warn_of_non_members(
    transaction: &Transaction<'_>,
    business_object: &Compiled,
    answer: &Answer,
    warnings: &mut Warnings,
) -> Result<(), GatewayError> {
    for outcome in &answer.objects {
        // A created object has a value in the root graph, and without conditions no more is required.
        if business_object.conditions.is_empty() && outcome.status == Status::Created {
            continue;
        }
        let uri = NamedNode::new_unchecked(&outcome.uri);
        if !members::is_member(transaction, business_object, &uri)? {
            let conditions: Vec<String> = business_object
                .conditions
                .iter()
                .take(5)
                .map(|(predicate, value)| {
                    format!("{} = {}", predicate.as_str(), format_value(value))
                })
                .collect();
            let cause = if conditions.is_empty() {
                "it has no value in the graph of its namespace".to_owned()
            } else {
                format!("it does not match the conditions ({})", conditions.join(", "))
            };
            warnings.push(
                &format!("/data/{}", outcome.index),
                format!("{} is stored but would not be exported: {cause}", outcome.uri),
            );
        }
    }
    Ok(())
}
