//! Verifies export files: form, count and checksum, in one pass and bounded memory.
use super::file::hex;
pub(super) use super::tokens::Broken;
use super::tokens::Tokens;
use penstock_base::fault::{Fault, Finding, Kind, Place};
use std::fs::File;
use std::path::Path;

/// The metadata of a valid file.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verified {
    /// `metadata.export_date`
    pub export_date: String,
    /// `metadata.object_type`
    pub object_type: String,
    /// `metadata.object_count`, which is the number of objects in `data`.
    pub object_count: u64,
    /// `metadata.data_checksum`, which is the SHA-256 of the bytes of `data`.
    pub data_checksum: String,
}

/// Reads an export file as a stream and checks its form, count and checksum.
///
/// # Errors
/// `Kind::Invalid` with the expected and found values, `Kind::NotFound` if the file does not exist.
pub fn file(path: &Path) -> Result<Verified, Fault> {
    let file = File::open(path).map_err(|error| {
        let kind = match error.kind() {
            std::io::ErrorKind::NotFound => Kind::NotFound,
            _ => Kind::Internal,
        };
        Fault::new(kind, format!("{} cannot be read: {error}", path.display()))
    })?;
    read(file).map_err(|broken| match broken {
        Broken::Unreadable(error) => {
            Fault::new(Kind::Internal, format!("{} cannot be read: {error}", path.display()))
        }
        broken => fault(broken),
    })
}

/// Converts the reason why a file is not valid.
pub(super) fn fault(broken: Broken) -> Fault {
    match broken {
        Broken::Unreadable(error) => {
            Fault::new(Kind::Internal, format!("it cannot be read: {error}"))
        }
        Broken::Wrong { at, what } => {
            invalid(vec![Finding { place: Place::Whole, message: format!("byte {at}: {what}") }])
        }
        Broken::Untrue(findings) => invalid(findings),
    }
}

fn invalid(findings: Vec<Finding>) -> Fault {
    Fault::with(Kind::Invalid, "this is not a valid export file", findings)
}

/// Reads and checks an export file to its end.
pub(super) fn read(file: impl std::io::Read) -> Result<Verified, Broken> {
    let mut tokens = Tokens::new(file);
    tokens.exact(b'{', "an export file begins with `{`")?;
    tokens.member("metadata")?;
    tokens.token(b'{')?;
    tokens.member("export_date")?;
    let (at, export_date) = (tokens.at(), tokens.string()?);
    if !is_compact(&export_date) {
        return Err(Broken::wrong(
            at,
            "`export_date` of the form <YYYYMMDD>T<HHMMSS>Z",
            &export_date,
        ));
    }
    tokens.token(b',')?;
    tokens.member("object_type")?;
    let object_type = tokens.string()?;
    tokens.token(b',')?;
    tokens.member("object_count")?;
    let (at, digits) = (tokens.at(), tokens.number()?);
    let object_count = digits
        .parse()
        .map_err(|_| Broken::wrong(at, "a whole number as `object_count`", &digits))?;
    tokens.token(b',')?;
    tokens.member("data_checksum")?;
    let (at, data_checksum) = (tokens.at(), tokens.string()?);
    if data_checksum.len() != 64
        || !data_checksum.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f'))
    {
        return Err(Broken::wrong(at, "64 lowercase hexadecimal digits", &data_checksum));
    }
    tokens.token(b',')?;
    tokens.member("checksum_algorithm")?;
    let (at, algorithm) = (tokens.at(), tokens.string()?);
    if algorithm != "SHA-256" {
        return Err(Broken::wrong(at, "`SHA-256`", &algorithm));
    }
    tokens.token(b'}')?;
    tokens.token(b',')?;
    tokens.member("data")?;
    let (objects, digest) = tokens.hashed(objects)?;
    tokens.token(b'}')?;
    tokens.end()?;

    let mut findings = Vec::new();
    let mut untrue = |pointer: &str, said: String, found: String| {
        if said != found {
            findings.push(Finding::at(
                pointer,
                format!("expected {found}, as `data` has it; found {said}"),
            ));
        }
    };
    untrue("/metadata/object_count", digits, objects.to_string());
    untrue("/metadata/data_checksum", data_checksum.clone(), hex(&digest));
    if findings.is_empty() {
        Ok(Verified { export_date, object_type, object_count, data_checksum })
    } else {
        Err(Broken::Untrue(findings))
    }
}

/// Reads the array of objects and counts them.
fn objects<R: std::io::Read>(tokens: &mut Tokens<R>) -> Result<u64, Broken> {
    tokens.token(b'[')?;
    if tokens.peek()? == Some(b']') {
        tokens.token(b']')?;
        return Ok(0);
    }
    let mut count = 0;
    loop {
        if tokens.peek()? != Some(b'{') {
            return Err(tokens.expected("an object in `data`")?);
        }
        tokens.skip_value()?;
        count += 1;
        if tokens.peek()? != Some(b',') {
            tokens.token(b']')?;
            return Ok(count);
        }
        tokens.token(b',')?;
    }
}

/// Returns whether this is a date and time of the form `20260301T120000Z`.
fn is_compact(text: &str) -> bool {
    text.len() == 16
        && text.ends_with('Z')
        && jiff::fmt::strtime::parse("%Y%m%dT%H%M%SZ", text).is_ok_and(|t| t.to_datetime().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    fn whole(data: &str, count: &str) -> String {
        format!(
            "{{\"metadata\":{{\"export_date\":\"20260301T120000Z\",\"object_type\":\"Pümp \\\"1\\\"\",\
             \"object_count\":{count},\"data_checksum\":\"{}\",\"checksum_algorithm\":\"SHA-256\"   }},\"data\":{data}}}",
            hex(&Sha256::digest(data))
        )
    }

    #[test]
    fn valid_files_pass() {
        let data = r#"[{"a":[1,-2.5e+3,true,false,null,{"b":"\u00e9\ud83d\ude00 ü😀"}]},{}, {"x" : [ ] }]"#;
        let verified = read(whole(data, "3").as_bytes()).unwrap();
        assert_eq!((verified.object_count, verified.object_type.as_str()), (3, "Pümp \"1\""));
        assert_eq!(read(whole("[]", "0").as_bytes()).unwrap().object_count, 0);
    }

    #[test]
    fn every_truncation_and_every_flipped_byte_is_detected() {
        let text = whole(r#"[{"uri":"urn:a","v":[1.5,true,null]},{"uri":"urn:ü"}]"#, "2");
        for cut in 0..text.len() {
            assert!(read(&text.as_bytes()[..cut]).is_err(), "cut at {cut}");
        }
        let padding = text.find("   }").unwrap();
        let free = text.find("20260301T120000Z").unwrap()..text.find("object_count").unwrap();
        for place in 0..text.len() {
            // Other white space is also valid, and no checksum covers the date and the name.
            if (padding..padding + 3).contains(&place) || free.contains(&place) {
                continue;
            }
            for flip in [0x01, 0x20, 0x80] {
                let mut bytes = text.clone().into_bytes();
                bytes[place] ^= flip;
                assert!(read(&bytes[..]).is_err(), "{}", String::from_utf8_lossy(&bytes));
            }
        }
    }

    #[test]
    fn errors_name_the_expected_and_found_values() {
        let said = |text: &str| match read(text.as_bytes()).unwrap_err() {
            Broken::Wrong { what, .. } => what,
            Broken::Untrue(findings) => findings.iter().map(ToString::to_string).collect(),
            Broken::Unreadable(error) => error.to_string(),
        };
        let good = whole("[{}]", "1");
        assert!(said(&whole("[{}]", "2")).contains("expected 1, as `data` has it; found 2"));
        assert!(said(&good.replace("[{}]", "[{ }]")).contains("/metadata/data_checksum: expected"));
        assert!(said(&format!("{good}\n")).contains("the end of the file"));
        assert!(said(&good.replace("SHA-256", "MD5")).contains("expected `SHA-256`, found `MD5`"));
        assert!(said(&good.replace("object_type", "type")).contains("expected `object_type`"));
        assert!(said(&whole("[1]", "1")).contains("an object in `data`"));
        assert!(said(&whole("[{\"a\":1,}]", "1")).contains("expected"));
        assert!(said(&whole("[{\"a\":01}]", "1")).contains("expected"));
        assert!(said(&whole("[{\"a\":\"\\x\"}]", "1")).contains("escape"));
    }

    #[test]
    fn deep_nesting_needs_no_stack() {
        let data = format!("[{{\"a\":{}{}}}]", "[".repeat(200_000), "]".repeat(200_000));
        assert_eq!(read(whole(&data, "1").as_bytes()).unwrap().object_count, 1);
    }
}
