use super::record::MAX_DETAIL_CHARS;
use super::*;
use penstock_store::{DocumentRange, Options, Read};

fn fixture(max_events: usize) -> (tempfile::TempDir, Store, Audit) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
    let later = DeferredWrites::start(store.clone()).unwrap();
    (dir, store.clone(), Audit::open(store, later, max_events))
}

fn new_event(what: &'static str, account: &str) -> Event {
    let account = Some(account.to_owned());
    Event { what, account, by: None, from: None, detail: "why".to_owned() }
}

fn list_all(audit: &Audit) -> Vec<Record> {
    audit.list(&Filter::default(), None, 1000).unwrap()
}

#[test]
fn the_newest_are_kept_and_listed_first() {
    let (_dir, _store, audit) = fixture(3);
    for account in ["a", "b", "c", "d"] {
        audit.record_event(new_event("sign-in", account));
    }
    let events = list_all(&audit);
    let accounts: Vec<_> = events.iter().filter_map(|e| e.account.as_deref()).collect();
    assert_eq!(accounts, ["d", "c", "b"]);
    assert_eq!(events.iter().map(|e| e.id).collect::<Vec<_>>(), [4, 3, 2]);
    let page = audit.list(&Filter::default(), Some(4), 1).unwrap();
    assert_eq!(page[0].id, 3);
}

#[test]
fn filters_take_accounts_and_kinds() {
    let (_dir, _store, audit) = fixture(100);
    audit.record_event(new_event("sign-in", "a"));
    audit.record_event(new_event("sign-in.refused", "a"));
    audit.record_event(Event { by: Some("a".into()), ..new_event("account.changed", "b") });
    audit.record_event(new_event("account.created", "b"));
    let listed = |account: Option<&str>, what: Option<&str>| {
        let filter = Filter {
            account: account.map(Into::into),
            what: what.map(Into::into),
            ..Filter::default()
        };
        audit.list(&filter, None, 10).unwrap().len()
    };
    assert_eq!(listed(Some("a"), None), 3);
    assert_eq!(listed(None, Some("sign-in")), 2);
    assert_eq!(listed(None, Some("sign-in.refused")), 1);
    assert_eq!(listed(None, Some("sign")), 0);
    assert_eq!(listed(Some("b"), Some("account")), 2);
}

#[test]
fn a_flood_of_refusals_is_counted() {
    let (_dir, store, audit) = fixture(1000);
    for _ in 0..1000 {
        audit.record_event(new_event("request.refused", "a"));
    }
    audit.record_event(new_event("request.refused", "b"));
    assert_eq!(list_all(&audit).len(), usize::try_from(MAX_STORED_PER_SOURCE).unwrap() + 1);
    // Dropping the trail stores the event with the count.
    drop(audit);
    let last = EVENTS.scan().reverse().first(&store.read()).unwrap().unwrap().value().unwrap();
    assert_eq!((last.count, last.account.as_deref()), (1000 - MAX_STORED_PER_SOURCE, Some("a")));
}

#[test]
fn a_flood_from_everywhere_is_bounded_too() {
    let mut refusals = Refusals::default();
    let now = Instant::now();
    let mut kept = 0;
    for n in 0..100_000_u32 {
        let from = Some(IpAddr::V4(n.into()));
        let event = Event { from, ..new_event("request.refused", "a") };
        kept += u64::from(matches!(refusals.classify_refusal(&event, now), RefusalOutcome::Stored));
    }
    assert_eq!(kept, MAX_STORED_PER_WINDOW);
    assert!(
        refusals.stored_by_source.len() + refusals.counted_by_source.len()
            <= usize::try_from(MAX_STORED_PER_WINDOW).unwrap() + 1
    );
    let event = new_event("request.refused", "a");
    assert!(matches!(
        refusals.classify_refusal(&event, now + REFUSAL_WINDOW),
        RefusalOutcome::Stored
    ));
}

#[test]
fn a_limit_of_zero_stores_no_event() {
    let (_dir, _store, audit) = fixture(0);
    audit.record_event(new_event("sign-in", "a"));
    assert!(list_all(&audit).is_empty());
}

#[test]
fn long_details_are_cut() {
    let (_dir, _store, audit) = fixture(10);
    audit.record_event(Event { detail: "ü".repeat(10_000), ..new_event("sign-in", "a") });
    assert_eq!(list_all(&audit)[0].detail.chars().count(), MAX_DETAIL_CHARS);
}

/// Lists the kinds of the stored events, oldest first.
fn list_kinds(audit: &Audit) -> Vec<String> {
    list_all(audit).into_iter().rev().map(|record| record.what).collect()
}

#[test]
fn no_flood_of_one_kind_evicts_events_of_another() {
    let (_dir, _store, audit) = fixture(50);
    let kinds =
        ["key.created", "sign-in", "sign-in.refused", "definition.changed", "change.rebased"];
    for what in kinds {
        for n in 0..10 {
            audit.record_event(new_event(what, &n.to_string()));
        }
    }
    audit.deferred_writes.flush_all();
    for flood in kinds {
        // A refusal of a separate account is not counted with others.
        for n in 0..50 {
            audit.record_event(new_event(flood, &format!("{flood} {n}")));
        }
        audit.deferred_writes.flush_all();
        let kept = list_all(&audit);
        assert_eq!(kept.len(), 50);
        for what in kinds {
            let count = kept.iter().filter(|record| record.what == what).count();
            assert_eq!(count, 10, "{what} after a flood of {flood}");
        }
    }
}

#[test]
fn a_kind_borrows_what_others_do_not_use_and_gives_it_back() {
    let (_dir, _store, audit) = fixture(8);
    let record = |what, count: u32| {
        for n in 0..count {
            audit.record_event(new_event(what, &n.to_string()));
        }
        audit.deferred_writes.flush_all();
    };
    record("sign-in.refused", 12);
    assert_eq!(list_kinds(&audit), ["sign-in.refused"; 8]);
    record("key.created", 6);
    assert_eq!(list_kinds(&audit)[2..], ["key.created"; 6]);
    // Refusals keep their guaranteed share, and take back no more of what changes have borrowed.
    record("request.refused", 20);
    assert_eq!(list_kinds(&audit)[..6], ["key.created"; 6]);
    assert_eq!(list_kinds(&audit)[6..], ["request.refused"; 2]);
}

#[test]
fn no_account_evicts_the_events_of_others() {
    let (_dir, store, audit) = fixture(50);
    let key = r#"{"id":"key-7","name":"k","role":"Contributor","owner":"contributor","businessObject":null,"createdAt":"2026-01-01T00:00:00Z","expiresAt":null,"lastUsed":null,"digest":"00"}"#;
    store
        .transact::<_, GatewayError>(|t| {
            Ok(t.put_document("api-keys", b"key-7", key.as_bytes())?)
        })
        .unwrap();
    let record = |what, by: &str, count| {
        for _ in 0..count {
            let event = Event { account: None, by: Some(by.into()), ..new_event(what, "") };
            audit.record_event(event);
        }
        audit.deferred_writes.flush_all();
    };
    for (what, by) in [
        ("business-object.created", "admin"),
        ("namespace.created", "admin"),
        ("namespace.created", "other"),
        ("sign-in", "admin"),
        ("request.refused", "admin"),
        ("key.created", "admin"),
    ] {
        record(what, by, 3);
    }
    // The keys of an account count as the account.
    for by in ["contributor", "key-7"] {
        for what in ["namespace.created", "change.withdrawn", "key.created", "sign-in"] {
            record(what, by, 100);
        }
    }
    let kept = list_all(&audit);
    assert_eq!(kept.len(), 50);
    let count = |by: &str| kept.iter().filter(|record| record.by.as_deref() == Some(by)).count();
    assert_eq!((count("admin"), count("other")), (15, 3));
    // Its own newest events stay.
    assert_eq!(kept[0].by.as_deref(), Some("key-7"));
}

#[test]
fn events_of_an_earlier_version_are_listed_by_kind() {
    let (_dir, store, audit) = fixture(8);
    let write = |what, number: u64| {
        let value = serde_json::to_vec(&Record::from_event(new_event(what, "a"), 1)).unwrap();
        store
            .transact::<_, GatewayError>(|t| {
                Ok(t.put_document("audit", &number.to_be_bytes(), &value)?)
            })
            .unwrap();
    };
    for _ in 0..3 {
        audit.record_event(new_event("key.created", "a"));
    }
    drop(audit);
    (4..=20).for_each(|number| write("sign-in", number));
    let audit = Audit::open(store.clone(), DeferredWrites::start(store.clone()).unwrap(), 8);
    for _ in 0..5 {
        audit.record_event(new_event("sign-in", "a"));
    }
    let kept = list_kinds(&audit);
    assert_eq!(kept.len(), 8, "{kept:?}");
    assert_eq!(kept[..3], ["key.created"; 3]);
    assert_eq!(list_all(&audit)[0].id, 25);
}

#[test]
fn a_rebuild_of_the_lists_that_did_not_end_is_begun_again() {
    let (_dir, store, audit) = fixture(50);
    for n in 0..20 {
        audit.record_event(new_event(if n % 2 == 0 { "sign-in" } else { "key.created" }, "a"));
    }
    drop(audit);
    let count = |collection: &str| {
        let range = DocumentRange { limit: usize::MAX, ..DocumentRange::default() };
        store.read().read_documents(collection, range).unwrap().len()
    };
    let reopen = || Audit::open(store.clone(), DeferredWrites::start(store.clone()).unwrap(), 50);
    // Only a part of the lists is left, as after a power cut.
    store
        .transact::<_, GatewayError>(|t| {
            t.delete_document("audit.counts", b"newest")?;
            for (key, _) in t.read_documents(
                "audit.sign-ins",
                DocumentRange { limit: 7, ..DocumentRange::default() },
            )? {
                t.delete_document("audit.sign-ins", &key)?;
            }
            Ok(())
        })
        .unwrap();
    drop(reopen());
    assert_eq!((count("audit.sign-ins"), count("audit.credentials")), (10, 10));
    // Lists of an earlier version, which has counted the newest event.
    store
        .transact(|t| t.put_document("audit.refusals", &1_u64.to_be_bytes(), &1_u64.to_be_bytes()))
        .unwrap();
    drop(reopen());
    assert_eq!((count("audit.refusals"), count("audit.sign-ins")), (0, 10));
}

#[test]
fn failed_keys_from_many_addresses_cause_few_events() {
    let (_dir, _store, audit) = fixture(10_000);
    for n in 0..3000_u32 {
        let from = Some(IpAddr::V4((0x0a00_0000 + n % 300).into()));
        audit.record_event(Event { account: None, from, ..new_event("request.refused", "") });
    }
    audit.deferred_writes.flush_all();
    let kept = list_all(&audit);
    let limit =
        usize::try_from(MAX_STORED_PER_WINDOW + MAX_STORED_PER_WINDOW / MAX_STORED_PER_SOURCE)
            .unwrap()
            + 1;
    assert!(kept.len() <= limit, "{}", kept.len());
    assert_eq!(kept.iter().map(|record| record.count).sum::<u64>(), 3000);
}

#[test]
fn a_network_of_ipv6_is_one_source_of_refusals() {
    let (_dir, _store, audit) = fixture(100);
    for n in 0..50_u16 {
        let from = std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, n).into();
        audit.record_event(Event {
            account: None,
            from: Some(from),
            ..new_event("request.refused", "")
        });
    }
    audit.deferred_writes.flush_all();
    let kept = list_all(&audit);
    assert_eq!(kept.len(), usize::try_from(MAX_STORED_PER_SOURCE).unwrap() + 1);
    assert_eq!(kept[1].from.unwrap().to_string(), "2001:db8:0:1::2");
    assert!(kept[0].detail.contains("2001:db8:0:1::/64"), "{}", kept[0].detail);
}
