//! Conditional requests (RFC 9110, 13.1): `ETag`, `If-Match` and `If-None-Match`.
use super::parameters::{Parameter, Parameters};
use super::problem::Problem;
use super::query::Query;
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

/// The conditions of a request that changes a resource, which the operation declares and its handler checks. `CREATES` says
/// whether the operation may create the resource.
#[derive(Debug, Default)]
pub struct Conditions<const CREATES: bool> {
    /// The entity tags of `If-Match`, each with its quotes; none if any existing resource matches (`*`).
    pub if_match: Option<Vec<String>>,
    /// The entity tags of `If-None-Match`; none if no resource may exist (`*`).
    pub if_none_match: Option<Vec<String>>,
}

/// The conditions of an operation that creates or replaces a resource.
pub type PutConditions = Conditions<true>;
/// The conditions of an operation that changes or deletes a resource.
pub type ChangeConditions = Conditions<false>;

impl<const CREATES: bool> Conditions<CREATES> {
    /// Returns whether the request has no condition.
    pub fn is_empty(&self) -> bool {
        self.if_match.is_none() && self.if_none_match.is_none()
    }

    /// Returns the preconditions for a resource whose version is `current`, `None` if it does not exist.
    ///
    /// # Errors
    /// 412 if a condition is false already. The commit checks again, since the version may have changed by then.
    pub fn check(&self, current: Option<u64>) -> Result<Preconditions, Problem> {
        let if_match = self.check_if_match(current)?;
        let Some(tags) = &self.if_none_match else {
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

    fn check_if_match(&self, current: Option<u64>) -> Result<IfMatch, Problem> {
        let Some(tags) = &self.if_match else { return Ok(IfMatch::Any) };
        if tags.is_empty() {
            return Ok(IfMatch::Exists);
        }
        let is_named = |version: &u64| tags.contains(&format_etag(*version));
        current.filter(is_named).map(IfMatch::Version).ok_or_else(|| {
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

    /// Returns the preconditions for a resource that has no `ETag`. They are about its existence, which the commit checks.
    ///
    /// # Errors
    /// 412 if `If-Match` names a tag, which no such resource has.
    pub fn check_existence(&self) -> Result<Preconditions, Problem> {
        let if_match = match &self.if_match {
            None => IfMatch::Any,
            Some(tags) if tags.is_empty() => IfMatch::Exists,
            Some(_) => {
                return Err(Problem::new(
                    StatusCode::PRECONDITION_FAILED,
                    "If-Match names an ETag, and this resource has none; leave it out, or send If-Match: *",
                ));
            }
        };
        let only_if_new = self.if_none_match.as_ref().is_some_and(Vec::is_empty);
        Ok(Preconditions { if_match, only_if_new })
    }
}

impl<const CREATES: bool> Parameters for Conditions<CREATES> {
    fn describe() -> Vec<Parameter> {
        if CREATES {
            vec![
                Parameter::header("If-Match", "Replace only this version."),
                Parameter::header("If-None-Match", "`*`: create only."),
            ]
        } else {
            vec![Parameter::header("If-Match", "Change only this version.")]
        }
    }

    fn read(req: &Request, _query: &Query) -> Result<Self, Problem> {
        let if_match = read_if_match_tags(req)?;
        Ok(Self { if_match, if_none_match: read_if_none_match_tags(req)? })
    }
}

/// The entity tags of `If-Match`, for an operation that has no other condition: see [`Conditions::if_match`].
#[derive(Debug)]
pub struct IfMatchTags(pub Option<Vec<String>>);

impl Parameters for IfMatchTags {
    fn describe() -> Vec<Parameter> {
        ChangeConditions::describe()
    }

    fn read(req: &Request, _query: &Query) -> Result<Self, Problem> {
        read_if_match_tags(req).map(Self)
    }
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

/// Returns the entity tags of `If-Match`, each with its quotes; none if any existing resource matches (`*`).
///
/// # Errors
/// 400 if the header is malformed.
fn read_if_match_tags(req: &Request) -> Result<Option<Vec<String>>, Problem> {
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
fn read_if_none_match_tags(req: &Request) -> Result<Option<Vec<String>>, Problem> {
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
