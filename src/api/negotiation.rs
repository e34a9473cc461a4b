//! Chooses the format of an answer by `Accept` (RFC 9110, 12.5.1).
use penstock_http::accept::AcceptedTypes;
use penstock_http::problem::Problem;
use salvo::http::StatusCode;
use salvo::http::header::{HeaderValue, VARY};

/// Returns the media type and the format that the request prefers, the first one of equals.
///
/// # Errors
/// 406 with the offered media types if the request accepts none of them.
pub(crate) fn negotiate<T: Copy>(
    accepted: &AcceptedTypes,
    offered: &[(&'static str, T)],
) -> Result<(&'static str, T), Problem> {
    let mut best: Option<(u16, &'static str, T)> = None;
    for (media_type, format) in offered {
        let weight = accepted.weight_of(media_type);
        if weight > best.map_or(0, |(weight, ..)| weight) {
            best = Some((weight, *media_type, *format));
        }
    }
    best.map(|(_, media_type, format)| (media_type, format)).ok_or_else(|| {
        let offered: Vec<_> = offered.iter().map(|(media_type, _)| *media_type).collect();
        let detail =
            format!("Accept allows none of the offered media types: {}", offered.join(", "));
        Problem::new(StatusCode::NOT_ACCEPTABLE, detail)
            .with_header(VARY, HeaderValue::from_static("Accept"))
    })
}
