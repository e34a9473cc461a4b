use super::*;
use penstock_store::Options;

fn world(most: usize) -> (tempfile::TempDir, Store, Audit) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path(), Options::default(), &mut |_| {}).unwrap();
    let later = Later::start(store.clone()).unwrap();
    (dir, store.clone(), Audit::new(store, later, most))
}

fn event(what: &'static str, account: &str) -> Event {
    let account = Some(account.to_owned());
    Event { what, account, by: None, from: None, detail: "why".to_owned() }
}

fn all(audit: &Audit) -> Vec<Record> {
    audit.list(&Filter::default(), None, 1000).unwrap()
}

#[test]
fn the_newest_are_kept_and_listed_first() {
    let (_dir, _store, audit) = world(3);
    for account in ["a", "b", "c", "d"] {
        audit.record(event("sign-in", account));
    }
    let events = all(&audit);
    let accounts: Vec<_> = events.iter().filter_map(|e| e.account.as_deref()).collect();
    assert_eq!(accounts, ["d", "c", "b"]);
    assert_eq!(events.iter().map(|e| e.id).collect::<Vec<_>>(), [4, 3, 2]);
    let page = audit.list(&Filter::default(), Some(4), 1).unwrap();
    assert_eq!(page[0].id, 3);
}

#[test]
fn filters_take_accounts_and_kinds() {
    let (_dir, _store, audit) = world(100);
    audit.record(event("sign-in", "a"));
    audit.record(event("sign-in.refused", "a"));
    audit.record(Event { by: Some("a".into()), ..event("account.changed", "b") });
    audit.record(event("account.created", "b"));
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
    let (_dir, store, audit) = world(1000);
    for _ in 0..1000 {
        audit.record(event("request.refused", "a"));
    }
    audit.record(event("request.refused", "b"));
    assert_eq!(all(&audit).len(), usize::try_from(KEPT).unwrap() + 1);
    // With the end comes what was counted.
    drop(audit);
    let read = store.read();
    let range = DocumentRange { reverse: true, limit: 1, ..DocumentRange::default() };
    let last = read.documents(COLLECTION, range).unwrap();
    let last = decode(&last[0].0, &last[0].1).unwrap();
    assert_eq!((last.count, last.account.as_deref()), (1000 - KEPT, Some("a")));
}

#[test]
fn a_flood_from_everywhere_is_bounded_too() {
    let mut refusals = Refusals::default();
    let now = Instant::now();
    let mut kept = 0;
    for n in 0..100_000_u32 {
        let from = Some(IpAddr::V4(n.into()));
        let event = Event { from, ..event("request.refused", "a") };
        kept += u64::from(matches!(refusals.fate(&event, now), Fate::Kept));
    }
    assert_eq!(kept, KEPT_IN_ALL);
    assert!(refusals.seen.len() <= TOLD_APART + 1);
    let event = event("request.refused", "a");
    assert!(matches!(refusals.fate(&event, now + WINDOW), Fate::Kept));
}

#[test]
fn nothing_is_kept_when_none_is_to_be() {
    let (_dir, _store, audit) = world(0);
    audit.record(event("sign-in", "a"));
    assert!(all(&audit).is_empty());
}

#[test]
fn long_details_are_cut() {
    let (_dir, _store, audit) = world(10);
    audit.record(Event { detail: "ü".repeat(10_000), ..event("sign-in", "a") });
    assert_eq!(all(&audit)[0].detail.chars().count(), DETAIL);
}
