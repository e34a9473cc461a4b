//! Which media types a request accepts: the ranges of its `Accept` (RFC 9110, 12.5.1).
use salvo::http::header::{ACCEPT, HeaderMap};

/// One media range of `Accept`, with its weight in thousandths.
#[derive(Debug, PartialEq, Eq)]
pub struct MediaRange {
    /// The range, in lower case: a media type, or with `*` for its subtype or for both.
    pub range: String,
    weight: u16,
}

/// Returns the ranges that the request accepts, or `*/*` without `Accept`.
pub fn accepted_ranges(headers: &HeaderMap) -> Vec<MediaRange> {
    let lines = headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
    let ranges: Vec<_> = lines.flat_map(parse_ranges).collect();
    if ranges.is_empty() { vec![MediaRange { range: "*/*".into(), weight: 1000 }] } else { ranges }
}

fn parse_ranges(line: &str) -> Vec<MediaRange> {
    let ranges = line.split(',').map(str::trim).filter(|range| !range.is_empty());
    ranges
        .map(|range| {
            let mut parts = range.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default().to_ascii_lowercase();
            let weight = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
            let weight = weight.map_or(Some(1.0), |text| text.parse::<f32>().ok());
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "0 to 1000"
            )]
            let quality = weight.map_or(0, |q| (q.clamp(0.0, 1.0) * 1000.0).round() as u16);
            MediaRange { range: name, weight: quality }
        })
        .collect()
}

/// Returns the weight of a media type: that of the most specific range that contains it.
pub fn media_type_weight(accepted: &[MediaRange], media_type: &str) -> u16 {
    let of = |range: &str| accepted.iter().find(|r| r.range == range).map(|r| r.weight);
    let group = media_type.split_once('/').map_or("*/*".into(), |(kind, _)| format!("{kind}/*"));
    of(media_type).or_else(|| of(&group)).or_else(|| of("*/*")).unwrap_or(0)
}

/// Whether the request asks for a page, as browsers do and programs do not: it names `text/html`.
pub fn accepts_html(headers: &HeaderMap) -> bool {
    accepted_ranges(headers).iter().any(|accepted| accepted.range == "text/html")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_range_decides() {
        let accepted = parse_ranges("text/*;q=0.5, application/json ;q=0, */*;q=0.1, text/turtle");
        assert_eq!(media_type_weight(&accepted, "text/turtle"), 1000);
        assert_eq!(media_type_weight(&accepted, "text/plain"), 500);
        assert_eq!(media_type_weight(&accepted, "application/json"), 0);
        assert_eq!(media_type_weight(&accepted, "application/n-triples"), 100);
        assert_eq!(media_type_weight(&parse_ranges("image/png"), "text/turtle"), 0);
        assert_eq!(media_type_weight(&parse_ranges("text/turtle;q=x"), "text/turtle"), 0);
    }
}
