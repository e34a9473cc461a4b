//! The trace of a request (W3C Trace Context, level 1). Its id connects the log lines of several systems about one
//! operation.
use std::fmt;

/// The name of the header, and of the `CloudEvents` attribute (Distributed Tracing extension).
pub const TRACEPARENT_HEADER: &str = "traceparent";

/// The flag for a sampled trace. Other flags are not forwarded.
const SAMPLED: u8 = 1;

/// A position in a trace: the id of the trace and the id of this span. Its text form is the header `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace {
    id: u128,
    span: u64,
    flags: u8,
}

impl Trace {
    /// Continues the trace in a request's header with a new span id. Starts a new trace if the header is missing or
    /// invalid.
    pub fn from_header(header: Option<&str>) -> Self {
        let (id, flags) = header.and_then(parse_header).unwrap_or_else(|| (rand::random(), 0));
        // 0 is not a valid id.
        Self { id: id.max(1), span: rand::random::<u64>().max(1), flags }
    }

    /// Returns the id of the trace, 32 hexadecimal digits.
    pub fn id(&self) -> String {
        format!("{:032x}", self.id)
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.id, self.span, self.flags)
    }
}

/// Parses the trace and the flags of a header (3.2.2). Of later versions, only the fields of this version are read.
fn parse_header(header: &str) -> Option<(u128, u8)> {
    let mut parts = header.split('-');
    let version = parse_hex(parts.next()?, 2)?;
    let (id, parent) = (parse_hex(parts.next()?, 32)?, parse_hex(parts.next()?, 16)?);
    let flags = u8::try_from(parse_hex(parts.next()?, 2)?).ok()?;
    let is_whole = version > 0 || parts.next().is_none();
    (version < 0xff && id > 0 && parent > 0 && is_whole).then_some((id, flags & SAMPLED))
}

/// Parses a hexadecimal number with this number of digits, all in lower case.
fn parse_hex(text: &str, digits: usize) -> Option<u128> {
    let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    (text.len() == digits && text.bytes().all(is_hex)).then_some(())?;
    u128::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0af7651916cd43dd8448eb211c80319c";

    #[test]
    fn a_trace_continues_with_a_new_span_id() {
        let trace = Trace::from_header(Some(&format!("00-{ID}-b7ad6b7169203331-01")));
        assert_eq!(trace.id(), ID);
        let header = trace.to_string();
        assert!(header.starts_with(&format!("00-{ID}-")) && header.ends_with("-01"), "{header}");
        assert!(!header.contains("b7ad6b7169203331"), "{header}");
        assert_eq!(Trace::from_header(Some(&header)).id(), ID);
        let later =
            Trace::from_header(Some(&format!("cc-{ID}-b7ad6b7169203331-ff-what-comes-later")));
        assert_eq!((later.id().as_str(), later.flags), (ID, 1));
    }

    #[test]
    fn an_invalid_header_starts_a_new_trace() {
        let parent = "b7ad6b7169203331";
        for bad in [
            String::new(),
            ID.to_owned(),
            format!("00-{ID}-{parent}"),
            format!("00-{ID}-{parent}-01-"),
            format!("00-{ID}-{parent}-1"),
            format!("ff-{ID}-{parent}-01"),
            format!("00-{}-{parent}-01", ID.to_uppercase()),
            format!("00-{}-{parent}-01", "0".repeat(32)),
            format!("00-{ID}-{}-01", "0".repeat(16)),
            format!("00-{ID} -{parent}-01"),
            format!("00-+{}-{parent}-01", &ID[1..]),
            "00-äöüäöüäöüäöüäöüä-b7ad6b7169203331-01".to_owned(),
        ] {
            let trace = Trace::from_header(Some(&bad));
            assert_ne!(trace.id(), ID, "{bad:?}");
            assert_eq!(trace.to_string().len(), 55);
        }
        assert_ne!(Trace::from_header(None), Trace::from_header(None));
    }
}
