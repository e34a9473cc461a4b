//! The change owners of an ingestion: the parameter `changeOwners`, repeated as needed, and the header `Change-Owners`,
//! a list of strings in quotes (RFC 9651, 3.3.3).
use penstock_base::principal::Principal;
use penstock_http::problem::Problem;
use salvo::Request;

/// The name of the header.
const HEADER: &str = "change-owners";
/// The maximum number of change owners.
const MAX_OWNERS: usize = 100;

/// Returns the change owners of a request, each once. `parameters` are the values of the query parameter.
pub(super) fn read_change_owners(
    req: &Request,
    parameters: &[String],
) -> Result<Vec<Principal>, Problem> {
    let mut texts = parameters.to_vec();
    for value in req.headers().get_all(HEADER) {
        let listed = value.to_str().ok().and_then(parse_list);
        texts.extend(listed.ok_or_else(|| {
            Problem::malformed(
                "the header Change-Owners must be a list of strings in quotes: for example \"user:ada@plant.example\", \"group:shift 1\"",
            )
        })?);
    }
    let mut owners = Vec::new();
    for text in texts {
        let owner = Principal::parse(&text)
            .map_err(|why| Problem::malformed(format!("a change owner is not valid: {why}")))?;
        if !owners.contains(&owner) {
            owners.push(owner);
        }
    }
    if owners.len() > MAX_OWNERS {
        return Err(Problem::malformed(format!(
            "the request names {} change owners, at most {MAX_OWNERS} are allowed; use a group",
            owners.len()
        )));
    }
    Ok(owners)
}

/// Parses a list of strings in quotes, in which a backslash escapes a quote and a backslash.
fn parse_list(text: &str) -> Option<Vec<String>> {
    let mut strings = Vec::new();
    let mut rest = text.trim();
    if rest.is_empty() {
        return Some(strings);
    }
    loop {
        let mut characters = rest.strip_prefix('"')?.chars();
        let mut string = String::new();
        loop {
            match characters.next()? {
                '"' => break,
                '\\' => string.push(characters.next().filter(|c| matches!(c, '"' | '\\'))?),
                other => string.push(other),
            }
        }
        strings.push(string);
        match characters.as_str().trim_start() {
            "" => return Some(strings),
            after => rest = after.strip_prefix(',')?.trim_start(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_strings_in_quotes_are_parsed() {
        let strings = |all: &[&str]| Some(all.iter().map(|one| (*one).to_owned()).collect());
        assert_eq!(parse_list(""), strings(&[]));
        assert_eq!(parse_list(r#""user:a" , "group:b, c""#), strings(&["user:a", "group:b, c"]));
        assert_eq!(parse_list(r#""a\"b\\""#), strings(&["a\"b\\"]));
        for bad in ["user:a", "\"a", "\"a\" \"b\"", "\"a\",", r#""\n""#] {
            assert_eq!(parse_list(bad), None, "{bad}");
        }
    }
}
