//! Decides whether a request becomes a change, which needs an approval.
use super::{Body, Mode, OnError, Request, ReviewStep, Submission};
use penstock_base::error::{ErrorClass, GatewayError};
use penstock_resources::business_object::Review;

/// Returns whether the request becomes a change, or computes one again. Then nothing of it is stored before it is
/// approved.
pub(super) fn is_under_review(request: &Request<'_>) -> bool {
    let review = request.business_object.object.definition.review();
    match request.review {
        ReviewStep::Replay(_) => true,
        ReviewStep::Submit(_) => request.mode != Mode::Validate,
        ReviewStep::None => request.mode != Mode::Validate && review == Review::Required,
    }
}

/// Returns what the client says about its change, if the request is to become one.
///
/// # Errors
/// - `ErrorClass::Conflict` if it asks for a review that the Business Object does not have, and for the retry of a dead
///   letter
/// - `ErrorClass::Malformed` if it is combined with `onError=skip` or with `If-Match`
/// - `ErrorClass::UnsupportedMediaType` for a stream
pub(super) fn find_submission<'a>(
    request: &Request<'a>,
) -> Result<Option<Submission<'a>>, GatewayError> {
    let definition = &request.business_object.object.definition;
    let review = definition.review();
    let submission = match (request.review, review) {
        (ReviewStep::Submit(_), Review::Off) => {
            return Err(GatewayError::new(
                ErrorClass::Conflict,
                format!(
                    "the Business Object {:?} has no review, so the request cannot become a change; leave out review and \
                     change owners, or let an Admin set `review`",
                    definition.name
                ),
            ));
        }
        // It stores nothing in any case.
        (_, _) if request.mode == Mode::Validate => return Ok(None),
        (ReviewStep::Submit(submission), _) => submission,
        (ReviewStep::None, Review::Required) => Submission::default(),
        (ReviewStep::None | ReviewStep::Replay(_), _) => return Ok(None),
    };
    let (class, why) = if request.retried_letter.is_some() {
        (
            ErrorClass::Conflict,
            "a dead letter cannot become a change; ingest its object, and delete it",
        )
    } else if request.on_error == OnError::Skip {
        (
            ErrorClass::Malformed,
            "onError=skip cannot be combined with a review; send only valid objects",
        )
    } else if request.condition.is_some_and(|condition| !condition.allows_review()) {
        (
            ErrorClass::Malformed,
            "If-Match and If-None-Match cannot be combined with a review; leave them out: an approval is refused if the object has changed \
             since the difference was computed",
        )
    } else if !matches!(request.body, Body::Json(_)) {
        (
            ErrorClass::UnsupportedMediaType,
            "a stream cannot be reviewed; send the objects as application/json",
        )
    } else {
        return Ok(Some(submission));
    };
    let message = match review {
        Review::Required => {
            format!("the Business Object {:?} requires a review: {why}", definition.name)
        }
        _ => why.to_owned(),
    };
    Err(GatewayError::new(class, message))
}
