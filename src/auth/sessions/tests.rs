use super::super::world::World;
use super::super::{Role, accounts};
use super::*;
use penstock_base::IfMatch;

fn started(fixture: &World, account: &Account) -> Started {
    fixture.auth.sessions.start(account, None, None).unwrap()
}

fn is_over(fixture: &World, started: &Started) -> bool {
    matches!(fixture.auth.sessions.caller(&started.id), Err(Refusal::Invalid(_)))
}

#[test]
fn a_session_belongs_to_its_account_until_it_ends_and_is_stored_hashed() {
    let fixture = World::new();
    let account = fixture.account("a", Role::User);
    let first = started(&fixture, &account);
    let second = started(&fixture, &account);
    assert_ne!(first.id, second.id);
    assert_eq!(first.id.len(), 64);
    let caller = fixture.auth.sessions.caller(&first.id).unwrap();
    assert_eq!((caller.id(), caller.role), (account.id.as_str(), Role::User));
    assert_eq!(caller.credential, Credential::Session(hash(&first.id)));
    fixture.auth.flush();
    let range = DocumentRange { limit: 10, ..DocumentRange::default() };
    for (key, document) in fixture.store.read().documents(COLLECTION, range).unwrap() {
        let kept = [key, document].concat();
        let kept = String::from_utf8(kept).unwrap();
        assert!(!kept.contains(&first.id) && !kept.contains(&first.csrf), "{kept}");
    }
    fixture.auth.sessions.end(&first.id);
    assert!(is_over(&fixture, &first));
    assert!(!is_over(&fixture, &second));
    assert!(matches!(fixture.auth.sessions.caller("nonsense"), Err(Refusal::Invalid(_))));
}

#[test]
fn sessions_survive_a_restart_but_not_another_era_or_their_end() {
    let fixture = World::new();
    let account = fixture.account("a", Role::User);
    let (kept, ended) = (started(&fixture, &account), started(&fixture, &account));
    fixture.auth.flush();
    fixture.auth.sessions.end(&ended.id);
    let fixture = fixture.restarted(&[]);
    assert!(!is_over(&fixture, &kept));
    assert!(is_over(&fixture, &ended));
    // A restored store has the documents, but the era is another one.
    std::fs::remove_file(fixture.dir.path().join("session-era")).unwrap();
    let fixture = fixture.restarted(&[]);
    assert!(is_over(&fixture, &kept));
    fixture.auth.flush();
    let range = DocumentRange { limit: 10, ..DocumentRange::default() };
    assert!(fixture.store.read().documents(COLLECTION, range).unwrap().is_empty());
}

#[test]
fn idle_and_old_sessions_end() {
    let fixture = World::new();
    let account = fixture.account("a", Role::User);
    let sessions = &fixture.auth.sessions;
    let (minute, hour) = (Duration::from_mins(1), Duration::from_hours(1));
    let begun = era::now();
    let idle = started(&fixture, &account);
    assert!(sessions.caller_at(&idle.id, begun + 30 * minute, true).is_ok());
    assert!(sessions.caller_at(&idle.id, begun + 59 * minute, true).is_ok());
    // An automatic request of a page is answered, but does not reset the idle time.
    assert!(sessions.caller_at(&idle.id, begun + 85 * minute, false).is_ok());
    assert!(sessions.caller_at(&idle.id, begun + 90 * minute, true).is_err());
    let used = started(&fixture, &account);
    for half in 1..=24 {
        assert!(sessions.caller_at(&used.id, begun + half * hour / 2, true).is_ok(), "{half}");
    }
    assert!(sessions.caller_at(&used.id, begun + 12 * hour + minute, true).is_err());
    // The session was removed, not merely refused.
    assert!(sessions.caller_at(&used.id, begun + hour, true).is_err());
}

#[test]
fn a_session_has_its_accounts_current_role() {
    let fixture = World::new();
    let account = fixture.account("a", Role::User);
    let (accounts, sessions) = (&fixture.auth.accounts, &fixture.auth.sessions);
    let local = Caller::local();
    let session = started(&fixture, &account);
    let change = |edit| accounts.change(&local, &account.id, IfMatch::Any, edit).unwrap();
    let promoted =
        change(accounts::Edit { role: Some(Role::Admin), ..accounts::Edit::of(&account) });
    assert_eq!(sessions.caller(&session.id).unwrap().role, Role::Admin);
    assert_eq!(fixture.auth.still(&sessions.caller(&session.id).unwrap()), Some(Role::Admin));

    let caller = sessions.caller(&session.id).unwrap();
    change(accounts::Edit { enabled: Some(false), ..accounts::Edit::of(&promoted) });
    assert!(matches!(sessions.caller(&session.id), Err(Refusal::Forbidden(_))));
    assert!(matches!(sessions.start(&account, None, None), Err(Refusal::Forbidden(_))));
    change(accounts::Edit { enabled: Some(true), ..accounts::Edit::of(&promoted) });
    assert!(is_over(&fixture, &session));
    assert_eq!(fixture.auth.still(&caller), None);

    let session = started(&fixture, &account);
    fixture.auth.delete_account(&local, &account.id, IfMatch::Any).unwrap();
    assert!(is_over(&fixture, &session));
}

#[test]
fn another_password_ends_the_other_sessions() {
    let fixture = World::new();
    let account = fixture.account("a", Role::User);
    let (own, other) = (started(&fixture, &account), started(&fixture, &account));
    let caller = fixture.auth.sessions.caller(&own.id).unwrap();
    let hash = super::super::password::Hash::of("another horse battery").unwrap();
    let account = fixture.auth.accounts.set_password(&caller, &account.id, hash).unwrap();
    let Credential::Session(hash) = &caller.credential else { panic!("{caller:?}") };
    fixture.auth.sessions.renew(hash, &account);
    assert!(!is_over(&fixture, &own));
    assert!(is_over(&fixture, &other));
    let fixture = fixture.restarted(&[]);
    assert!(!is_over(&fixture, &own));
    assert!(is_over(&fixture, &other));
}

#[test]
fn the_number_of_sessions_is_limited() {
    let fixture = World::new();
    let account = fixture.account("a", Role::User);
    let other = fixture.account("b", Role::User);
    let of_other = started(&fixture, &other);
    let many: Vec<_> = (0..MOST_OF_ONE + 3).map(|_| started(&fixture, &account)).collect();
    assert!(!is_over(&fixture, &of_other));
    assert_eq!(many.iter().filter(|session| !is_over(&fixture, session)).count(), MOST_OF_ONE);
    assert!(!is_over(&fixture, many.last().unwrap()));
}

#[test]
fn a_csrf_token_belongs_to_one_session() {
    let fixture = World::new();
    let account = fixture.account("a", Role::User);
    let (one, other) = (started(&fixture, &account), started(&fixture, &account));
    assert!(Sessions::is_csrf(&one.id, &one.csrf));
    assert!(!Sessions::is_csrf(&one.id, &other.csrf));
    assert!(!Sessions::is_csrf(&one.id, ""));
    assert_ne!(one.csrf, hash(&one.id));
    assert!(!format!("{one:?}").contains(&one.id));
}

#[test]
fn the_id_token_is_kept_only_in_memory() {
    let fixture = World::new();
    let account = fixture.account("a", Role::User);
    let sessions = &fixture.auth.sessions;
    let first = sessions.start(&account, Some("e30.e30.x"), None).unwrap();
    assert_eq!(sessions.end(&first.id).as_deref(), Some("e30.e30.x"));
    let second = sessions.start(&account, Some("e30.e30.x"), None).unwrap();
    let long = sessions.start(&account, Some(&"x".repeat(LONGEST_TOKEN + 1)), None).unwrap();
    assert_eq!(sessions.end(&long.id), None);
    let fixture = fixture.restarted(&[]);
    assert!(!is_over(&fixture, &second));
    assert_eq!(fixture.auth.sessions.end(&second.id), None);
}
