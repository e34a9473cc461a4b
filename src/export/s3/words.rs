//! What a server answers and what breaks on the way, in words for an operator.

/// What an answer of S3 means.
pub(super) fn answer(status: u16, body: &str, bucket: &str, endpoint: &str) -> String {
    let code = element(body, "Code").unwrap_or_default();
    match (status, code) {
        (_, "InvalidAccessKeyId") => {
            format!("{endpoint} does not know the `access-key-id` of the target")
        }
        (_, "SignatureDoesNotMatch") => {
            format!(
                "{endpoint} refuses the credentials: the `secret-access-key` of the target is wrong"
            )
        }
        (_, "RequestTimeTooSkewed") => {
            format!("the clock of the gateway and that of {endpoint} differ too much; set the time")
        }
        (_, "NoSuchBucket") => {
            format!("the bucket `{bucket}` does not exist at {endpoint}; create it")
        }
        (_, "QuotaExceeded") => format!("the quota of the bucket `{bucket}` is used up"),
        (401 | 403, _) => format!(
            "the credentials of the target may not write to the bucket `{bucket}` at {endpoint} ({}); mend its policy",
            if code.is_empty() { "403" } else { code }
        ),
        (404, "") => format!("there is no bucket `{bucket}` at {endpoint}"),
        (300..=399, _) => {
            format!("the bucket `{bucket}` is elsewhere; mend the target's `endpoint` and `region`")
        }
        _ => {
            let message = element(body, "Message").unwrap_or_default();
            format!("{endpoint} answered {status} {} {}", bounded(code), bounded(message))
                .trim_end()
                .to_owned()
        }
    }
}

/// The text of the first XML element of this name.
fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    Some(rest.split_once("</")?.0)
}

/// The causes of an error, one after the other, without the URL, which says no more than the endpoint.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        next = error.source();
        let this = error.to_string();
        let this = this.split(" for url (").next().unwrap_or_default();
        if !text.contains(this) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(this);
        }
    }
    bounded(&text).to_owned()
}

pub(super) fn bounded(text: &str) -> &str {
    let end = (0..=300).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    text.get(..end).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_in_words() {
        let body = |code: &str| {
            format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>m</Message></Error>")
        };
        let told = |status, code| answer(status, &body(code), "plant", "https://s3.example");
        assert!(told(403, "SignatureDoesNotMatch").contains("`secret-access-key`"));
        assert!(told(403, "AccessDenied").contains("may not write"));
        assert!(told(404, "NoSuchBucket").contains("`plant` does not exist"));
        assert_eq!(told(500, "InternalError"), "https://s3.example answered 500 InternalError m");
        assert!(answer(403, "", "plant", "e").contains("403"));
    }

    #[test]
    fn long_answers_are_cut_between_characters() {
        assert_eq!(bounded(&"ü".repeat(400)).len(), 300);
        assert_eq!(bounded("x"), "x");
    }
}
