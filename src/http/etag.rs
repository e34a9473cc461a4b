//! Conditional requests (RFC 9110, 13.1): `ETag`, `If-Match` and `If-None-Match`.
use super::problem::Problem;
use penstock_base::IfMatch;
use salvo::Request;
use salvo::http::StatusCode;
use salvo::http::header::{HeaderName, IF_MATCH, IF_NONE_MATCH};

/// Returns the entity tag of a version.
pub fn format_etag(version: u64) -> String {
    format!("\"{version}\"")
}

/// Returns the condition of `If-Match` for a resource whose version is `current`.
///
/// # Errors
/// 412 if the resource has another version or does not exist; 400 if the header is malformed.
pub fn read_if_match(req: &Request, current: Option<u64>) -> Result<IfMatch, Problem> {
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
        Tag::Any | Tag::Weak => String::new(),
    };
    Ok(Some(tags.into_iter().map(strong).collect()))
}

/// Whether `If-None-Match: *` requires that the resource does not exist yet.
pub fn is_create_only(req: &Request) -> Result<bool, Problem> {
    Ok(read_tags(req, &IF_NONE_MATCH)?.is_some_and(|tags| tags.contains(&Tag::Any)))
}

#[derive(Debug, PartialEq, Eq)]
enum Tag {
    Any,
    /// With its quotes.
    Strong(String),
    /// A weak tag. `If-Match` uses strong comparison, so it never matches.
    Weak,
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
        tags.push(if weak { Tag::Weak } else { Tag::Strong(format!("\"{tag}\"")) });
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
            Some(vec![strong("\"1\""), Tag::Weak, strong("\"a,b\"")])
        );
        assert_eq!(parse_tags("*"), Some(vec![Tag::Any]));
        for bad in ["", "1", "\"1", "\"1\" \"2\"", "\"1\",", "w/\"1\""] {
            assert_eq!(parse_tags(bad), None, "{bad}");
        }
    }
}
