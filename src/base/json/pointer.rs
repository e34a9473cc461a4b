//! JSON Pointers (RFC 6901).

/// Appends one reference token to a JSON Pointer (RFC 6901), escaped.
pub fn push_pointer(pointer: &mut String, token: &str) {
    pointer.push('/');
    for c in token.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
}

/// Returns the JSON Pointer of a member or an element of the value at a JSON Pointer.
pub fn join_pointer(pointer: &str, token: &str) -> String {
    let mut joined = pointer.to_owned();
    push_pointer(&mut joined, token);
    joined
}

/// Returns the name in a reference token of a JSON Pointer.
pub fn unescape_token(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}
