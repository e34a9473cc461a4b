//! The members of maps in the names of columns: `sensors.T1.value`, or `sensors["10.0.0.1"].value`.

/// Splits the name of a member off the text behind the name of a map. A name in `["…"]` ends at the first `"]`; another one
/// ends at the next dot or bracket. Returns `None` if there is no name.
pub(crate) fn split_member(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = if let Some(quoted) = text.strip_prefix("[\"") {
        quoted.split_once("\"]")?
    } else {
        let text = text.strip_prefix('.')?;
        let end = text.find('.').into_iter().chain(text.find("[\"")).min();
        text.split_at(end.unwrap_or(text.len()))
    };
    (!name.is_empty()).then_some((name, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_ends_at_a_dot_or_a_bracket() {
        assert_eq!(split_member(".T1.value"), Some(("T1", ".value")));
        assert_eq!(split_member(".T1"), Some(("T1", "")));
        assert_eq!(split_member("[\"10.0.0.1\"].value"), Some(("10.0.0.1", ".value")));
        assert_eq!(split_member(".a[\"b.c\"]"), Some(("a", "[\"b.c\"]")));
        for text in ["", ".", "..", "[\"\"]", "[\"open", "value"] {
            assert_eq!(split_member(text), None, "{text}");
        }
    }
}
