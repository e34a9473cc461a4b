//! The work of one request inside its transaction: from the body, object by object, to the answer.
use super::answer::{Outcome, Status, Warnings};
use super::convert::{Converter, format_value};
use super::delete::Deletion;
use super::findings::Findings;
use super::mapping_namespaces::MappingNamespaces;
use super::minted::MintedUris;
use super::objects::{ReadObject, read_objects};
use super::orphans::Orphans;
use super::rejections::{Rejection, Rejections};
use super::repeats::RepeatedObjects;
use super::write::RequestWriter;
use super::write_scope::WriteScope;
use super::{Answer, Limits, Mode, Request};
use crate::dead_letters::ObjectError;
use crate::mapping::Shape;
use crate::members;
use crate::resource::Compiled;
use oxrdf::NamedNode;
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_base::json::Json;
use penstock_store::Transaction;
use std::collections::HashSet;

/// What a request changed in its transaction.
#[derive(Debug)]
pub(super) struct Applied {
    pub(super) answer: Answer,
    /// The nested objects that were removed because nothing refers to them any more.
    pub(super) removed: Vec<NamedNode>,
}

/// Applies the objects of the request to the transaction without committing it. With `rejections`, it leaves out these
/// objects, and adds those that have errors.
///
/// # Errors
/// Returns the errors that concern the whole request. Without `rejections` also the errors of the objects, together.
pub(super) fn apply_objects(
    transaction: &mut Transaction<'_>,
    limits: &Limits,
    request: &Request<'_>,
    mut rejections: Option<&mut Rejections>,
) -> Result<Applied, GatewayError> {
    let mapping = &request.business_object.mapping;
    let spaces = MappingNamespaces::read(transaction, mapping)?;
    let business_objects = [request.business_object];
    let scope = if request.api_key.is_some_and(|key| key.is_bound) {
        WriteScope::limited_to(transaction, &business_objects)?
    } else {
        WriteScope::ALL
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
        minted: MintedUris::default(),
        claimed: HashSet::new(),
        created_nested: HashSet::new(),
        nested: Vec::new(),
    };
    let mut answer = Answer::new(request.mode);
    let read = read_objects(request.body, limits, &mut |object| {
        let outcome = match rejections.as_deref_mut() {
            Some(rejections) => apply_or_reject(&mut writer, &mapping.root, object, rejections)?,
            None => apply_object(&mut writer, &mapping.root, object.index, object.json?)?,
        };
        if let Some(outcome) = outcome {
            answer.push(outcome);
        }
        if writer.findings.is_full() {
            writer.findings.take_error().map_or(Ok(()), Err)
        } else {
            Ok(())
        }
    });
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
    transaction.release_savepoint();
    let removed = orphans.remove_orphans(transaction, &scope)?;
    answer.deleted += removed.len() as u64;
    if request.mode != Mode::Delete {
        warn_of_non_members(transaction, request.business_object, &answer, &mut warnings)?;
    }
    answer.warnings = warnings.into_vec();
    Ok(Applied { answer, removed })
}

/// Applies one object of the request if it is not rejected yet. An object with an error changes nothing and is rejected.
fn apply_or_reject<'m>(
    writer: &mut RequestWriter<'_, '_, 'm>,
    shape: &'m Shape,
    object: ReadObject,
    rejections: &mut Rejections,
) -> Result<Option<Outcome>, GatewayError> {
    let ReadObject { index, line, range, json } = object;
    if rejections.contains(index) {
        return Ok(None);
    }
    writer.set_savepoint();
    let errors = match json {
        Err(error) => ObjectError::list_first(&error),
        Ok(json) => {
            let outcome = apply_object(writer, shape, index, json)?;
            let findings = writer.findings.take_all();
            if findings.is_empty() {
                return Ok(outcome);
            }
            findings.into_iter().take(ObjectError::MAX_LISTED).map(ObjectError::from).collect()
        }
    };
    writer.roll_back_to_savepoint()?;
    rejections.add(index, Rejection { line, range, errors });
    Ok(None)
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
