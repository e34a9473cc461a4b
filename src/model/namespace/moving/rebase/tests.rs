use super::*;
use crate::namespace::moving::plan_move;
use crate::namespace::{self, Namespace};
use crate::testing::{insert_quad, open_store, put_namespace};
use oxrdf::Literal;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn rebase(from: &str, to: &str, other: Option<&str>) -> Rebase {
    let (_dir, store) = open_store();
    put_namespace(&store, "A", from, namespace::Generator::Manual);
    if let Some(other) = other {
        put_namespace(&store, "B", other, namespace::Generator::Manual);
    }
    let namespace = namespace::get(&store.read(), "A").unwrap().unwrap();
    Rebase::read(&store.read(), &namespace, to).unwrap()
}

#[test]
fn text_is_rewritten_where_an_iri_begins() {
    let rebase = rebase("http://e/a/", "http://n/b", Some("http://e/a/other/"));
    for (text, rewritten) in [
        ("<http://e/a/x>", "<http://n/b/x>"),
        ("p: http://e/a/\nq: 'http://e/a/q#'", "p: http://n/b/\nq: 'http://n/b/q#'"),
        ("{p: http://e/a/, q: \"http://e/a/1\"}", "{p: http://n/b/, q: \"http://n/b/1\"}"),
        ("http://x/?u=http://e/a/1", "http://x/?u=http://e/a/1"),
        ("<http://e/a/other/1> <http://e/a/others>", "<http://e/a/other/1> <http://n/b/others>"),
        ("http://e/ab", "http://e/ab"),
        ("", ""),
    ] {
        assert_eq!(rebase.rewrite_text(text, begins_iri), rewritten, "{text}");
    }
}

#[test]
fn nodes_of_lists_move_with_their_objects_and_properties() {
    let rebase = rebase("http://e/a/", "http://n/b/", None);
    let list = |object: &str, property: &str| format!("urn:penstock:@list:{object}:{property}:7");
    let (old, new) = ("http%3A%2F%2Fe%2Fa%2F1", "http%3A%2F%2Fn%2Fb%2F1");
    assert_eq!(rebase.rewrite(&list(old, "urn%3Ap")), Some(list(new, "urn%3Ap")));
    assert_eq!(rebase.rewrite(&list("urn%3Ao", old)), Some(list("urn%3Ao", new)));
    assert_eq!(rebase.rewrite(&list(new, "urn%3Ap")), None);
}

proptest! {
    /// For any IRIs and bases, a second run changes nothing, and two objects never become one.
    #[test]
    fn what_is_not_refused_is_rewritten_once_and_stays_distinct(
        from in "http://e(/[ab]){0,2}[/#]?", to in "http://e(/[ab]){0,2}[/#]?", other in "http://e(/[ab]){1,3}/",
        iris in prop::collection::btree_set("http://e(/[ab]){0,4}[/#]?[ab]?", 1..20),
    ) {
        let (_dir, store) = open_store();
        put_namespace(&store, "A", &from, namespace::Generator::Manual);
        let other = Namespace { name: "B".to_owned(), uri_base: other, generator: namespace::Generator::Manual, created_at: String::new() };
        let _ = store.transact(|t| namespace::put(t, other.clone()));
        for iri in &iris {
            insert_quad(&store, iri, "http://p/p", Literal::from(1), "http://p/g");
        }
        let Ok(Some(plan)) = plan_move(&store, "A", &to, &mut |_| {}) else { return Ok(()) };
        let namespace = namespace::get(&store.read(), "A").unwrap().unwrap();
        let rebase = Rebase::read(&store.read(), &namespace, &to).unwrap();
        let moved: BTreeSet<String> =
            iris.iter().map(|iri| rebase.rewrite(iri).unwrap_or_else(|| iri.clone())).collect();
        prop_assert_eq!(moved.len(), iris.len());
        for iri in &moved {
            prop_assert_eq!(rebase.rewrite(iri), None);
        }
        let changed = iris.iter().filter(|iri| rebase.rewrite(iri).is_some()).count();
        prop_assert_eq!(plan.quads, changed as u64);
    }
}
