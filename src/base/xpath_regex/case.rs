//! The flag `i` (`XPath` and `XQuery` Functions 3.1, 5.6.2): characters are equal if both are the same in upper case or in
//! lower case. It applies to characters and ranges, not to `\p{Lu}` and other escapes.
use super::characters::push_escaped;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::LazyLock;

/// Characters from here have no case.
const END_OF_CASE: char = '\u{20000}';

/// The other characters that are equal to each one.
static VARIANTS: LazyLock<BTreeMap<char, Vec<char>>> = LazyLock::new(|| {
    let mut groups: HashMap<(bool, String), BTreeSet<char>> = HashMap::new();
    for character in '\0'..END_OF_CASE {
        let lower: String = character.to_lowercase().collect();
        let upper: String = character.to_uppercase().collect();
        for (is_upper, mapped) in [(false, lower), (true, upper)] {
            let mut characters = mapped.chars();
            let single = characters.next().filter(|_| characters.next().is_none());
            if single != Some(character) {
                let group = groups.entry((is_upper, mapped)).or_default();
                group.extend(single.into_iter().chain([character]));
            }
        }
    }
    let mut variants: BTreeMap<char, BTreeSet<char>> = BTreeMap::new();
    for group in groups.into_values().filter(|group| group.len() > 1) {
        for character in &group {
            let others = group.iter().filter(|other| *other != character);
            variants.entry(*character).or_default().extend(others);
        }
    }
    let sort =
        |(character, equal): (char, BTreeSet<char>)| (character, equal.into_iter().collect());
    variants.into_iter().map(sort).collect()
});

/// Appends the characters that are equal to this one. Returns whether there are any.
pub(super) fn push_case_variants(character: char, output: &mut String) -> bool {
    let variants = VARIANTS.get(&character);
    for variant in variants.into_iter().flatten() {
        push_escaped(*variant, output);
    }
    variants.is_some()
}

/// Adds the characters that are equal to one of these ranges.
pub(super) fn add_case_variants(ranges: &mut Vec<(char, char)>) {
    let within = |(first, last): &(char, char)| VARIANTS.range(*first..=*last);
    let added: BTreeSet<char> =
        ranges.iter().flat_map(within).flat_map(|(_, variants)| variants).copied().collect();
    ranges.extend(added.into_iter().map(|character| (character, character)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_past_the_end_has_a_case() {
        for character in END_OF_CASE..=char::MAX {
            assert!(character.to_lowercase().eq([character]), "{character:?}");
            assert!(character.to_uppercase().eq([character]), "{character:?}");
        }
        assert_eq!(VARIANTS[&'k'], ['K', '\u{212a}']);
        assert_eq!(VARIANTS[&'ſ'], ['S', 's']);
        assert_eq!(VARIANTS[&'ß'], ['ẞ']);
        assert!(!VARIANTS.contains_key(&'1'));
    }
}
