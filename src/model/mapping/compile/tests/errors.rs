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
    assert_errors(
        &with_fields("x: {type: id}\ny: {type: id}\nz: {type: string, path: <http://e/z>}"),
        &[(5, 3, "field `y`: an object has only one field of type `id`, which is already `x`")],
    );
    assert_errors(
        &with_fields(
            "x: {type: id, path: <http://e/x>, required: true}\ny: {type: string, path: <http://e/y>}",
        ),
        &[
            (
                4,
                17,
                "Remove the `path`, or, to store an identifier as a value, write `type: string`",
            ),
            (4, 37, "`required` has no meaning here"),
        ],
    );
    assert_errors(
        &with_fields("uri: {type: string, path: <http://e/z>}"),
        &[(4, 3, "field `uri`: the name `uri` is reserved")],
    );
    assert_errors(
        &with_fields("'': {type: string, path: <http://e/z>}"),
        &[(4, 3, "the name of a field is empty")],
    );
    assert_errors(
        &with_fields("\"a\\n\": {type: string, path: <http://e/z>}"),
        &[(4, 3, "a control character")],
    );
    assert_errors(
        &with_fields("a: {type: array, path: <http://e/z>, elements: {type: id}}"),
        &[(4, 50, "field `a[]`: an `id` is the object's own URI")],
    );
}

#[test]
fn arrays_are_checked() {
    assert_errors(
        &with_fields(
            "a:\n  type: array\n  path: <http://e/a>\n  elements:\n    type: array\n    path: <http://e/a>",
        ),
        &[(8, 7, "field `a[]`: an array cannot contain arrays: RDF keeps")],
    );
    assert_errors(
        &with_fields(
            "a:\n  type: array\n  path: <http://e/a>\n  elements:\n    type: string\n    path: <http://e/b>",
        ),
        &[(9, 13, "the array has the property <http://e/a>, and its elements have <http://e/b>")],
    );
    assert_errors(
        &with_fields(
            "a:\n  type: array\n  path: <http://e/a>/A:.\n  elements:\n    type: object\n    path: B:.\n    fields: {x: {type: string, path: <http://e/x>}}",
        ),
        &[(9, 13, "the array has the namespace `A`, and its elements have `B`")],
    );
    assert_errors(&with_fields("a: {type: array}"), &[(4, 6, "the path names no property")]);
    assert_errors(
        &with_fields("a: {type: array, path: <http://e/a>/A:.}"),
        &[(4, 26, "define them under `elements`")],
    );
    assert_errors(
        &with_fields(
            "a: {type: array, path: <http://e/a>, language: en, elements: {type: string}}",
        ),
        &[(4, 40, "`language` has no meaning here")],
    );
    assert_errors(
        &with_fields(
            "a: {type: array, path: <http://e/a>, elements: {type: string, required: true}}",
        ),
        &[(4, 65, "field `a[]`: `required` has no meaning here")],
    );
    for (elements, words) in [
        ("object", "`object` is not a type of single values; write `elements: string`"),
        ("strings", "`strings` is not a type of single values"),
        ("array", "elements: {type: object, path: <IRI>/Namespace:., fields: {...}}"),
        ("''", "field `a[]`: `` is not a type of single values"),
    ] {
        let config = format!("a: {{type: array, path: <http://e/a>, elements: {elements}}}");
        assert_errors(&with_fields(&config), &[(4, 50, words)]);
    }
    assert_errors(
        &with_fields("a: {type: array, elements: string}"),
        &[(4, 6, "the path names no property")],
    );
    assert_errors(
        &with_fields("a: {type: array, path: <http://e/a>/A:., elements: string}"),
        &[(4, 26, "only objects have one")],
    );
    assert_errors(
        &with_fields("a: {type: array, path: <http://e/a>, elements: {path: <http://e/a>}}"),
        &[(4, 50, "field `a[]`: `type` is missing")],
    );
}

#[test]
fn strings_are_checked() {
    assert_errors(
        &with_fields("a: {type: string, path: <http://e/a>, language: e n}"),
        &[(4, 51, "field `a`: `e n` is not a language tag")],
    );
    assert_errors(
        &with_fields("a: {type: string, path: <http://e/a>, language: en, datatype: <http://e/d>}"),
        &[(4, 51, "a `datatype` or a `language`, not both")],
    );
    assert_errors(
        &with_fields("a: {type: string, path: <http://e/a>, datatype: own:int}"),
        &[(4, 51, "the datatype `own:int` is invalid: the prefix `own` is not among `prefixes`")],
    );
    assert_errors(
        &with_fields(
            "a: {type: string, path: <http://e/a>, datatype: <http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>}",
        ),
        &[(4, 51, "needs its language")],
    );
    assert_errors(
        &with_fields("a: {type: integer, path: <http://e/a>, datatype: <http://e/d>}"),
        &[(4, 42, "`datatype` has no meaning here")],
    );
    assert_errors(
        &with_fields("a: {type: string, path: Plant:.}"),
        &[(4, 27, "only objects have one")],
    );
    assert_errors(
        &with_fields("a: {type: string, path: <http://e/a>/Plant:.}"),
        &[(4, 27, "only objects have one")],
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
