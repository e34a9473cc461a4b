use super::super::world::World;
use super::super::{Role, accounts};
use super::*;
use penstock_base::IfMatch;

fn started(world: &World, account: &Account) -> Started {
    world.auth.sessions.start(account, None, None).unwrap()
}

fn is_over(world: &World, started: &Started) -> bool {
    matches!(world.auth.sessions.caller(&started.id), Err(Refusal::Invalid(_)))
}

#[test]
fn a_session_is_its_accounts_until_it_ends_and_is_kept_hashed() {
    let world = World::new();
    let account = world.account("a", Role::User);
    let first = started(&world, &account);
    let second = started(&world, &account);
    assert_ne!(first.id, second.id);
    assert_eq!(first.id.len(), 64);
    let caller = world.auth.sessions.caller(&first.id).unwrap();
    assert_eq!((caller.id(), caller.role), (account.id.as_str(), Role::User));
    assert_eq!(caller.credential, Credential::Session(hash(&first.id)));
    world.auth.flush();
    let range = DocumentRange { limit: 10, ..DocumentRange::default() };
    for (key, document) in world.store.read().documents(COLLECTION, range).unwrap() {
        let kept = [key, document].concat();
        let kept = String::from_utf8(kept).unwrap();
        assert!(!kept.contains(&first.id) && !kept.contains(&first.csrf), "{kept}");
    }
    world.auth.sessions.end(&first.id);
    assert!(is_over(&world, &first));
    assert!(!is_over(&world, &second));
    assert!(matches!(world.auth.sessions.caller("nonsense"), Err(Refusal::Invalid(_))));
}

#[test]
fn sessions_outlast_the_service_and_not_its_directory_or_their_end() {
    let world = World::new();
    let account = world.account("a", Role::User);
    let (kept, ended) = (started(&world, &account), started(&world, &account));
    world.auth.flush();
    world.auth.sessions.end(&ended.id);
    let world = world.restarted(&[]);
    assert!(!is_over(&world, &kept));
    assert!(is_over(&world, &ended));
    // A restored store has the documents, and the era is another one.
    std::fs::remove_file(world.dir.path().join("session-era")).unwrap();
    let world = world.restarted(&[]);
    assert!(is_over(&world, &kept));
    world.auth.flush();
    let range = DocumentRange { limit: 10, ..DocumentRange::default() };
    assert!(world.store.read().documents(COLLECTION, range).unwrap().is_empty());
}

#[test]
fn idle_and_old_sessions_end() {
    let world = World::new();
    let account = world.account("a", Role::User);
    let sessions = &world.auth.sessions;
    let (minute, hour) = (Duration::from_mins(1), Duration::from_hours(1));
    let begun = era::now();
    let idle = started(&world, &account);
    assert!(sessions.caller_at(&idle.id, begun + 30 * minute, true).is_ok());
    assert!(sessions.caller_at(&idle.id, begun + 59 * minute, true).is_ok());
    // What a page asks by itself is answered, and keeps nothing going.
    assert!(sessions.caller_at(&idle.id, begun + 85 * minute, false).is_ok());
    assert!(sessions.caller_at(&idle.id, begun + 90 * minute, true).is_err());
    let used = started(&world, &account);
    for half in 1..=24 {
        assert!(sessions.caller_at(&used.id, begun + half * hour / 2, true).is_ok(), "{half}");
    }
    assert!(sessions.caller_at(&used.id, begun + 12 * hour + minute, true).is_err());
    // It is gone, not merely refused.
    assert!(sessions.caller_at(&used.id, begun + hour, true).is_err());
}

#[test]
fn a_session_is_worth_what_its_account_is_now() {
    let world = World::new();
    let account = world.account("a", Role::User);
    let (accounts, sessions) = (&world.auth.accounts, &world.auth.sessions);
    let local = Caller::local();
    let session = started(&world, &account);
    let change = |edit| accounts.change(&local, &account.id, IfMatch::Any, edit).unwrap();
    let promoted =
        change(accounts::Edit { role: Some(Role::Admin), ..accounts::Edit::of(&account) });
    assert_eq!(sessions.caller(&session.id).unwrap().role, Role::Admin);
    assert_eq!(world.auth.still(&sessions.caller(&session.id).unwrap()), Some(Role::Admin));

    let caller = sessions.caller(&session.id).unwrap();
    change(accounts::Edit { enabled: Some(false), ..accounts::Edit::of(&promoted) });
    assert!(matches!(sessions.caller(&session.id), Err(Refusal::Forbidden(_))));
    assert!(matches!(sessions.start(&account, None, None), Err(Refusal::Forbidden(_))));
    change(accounts::Edit { enabled: Some(true), ..accounts::Edit::of(&promoted) });
    assert!(is_over(&world, &session));
    assert_eq!(world.auth.still(&caller), None);

    let session = started(&world, &account);
    world.auth.delete_account(&local, &account.id, IfMatch::Any).unwrap();
    assert!(is_over(&world, &session));
}

#[test]
fn another_password_ends_the_other_sessions() {
    let world = World::new();
    let account = world.account("a", Role::User);
    let (own, other) = (started(&world, &account), started(&world, &account));
    let caller = world.auth.sessions.caller(&own.id).unwrap();
    let hash = super::super::password::Hash::of("another horse battery").unwrap();
    let account = world.auth.accounts.set_password(&caller, &account.id, hash).unwrap();
    let Credential::Session(hash) = &caller.credential else { panic!("{caller:?}") };
    world.auth.sessions.renew(hash, &account);
    assert!(!is_over(&world, &own));
    assert!(is_over(&world, &other));
    let world = world.restarted(&[]);
    assert!(!is_over(&world, &own));
    assert!(is_over(&world, &other));
}

#[test]
fn there_are_only_so_many() {
    let world = World::new();
    let account = world.account("a", Role::User);
    let other = world.account("b", Role::User);
    let of_other = started(&world, &other);
    let many: Vec<_> = (0..MOST_OF_ONE + 3).map(|_| started(&world, &account)).collect();
    assert!(!is_over(&world, &of_other));
    assert_eq!(many.iter().filter(|session| !is_over(&world, session)).count(), MOST_OF_ONE);
    assert!(!is_over(&world, many.last().unwrap()));
}

#[test]
fn csrf_tokens_are_their_sessions() {
    let world = World::new();
    let account = world.account("a", Role::User);
    let (one, other) = (started(&world, &account), started(&world, &account));
    assert!(Sessions::is_csrf(&one.id, &one.csrf));
    assert!(!Sessions::is_csrf(&one.id, &other.csrf));
    assert!(!Sessions::is_csrf(&one.id, ""));
    assert_ne!(one.csrf, hash(&one.id));
    assert!(!format!("{one:?}").contains(&one.id));
}

#[test]
fn the_id_token_is_kept_in_memory_alone() {
    let world = World::new();
    let account = world.account("a", Role::User);
    let sessions = &world.auth.sessions;
    let first = sessions.start(&account, Some("e30.e30.x"), None).unwrap();
    assert_eq!(sessions.end(&first.id).as_deref(), Some("e30.e30.x"));
    let second = sessions.start(&account, Some("e30.e30.x"), None).unwrap();
    let long = sessions.start(&account, Some(&"x".repeat(LONGEST_TOKEN + 1)), None).unwrap();
    assert_eq!(sessions.end(&long.id), None);
    let world = world.restarted(&[]);
    assert!(!is_over(&world, &second));
    assert_eq!(world.auth.sessions.end(&second.id), None);
}
