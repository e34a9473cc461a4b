use super::super::accounts;
use super::super::fixture::{Fixture, OAUTH};
use super::*;
use crate::{Identity, Profile};
use penstock_base::IfMatch;
use penstock_resources::role::Role;

fn start_session(fixture: &Fixture, account: &Account) -> NewSession {
    fixture.auth.sessions.start_session(account, None, None).unwrap()
}

fn has_ended(fixture: &Fixture, started: &NewSession) -> bool {
    matches!(fixture.auth.sessions.authenticate_session(&started.id), Err(AuthError::Invalid(_)))
}

#[test]
fn a_session_belongs_to_its_account_until_it_ends_and_is_stored_hashed() {
    let fixture = Fixture::new();
    let account = fixture.create_account("a", Role::User);
    let first = start_session(&fixture, &account);
    let second = start_session(&fixture, &account);
    assert_ne!(first.id, second.id);
    assert_eq!(first.id.len(), 64);
    let caller = fixture.auth.sessions.authenticate_session(&first.id).unwrap();
    assert_eq!((caller.id(), caller.role), (account.id.as_str(), Role::User));
    assert_eq!(caller.credential, Credential::Session(hash_id(&first.id)));
    fixture.auth.flush_deferred();
    for row in SESSIONS.scan().read_all(&fixture.store.read()).unwrap() {
        let kept = [row.key_bytes(), row.value_bytes()].concat();
        let kept = String::from_utf8(kept).unwrap();
        assert!(!kept.contains(&first.id) && !kept.contains(&first.csrf), "{kept}");
    }
    fixture.auth.sessions.end_session(&first.id);
    assert!(has_ended(&fixture, &first));
    assert!(!has_ended(&fixture, &second));
    assert!(matches!(
        fixture.auth.sessions.authenticate_session("nonsense"),
        Err(AuthError::Invalid(_))
    ));
}

#[test]
fn sessions_survive_a_restart_but_not_another_era_or_their_end() {
    let fixture = Fixture::new();
    let account = fixture.create_account("a", Role::User);
    let (kept, ended) = (start_session(&fixture, &account), start_session(&fixture, &account));
    fixture.auth.flush_deferred();
    fixture.auth.sessions.end_session(&ended.id);
    let fixture = fixture.restart(&[]);
    assert!(!has_ended(&fixture, &kept));
    assert!(has_ended(&fixture, &ended));
    // A restored store has the documents, but the era is another one.
    std::fs::remove_file(fixture.dir.path().join("session-era")).unwrap();
    let fixture = fixture.restart(&[]);
    assert!(has_ended(&fixture, &kept));
    fixture.auth.flush_deferred();
    assert!(SESSIONS.scan().read_all(&fixture.store.read()).unwrap().is_empty());
}

#[test]
fn idle_and_old_sessions_end() {
    let fixture = Fixture::new();
    let account = fixture.create_account("a", Role::User);
    let sessions = &fixture.auth.sessions;
    let (minute, hour) = (Duration::from_mins(1), Duration::from_hours(1));
    let begun = era::time_since_boot();
    let idle = start_session(&fixture, &account);
    assert!(sessions.authenticate_at(&idle.id, begun + 30 * minute, true).is_ok());
    assert!(sessions.authenticate_at(&idle.id, begun + 59 * minute, true).is_ok());
    // An automatic request of a page is answered, but does not reset the idle time.
    assert!(sessions.authenticate_at(&idle.id, begun + 85 * minute, false).is_ok());
    assert!(sessions.authenticate_at(&idle.id, begun + 90 * minute, true).is_err());
    let used = start_session(&fixture, &account);
    for half in 1..=24 {
        assert!(
            sessions.authenticate_at(&used.id, begun + half * hour / 2, true).is_ok(),
            "{half}"
        );
    }
    assert!(sessions.authenticate_at(&used.id, begun + 12 * hour + minute, true).is_err());
    // The session was removed, not merely refused.
    assert!(sessions.authenticate_at(&used.id, begun + hour, true).is_err());
}

#[test]
fn a_session_has_its_accounts_current_role() {
    let fixture = Fixture::new();
    let account = fixture.create_account("a", Role::User);
    let (accounts, sessions) = (&fixture.auth.accounts, &fixture.auth.sessions);
    let local = Caller::local();
    let session = start_session(&fixture, &account);
    let change = |edit| accounts.change(&local, &account.id, IfMatch::Any, edit).unwrap();
    let promoted = change(accounts::AccountEdit {
        role: Some(Role::Admin),
        ..accounts::AccountEdit::unchanged_from(&account)
    });
    assert_eq!(sessions.authenticate_session(&session.id).unwrap().role, Role::Admin);
    assert_eq!(
        fixture.auth.current_role(&sessions.authenticate_session(&session.id).unwrap()),
        Some(Role::Admin)
    );

    let caller = sessions.authenticate_session(&session.id).unwrap();
    change(accounts::AccountEdit {
        enabled: Some(false),
        ..accounts::AccountEdit::unchanged_from(&promoted)
    });
    assert!(matches!(sessions.authenticate_session(&session.id), Err(AuthError::Forbidden(_))));
    assert!(matches!(sessions.start_session(&account, None, None), Err(AuthError::Forbidden(_))));
    change(accounts::AccountEdit {
        enabled: Some(true),
        ..accounts::AccountEdit::unchanged_from(&promoted)
    });
    assert!(has_ended(&fixture, &session));
    assert_eq!(fixture.auth.current_role(&caller), None);

    let session = start_session(&fixture, &account);
    fixture.auth.delete_account(&local, &account.id, IfMatch::Any, &|_| Ok(())).unwrap();
    assert!(has_ended(&fixture, &session));
}

#[test]
fn another_password_ends_the_other_sessions() {
    let fixture = Fixture::new();
    let account = fixture.create_account("a", Role::User);
    let (own, other) = (start_session(&fixture, &account), start_session(&fixture, &account));
    let caller = fixture.auth.sessions.authenticate_session(&own.id).unwrap();
    let hash = super::super::password::Hash::from_password("another horse battery").unwrap();
    fixture.auth.set_password(&caller, &account.id, hash).unwrap();
    assert!(!has_ended(&fixture, &own));
    assert!(has_ended(&fixture, &other));
    let fixture = fixture.restart(&[]);
    assert!(!has_ended(&fixture, &own));
    assert!(has_ended(&fixture, &other));
}

#[test]
fn a_request_between_a_new_password_and_the_renewal_does_not_end_the_own_session() {
    let fixture = Fixture::new();
    let account = fixture.create_account("a", Role::User);
    let own = start_session(&fixture, &account);
    let caller = fixture.auth.sessions.authenticate_session(&own.id).unwrap();
    let hash = super::super::password::Hash::from_password("another horse battery").unwrap();
    let account = fixture.auth.accounts.set_password(&caller, &account.id, hash).unwrap();
    assert!(has_ended(&fixture, &own), "it is not renewed yet");
    let Credential::Session(hash) = &caller.credential else { panic!("{caller:?}") };
    fixture.auth.sessions.renew_generation(hash, &account);
    assert!(!has_ended(&fixture, &own));
}

#[test]
fn a_change_of_the_sign_in_ends_the_sessions_of_the_other() {
    let fixture = Fixture::new();
    let account = fixture.create_account("a", Role::User);
    let kept = start_session(&fixture, &account);
    let fixture = fixture.restart(&[]);
    assert!(!has_ended(&fixture, &kept));
    let fixture = fixture.restart(&OAUTH);
    assert!(has_ended(&fixture, &kept));
    // It does not come back.
    let fixture = fixture.restart(&[]);
    assert!(has_ended(&fixture, &kept));
}

#[test]
fn a_change_of_the_provider_ends_the_sessions_of_the_other() {
    let fixture = Fixture::open(tempfile::tempdir().unwrap(), &OAUTH);
    let identity = Identity {
        source: AccountSource::OpenIdConnect,
        issuer: "https://idp.example".to_owned(),
        name: "a".to_owned(),
    };
    let accounts = &fixture.auth.accounts;
    let account = accounts.sign_in_identity(&identity, &Profile::default(), Role::User).unwrap();
    let kept = start_session(&fixture, &account);
    let fixture = fixture.restart(&OAUTH);
    assert!(!has_ended(&fixture, &kept));
    let issuer = "--framework.security.oauth2.client.provider.idp.issuer-uri=https://b.example";
    let other = OAUTH.map(|old| if old.contains("issuer-uri") { issuer } else { old });
    let fixture = fixture.restart(&other);
    assert!(has_ended(&fixture, &kept));
}

#[test]
fn the_number_of_sessions_is_limited() {
    let fixture = Fixture::new();
    let account = fixture.create_account("a", Role::User);
    let other = fixture.create_account("b", Role::User);
    let of_other = start_session(&fixture, &other);
    let many: Vec<_> =
        (0..MAX_SESSIONS_PER_ACCOUNT + 3).map(|_| start_session(&fixture, &account)).collect();
    assert!(!has_ended(&fixture, &of_other));
    assert_eq!(
        many.iter().filter(|session| !has_ended(&fixture, session)).count(),
        MAX_SESSIONS_PER_ACCOUNT
    );
    assert!(!has_ended(&fixture, many.last().unwrap()));
}

#[test]
fn a_csrf_token_belongs_to_one_session() {
    let fixture = Fixture::new();
    let account = fixture.create_account("a", Role::User);
    let (one, other) = (start_session(&fixture, &account), start_session(&fixture, &account));
    assert!(Sessions::is_csrf_token(&one.id, &one.csrf));
    assert!(!Sessions::is_csrf_token(&one.id, &other.csrf));
    assert!(!Sessions::is_csrf_token(&one.id, ""));
    assert_ne!(one.csrf, hash_id(&one.id));
    assert!(!format!("{one:?}").contains(&one.id));
}

#[test]
fn the_id_token_is_kept_only_in_memory() {
    let fixture = Fixture::new();
    let account = fixture.create_account("a", Role::User);
    let sessions = &fixture.auth.sessions;
    let first = sessions.start_session(&account, Some("e30.e30.x"), None).unwrap();
    assert!(!format!("{sessions:?}").contains("e30.e30.x"));
    assert_eq!(sessions.end_session(&first.id).as_deref(), Some("e30.e30.x"));
    let second = sessions.start_session(&account, Some("e30.e30.x"), None).unwrap();
    let long =
        sessions.start_session(&account, Some(&"x".repeat(MAX_ID_TOKEN_BYTES + 1)), None).unwrap();
    assert_eq!(sessions.end_session(&long.id), None);
    let fixture = fixture.restart(&[]);
    assert!(!has_ended(&fixture, &second));
    assert_eq!(fixture.auth.sessions.end_session(&second.id), None);
}
