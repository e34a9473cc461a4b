use super::*;
use crate::members;
use oxrdf::Term;

fn of_site(site: &str) -> Fixture {
    let mut fixture = Fixture::new(machine());
    let value = Term::from(NamedNode::new_unchecked(site));
    fixture.business_object.conditions = vec![(NamedNode::new_unchecked("http://p/site"), value)];
    fixture
}

fn members(fixture: &Fixture) -> Vec<String> {
    let page =
        members::list_members(&fixture.store.read(), &fixture.business_object, None, 10).unwrap();
    page.into_iter().map(NamedNode::into_string).collect()
}

#[test]
fn objects_that_do_not_match_are_stored_and_named() {
    let fixture = of_site("urn:here");
    let answer = fixture.add(
        r#"{"uri": "urn:a", "site": "urn:here"}, {"uri": "urn:b", "site": "urn:there"}, {"uri": "urn:c", "name": "c"},
           {"uri": "urn:c", "site": "urn:here"}"#,
    );
    let pointers: Vec<_> = answer.warnings.iter().map(|w| w.pointer.as_str()).collect();
    assert_eq!(pointers, ["/data/1"]);
    assert!(answer.warnings[0].message.contains("http://p/site"));
    assert_eq!(answer.created, 3);
    assert_eq!(members(&fixture), ["urn:a", "urn:c"]);
    let update = fixture.send(Mode::Update, r#"{"uri": "urn:a", "site": "urn:there"}"#).unwrap();
    assert_eq!(update.warnings.len(), 1);
}

#[test]
fn a_condition_holds_in_any_graph() {
    let fixture = of_site("urn:here");
    fixture.add(r#"{"uri": "urn:a", "name": "a"}"#);
    fixture.insert("urn:a", "http://p/site", NamedNode::new_unchecked("urn:here"), "urn:g");
    assert_eq!(members(&fixture), ["urn:a"]);
}

#[test]
fn without_conditions_the_root_graph_decides() {
    let fixture = Fixture::new(machine());
    fixture.add(r#"{"uri": "urn:b", "name": "b", "motor": {"uri": "urn:e", "name": "e"}}, {"uri": "urn:a", "name": "a"}"#);
    fixture.insert("urn:z", "http://p/name", oxrdf::Literal::from("z"), "urn:g");
    assert_eq!(members(&fixture), ["urn:a", "urn:b"]);
    let read = fixture.store.read();
    let after = members::list_members(&read, &fixture.business_object, Some("urn:a"), 10).unwrap();
    assert_eq!(after, [NamedNode::new_unchecked("urn:b")]);
    drop(read);
    assert_eq!(fixture.add(r#"{"uri": "urn:z"}"#).warnings.len(), 1);
}
