//! Literals keep their form, numbers their digits, and what is not valid is no number.
use super::*;

#[test]
fn expressions_see_literals_as_they_are_stored() {
    let fixture = Fixture::with(
        "INSERT DATA { <a:1> <a:v> \"12.50\"^^xsd:decimal . <a:2> <a:v> \"24:00:00\"^^xsd:time .
           <a:3> <a:v> \"1\"^^xsd:boolean . <a:4> <a:v> \"1.0e3\"^^xsd:double . <a:5> <a:v> \"007\"^^xsd:byte .
           <a:6> <a:v> \"2024-05-01T12:00:00.000+00:00\"^^xsd:dateTime . <a:7> <a:v> \"+5\"^^xsd:integer }",
    );
    let of = |subject: u8, select: &str| {
        let text = format!("SELECT ({select} AS ?x) {{ <a:{subject}> <a:v> ?v }}");
        fixture.rows(&text).join(";")
    };
    let stored = ["12.50", "24:00:00", "1", "1.0e3", "007", "2024-05-01T12:00:00.000+00:00", "+5"];
    for (subject, text) in (1..).zip(stored) {
        for select in [
            "STR(?v)",
            "CONCAT(STR(?v), '')",
            "GROUP_CONCAT(?v)",
            "GROUP_CONCAT(DISTINCT ?v)",
            "MIN(?v)",
            "MAX(?v)",
            "SAMPLE(?v)",
            "IF(true, ?v, 1 + 1)",
            "IF(STRLEN(STR(?v)) > 100, 0, ?v)",
            "COALESCE(1/0, ?v)",
        ] {
            assert_eq!(of(subject, select), text, "{select}");
        }
        let pattern = format!(
            "SELECT ?v {{ ?s <a:v> ?v FILTER(REGEX(STR(?v), '^{}$')) }}",
            text.replace('.', "[.]").replace('+', "[+]")
        );
        assert_eq!(fixture.rows(&pattern), [text]);
        let bound = format!("SELECT ?w {{ <a:{subject}> <a:v> ?v BIND(?v AS ?w) }}");
        assert_eq!(fixture.rows(&bound), [text]);
        let grouped =
            format!("SELECT ?v (STR(MAX(?v)) AS ?m) {{ <a:{subject}> <a:v> ?v }} GROUP BY ?v");
        assert_eq!(fixture.rows(&grouped), [format!("{text},{text}")]);
    }
    // Expressions compute with the values, whether they show the form or not.
    for form in ["", " && STR(?v) != ''"] {
        for (subject, condition) in [
            (
                1,
                "?v = 12.5 && ?v IN (1, 12.5) && ?v + 1 = 13.5 && -?v < 0 && ABS(?v) > 12 && !(?v > 12.5)",
            ),
            (2, "?v = '00:00:00'^^xsd:time && HOURS(?v) = 0"),
            (3, "?v && ?v = true && IF(?v, true, false) && (?v || false) && !(!?v)"),
            (
                4,
                "?v = 1000 && ?v IN (1e3) && ROUND(?v) = 1000 && ?v / 2 = 500 && (?v + ?v) * ?v = 2e6",
            ),
            (
                5,
                "?v = 7 && ?v * 2 = 14 && DATATYPE(?v) = xsd:byte && isNumeric(?v) && SUBSTR('12345678', ?v) = '78'",
            ),
            (
                6,
                "YEAR(?v) = 2024 && ?v = '2024-05-01T12:00:00Z'^^xsd:dateTime && ?v < NOW() && SECONDS(?v) = 0",
            ),
            (
                7,
                "?v = 5 && sameTerm(?v, '+5'^^xsd:integer) && !sameTerm(?v, 5) && STR(?v) = '+5' && ?v",
            ),
        ] {
            let text = format!("ASK {{ <a:{subject}> <a:v> ?v FILTER({condition}{form}) }}");
            assert!(fixture.is_true(&text), "{text}");
        }
    }
    assert_eq!(fixture.rows("SELECT (SUM(?v) AS ?x) { VALUES ?v { 1.50 2.50 } }"), ["4"]);
    assert_eq!(fixture.rows("SELECT (SUM(DISTINCT ?v) AS ?x) { VALUES ?v { 1.50 1.5 } }"), ["3"]);
    assert_eq!(fixture.rows("SELECT ?v { VALUES ?v { 01.50 } }"), ["01.50"]);
    for (constant, text) in [
        ("STR(01.50)", "01.50"),
        ("IF(true, 01.50, 2)", "01.50"),
        ("STRDT('01', xsd:integer)", "01"),
        ("STRDT('01', xsd:integer) + 1", "2"),
        ("DATATYPE('3'^^xsd:byte)", "http://www.w3.org/2001/XMLSchema#byte"),
        ("DATATYPE(STRDT('03', xsd:byte))", "http://www.w3.org/2001/XMLSchema#byte"),
        ("xsd:string(01.50)", "1.5"),
    ] {
        assert_eq!(fixture.rows(&format!("SELECT ({constant} AS ?x) {{}}")), [text], "{constant}");
    }
}

#[test]
fn numbers_have_up_to_40_digits_in_expressions() {
    let fixture = Fixture::with(
        "INSERT DATA { <a:1> <a:v> 0.00012345678901234567 . <a:2> <a:v> 12345678901234567890 .
           <a:3> <a:v> -0.00012345678901234567 . <a:4> <a:v> 1 . <a:5> <a:v> 0.00012345678901234568 }",
    );
    let ask = |condition: &str| {
        let rows = fixture.rows(&format!("SELECT (({condition}) AS ?x) {{}}"));
        assert_eq!(rows, ["true"], "{condition}");
    };
    for condition in [
        "0.00012345678901234567 > 0",
        "0.00012345678901234567 < 0.00012345678901234568",
        "0.00012345678901234567 = 0.000123456789012345670",
        "0.00012345678901234567 != 0.00012345678901234568",
        "0.00012345678901234567 IN (1, 0.00012345678901234567)",
        "12345678901234567890 != 'x' && true != 12345678901234567890",
        "12345678901234567890 NOT IN ('x', 'x'@en, <a:x>, '2024-01-01'^^xsd:date)",
        "!BOUND(?none) && COALESCE(12345678901234567890 = 'x'^^<a:unit>, true)",
        "isNumeric(0.00012345678901234567)",
        "!(!0.00012345678901234567)",
        "-0.00012345678901234567 < 0",
        "0.00012345678901234567 + 1 = 1.00012345678901234567",
        "9223372036854775807 + 1 = 9223372036854775808",
        "9223372036854775807 * 9223372036854775807 = 85070591730234615847396907784232501249",
        "0.0000000001 * 0.0000000001 = 0.00000000000000000001",
        "1 / 100000000000000000000 = 0.00000000000000000001",
        "ABS(-0.00012345678901234567) = 0.00012345678901234567",
        "ROUND(2.50000000000000000001) = 3 && FLOOR(2.00000000000000000001) = 2",
        "CEIL(2.00000000000000000001) = 3",
        "xsd:integer('123456789012345678901234567890') = 123456789012345678901234567890",
        "xsd:decimal('0.00012345678901234567') = 0.00012345678901234567",
        "xsd:integer(123456789012345678901234567890.5) = 123456789012345678901234567890",
        "xsd:integer(1e20) = 100000000000000000000",
        "xsd:double(0.00012345678901234567) = 1.2345678901234567e-4",
        "xsd:string(0.00012345678901234567) = '0.00012345678901234567'",
        "xsd:boolean(0.00012345678901234567)",
        "0.00012345678901234567 < 1e0 && 1e0 > 0.00012345678901234567",
        "(1 + 2) * 3 + 4 * (5 + 0.00000000000000000006) = 29.00000000000000000024",
        "DATATYPE(9223372036854775807 + 1) = xsd:integer",
    ] {
        ask(condition);
    }
    assert_eq!(fixture.rows("SELECT ?s { ?s <a:v> ?v FILTER(?v > 0) }").len(), 4);
    assert_eq!(fixture.rows("SELECT ?s { ?s <a:v> ?v FILTER(?v < 0) }"), ["a:3"]);
    assert_eq!(
        fixture.rows("SELECT (SUM(?v) AS ?x) (MIN(?v) AS ?y) (MAX(?v) AS ?z) { ?s <a:v> ?v }"),
        ["12345678901234567891.00012345678901234568,-0.00012345678901234567,12345678901234567890"]
    );
    assert_eq!(
        fixture.rows("SELECT (AVG(?v) AS ?x) { VALUES ?v { 0.00000000000000000002 0 } }"),
        ["0.00000000000000000001"]
    );
    let ordered = |modifiers: &str| {
        let answer = fixture.query(&format!("SELECT ?s {{ ?s <a:v> ?v }} {modifiers}")).unwrap();
        answer.lines().skip(1).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(ordered("ORDER BY ?v"), "a:3 a:1 a:5 a:4 a:2");
    assert_eq!(ordered("ORDER BY DESC(?v) LIMIT 3"), "a:2 a:4 a:5");
    let first = |order: &str, filter: &str| {
        fixture.rows(&format!(
            "SELECT ?s {{ {{ SELECT ?s {{ ?s <a:v> ?v {filter} }} ORDER BY {order} LIMIT 1 }} }}"
        ))
    };
    assert_eq!(first("DESC(?v)", ""), ["a:2"]);
    assert_eq!(first("?v", ""), ["a:3"]);
    assert_eq!(first("DESC(?v)", "FILTER(STR(?v) IN ('1.0', '0.00012345678901234567'))"), ["a:1"]);
    assert_eq!(first("DESC(?v)", "VALUES ?v { 10.0 9.0 } FILTER(STR(?v) != '')"), [""; 0]);
    let listed = "SELECT ?v { { SELECT ?v { VALUES ?v { 9.0 10.0 8 } FILTER(STR(?v) != '') } ORDER BY DESC(?v) LIMIT 1 } }";
    assert_eq!(fixture.rows(listed), ["10.0"]);
    let distinct = fixture.query("SELECT DISTINCT ?v { ?s <a:v> ?v } ORDER BY DESC(?v) LIMIT 4");
    assert_eq!(
        distinct.unwrap().lines().skip(1).collect::<Vec<_>>(),
        ["12345678901234567890", "1", "0.00012345678901234568", "0.00012345678901234567"]
    );
    for refused in [
        "SELECT (123456789012345678901234567890 * 123456789012345678901234567890 AS ?x) {}",
        "SELECT (0.00000000000000000000000000000000000000001 + 1 AS ?x) {}",
        "SELECT (SUM(?v) AS ?x) { VALUES ?v { 1 0.00000000000000000000000000000000000000001 } }",
    ] {
        let error = fixture.query(refused).unwrap_err();
        assert_eq!(error.class, ErrorClass::Invalid, "{refused}");
        assert!(error.to_string().contains("more than 40 digits"), "{error}");
    }
    // A comparison needs no more than the digits.
    ask("0.00000000000000000000000000000000000000000000001 > 0");
}

#[test]
fn a_literal_that_is_not_valid_is_no_number() {
    let fixture = Fixture::with(
        "INSERT DATA { <a:1> <a:v> \"300\"^^xsd:byte . <a:2> <a:v> \"-1\"^^xsd:nonNegativeInteger .
           <a:3> <a:v> \"infinity\"^^xsd:double . <a:4> <a:v> \"x\"^^xsd:decimal . <a:5> <a:v> \"100\"^^xsd:byte }",
    );
    for form in ["", "FILTER(STR(?v) != '')"] {
        let rows = |condition: &str| {
            fixture.rows(&format!("SELECT ?s {{ ?s <a:v> ?v {condition} {form} }}"))
        };
        assert_eq!(rows("FILTER(isNumeric(?v))"), ["a:5"]);
        assert_eq!(rows("FILTER(?v < 400)"), ["a:5"]);
        assert_eq!(rows("FILTER(?v)"), ["a:5"]);
        assert_eq!(rows("BIND(?v + 1 AS ?w) FILTER(BOUND(?w))"), ["a:5"]);
    }
    for aggregate in ["SUM", "AVG"] {
        let text =
            format!("SELECT ({aggregate}(?v) AS ?x) {{ VALUES ?v {{ 1 '1.5'^^xsd:integer }} }}");
        assert_eq!(fixture.rows(&text), [""], "{aggregate}");
    }
    for (expression, value) in [
        ("isNumeric('300'^^xsd:byte)", "false"),
        ("isNumeric('-1'^^xsd:nonNegativeInteger)", "false"),
        ("isNumeric('inf'^^xsd:double)", "false"),
        ("isNumeric('100'^^xsd:byte)", "true"),
        ("isNumeric(' 7 ')", "false"),
        ("'300'^^xsd:byte + 1", ""),
        ("xsd:integer(' 7 ')", "7"),
        ("xsd:integer('\\t7\\n')", "7"),
        ("xsd:integer('7.5')", ""),
        ("xsd:integer('')", ""),
        ("xsd:decimal(' 7.50 ')", "7.5"),
        ("xsd:double(' 7.5e0 ')", "7.5"),
        ("xsd:double(' INF ')", "INF"),
        ("xsd:double('infinity')", ""),
        ("xsd:float(' 7.5 ')", "7.5"),
        ("xsd:boolean(' true ')", "true"),
        ("xsd:boolean(' 1 ')", "true"),
        ("xsd:dateTime(' 2020-01-02T03:04:05Z ')", "2020-01-02T03:04:05Z"),
        ("xsd:date(' 2020-01-02 ')", "2020-01-02"),
        ("xsd:time(' 03:04:05 ')", "03:04:05"),
        ("xsd:dayTimeDuration(' PT5M ')", "PT5M"),
        ("xsd:string(' 7 ')", " 7 "),
        ("xsd:integer(7.9)", "7"),
        ("xsd:integer(-7.9)", "-7"),
        ("xsd:integer(true)", "1"),
        ("xsd:boolean(0.0)", "false"),
        ("xsd:integer(1e300)", ""),
    ] {
        assert_eq!(
            fixture.rows(&format!("SELECT ({expression} AS ?x) {{}}")),
            [value],
            "{expression}"
        );
    }
}

#[test]
fn a_subquery_sorts_as_a_query_does() {
    let fixture = Fixture::new();
    let values = [
        "<a:iri>",
        "true",
        "10",
        "9.5",
        "1e1",
        "'0.1'^^xsd:float",
        "9007199254740993",
        "9007199254740992e0",
        "9007199254740992",
        "12345678901234567890",
        "'NaN'^^xsd:double",
        "'2024-01-01T00:00:00'^^xsd:dateTime",
        "'2024-01-01T01:00:00Z'^^xsd:dateTime",
        "'2023-12-31'^^xsd:date",
        "'5'",
        "'a'",
        "'Z'",
        "'b'@de",
        "'a'@en",
        "'PT9M'^^xsd:duration",
        "'PT10M'^^xsd:duration",
        "'12'^^<a:unit>",
        "'x'^^xsd:integer",
        "UNDEF",
    ];
    let listed = format!("SELECT ?v {{ VALUES ?v {{ {} }} }}", values.join(" "));
    for order in ["?v", "DESC(?v)", "(IF(BOUND(?v), ?v, 1/0))"] {
        for limit in 1..=values.len() {
            let sorted = format!("{listed} ORDER BY {order} LIMIT {limit}");
            let nested = format!("SELECT ?v {{ {{ {sorted} }} }}");
            assert_eq!(fixture.rows(&nested), fixture.rows(&sorted), "{order} {limit}");
        }
    }
}

#[test]
fn no_term_is_in_an_empty_list() {
    let fixture = Fixture::with(
        "INSERT DATA { <a:1> <a:v> <a:iri> . <a:2> <a:v> 'x'@en . <a:3> <a:v> 'x'^^<a:unit> . <a:4> <a:v> 1 }",
    );
    let rows =
        |condition: &str| fixture.rows(&format!("SELECT ?s {{ ?s <a:v> ?v FILTER({condition}) }}"));
    let all = ["a:1", "a:2", "a:3", "a:4"];
    assert_eq!(rows("?v NOT IN ()"), all);
    assert_eq!(rows("(?v IN ()) = false"), all);
    assert_eq!(rows("?v IN ()"), [""; 0]);
}

#[test]
fn a_long_expression_is_evaluated_once() {
    let fixture = Fixture::with("INSERT DATA { <a:s> <a:v> 1.0 }");
    let sum = vec!["?v"; 900].join(" + ");
    let rows =
        fixture.rows(&format!("SELECT ({sum} AS ?x) {{ ?s <a:v> ?v FILTER(STR(?v) = '1.0') }}"));
    assert_eq!(rows, ["900"]);
    let list = ["2", "?w"].repeat(200).join(", ");
    let rows = fixture.rows(&format!("SELECT ?s {{ ?s <a:v> ?v FILTER(?v IN ({list}, 1)) }}"));
    assert_eq!(rows, ["a:s"]);
}
