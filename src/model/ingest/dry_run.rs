//! Dry run: shows what sample data would become with a definition that is not stored yet.
use super::documents::with_objects;
use super::run::apply_request;
use super::{Answer, Body, BodyForm, Limits, Mode, Request, value_limit};
use crate::change_feed::Watch;
use crate::resource::Compiled;
use crate::view;
use oxrdf::{NamedNode, NamedOrBlankNode, Quad};
use penstock_base::error::{Finding, GatewayError};
use penstock_store::{Pattern, Read as _, Transaction};

/// The result of a dry run.
#[derive(Debug)]
pub struct DryRun {
    /// The answer of VALIDATE, in which minted URIs are examples.
    pub answer: Answer,
    /// The quads that are not stored yet.
    pub added: Vec<Quad>,
    /// Each object as the view would return it, in the order of the request.
    pub views: Vec<RenderedObject>,
}

/// An object as the view returns it.
#[derive(Debug)]
pub struct RenderedObject {
    /// Its URI.
    pub uri: String,
    /// The object as JSON without white space.
    pub json: Vec<u8>,
    /// The warnings of the view.
    pub warnings: Vec<Finding>,
}

/// Ingests a body of this form in the mode VALIDATE and collects the effects. The caller must end the transaction
/// without a commit, as [`Catalogue::dry_run`](crate::catalogue::Catalogue::dry_run) does.
///
/// # Errors
/// Returns the errors of the data, as an ingestion would report them.
pub fn dry_run_ingestion(
    transaction: &mut Transaction<'_>,
    limits: &Limits,
    business_object: &Compiled,
    form: BodyForm,
    body: Body<'_>,
) -> Result<DryRun, GatewayError> {
    value_limit::check_body(body, limits.values)?;
    let watch = Watch::default();
    let sent = Request::of_gateway(business_object, Mode::Validate, "", &watch, body);
    let (applied, _) =
        with_objects(&Request { form, ..sent }, limits, |request, limits, places| {
            apply_request(transaction, limits, request, places)
        })?;
    let answer = applied.answer;
    let mut added = Vec::new();
    for (subject, _) in transaction.changed_subjects()? {
        for quad in transaction.quads_about(&NamedOrBlankNode::from(subject))? {
            let same = Pattern {
                subject: Some(quad.subject.clone()),
                predicate: Some(quad.predicate.clone()),
                object: Some(quad.object.clone()),
                graph: Some(quad.graph_name.clone()),
            };
            if !transaction.prior_state().any(&same)? {
                added.push(quad);
            }
        }
    }
    let shape = &business_object.mapping.root;
    let mut views = Vec::with_capacity(answer.objects.len());
    for outcome in &answer.objects {
        let (mut json, mut warnings) = (Vec::new(), Vec::new());
        let uri = NamedNode::new_unchecked(&outcome.uri);
        view::render_object(transaction, shape, &uri, &mut json, &mut warnings)?;
        views.push(RenderedObject { uri: outcome.uri.clone(), json, warnings });
    }
    Ok(DryRun { answer, added, views })
}
