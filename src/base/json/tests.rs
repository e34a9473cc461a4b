use super::*;
use crate::error::{ErrorClass, Finding, Place};
use proptest::prelude::*;
use std::fmt::Write as _;

fn parse_failure(text: impl AsRef<[u8]>) -> (u64, u64, String) {
    let error = parse(text.as_ref(), 128).unwrap_err();
    assert_eq!(error.class, ErrorClass::Malformed);
    match error.findings.as_slice() {
        [Finding { place: Place::Line { line, column }, message, .. }] => {
            assert!(error.detail.contains(message.as_str()), "{}", error.detail);
            (*line, *column, message.clone())
        }
        other => panic!("{other:?}"),
    }
}

fn assert_malformed(text: impl AsRef<[u8]>, line: u64, column: u64, words: &str) {
    let (l, c, message) = parse_failure(text);
    assert!(message.contains(words), "{message}");
    assert_eq!((l, c), (line, column), "{message}");
}

fn number(digits: &str) -> Json {
    Json::Number(digits.to_owned())
}

#[test]
fn keeps_the_digits_of_numbers() {
    for digits in [
        "0",
        "-0",
        "1.50",
        "1e400",
        "1E5",
        "1e5",
        "1e+05",
        "1E+5",
        "0.10",
        "18446744073709551616",
        "-9223372036854775809",
        "0.10000000000000000000000000000000000001",
        "123456789012345678901234567890",
        "-12.0e-3",
    ] {
        assert_eq!(parse(digits.as_bytes(), 1).unwrap(), number(digits));
        let array = format!("[{digits} , {digits}]");
        assert_eq!(
            parse(array.as_bytes(), 1).unwrap(),
            Json::Array(vec![number(digits), number(digits)])
        );
        let member = format!("{{\"é,:\" :\t{digits}\n}}");
        assert_eq!(
            parse(member.as_bytes(), 1).unwrap(),
            Json::Object(vec![("é,:".to_owned(), number(digits))])
        );
    }
    let digits = "9".repeat(400);
    assert_eq!(parse(digits.as_bytes(), 1).unwrap(), number(&digits));
}

#[test]
fn refuses_text_that_is_not_a_number() {
    assert_malformed("01", 1, 2, "invalid number");
    assert_malformed("[-]", 1, 3, "invalid number");
    assert_malformed("1.", 1, 2, "invalid number");
    assert_malformed("[1.x]", 1, 4, "invalid number");
    assert_malformed("1e", 1, 2, "invalid number");
    assert_malformed("+1", 1, 1, "a JSON value is expected, not \"+1\"");
    assert_malformed("NaN", 1, 1, "JSON has no NaN: leave the field out");
    assert_malformed("[1, -Infinity]", 1, 6, "JSON has no -Infinity: leave the field out");
    assert_malformed("[nan]", 1, 3, "JSON has no nan: leave the field out");
    assert_malformed(".5", 1, 1, "a JSON value is expected, not \".5\"");
}

#[test]
fn private_names_of_serde_json_are_ordinary_names() {
    for name in ["$serde_json::private::Number", "$serde_json::private::RawValue"] {
        let escaped = name.replace('$', "\\u0024");
        for spelled in [name, &escaped, &escaped.replace("::", "\\u003a\\u003A")] {
            for (value, expected) in [
                ("\"12\"", Json::String("12".to_owned())),
                ("\"not a number\"", Json::String("not a number".to_owned())),
                ("12", number("12")),
                ("[1E5]", Json::Array(vec![number("1E5")])),
            ] {
                let text = format!("{{\"{spelled}\": {value}}}");
                let object = Json::Object(vec![(name.to_owned(), expected)]);
                assert_eq!(parse(text.as_bytes(), 5).unwrap(), object);
                let (got, result) = collect_data(&format!("{{\"data\": [{text}, [{text}]]}}"), 2);
                assert_eq!(result, Ok(()));
                assert_eq!(got, [(0, object.clone()), (1, Json::Array(vec![object]))]);
                let body = format!("{{\"data\": [], \"{spelled}\": {value}}}");
                let error = collect_data(&body, 2).1.unwrap_err();
                assert_eq!(
                    error.findings.first().unwrap().place,
                    Place::Pointer(format!("/{name}"))
                );
            }
            assert_malformed(
                format!("{{\"{name}\": \"1\",\n\"{spelled}\": 1}}"),
                2,
                1,
                &format!("the name {name:?} occurs twice"),
            );
        }
        let string = format!("[\"{name}\"]");
        assert_eq!(
            parse(string.as_bytes(), 5).unwrap(),
            Json::Array(vec![Json::String(name.to_owned())])
        );
    }
}

#[test]
fn a_duplicate_name_is_refused_at_its_second_place() {
    assert_malformed(
        "{\"a\": 1,\n \"b\": 2,\n  \"a\": 3}",
        3,
        3,
        "the name \"a\" occurs twice in one object",
    );
    assert_malformed(r#"{"a": 1, "\u0061": 2}"#, 1, 10, "the name \"a\" occurs twice");
    assert_malformed(r#"{"é": {"x": 1, "x": 2}}"#, 1, 16, "\"x\"");
    for count in [23, 24, 25, 26, 60] {
        let mut text: String = "{".to_owned();
        for i in 0..count {
            write!(text, "\"n{i}\": 0, ").unwrap();
        }
        let plain = format!("{text}\"last\": 0}}");
        assert!(parse(plain.as_bytes(), 2).is_ok());
        for again in [0, count / 2, count - 1] {
            let (_, _, message) = parse_failure(format!("{text}\"n{again}\": 0}}"));
            assert!(message.contains(&format!("\"n{again}\"")), "{count}: {message}");
        }
    }
}

#[test]
fn nesting_is_limited_and_never_overflows_the_stack() {
    let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    assert!(parse(deep(128).as_bytes(), 128).is_ok());
    assert_malformed(deep(129), 1, 129, "this array is nested deeper than 128 levels");
    assert_malformed("[".repeat(10_000), 1, 129, "nested deeper");
    assert_malformed("{\"a\":".repeat(10_000), 1, 128 * 5 + 1, "this object is nested deeper");
    let error = parse("[".repeat(10_000).as_bytes(), usize::MAX).unwrap_err();
    assert!(error.detail.contains("1000 levels"), "{error}");
    std::thread::Builder::new()
        .stack_size(1500 << 10)
        .spawn(move || {
            assert!(parse(deep(1000).as_bytes(), 5000).is_ok());
            let objects = "{\"a\":".repeat(1000) + "1" + &"}".repeat(1000);
            assert!(parse(objects.as_bytes(), 1000).is_ok());
        })
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn invalid_utf8_is_refused_at_its_place() {
    assert_malformed(
        b"{\"a\":\n \"\xC3\xA9\xFF\"}",
        2,
        4,
        "the byte 0xFF at offset 10 is not UTF-8",
    );
    assert_malformed(b"\"\xE2\x82", 1, 2, "cut short");
    assert_malformed(b"\x1F\x8B\x08\x00", 1, 2, "send it with Content-Encoding: gzip");
    assert_malformed(b"\x28\xB5\x2F\xFD\x04", 1, 2, "send it with Content-Encoding: zstd");
    assert_malformed(b"\xFE\xFF\0{", 1, 1, "the text is UTF-16: send JSON in UTF-8");
    assert_malformed(b"\xFF\xFE{\0}\0", 1, 1, "0xFF at offset 0");
}

#[test]
fn truncated_text_is_refused() {
    assert_malformed("", 1, 1, "the text is empty");
    assert_malformed(" \n ", 2, 2, "the text is empty");
    for (text, column, words) in [
        ("[1, 2", 6, "the text ends inside an array"),
        ("[1,", 4, "the text ends before the end of a value"),
        ("{\"a\": 1", 8, "the text ends inside an object"),
        ("{\"a\"", 5, "the text ends inside an object"),
        ("{", 2, "the text ends inside an object"),
        ("tru", 4, "the text ends before the end of a value"),
        ("\"\\", 3, "the text ends inside a string"),
        ("\"é", 3, "the text ends inside a string"),
        ("\"\\u12", 6, "the text ends inside a string"),
    ] {
        assert_malformed(text, 1, column, words);
        assert_malformed(text, 1, column, "it may be cut short here");
    }
    assert_malformed("[\n\"abc\n", 2, 4, "control character");
    assert_malformed(
        "[\n\"abc\"\n",
        3,
        1,
        "the text ends inside an array; it may be cut short here",
    );
}

#[test]
fn text_similar_to_json_is_refused_at_its_place() {
    assert_malformed("\u{feff}{}", 1, 1, "byte order mark");
    assert_malformed("{} x", 1, 4, "\"x\" follows the end of the JSON; remove it");
    assert_malformed("12kg", 1, 3, "\"kg\" follows the end of the JSON; remove it");
    assert_malformed("[\u{a0}1]", 1, 2, r#"a JSON value is expected, not "\u{a0}""#);
    assert_malformed("[1,]", 1, 4, "trailing comma");
    assert_malformed("[1,,[2]]", 1, 4, "a JSON value is expected, not \",\"");
    assert_malformed("[,{}]", 1, 2, "a JSON value is expected");
    assert_malformed("{\"a\":,[]}", 1, 6, "a JSON value is expected");
    assert_malformed("{\"a\"::[]}", 1, 6, "a JSON value is expected");
    assert_malformed("{\"a\":1,}", 1, 8, "trailing comma");
    assert_malformed("[[1],\n]", 2, 1, "remove the comma before this bracket");
    assert_malformed("{a: 1}", 1, 2, "key must be a string; write the name in double quotes");
    assert_malformed("{'a': 1}", 1, 2, "key must be a string; write the name in double quotes");
    assert_malformed("{\"a\": 1 // flow\n}", 1, 9, "JSON has no comments");
    assert_malformed("# flow\n[]", 1, 1, "JSON has no comments");
    assert_malformed("{\"a\": 1, // flow\n\"b\": 2}", 1, 10, "JSON has no comments");
    assert_malformed("{]", 1, 2, "key must be a string");
    assert_malformed("{\"a\" 1}", 1, 6, "expected `:`");
    assert_malformed("[\"é\" 2]", 1, 6, "expected `,` or `]`");
    assert_malformed("[1}", 1, 3, "expected `,` or `]`");
    assert_malformed("True", 1, 1, "\"True\" is no JSON value; write `true`");
    assert_malformed("trap", 1, 3, "\"trap\" is no JSON value; a string is in double quotes");
    assert_malformed("['a']", 1, 2, "\"'a'\" is no JSON value; a string is in double quotes");
    assert_malformed("\"a\tb\"", 1, 2, "control character");
    assert_malformed("\"\\x\"", 1, 3, "invalid escape");
    assert_malformed("\"\\u12g4\"", 1, 7, "invalid escape");
    assert_malformed("\n\"ü\\ud800x\"", 2, 9, "\\ud800 is half of a character");
    assert_malformed("[0,\n \"\\udc00\"]", 2, 8, "\\udc00 is half of a character");
    assert_malformed("[\"\\ud800\"]", 1, 9, "\\ud800 is half of a character");
    assert_malformed("{\"é\": 0, \"\\ud800\\u0041\": 0}", 1, 22, "\\ud800 is half of a character");
}

#[test]
fn reads_escapes() {
    let text = r#""\"\\\/\b\f\n\r\t\u00e9\ud83d\uDE00€""#;
    let expected = "\"\\/\u{8}\u{c}\n\r\té😀€";
    assert_eq!(parse(text.as_bytes(), 0).unwrap(), Json::String(expected.to_owned()));
}

#[test]
fn writes_with_and_without_white_space() {
    let value = parse(b"{\"a\": [1, {}, []], \"b\": \"\\u0001\\n\\\"\"}", 9).unwrap();
    assert_eq!(value.to_string(), r#"{"a":[1,{},[]],"b":"\u0001\n\""}"#);
    assert_eq!(
        format!("{value:#}"),
        "{\n  \"a\": [\n    1,\n    {},\n    []\n  ],\n  \"b\": \"\\u0001\\n\\\"\"\n}"
    );
}

type Got = Vec<(usize, Json)>;

fn collect_data(text: &str, limit: usize) -> (Got, Result<(), GatewayError>) {
    let mut got = Vec::new();
    let result = parse_data(text.as_bytes(), 128, limit, &mut |element| {
        let Element { index, range, json } = element;
        assert_eq!(parse(&text.as_bytes()[range], 128).unwrap(), json);
        got.push((index, json));
        Ok(())
    });
    (got, result.map(drop))
}

#[test]
fn calls_back_with_one_object_of_data_at_a_time() {
    let (got, result) = collect_data(" {\"data\" : [ {}, {\"a\": 1} ,[]]}\n", 3);
    assert_eq!(result, Ok(()));
    let second = Json::Object(vec![("a".to_owned(), number("1"))]);
    assert_eq!(got, [(0, Json::Object(vec![])), (1, second), (2, Json::Array(vec![]))]);
    assert_eq!(collect_data("{\"data\": []}", 0).1, Ok(()));
}

#[test]
fn an_error_of_the_callback_stops_it_and_is_returned_unchanged() {
    let own = GatewayError::with_findings(
        ErrorClass::Conflict,
        "mine",
        vec![Finding::at_pointer("/data/1/x", "y")],
    );
    let mut calls = 0;
    let result = parse_data(b"{\"data\": [{}, {}, {}, broken", 9, 9, &mut |element| {
        calls += 1;
        if element.index == 1 { Err(own.clone()) } else { Ok(()) }
    });
    assert_eq!(result, Err(own));
    assert_eq!(calls, 2);
}

#[test]
fn a_body_that_is_not_as_expected_is_invalid_at_its_pointer() {
    let findings = |text: &str| {
        let (got, result) = collect_data(text, 10);
        let error = result.unwrap_err();
        assert_eq!(error.class, ErrorClass::Invalid, "{error}");
        let pointers: Vec<String> = error
            .findings
            .iter()
            .map(|finding| match &finding.place {
                Place::Pointer(pointer) => pointer.clone(),
                other => panic!("{other:?}"),
            })
            .collect();
        (got.len(), pointers)
    };
    assert_eq!(findings("[]"), (0, vec![String::new()]));
    assert_eq!(findings("3"), (0, vec![String::new()]));
    assert_eq!(findings("{}"), (0, vec!["/data".to_owned()]));
    assert_eq!(findings("{\"data\": {}}"), (0, vec!["/data".to_owned()]));
    assert_eq!(findings("{\"data\": null}"), (0, vec!["/data".to_owned()]));
    assert_eq!(
        findings("{\"a/b\": 1, \"data\": [{}], \"mode\": []}"),
        (0, vec!["/a~1b".to_owned(), "/mode".to_owned()])
    );
}

#[test]
fn a_body_without_data_is_answered_with_the_right_one() {
    let whole = |text: &str| collect_data(text, 10).1.unwrap_err().detail;
    let detail = |text: &str| {
        let hint = "; or send it as it is, with the query parameter form=document";
        whole(text).strip_suffix(hint).unwrap().to_owned()
    };
    assert_eq!(
        detail(r#"{"name": "P-101", "flow": 1, "a": 2, "b": 3}"#),
        "`data` is missing; wrap the objects in it: {\"data\": [{\"name\": …, \"flow\": …, \"a\": …, …}]}"
    );
    assert_eq!(
        detail(r#"[{"name": "P-101"}, {"flow": 1}]"#),
        "the body is an array; wrap the objects in `data`: {\"data\": [{\"name\": …}]}"
    );
    assert_eq!(detail("[]"), "the body is an array; wrap the objects in `data`: {\"data\": [{…}]}");
    let unknown = detail(r#"{"data": [], "mode": "ADD"}"#);
    assert_eq!(unknown, "`mode` is not known beside `data`; remove it");
    assert_eq!(whole("7"), "the body is a number; wrap the objects in `data`: {\"data\": [{…}]}");
}

#[test]
fn more_objects_than_the_limit_are_too_large() {
    let (got, result) = collect_data("{\"data\": [1, 2, 3", 2);
    assert_eq!(got.len(), 2);
    let error = result.unwrap_err();
    assert_eq!(error.class, ErrorClass::TooLarge);
    assert_eq!(error.findings, [Finding::at_pointer("/data/2", "the first object over the limit")]);
}

#[test]
fn data_twice_is_a_duplicate_and_errors_after_data_are_found() {
    let malformed = |text: &str| {
        let error = collect_data(text, 10).1.unwrap_err();
        assert_eq!(error.class, ErrorClass::Malformed, "{error}");
        error.detail
    };
    assert!(malformed("{\"data\": [], \"data\": []}").contains("column 14: the name \"data\""));
    assert!(malformed("{\"x\": 1, \"x\": []}").contains("\"x\" occurs twice"));
    assert!(
        malformed("{\"data\": []} {}").contains("column 14: \"{\" follows the end of the JSON")
    );
    assert!(malformed("{\"a\": 1}\n{\"a\": 2}\n").contains("use application/x-ndjson"));
    let message = parse_message(b"{\"a\": 1}\n{\"a\": 2}\n", 9, 9).unwrap_err();
    assert!(message.detail.ends_with("; send several objects as an array"), "{message}");
    assert!(malformed("{\"data\": [{}]").contains("cut short"));
    assert!(malformed("").contains("empty"));
    assert!(malformed("[1, 2").contains("cut short"));
    let deep = format!("{{\"data\": [{}", "[".repeat(10_000));
    assert!(malformed(&deep).contains("nested deeper"));
}

fn is_same(ours: &Json, theirs: &serde_json::Value) -> bool {
    match (ours, theirs) {
        (Json::Null, serde_json::Value::Null) => true,
        (Json::Bool(a), serde_json::Value::Bool(b)) => a == b,
        // serde_json writes every exponent as `e+5` or `e-5`.
        (Json::Number(a), serde_json::Value::Number(b)) => {
            let exponent = |digits: &str| digits.replace('E', "e").replace("e+", "e");
            exponent(a) == exponent(&b.to_string())
        }
        (Json::String(a), serde_json::Value::String(b)) => a == b,
        (Json::Array(a), serde_json::Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Json::Object(a), serde_json::Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|((n, a), (m, b))| n == m && is_same(a, b))
        }
        _ => false,
    }
}

fn any_value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,30})?(e[+-][0-9]{1,4})?"
            .prop_map(|digits| serde_json::from_str(&digits).unwrap()),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(serde_json::Value::Array),
            prop::collection::vec((any::<String>(), inner), 0..6)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let _ = parse(&bytes, 10);
        let _ = parse_data(&bytes, 10, 3, &mut |_| Ok(()));
    }

    #[test]
    fn accepts_and_refuses_the_same_texts_as_serde_json(text in "[ \\[\\]{}\",:0-9eE.+\\-\\\\untrfalsé]{0,24}") {
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        match parse(text.as_bytes(), 100) {
            Ok(ours) => prop_assert!(theirs.is_ok_and(|theirs| is_same(&ours, &theirs))),
            Err(error) => {
                prop_assert!(theirs.is_err() || error.detail.contains("occurs twice"), "{}", error);
            }
        }
    }

    #[test]
    fn valid_text_is_read_as_by_serde_json(value in any_value()) {
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            prop_assert!(is_same(&parse(text.as_bytes(), 100).unwrap(), &value), "{}", text);
            let mut got = Vec::new();
            let body = format!("{{\"data\": [{text}, {text}]}}");
            parse_data(body.as_bytes(), 100, 2, &mut |element| {
                assert_eq!(&body[element.range], text);
                got.push(element.json);
                Ok(())
            })
            .unwrap();
            prop_assert!(got.len() == 2 && got.iter().all(|got| is_same(got, &value)));
        }
    }

    #[test]
    fn written_json_reads_back_the_same(value in any_value()) {
        let value = parse(value.to_string().as_bytes(), 100).unwrap();
        for text in [value.to_string(), format!("{value:#}")] {
            prop_assert_eq!(&parse(text.as_bytes(), 100).unwrap(), &value);
        }
    }

    #[test]
    fn every_cut_of_a_text_is_refused(value in any_value()) {
        let text = format!("[{value}]");
        for cut in 0..text.len() {
            let cut = text.as_bytes().get(..cut).unwrap();
            prop_assert_eq!(parse(cut, 100).unwrap_err().class, ErrorClass::Malformed);
        }
    }
}
