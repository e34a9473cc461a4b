use super::super::fixture::{Fixture, OAUTH, new_account, session_caller};
use super::*;
use crate::Caller;
use crate::audit;
use crate::password::Hash;
use penstock_base::IfMatch;
use penstock_base::error::Place;
use penstock_store::{NEW_COUNTERS, Read as _};
use std::net::{IpAddr, Ipv4Addr};

const HERE: Option<IpAddr> = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
const THERE: Option<IpAddr> = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)));
const PASSWORD: &str = "correct horse battery";

fn identity(name: &str) -> Identity {
    Identity {
        source: AccountSource::OpenIdConnect,
        issuer: "https://idp.example".to_owned(),
        name: name.to_owned(),
    }
}

fn profile(given_name: &str) -> Profile {
    Profile { given_name: Some(given_name.to_owned()), ..Profile::default() }
}

fn trail(fixture: &Fixture) -> Vec<String> {
    let events = fixture.auth.audit.list(&audit::Filter::default(), None, 1000).unwrap();
    events.into_iter().rev().map(|event| event.what).collect()
}

async fn signs_in(fixture: &Fixture, email: &str, password: &str) -> bool {
    fixture.auth.accounts.verify_password(email, password, HERE).await.is_ok()
}

#[tokio::test]
async fn the_first_account_has_its_password_in_a_file_until_it_is_changed() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::new();
    let path = fixture.dir.path().join("initial-admin-password");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let first = fixture.initial_password().unwrap();
    assert!(signs_in(&fixture, "admin", &first).await);

    let fixture = fixture.restart(&[]);
    assert_eq!(fixture.initial_password(), Some(first.clone()));
    let accounts = &fixture.auth.accounts;
    assert_eq!(accounts.list(None, 10).unwrap().len(), 1);
    let hash = accounts.hash_password(PASSWORD).await.unwrap();
    accounts.set_password(&Caller::local(), "admin", hash).unwrap();
    assert_eq!(fixture.initial_password(), None);
    assert!(!signs_in(&fixture, "admin", &first).await);
    assert!(signs_in(&fixture, "Admin", PASSWORD).await);
    // A file that was restored with a backup of the folder is not valid.
    std::fs::write(&path, &first).unwrap();
    assert_eq!(fixture.restart(&[]).initial_password(), None);
}

#[tokio::test]
async fn a_power_cut_before_the_first_account_leaves_no_invalid_password() {
    let fixture = Fixture::new();
    let cut = fixture.initial_password().unwrap();
    let Fixture { auth, store, dir } = fixture;
    // As if the commit had not reached the disk.
    let id = auth.accounts.find_by_id_or_email("admin").unwrap().id.clone();
    drop(auth);
    store
        .transact::<_, GatewayError>(|t| Ok(t.delete_document("accounts", id.as_bytes())?))
        .unwrap();
    drop(store);
    let fixture = Fixture::open(dir, &[]);
    let password = fixture.initial_password().unwrap();
    assert_ne!(password, cut);
    assert!(signs_in(&fixture, "admin", &password).await);
}

#[tokio::test]
async fn with_an_identity_provider_there_is_no_first_account_and_no_password() {
    let fixture = Fixture::open(tempfile::tempdir().unwrap(), &OAUTH);
    assert_eq!(fixture.initial_password(), None);
    let accounts = &fixture.auth.accounts;
    assert!(accounts.list(None, 10).unwrap().is_empty());
    let hash = Hash::from_password(PASSWORD).unwrap();
    let error = accounts.create(&Caller::local(), new_account("a", Role::User), hash).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict, "{error}");

    // Accounts of another mode remain, but cannot sign in.
    let fixture = Fixture::new();
    fixture.create_account("a", Role::User);
    let fixture = fixture.restart(&OAUTH);
    assert!(fixture.auth.accounts.find_by_id_or_email("a").is_some());
    assert!(!signs_in(&fixture, "a", PASSWORD).await);
}

#[test]
fn of_fifty_first_requests_one_creates_the_account() {
    let fixture = Fixture::new();
    let ids: std::collections::HashSet<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..50)
            .map(|_| {
                let accounts = fixture.auth.accounts.clone();
                scope.spawn(move || {
                    let account =
                        accounts.sign_in_identity(&identity("x"), &profile("X"), Role::User);
                    account.unwrap().id.clone()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(ids.len(), 1);
    assert_eq!(trail(&fixture).iter().filter(|what| *what == "account.created").count(), 2);
    let fixture = fixture.restart(&[]);
    assert_eq!(fixture.auth.accounts.list(None, 10).unwrap().len(), 2);
    let kept = fixture.auth.accounts.find_by_identity(&identity("x")).unwrap();
    assert!(ids.contains(&kept.id));
    assert!(kept.first_login.is_some() && kept.first_login == kept.last_login);
}

#[test]
fn accounts_are_identified_by_identity_and_never_by_email() {
    let fixture = Fixture::new();
    let built_in = fixture.create_account("ada@plant.example", Role::Admin);
    let same_email = Profile { email: Some("ada@plant.example".to_owned()), ..profile("Ada") };
    let accounts = &fixture.auth.accounts;
    let person = accounts.sign_in_identity(&identity("ada"), &same_email, Role::User).unwrap();
    let client = Identity { source: AccountSource::ServiceAccount, ..identity("ada") };
    let client = accounts.sign_in_identity(&client, &same_email, Role::User).unwrap();
    let elsewhere = Identity { issuer: "https://other.example".to_owned(), ..identity("ada") };
    let elsewhere = accounts.sign_in_identity(&elsewhere, &same_email, Role::User).unwrap();
    let ids = [&built_in.id, &person.id, &client.id, &elsewhere.id];
    assert_eq!(std::collections::HashSet::from(ids).len(), 4);
    assert!(client.is_service_account() && !person.is_service_account());
    assert_eq!(accounts.find_by_id_or_email("ada@plant.example").unwrap().id, built_in.id);
}

#[test]
fn a_provider_changes_only_the_fields_that_it_sends() {
    let fixture = Fixture::new();
    let accounts = &fixture.auth.accounts;
    let whole = Profile {
        family_name: Some("Byron".into()),
        email: Some("ada@plant.example".into()),
        ..profile("Ada")
    };
    let first = accounts.sign_in_identity(&identity("a"), &whole, Role::Admin).unwrap();
    assert!(accounts.sign_in_if_unchanged(&identity("a"), &whole, Role::Admin).unwrap().is_ok());
    // An access token has fewer claims than an ID token.
    assert!(
        accounts.sign_in_if_unchanged(&identity("a"), &Profile::default(), Role::Admin).is_some()
    );
    assert!(accounts.sign_in_if_unchanged(&identity("a"), &whole, Role::User).is_none());
    let now = accounts.sign_in_identity(&identity("a"), &profile("Augusta"), Role::User).unwrap();
    assert_eq!((now.given_name.as_deref(), now.role), (Some("Augusta"), Role::User));
    assert_eq!(now.family_name.as_deref(), Some("Byron"));
    assert_eq!((&now.id, now.version), (&first.id, 2));
    assert_eq!(trail(&fixture)[2..], ["role.changed", "account.changed"]);
    let none = accounts.sign_in_identity(&identity("b"), &Profile::default(), Role::User).unwrap();
    assert_eq!(none.email, "b");
}

#[test]
fn a_disabled_account_is_refused_whatever_its_provider_says() {
    let fixture = Fixture::new();
    let accounts = &fixture.auth.accounts;
    let account = accounts.sign_in_identity(&identity("a"), &profile("A"), Role::User).unwrap();
    let edit = AccountEdit { enabled: Some(false), ..AccountEdit::unchanged_from(&account) };
    accounts.change(&Caller::local(), &account.id, IfMatch::Any, edit).unwrap();
    let refused = accounts.sign_in_identity(&identity("a"), &profile("B"), Role::Admin);
    assert!(matches!(refused, Err(AuthError::Forbidden(_))), "{refused:?}");
    let kept = accounts.get(&account.id).unwrap();
    assert_eq!((kept.given_name.as_deref(), kept.role), (Some("A"), Role::User));
}

#[test]
fn fields_that_a_provider_sets_can_only_be_changed_there() {
    let fixture = Fixture::new();
    let accounts = &fixture.auth.accounts;
    let account = accounts.sign_in_identity(&identity("a"), &profile("A"), Role::User).unwrap();
    let local = Caller::local();
    for edit in [
        AccountEdit { role: Some(Role::Admin), ..AccountEdit::unchanged_from(&account) },
        AccountEdit { given_name: Some("B".into()), ..AccountEdit::unchanged_from(&account) },
        AccountEdit { email: Some("b".into()), ..AccountEdit::unchanged_from(&account) },
    ] {
        let error = accounts.change(&local, &account.id, IfMatch::Any, edit).unwrap_err();
        assert_eq!((error.class, error.findings.len()), (ErrorClass::Conflict, 1), "{error}");
    }
    let hash = Hash::from_password(PASSWORD).unwrap();
    let error = accounts.set_password(&local, &account.id, hash).unwrap_err();
    assert_eq!(error.class, ErrorClass::Conflict);
    fixture.auth.delete_account(&local, &account.id, IfMatch::Any, &|_| Ok(())).unwrap();
    // The next sign-in creates it again, as another account.
    let again = accounts.sign_in_identity(&identity("a"), &profile("A"), Role::User).unwrap();
    assert_ne!(again.id, account.id);
}

#[test]
fn the_last_admin_stays() {
    let fixture = Fixture::new();
    let (accounts, local) = (&fixture.auth.accounts, Caller::local());
    let admin = accounts.find_by_id_or_email("admin").unwrap();
    // Accounts that cannot sign in do not count.
    let person = accounts.sign_in_identity(&identity("p"), &profile("P"), Role::Admin).unwrap();
    let off = fixture.create_account("off", Role::Admin);
    let disable = |account: &Account| AccountEdit {
        enabled: Some(false),
        ..AccountEdit::unchanged_from(account)
    };
    accounts.change(&local, &off.id, IfMatch::Any, disable(&off)).unwrap();
    let demote =
        AccountEdit { role: Some(Role::Contributor), ..AccountEdit::unchanged_from(&admin) };
    let refused = [
        accounts.change(&local, "admin", IfMatch::Any, disable(&admin)).unwrap_err(),
        accounts.change(&local, "admin", IfMatch::Any, demote.clone()).unwrap_err(),
        fixture.auth.delete_account(&local, "admin", IfMatch::Any, &|_| Ok(())).unwrap_err(),
    ];
    for error in refused {
        assert_eq!(error.class, ErrorClass::Conflict);
        assert!(error.detail.contains("last enabled Admin"), "{error}");
    }
    accounts.change(&local, &person.id, IfMatch::Any, disable(&person)).unwrap();
    fixture.create_account("second", Role::Admin);
    accounts.change(&local, "admin", IfMatch::Any, demote).unwrap();
    fixture.auth.delete_account(&local, "admin", IfMatch::Any, &|_| Ok(())).unwrap();
    assert_eq!(fixture.initial_password(), None);
}

#[test]
fn emails_are_taken_once_in_whatever_case() {
    let fixture = Fixture::new();
    let (accounts, local) = (&fixture.auth.accounts, Caller::local());
    let ada = fixture.create_account("Ada@plant.example", Role::User);
    fixture.create_account("bob@plant.example", Role::User);
    let hash = Hash::from_password(PASSWORD).unwrap();
    let taken =
        accounts.create(&local, new_account("ADA@plant.example", Role::User), hash).unwrap_err();
    assert_eq!(taken.class, ErrorClass::Conflict);
    let edit = AccountEdit {
        email: Some("BOB@plant.example".into()),
        ..AccountEdit::unchanged_from(&ada)
    };
    let taken = accounts.change(&local, &ada.id, IfMatch::Any, edit).unwrap_err();
    assert_eq!(taken.class, ErrorClass::Conflict);
    let edit = AccountEdit {
        email: Some("ada@plant.example".into()),
        ..AccountEdit::unchanged_from(&ada)
    };
    accounts.change(&local, &ada.id, IfMatch::Any, edit).unwrap();
    let edit = AccountEdit { email: Some("countess".into()), ..AccountEdit::unchanged_from(&ada) };
    accounts.change(&local, &ada.id, IfMatch::Version(2), edit).unwrap();
    assert!(accounts.find_by_id_or_email("ada@plant.example").is_none());
    fixture.create_account("ada@plant.example", Role::User);
    let stale = accounts
        .change(&local, &ada.id, IfMatch::Version(2), AccountEdit::unchanged_from(&ada))
        .unwrap_err();
    assert_eq!(stale.class, ErrorClass::PreconditionFailed);
}

#[tokio::test]
async fn failures_delay_the_account_only_at_that_address() {
    let fixture = Fixture::new();
    fixture.create_account("a", Role::User);
    let accounts = &fixture.auth.accounts;
    // The delay of three failures is over when a slow machine has checked another password.
    let make_delay_long = |email: &str| {
        for _ in 0..6 {
            accounts.inner.attempts.record_failure(email, HERE, Instant::now());
        }
    };
    for _ in 0..3 {
        let refused = accounts.verify_password("a", "wrong", HERE).await.unwrap_err();
        assert_eq!(refused, AuthError::Invalid("the email or the password is wrong".into()));
    }
    make_delay_long("a");
    let refused = accounts.verify_password("A ", PASSWORD, HERE).await.unwrap_err();
    assert!(matches!(refused, AuthError::TooMany(_)), "{refused}");
    accounts.verify_password("a", PASSWORD, THERE).await.unwrap();
    accounts.verify_password("a", PASSWORD, None).await.unwrap();
    // An unknown email is refused with the same text and the same delay.
    for _ in 0..3 {
        let refused = accounts.verify_password("nobody", "wrong", HERE).await.unwrap_err();
        assert_eq!(refused, AuthError::Invalid("the email or the password is wrong".into()));
    }
    make_delay_long("nobody");
    let refused = accounts.verify_password("nobody", "wrong", HERE).await.unwrap_err();
    assert!(matches!(refused, AuthError::TooMany(_)), "{refused}");
    let kept = fixture.auth.audit.list(&audit::Filter::default(), None, 100).unwrap();
    assert!(kept.iter().all(|event| !event.detail.contains("nobody")), "{kept:?}");
    assert!(kept.iter().any(|event| event.what == "sign-in.refused" && event.from == HERE));
}

#[tokio::test]
async fn failures_behind_the_same_address_lock_nobody_out_who_signed_in_there() {
    let fixture = Fixture::new();
    fixture.create_account("a", Role::User);
    fixture.create_account("b", Role::User);
    let accounts = &fixture.auth.accounts;
    accounts.verify_password("a", PASSWORD, HERE).await.unwrap();
    // Somebody behind the same address tries passwords of this account, and of others.
    for n in 0..25 {
        for email in ["a", "nobody", &n.to_string()] {
            accounts.inner.attempts.record_failure(email, HERE, Instant::now());
        }
    }
    accounts.verify_password("a", PASSWORD, HERE).await.unwrap();
    // An account that has not signed in there waits, and so does one that does not exist.
    for email in ["b", "nobody"] {
        let refused = accounts.verify_password(email, PASSWORD, HERE).await.unwrap_err();
        assert!(matches!(refused, AuthError::TooMany(_)), "{email}: {refused}");
    }
    // A client that does not know the password cannot distinguish the known account from the others.
    for email in ["a", "nobody"] {
        let before = accounts.inner.attempts.remaining_delay(email, HERE, Instant::now());
        let refused = accounts.verify_password(email, "wrong", HERE).await.unwrap_err();
        assert!(matches!(refused, AuthError::TooMany(_)), "{email}: {refused}");
        assert!(
            accounts.inner.attempts.remaining_delay(email, HERE, Instant::now()) < before,
            "{email}"
        );
    }
}

#[tokio::test]
async fn an_account_can_change_its_own_password_only_so_often() {
    let fixture = Fixture::new();
    let (ada, boss) =
        (fixture.create_account("ada", Role::User), fixture.create_account("boss", Role::Admin));
    let hash = Hash::from_password(PASSWORD).unwrap();
    let set = |by: &Caller| fixture.auth.accounts.set_password(by, &ada.id, hash.clone());
    let refused = (0..1000).find_map(|_| set(&session_caller(&ada)).err());
    assert!(matches!(refused.unwrap().class, ErrorClass::TooManyRequests(_)));
    set(&session_caller(&boss)).unwrap();
}

#[tokio::test]
async fn a_hash_with_other_parameters_is_replaced_at_the_next_sign_in() {
    let fixture = Fixture::new();
    let account = fixture.create_account("a", Role::User);
    let params = argon2::Params::new(8 * 1024, 1, 1, None).unwrap();
    let argon2 = argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params);
    let old = Hash::from_password_with(&argon2, PASSWORD).unwrap();
    fixture.auth.accounts.set_password(&Caller::local(), "a", old.clone()).unwrap();
    assert!(!old.is_current());
    assert!(signs_in(&fixture, "a", PASSWORD).await);
    let renewed = fixture.auth.accounts.get(&account.id).unwrap().password.clone().unwrap();
    assert!(renewed.is_current());
    assert!(signs_in(&fixture.restart(&[]), "a", PASSWORD).await);
}

#[test]
fn names_and_emails_that_deceive_are_refused() {
    for member in ["givenName", "familyName", "organization", "email"] {
        let body = serde_json::json!({member: "ada\u{202e}nimda", "roles": ["User"]}).to_string();
        let error = AccountEdit::from_json(body.as_bytes()).unwrap_err();
        assert_eq!(error.findings[0].place, Place::Pointer(format!("/{member}")));
        assert!(error.findings[0].message.contains("U+202E"), "{error:?}");
    }
    let body =
        |member: &str| serde_json::json!({member: "a\u{200c}b", "roles": ["User"]}).to_string();
    assert!(AccountEdit::from_json(body("givenName").as_bytes()).is_ok());
    assert!(AccountEdit::from_json(body("email").as_bytes()).is_err());
}

#[test]
fn bodies_are_read_with_every_finding() {
    let pointers = |error: GatewayError| -> Vec<String> {
        assert_eq!(error.class, ErrorClass::Invalid);
        let places = error.findings.into_iter().map(|finding| match finding.place {
            Place::Pointer(pointer) => pointer,
            other => panic!("{other:?}"),
        });
        places.collect()
    };
    let new = |body: &str| pointers(NewAccount::from_json(body.as_bytes()).unwrap_err());
    assert_eq!(new("{}"), ["/roles", "/email", "/password"]);
    assert_eq!(
        new(
            r#"{"email": "a b", "roles": ["Metrics"], "password": "short", "enabled": 1, "rolse": 1}"#
        ),
        ["/email", "/roles", "/enabled", "/password", "/rolse"]
    );
    assert_eq!(
        new(r#"{"email": "me", "roles": ["User", "Admin"], "password": "correct horse battery"}"#),
        ["/email", "/roles"]
    );
    assert_eq!(
        new(r#"{"email": "a", "roles": "User", "password": "correct horse battery"}"#),
        ["/roles"]
    );
    let read = NewAccount::from_json(
        br#"{"email": " Ada@plant.example ", "roles": ["admin"], "givenName": "", "password": "correct horse battery"}"#,
    );
    let read = read.unwrap();
    assert_eq!((read.email.as_str(), read.role), ("Ada@plant.example", Role::Admin));
    assert_eq!((read.given_name, read.enabled), (None, true));
    let edit = AccountEdit::from_json(br#"{"password": "x"}"#).unwrap_err();
    assert_eq!(pointers(edit), ["/password"]);
    let long = format!(r#"{{"givenName": "{}"}}"#, "x".repeat(300));
    assert_eq!(pointers(AccountEdit::from_json(long.as_bytes()).unwrap_err()), ["/givenName"]);
    let password = NewPassword::from_json(br#"{"password": "Ada"}"#, "a").unwrap_err();
    assert_eq!(pointers(password), ["/password"]);
}

#[tokio::test]
async fn an_account_that_cannot_be_read_is_ignored_and_not_deleted() {
    let fixture = Fixture::new();
    let lost = fixture.create_account("lost", Role::User);
    fixture.create_account("kept", Role::User);
    let newer = b"{\"id\": \"x\", \"role\": \"Emperor\"}";
    let put = |t: &mut Transaction<'_>| {
        Ok::<_, GatewayError>(t.put_document("accounts", lost.id.as_bytes(), newer)?)
    };
    fixture.store.transact(put).unwrap();
    let fixture = fixture.restart(&[]);
    assert!(!signs_in(&fixture, "lost", PASSWORD).await);
    assert!(signs_in(&fixture, "kept", PASSWORD).await);
    let document = fixture.store.read().read_document("accounts", lost.id.as_bytes()).unwrap();
    assert_eq!(document.as_deref(), Some(newer.as_slice()));
}

#[test]
fn the_event_of_a_change_names_its_actor() {
    let fixture = Fixture::new();
    let (ada, bob) =
        (fixture.create_account("ada", Role::Admin), fixture.create_account("bob", Role::User));
    let accounts = &fixture.auth.accounts;
    let edit = AccountEdit {
        role: Some(Role::Contributor),
        enabled: Some(false),
        ..AccountEdit::unchanged_from(&bob)
    };
    accounts.change(&session_caller(&ada), &bob.id, IfMatch::Any, edit).unwrap();
    let edit = AccountEdit { given_name: Some("Ada".into()), ..AccountEdit::unchanged_from(&ada) };
    accounts.change(&session_caller(&ada), &ada.id, IfMatch::Any, edit).unwrap();
    let events = fixture.auth.audit.list(&audit::Filter::default(), None, 3).unwrap();
    let recorded: Vec<_> =
        events.iter().map(|e| (e.what.as_str(), e.account.clone(), e.by.clone())).collect();
    let (of_ada, of_bob) = (Some(ada.id.clone()), Some(bob.id.clone()));
    assert_eq!(recorded[0], ("account.changed", of_ada.clone(), None));
    assert_eq!(recorded[1], ("account.disabled", of_bob.clone(), of_ada.clone()));
    assert_eq!(recorded[2], ("role.changed", of_bob, of_ada));
    // Repeating the same edit changes nothing.
    let same = accounts
        .change(&session_caller(&ada), &bob.id, IfMatch::Any, AccountEdit::unchanged_from(&bob))
        .unwrap();
    assert_eq!(same.version, 2);
}

#[test]
fn a_restored_account_gets_no_version_that_was_lost() {
    let fixture = Fixture::new();
    let ada = fixture.create_account("ada@plant.example", Role::Admin);
    let begin = 1_000_000_u64.to_be_bytes();
    let name = collections::COUNTERS.name;
    fixture.store.transact::<_, Error>(|t| t.put_document(name, NEW_COUNTERS, &begin)).unwrap();
    let edit = AccountEdit { given_name: Some("Ada".into()), ..AccountEdit::unchanged_from(&ada) };
    let accounts = &fixture.auth.accounts;
    let changed = accounts.change(&session_caller(&ada), &ada.id, IfMatch::Any, edit).unwrap();
    assert_eq!((ada.version, changed.version), (1, 1_000_001));
    assert_eq!(accounts.get(&ada.id).unwrap(), changed);
    // The backup may lack an account with this email.
    assert_eq!(fixture.create_account("bob@plant.example", Role::User).version, 1_000_001);
}
