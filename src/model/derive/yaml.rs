//! Writes texts as YAML.
use std::fmt::Write as _;

/// Writes a name as the key of a YAML mapping, quoted if necessary.
pub(super) fn yaml_key(name: &str) -> String {
    const WORDS: &[&str] = &["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        && !WORDS.contains(&name.to_ascii_lowercase().as_str());
    if is_plain { name.to_owned() } else { quote_yaml(name) }
}

/// Writes a text in double quotes, with YAML's escapes (YAML 1.2, 7.3.1).
pub(super) fn quote_yaml(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            // Printable characters that are not a line break in any version of YAML.
            ' '..='~'
            | '\u{a0}'..='\u{2027}'
            | '\u{202a}'..='\u{d7ff}'
            | '\u{e000}'..='\u{fefe}'
            | '\u{ff00}'..='\u{fffd}'
            | '\u{10000}'.. => out.push(c),
            c => {
                let _ = write!(out, "\\U{:08X}", u32::from(c));
            }
        }
    }
    out.push('"');
    out
}
