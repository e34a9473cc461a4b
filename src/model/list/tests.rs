use super::node::NodeIris;
use super::*;
use crate::testing::{insert_quad, open_store};
use oxrdf::vocab::rdf;
use oxrdf::{Literal, NamedNode, Term};
use std::ops::ControlFlow;

fn node(iri: &str) -> NamedNode {
    NamedNode::new_unchecked(iri)
}

#[test]
fn the_iri_of_a_node_has_its_object_and_property() {
    for object in ["urn:p:1", "http://[::1]:80/a#b", "http://x/ü%20?q"] {
        let iri = NodeIris::new(object, "http://v/steps").at(12);
        assert!(NamedNode::new(iri.as_str()).is_ok() && is_list_node(&iri), "{iri}");
        let parsed = ListNode::parse(iri.as_str()).unwrap();
        assert_eq!((parsed.object.as_str(), parsed.property.as_str()), (object, "http://v/steps"));
        assert_eq!(find_owner(&iri), Some(node(object)));
        let moved = |iri: &str| Some(iri.strip_prefix(object).map(|_| "urn:new:1")?.to_owned());
        assert_eq!(
            parsed.rewrite(&moved).unwrap(),
            NodeIris::new("urn:new:1", "http://v/steps").at(12).as_str()
        );
        assert_eq!(parsed.rewrite(&|_| None), None);
    }
    for other in ["urn:penstock:@list:a:b:1", "urn:penstock:@list:urn%3Aa:urn%3Ab", "urn:p:1"] {
        assert_eq!(ListNode::parse(other), None, "{other}");
    }
}

#[test]
fn an_element_is_known_by_its_uri() {
    let uris_of =
        |property: &str| ElementUris::new("http://x/Step/", ("Recipe", "1"), ("", property));
    let uris = uris_of("urn:step");
    assert!(ElementUris::contain("http://x/Step/", &uris.at(3)));
    assert_ne!(uris.at(3), uris_of("urn:s").at(3));
    for other in
        ["http://x/Step/list-3", "http://x/Step/1", "http://x/Step/list-äöüäöüäöüäöüäöüäöüäöüäöü-1"]
    {
        assert!(!ElementUris::contain("http://x/Step/", &node(other)), "{other}");
    }
}

#[test]
fn lists_of_others_are_read_or_refused() {
    let (_dir, store) = open_store();
    let add = |subject: &str, predicate: oxrdf::NamedNodeRef<'_>, object: Term| {
        insert_quad(&store, subject, predicate.as_str(), object, "urn:g");
    };
    let text = |text: &str| Term::from(Literal::new_simple_literal(text));
    for (one, rest) in
        [("urn:a", "urn:b"), ("urn:b", rdf::NIL.as_str()), ("urn:c", "urn:d"), ("urn:d", "urn:c")]
    {
        add(one, rdf::FIRST, text("same"));
        add(one, rdf::REST, node(rest).into());
    }
    add("urn:e", rdf::FIRST, text("x"));
    add("urn:f", rdf::FIRST, text("x"));
    add("urn:f", rdf::FIRST, text("y"));
    add("urn:f", rdf::REST, rdf::NIL.into_owned().into());
    let read = |head: &str| List::read(&store.read(), node(head)).unwrap();
    assert_eq!(read("urn:a").unwrap().values().collect::<Vec<_>>(), [&text("same"), &text("same")]);
    assert_eq!(read(rdf::NIL.as_str()).unwrap().values().len(), 0);
    for (head, what) in [
        ("urn:c", "a cyclic list"),
        ("urn:e", "an unfinished list"),
        ("urn:f", "a branched list"),
        ("urn:x", "not a list"),
    ] {
        assert_eq!(read(head), Err(what));
    }
    add("urn:p:1", node("urn:step").as_ref(), node("urn:a").into());
    let owners = |maximum: usize| {
        let mut owners = Vec::new();
        let visit = &mut |owner: Option<NamedNode>| {
            owners.extend(owner);
            if owners.len() < maximum { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        find_element_owners(&store.read(), &node("urn:step"), &text("same"), visit).unwrap();
        owners
    };
    assert_eq!(owners(9), [node("urn:p:1")]);
    add("urn:p:2", node("urn:step").as_ref(), node("urn:a").into());
    assert_eq!(owners(9).len(), 2);
    assert_eq!(owners(1).len(), 1);
    // A walk through arrays of other properties can be ended.
    let mut places = 0;
    let visit = &mut |owner: Option<NamedNode>| {
        places += usize::from(owner.is_none());
        if places < 2 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    find_element_owners(&store.read(), &node("urn:other"), &text("same"), visit).unwrap();
    assert_eq!(places, 2);
    // Nothing is visited after the end, not even the node before a list that is also the rest of another one.
    add("urn:g", rdf::REST, node("urn:h").into());
    add("urn:h", rdf::FIRST, text("tail"));
    add("urn:p:3", node("urn:step").as_ref(), node("urn:h").into());
    let mut visited = Vec::new();
    let visit = &mut |owner: Option<NamedNode>| {
        let is_found = owner.is_some();
        visited.push(owner);
        if is_found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    find_element_owners(&store.read(), &node("urn:step"), &text("tail"), visit).unwrap();
    assert_eq!(visited, [None, Some(node("urn:p:3"))]);
}

#[test]
fn nodes_are_left_out_of_a_listing() {
    let all: Vec<NamedNode> =
        ["urn:a", "urn:penstock:@list:x:y:0", "urn:penstock:@list:x:y:1", "urn:z", "urn:zz"]
            .map(node)
            .into();
    for limit in 0..6 {
        let mut listed: Vec<NamedNode> = Vec::new();
        loop {
            let page = list_objects(
                listed.last().map(NamedNode::as_str),
                limit,
                |uri| uri,
                |after, limit| {
                    let from =
                        all.partition_point(|uri| after.is_some_and(|after| uri.as_str() <= after));
                    Ok::<_, ()>(all.iter().skip(from).take(limit).cloned().collect::<Vec<_>>())
                },
            )
            .unwrap();
            let is_last = page.len() < limit || limit == 0;
            listed.extend(page);
            if is_last {
                break;
            }
        }
        let expected: &[&str] = if limit == 0 { &[] } else { &["urn:a", "urn:z", "urn:zz"] };
        assert!(
            listed.iter().map(NamedNode::as_str).eq(expected.iter().copied()),
            "{limit}: {listed:?}"
        );
    }
}
