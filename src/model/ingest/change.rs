//! The work of one request inside its transaction: from the body, object by object, to the answer.
use super::answer::Warnings;
use super::convert::{Converter, IgnoredFields};
use super::delete::Deletion;
use super::derived_iris::DerivedIris;
use super::findings::Findings;
use super::identifiers::{Identifiers, MintedIdentifier};
use super::mapping_namespaces::MappingNamespaces;
use super::objects::read_objects;
use super::orphans::{Orphans, RemovedOrphans};
use super::read_object::ReadObject;
use super::rejections::{Rejection, Rejections};
use super::repeats::RepeatedObjects;
use super::request::validation_limits;
use super::request_uris::RequestUris;
use super::request_writer::RequestWriter;
use super::retry::list_moves_since_receipt;
use super::shared_keys::find_shared_keys;
use super::shown_term::format_value;
use super::submission::is_under_review;
use super::violations::{PlacedViolation, Places, withhold_values};
use super::{Answer, Body, Limits, Mode, Request, ReviewStep};
use crate::dead_letters::{MAX_LISTED_ERRORS, keep_error, list_first_errors};
use crate::list::remove_unlinked_lists;
use crate::mapping::{Shape, UnknownFields};
use crate::namespace::moving::list_rebases_since;
use crate::protection::{check_reviewed_untouched, find_violations};
use crate::resource::Compiled;
use crate::write_scope::WriteScope;
use crate::{change_feed, members};
use oxrdf::{NamedNode, Quad, Term};
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::json::Json;
use penstock_resources::ingestion::{BodyForm, IngestedObject, IngestedStatus};
use penstock_store::{FastMap, FastSet, Pattern, Read as _, SubjectFilter, Transaction};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

/// What a request changed in its transaction.
#[derive(Debug)]
pub(crate) struct Applied {
    pub(crate) answer: Answer,
    /// The nested objects that were removed because nothing refers to them any more.
    pub(crate) removed: Vec<NamedNode>,
    /// The identifiers that were minted, if the request becomes a change.
    pub(crate) minted: Vec<MintedIdentifier>,
    /// The Business Objects that require a review, or in the mode `reject` could not be validated, and whose objects it
    /// changes nevertheless.
    pub(crate) bypassed: Vec<String>,
}

/// Applies the objects of the request to the transaction without committing it, all or none.
///
/// # Errors
/// Returns the errors that concern the whole request, and those of the objects, together.
pub(crate) fn apply_whole_request(
    transaction: &mut Transaction<'_>,
    limits: &Limits,
    request: &Request<'_>,
) -> Result<Applied, GatewayError> {
    apply_objects(transaction, limits, request, None)
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
    let definitions = request.watch.current_definitions(transaction)?;
    let spaces = MappingNamespaces::read(transaction, mapping, &definitions)?;
    let scope = match request.write_scope {
        Some(business_objects) => {
            WriteScope::limited_to(transaction, request.watch, business_objects.iter().copied())?
        }
        None => WriteScope::ALL,
    };
    let own_id = request.business_object.object.id.as_str();
    let reviewed = definitions.list_reviewed_members(own_id);
    let moves = list_moves_since_receipt(transaction, request)?;
    let is_under_review = is_under_review(request);
    let identifiers = match request.review {
        ReviewStep::Replay(change) => {
            let moves = list_rebases_since(transaction, change.base)?;
            Identifiers::of_change(change.minted, &moves)
        }
        _ if is_under_review => Identifiers::of_change(&[], &[]),
        _ => Identifiers::default(),
    };
    let document = mapping.document.as_ref().filter(|_| request.form == BodyForm::Document);
    let mut writer = RequestWriter {
        moves,
        identifiers,
        transaction,
        namespaces: &spaces,
        scope: &scope,
        mode: request.mode,
        condition: request.condition,
        findings: Findings::default(),
        warnings: Warnings::default(),
        // What a MERGE unlinks may be an object of its own.
        orphans: Orphans::keeping(if request.mode == Mode::Merge {
            &definitions.members
        } else {
            &reviewed
        }),
        repeats: RepeatedObjects::default(),
        minted: RequestUris::default(),
        claimed: FastSet::default(),
        read_objects: FastSet::default(),
        read_again: 0,
        refused_objects: FastMap::default(),
        derived_iris: DerivedIris::new(limits.values),
        named_by_key: RequestUris::default(),
        unlinked: Vec::new(),
        outer: document.map(|document| document.outer.as_slice()).unwrap_or_default(),
        ignored_fields: (mapping.unknown_fields == UnknownFields::Ignore)
            .then(IgnoredFields::default),
        absent: FastSet::default(),
        created_nested: FastSet::default(),
        nested: Vec::new(),
    };
    let mut answer = Answer::new(request.mode);
    let mut count = 0_usize;
    let mut texts = HashMap::new();
    let mut message = None;
    let read = read_objects(request, limits, &mut |object| {
        count += 1;
        let found = request.body.find_message(object.range.start);
        if found != message {
            // A later message states newer values. Only within one message is that a contradiction.
            writer.repeats = RepeatedObjects::default();
            message = found;
        }
        if count > 1 && request.condition.is_some() {
            return Err(condition_error());
        }
        if rejections.is_some() {
            texts.insert(object.index, (object.line, object.range.clone()));
        }
        writer.findings.record_line = request.body.record_line(object.index);
        let outcome = match rejections.as_deref_mut() {
            Some(rejections) => apply_or_reject(&mut writer, &mapping.root, object, rejections)?,
            None => apply_object(&mut writer, &mapping.root, object.index, object.json?)?,
        };
        if let Body::Messages(batch) = request.body
            && batch.messages.len() > 1
            && writer.derived_iris.is_exceeded()
        {
            // What becomes of a message must not depend on the others in its batch, so the source sends fewer.
            let message = "the messages of the batch have too many bytes of IRIs together";
            return Err(GatewayError::new(ErrorClass::TooLarge, message));
        }
        if let Some(outcome) = outcome {
            answer.push(outcome);
        }
        if writer.findings.is_full() {
            writer.findings.take_error().map_or(Ok(()), Err)
        } else {
            Ok(())
        }
    });
    writer.findings.record_line = None;
    match read {
        Ok(None) => {}
        Ok(Some(warning)) => writer.warnings.push_finding(warning),
        Err(error) if error.class != ErrorClass::Invalid => return Err(error),
        Err(error) => {
            // Report the errors of the body together with those of its objects.
            writer.findings.extend(error.findings.clone());
            return Err(writer.findings.take_error().unwrap_or(error));
        }
    }
    if let Some(error) = writer.findings.take_error() {
        return Err(error);
    }
    if count == 0 && request.condition.is_some() {
        return Err(condition_error());
    }
    if request.mode == Mode::Update {
        writer.orphans.keep_answered(&answer);
    }
    let RequestWriter {
        transaction,
        identifiers,
        orphans,
        mut warnings,
        mut findings,
        unlinked,
        ..
    } = writer;
    transaction.release_savepoint();
    let RemovedOrphans { removed, kept } = orphans.remove_orphans(transaction, &scope)?;
    remove_unlinked_lists(transaction)?;
    let gained = change_feed::update_key_index(transaction, request.watch, &spaces.keys())?;
    for (index, finding) in find_shared_keys(transaction, gained, &answer)? {
        let finding = Finding { record_line: request.body.record_line(index), ..finding };
        match (rejections.as_deref_mut(), texts.get(&index).cloned()) {
            (Some(rejections), Some((line, range))) => {
                let errors = vec![keep_error(finding)];
                rejections.add(index, Rejection { line, range, errors });
            }
            (Some(_), None) => {}
            (None, _) => findings.add_conflicting(finding),
        }
    }
    let mut not_validated = Vec::new();
    if request.mode != Mode::Delete {
        let validation = validation_limits(limits);
        let mut found = find_violations(transaction, &definitions, &validation, request)?;
        withhold_values(&mut found.violations, transaction, &scope)?;
        not_validated = found.bypassed;
        for why in found.not_validated {
            warnings.push_finding(Finding::at_pointer(String::new(), why));
        }
        let message_of = |index: usize| {
            let (_, range): &(_, Range<usize>) = texts.get(&index)?;
            request.body.find_message(range.start)
        };
        let places = Places::new(&answer, &mapping.root, request, message_of);
        for PlacedViolation { index, finding, is_refused } in
            found.violations.iter().flat_map(|found| places.place(found))
        {
            let text = index.and_then(|index| Some((index, texts.get(&index)?)));
            match (rejections.as_deref_mut(), text) {
                _ if !is_refused => warnings.push_finding(finding),
                (Some(rejections), Some((index, (line, range)))) => {
                    rejections.add_error(index, *line, range.clone(), finding.into());
                }
                _ => findings.add_finding(finding),
            }
        }
    }
    if let Some(error) = findings.take_error() {
        return Err(error);
    }
    let time = limits.shapes.time;
    let mut bypassed = check_reviewed_untouched(transaction, &definitions, request, time)?;
    for name in &bypassed {
        let message = if request.may_name(name) {
            format!(
                "the request changes objects of the Business Object {name:?}, which requires a review; bypass=true overrides that"
            )
        } else {
            "the request changes objects of another Business Object, which this credential is not for and which requires a review; bypass=true overrides that".to_owned()
        };
        warnings.push("", message);
    }
    not_validated.retain(|name| !bypassed.contains(name));
    bypassed.extend(not_validated);
    let tense = if is_under_review { Tense::WOULD } else { Tense::DID };
    if request.mode == Mode::Merge {
        warn_of_unlinked(transaction, unlinked, &removed, tense, &mut warnings)?;
    } else {
        warn_of_kept(&kept, tense, &mut warnings);
    }
    answer.deleted += removed.len() as u64;
    if request.mode != Mode::Delete {
        let business_object = request.business_object;
        warn_of_non_members(transaction, business_object, &answer, tense, &mut warnings)?;
    }
    answer.warnings = warnings.into_vec();
    Ok(Applied { answer, removed, minted: identifiers.into_minted(), bypassed })
}

/// Applies one object of the request if it is not rejected yet. An object with an error changes nothing and is rejected.
fn apply_or_reject<'m>(
    writer: &mut RequestWriter<'_, '_, 'm>,
    shape: &'m Shape,
    object: ReadObject,
    rejections: &mut Rejections,
) -> Result<Option<IngestedObject>, GatewayError> {
    let ReadObject { index, line, range, json } = object;
    if rejections.contains(index) {
        return Ok(None);
    }
    writer.set_savepoint();
    let errors = match json {
        Err(error) => list_first_errors(&error),
        Ok(json) => {
            let outcome = apply_object(writer, shape, index, json)?;
            let findings = writer.findings.take_all();
            if findings.is_empty() {
                return Ok(outcome);
            }
            findings.into_iter().take(MAX_LISTED_ERRORS).map(keep_error).collect()
        }
    };
    writer.roll_back_to_savepoint()?;
    rejections.add(index, Rejection { line, range, errors });
    Ok(None)
}

fn condition_error() -> GatewayError {
    GatewayError::new(
        ErrorClass::Malformed,
        "If-Match and If-None-Match are the state of one object, so the request must have exactly one",
    )
}

/// What [`remove_objects`] did.
pub(super) struct RemovedObjects {
    /// The number of objects that were removed, nested ones included.
    pub(super) deleted: u64,
    /// The nested objects that stay, because they satisfy a filter.
    pub(super) kept: Vec<NamedNode>,
}

/// Removes these objects, and the objects nested in them that nothing refers to any more, except nested objects that
/// satisfy one of the filters `kept`.
pub(super) fn remove_objects<'a>(
    transaction: &mut Transaction<'_>,
    business_object: &Compiled,
    uris: impl IntoIterator<Item = &'a NamedNode>,
    kept: &[SubjectFilter],
) -> Result<RemovedObjects, GatewayError> {
    let mut orphans = Orphans::keeping(kept);
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
        deleted +=
            u64::from(outcome.is_ok_and(|outcome| outcome.status == IngestedStatus::Deleted));
    }
    let RemovedOrphans { removed, kept } = orphans.remove_orphans(transaction, &WriteScope::ALL)?;
    Ok(RemovedObjects { deleted: deleted + removed.len() as u64, kept })
}

/// Applies one object of the request. Returns `None` if the object has an error.
fn apply_object<'m>(
    writer: &mut RequestWriter<'_, '_, 'm>,
    shape: &'m Shape,
    index: usize,
    json: Json,
) -> Result<Option<IngestedObject>, GatewayError> {
    let before = writer.findings.count();
    let mut converter = Converter {
        findings: &mut writer.findings,
        warnings: &mut writer.warnings,
        ignored_fields: writer.ignored_fields.as_mut(),
        null_clears: writer.mode == Mode::Merge,
        pointer: format!("/data/{index}"),
    };
    if writer.mode == Mode::Delete {
        let Some(mut node) = converter.convert_reference(shape, json) else { return Ok(None) };
        for rebase in &writer.moves {
            node.rewrite_iris(&|iri| rebase.rewrite(iri));
        }
        let uri = match node.uri.take() {
            Some(uri) => uri,
            None => match writer.find_keyed_object(&node)? {
                Some(uri) => uri,
                None => return Ok(None),
            },
        };
        writer.check_condition(shape, &uri)?;
        if writer.absent.contains(&uri) {
            // Looking again at an object with many removed quads takes a while.
            let (uri, status) = (uri.into_string(), IngestedStatus::Absent);
            return Ok(Some(IngestedObject { index, uri, status, nested: Vec::new() }));
        }
        let RequestWriter { transaction, orphans, scope, warnings, absent, .. } = writer;
        let mut deletion = Deletion { transaction, orphans, scope, warnings };
        return match deletion.delete(shape, index, uri)? {
            Ok(outcome) => {
                if outcome.status == IngestedStatus::Absent {
                    absent.insert(NamedNode::new_unchecked(&outcome.uri));
                }
                Ok(Some(outcome))
            }
            Err(why) => {
                writer.findings.add_invalid(&format!("/data/{index}"), why);
                Ok(None)
            }
        };
    }
    let node = converter.convert_object(shape, json);
    match node {
        Some(mut node) if writer.findings.count() == before => {
            for rebase in &writer.moves {
                node.rewrite_iris(&|iri| rebase.rewrite(iri));
            }
            let outcome = writer.write_root(index, node)?;
            if let Some(outcome) = &outcome
                && matches!(writer.mode, Mode::Replace | Mode::Merge)
            {
                writer.orphans.keep_named(NamedNode::new_unchecked(&outcome.uri));
            }
            Ok(outcome)
        }
        _ => Ok(None),
    }
}

/// The words for what an ingestion has done, or what it would do as a change under review.
#[derive(Debug, Clone, Copy)]
struct Tense {
    refers: &'static str,
    is_linked: &'static str,
    was_removed: &'static str,
    stays: &'static str,
    is_stored: &'static str,
}

impl Tense {
    const DID: Self = Self {
        refers: "refers",
        is_linked: "is no longer linked",
        was_removed: "was removed",
        stays: "stays stored",
        is_stored: "is stored but would not be exported",
    };
    const WOULD: Self = Self {
        refers: "would refer",
        is_linked: "would no longer be linked",
        was_removed: "would be removed",
        stays: "would stay stored",
        is_stored: "would be stored but not exported",
    };
}

/// Names the nested objects that nothing refers to any more and that stay.
fn warn_of_kept(kept: &[NamedNode], tense: Tense, warnings: &mut Warnings) {
    let Tense { refers, stays, .. } = tense;
    for uri in kept {
        let message = format!(
            "nothing {refers} to {} any more; it {stays}, because it belongs to a Business Object that requires a review",
            uri.as_str()
        );
        warnings.push("", message);
    }
}

/// Names the nested objects that lost a link in a MERGE, and those that were removed with it.
fn warn_of_unlinked(
    transaction: &Transaction<'_>,
    unlinked: Vec<(String, Quad)>,
    removed: &[NamedNode],
    tense: Tense,
    warnings: &mut Warnings,
) -> Result<(), GatewayError> {
    const MAX_NAMED: usize = 100;
    let Tense { refers, is_linked, was_removed, stays, .. } = tense;
    let mut unnamed: BTreeSet<&str> = removed.iter().map(NamedNode::as_str).collect();
    let mut named = HashSet::new();
    let mut found = Vec::new();
    for (pointer, Quad { subject, predicate, object, .. }) in unlinked {
        let Term::NamedNode(uri) = &object else { continue };
        let uri = uri.as_str().to_owned();
        if !named.insert((pointer.clone(), uri.clone())) {
            continue;
        }
        if unnamed.remove(uri.as_str()) {
            let message = format!("{uri} {was_removed}, because nothing {refers} to it any more");
            found.push((pointer, message));
            continue;
        }
        let (subject, object) = (Some(subject), Some(object));
        let link = Pattern { subject, predicate: Some(predicate), object, graph: None };
        // A later mention in the request can link it again.
        if !transaction.any(&link)? {
            found.push((pointer, format!("{uri} {is_linked} here; it {stays}")));
        }
    }
    found.extend(unnamed.into_iter().map(|uri| {
        let message =
            format!("{uri} {was_removed}, because the object that it was nested in {was_removed}");
        (String::new(), message)
    }));
    let more = found.len().saturating_sub(MAX_NAMED);
    for (pointer, message) in found.into_iter().take(MAX_NAMED) {
        warnings.push(&pointer, message);
    }
    if more > 0 {
        warnings.push("", format!("this holds for {more} more nested objects"));
    }
    Ok(())
}

/// Warns of the objects that were stored and do not belong to the Business Object.
fn warn_of_non_members(
    transaction: &Transaction<'_>,
    business_object: &Compiled,
    answer: &Answer,
    tense: Tense,
    warnings: &mut Warnings,
) -> Result<(), GatewayError> {
    for outcome in &answer.objects {
        // A created object has a value in the root graph, and without conditions no more is required.
        if business_object.conditions.is_empty() && outcome.status == IngestedStatus::Created {
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
                format!("{} {}: {cause}", outcome.uri, tense.is_stored),
            );
        }
    }
    Ok(())
}
