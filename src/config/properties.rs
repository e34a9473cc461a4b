//! Parses the `.properties` format as specified for `java.util.Properties.load`, in UTF-8.
use super::kind::RawValue;
use std::iter::Peekable;
use std::str::Chars;

/// A name in a file, its value, and the line it begins on, counted from 1.
pub(super) struct Property {
    pub(super) line: u64,
    pub(super) name: String,
    pub(super) value: RawValue,
}

/// Parses all properties, in order.
///
/// # Errors
/// Returns the lines with a malformed `\u` escape, and the errors.
pub(super) fn parse(text: &str) -> Result<Vec<Property>, Vec<(u64, String)>> {
    let mut found = Vec::new();
    let mut errors = Vec::new();
    for (line, logical) in logical_lines(text.strip_prefix('\u{feff}').unwrap_or(text)) {
        match parse_property(&logical) {
            Ok((name, value)) => {
                found.push(Property { line, name, value: RawValue::Text(value) });
            }
            Err(error) => errors.push((line, error)),
        }
    }
    if errors.is_empty() { Ok(found) } else { Err(errors) }
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\u{c}')
}

/// Joins lines that end in an odd number of backslashes. Omits comments and blank lines.
fn logical_lines(text: &str) -> Vec<(u64, String)> {
    let normal = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut lines = (1..).zip(normal.split('\n'));
    let mut found = Vec::new();
    while let Some((number, line)) = lines.next() {
        let line = line.trim_start_matches(is_blank);
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        let mut logical = line.to_owned();
        while logical.chars().rev().take_while(|c| *c == '\\').count() % 2 == 1 {
            logical.pop();
            let Some((_, next)) = lines.next() else { break };
            logical.push_str(next.trim_start_matches(is_blank));
        }
        found.push((number, logical));
    }
    found
}

fn parse_property(line: &str) -> Result<(String, String), String> {
    let mut chars = line.chars().peekable();
    let mut name = String::new();
    while let Some(c) = chars.next_if(|c| !is_blank(*c) && !matches!(c, '=' | ':')) {
        unescape_char(c, &mut chars, &mut name)?;
    }
    while chars.next_if(|c| is_blank(*c)).is_some() {}
    if chars.next_if(|c| matches!(c, '=' | ':')).is_some() {
        while chars.next_if(|c| is_blank(*c)).is_some() {}
    }
    let mut value = String::new();
    while let Some(c) = chars.next() {
        unescape_char(c, &mut chars, &mut value)?;
    }
    Ok((name, value))
}

fn unescape_char(c: char, rest: &mut Peekable<Chars<'_>>, into: &mut String) -> Result<(), String> {
    if c != '\\' {
        into.push(c);
        return Ok(());
    }
    match rest.next() {
        Some('u') => {
            let mut unit = parse_utf16_unit(rest)?;
            if (0xd800..0xdc00).contains(&unit)
                && rest.next_if_eq(&'\\').is_some()
                && rest.next_if_eq(&'u').is_some()
            {
                // Combine the two halves of a surrogate pair (UTF-16). A high half without a low half remains and
                // fails below.
                let low = parse_utf16_unit(rest)?.checked_sub(0xdc00).filter(|low| *low < 0x400);
                unit = low.map_or(unit, |low| 0x10000 + ((unit - 0xd800) << 10) + low);
            }
            let c = char::from_u32(unit);
            into.push(
                c.ok_or("a \\u escape is half of a surrogate pair; write the character itself")?,
            );
        }
        Some('t') => into.push('\t'),
        Some('n') => into.push('\n'),
        Some('r') => into.push('\r'),
        Some('f') => into.push('\u{c}'),
        Some(other) => into.push(other),
        None => {}
    }
    Ok(())
}

fn parse_utf16_unit(rest: &mut Peekable<Chars<'_>>) -> Result<u32, String> {
    let digits: String = (0..4).map_while(|_| rest.next_if(char::is_ascii_hexdigit)).collect();
    match u32::from_str_radix(&digits, 16) {
        Ok(unit) if digits.len() == 4 => Ok(unit),
        _ => Err("\\u must be followed by four hexadecimal digits".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_pairs(text: &str) -> Vec<(String, String)> {
        parse(text).unwrap().into_iter().map(|p| (p.name, p.value.to_string())).collect()
    }

    #[test]
    fn the_examples_of_java_util_properties() {
        let truth = ("Truth".to_owned(), "Beauty".to_owned());
        assert_eq!(
            parse_pairs("Truth = Beauty\n Truth:Beauty\nTruth\t\t\t:Beauty\nTruth Beauty"),
            vec![truth; 4]
        );
        assert_eq!(
            parse_pairs(
                "fruits       apple, banana, pear, \\\n     cantaloupe, watermelon, \\\r\n   kiwi, mango"
            ),
            [(
                "fruits".to_owned(),
                "apple, banana, pear, cantaloupe, watermelon, kiwi, mango".to_owned()
            )]
        );
        assert_eq!(parse_pairs("cheeses"), [("cheeses".to_owned(), String::new())]);
        assert_eq!(parse_pairs("\\:\\= = a=b:c "), [(":=".to_owned(), "a=b:c ".to_owned())]);
    }

    proptest::proptest! {
        #[test]
        fn escaped_text_round_trips(name in "\\PC+", value in "(\\PC|[\n\r\t])*") {
            let escape = |text: &str| {
                text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect::<Vec<_>>().concat()
            };
            let text = format!("{} = {}\n", escape(&name), escape(&value));
            proptest::prop_assert_eq!(parse_pairs(&text), [(name, value)]);
        }

        #[test]
        fn any_text_parses_without_panic(text in "([a\\\\u0-9d=: #!\n]|\\PC)*") {
            let _ = parse(&text);
        }
    }

    #[test]
    fn comments_escapes_and_characters() {
        assert_eq!(
            parse_pairs("# a=b\\\n! c=d\n\n  e=\\u00e9\\ud83d\\ude00\\t\\q\nf=ü\\\\\ng=h"),
            [
                ("e".to_owned(), "é😀\tq".to_owned()),
                ("f".to_owned(), "ü\\".to_owned()),
                ("g".to_owned(), "h".to_owned())
            ]
        );
        let errors = parse("a=1\nb=\\u12\nc=\\ud800").err().unwrap();
        assert_eq!(errors.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 3]);
        assert!(parse("a=\\ud800\\u0041").is_err());
        assert!(parse("a=\\ud800\\").is_err());
    }
}
