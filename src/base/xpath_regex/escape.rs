//! Escapes: `\n`, `\d`, `\i`, `\p{Lu}` (XML Schema 1.1 Part 2, appendix G.4.2).
use super::characters::{Characters, RegexError, shorten};

/// The characters that a name of XML begins with (XML 1.0, 2.3, `NameStartChar`), and the others of one, as in a class.
const NAME_START_CHARACTERS: &str = r":A-Z_a-z\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{2FF}\x{370}-\x{37D}\x{37F}-\x{1FFF}\x{200C}-\x{200D}\x{2070}-\x{218F}\x{2C00}-\x{2FEF}\x{3001}-\x{D7FF}\x{F900}-\x{FDCF}\x{FDF0}-\x{FFFD}\x{10000}-\x{EFFFF}";
const OTHER_NAME_CHARACTERS: &str = r"\-.0-9\x{B7}\x{300}-\x{36F}\x{203F}-\x{2040}";

/// The general categories of Unicode. `Cs` is none: no text has a surrogate.
const CATEGORIES: [&str; 36] = [
    "L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No", "P", "Pc",
    "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Z", "Zs", "Zl", "Zp", "S", "Sm", "Sc", "Sk", "So", "C",
    "Cc", "Cf", "Co", "Cn",
];

/// The blocks of Unicode that expressions can name, without spaces, with their first and last characters.
#[rustfmt::skip]
const BLOCKS: &[(&str, u32, u32)] = &[
    ("BasicLatin", 0x0, 0x7F), ("Latin-1Supplement", 0x80, 0xFF),
    ("LatinExtended-A", 0x100, 0x17F), ("LatinExtended-B", 0x180, 0x24F),
    ("IPAExtensions", 0x250, 0x2AF), ("SpacingModifierLetters", 0x2B0, 0x2FF),
    ("CombiningDiacriticalMarks", 0x300, 0x36F),
    ("Greek", 0x370, 0x3FF), ("GreekandCoptic", 0x370, 0x3FF),
    ("Cyrillic", 0x400, 0x4FF), ("CyrillicSupplement", 0x500, 0x52F),
    ("Armenian", 0x530, 0x58F), ("Hebrew", 0x590, 0x5FF), ("Arabic", 0x600, 0x6FF),
    ("Syriac", 0x700, 0x74F), ("ArabicSupplement", 0x750, 0x77F), ("Thaana", 0x780, 0x7BF),
    ("Devanagari", 0x900, 0x97F), ("Bengali", 0x980, 0x9FF), ("Gurmukhi", 0xA00, 0xA7F),
    ("Gujarati", 0xA80, 0xAFF), ("Oriya", 0xB00, 0xB7F), ("Tamil", 0xB80, 0xBFF),
    ("Telugu", 0xC00, 0xC7F), ("Kannada", 0xC80, 0xCFF), ("Malayalam", 0xD00, 0xD7F),
    ("Sinhala", 0xD80, 0xDFF), ("Thai", 0xE00, 0xE7F), ("Lao", 0xE80, 0xEFF),
    ("Tibetan", 0xF00, 0xFFF), ("Myanmar", 0x1000, 0x109F), ("Georgian", 0x10A0, 0x10FF),
    ("HangulJamo", 0x1100, 0x11FF), ("Ethiopic", 0x1200, 0x137F), ("Cherokee", 0x13A0, 0x13FF),
    ("Khmer", 0x1780, 0x17FF), ("Mongolian", 0x1800, 0x18AF),
    ("PhoneticExtensions", 0x1D00, 0x1D7F), ("LatinExtendedAdditional", 0x1E00, 0x1EFF),
    ("GreekExtended", 0x1F00, 0x1FFF), ("GeneralPunctuation", 0x2000, 0x206F),
    ("SuperscriptsandSubscripts", 0x2070, 0x209F), ("CurrencySymbols", 0x20A0, 0x20CF),
    ("CombiningDiacriticalMarksforSymbols", 0x20D0, 0x20FF),
    ("CombiningMarksforSymbols", 0x20D0, 0x20FF), ("LetterlikeSymbols", 0x2100, 0x214F),
    ("NumberForms", 0x2150, 0x218F), ("Arrows", 0x2190, 0x21FF),
    ("MathematicalOperators", 0x2200, 0x22FF), ("MiscellaneousTechnical", 0x2300, 0x23FF),
    ("ControlPictures", 0x2400, 0x243F), ("OpticalCharacterRecognition", 0x2440, 0x245F),
    ("EnclosedAlphanumerics", 0x2460, 0x24FF), ("BoxDrawing", 0x2500, 0x257F),
    ("BlockElements", 0x2580, 0x259F), ("GeometricShapes", 0x25A0, 0x25FF),
    ("MiscellaneousSymbols", 0x2600, 0x26FF), ("Dingbats", 0x2700, 0x27BF),
    ("BraillePatterns", 0x2800, 0x28FF), ("CJKSymbolsandPunctuation", 0x3000, 0x303F),
    ("Hiragana", 0x3040, 0x309F), ("Katakana", 0x30A0, 0x30FF), ("Bopomofo", 0x3100, 0x312F),
    ("HangulCompatibilityJamo", 0x3130, 0x318F), ("CJKUnifiedIdeographsExtensionA", 0x3400, 0x4DBF),
    ("CJKUnifiedIdeographs", 0x4E00, 0x9FFF), ("HangulSyllables", 0xAC00, 0xD7AF),
    ("PrivateUse", 0xE000, 0xF8FF), ("PrivateUseArea", 0xE000, 0xF8FF),
    ("CJKCompatibilityIdeographs", 0xF900, 0xFAFF),
    ("AlphabeticPresentationForms", 0xFB00, 0xFB4F), ("ArabicPresentationForms-A", 0xFB50, 0xFDFF),
    ("CombiningHalfMarks", 0xFE20, 0xFE2F), ("CJKCompatibilityForms", 0xFE30, 0xFE4F),
    ("SmallFormVariants", 0xFE50, 0xFE6F), ("ArabicPresentationForms-B", 0xFE70, 0xFEFF),
    ("HalfwidthandFullwidthForms", 0xFF00, 0xFFEF), ("Specials", 0xFFF0, 0xFFFF),
    ("MathematicalAlphanumericSymbols", 0x1D400, 0x1D7FF), ("Emoticons", 0x1F600, 0x1F64F),
];

/// What an escape is.
pub(super) enum Escape {
    Character(char),
    /// A class in the syntax of `regex`, which can be part of another class.
    Class(String),
}

/// Parses what follows the backslash at this position.
///
/// # Errors
/// If it is no escape of `XPath`.
pub(super) fn parse_escape(
    characters: &mut Characters,
    position: usize,
) -> Result<Escape, RegexError> {
    let Some((_, character)) = characters.next() else {
        let why = r"no character follows it; write \\ for the character";
        return Err(RegexError::new(r"the backslash `\`", position, why));
    };
    let class = match character {
        'n' => return Ok(Escape::Character('\n')),
        'r' => return Ok(Escape::Character('\r')),
        't' => return Ok(Escape::Character('\t')),
        // XPath has escapes only for those with a meaning. For the others there is no other reading.
        sign if sign.is_ascii_punctuation() => return Ok(Escape::Character(sign)),
        'd' => r"\d".to_owned(),
        'D' => r"\D".to_owned(),
        's' => r"[ \t\n\r]".to_owned(),
        'S' => r"[^ \t\n\r]".to_owned(),
        'w' => r"[^\p{P}\p{Z}\p{C}]".to_owned(),
        'W' => r"[\p{P}\p{Z}\p{C}]".to_owned(),
        'i' => format!("[{NAME_START_CHARACTERS}]"),
        'I' => format!("[^{NAME_START_CHARACTERS}]"),
        'c' => format!("[{NAME_START_CHARACTERS}{OTHER_NAME_CHARACTERS}]"),
        'C' => format!("[^{NAME_START_CHARACTERS}{OTHER_NAME_CHARACTERS}]"),
        'p' | 'P' => parse_property(characters, position, character)?,
        other => return Err(refuse(other, position)),
    };
    Ok(Escape::Class(class))
}

fn refuse(character: char, position: usize) -> RegexError {
    let (kind, why) = match character {
        '1'..='9' => ("the back-reference", "it is not supported; write what it repeats again"),
        'b' | 'B' => {
            ("the word boundary", r"XPath does not have it; write (^|\W) or (\W|$) in its place")
        }
        'A' | 'z' | 'Z' => {
            ("the anchor", "XPath does not have it; write ^ or $, without the flag m")
        }
        'x' | 'u' | 'U' => ("the escape", "XPath does not have it; write the character itself"),
        'h' | 'H' | 'v' | 'V' => ("the escape", r"XPath does not have it; write [ \t] or \s"),
        _ => ("the escape", "XPath does not have it; write the characters that are meant"),
    };
    RegexError::new(&format!("{kind} `\\{character}`"), position, why)
}

/// Parses `{Lu}` or `{IsGreek}` after `\p` or `\P`.
fn parse_property(
    characters: &mut Characters,
    position: usize,
    letter: char,
) -> Result<String, RegexError> {
    let name = if characters.take('{') {
        characters.take_while(|character| !matches!(character, '}' | '\\' | ']'))
    } else {
        String::new()
    };
    let is_closed = !name.is_empty() && characters.take('}');
    let refuse = |why: &str| {
        let construct = format!("the property `\\{letter}{{{}}}`", shorten(&name));
        Err(RegexError::new(&construct, position, why))
    };
    if !is_closed {
        return refuse(
            r"a property is \p{…} with a category such as L or Lu, or Is and a block such as IsGreek",
        );
    }
    if CATEGORIES.contains(&name.as_str()) {
        return Ok(format!("\\{letter}{{{name}}}"));
    }
    let Some(block) = name.strip_prefix("Is") else {
        return refuse(
            "there is no such category; those of Unicode are known, such as L, Lu and Nd",
        );
    };
    match BLOCKS.iter().find(|(known, ..)| *known == block) {
        Some((_, first, last)) => {
            let sign = if letter == 'P' { "^" } else { "" };
            Ok(format!("[{sign}\\x{{{first:X}}}-\\x{{{last:X}}}]"))
        }
        None => refuse(
            "the block is not known here; write a range of its first and last characters in its place",
        ),
    }
}
