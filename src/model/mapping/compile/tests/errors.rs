//! Errors of mappings, with their positions and texts.
use super::{assert_errors, compile_valid, with_fields};
use crate::mapping::compile::{MAX_FINDINGS, compile};
use std::fmt::Write as _;

#[test]
fn every_error_is_reported_with_its_position_in_order() {
    let config = "\
type: objekt
path: <http://e/plant>
colour: red
fields:
  a:
    type: sting
    path: <http://e/a>
  b:
    type: string
    paht: <http://e/b>
  c:
    type: object
    path: <http://e/c>
    fields:
      d: {type: integer, path: not an iri, required: 'true'}
      e: text
      a: {type: id, path: <http://e/a>}
  b: {type: id}
";
    assert_errors(
        config,
        &[
            (1, 7, "root: the type is `objekt`; the root is always `type: object`"),
            (2, 7, "root: the path of the root names only the namespace"),
            (
                3,
                1,
                "root: the key `colour` is unknown; this definition takes `type`, `path`, `fields`, `key`, `types`, `label`, `unknownFields`, `prefixes`",
            ),
            (6, 11, "field `a`: there is no type `sting`; did you mean `string`?"),
            (9, 5, "field `b`: the path names no property"),
            (10, 5, "field `b`: the key `paht` is unknown; did you mean `path`?"),
            (
                13,
                11,
                "field `c`: the path names no namespace for these objects; write it as `<IRI>/Namespace:.`",
            ),
            (15, 32, "field `c.d`: the path `not an iri` is invalid: `not an iri` is not an IRI"),
            (15, 54, "field `c.d`: `required` must be true or false, without quotes"),
            (
                16,
                10,
                "field `c.e`: a definition must be a mapping with keys such as `type`, not a text",
            ),
            (17, 21, "field `c.a`: `path` has no meaning here; this definition takes only `type`"),
            (18, 3, "the key `b` is in this mapping twice"),
        ],
    );
}

/// Asserts that these fields, which begin at line 4, have the errors behind them: `!`, the line, the column, and words of
/// the error.
#[track_caller]
fn assert_field_errors(cases: &str) {
    let is_error = |line: &str| line.starts_with("! ");
    let mut lines = cases.trim_start().lines().peekable();
    while lines.peek().is_some() {
        let (mut fields, mut expected) = (String::new(), Vec::new());
        while let Some(line) = lines.next_if(|line| !is_error(line)) {
            writeln!(fields, "{line}").unwrap();
        }
        while let Some(error) = lines.next_if(|line| is_error(line)) {
            let parts: Vec<&str> = error.splitn(4, ' ').collect();
            expected.push((parts[1].parse().unwrap(), parts[2].parse().unwrap(), parts[3]));
        }
        assert_errors(&with_fields(&fields), &expected);
    }
}

#[test]
fn keys_of_other_types_are_no_errors_beside_an_unknown_type() {
    assert_field_errors(
        "
a: {type: mapp, path: <http://e/a>/A:., key: {path: <http://e/k>}, languages: [en]}
! 4 13 no type `mapp`; did you mean `map`?
a: {type: objct, path: <http://e/a>/A:., key: b, keyScope: parent, types: []}
! 4 13 no type `objct`; did you mean `object`?
",
    );
}

#[test]
fn the_label_is_a_single_string_of_the_root() {
    let with_label = |label: &str| {
        format!(
            "type: object\npath: Plant:.\nlabel: {label}\nfields:\n  name: {{type: string, path: <http://e/n>}}\n\
             \x20 tags: {{type: array, path: <http://e/t>}}\n  size: {{type: number, path: <http://e/s>}}\n\
             \x20 uri: {{type: id}}\n"
        )
    };
    assert_eq!(compile(&with_label("name")).unwrap().label.as_deref(), Some("name"));
    for (label, why) in [
        (
            "nam",
            "`label` names the field `nam`, which the root does not have; did you mean `name`?",
        ),
        ("colour", "the root does not have; it can be `name`"),
        (
            "tags",
            "`label` names the field `tags`, which is not a single text; name a field of `type: string`",
        ),
        ("size", "which is not a single text"),
        ("uri", "which is not a single text"),
    ] {
        assert_errors(&with_label(label), &[(3, 8, why)]);
    }
    assert_errors(&with_label("[name]"), &[(3, 8, "root: `label` must be a text, not a list")]);
    let nested = "a: {type: object, path: <http://e/a>/A:., label: b, fields: {b: {type: string, path: <http://e/b>}}}";
    assert_errors(&with_fields(nested), &[(4, 45, "`label` has no meaning here")]);
}

#[test]
fn a_pattern_reads_the_time_that_it_writes() {
    let with_pattern = |pattern: &str| {
        with_fields(&format!("a: {{type: dateTime, path: <http://e/a>, accept: '{pattern}'}}"))
    };
    for pattern in ["%d.%m.%Y %I:%M", "%d.%m.%Y %l:%M:%S"] {
        assert_errors(&with_pattern(pattern), &[(4, 51, "add `%p` to `%I`, or write `%H`")]);
    }
    for pattern in ["%d.%m.%Y %I:%M %p", "%d.%m.%y %H", "%F %T", "%A %b %e %k:%M %Y"] {
        assert!(compile(&with_pattern(pattern)).is_ok(), "{pattern}");
    }
}

#[test]
fn a_default_has_no_language_of_another_field() {
    let fields = "a: {type: string, path: <http://e/a>, language: de}\n\
                  b: {type: languageMap, path: <http://e/a>, default: {en: x, DE: y}}";
    assert_errors(&with_fields(fields), &[(5, 3, "\"DE\", which the field `a` has")]);
    assert!(compile(&with_fields(&fields.replace(", DE: y", ""))).is_ok());
}

#[test]
fn the_root_is_checked() {
    assert_errors("[]", &[(1, 1, "root: a definition must be a mapping")]);
    assert_errors("hello", &[(1, 1, "not a text")]);
    assert_errors("", &[(1, 1, "the text is empty")]);
    assert_errors(
        "{}",
        &[
            (1, 1, "`type: object` is missing"),
            (1, 1, "`path` is missing"),
            (1, 1, "`fields` is missing"),
        ],
    );
    assert_errors("type: object\npath: Plant:.\nfields:\n", &[(3, 7, "`fields` is empty")]);
    assert_errors("type: object\npath: Plant:.\nfields: {}", &[(3, 9, "`fields` is empty")]);
    assert_errors("type: object\npath: Plant:.\nfields: [a]", &[(3, 9, "is not a list")]);
    assert_errors(&with_fields("id: {type: id}"), &[(4, 3, "`fields` contains only the `id`")]);
    assert_errors(&with_fields("id: {type: id}"), &[(4, 3, "such as `name: {type: string, path:")]);
    assert_errors(
        &with_fields("a: {type: object, path: <http://e/a>/A:., fields: {id: {type: id}}}"),
        &[(4, 53, "write `type: resource` with the property as its `path`")],
    );
    assert_errors(
        "type: object\npath: [Plant:.]\nfields: {a: {type: string, path: <http://e/a>}}",
        &[(2, 7, "`path` must be a text, not a list")],
    );
    assert_errors(
        "type: object\npath: <http://e/p>/Plant:.\nfields: {a: {type: string, path: <http://e/a>}}",
        &[(2, 7, "names only the namespace")],
    );
    assert_errors(
        "type: object\npath: Pl|ant:.\nrequired: true\nfields: {a: {type: string, path: <http://e/a>}}",
        &[(2, 7, "the character '|' is not allowed"), (3, 1, "`required` has no meaning here")],
    );
}

#[test]
fn ids_are_checked() {
    assert_field_errors(
        r#"
x: {type: id}
y: {type: id}
z: {type: string, path: <http://e/z>}
! 5 3 field `y`: an object has only one field of type `id`, which is already `x`
x: {type: id, path: <http://e/x>, required: true}
y: {type: string, path: <http://e/y>}
! 4 17 Remove the `path`, or, to store an identifier as a value, write `type: string`
! 4 37 `required` has no meaning here
uri: {type: string, path: <http://e/z>}
! 4 3 field `uri`: the name `uri` is reserved
'': {type: string, path: <http://e/z>}
! 4 3 the name of a field is empty
"a\n": {type: string, path: <http://e/z>}
! 4 3 a control character
a: {type: array, path: <http://e/z>, elements: {type: id}}
! 4 50 field `a[]`: an `id` is the object's own URI
"#,
    );
}

#[test]
fn arrays_are_checked() {
    assert_field_errors(
        "
a:
  type: array
  path: <http://e/a>
  elements:
    type: array
    path: <http://e/a>
! 8 7 field `a[]`: an array cannot contain arrays: RDF keeps
a:
  type: array
  path: <http://e/a>
  elements:
    type: string
    path: <http://e/b>
! 9 13 the array has the property <http://e/a>, and its elements have <http://e/b>
a:
  type: array
  path: <http://e/a>/A:.
  elements:
    type: object
    path: B:.
    fields: {x: {type: string, path: <http://e/x>}}
! 9 13 the array has the namespace `A`, and its elements have `B`
a: {type: array}
! 4 6 the path names no property
a: {type: array, path: <http://e/a>/A:.}
! 4 26 define them under `elements`
a: {type: array, path: <http://e/a>, language: en, elements: {type: string}}
! 4 40 `language` has no meaning here
a: {type: array, path: <http://e/a>, elements: {type: string, required: true}}
! 4 65 field `a[]`: `required` has no meaning here
a: {type: array, path: <http://e/a>, elements: object}
! 4 50 `object` is not a type of single values; write `elements: string`
a: {type: array, path: <http://e/a>, elements: strings}
! 4 50 `strings` is not a type of single values
a: {type: array, path: <http://e/a>, elements: array}
! 4 50 elements: {type: object, path: <IRI>/Namespace:., fields: {...}}
a: {type: array, path: <http://e/a>, elements: ''}
! 4 50 field `a[]`: `` is not a type of single values
a: {type: array, elements: string}
! 4 6 the path names no property
a: {type: array, path: <http://e/a>/A:., elements: string}
! 4 26 only objects have one
a: {type: array, path: <http://e/a>, elements: {path: <http://e/a>}}
! 4 50 field `a[]`: `type` is missing
",
    );
}

#[test]
fn an_error_of_the_values_hides_none_of_the_path() {
    assert_field_errors(
        "
a: {type: object, path: A:., fields: {x: {type: sting, path: <http://e/x>}}}
! 4 6 field `a`: the path names no property
! 4 51 no type `sting`
a: {type: array, path: A:., elements: {type: object, fields: {x: {type: sting, path: <http://e/x>}}}}
! 4 6 the path names no property
! 4 75 no type `sting`
a: {type: string, language: e n}
! 4 6 the path names no property
! 4 31 `e n` is not a language tag
a: {type: dateTime, accept: sometimes, timeZone: Berlin}
! 4 6 the path names no property
! 4 31 `accept` is `sometimes`
! 4 52 is not in the IANA database
a: {type: sting, path: no iri}
! 4 13 no type `sting`
! 4 26 the path `no iri` is invalid
a: {type: object, fields: {x: {type: sting, path: <http://e/x>}}}
! 4 6 the path names no namespace
! 4 40 no type `sting`
a: {type: array, elements: {type: sting, path: no iri}}
! 4 37 no type `sting`
! 4 50 the path `no iri` is invalid
a: {type: dateTime, path: <http://e/a>, required: 'true', timeZone: Berlin}
! 4 53 `required` must be true or false
! 4 71 is not in the IANA database
a: {type: array, path: <http://e/a>, ordered: 'true', absent: [[x]]}
! 4 49 `ordered` must be true or false
! 4 66 `absent`: write strings
a: {type: object, path: A:., absent: [[x]], fields: {x: {type: string, path: <http://e/x>}}}
! 4 6 the path names no property
! 4 41 `absent`: write strings
a: {type: object, path: <http://e/a>, key: b, fields: {x: {type: string, path: <http://e/x>}}}
! 4 27 the path names no namespace
! 4 46 the key cannot have the field `b`
a: {type: map, path: <http://e/a>, key: {type: number, path: no iri}, absent: [[x]], elements: {type: string, path: <http://e/x>}}
! 4 24 the path of a map names
! 4 50 the names of a map are of the type
! 4 64 the path `no iri` is invalid
! 4 82 `absent`: write strings
",
    );
}

#[test]
fn strings_are_checked() {
    assert_field_errors(
        "
a: {type: string, path: <http://e/a>, language: e n}
! 4 51 field `a`: `e n` is not a language tag
a: {type: string, path: <http://e/a>, language: en, datatype: <http://e/d>}
! 4 51 a `datatype` or a `language`, not both
a: {type: string, path: <http://e/a>, datatype: own:int}
! 4 51 the datatype `own:int` is invalid: the prefix `own` is not among `prefixes`
a: {type: string, path: <http://e/a>, datatype: <http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>}
! 4 51 needs its language
a: {type: integer, path: <http://e/a>, datatype: <http://e/d>}
! 4 42 `datatype` has no meaning here
a: {type: string, path: Plant:.}
! 4 27 only objects have one
a: {type: string, path: <http://e/a>/Plant:.}
! 4 27 only objects have one
",
    );
}

#[test]
fn prefixes_are_checked() {
    let config = "prefixes: {ex: not an iri, list: []}\ntype: object\npath: P:.\nfields: {a: {type: string, path: 'ex:a'}}";
    assert_errors(
        config,
        &[
            (1, 16, "the prefix `ex` is `not an iri`, which is not an absolute IRI"),
            (1, 34, "the prefix `list` must be an IRI, not a list"),
            (4, 34, "not an absolute IRI"),
        ],
    );
    assert_errors(
        "prefixes: x\ntype: object\npath: P:.\nfields: {a: {type: string, path: <http://e/a>}}",
        &[(1, 11, "`prefixes` maps each prefix to an IRI")],
    );
}

#[test]
fn the_list_of_errors_is_bounded() {
    let mut fields = String::new();
    for i in 0..3000 {
        writeln!(fields, "f{i}: {{type: string}}").unwrap();
    }
    let findings = compile(&with_fields(&fields)).unwrap_err();
    assert_eq!(findings.len(), MAX_FINDINGS + 1);
    assert_eq!(findings[MAX_FINDINGS].message, "there are more errors");
}

#[test]
fn long_field_names_are_refused_and_cut_in_errors() {
    let name = "ä".repeat(257);
    let shown =
        format!("field `{}...`: the name of a field has up to 256 characters", "ä".repeat(64));
    assert_errors(
        &with_fields(&format!("{name}: {{type: string, path: <http://e/p>}}")),
        &[(4, 3, &shown)],
    );
    compile_valid(&with_fields(&format!(
        "{}: {{type: string, path: <http://e/p>}}",
        "ä".repeat(256)
    )));
}

#[test]
fn the_number_of_namespaces_is_bounded() {
    let mut fields = String::new();
    for i in 0..1001 {
        writeln!(
            fields,
            "f{i}: {{type: object, path: <http://e/f{i}>/N{i}:., fields: {{x: {{type: string, path: <http://e/x>}}}}}}"
        )
        .unwrap();
    }
    assert_errors(&with_fields(&fields), &[(1, 1, "the mapping names 1002 namespaces")]);
}

#[test]
fn groups_have_fields_of_the_object_around_them() {
    let config = "\
type: object
path: Plant:.
key: g.tag
label: g.h.name
fields:
  g:
    type: group
    fields:
      tag: {type: string, path: <http://e/tag>, required: true}
      uri: {type: resource, path: <http://e/uri>}
      h: {type: group, fields: {name: {type: string, path: <http://e/name>}}}
";
    let mapping = compile(config).unwrap();
    let names: Vec<&str> = mapping.root.fields.iter().map(|field| field.name.as_str()).collect();
    assert_eq!(names, ["g.tag", "g.uri", "g.h.name"]);
    assert_eq!(mapping.root.key_names(), ["g.tag"]);
    assert_eq!(mapping.label.as_deref(), Some("g.h.name"));
}

#[test]
fn a_group_cannot_have_the_name_of_the_uri() {
    let config = "\
type: object
path: Plant:.
fields:
  uri: {type: group, fields: {a: {type: string, path: <http://e/a>}}}
";
    assert_errors(config, &[(4, 31, "the name `uri` is reserved")]);
}

#[test]
fn errors_in_groups_have_their_positions() {
    let long = "n".repeat(200);
    let config = format!(
        "\
type: object
path: Plant:.
fields:
  g:
    type: group
    path: <http://e/g>
    required: true
    fields:
      id: {{type: id}}
      name: {{type: string, path: <http://e/name>}}
      list: {{type: array, path: <http://e/list>, elements: {{type: group, fields: {{}}}}}}
  g.name: {{type: string, path: <http://e/other>}}
  title: {{type: string, path: <http://e/name>}}
  {long}: {{type: group, fields: {{{long}: {{type: string, path: <http://e/long>}}}}}}
  empty: {{type: group}}
"
    );
    assert_errors(
        &config,
        &[
            (6, 5, "field `g`: `path` has no meaning here; this definition takes `type`, `fields`"),
            (7, 5, "field `g`: `required` has no meaning here"),
            (9, 7, "field `g.id`: an `id` is the URI of the object around the group"),
            (11, 60, "field `g.list[]`: a `group` cannot be an element"),
            (12, 3, "field `g.name`: a field in a group has the same name with that of its group"),
            (
                13,
                3,
                "field `title`: it has the property <http://e/name> in common with the field `g.name`",
            ),
            (14, 228, "the name of a field and those of its groups"),
            (15, 10, "field `empty`: `fields` is missing"),
        ],
    );
}

#[test]
fn what_senders_may_write_is_checked() {
    assert_field_errors(
        r#"
f: {type: number, path: <http://e/p>, accept: txt}
! 4 49 `accept` is `txt`, which a field of the type `number` does not take; it takes `text`
f: {type: boolean, path: <http://e/p>, accept: text}
! 4 50 it takes `{true:
f: {type: resource, path: <http://e/p>, accept: text}
! 4 43 `accept` has no meaning here
f: {type: number, path: <http://e/p>, accept: [text, {decimal: ','}]}
! 4 56 `accept` has `text` and `{decimal: ","}`, which give the same value different meanings
f: {type: dateTime, path: <http://e/p>, accept: [unix, iso, unix-ms]}
! 4 63 `accept` has `unix` and `unix-ms`
f: {type: number, path: <http://e/p>, accept: {group: ','}}
! 4 49 needs the separator of the fraction
f: {type: number, path: <http://e/p>, accept: {decimal: ',', group: ','}}
! 4 49 are both ','
f: {type: number, path: <http://e/p>, accept: {decimal: ',,'}}
! 4 59 `decimal` is one character
f: {type: number, path: <http://e/p>, accept: {decimal: ',', grp: '.'}}
! 4 64 `accept` has the key `grp`
f: {type: boolean, path: <http://e/p>, accept: {true: [1], false: [1.0]}}
! 4 50 `accept` has 1 for true and for false
f: {type: boolean, path: <http://e/p>, accept: [{true: [1]}, {false: [1.0]}]}
! 4 64 `accept` has `{true: [1], false: []}` and `{true: [], false: [1.0]}`, which give the same value different
f: {type: boolean, path: <http://e/p>, accept: {true: [false]}}
! 4 50 always accepted
f: {type: dateTime, path: <http://e/p>, accept: '%d.%m.%Y'}
! 4 51 has no time of day
f: {type: date, path: <http://e/p>, accept: '%d.%m'}
! 4 47 the pattern "%d.%m" cannot be used:
f: {type: date, path: <http://e/p>, accept: '%Y-%d-%m'}
! 4 47 another meaning than ISO 8601
f: {type: date, path: <http://e/p>, accept: ['%Y%m%d', unix]}
! 4 48 another meaning than the time since 1970
f: {type: dateTime, path: <http://e/p>, accept: '%s'}
! 4 51 write `unix`
f: {type: date, path: <http://e/p>, timeZone: Europe/Berln}
! 4 49 did you mean `Europe/Berlin`?
f: {type: string, path: <http://e/p>, timeZone: UTC}
! 4 41 `timeZone` has no meaning here
f: {type: string, path: <http://e/p>, timeZone: Berlin}
! 4 41 `timeZone` has no meaning here
f: {type: string, path: <http://e/p>, absent: [null]}
! 4 50 `null` always means no value
f: {type: string, path: <http://e/p>, absent: [[a]]}
! 4 50 not a list
f: {type: integer, path: <http://e/p>, default: 1.5}
! 4 51 `default` is no value of the field: 1.5 is not an integer
f: {type: string, path: <http://e/p>, absent: '', default: ''}
! 4 62 leave it out
f: {type: object, path: <http://e/p>/P:., default: {a: x}, fields: {a: {type: string, path: <http://e/a>, values: [y]}}}
! 4 54 `default` is no value of the field: /a: "x" is not a code of the field
f: {type: array, path: <http://e/p>, default: [{b: z}], elements: {type: object, path: P:., fields: {a: {type: string, path: <http://e/a>, required: true}, b: {type: string, path: <http://e/b>}}}}
! 4 49 `default` is no value of the field: /0/a: the field is required and has no value
f: {type: map, path: <http://e/p>/P:., key: {path: <http://e/k>}, default: {m: x}, elements: {type: string, path: <http://e/a>, values: [y]}}
! 4 78 `default` is no value of the field: /m: "x" is not a code of the field
"#,
    );
    let key = "type: object\npath: Plant:.\nkey: a\nfields:\n  a: {type: string, path: <http://e/a>, required: true, default: x}\n";
    assert_errors(key, &[(3, 6, "it has a `default`")]);
}

#[test]
fn a_default_may_name_an_object_that_is_stored_already() {
    for default in ["{uri: 'urn:p', b: z}", "{k: 1, b: z}"] {
        let fields = format!(
            "f: {{type: object, path: <http://e/p>/P:., default: {default}, key: k, fields: {{k: {{type: integer, \
             path: <http://e/k>, required: true}}, a: {{type: string, path: <http://e/a>, required: true}}, \
             b: {{type: string, path: <http://e/b>}}}}}}"
        );
        assert!(compile(&with_fields(&fields)).is_ok(), "{default}");
    }
}

#[test]
fn an_ordered_array_is_the_only_field_of_its_property() {
    assert_field_errors(
        "
a: {type: array, ordered: true, path: <http://e/p>}
b: {type: integer, path: <http://e/p>}
! 5 3 an ordered array is the only field of its property
b: {type: integer, path: <http://e/p>}
c: {type: array, ordered: true, path: <http://e/p>}
! 5 3 an ordered array is the only field of its property
a: {type: string, path: <http://e/p>, ordered: true}
! 4 41 `ordered` has no meaning here
a: {type: array, path: <http://e/p>, ordered: 'true'}
! 4 49 `ordered` must be true or false
",
    );
}

#[test]
fn what_is_around_objects_is_checked() {
    let config = "\
type: object
path: Plant:.
items: /m/*
fields:
  a: {type: string, path: <http://e/a>, outer: '*2'}
  b: {type: object, path: '<http://e/b>/B:.', outer: '*', fields: {c: {type: string, path: <http://e/c>}}}
  d: {type: array, path: <http://e/d>, outer: /a~b}
  e: {type: object, path: '<http://e/f>/B:.', fields: {c: {type: string, path: <http://e/c>, outer: c}}}
  g: {type: group, fields: {h: {type: string, path: <http://e/h>, outer: h}}}
  id: {type: id, outer: '*'}
";
    assert_errors(
        config,
        &[
            (5, 48, "field `a`: `outer` is `*2`: the number of stars in `items` is 1"),
            (6, 54, "field `b`: `outer` is `*`: a star is the name of a member"),
            (7, 47, "field `d`: `outer` is `/a~b`: it is no JSON Pointer"),
            (8, 101, "field `e.c`: `outer` is `c`: only fields of the root"),
        ],
    );
    assert_errors(
        &config.replace("/m/*", "m"),
        &[(3, 8, "root: `items` is `m`, which is no JSON Pointer")],
    );
    let alone = with_fields("a: {type: string, path: <http://e/a>, outer: b}");
    assert_errors(&alone, &[(4, 48, "say where the objects are in a document with `items`")]);
}
