use super::*;
use crate::mapping::compile;

const RICH: &str = "
type: object
path: Plants:.
prefixes: {ex: 'http://e/'}
types: ['ex:Plant', 'ex:Asset']
key: name
fields:
  uri: {type: id}
  name: {type: string, path: ex:name, required: true}
  label de: {type: string, path: ex:label, language: de, required: true}
  label: {type: string, path: ex:label, required: true}
  title: {type: array, path: ex:title, language: en, required: true}
  size: {type: number, path: ex:size}
  count: {type: integer, path: ex:count}
  on: {type: boolean, path: ex:on}
  day: {type: date, path: ex:day}
  at: {type: dateTime, path: ex:at, required: true}
  kind: {type: resource, path: ex:kind}
  code: {type: string, path: ex:code, datatype: ex:code}
  year: {type: string, path: ex:year, datatype: xsd:gYear}
  tags: {type: array, path: ex:tag, required: true}
  units:
    type: array
    elements:
      type: object
      path: ex:unit/Units:.
      types: ['ex:Unit']
      fields:
        no: {type: string, path: ex:no, required: true}
        note: {type: string, path: ex:note}
  site:
    type: object
    path: ex:site/Sites:.
    required: true
    fields: {name: {type: string, path: ex:name}}
";

/// Passes the shapes of a mapping to `read`, as text.
fn with_source<T>(
    config: &str,
    conditions: &[(NamedNode, Term)],
    read: impl FnOnce(&ShapeSource<'_>) -> T,
) -> T {
    let mapping = compile(config).unwrap();
    read(&ShapeSource { id: "bo-1", name: "Plants", mapping: &mapping, conditions })
}

fn shacl_lines(config: &str, conditions: &[(NamedNode, Term)]) -> Vec<String> {
    let quads = with_source(config, conditions, build_shacl);
    quads
        .iter()
        .map(|quad| {
            quad.to_string()
                .replace("urn:penstock:bo-1:shape", "")
                .replace("http://www.w3.org/ns/shacl#", "sh:")
                .replace(XSD_NAMESPACE, "xsd:")
                .replace("http://www.w3.org/1999/02/22-rdf-syntax-ns#", "rdf:")
        })
        .collect()
}

#[test]
fn shacl_has_what_the_mapping_requires() {
    let lines = shacl_lines(RICH, &[]);
    for expected in [
        "<> <rdf:type> <sh:NodeShape>",
        "<> <sh:targetClass> <http://e/Plant>",
        "<> <sh:nodeKind> <sh:IRI>",
        "<> <sh:class> <http://e/Plant>",
        "<> <sh:class> <http://e/Asset>",
        "<> <sh:property> <#name>",
        "<#name> <rdf:type> <sh:PropertyShape>",
        "<#name> <sh:path> <http://e/name>",
        "<#name> <sh:name> \"name\"",
        "<#name> <sh:order> \"1\"^^<xsd:integer>",
        "<#name> <sh:datatype> <xsd:string>",
        "<#name> <sh:minCount> \"1\"^^<xsd:integer>",
        "<#name> <sh:maxCount> \"1\"^^<xsd:integer>",
        "<#label%20de> <sh:qualifiedMinCount> \"1\"^^<xsd:integer>",
        "<#label> <sh:qualifiedMinCount> \"1\"^^<xsd:integer>",
        "<#label> <sh:qualifiedMaxCount> \"1\"^^<xsd:integer>",
        "<#label%20de+label> <sh:path> <http://e/label>",
        "<#label%20de+label> <sh:uniqueLang> \"true\"^^<xsd:boolean>",
        "<#title> <sh:qualifiedMinCount> \"1\"^^<xsd:integer>",
        "<#title+> <sh:path> <http://e/title>",
        "<#count> <sh:datatype> <xsd:integer>",
        "<#on> <sh:datatype> <xsd:boolean>",
        "<#day> <sh:datatype> <xsd:date>",
        "<#at> <sh:datatype> <xsd:dateTime>",
        "<#kind> <sh:nodeKind> <sh:IRI>",
        "<#code> <sh:datatype> <http://e/code>",
        "<#year> <sh:nodeKind> <sh:Literal>",
        "<#tags> <sh:minCount> \"1\"^^<xsd:integer>",
        "<#units> <sh:nodeKind> <sh:IRI>",
        "<#units> <sh:property> <#units/no>",
        "<#units/no> <sh:maxCount> \"1\"^^<xsd:integer>",
        "<#site> <sh:minCount> \"1\"^^<xsd:integer>",
        "<#site> <sh:property> <#site/name>",
    ] {
        assert!(lines.iter().any(|line| line == expected), "{expected}\nin\n{}", lines.join("\n"));
    }
    for absent in [
        // An array has no maximum.
        "<#tags> <sh:maxCount>",
        "<#units> <sh:maxCount>",
        // Optional fields have no minimum.
        "<#size> <sh:minCount>",
        // A nested object may be a reference, which has no field at all.
        "<#units/no> <sh:minCount>",
        // Arrays of texts may have several in one language.
        "<#title+> <sh:uniqueLang>",
        // The text of a year is not checked.
        "<#year> <sh:datatype>",
        "sh:closed",
    ] {
        assert!(!lines.iter().any(|line| line.contains(absent)), "{absent}");
    }
}

#[test]
fn the_target_is_the_class_of_a_condition_or_what_members_have() {
    let node = |iri: &str| NamedNode::new_unchecked(iri);
    let plain = "
type: object
path: Plants:.
prefixes: {ex: 'http://e/'}
fields:
  note: {type: string, path: ex:note}
  name: {type: string, path: ex:name}
";
    let required = plain.replace("path: ex:name", "path: ex:name, required: true");
    let class = (node(rdf::TYPE.as_str()), node("http://e/Class").into());
    let kind = (node("http://e/kind"), Term::from(node("http://e/Plant")));
    for (config, conditions, targets) in [
        (RICH, vec![kind.clone(), class], vec!["<> <sh:targetClass> <http://e/Class>"]),
        (RICH, vec![kind], vec!["<> <sh:targetSubjectsOf> <http://e/kind>"]),
        (RICH, vec![], vec!["<> <sh:targetClass> <http://e/Plant>"]),
        (required.as_str(), vec![], vec!["<> <sh:targetSubjectsOf> <http://e/name>"]),
        (
            plain,
            vec![],
            vec![
                "<> <sh:targetSubjectsOf> <http://e/note>",
                "<> <sh:targetSubjectsOf> <http://e/name>",
            ],
        ),
    ] {
        let lines = shacl_lines(config, &conditions);
        let found: Vec<_> = lines.iter().filter(|line| line.contains("<sh:target")).collect();
        assert_eq!(found, targets);
        assert!(lines.iter().any(|line| line.contains("schema#comment> \"The ")));
    }
}

#[test]
fn shex_has_what_the_mapping_requires() {
    let text = with_source(RICH, &[], write_shex);
    let (prefixes, shapes) = text.split_once("\n# ").unwrap();
    assert!(prefixes.starts_with("PREFIX ex: <http://e/>\nPREFIX sh: "));
    let shapes = shapes.replace("urn:penstock:bo-1:shape", "");
    let expected = "What the mapping of the Business Object \"Plants\" requires
start = @<>

<> IRI AND EXTRA a {
  a [ex:Plant] ;
  a [ex:Asset] ;
  # \"name\"
  ex:name xsd:string ;
  # \"label de\"
  ex:label [@de] ;
  # \"label\"
  ex:label xsd:string ;
  # other languages
  ex:label (rdf:langString AND NOT [@de]) * ;
  # \"title\"
  ex:title [@en] + ;
  # other languages
  ex:title (rdf:langString AND NOT [@en]) * ;
  # \"size\"
  ex:size (xsd:decimal OR xsd:double) ? ;
  # \"count\"
  ex:count xsd:integer ? ;
  # \"on\"
  ex:on xsd:boolean ? ;
  # \"day\"
  ex:day xsd:date ? ;
  # \"at\"
  ex:at xsd:dateTime ;
  # \"kind\"
  ex:kind IRI ? ;
  # \"code\"
  ex:code ex:code ? ;
  # \"year\"
  ex:year LITERAL ? ;
  # \"tags\"
  ex:tag xsd:string + ;
  # \"units\"
  ex:unit @<#units/> * ;
  # \"site\"
  ex:site @<#site/> ;
}

<#units/> IRI AND (EXTRA a {
  a [ex:Unit] ;
  # \"no\"
  ex:no xsd:string ;
  # \"note\"
  ex:note xsd:string ? ;
} OR {
  # a reference
  ex:no . {0} ;
  ex:note . {0} ;
})

<#site/> IRI AND {
  # \"name\"
  ex:name xsd:string ? ;
}
";
    assert_eq!(shapes, expected);
}
