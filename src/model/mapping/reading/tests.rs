use super::*;
use crate::mapping::find_kind;
use penstock_base::json;

fn reading(accept: Vec<AcceptedForm>) -> Reading {
    Reading { accept, ..Reading::default() }
}

fn in_berlin(accept: Vec<AcceptedForm>) -> Reading {
    Reading { time_zone: Some("Europe/Berlin".parse().unwrap()), ..reading(accept) }
}

/// Returns the canonical JSON of a value of this type, after the warning if there is one.
fn read(reading: &Reading, kind: &str, json: &str) -> String {
    let kind = find_kind(kind).unwrap().kind();
    match reading.read(kind, json::parse(json.as_bytes(), 1).unwrap()) {
        Ok(ReadValue { json, warning: None }) => json.to_string(),
        Ok(ReadValue { json, warning: Some(warning) }) => format!("{warning}: {json}"),
        Err(error) => format!("error: {error}"),
    }
}

#[track_caller]
fn check(reading: &Reading, kind: &str, cases: &[(&str, &str)]) {
    for (json, expected) in cases {
        assert_eq!(read(reading, kind, json), *expected, "{kind} {json}");
    }
}

#[test]
fn numbers_are_read_from_text() {
    let text = reading(vec![AcceptedForm::Text]);
    check(&text, "number", &[("\" +012.50\"", "12.50"), ("1e3", "1e3"), ("\"NaN\"", "\"NaN\"")]);
    // A value that fits no form stays as it is, and is refused later.
    check(&text, "integer", &[("\"7\"", "7"), ("\"7.0\"", "\"7.0\""), ("1.0", "1.0")]);
    let whole = reading(vec![AcceptedForm::WholeNumber]);
    check(&whole, "integer", &[("1.0", "1"), ("1e3", "1000"), ("1.5", "1.5"), ("\"1\"", "\"1\"")]);
    let both = reading(vec![AcceptedForm::Text, AcceptedForm::WholeNumber]);
    check(&both, "integer", &[("\"1e3\"", "1000"), ("\"1.50\"", "\"1.50\"")]);
    for digits in ["1e400", "\"1e400\""] {
        let error = read(&both, "integer", digits);
        assert!(error.starts_with("error: 1e400 has more than 400 digits"), "{error}");
    }
    let german = reading(vec![AcceptedForm::Decimal { decimal: ',', group: Some('.') }]);
    check(
        &german,
        "number",
        &[("\"1.234,50\"", "1234.50"), ("1.234", "1.234"), ("\"1.23,5\"", "\"1.23,5\"")],
    );
}

#[test]
fn booleans_and_strings_have_other_values() {
    let list = |values: &[&str]| -> Vec<ListedValue> {
        let parse = |text: &&str| json::parse(text.as_bytes(), 1).unwrap();
        values.iter().map(parse).filter_map(ListedValue::new).collect()
    };
    let booleans =
        AcceptedForm::Booleans { yes: list(&["\"yes\"", "1"]), no: list(&["\"no\"", "0"]) };
    check(
        &reading(vec![booleans]),
        "boolean",
        &[
            ("true", "true"),
            ("\"yes\"", "true"),
            ("1.0", "true"),
            ("0", "false"),
            ("\"1\"", "\"1\""),
        ],
    );
    let scalar = reading(vec![AcceptedForm::Scalar]);
    check(&scalar, "string", &[("1.50", "\"1.50\""), ("true", "\"true\""), ("\"a\"", "\"a\"")]);
}

#[test]
fn times_are_read_as_people_write_them() {
    let iso = reading(vec![AcceptedForm::Iso]);
    check(
        &iso,
        "dateTime",
        &[
            ("\"2026-03-01 12:00\"", "\"2026-03-01T12:00:00\""),
            ("\"2026-03-01T12:00:00,120+01\"", "\"2026-03-01T12:00:00.120+01:00\""),
            ("\"2026-03-01T12:00-0330\"", "\"2026-03-01T12:00:00-03:30\""),
            ("\"2026-03-01 12:00z\"", "\"2026-03-01T12:00:00Z\""),
            // The canonical form keeps its text.
            ("\"2026-03-01T12:00:00.120\"", "\"2026-03-01T12:00:00.120\""),
            ("\"2026-03-01\"", "\"2026-03-01\""),
            ("\"20260301\"", "\"20260301\""),
            // XML Schema has no leap seconds.
            ("\"2026-03-01 23:59:60\"", "\"2026-03-01 23:59:60\""),
            ("\"20260301T235960Z\"", "\"20260301T235960Z\""),
            ("\"2060-03-01 23:59:59\"", "\"2060-03-01T23:59:59\""),
        ],
    );
    let seconds = reading(vec![AcceptedForm::Pattern("%d.%m.%Y %H:%M:%S".to_owned())]);
    check(
        &seconds,
        "dateTime",
        &[
            ("\"1.3.2060 23:59:59\"", "\"2060-03-01T23:59:59\""),
            ("\"1.3.2060 23:59:60\"", "\"1.3.2060 23:59:60\""),
        ],
    );
    check(
        &iso,
        "date",
        &[("\"2026-03-01 23:30Z\"", "\"2026-03-01\""), ("\"2026-03-01Z\"", "\"2026-03-01Z\"")],
    );
    let patterns = ["%d.%m.%Y %H:%M", "%m/%d/%y %I:%M %p %z"].map(str::to_owned);
    let patterns = reading(patterns.map(AcceptedForm::Pattern).to_vec());
    check(
        &patterns,
        "dateTime",
        &[
            ("\"1.3.2026 07:05\"", "\"2026-03-01T07:05:00\""),
            ("\"3/1/26 07:05 PM +0100\"", "\"2026-03-01T19:05:00+01:00\""),
            ("\"31.2.2026 07:05\"", "\"31.2.2026 07:05\""),
        ],
    );
    let odata = reading(vec![AcceptedForm::OData]);
    check(
        &odata,
        "dateTime",
        &[
            ("\"/Date(1732700000000)/\"", "\"2024-11-27T09:33:20Z\""),
            ("\"/Date(1732700000120+0060)/\"", "\"2024-11-27T10:33:20.12+01:00\""),
            ("\"/Date(-1-0030)/\"", "\"1969-12-31T23:29:59.999-00:30\""),
        ],
    );
}

#[test]
fn the_last_day_that_means_without_end_is_read() {
    let odata = reading(vec![AcceptedForm::OData]);
    check(
        &odata,
        "dateTime",
        &[
            ("\"/Date(253402214400000)/\"", "\"9999-12-31T00:00:00Z\""),
            ("\"/Date(253402300799999)/\"", "\"9999-12-31T23:59:59.999Z\""),
            ("\"/Date(253402214400000-0060)/\"", "\"9999-12-30T23:00:00-01:00\""),
            ("\"/Date(now)/\"", "\"/Date(now)/\""),
        ],
    );
    // In the year 10000, and with an offset of 15 hours.
    for text in
        ["/Date(253402300799000+0060)/", "/Date(253402300800000)/", "/Date(1732700000000+0900)/"]
    {
        let error = read(&odata, "dateTime", &format!("\"{text}\""));
        let start = format!("error: {text} is no time in `odata`: the years are");
        assert!(error.starts_with(&start), "{error}");
    }
    check(&odata, "date", &[("\"/Date(253402214400000)/\"", "\"9999-12-31\"")]);
    let unix = reading(vec![AcceptedForm::Unix(UnixUnit::Milliseconds)]);
    check(&unix, "dateTime", &[("253402300799000", "\"9999-12-31T23:59:59Z\"")]);
    let error = read(&unix, "dateTime", "253402300800000");
    assert!(error.contains("the years are from -9999 to 9999"), "{error}");
    let berlin = in_berlin(vec![AcceptedForm::Unix(UnixUnit::Milliseconds)]);
    check(&berlin, "date", &[("253402210799000", "\"9999-12-30\"")]);
    check(&berlin, "date", &[("253402210800000", "\"9999-12-31\"")]);
    // The local day would be in the year 10000.
    check(&berlin, "date", &[("253402300799000", "\"9999-12-31\"")]);
}

#[test]
fn times_since_1970_keep_their_fraction() {
    for (unit, digits) in [
        (UnixUnit::Seconds, "1732700000.50"),
        (UnixUnit::Milliseconds, "1732700000500"),
        (UnixUnit::Microseconds, "\"1732700000500000\""),
        (UnixUnit::Nanoseconds, "1.7327000005e18"),
    ] {
        let unix = reading(vec![AcceptedForm::Unix(unit)]);
        check(&unix, "dateTime", &[(digits, "\"2024-11-27T09:33:20.5Z\"")]);
    }
    let unix = reading(vec![AcceptedForm::Unix(UnixUnit::Seconds)]);
    check(
        &unix,
        "dateTime",
        &[
            ("-0.25", "\"1969-12-31T23:59:59.75Z\""),
            ("0", "\"1970-01-01T00:00:00Z\""),
            ("-62167219201", "\"-0001-12-31T23:59:59Z\""),
            ("\"now\"", "\"now\""),
        ],
    );
    for digits in ["1e18", "\"-1732700000000000\"", "1e-30"] {
        let error = read(&unix, "dateTime", digits);
        assert!(error.starts_with("error: ") && error.contains("is no time in `unix`"), "{error}");
    }
    check(&unix, "date", &[("1732748399", "\"2024-11-27\""), ("-62167219201", "\"-0001-12-31\"")]);
    let berlin = in_berlin(vec![AcceptedForm::Unix(UnixUnit::Seconds)]);
    check(&berlin, "date", &[("1732748400", "\"2024-11-28\"")]);
    check(&berlin, "dateTime", &[("0", "\"1970-01-01T00:00:00Z\"")]);
}

#[test]
fn a_time_zone_gives_texts_their_offset() {
    let berlin = in_berlin(vec![AcceptedForm::Iso]);
    check(
        &berlin,
        "dateTime",
        &[
            ("\"2026-03-01T12:00:00.120\"", "\"2026-03-01T12:00:00.120+01:00\""),
            ("\"2026-07-01 12:00\"", "\"2026-07-01T12:00:00+02:00\""),
            ("\"2026-07-01 12:00Z\"", "\"2026-07-01T12:00:00Z\""),
            ("\"2026-07-01T12:00:00-05:00\"", "\"2026-07-01T12:00:00-05:00\""),
        ],
    );
    check(&berlin, "date", &[("\"2026-07-01\"", "\"2026-07-01\"")]);
    let repeated = read(&berlin, "dateTime", "\"2026-10-25 02:30\"");
    assert!(repeated.contains("occurs twice"), "{repeated}");
    assert!(repeated.ends_with(": \"2026-10-25T02:30:00+02:00\""), "{repeated}");
    let skipped = read(&berlin, "dateTime", "\"2026-03-29T02:30:00\"");
    assert!(skipped.starts_with("error: ") && skipped.contains("the clocks skip"), "{skipped}");
    let end = read(&berlin, "dateTime", "\"2026-03-01T24:00:00\"");
    assert!(end.contains("send 00:00:00 of the next day"), "{end}");
}

#[test]
fn numbers_among_absent_values_are_compared_by_value() {
    let absent = ["\"\"", "\"NA\"", "-9999", "false"];
    let parse = |text: &str| json::parse(text.as_bytes(), 1).unwrap();
    let absent = absent.iter().filter_map(|text| ListedValue::new(parse(text))).collect();
    let reading = Reading { absent, ..Reading::default() };
    for (json, expected) in [
        ("\"\"", true),
        ("\"na\"", false),
        ("-9999.0", true),
        ("-9.999e3", true),
        ("\"-9999\"", false),
        ("false", true),
        ("0", false),
        ("null", false),
        ("[]", false),
    ] {
        assert_eq!(reading.is_absent(&parse(json)), expected, "{json}");
    }
    // A text from CSV has no type.
    assert_eq!(reading.find_listed("-9999"), Some(&parse("-9999")));
    assert_eq!(reading.find_listed("false"), Some(&parse("false")));
    assert_eq!(reading.find_listed("x"), None);
}
