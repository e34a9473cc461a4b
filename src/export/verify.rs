//! Verifies export files: form, count and checksum, in one pass and bounded memory.
use super::file::CHECKSUM_ALGORITHM;
pub use super::file::{ExtendedMetadata, Metadata};
use super::key;
pub(super) use super::tokens::ParseError;
use super::tokens::Tokenizer;
use penstock_base::error::{ErrorClass, Finding, GatewayError};
use penstock_base::hex::encode_hex;
use std::fs::File;
use std::path::Path;

/// Reads an export file as a stream and checks its form, count and checksum. A file with the ending `.jsonl` is checked
/// together with the `.meta.json` beside it, whichever of the two `path` is.
///
/// # Errors
/// `ErrorClass::Invalid` with the expected and found values. `ErrorClass::NotFound` if the file does not exist,
/// `ErrorClass::Internal` if it cannot be read.
pub fn verify_file(path: &Path) -> Result<Metadata, GatewayError> {
    let text = path.to_str().unwrap_or_default();
    let (metadata_path, lines_path) = match (key::metadata_key(text), key::lines_key(text)) {
        (Some(metadata), _) => (metadata.into(), path.to_owned()),
        (None, Some(lines)) => (path.to_owned(), lines.into()),
        (None, None) => {
            return read_file(open_file(path)?).map_err(|error| to_file_error(path, error));
        }
    };
    let metadata = read_metadata_document(open_file(&metadata_path)?).map_err(|error| {
        let error = to_file_error(&metadata_path, error);
        let name = metadata_path.file_name().unwrap_or_default().to_string_lossy();
        GatewayError { detail: format!("its metadata {name}: {}", error.detail), ..error }
    })?;
    read_lines(metadata, open_file(&lines_path)?).map_err(|error| to_file_error(&lines_path, error))
}

fn open_file(path: &Path) -> Result<File, GatewayError> {
    File::open(path).map_err(|error| {
        let kind = match error.kind() {
            std::io::ErrorKind::NotFound => ErrorClass::NotFound,
            _ => ErrorClass::Internal,
        };
        GatewayError::new(kind, format!("{} cannot be read: {error}", path.display()))
    })
}

fn to_file_error(path: &Path, error: ParseError) -> GatewayError {
    match error {
        ParseError::Unreadable(error) => GatewayError::new(
            ErrorClass::Internal,
            format!("{} cannot be read: {error}", path.display()),
        ),
        error => to_gateway_error(error),
    }
}

/// Converts the reason why a file is not valid into an error for the user.
pub(super) fn to_gateway_error(error: ParseError) -> GatewayError {
    match error {
        ParseError::Unreadable(error) => {
            GatewayError::new(ErrorClass::Internal, format!("it cannot be read: {error}"))
        }
        ParseError::Unexpected { at, what } => {
            invalid_file(vec![Finding::whole(format!("byte {at}: {what}"))])
        }
        ParseError::Mismatch(findings) => invalid_file(findings),
    }
}

fn invalid_file(findings: Vec<Finding>) -> GatewayError {
    GatewayError::with_findings(ErrorClass::Invalid, "this is not a valid export file", findings)
}

/// Reads and checks an export file to its end.
pub(super) fn read_file(file: impl std::io::Read) -> Result<Metadata, ParseError> {
    let mut tokens = Tokenizer::new(file);
    let expected = read_metadata(&mut tokens)?;
    tokens.expect_token(b',')?;
    tokens.expect_member("data")?;
    let (objects, digest) = tokens.read_hashed(count_objects)?;
    tokens.expect_token(b'}')?;
    tokens.expect_end()?;
    compare_with_data(expected, objects, &digest)
}

/// Reads a document that has only the metadata.
pub(super) fn read_metadata_document(file: impl std::io::Read) -> Result<Metadata, ParseError> {
    let mut tokens = Tokenizer::new(file);
    let metadata = read_metadata(&mut tokens)?;
    tokens.expect_token(b'}')?;
    tokens.expect_end()?;
    Ok(metadata)
}

/// Reads lines with one object each to their end, and compares them with their metadata.
pub(super) fn read_lines(
    expected: Metadata,
    file: impl std::io::Read,
) -> Result<Metadata, ParseError> {
    let mut tokens = Tokenizer::of_lines(file);
    let (objects, digest) = tokens.read_hashed(count_lines)?;
    compare_with_data(expected, objects, &digest)
}

fn compare_with_data(
    expected: Metadata,
    objects: u64,
    digest: &[u8],
) -> Result<Metadata, ParseError> {
    let mut findings = Vec::new();
    let mut compare = |pointer: &str, said: &str, found: &str| {
        if said != found {
            findings.push(Finding::at_pointer(
                pointer,
                format!("expected {found}, as `data` has it; found {said}"),
            ));
        }
    };
    compare("/metadata/object_count", &expected.object_count.to_string(), &objects.to_string());
    compare("/metadata/data_checksum", &expected.data_checksum, &encode_hex(digest));
    if findings.is_empty() { Ok(expected) } else { Err(ParseError::Mismatch(findings)) }
}

/// Reads the beginning of a file and its metadata, without checking them against the data.
fn read_metadata<R: std::io::Read>(tokens: &mut Tokenizer<R>) -> Result<Metadata, ParseError> {
    tokens.expect_exact(b'{', "an export file begins with `{`")?;
    tokens.expect_member("metadata")?;
    tokens.expect_token(b'{')?;
    tokens.expect_member("export_date")?;
    let (at, export_date) = (tokens.offset(), tokens.read_string()?);
    if !is_compact(&export_date) {
        return Err(ParseError::unexpected_value(
            at,
            "`export_date` of the form <YYYYMMDD>T<HHMMSS>Z",
            &export_date,
        ));
    }
    let object_type = read_string_member(tokens, "object_type")?;
    let object_count = read_number_member(tokens, "object_count")?;
    tokens.expect_token(b',')?;
    tokens.expect_member("data_checksum")?;
    let (at, data_checksum) = (tokens.offset(), tokens.read_string()?);
    if data_checksum.len() != 64
        || !data_checksum.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'a'..=b'f'))
    {
        return Err(ParseError::unexpected_value(
            at,
            "64 lowercase hexadecimal digits",
            &data_checksum,
        ));
    }
    tokens.expect_token(b',')?;
    tokens.expect_member("checksum_algorithm")?;
    let (at, algorithm) = (tokens.offset(), tokens.read_string()?);
    if algorithm != CHECKSUM_ALGORITHM {
        let expected = format!("`{CHECKSUM_ALGORITHM}`");
        return Err(ParseError::unexpected_value(at, &expected, &algorithm));
    }
    let extended = if tokens.peek()? == Some(b',') { Some(read_extended(tokens)?) } else { None };
    tokens.expect_token(b'}')?;
    Ok(Metadata {
        export_date,
        object_type,
        object_count,
        data_checksum,
        checksum_algorithm: CHECKSUM_ALGORITHM,
        extended,
    })
}

/// Reads the further members of extended metadata.
fn read_extended<R: std::io::Read>(
    tokens: &mut Tokenizer<R>,
) -> Result<ExtendedMetadata, ParseError> {
    tokens.expect_token(b',')?;
    tokens.expect_member("kind")?;
    let (at, kind) = (tokens.offset(), tokens.read_string()?);
    if !matches!(kind.as_str(), "full" | "incremental" | "deleted") {
        let expected = "`full`, `incremental` or `deleted`";
        return Err(ParseError::unexpected_value(at, expected, &kind));
    }
    Ok(ExtendedMetadata {
        kind,
        sequence: read_number_member(tokens, "sequence")?,
        gateway_id: read_string_member(tokens, "gateway_id")?,
        export_id: read_string_member(tokens, "export_id")?,
        schema_version: read_number_member(tokens, "schema_version")?,
        commit: read_number_member(tokens, "commit")?,
    })
}

fn read_string_member<R: std::io::Read>(
    tokens: &mut Tokenizer<R>,
    name: &str,
) -> Result<String, ParseError> {
    tokens.expect_token(b',')?;
    tokens.expect_member(name)?;
    tokens.read_string()
}

fn read_number_member<R: std::io::Read>(
    tokens: &mut Tokenizer<R>,
    name: &str,
) -> Result<u64, ParseError> {
    tokens.expect_token(b',')?;
    tokens.expect_member(name)?;
    let (at, digits) = (tokens.offset(), tokens.read_number()?);
    let expected = format!("a whole number as `{name}`");
    digits.parse().map_err(|_| ParseError::unexpected_value(at, &expected, &digits))
}

/// Reads the array of objects and counts them.
fn count_objects<R: std::io::Read>(tokens: &mut Tokenizer<R>) -> Result<u64, ParseError> {
    tokens.expect_token(b'[')?;
    if tokens.peek()? == Some(b']') {
        tokens.expect_token(b']')?;
        return Ok(0);
    }
    let mut count = 0;
    loop {
        if tokens.peek()? != Some(b'{') {
            return Err(tokens.unexpected_token("an object in `data`")?);
        }
        tokens.skip_value()?;
        count += 1;
        if tokens.peek()? != Some(b',') {
            tokens.expect_token(b']')?;
            return Ok(count);
        }
        tokens.expect_token(b',')?;
    }
}

/// Reads the lines and counts their objects.
fn count_lines<R: std::io::Read>(tokens: &mut Tokenizer<R>) -> Result<u64, ParseError> {
    let mut count = 0;
    while !tokens.is_at_end()? {
        if tokens.peek()? != Some(b'{') {
            return Err(tokens.unexpected_token("an object on each line")?);
        }
        tokens.skip_value()?;
        tokens.expect_exact(b'\n', "a line has one object and ends after it")?;
        count += 1;
    }
    Ok(count)
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

    fn valid_file(data: &str, count: &str) -> String {
        format!(
            "{{\"metadata\":{{\"export_date\":\"20260301T120000Z\",\"object_type\":\"Pümp \\\"1\\\"\",\
             \"object_count\":{count},\"data_checksum\":\"{}\",\"checksum_algorithm\":\"SHA-256\"   }},\"data\":{data}}}",
            encode_hex(&Sha256::digest(data))
        )
    }

    #[test]
    fn valid_files_pass() {
        let data = r#"[{"a":[1,-2.5e+3,true,false,null,{"b":"\u00e9\ud83d\ude00 ü😀"}]},{}, {"x" : [ ] }]"#;
        let verified = read_file(valid_file(data, "3").as_bytes()).unwrap();
        assert_eq!((verified.object_count, verified.object_type.as_str()), (3, "Pümp \"1\""));
        assert_eq!(read_file(valid_file("[]", "0").as_bytes()).unwrap().object_count, 0);
    }

    #[test]
    fn every_truncation_and_every_flipped_byte_is_detected() {
        let text = valid_file(r#"[{"uri":"urn:a","v":[1.5,true,null]},{"uri":"urn:ü"}]"#, "2");
        for cut in 0..text.len() {
            assert!(read_file(&text.as_bytes()[..cut]).is_err(), "cut at {cut}");
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
                assert!(read_file(&bytes[..]).is_err(), "{}", String::from_utf8_lossy(&bytes));
            }
        }
    }

    #[test]
    fn errors_name_the_expected_and_found_values() {
        let said = |text: &str| match read_file(text.as_bytes()).unwrap_err() {
            ParseError::Unexpected { what, .. } => what,
            ParseError::Mismatch(findings) => findings.iter().map(ToString::to_string).collect(),
            ParseError::Unreadable(error) => error.to_string(),
        };
        let good = valid_file("[{}]", "1");
        assert!(said(&valid_file("[{}]", "2")).contains("expected 1, as `data` has it; found 2"));
        assert!(said(&good.replace("[{}]", "[{ }]")).contains("/metadata/data_checksum: expected"));
        assert!(said(&format!("{good}\n")).contains("the end of the file"));
        assert!(said(&good.replace("SHA-256", "MD5")).contains("expected `SHA-256`, found `MD5`"));
        assert!(said(&good.replace("object_type", "type")).contains("expected `object_type`"));
        assert!(said(&valid_file("[1]", "1")).contains("an object in `data`"));
        assert!(said(&valid_file("[{\"a\":1,}]", "1")).contains("expected"));
        assert!(said(&valid_file("[{\"a\":01}]", "1")).contains("expected"));
        assert!(said(&valid_file("[{\"a\":\"\\x\"}]", "1")).contains("escape"));
    }

    const EXTENDED: &str = concat!(
        r#","kind":"deleted","sequence":7,"gateway_id":"gw-1","export_id":"e-1","schema_version":3,"#,
        r#""commit":77"#
    );

    /// Returns the metadata of lines as a document.
    fn metadata_of(lines: &str, count: u64, extended: &str) -> String {
        format!(
            "{{\"metadata\":{{\"export_date\":\"20260301T120000Z\",\"object_type\":\"Pump\",\
             \"object_count\":{count},\"data_checksum\":\"{}\",\"checksum_algorithm\":\"SHA-256\"{extended}}}}}",
            encode_hex(&Sha256::digest(lines))
        )
    }

    fn read_pair(metadata: &str, lines: &str) -> Result<Metadata, ParseError> {
        read_lines(read_metadata_document(metadata.as_bytes())?, lines.as_bytes())
    }

    #[test]
    fn lines_are_checked_with_their_metadata() {
        for (lines, count) in [("", 0), ("{}\n", 1), ("{\"a\":[1,{}]}\n{\"uri\":\"urn:ü\"}\n", 2)]
        {
            let metadata = metadata_of(lines, count, "");
            assert_eq!(read_pair(&metadata, lines).unwrap().object_count, count);
            for cut in 0..lines.len() {
                assert!(
                    read_lines(
                        read_metadata_document(metadata.as_bytes()).unwrap(),
                        &lines.as_bytes()[..cut]
                    )
                    .is_err(),
                    "cut at {cut}"
                );
            }
            assert!(read_pair(&metadata_of(lines, count + 1, ""), lines).is_err());
        }
        for lines in
            ["{}", "{}\n\n", "\n{}\n", "{}{}\n", "{\n}\n", "1\n", "[{}]\n", "{} \n", "{}\r\n"]
        {
            assert!(read_pair(&metadata_of(lines, 1, ""), lines).is_err(), "{lines:?}");
        }
        assert!(read_pair(&format!("{}\n", metadata_of("", 0, "")), "").is_err());
    }

    #[test]
    fn extended_metadata_has_all_its_members_or_none() {
        let good = valid_file("[{}]", "1").replace("   }", &format!("{EXTENDED} }}"));
        let extended = read_file(good.as_bytes()).unwrap().extended.unwrap();
        assert_eq!(
            (extended.kind.as_str(), extended.sequence, extended.commit),
            ("deleted", 7, 77)
        );
        assert_eq!((extended.gateway_id.as_str(), extended.export_id.as_str()), ("gw-1", "e-1"));
        assert_eq!(read_pair(&metadata_of("", 0, EXTENDED), "").unwrap().extended, Some(extended));
        for broken in [
            good.replace(",\"commit\":77", ""),
            good.replace("\"deleted\"", "\"all\""),
            good.replace("\"sequence\":7", "\"sequence\":-7"),
            good.replace("\"commit\":77", "\"commit\":77,\"more\":1"),
        ] {
            assert!(read_file(broken.as_bytes()).is_err(), "{broken}");
        }
    }

    #[test]
    fn a_file_of_lines_is_found_by_either_name() {
        let dir = tempfile::tempdir().unwrap();
        let (lines, metadata) = (dir.path().join("x.jsonl"), dir.path().join("x.meta.json"));
        std::fs::write(&lines, "{}\n").unwrap();
        assert_eq!(verify_file(&lines).unwrap_err().class, ErrorClass::NotFound);
        std::fs::write(&metadata, metadata_of("{}\n", 1, "")).unwrap();
        for path in [&lines, &metadata] {
            assert_eq!(verify_file(path).unwrap().object_count, 1);
        }
        std::fs::write(&metadata, "{").unwrap();
        let error = verify_file(&lines).unwrap_err();
        assert!(error.to_string().contains("its metadata x.meta.json"), "{error}");
    }

    #[test]
    fn deep_nesting_needs_no_stack() {
        let data = format!("[{{\"a\":{}{}}}]", "[".repeat(200_000), "]".repeat(200_000));
        assert_eq!(read_file(valid_file(&data, "1").as_bytes()).unwrap().object_count, 1);
    }
}
