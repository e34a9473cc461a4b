//! Reads when a certificate expires: the only X.509 field that is parsed here (RFC 5280, 4.1.2.5), in DER (X.690).
//! rustls does not expose it, and a parser of all of X.509 would be the largest reader of untrusted bytes here.
use jiff::Timestamp;

const SEQUENCE_TAG: u8 = 0x30;
const VERSION_TAG: u8 = 0xa0;
const UTC_TIME_TAG: u8 = 0x17;
const GENERALIZED_TIME_TAG: u8 = 0x18;

/// Returns when the certificate expires; `None` if it does not expire (the year 9999) or is not readable.
pub(super) fn not_after(der: &[u8]) -> Option<Timestamp> {
    let mut certificate = DerReader(DerReader(der).read_value(SEQUENCE_TAG)?);
    let mut fields = DerReader(certificate.read_value(SEQUENCE_TAG)?);
    if fields.0.first() == Some(&VERSION_TAG) {
        fields.next()?;
    }
    // Serial number, algorithm, issuer.
    for _ in 0..3 {
        fields.next()?;
    }
    let mut validity = DerReader(fields.read_value(SEQUENCE_TAG)?);
    validity.next()?;
    let (tag, time) = validity.next()?;
    parse_time(tag, std::str::from_utf8(time).ok()?)
}

fn parse_time(tag: u8, text: &str) -> Option<Timestamp> {
    let digits = text.strip_suffix('Z')?;
    let whole = match (tag, digits.len()) {
        // UTCTime has two digits for the year: from 50 on it means 19xx.
        (UTC_TIME_TAG, 12) if digits < "50" => format!("20{digits}"),
        (UTC_TIME_TAG, 12) => format!("19{digits}"),
        (GENERALIZED_TIME_TAG, 14) if digits.starts_with("9999") => return None,
        (GENERALIZED_TIME_TAG, 14) => digits.to_owned(),
        _ => return None,
    };
    let part = |from: usize, to: usize| whole.get(from..to);
    let (year, month, day) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
    let (hour, minute, second) = (part(8, 10)?, part(10, 12)?, part(12, 14)?);
    format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z").parse().ok()
}

/// A sequence of DER elements.
struct DerReader<'a>(&'a [u8]);

impl<'a> DerReader<'a> {
    /// Reads the next element, and returns its tag and value.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&[tag, first], rest) = self.0.split_first_chunk()?;
        let (length, rest) = match usize::from(first) {
            length @ ..0x80 => (length, rest),
            more => {
                let (bytes, rest) = rest.split_at_checked(more & 0x7f)?;
                let bytes = Some(bytes).filter(|bytes| (1..=3).contains(&bytes.len()))?;
                (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
            }
        };
        let (value, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, value))
    }

    /// Reads the next element, which must have this tag, and returns its value.
    fn read_value(&mut self, expected: u8) -> Option<&'a [u8]> {
        self.next().filter(|(tag, _)| *tag == expected).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create_certificate_until(year: i32) -> Vec<u8> {
        let mut parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        parameters.not_before = rcgen::date_time_ymd(2020, 1, 1);
        parameters.not_after = rcgen::date_time_ymd(year, 12, 31);
        let key = rcgen::KeyPair::generate().unwrap();
        parameters.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn the_expiry_is_that_of_the_certificate() {
        for year in [2026, 2049, 2050, 9998] {
            let end = not_after(&create_certificate_until(year)).unwrap().to_string();
            assert_eq!(end, format!("{year}-12-31T00:00:00Z"));
        }
        assert_eq!(not_after(&create_certificate_until(9999)), None);
        assert_eq!(
            parse_time(UTC_TIME_TAG, "991231235959Z").unwrap().to_string(),
            "1999-12-31T23:59:59Z"
        );
    }

    #[test]
    fn arbitrary_bytes_do_not_panic() {
        let whole = create_certificate_until(2030);
        for end in 0..whole.len() {
            let _ = not_after(&whole[..end]);
        }
        for at in 0..whole.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut mutated = whole.clone();
                mutated[at] ^= flip;
                let _ = not_after(&mutated);
            }
        }
        assert_eq!(not_after(b""), None);
        assert_eq!(not_after(&[SEQUENCE_TAG, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
    }
}
