//! What is refused, with its place and words.
use super::{bad, good, with};
use crate::mapping::compile::{MAX_FINDINGS, compile};
use std::fmt::Write as _;

#[test]
fn every_fault_is_found_with_its_place_in_the_order_of_the_text() {
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
    bad(
        config,
        &[
            (1, 7, "root: the type is `objekt`; the root is always `type: object`"),
            (2, 7, "root: the path of the root names the namespace alone"),
            (
                3,
                1,
                "root: `colour` is not known; this definition takes `type`, `path`, `fields`, `prefixes`",
            ),
            (6, 11, "field `a`: there is no type `sting`; did you mean `string`?"),
            (9, 5, "field `b`: the path names no property"),
            (10, 5, "field `b`: `paht` is not known; did you mean `path`?"),
            (
                13,
                11,
                "field `c`: the path names no namespace for these objects; write it as `<IRI>/Namespace:.`",
            ),
            (15, 32, "field `c.d`: the path `not an iri` cannot be read: `not an iri` is no IRI"),
            (15, 54, "field `c.d`: `required` is true or false, without quotes"),
            (
                16,
                10,
                "field `c.e`: a definition is a mapping with `type` and the like; here is a text",
            ),
            (17, 21, "field `c.a`: `path` has no meaning here; this definition takes `type`"),
            (18, 3, "the key `b` stands twice in one mapping"),
        ],
    );
}

#[test]
fn the_root_is_checked() {
    bad("[]", &[(1, 1, "root: a definition is a mapping")]);
    bad("hello", &[(1, 1, "here is a text")]);
    bad("", &[(1, 1, "the text is empty")]);
    bad(
        "{}",
        &[
            (1, 1, "`type: object` is missing"),
            (1, 1, "`path` is missing"),
            (1, 1, "`fields` is missing"),
        ],
    );
    bad("type: object\npath: Plant:.\nfields:\n", &[(3, 7, "`fields` is empty")]);
    bad("type: object\npath: Plant:.\nfields: {}", &[(3, 9, "`fields` is empty")]);
    bad("type: object\npath: Plant:.\nfields: [a]", &[(3, 9, "here is a list")]);
    bad(&with("id: {type: id}"), &[(4, 3, "`fields` holds no field but the `id`")]);
    bad(&with("id: {type: id}"), &[(4, 3, "such as `name: {type: string, path:")]);
    bad(
        &with("a: {type: object, path: <http://e/a>/A:., fields: {id: {type: id}}}"),
        &[(4, 53, "write `type: resource` with the property as its `path`")],
    );
    bad(
        "type: object\npath: [Plant:.]\nfields: {a: {type: string, path: <http://e/a>}}",
        &[(2, 7, "`path` is a text; here is a list")],
    );
    bad(
        "type: object\npath: <http://e/p>/Plant:.\nfields: {a: {type: string, path: <http://e/a>}}",
        &[(2, 7, "names the namespace alone")],
    );
    bad(
        "type: object\npath: Pl|ant:.\nrequired: true\nfields: {a: {type: string, path: <http://e/a>}}",
        &[(2, 7, "'|' is none of its characters"), (3, 1, "`required` has no meaning here")],
    );
}

#[test]
fn ids_are_checked() {
    bad(
        &with("x: {type: id}\ny: {type: id}\nz: {type: string, path: <http://e/z>}"),
        &[(5, 3, "field `y`: an object has one field of type `id`, and `x` is it already")],
    );
    bad(
        &with(
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
    bad(
        &with("uri: {type: string, path: <http://e/z>}"),
        &[(4, 3, "field `uri`: the name `uri` is kept")],
    );
    bad(&with("'': {type: string, path: <http://e/z>}"), &[(4, 3, "the name of a field is empty")]);
    bad(&with("\"a\\n\": {type: string, path: <http://e/z>}"), &[(4, 3, "a control character")]);
    bad(
        &with("a: {type: array, path: <http://e/z>, elements: {type: id}}"),
        &[(4, 50, "field `a[]`: an `id` is the object's own URI")],
    );
}

#[test]
fn arrays_are_checked() {
    bad(
        &with(
            "a:\n  type: array\n  path: <http://e/a>\n  elements:\n    type: array\n    path: <http://e/a>",
        ),
        &[(8, 7, "field `a[]`: an array cannot hold arrays: RDF keeps")],
    );
    bad(
        &with(
            "a:\n  type: array\n  path: <http://e/a>\n  elements:\n    type: string\n    path: <http://e/b>",
        ),
        &[(9, 13, "the array is the property <http://e/a>, its elements <http://e/b>")],
    );
    bad(
        &with(
            "a:\n  type: array\n  path: <http://e/a>/A:.\n  elements:\n    type: object\n    path: B:.\n    fields: {x: {type: string, path: <http://e/x>}}",
        ),
        &[(9, 13, "the array is of the namespace `A`, its elements of `B`")],
    );
    bad(&with("a: {type: array}"), &[(4, 6, "the path names no property")]);
    bad(
        &with("a: {type: array, path: <http://e/a>/A:.}"),
        &[(4, 26, "say what they are under `elements`")],
    );
    bad(
        &with("a: {type: array, path: <http://e/a>, language: en, elements: {type: string}}"),
        &[(4, 40, "`language` has no meaning here")],
    );
    bad(
        &with("a: {type: array, path: <http://e/a>, elements: {type: string, required: true}}"),
        &[(4, 65, "field `a[]`: `required` has no meaning here")],
    );
    for (elements, words) in [
        ("object", "`object` is no type of single values; write `elements: string`"),
        ("strings", "`strings` is no type of single values"),
        ("array", "elements: {type: object, path: <IRI>/Namespace:., fields: {...}}"),
        ("''", "field `a[]`: a definition is"),
    ] {
        let config = format!("a: {{type: array, path: <http://e/a>, elements: {elements}}}");
        bad(&with(&config), &[(4, 50, words)]);
    }
    bad(&with("a: {type: array, elements: string}"), &[(4, 6, "the path names no property")]);
    bad(
        &with("a: {type: array, path: <http://e/a>/A:., elements: string}"),
        &[(4, 26, "only objects have one")],
    );
    bad(
        &with("a: {type: array, path: <http://e/a>, elements: {path: <http://e/a>}}"),
        &[(4, 50, "field `a[]`: `type` is missing")],
    );
}

#[test]
fn strings_are_checked() {
    bad(
        &with("a: {type: string, path: <http://e/a>, language: e n}"),
        &[(4, 51, "field `a`: `e n` is no language tag")],
    );
    bad(
        &with("a: {type: string, path: <http://e/a>, language: en, datatype: <http://e/d>}"),
        &[(4, 51, "a `datatype` or a `language`, not both")],
    );
    bad(
        &with("a: {type: string, path: <http://e/a>, datatype: own:int}"),
        &[(
            4,
            51,
            "the datatype `own:int` cannot be read: the prefix `own` is not among `prefixes`",
        )],
    );
    bad(
        &with(
            "a: {type: string, path: <http://e/a>, datatype: <http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>}",
        ),
        &[(4, 51, "needs its language")],
    );
    bad(
        &with("a: {type: integer, path: <http://e/a>, datatype: <http://e/d>}"),
        &[(4, 42, "`datatype` has no meaning here")],
    );
    bad(&with("a: {type: string, path: Plant:.}"), &[(4, 27, "only objects have one")]);
    bad(
        &with("a: {type: string, path: <http://e/a>/Plant:.}"),
        &[(4, 27, "only objects have one")],
    );
}

#[test]
fn prefixes_are_checked() {
    let config = "prefixes: {ex: not an iri, list: []}\ntype: object\npath: P:.\nfields: {a: {type: string, path: 'ex:a'}}";
    bad(
        config,
        &[
            (1, 16, "the prefix `ex` stands for `not an iri`, which is no absolute IRI"),
            (1, 34, "the prefix `list` stands for an IRI, not a list"),
            (4, 34, "no absolute IRI"),
        ],
    );
    bad(
        "prefixes: x\ntype: object\npath: P:.\nfields: {a: {type: string, path: <http://e/a>}}",
        &[(1, 11, "`prefixes` maps each prefix to an IRI")],
    );
}

#[test]
fn the_list_of_faults_is_bounded() {
    let mut fields = String::new();
    for i in 0..3000 {
        writeln!(fields, "f{i}: {{type: string}}").unwrap();
    }
    let findings = compile(&with(&fields)).unwrap_err();
    assert_eq!(findings.len(), MAX_FINDINGS + 1);
    assert_eq!(findings[MAX_FINDINGS].message, "there are more faults");
}

#[test]
fn long_names_of_fields_are_refused_and_cut_in_faults() {
    let name = "ä".repeat(257);
    let shown =
        format!("field `{}...`: the name of a field has up to 256 characters", "ä".repeat(64));
    bad(&with(&format!("{name}: {{type: string, path: <http://e/p>}}")), &[(4, 3, &shown)]);
    good(&with(&format!("{}: {{type: string, path: <http://e/p>}}", "ä".repeat(256))));
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
    bad(&with(&fields), &[(1, 1, "1002 namespaces are named")]);
}
