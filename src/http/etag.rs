//! Conditional requests (RFC 9110, 13.1): `ETag`, `If-Match` and `If-None-Match`.
use super::problem::Problem;
use penstock_base::{IfMatch, Preconditions};
use salvo::http::header::{
    CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderName, IF_MATCH, IF_NONE_MATCH,
};
use salvo::http::{Method, ResBody, StatusCode};
use salvo::{Request, Response};

/// Returns the entity tag of a version.
pub fn format_etag(version: u64) -> String {
    format!("\"{version}\"")
}

/// Returns the preconditions of a change of a resource whose version is `current`, `None` if it does not exist.
///
/// # Errors
/// 412 if a condition is false already; 400 if a header is malformed.
pub fn read_preconditions(req: &Request, current: Option<u64>) -> Result<Preconditions, Problem> {
    let if_match = read_if_match(req, current)?;
    let Some(tags) = read_if_none_match_tags(req)? else {
        return Ok(Preconditions { if_match, only_if_new: false });
    };
    let etag = current.map(format_etag);
    if let Some(etag) = etag.filter(|etag| tags.is_empty() || tags.contains(etag)) {
        return Err(Problem::new(
            StatusCode::PRECONDITION_FAILED,
            format!("If-None-Match excludes this resource: it exists, and its ETag is {etag}"),
        ));
    }
    Ok(Preconditions { if_match, only_if_new: tags.is_empty() })
}

/// Returns the preconditions of a change of a resource that has no `ETag`. They are about its existence.
///
/// # Errors
/// 412 if `If-Match` names a tag, which no such resource has; 400 if a header is malformed.
pub fn read_existence_preconditions(req: &Request) -> Result<Preconditions, Problem> {
    let if_match = match read_if_match_tags(req)?.as_deref() {
        None => IfMatch::Any,
        Some([]) => IfMatch::Exists,
        Some(_) => {
            return Err(Problem::new(
                StatusCode::PRECONDITION_FAILED,
                "If-Match names an ETag, and this resource has none; leave it out, or send If-Match: *",
            ));
        }
    };
    let only_if_new = read_if_none_match_tags(req)?.is_some_and(|tags| tags.is_empty());
    Ok(Preconditions { if_match, only_if_new })
}

/// Replaces the answer to a `GET` by 304 if the client has it already. The answers of all routes pass here. A malformed
/// `If-None-Match` gets the whole answer.
pub(super) fn apply_if_none_match(req: &Request, res: &mut Response) {
    let is_read = matches!(*req.method(), Method::GET | Method::HEAD);
    if !is_read || res.status_code.unwrap_or(StatusCode::OK) != StatusCode::OK {
        return;
    }
    let etag = res.headers().get(ETAG).and_then(|etag| etag.to_str().ok());
    let (Some(etag), Ok(Some(tags))) = (etag, read_if_none_match_tags(req)) else { return };
    if !tags.is_empty() && !tags.iter().any(|tag| tag == etag) {
        return;
    }
    res.status_code(StatusCode::NOT_MODIFIED);
    res.replace_body(ResBody::None);
    for header in [CONTENT_TYPE, CONTENT_LENGTH, CONTENT_DISPOSITION] {
        res.headers_mut().remove(header);
    }
}

/// Returns the condition of `If-Match` for a resource whose version is `current`.
///
/// # Errors
/// 412 if the resource has another version or does not exist; 400 if the header is malformed.
fn read_if_match(req: &Request, current: Option<u64>) -> Result<IfMatch, Problem> {
    let Some(tags) = read_tags(req, &IF_MATCH)? else { return Ok(IfMatch::Any) };
    if tags.contains(&Tag::Any) {
        return Ok(IfMatch::Exists);
    }
    let matching = current.filter(|version| tags.contains(&Tag::Strong(format_etag(*version))));
    // The commit checks the version again, since it may have changed by then.
    matching.map(IfMatch::Version).ok_or_else(|| {
        let now = match current {
            Some(version) => format!("its ETag is {} now", format_etag(version)),
            None => "there is none".to_owned(),
        };
        Problem::new(
            StatusCode::PRECONDITION_FAILED,
            format!("If-Match names another version of this resource: {now}; read it again"),
        )
    })
}

/// Returns the entity tags of `If-Match`, each with its quotes; none if any existing resource matches (`*`).
///
/// # Errors
/// 400 if the header is malformed.
pub fn read_if_match_tags(req: &Request) -> Result<Option<Vec<String>>, Problem> {
    let Some(tags) = read_tags(req, &IF_MATCH)? else { return Ok(None) };
    if tags.contains(&Tag::Any) {
        return Ok(Some(Vec::new()));
    }
    let strong = |tag| match tag {
        Tag::Strong(tag) => tag,
        // No resource has the empty tag, and a weak tag never matches.
        Tag::Any | Tag::Weak(_) => String::new(),
    };
    Ok(Some(tags.into_iter().map(strong).collect()))
}

/// Returns the entity tags of `If-None-Match`, each with its quotes; none if no resource may exist (`*`). The comparison is
/// weak, so weak tags count as strong ones.
///
/// # Errors
/// 400 if the header is malformed.
pub fn read_if_none_match_tags(req: &Request) -> Result<Option<Vec<String>>, Problem> {
    let Some(tags) = read_tags(req, &IF_NONE_MATCH)? else { return Ok(None) };
    let opaque = |tag| match tag {
        Tag::Any => None,
        Tag::Strong(tag) | Tag::Weak(tag) => Some(tag),
    };
    Ok(Some(tags.into_iter().map(opaque).collect::<Option<_>>().unwrap_or_default()))
}

#[derive(Debug, PartialEq, Eq)]
enum Tag {
    Any,
    /// With its quotes.
    Strong(String),
    /// A weak tag. `If-Match` uses strong comparison, so it never matches.
    Weak(String),
}

fn read_tags(req: &Request, name: &HeaderName) -> Result<Option<Vec<Tag>>, Problem> {
    let mut tags = Vec::new();
    for value in req.headers().get_all(name) {
        let read = value.to_str().ok().and_then(parse_tags);
        tags.extend(read.ok_or_else(|| {
            Problem::malformed(format!(
                "the header {name} must hold entity tags in quotes, or *: for example \"1\""
            ))
        })?);
    }
    Ok((!tags.is_empty()).then_some(tags))
}

/// Parses the tags of one header line. A tag contains no quote, so quotes split the list.
fn parse_tags(text: &str) -> Option<Vec<Tag>> {
    if text.trim() == "*" {
        return Some(vec![Tag::Any]);
    }
    let mut tags = Vec::new();
    let mut rest = text.trim();
    loop {
        let (weak, opened) = match rest.strip_prefix("W/") {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let (tag, after) = opened.strip_prefix('"')?.split_once('"')?;
        let tag = format!("\"{tag}\"");
        tags.push(if weak { Tag::Weak(tag) } else { Tag::Strong(tag) });
        match after.trim_start() {
            "" => return Some(tags),
            after => rest = after.strip_prefix(',')?.trim_start(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_lists_and_weak_tags() {
        let strong = |tag: &str| Tag::Strong(tag.to_owned());
        assert_eq!(parse_tags("\"1\""), Some(vec![strong("\"1\"")]));
        assert_eq!(
            parse_tags("\"1\" , W/\"2\",\"a,b\""),
            Some(vec![strong("\"1\""), Tag::Weak("\"2\"".to_owned()), strong("\"a,b\"")])
        );
        assert_eq!(parse_tags("*"), Some(vec![Tag::Any]));
        for bad in ["", "1", "\"1", "\"1\" \"2\"", "\"1\",", "w/\"1\""] {
            assert_eq!(parse_tags(bad), None, "{bad}");
        }
    }
}
