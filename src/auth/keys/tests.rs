use super::super::fixture::{Fixture, new_key as new, session_caller};
use super::*;
use crate::accounts::AccountEdit;
use crate::audit;
use penstock_base::IfMatch;
use penstock_base::error::Place;
use penstock_store::Read;

fn create_key(fixture: &Fixture, by: &Caller, new: NewApiKey) -> (Arc<Key>, String) {
    fixture.auth.keys.create_key(by, new).unwrap()
}

fn refused_places(fixture: &Fixture, by: &Caller, new: NewApiKey) -> Vec<Place> {
    let error = fixture.auth.keys.create_key(by, new).unwrap_err();
    assert!(matches!(error.class, ErrorClass::Forbidden | ErrorClass::Invalid), "{error}");
    error.findings.into_iter().map(|finding| finding.place).collect()
}

fn at(pointer: &str) -> Vec<Place> {
    vec![Place::Pointer(pointer.to_owned())]
}

#[test]
fn a_name_that_deceives_is_refused() {
    for name in ["line\u{202e}4", "line\u{200b}4", "line\n4"] {
        let body = serde_json::json!({"name": name, "role": "User"}).to_string();
        let error = NewApiKey::from_json(body.as_bytes()).unwrap_err();
        assert_eq!(error.findings[0].place, Place::Pointer("/name".to_owned()), "{name:?}");
    }
}

#[test]
fn a_key_is_shown_once_and_kept_hashed() {
    let fixture = Fixture::new();
    let ada = fixture.create_account("ada", Role::Contributor);
    let (key, secret) = create_key(&fixture, &session_caller(&ada), new(Role::Contributor));
    let who = fixture.auth.keys.authenticate_key(&secret).unwrap();
    assert_eq!((who.id(), who.role), (ada.id.as_str(), Role::Contributor));
    let document =
        fixture.store.read().read_document("api-keys", key.id.as_bytes()).unwrap().unwrap();
    assert!(!String::from_utf8(document).unwrap().contains(&secret[12..40]));
    let events = fixture.auth.audit.list(&audit::Filter::default(), None, 100).unwrap();
    assert!(events.iter().any(|event| event.what == "key.created"));
    assert!(events.iter().all(|event| !event.detail.contains(&secret[9..20])));
    let fixture = fixture.restart(&[]);
    fixture.auth.keys.authenticate_key(&secret).unwrap();
    assert!(fixture.auth.keys.get(&session_caller(&ada), &key.id).unwrap().last_used.is_some());
    for wrong in [&secret[..secret.len() - 1], "penstock_", "x", &secret.replace('_', "-")] {
        assert!(
            matches!(fixture.auth.keys.authenticate_key(wrong), Err(AuthError::Invalid(_))),
            "{wrong}"
        );
    }
    let (other, _) = Secret::new();
    assert!(matches!(
        fixture.auth.keys.authenticate_key(&other.into_text()),
        Err(AuthError::Invalid(_))
    ));
}

#[test]
fn a_key_never_exceeds_its_owners_current_role() {
    let fixture = Fixture::new();
    let (accounts, keys) = (&fixture.auth.accounts, &fixture.auth.keys);
    let local = Caller::local();
    let ada = fixture.create_account("ada", Role::Admin);
    let (_, admin) = create_key(&fixture, &session_caller(&ada), new(Role::Admin));
    let (_, user) = create_key(&fixture, &session_caller(&ada), new(Role::User));
    let (_, metrics) = create_key(&fixture, &session_caller(&ada), new(Role::Metrics));
    let role = |secret: &str| keys.authenticate_key(secret).map(|caller| caller.role);
    assert_eq!(role(&admin), Ok(Role::Admin));
    assert_eq!(role(&metrics), Ok(Role::Metrics));
    let change = |edit| accounts.change(&local, &ada.id, IfMatch::Any, edit).unwrap();
    change(AccountEdit { role: Some(Role::Contributor), ..AccountEdit::unchanged_from(&ada) });
    assert_eq!(role(&admin), Ok(Role::Contributor));
    assert_eq!(role(&user), Ok(Role::User));
    assert!(matches!(role(&metrics), Err(AuthError::Forbidden(_))));

    let before = keys.authenticate_key(&admin).unwrap();
    change(AccountEdit { enabled: Some(false), ..AccountEdit::unchanged_from(&ada) });
    assert!(matches!(role(&user), Err(AuthError::Forbidden(_))));
    assert_eq!(fixture.auth.current_role(&before), None);
    change(AccountEdit { enabled: Some(true), ..AccountEdit::unchanged_from(&ada) });
    assert_eq!(role(&user), Ok(Role::User));
    fixture.auth.delete_account(&local, &ada.id, IfMatch::Any, &|_| Ok(())).unwrap();
    assert!(matches!(role(&user), Err(AuthError::Invalid(_))));
    assert!(keys.list(&local, None, 10).is_empty());
    assert!(KEYS.scan().read_all(&fixture.store.read()).unwrap().is_empty());
}

#[test]
fn a_caller_creates_no_key_with_more_rights_than_its_own() {
    let fixture = Fixture::new();
    let user = session_caller(&fixture.create_account("u", Role::User));
    assert_eq!(refused_places(&fixture, &user, new(Role::Contributor)), at("/role"));
    assert_eq!(refused_places(&fixture, &user, new(Role::Metrics)), at("/role"));
    let past = Some("2020-01-01T00:00:00Z".parse().unwrap());
    let late = NewApiKey { expires_at: past, ..new(Role::User) };
    assert_eq!(refused_places(&fixture, &user, late), at("/expiresAt"));

    let soon = Timestamp::now() + jiff::SignedDuration::from_hours(1);
    let short = NewApiKey { expires_at: Some(soon), ..new(Role::User) };
    let (_, short) = create_key(&fixture, &user, short);
    let by = fixture.auth.keys.authenticate_key(&short).unwrap();
    assert_eq!(refused_places(&fixture, &by, new(Role::User)), at("/expiresAt"));
    create_key(&fixture, &by, NewApiKey { expires_at: Some(soon), ..new(Role::User) });

    let bound = NewApiKey { business_object: Some("1".into()), ..new(Role::User) };
    let (_, bound) = create_key(&fixture, &user, bound);
    let by = fixture.auth.keys.authenticate_key(&bound).unwrap();
    assert_eq!(refused_places(&fixture, &by, new(Role::User)), at("/businessObject"));

    let several = vec!["1".to_owned(), "2".to_owned()];
    let bound = NewApiKey { business_objects: several, ..new(Role::User) };
    let (_, bound) = create_key(&fixture, &user, bound);
    let by = fixture.auth.keys.authenticate_key(&bound).unwrap();
    assert!(by.may_use("1") && by.may_use("2") && !by.may_use("3"));
    assert_eq!(refused_places(&fixture, &by, new(Role::User)), at("/businessObject"));
}

#[test]
fn a_key_of_the_local_administration_has_no_account() {
    let fixture = Fixture::new();
    let (key, secret) = create_key(&fixture, &Caller::local(), new(Role::Admin));
    let who = fixture.auth.keys.authenticate_key(&secret).unwrap();
    assert_eq!((who.account.is_none(), who.role, who.id()), (true, Role::Admin, key.id.as_str()));
    fixture.auth.keys.revoke_key(&Caller::local(), &key.id).unwrap();
    assert!(matches!(fixture.auth.keys.authenticate_key(&secret), Err(AuthError::Invalid(_))));
    assert_eq!(fixture.auth.current_role(&who), None);
}

#[test]
fn a_key_expires() {
    let fixture = Fixture::new();
    let keys = &fixture.auth.keys;
    let (key, secret) = create_key(&fixture, &Caller::local(), new(Role::User));
    let expiring = |at: &str| Key { expires_at: Some(at.to_owned()), ..(*key).clone() };
    for (at, is_valid) in
        [("2020-01-01T00:00:00Z", false), ("some day", false), ("9999-01-01T00:00:00Z", true)]
    {
        keys.inner.entries.write().insert(Arc::new(expiring(at)));
        assert_eq!(keys.authenticate_key(&secret).is_ok(), is_valid, "{at}");
    }
    let now = Timestamp::now();
    assert!(is_expired(&expiring(&now.to_string()), now));
}

#[test]
fn a_user_sees_only_its_own_keys_and_an_admin_all_keys() {
    let fixture = Fixture::new();
    let (ada, bob) =
        (fixture.create_account("ada", Role::Admin), fixture.create_account("bob", Role::User));
    let (of_ada, _) = create_key(&fixture, &session_caller(&ada), new(Role::User));
    let (of_bob, _) = create_key(&fixture, &session_caller(&bob), new(Role::User));
    let keys = &fixture.auth.keys;
    assert_eq!(keys.list(&session_caller(&ada), None, 10), [of_ada.clone(), of_bob.clone()]);
    assert_eq!(
        keys.list(&session_caller(&ada), Some(&of_ada.id), 10),
        std::slice::from_ref(&of_bob)
    );
    assert_eq!(keys.list(&session_caller(&bob), None, 10), std::slice::from_ref(&of_bob));
    assert!(keys.get(&session_caller(&bob), &of_ada.id).is_none());
    let error = keys.revoke_key(&session_caller(&bob), &of_ada.id).unwrap_err();
    assert_eq!(error.class, ErrorClass::NotFound);
    keys.revoke_key(&session_caller(&bob), &of_bob.id).unwrap();
    keys.revoke_key(&session_caller(&ada), &of_ada.id).unwrap();
}

#[test]
fn bodies_are_read_with_every_finding() {
    let read = |body: &str| NewApiKey::from_json(body.as_bytes());
    let pointers = |body: &str| -> Vec<Place> {
        read(body).unwrap_err().findings.into_iter().map(|finding| finding.place).collect()
    };
    assert_eq!(pointers("{}"), [at("/name"), at("/role")].concat());
    assert_eq!(
        pointers(r#"{"name": " ", "role": "Root", "expiresAt": "soon", "owner": "x"}"#),
        [at("/name"), at("/role"), at("/expiresAt"), at("/owner")].concat()
    );
    let good =
        read(r#"{"name": "a", "role": "metrics", "expiresAt": "2099-01-01T00:00:00+01:00"}"#);
    let good = good.unwrap();
    assert_eq!((good.name.as_str(), good.role), ("a", Role::Metrics));
    assert_eq!(good.expires_at, Some("2098-12-31T23:00:00Z".parse().unwrap()));
}

#[test]
fn one_account_cannot_fill_the_trail_with_its_keys() {
    let fixture = Fixture::new();
    let keys = &fixture.auth.keys;
    let (ada, eve) =
        (fixture.create_account("ada", Role::Admin), fixture.create_account("eve", Role::User));
    let (ada, eve) = (session_caller(&ada), session_caller(&eve));
    let mut refused = None;
    for _ in 0..1000 {
        match keys.create_key(&eve, new(Role::User)) {
            // A change that evicts nothing from the trail is always allowed.
            Ok((key, _)) => keys.revoke_key(&eve, &key.id).unwrap(),
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    assert!(matches!(refused.unwrap().class, ErrorClass::TooManyRequests(_)));
    let events = fixture.auth.audit.list(&audit::Filter::default(), None, 1000).unwrap();
    assert!(events.len() < 100, "{}", events.len());
    assert!(events.iter().any(|event| event.what == "account.created"));
    // The limit is for changes of the own account. Admins have none.
    let names = |n: usize| AccountEdit {
        given_name: Some(format!("Eve {n}")),
        ..AccountEdit::unchanged_from(account(&eve))
    };
    let change = |by, n| {
        fixture.auth.accounts.change(by, &account(&eve).id, IfMatch::Any, names(n)).map(|_| ())
    };
    assert!(matches!(change(&eve, 0).unwrap_err().class, ErrorClass::TooManyRequests(_)));
    for n in 0..150 {
        change(&ada, n).unwrap();
        create_key(&fixture, &ada, new(Role::User));
    }
}

fn account(of: &Caller) -> &Account {
    of.account.as_ref().unwrap()
}

#[test]
fn an_account_has_at_most_a_hundred_keys_unless_it_is_an_admins() {
    let fixture = Fixture::new();
    let eve = fixture.create_account("eve", Role::User);
    let keys = &fixture.auth.keys;
    let (first, _) = create_key(&fixture, &session_caller(&eve), new(Role::User));
    for n in 2..MAX_KEYS_PER_ACCOUNT {
        let (_, digest) = Secret::new();
        let key = Key { id: n.to_string(), digest, ..(*first).clone() };
        keys.inner.entries.write().insert(Arc::new(key));
    }
    create_key(&fixture, &session_caller(&eve), new(Role::User));
    let error = keys.create_key(&session_caller(&eve), new(Role::User)).unwrap_err();
    assert!(error.class == ErrorClass::Conflict && error.detail.contains("100"), "{error}");
    let admin = Caller { role: Role::Admin, ..session_caller(&eve) };
    create_key(&fixture, &admin, new(Role::User));
    keys.revoke_key(&session_caller(&eve), "2").unwrap();
}

#[test]
fn a_key_manages_keys_up_to_its_role_and_is_named_in_the_trail() {
    let fixture = Fixture::new();
    let keys = &fixture.auth.keys;
    let ada = fixture.create_account("ada", Role::Admin);
    let (admin, admin_secret) = create_key(&fixture, &session_caller(&ada), new(Role::Admin));
    let (contributor, secret) = create_key(&fixture, &session_caller(&ada), new(Role::Contributor));
    let (user, _) = create_key(&fixture, &session_caller(&ada), new(Role::User));
    let by = keys.authenticate_key(&secret).unwrap();
    let listed = |by: &Caller| -> Vec<String> {
        keys.list(by, None, 10).iter().map(|key| key.id.clone()).collect()
    };
    assert_eq!(listed(&by), [&*contributor.id, &user.id]);
    assert!(keys.get(&by, &admin.id).is_none());
    assert_eq!(keys.revoke_key(&by, &admin.id).unwrap_err().class, ErrorClass::NotFound);
    keys.revoke_key(&by, &user.id).unwrap();
    let (made_by_key, _) = create_key(&fixture, &by, new(Role::User));
    let events = fixture.auth.audit.list(&audit::Filter::default(), None, 2).unwrap();
    let recorded: Vec<_> =
        events.iter().map(|event| (event.what.as_str(), event.by.clone())).collect();
    let actor = Some(contributor.id.clone());
    assert_eq!(recorded, [("key.created", actor.clone()), ("key.revoked", actor)]);
    assert_eq!(made_by_key.owner.as_ref(), Some(&ada.id));

    let filter = audit::Filter {
        keys: keys.list_ids_of(&ada.id),
        account: Some(ada.id.clone()),
        what: None,
    };
    assert_eq!(fixture.auth.audit.list(&filter, None, 2).unwrap(), events);

    // An Admin's key with the role Admin manages every key, and a session all keys of its account.
    let by = keys.authenticate_key(&admin_secret).unwrap();
    let (of_bob, _) = create_key(
        &fixture,
        &session_caller(&fixture.create_account("bob", Role::User)),
        new(Role::User),
    );
    assert_eq!(keys.list(&by, None, 10).len(), 4);
    keys.revoke_key(&by, &of_bob.id).unwrap();
    // When its owner is no longer an Admin, a key still manages itself, but no key with more rights.
    let edit = AccountEdit { role: Some(Role::User), ..AccountEdit::unchanged_from(&ada) };
    fixture.create_account("eve", Role::Admin);
    fixture.auth.accounts.change(&Caller::local(), &ada.id, IfMatch::Any, edit).unwrap();
    let by = keys.authenticate_key(&admin_secret).unwrap();
    assert_eq!(listed(&by), [&*admin.id, &made_by_key.id]);
    keys.revoke_key(&by, &admin.id).unwrap();
}

#[test]
fn a_key_cannot_change_the_account_that_it_belongs_to() {
    let fixture = Fixture::new();
    let accounts = &fixture.auth.accounts;
    let (ada, bob) =
        (fixture.create_account("ada", Role::Admin), fixture.create_account("bob", Role::Admin));
    let (key, secret) = create_key(&fixture, &session_caller(&ada), new(Role::Admin));
    let by = fixture.auth.keys.authenticate_key(&secret).unwrap();
    let names = |account: &Account| AccountEdit {
        given_name: Some("A".into()),
        ..AccountEdit::unchanged_from(account)
    };
    let change = |id: &str| accounts.change(&by, id, IfMatch::Any, names(&ada));
    let hash = || crate::password::Hash::from_password("another horse battery").unwrap();
    let refused = |done: Result<(), GatewayError>| done.unwrap_err().class == ErrorClass::Forbidden;
    assert!(refused(change(&ada.id).map(drop)));
    assert!(refused(change("ada").map(drop)));
    assert!(refused(accounts.set_password(&by, &ada.id, hash()).map(drop)));
    assert!(refused(fixture.auth.delete_account(&by, &ada.id, IfMatch::Any, &|_| Ok(()))));
    assert_eq!(accounts.get(&ada.id).unwrap().version, 1);

    change(&bob.id).unwrap();
    accounts.set_password(&by, &bob.id, hash()).unwrap();
    fixture.auth.delete_account(&by, &bob.id, IfMatch::Any, &|_| Ok(())).unwrap();
    let filter = audit::Filter { account: Some(bob.id.clone()), ..audit::Filter::default() };
    let events = fixture.auth.audit.list(&filter, None, 3).unwrap();
    assert!(events.iter().all(|event| event.by.as_ref() == Some(&key.id)), "{events:?}");
}
