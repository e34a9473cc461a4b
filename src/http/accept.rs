//! What a request accepts: media types (RFC 9110, 12.5.1), content codings (12.5.3), and languages (12.5.4).
use super::encoding::Encoding;
use salvo::http::header::{ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, HeaderMap, HeaderName};
use std::cmp::Reverse;

/// The number of languages of a request that count.
const MAX_LANGUAGES: usize = 16;

/// The media types that a request accepts.
#[derive(Debug)]
pub struct AcceptedTypes(Vec<AcceptedRange>);

/// One element of a header.
#[derive(Debug, PartialEq, Eq)]
struct AcceptedRange {
    /// The media range, coding or language, in lower case.
    name: String,
    /// Its weight, in thousandths.
    weight: u16,
}

impl AcceptedTypes {
    /// Reads `Accept`. A request without it accepts every media type.
    pub fn from_headers(headers: &HeaderMap) -> Self {
        let mut ranges = read_ranges(headers, &ACCEPT);
        if ranges.is_empty() {
            ranges.push(AcceptedRange { name: "*/*".to_owned(), weight: 1000 });
        }
        Self(ranges)
    }

    /// Returns the weight of a media type in thousandths: that of the most specific range that contains it. 0 means that
    /// the request does not accept it.
    pub fn weight_of(&self, media_type: &str) -> u16 {
        let of = |name: &str| self.0.iter().find(|range| range.name == name).map(|r| r.weight);
        let group =
            media_type.split_once('/').map_or("*/*".into(), |(kind, _)| format!("{kind}/*"));
        of(media_type).or_else(|| of(&group)).or_else(|| of("*/*")).unwrap_or(0)
    }

    /// Whether the request names exactly this media type, with whatever weight.
    pub fn has_named(&self, media_type: &str) -> bool {
        self.0.iter().any(|range| range.name == media_type)
    }
}

/// Whether the request asks for a page, as browsers do and programs do not: it names `text/html`.
pub fn accepts_html(headers: &HeaderMap) -> bool {
    AcceptedTypes::from_headers(headers).has_named("text/html")
}

/// Whether the request accepts a response compressed with gzip.
pub fn accepts_gzip(headers: &HeaderMap) -> bool {
    let codings = read_ranges(headers, &ACCEPT_ENCODING);
    codings.iter().any(|coding| coding.name == "gzip" && coding.weight > 0)
}

/// Returns the coding that the response may be compressed with, the preferred one; `None` if it should not be.
pub(super) fn preferred_encoding(headers: &HeaderMap) -> Option<Encoding> {
    let codings = read_ranges(headers, &ACCEPT_ENCODING);
    let of = |name: &str| codings.iter().find(|coding| coding.name == name).map(|c| c.weight);
    let weight_of = |name| of(name).or_else(|| of("*")).unwrap_or(0);
    let least = of("identity").unwrap_or(0).max(1);
    // Of equal weights the first counts: `max_by_key` returns the last one.
    let known =
        Encoding::ALL.into_iter().rev().map(|encoding| (encoding, weight_of(encoding.name())));
    let (encoding, weight) = known.max_by_key(|(_, weight)| *weight)?;
    (weight >= least).then_some(encoding)
}

/// Returns the languages that the request accepts, the preferred one first.
pub fn read_languages(headers: &HeaderMap) -> Vec<String> {
    let mut languages = read_ranges(headers, &ACCEPT_LANGUAGE);
    languages.retain(|language| language.weight > 0 && language.name != "*");
    languages.sort_by_key(|language| Reverse(language.weight));
    languages.into_iter().take(MAX_LANGUAGES).map(|language| language.name).collect()
}

fn read_ranges(headers: &HeaderMap, name: &HeaderName) -> Vec<AcceptedRange> {
    let lines = headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(parse_ranges).collect()
}

fn parse_ranges(line: &str) -> impl Iterator<Item = AcceptedRange> {
    let ranges = line.split(',').map(str::trim).filter(|range| !range.is_empty());
    ranges.map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        let weight = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
        let weight = weight.map_or(Some(1.0), |text| text.parse::<f32>().ok());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1000")]
        let weight = weight.map_or(0, |q| (q.clamp(0.0, 1.0) * 1000.0).round() as u16);
        AcceptedRange { name, weight }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(name: HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn the_most_specific_range_decides() {
        let weight = |accept: &str, media_type: &str| {
            AcceptedTypes::from_headers(&accepted(ACCEPT, accept)).weight_of(media_type)
        };
        let several = "text/*;q=0.5, application/json ;q=0, */*;q=0.1, text/turtle";
        assert_eq!(weight(several, "text/turtle"), 1000);
        assert_eq!(weight(several, "text/plain"), 500);
        assert_eq!(weight(several, "application/json"), 0);
        assert_eq!(weight(several, "application/n-triples"), 100);
        assert_eq!(weight("image/png", "text/turtle"), 0);
        assert_eq!(weight("text/turtle;q=x", "text/turtle"), 0);
        let without = AcceptedTypes::from_headers(&HeaderMap::new());
        assert_eq!(without.weight_of("text/turtle"), 1000);
    }

    #[test]
    fn the_preferred_language_is_the_first() {
        let languages = |value: &str| read_languages(&accepted(ACCEPT_LANGUAGE, value));
        assert_eq!(languages("fr;q=0.5, de-AT, *;q=0.1, de;q=0.9, en;q=0"), ["de-at", "de", "fr"]);
        assert!(read_languages(&HeaderMap::new()).is_empty());
    }

    #[test]
    fn a_coding_with_the_weight_0_is_not_accepted() {
        for (value, is_accepted) in [
            ("gzip", true),
            ("br, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("gzip;q=0.000, br", false),
            ("br", false),
        ] {
            assert_eq!(accepts_gzip(&accepted(ACCEPT_ENCODING, value)), is_accepted, "{value}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

    #[test]
    fn the_coding_with_the_highest_weight_is_preferred() {
        for (value, preferred) in [
            ("gzip", Some(Encoding::Gzip)),
            ("gzip, deflate, br, zstd", Some(Encoding::Zstd)),
            ("gzip, zstd;q=0.5", Some(Encoding::Gzip)),
            ("zstd;q=0, *", Some(Encoding::Gzip)),
            ("*", Some(Encoding::Zstd)),
            ("br", None),
            ("gzip;q=0, identity", None),
            ("gzip;q=0.5, identity", None),
        ] {
            let headers = accepted(ACCEPT_ENCODING, value);
            assert_eq!(preferred_encoding(&headers), preferred, "{value}");
        }
        assert_eq!(preferred_encoding(&HeaderMap::new()), None);
    }
}
