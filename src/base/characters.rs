//! Characters that make a name misleading to its readers.

/// Whether a character must not be part of a name. These are control characters, characters that change the order in
/// which others are shown (UAX 9), and invisible ones (UTR 36, 2.5 and 2.10). With them, two names look the same, or
/// one reads as another.
///
/// The joiners U+200C and U+200D are allowed, because Persian and Indian names are spelt with them.
pub fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180e}'
                | '\u{200b}'
                | '\u{200e}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Whether a character must not be part of an identifier that is compared, such as an email address or a subject. These
/// are the characters of [`is_deceptive`] and the invisible joiners.
pub fn is_deceptive_in_id(c: char) -> bool {
    is_deceptive(c) || matches!(c, '\u{200c}' | '\u{200d}')
}

/// Describes the first character of the text that must not be in it; `None` if there is none.
pub fn describe_deceptive(text: &str, is_deceptive: fn(char) -> bool) -> Option<String> {
    let found = text.chars().find(|c| is_deceptive(*c))?;
    Some(if found.is_control() {
        "it contains a control character; remove it".to_owned()
    } else {
        format!(
            "it contains U+{:04X}, which is invisible or changes the order of other characters; remove it",
            u32::from(found)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_any_script_are_accepted_and_deceptive_ones_are_refused() {
        for good in ["Ångström", "李雷", "محمد", "می\u{200c}خواهم", "क्\u{200d}ष", "O’Neill", "a b"]
        {
            assert_eq!(describe_deceptive(good, is_deceptive), None, "{good:?}");
        }
        for bad in [
            "a\u{202e}b",
            "a\u{2066}b",
            "\u{feff}a",
            "a\u{200b}",
            "a\u{ad}b",
            "\u{3164}",
            "a\u{e0041}",
        ] {
            let why = describe_deceptive(bad, is_deceptive).unwrap();
            assert!(why.contains("U+"), "{why}");
        }
        assert!(describe_deceptive("a\nb", is_deceptive).unwrap().contains("control character"));
        assert!(is_deceptive_in_id('\u{200d}') && is_deceptive_in_id('\u{202e}'));
    }
}
