//! Finds the known name that a mistyped one most likely meant.

/// The maximum number of characters that are compared. It exceeds the length of every known name, and limits the cost
/// of untrusted input.
const MAX_COMPARED_CHARS: usize = 100;

/// Returns the name of `known` that is nearest to `name`, ignoring case, if it is near enough to be meant.
pub fn find_nearest<S: AsRef<str>>(name: &str, known: impl IntoIterator<Item = S>) -> Option<S> {
    let name: String = name.to_lowercase().chars().take(MAX_COMPARED_CHARS).collect();
    known
        .into_iter()
        .map(|known| (strsim::osa_distance(&name, &known.as_ref().to_lowercase()), known))
        .filter(|(distance, known)| *distance <= 1 + known.as_ref().chars().count() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_name_that_was_meant() {
        let known = ["fields", "path", "type", "elements", "pushTargets"];
        assert_eq!(find_nearest("feilds", known), Some("fields"));
        assert_eq!(find_nearest("Type", known), Some("type"));
        assert_eq!(find_nearest("pushtarget", known), Some("pushTargets"));
        assert_eq!(find_nearest("colour", known), None);
        assert_eq!(find_nearest("", known), None);
    }
}
