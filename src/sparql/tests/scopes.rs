//! The scope of GRAPH and of blank nodes, and paths of length zero.
use super::*;

#[test]
fn the_variable_of_graph_is_joined_after_its_pattern() {
    let store = Fixture::with(
        "INSERT DATA { <a:s> <a:p> 0 . GRAPH <a:g> { <a:s> <a:p> <a:g> , 2 , 3 } GRAPH <a:h> { <a:s> <a:p> <a:g> } }",
    );
    for (group, rows) in [
        ("GRAPH ?g { FILTER(BOUND(?g)) }", &[][..]),
        ("GRAPH ?g { FILTER(!BOUND(?g)) }", &["a:g", "a:h"]),
        ("GRAPH ?g { ?s <a:p> ?g }", &["a:g"]),
        ("GRAPH ?g { ?s <a:p> ?o FILTER(BOUND(?g)) }", &[]),
        ("GRAPH ?g { ?s <a:p> ?g FILTER(BOUND(?g)) }", &["a:g"]),
        ("GRAPH ?g { ?s <a:p> 2 OPTIONAL { ?s <a:p> ?g FILTER(?g = 3) } }", &[]),
        ("GRAPH ?g { ?s <a:p> 2 OPTIONAL { ?s <a:p> ?g FILTER(isIRI(?g)) } }", &["a:g"]),
        ("GRAPH ?g { ?s <a:p> 2 OPTIONAL { ?s <a:q> ?g } }", &["a:g"]),
        ("GRAPH ?g { ?s <a:p> <a:g> MINUS { ?a <a:p> ?b } }", &["a:g", "a:h"]),
        ("GRAPH ?g { ?s <a:p> <a:g> MINUS { ?s <a:p> 2 } }", &["a:h"]),
        ("GRAPH ?g { { SELECT ?s { ?s <a:p> 2 } } }", &["a:g"]),
        ("GRAPH ?g { { SELECT * { ?s <a:p> ?o } LIMIT 1 } }", &["a:g", "a:h"]),
        ("GRAPH ?g { { SELECT ?s { ?s <a:p> ?g } LIMIT 9 } }", &["a:g", "a:g", "a:g", "a:h"]),
        ("GRAPH ?g { { SELECT ?s ?g { ?s <a:p> ?g } } }", &["a:g"]),
        ("GRAPH ?g { { SELECT (COUNT(*) AS ?n) { ?s <a:p> 2 } } FILTER(?n = 0) }", &["a:h"]),
        (
            "GRAPH ?g { ?s <a:p> 2 { SELECT ?s (MAX(?o) AS ?m) { ?s <a:p> ?o } GROUP BY ?s } }",
            &["a:g"],
        ),
        ("GRAPH ?g { { SELECT ?s { { SELECT ?s { ?s <a:p> 3 } } } } }", &["a:g"]),
        ("VALUES ?g { <a:h> } GRAPH ?g { { SELECT ?s { ?s ?p ?o } } }", &["a:h"]),
    ] {
        assert_eq!(store.rows(&format!("SELECT ?g {{ {group} }}")), rows, "{group}");
    }
}

#[test]
fn a_path_of_length_zero_matches_a_constant_that_no_triple_has() {
    let store = Fixture::with(
        "INSERT DATA { <a:s> <a:p> <a:o> . GRAPH <a:g> { <a:s> <a:p> <a:o> } GRAPH <a:h> { <a:x> <a:p> 1 } }",
    );
    for (group, rows) in [
        ("<a:none> <a:p>* ?x", &["a:none"][..]),
        ("?x <a:p>? <a:none>", &["a:none"]),
        ("<a:none> <a:p>+ ?x", &[]),
        ("<a:none> (<a:p>|<a:q>*) ?x", &["a:none"]),
        ("<a:s> <a:p>* ?x", &["a:o", "a:s"]),
        ("VALUES ?x { 1 } <a:none> <a:p>* <a:none>", &["1"]),
        ("VALUES ?x { 1 } <a:none> <a:p>* <a:other>", &[]),
        ("VALUES ?x { <a:none> <a:s> } <a:none> <a:p>* ?x", &["a:none"]),
        ("GRAPH <a:h> { <a:s> <a:p>* ?x }", &["a:s"]),
        ("GRAPH ?g { <a:s> <a:p>* ?x }", &["a:o", "a:s", "a:s"]),
        ("GRAPH ?g { <a:none> <a:p>? ?x }", &["a:none", "a:none"]),
    ] {
        assert_eq!(store.rows(&format!("SELECT ?x {{ {group} }}")), rows, "{group}");
    }
}

#[test]
fn a_named_blank_node_is_one_node_in_each_solution() {
    let store = Fixture::new();
    for bind in [
        "SELECT (BNODE(?x) AS ?a) (BNODE(CONCAT('', ?x)) AS ?b) (BNODE('o') AS ?c) { VALUES ?x { 'n' 'm' } }",
        "SELECT ?a ?b ?c { VALUES ?x { 'n' 'm' } BIND(BNODE(?x) AS ?a) BIND(BNODE(?x) AS ?b) BIND(BNODE('o') AS ?c) }",
    ] {
        let rows = store.rows(bind);
        let cells: Vec<Vec<&str>> = rows.iter().map(|row| row.split(',').collect()).collect();
        let [first, second] = cells.as_slice() else { panic!("{rows:?}") };
        for row in [first, second] {
            assert_eq!(row[0], row[1]);
            assert_ne!(row[0], row[2]);
        }
        assert_ne!(first[0], second[0]);
        assert_ne!(first[2], second[2]);
    }
}
