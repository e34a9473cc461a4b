//! The parts of a setting's name: text between dots or in brackets, and placeholders in angle brackets.

/// The placeholder of a position in a list.
pub(super) const INDEX: &str = "<n>";

pub(super) fn is_placeholder(part: &str) -> bool {
    part.starts_with('<')
}

/// Splits a name into its parts. Text in brackets is one part.
pub(super) fn split_parts(name: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        if let Some((inside, after)) = rest.strip_prefix('[').and_then(|r| r.split_once(']')) {
            parts.push(inside);
            rest = after.strip_prefix('.').unwrap_or(after);
        } else {
            let end = rest.find(['.', '[']).filter(|end| *end > 0).unwrap_or(rest.len());
            let (part, after) = rest.split_at(end);
            parts.push(part);
            rest = after.strip_prefix('.').unwrap_or(after);
        }
    }
    parts
}

/// Replaces each `<...>` of a name by what is given.
pub(super) fn fill_name(name: &str, given: &[String]) -> String {
    let mut given = given.iter();
    let mut filled = String::new();
    for part in split_parts(name) {
        let own =
            if is_placeholder(part) { given.next().map_or(part, String::as_str) } else { part };
        if part == INDEX || own.contains('.') {
            filled.push('[');
            filled.push_str(own);
            filled.push(']');
        } else {
            if !filled.is_empty() {
                filled.push('.');
            }
            filled.push_str(own);
        }
    }
    filled
}
