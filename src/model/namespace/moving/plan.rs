//! Checks a move before anything is changed, and counts what it rewrites.
use super::rebase::Rebase;
use super::record::{MovePlan, MoveProgress, find_pending_move};
use crate::namespace::change::check_base_is_free;
use crate::namespace::{self, KnownNamespaces};
use crate::{catalogue, natural_key, shapes_graphs, warnings};
use oxrdf::{GraphName, NamedNode, NamedOrBlankNode, Quad, Term};
use penstock_base::definition::missing_error;
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_resources::definitions::DefinitionKind;
use penstock_store::{Error, Pattern, QuadPosition, Read, ReadStore};
use std::ops::ControlFlow;

/// The number of quads that are read with one reader.
const QUADS_PER_PAGE: usize = 10_000;
/// The maximum number of reasons for a refusal that an error lists.
const MAX_FINDINGS: usize = 10;

/// Plans the move of a namespace to another base. Returns `None` if it has this base already. Changes nothing.
/// `on_progress` is called for each page of quads. Blocking.
///
/// # Errors
/// - `ErrorClass::NotFound` if there is no such namespace
/// - `ErrorClass::Invalid` if the new base is not valid
/// - `ErrorClass::Conflict` if another namespace has the base, if two objects would get the same URI, or if a
///   definition or a shapes graph cannot be rewritten
/// - `ErrorClass::Damaged` if a move is in progress
pub fn plan_move(
    store: &ReadStore,
    name: &str,
    new_base: &str,
    on_progress: &mut dyn FnMut(MoveProgress),
) -> Result<Option<MovePlan>, GatewayError> {
    let read = store.read();
    if let Some(pending) = find_pending_move(&read)? {
        return Err(pending.to_error());
    }
    let namespace = namespace::get(&read, name)?
        .ok_or_else(|| missing_error(DefinitionKind::Namespace, name))?;
    namespace::check_base(new_base).map_err(|why| GatewayError::new(ErrorClass::Invalid, why))?;
    if namespace.uri_base == new_base {
        return Ok(None);
    }
    let rebase = Rebase::read(&read, &namespace, new_base)?;
    let others = KnownNamespaces::new(rebase.others().to_vec());
    check_base_is_free(rebase.to(), &others)?;
    natural_key::check_moved_base(&read, rebase.to(), &others)?;
    drop(read);
    let mut check = Check { store, rebase: &rebase, refused: Vec::new(), last: String::new() };
    let definitions = catalogue::preview_rebase(&store.read(), &rebase)?;
    check.refused.extend(definitions.refused);
    let shapes = shapes_graphs::preview_rebase(&store.read(), &rebase)?;
    check.refused.extend(shapes.refused);
    let quads = check.count_quads(on_progress)?;
    if !check.refused.is_empty() {
        let findings = check.refused.into_iter().take(MAX_FINDINGS);
        let whole = |message: String| Finding::whole(message);
        let findings = findings.map(whole).collect();
        return Err(GatewayError::with_findings(
            ErrorClass::Conflict,
            format!("the namespace {name:?} cannot be moved to <{new_base}>; nothing was changed"),
            findings,
        ));
    }
    let overlap = warnings::overlap_warning(rebase.to(), &others, &[]);
    Ok(Some(MovePlan {
        name: name.to_owned(),
        from: namespace.uri_base.clone(),
        to: new_base.to_owned(),
        quads,
        warnings: overlap.into_iter().chain(definitions.warnings).chain(shapes.warnings).collect(),
    }))
}

/// The check of all quads.
struct Check<'a> {
    store: &'a ReadStore,
    rebase: &'a Rebase,
    /// The reasons why the move is refused.
    refused: Vec<String>,
    /// The IRI that was checked last; neighbouring quads often share one.
    last: String,
}

impl Check<'_> {
    /// Counts the quads that the move rewrites, until there are enough reasons to refuse it.
    fn count_quads(
        &mut self,
        on_progress: &mut dyn FnMut(MoveProgress),
    ) -> Result<u64, GatewayError> {
        let mut position = Some(QuadPosition::default());
        let mut progress = MoveProgress::default();
        while let Some(from) = position {
            let mut page = Vec::new();
            position = self.store.read().visit_quads_from(&from, &mut |quad| {
                if page.len() == QUADS_PER_PAGE {
                    return ControlFlow::Break(());
                }
                page.push(quad);
                ControlFlow::Continue(())
            })?;
            for quad in &page {
                progress.quads += u64::from(self.rebase.rewrite_quad(quad).is_some());
                self.check_quad(quad)?;
            }
            progress.checked += page.len() as u64;
            on_progress(progress);
            if self.refused.len() >= MAX_FINDINGS {
                break;
            }
        }
        Ok(progress.quads)
    }

    fn check_quad(&mut self, quad: &Quad) -> Result<(), GatewayError> {
        if let NamedOrBlankNode::NamedNode(iri) = &quad.subject
            && iri.as_str() != self.last
        {
            iri.as_str().clone_into(&mut self.last);
            self.check_iri(iri)?;
        }
        self.check_iri(&quad.predicate)?;
        if let Term::NamedNode(iri) = &quad.object {
            self.check_iri(iri)?;
        }
        if let GraphName::NamedNode(iri) = &quad.graph_name {
            self.check_iri(iri)?;
        }
        Ok(())
    }

    fn check_iri(&mut self, iri: &NamedNode) -> Result<(), GatewayError> {
        if let Err(why) = self.rebase.check(iri.as_str()) {
            self.refuse(why);
        }
        // The new name of an IRI is looked up from the other side: IRIs below the new base are rare.
        for origin in self.rebase.origins_of(iri.as_str()) {
            if occurs(&self.store.read(), &origin)? {
                self.refuse(format!("<{origin}> would become <{}>, which exists", iri.as_str()));
            }
        }
        self.check_two_forms_of_base(iri)
    }

    /// The base `http://e/a` and the IRI `http://e/a/` are two IRIs of a namespace, and become one if the new base ends
    /// in a separator.
    fn check_two_forms_of_base(&mut self, iri: &NamedNode) -> Result<(), GatewayError> {
        let (from, to) = (self.rebase.from(), self.rebase.to());
        if *iri.as_str() == *from.identifier_prefix()
            && iri.as_str() != from.uri_base
            && to.identifier_prefix() == to.uri_base
            && occurs(&self.store.read(), &from.uri_base)?
        {
            let (base, other, to) = (&from.uri_base, iri.as_str(), &to.uri_base);
            self.refuse(format!("<{base}> and <{other}> would both become <{to}>"));
        }
        Ok(())
    }

    fn refuse(&mut self, why: String) {
        if self.refused.len() < MAX_FINDINGS && !self.refused.contains(&why) {
            self.refused.push(why);
        }
    }
}

/// Returns whether an IRI occurs in a quad.
fn occurs(read: &dyn Read, iri: &str) -> Result<bool, Error> {
    let iri = NamedNode::new_unchecked(iri);
    let any = Pattern::default;
    for pattern in [
        Pattern { subject: Some(iri.clone().into()), ..any() },
        Pattern { object: Some(iri.clone().into()), ..any() },
        Pattern { graph: Some(iri.clone().into()), ..any() },
        Pattern { predicate: Some(iri), ..any() },
    ] {
        if read.any(&pattern)? {
            return Ok(true);
        }
    }
    Ok(false)
}
