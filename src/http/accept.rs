//! Which media types a request accepts: the ranges of its `Accept` (RFC 9110, 12.5.1).
use salvo::http::header::{ACCEPT, HeaderMap};

/// One media range of `Accept`, with its weight in thousandths.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) range: String,
    quality: u16,
}

/// Returns the ranges that the request accepts, or `*/*` without `Accept`.
pub(super) fn accepted(headers: &HeaderMap) -> Vec<Range> {
    let lines = headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
    let ranges: Vec<_> = lines.flat_map(ranges).collect();
    if ranges.is_empty() { vec![Range { range: "*/*".into(), quality: 1000 }] } else { ranges }
}

fn ranges(line: &str) -> Vec<Range> {
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
            Range { range: name, quality }
        })
        .collect()
}

/// Returns the weight of a media type: that of the most specific range that contains it.
pub(super) fn quality(accepted: &[Range], media_type: &str) -> u16 {
    let of = |range: &str| accepted.iter().find(|r| r.range == range).map(|r| r.quality);
    let group = media_type.split_once('/').map_or("*/*".into(), |(kind, _)| format!("{kind}/*"));
    of(media_type).or_else(|| of(&group)).or_else(|| of("*/*")).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_range_decides() {
        let accepted = ranges("text/*;q=0.5, application/json ;q=0, */*;q=0.1, text/turtle");
        assert_eq!(quality(&accepted, "text/turtle"), 1000);
        assert_eq!(quality(&accepted, "text/plain"), 500);
        assert_eq!(quality(&accepted, "application/json"), 0);
        assert_eq!(quality(&accepted, "application/n-triples"), 100);
        assert_eq!(quality(&ranges("image/png"), "text/turtle"), 0);
        assert_eq!(quality(&ranges("text/turtle;q=x"), "text/turtle"), 0);
    }
}
