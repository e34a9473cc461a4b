//! What is translated, against expressions that match and ones that do not, and what is refused.
use super::*;
use proptest::prelude::*;
use regex::Regex;

fn is_match(pattern: &str, flags: &str, text: &str) -> bool {
    let translated = translate(pattern, flags).unwrap_or_else(|why| panic!("{pattern} {why}"));
    Regex::new(&translated).unwrap_or_else(|why| panic!("{translated}: {why}")).is_match(text)
}

#[test]
fn a_class_means_what_it_means_in_xpath() {
    for (pattern, flags, matching, others) in [
        ("^[a-c-[b]]$", "", &["a", "c"][..], &["b", "-", "[", "]", "b]"][..]),
        ("^[A-Z&&]+$", "", &["R&D"], &["r"]),
        ("^[+--]$", "", &["+", ",", "-"], &["."]),
        ("^[a~~b]$", "", &["a", "~", "b"], &[]),
        ("^[^a-c-[b-d]]$", "", &["e", "-"], &["a", "b", "d"]),
        ("^[a-z-[aeiou-[e]]]$", "", &["b", "e"], &["a", "u"]),
        ("^[-a]$", "", &["-", "a"], &["b"]),
        ("^[a-]$", "", &["-", "a"], &["b"]),
        (r"^[\w-.]$", "", &["w", "-", "."], &[" ", "/"]),
        ("^[a-z-9]$", "", &["b", "-", "9"], &["5"]),
        (r"^[\]\[\\^\-]$", "", &["]", "[", "\\", "^", "-"], &["a"]),
        ("^[#-&]$", "", &["#", "$", "&"], &["-", "'"]),
        ("^[^^]$", "", &["a"], &["^"]),
        ("^[.$|(?*+{}]$", "", &[".", "$", "|", "(", "?", "*", "+", "{", "}"], &["a"]),
        ("^[a-[a]]$", "", &[], &["a", "b", "-"]),
        ("^[a--[a]]$", "", &["-"], &["a"]),
        // The flag i applies to characters and ranges, not to properties.
        ("^[A-Z-[IO]]$", "i", &["A", "b"], &["I", "i", "O", "o"]),
        ("^[^Q]$", "i", &["a"], &["Q", "q"]),
        (r"^\p{Lu}$", "i", &["A"], &["a"]),
        (r"^[\p{Lu}x]$", "i", &["A", "x", "X"], &["a"]),
        (r"^[^\p{Lu}x]$", "i", &["a"], &["A", "x", "X"]),
        ("^straße K$", "i", &["STRAßE k", "StraẞE \u{212a}"], &["strasse k"]),
    ] {
        for text in matching {
            assert!(is_match(pattern, flags, text), "{pattern} {text}");
        }
        for text in others {
            assert!(!is_match(pattern, flags, text), "{pattern} {text}");
        }
    }
}

#[test]
fn escapes_and_flags_mean_what_they_mean_in_xpath() {
    for (pattern, flags, matching, others) in [
        (r"^\i\c*$", "", &["a", "_a-1.b", "é:x"][..], &["1a", "-", "a b", ""][..]),
        (r"^\I\C$", "", &["1 ", "-/"], &["a ", "1a"]),
        (r"^[\c-[:]]+$", "", &["a-1"], &["a:b"]),
        (r"^\w$", "", &["a", "1", "+", "é"], &["_", "-", " ", "\u{200d}"]),
        (r"^\W$", "", &["_", " "], &["a"]),
        (r"^\s$", "", &[" ", "\t", "\n", "\r"], &["\u{a0}", "\u{2003}", "\u{b}"]),
        (r"^\S$", "", &["\u{a0}", "a"], &[" "]),
        (r"^\d$", "", &["1", "٣"], &["a"]),
        (r"^\p{IsGreek}\P{IsBasicLatin}$", "", &["αé"], &["aé", "αa"]),
        (r"^\p{Sc}\P{L}\p{Cn}?$", "", &["€1"], &["€a"]),
        (r"^\-\<\/\_$", "", &["-</_"], &[]),
        (r"^\$\^\n$", "", &["$^\n"], &["$^n"]),
        ("^.$", "", &["a", "\u{2028}"], &["\n", "\r"]),
        ("^.$", "s", &["\n", "\r"], &[]),
        ("^b$", "m", &["a\nb\nc"], &["ab"]),
        ("^b$", "", &["b"], &["a\nb\nc", "b\n"]),
        ("a # b", "", &["a # b"], &["a"]),
        ("^a # b [ #]\t\\ d$", "x", &["a#b 1", "a#b#1"], &["a", "ab 1"]),
        ("a.b[", "q", &["xa.b[y"], &["aab["]),
        ("a. b", "qx", &["a. b"], &["a.b"]),
        ("A.b", "iq", &["a.B"], &["acb"]),
        ("^(?:ab|c){2,3}?$", "", &["abc", "abcab"], &["ab"]),
        ("^(a)?(|b)$", "", &["", "ab", "b"], &["ba"]),
        ("^a}]$", "", &["a}]"], &["a"]),
    ] {
        for text in matching {
            assert!(is_match(pattern, flags, text), "{pattern:?} {text:?}");
        }
        for text in others {
            assert!(!is_match(pattern, flags, text), "{pattern:?} {text:?}");
        }
    }
}

#[test]
fn what_is_not_supported_is_refused_with_its_name_and_place() {
    for (pattern, expected) in [
        (r"(a)\1", r"the back-reference `\1` at character 4"),
        ("a(?=b)", "the look-ahead `(?=` at character 2"),
        ("(?!b)", "the negative look-ahead `(?!` at character 1"),
        ("(?<=a)", "the look-behind `(?<=` at character 1"),
        ("(?<!a)", "the negative look-behind `(?<!`"),
        ("(?<n>a)", "a named group"),
        ("(?P<n>a)", "a named group"),
        ("(?>a)", "the atomic group"),
        ("(?i)a", "flags in a group `(?` at character 1"),
        (r"é\b", r"the word boundary `\b` at character 2"),
        (r"\Aa", r"the anchor `\A`"),
        (r"\x41", r"the escape `\x` at character 1: XPath does not have it; write the character"),
        (r"\u0041", r"the escape `\u`"),
        (r"[\b]", r"the word boundary `\b` at character 2"),
        (r"\pL", r"the property `\p{}`"),
        (r"\p{Greek}", r"the property `\p{Greek}` at character 1"),
        (r"\p{IsKlingon}", r"the block is not known here"),
        (r"\p{Cs}", r"there is no such category"),
        (r"\p{L", r"the property `\p{L}`"),
        ("[[:alpha:]]", "the bracket `[` in a class at character 2"),
        ("[a-z&&[^b]]", "the bracket `[` in a class at character 7"),
        ("[a-[b]c]", "a class subtraction `-[` at character 3: a class ends after it"),
        ("[]", "an empty class at character 1"),
        ("[a", "the bracket `[` at character 1: it is not closed"),
        ("[z-a]", "the range `z-a` at character 2"),
        (r"[a-\d]", "the range from `a` at character 2"),
        ("a**", "the quantifier `*` at character 3"),
        ("*a", "the quantifier `*` at character 1"),
        ("(|+)", "the quantifier `+` at character 3"),
        ("a++", "the quantifier `+` at character 3"),
        ("a{,3}", "the quantifier `{,3` at character 2"),
        ("a{3,2}", "the quantifier `{3,2`"),
        ("a{99999999999}", "the quantifier `{99999999999`"),
        ("a{x", "the quantifier `{x`"),
        ("a{+1}", "the quantifier `{+1`"),
        ("{a}", "the quantifier `{` at character 1"),
        ("(a", "the bracket `(` at character 1"),
        ("a)", "the bracket `)` at character 2"),
        ("a\\", r"the backslash `\` at character 2"),
    ] {
        let why = translate(pattern, "").expect_err(pattern).to_string();
        assert!(why.starts_with("has ") && why.contains(expected), "{pattern}: {why}");
        assert!(why.contains("; ") || why.contains("a property is"), "no remedy: {why}");
    }
    assert!(translate("a", "g").unwrap_err().to_string().contains("the flag 'g'"));
    assert!(translate(&"a".repeat(MAX_BYTES + 1), "").unwrap_err().to_string().contains("bytes"));
    let why = translate("a b (?=c)", "x").unwrap_err().to_string();
    assert!(why.contains("at character 5"), "{why}");
}

#[test]
fn the_deepest_expressions_compile() {
    let groups =
        |depth: usize| format!("{}a*|b{}", "(b|c(?:d".repeat(depth), "))+x)?".repeat(depth));
    let deepest = groups(MAX_OPEN_GROUPS / 2).replace("))+x)?", ")+x)?");
    assert!(Regex::new(&translate(&deepest, "").unwrap()).is_ok());
    assert!(translate(&"(".repeat(MAX_OPEN_GROUPS + 1), "").is_err());
    let classes = |depth: usize| format!("{}[z]{}", "[^a-".repeat(depth), "]".repeat(depth));
    assert!(Regex::new(&translate(&classes(10), "").unwrap()).is_ok());
    assert!(translate(&classes(11), "").is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn whatever_is_translated_compiles(
        pieces in prop::collection::vec(
            prop_oneof![
                4 => prop::sample::select(vec![
                    "[", "]", "-", "-[", "^", "&&", "--", "~~", "(", ")", "(?:", "(?", "|", "*", "+", "?",
                    "{", "}", "{1,2}", "{3}", "{2,}", "\\", "\\w", "\\i", "\\C", "\\p{L}", "\\P{IsThai}",
                    "\\n", "\\-", "\\]", "\\1", "\\<", "$", ".", "#", " ", "a-z", "a", "é", "K", "ß",
                ]).prop_map(str::to_owned),
                1 => any::<char>().prop_map(String::from),
            ],
            0..12,
        ),
        flags in "[smixq]{0,3}",
        text in "[ -~éαK]{0,8}",
    ) {
        let pattern = pieces.concat();
        if let Ok(translated) = translate(&pattern, &flags) {
            let compiled = Regex::new(&translated);
            prop_assert!(compiled.is_ok(), "{pattern:?} is {translated:?}: {compiled:?}");
            // Under the flag q, every text matches itself.
            if flags.contains('q') {
                prop_assert!(compiled.unwrap().is_match(&pattern));
            }
        }
        let quoted = translate(&text, "q").unwrap();
        let whole = Regex::new(&format!("^(?:{quoted})$")).unwrap();
        prop_assert!(whole.is_match(&text));
    }
}
