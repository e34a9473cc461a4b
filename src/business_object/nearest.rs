//! The known name that a mistyped one most likely meant.

/// The nearest of `known` to `name`, when it is near enough to be meant.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name: Vec<char> = name.to_lowercase().chars().take(64).collect();
    known
        .into_iter()
        .map(|candidate| (distance(&name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.chars().count() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How many insertions, deletions and replacements lie between the two, case aside (Levenshtein).
fn distance(a: &[char], b: &str) -> usize {
    let mut row: Vec<usize> = (0..=a.len()).collect();
    for (i, cb) in b.to_lowercase().chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (ca, cell) in a.iter().zip(row.iter_mut().skip(1)) {
            let replaced = diagonal + usize::from(*ca != cb);
            diagonal = *cell;
            left = replaced.min(diagonal + 1).min(left + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_name_that_was_meant() {
        let known = ["fields", "path", "type", "elements", "pushTargets"];
        assert_eq!(nearest("feilds", known), Some("fields"));
        assert_eq!(nearest("Type", known), Some("type"));
        assert_eq!(nearest("pushtarget", known), Some("pushTargets"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest("", known), None);
    }

    #[test]
    fn distance_is_levenshteins() {
        let chars = |s: &str| s.chars().collect::<Vec<_>>();
        assert_eq!(distance(&chars("kitten"), "sitting"), 3);
        assert_eq!(distance(&chars(""), "abc"), 3);
        assert_eq!(distance(&chars("abc"), ""), 3);
        assert_eq!(distance(&chars("abc"), "abc"), 0);
    }
}
