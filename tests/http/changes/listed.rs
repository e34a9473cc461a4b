//! Lists of changes: in GraphQL, in the pages, and of an object.
use super::{PENDING, Plant};
use penstock_base::commit::NoClient;
use penstock_base::error::GatewayError;
use penstock_store::{Read as _, Transaction};
use penstock_test_support::prelude::*;

/// The members of a pending change in GraphQL.
const MEMBERS: &str = "id state version businessObject businessObjectName mode author changeOwners approvers bypass \
    createdAt updatedAt base created updated unchanged deleted changedObjects requestBytes";

async fn ask(who: &Caller, query: &str) -> Value {
    who.post("/graphql", &json!({"query": query})).await.expect(200).json()
}

#[tokio::test(flavor = "multi_thread")]
async fn graphql_lists_the_open_changes_that_the_caller_may_see() {
    let plant = Plant::new("required", &[]).await;
    let Plant { server, author, owner, approver, stranger } = &plant;
    let rejected = plant.submit("rejected").await;
    approver.step(rejected["id"].text(), "reject", "").await.expect(200);
    let change = plant.submit(PENDING).await;
    let path = format!("/api/v1/changes/{}", change["id"].text());
    let known = author.read(&path).await;
    let mut expected = json!({});
    for member in MEMBERS.split_whitespace() {
        expected[member] = known[member].clone();
    }
    expected["history"] = known["history"].clone();
    assert_eq!(expected["changeOwners"], json!([format!("user:{}", owner.id)]));
    let query = format!(
        "{{ all: penstockPendingChanges {{ {MEMBERS} history {{ at by state rebased }} }} \
            pumps: penstockPendingChanges(businessObject: \"Pump\") {{ id }} \
            others: penstockPendingChanges(businessObject: \"Other\") {{ id }} }}"
    );
    for who in [author, owner, approver] {
        let data = ask(who, &query).await["data"].take();
        data.includes(&json!({"all": [expected], "pumps": [{"id": change["id"]}], "others": []}));
    }
    let none = json!({"data": {"all": [], "pumps": [], "others": []}});
    assert_eq!(ask(stranger, &query).await, none);
    // A key for certain Business Objects sees what it has sent itself.
    let limited = server.with_key(Role::Contributor, Some("Pump"));
    assert_eq!(ask(&limited, &query).await, none);
    let body = json!({"data": [{"name": "its own"}]});
    let path = "/api/v1/business-objects/Pump";
    let own = limited.post(path, &body).await.expect(202).json();
    let found = ask(&limited, "{ penstockPendingChanges { id } }").await;
    assert_eq!(found["data"]["penstockPendingChanges"], json!([{"id": own["id"]}]));
}

#[tokio::test(flavor = "multi_thread")]
async fn graphql_lists_large_changes_completely() {
    let plant = Plant::new("required", &[]).await;
    let Plant { server, approver, .. } = &plant;
    let mut ids = Vec::new();
    for number in 0..6 {
        ids.push(plant.submit(&number.to_string()).await["id"].clone());
    }
    ids.reverse();
    let enlarge = |transaction: &mut Transaction<'_>| {
        for id in &ids {
            let key = uuid::Uuid::parse_str(id.text()).unwrap().into_bytes();
            let stored = transaction.read_document("reviewed-changes", &key)?.unwrap();
            let mut document: Value = serde_json::from_slice(&stored).unwrap();
            document["history"][0]["comment"] = json!("x".repeat(1 << 20));
            transaction.put_document("reviewed-changes", &key, document.to_string().as_bytes())?;
        }
        Ok::<_, GatewayError>(())
    };
    server.gateway().store.commit(&NoClient, enlarge).unwrap();
    let query = "{ a: penstockPendingChanges { id } b: penstockPendingChanges { id } }";
    let found = ask(approver, query).await;
    let expected: Vec<_> = ids.iter().map(|id| json!({ "id": id })).collect();
    assert_eq!(found, json!({"data": {"a": expected, "b": expected}}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_in_graphql_counts_as_an_object_each_time() {
    let plant = Plant::new("required", &["--service.limits.graphql.rows=3"]).await;
    let Plant { approver, .. } = &plant;
    for name in ["one", "two"] {
        plant.submit(name).await;
    }
    let once = ask(approver, "{ penstockPendingChanges { id } }").await;
    assert_eq!(once["data"]["penstockPendingChanges"].list().len(), 2);
    let twice = "{ a: penstockPendingChanges { id } b: penstockPendingChanges { id } }";
    let errors = ask(approver, twice).await["errors"].to_string();
    assert!(errors.contains("service.limits.graphql.rows"), "{errors}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_to_approve_has_what_the_menu_counts() {
    for (self_approval, is_own_listed) in [("false", false), ("true", true)] {
        let argument = format!("--service.review.self-approval={self_approval}");
        let plant = Plant::new("required", &[&argument]).await;
        let Plant { server, author, approver, .. } = &plant;
        let group = json!({"members": [approver.id, author.id]});
        server.put("/api/v1/groups/approvers", &group).await.expect(200);
        let id = plant.submit("one").await["id"].string();
        let path = "/admin/changes?role=approver&state=submitted";
        for (who, is_listed) in [(author, is_own_listed), (approver, true)] {
            let page = who.get_with(path, &[HTML]).await.expect(200).text();
            assert_eq!(
                page.contains(&format!("href=\"/admin/changes/{id}\"")),
                is_listed,
                "{page}"
            );
            assert_eq!(
                page.contains("1<span class=\"sr\"> to approve</span>"),
                is_listed,
                "{page}"
            );
        }
        // It is the approver of its own change nevertheless, and may reject it.
        let listed = author.items("/api/v1/changes?role=approver").await;
        assert_eq!(listed[0]["id"], id);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_cannot_be_read_hides_neither_its_object_nor_others() {
    let plant = Plant::new("optional", &[]).await;
    let Plant { server, author, approver, .. } = &plant;
    let stored = server.ingest("ADD", &json!([{"name": "one"}])).await.expect(200).json();
    let uri = stored["objects"][0]["uri"].text();
    let mut ids = Vec::new();
    for name in ["two", "three"] {
        let body = json!({"data": [{"uri": uri, "name": name}]});
        let path = "/api/v1/business-objects/Pump?mode=REPLACE&review=true";
        let change = author.post(path, &body).await.expect(202).json();
        ids.push(change["id"].string());
    }
    let damage = |transaction: &mut Transaction<'_>| {
        let id = uuid::Uuid::parse_str(&ids[1]).unwrap().into_bytes();
        // The hashes of its objects.
        let key = [&id[..], &[4, 0, 0, 0, 0]].concat();
        assert!(transaction.read_document("reviewed-changes.parts", &key)?.is_some());
        transaction.delete_document("reviewed-changes.parts", &key)?;
        Ok::<_, GatewayError>(())
    };
    server.gateway().store.commit(&NoClient, damage).unwrap();
    let path = format!("/admin/object?uri={}", escaped(uri));
    let page = approver.get_with(&path, &[HTML]).await.expect(200).text();
    assert!(page.contains(&format!("href=\"/admin/changes/{}\"", ids[0])), "{page}");
    assert!(!page.contains(&ids[1]), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_a_change_has_the_next_page_of_its_difference() {
    let plant = Plant::new("required", &[]).await;
    let Plant { author, approver, .. } = &plant;
    let pumps: Vec<_> = (1..=150).map(|n| json!({"name": format!("pump {n}.")})).collect();
    let path = "/api/v1/business-objects/Pump";
    let sent = author.post(path, &json!({"data": pumps})).await.expect(202).json();
    let path = format!("/admin/changes/{}", sent["id"].text());
    let get = async |path: &str| approver.get_with(path, &[HTML]).await.expect(200).text();
    let first = get(&path).await;
    assert!(first.contains("pump 100.") && !first.contains("pump 101."), "{first}");
    let link = format!("href=\"{path}?cursor=");
    let (_, rest) = first.split_once(&link).unwrap();
    let cursor = rest.split('"').next().unwrap();
    let second = get(&format!("{path}?cursor={cursor}")).await;
    assert!(second.contains("pump 101.") && second.contains("pump 150."), "{second}");
    assert!(!second.contains("pump 100.") && !second.contains("/approve\""), "{second}");
    assert!(second.contains("Back to the first page"), "{second}");
}
