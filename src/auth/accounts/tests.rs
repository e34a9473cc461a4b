use super::super::world::{World, caller, new};
use super::*;
use crate::Caller;
use crate::audit;
use crate::password::Hash;
use penstock_base::IfMatch;
use penstock_base::fault::Place;
use std::net::{IpAddr, Ipv4Addr};

const HERE: Option<IpAddr> = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
const THERE: Option<IpAddr> = Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)));
const PASSWORD: &str = "correct horse battery";

const OAUTH: [&str; 8] = [
    "--security=oauth2",
    "--profiles.active=oauth2",
    "--service.security.registration=idp",
    "--framework.security.oauth2.client.registration.idp.client-id=a",
    "--framework.security.oauth2.client.registration.idp.client-secret=b",
    "--framework.security.oauth2.client.provider.idp.issuer-uri=https://idp.example",
    "--framework.security.oauth2.client.provider.idp.user-name-attribute=sub",
    "--service.base-url=https://gateway.example",
];

fn identity(name: &str) -> Identity {
    Identity {
        source: Source::OpenIdConnect,
        issuer: "https://idp.example".to_owned(),
        name: name.to_owned(),
    }
}

fn profile(given_name: &str) -> Profile {
    Profile { given_name: Some(given_name.to_owned()), ..Profile::default() }
}

fn trail(world: &World) -> Vec<String> {
    let events = world.auth.audit.list(&audit::Filter::default(), None, 1000).unwrap();
    events.into_iter().rev().map(|event| event.what).collect()
}

async fn signs_in(world: &World, email: &str, password: &str) -> bool {
    world.auth.accounts.verify_password(email, password, HERE).await.is_ok()
}

#[tokio::test]
async fn the_first_account_has_its_password_in_a_file_until_it_is_changed() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let path = world.dir.path().join("initial-admin-password");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let first = world.initial_password().unwrap();
    assert!(signs_in(&world, "admin", &first).await);

    let world = world.restarted(&[]);
    assert_eq!(world.initial_password(), Some(first.clone()));
    let accounts = &world.auth.accounts;
    assert_eq!(accounts.list(None, 10).unwrap().len(), 1);
    let hash = accounts.hash(PASSWORD).await.unwrap();
    accounts.set_password(&Caller::local(), "admin", hash).unwrap();
    assert_eq!(world.initial_password(), None);
    assert!(!signs_in(&world, "admin", &first).await);
    assert!(signs_in(&world, "Admin", PASSWORD).await);
    // One that came back with a backup of the folder is none any more.
    std::fs::write(&path, &first).unwrap();
    assert_eq!(world.restarted(&[]).initial_password(), None);
}

#[tokio::test]
async fn a_power_cut_before_the_first_account_leaves_no_password_that_is_none() {
    let world = World::new();
    let cut = world.initial_password().unwrap();
    let World { auth, store, dir } = world;
    // As if the commit had not come to the disk.
    let id = auth.accounts.named("admin").unwrap().id.clone();
    drop(auth);
    store.transact::<_, Fault>(|t| Ok(t.delete(COLLECTION, id.as_bytes())?)).unwrap();
    drop(store);
    let world = World::open(dir, &[]);
    let password = world.initial_password().unwrap();
    assert_ne!(password, cut);
    assert!(signs_in(&world, "admin", &password).await);
}

#[tokio::test]
async fn with_an_identity_provider_there_is_no_first_account_and_no_password() {
    let world = World::open(tempfile::tempdir().unwrap(), &OAUTH);
    assert_eq!(world.initial_password(), None);
    let accounts = &world.auth.accounts;
    assert!(accounts.list(None, 10).unwrap().is_empty());
    let hash = Hash::of(PASSWORD).unwrap();
    let fault = accounts.create(&Caller::local(), new("a", Role::User), hash).unwrap_err();
    assert_eq!(fault.kind, Kind::Conflict, "{fault}");

    // Accounts of another mode stay, and do not sign in.
    let world = World::new();
    world.account("a", Role::User);
    let world = world.restarted(&OAUTH);
    assert!(world.auth.accounts.named("a").is_some());
    assert!(!signs_in(&world, "a", PASSWORD).await);
}

#[test]
fn of_fifty_first_requests_one_makes_the_account() {
    let world = World::new();
    let ids: std::collections::HashSet<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..50)
            .map(|_| {
                let accounts = world.auth.accounts.clone();
                scope.spawn(move || {
                    let account = accounts.signed_in(&identity("x"), &profile("X"), Role::User);
                    account.unwrap().id.clone()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(ids.len(), 1);
    assert_eq!(trail(&world).iter().filter(|what| *what == "account.created").count(), 2);
    let world = world.restarted(&[]);
    assert_eq!(world.auth.accounts.list(None, 10).unwrap().len(), 2);
    let kept = world.auth.accounts.find(&identity("x")).unwrap();
    assert!(ids.contains(&kept.id));
    assert!(kept.first_login.is_some() && kept.first_login == kept.last_login);
}

#[test]
fn accounts_are_known_by_their_identity_and_never_by_their_email() {
    let world = World::new();
    let built_in = world.account("ada@plant.example", Role::Admin);
    let same_email = Profile { email: Some("ada@plant.example".to_owned()), ..profile("Ada") };
    let accounts = &world.auth.accounts;
    let person = accounts.signed_in(&identity("ada"), &same_email, Role::User).unwrap();
    let client = Identity { source: Source::ServiceAccount, ..identity("ada") };
    let client = accounts.signed_in(&client, &same_email, Role::User).unwrap();
    let elsewhere = Identity { issuer: "https://other.example".to_owned(), ..identity("ada") };
    let elsewhere = accounts.signed_in(&elsewhere, &same_email, Role::User).unwrap();
    let ids = [&built_in.id, &person.id, &client.id, &elsewhere.id];
    assert_eq!(std::collections::HashSet::from(ids).len(), 4);
    assert!(client.is_service_account() && !person.is_service_account());
    assert_eq!(accounts.named("ada@plant.example").unwrap().id, built_in.id);
}

#[test]
fn a_provider_changes_what_it_says_and_nothing_else() {
    let world = World::new();
    let accounts = &world.auth.accounts;
    let whole = Profile {
        family_name: Some("Byron".into()),
        email: Some("ada@plant.example".into()),
        ..profile("Ada")
    };
    let first = accounts.signed_in(&identity("a"), &whole, Role::Admin).unwrap();
    assert!(accounts.recognised(&identity("a"), &whole, Role::Admin).unwrap().is_ok());
    // An access token says less than an ID token.
    assert!(accounts.recognised(&identity("a"), &Profile::default(), Role::Admin).is_some());
    assert!(accounts.recognised(&identity("a"), &whole, Role::User).is_none());
    let now = accounts.signed_in(&identity("a"), &profile("Augusta"), Role::User).unwrap();
    assert_eq!((now.given_name.as_deref(), now.role), (Some("Augusta"), Role::User));
    assert_eq!(now.family_name.as_deref(), Some("Byron"));
    assert_eq!((&now.id, now.version), (&first.id, 2));
    assert_eq!(trail(&world)[2..], ["role.changed", "account.changed"]);
    let none = accounts.signed_in(&identity("b"), &Profile::default(), Role::User).unwrap();
    assert_eq!(none.email, "b");
}

#[test]
fn a_disabled_account_is_refused_whatever_its_provider_says() {
    let world = World::new();
    let accounts = &world.auth.accounts;
    let account = accounts.signed_in(&identity("a"), &profile("A"), Role::User).unwrap();
    let edit = Edit { enabled: Some(false), ..Edit::of(&account) };
    accounts.change(&Caller::local(), &account.id, IfMatch::Any, edit).unwrap();
    let refused = accounts.signed_in(&identity("a"), &profile("B"), Role::Admin);
    assert!(matches!(refused, Err(Refusal::Forbidden(_))), "{refused:?}");
    let kept = accounts.get(&account.id).unwrap();
    assert_eq!((kept.given_name.as_deref(), kept.role), (Some("A"), Role::User));
}

#[test]
fn what_a_provider_says_is_changed_there() {
    let world = World::new();
    let accounts = &world.auth.accounts;
    let account = accounts.signed_in(&identity("a"), &profile("A"), Role::User).unwrap();
    let local = Caller::local();
    for edit in [
        Edit { role: Some(Role::Admin), ..Edit::of(&account) },
        Edit { given_name: Some("B".into()), ..Edit::of(&account) },
        Edit { email: Some("b".into()), ..Edit::of(&account) },
    ] {
        let fault = accounts.change(&local, &account.id, IfMatch::Any, edit).unwrap_err();
        assert_eq!((fault.kind, fault.errors.len()), (Kind::Conflict, 1), "{fault}");
    }
    let hash = Hash::of(PASSWORD).unwrap();
    let fault = accounts.set_password(&local, &account.id, hash).unwrap_err();
    assert_eq!(fault.kind, Kind::Conflict);
    world.auth.delete_account(&local, &account.id, IfMatch::Any).unwrap();
    // The provider makes it again, as another one.
    let again = accounts.signed_in(&identity("a"), &profile("A"), Role::User).unwrap();
    assert_ne!(again.id, account.id);
}

#[test]
fn the_last_admin_stays() {
    let world = World::new();
    let (accounts, local) = (&world.auth.accounts, Caller::local());
    let admin = accounts.named("admin").unwrap();
    // Those who cannot sign in do not count.
    let person = accounts.signed_in(&identity("p"), &profile("P"), Role::Admin).unwrap();
    let off = world.account("off", Role::Admin);
    let disable = |account: &Account| Edit { enabled: Some(false), ..Edit::of(account) };
    accounts.change(&local, &off.id, IfMatch::Any, disable(&off)).unwrap();
    let demote = Edit { role: Some(Role::Contributor), ..Edit::of(&admin) };
    let refused = [
        accounts.change(&local, "admin", IfMatch::Any, disable(&admin)).unwrap_err(),
        accounts.change(&local, "admin", IfMatch::Any, demote.clone()).unwrap_err(),
        world.auth.delete_account(&local, "admin", IfMatch::Any).unwrap_err(),
    ];
    for fault in refused {
        assert_eq!(fault.kind, Kind::Conflict);
        assert!(fault.detail.contains("last enabled Admin"), "{fault}");
    }
    accounts.change(&local, &person.id, IfMatch::Any, disable(&person)).unwrap();
    world.account("second", Role::Admin);
    accounts.change(&local, "admin", IfMatch::Any, demote).unwrap();
    world.auth.delete_account(&local, "admin", IfMatch::Any).unwrap();
    assert_eq!(world.initial_password(), None);
}

#[test]
fn emails_are_taken_once_in_whatever_case() {
    let world = World::new();
    let (accounts, local) = (&world.auth.accounts, Caller::local());
    let ada = world.account("Ada@plant.example", Role::User);
    world.account("bob@plant.example", Role::User);
    let hash = Hash::of(PASSWORD).unwrap();
    let taken = accounts.create(&local, new("ADA@plant.example", Role::User), hash).unwrap_err();
    assert_eq!(taken.kind, Kind::Conflict);
    let edit = Edit { email: Some("BOB@plant.example".into()), ..Edit::of(&ada) };
    let taken = accounts.change(&local, &ada.id, IfMatch::Any, edit).unwrap_err();
    assert_eq!(taken.kind, Kind::Conflict);
    let edit = Edit { email: Some("ada@plant.example".into()), ..Edit::of(&ada) };
    accounts.change(&local, &ada.id, IfMatch::Any, edit).unwrap();
    let edit = Edit { email: Some("countess".into()), ..Edit::of(&ada) };
    accounts.change(&local, &ada.id, IfMatch::Version(2), edit).unwrap();
    assert!(accounts.named("ada@plant.example").is_none());
    world.account("ada@plant.example", Role::User);
    let stale = accounts.change(&local, &ada.id, IfMatch::Version(2), Edit::of(&ada)).unwrap_err();
    assert_eq!(stale.kind, Kind::PreconditionFailed);
}

#[tokio::test]
async fn failures_delay_the_account_at_that_address_alone() {
    let world = World::new();
    world.account("a", Role::User);
    let accounts = &world.auth.accounts;
    for _ in 0..3 {
        let refused = accounts.verify_password("a", "wrong", HERE).await.unwrap_err();
        assert_eq!(refused, Refusal::Invalid("the email or the password is wrong".into()));
    }
    let refused = accounts.verify_password("A ", PASSWORD, HERE).await.unwrap_err();
    assert!(matches!(refused, Refusal::TooMany(_)), "{refused}");
    accounts.verify_password("a", PASSWORD, THERE).await.unwrap();
    accounts.verify_password("a", PASSWORD, None).await.unwrap();
    // Nobody's email is refused with the same words, and delayed the same.
    for _ in 0..3 {
        let refused = accounts.verify_password("nobody", "wrong", HERE).await.unwrap_err();
        assert_eq!(refused, Refusal::Invalid("the email or the password is wrong".into()));
    }
    let refused = accounts.verify_password("nobody", "wrong", HERE).await.unwrap_err();
    assert!(matches!(refused, Refusal::TooMany(_)), "{refused}");
    let kept = world.auth.audit.list(&audit::Filter::default(), None, 100).unwrap();
    assert!(kept.iter().all(|event| !event.detail.contains("nobody")), "{kept:?}");
    assert!(kept.iter().any(|event| event.what == "sign-in.refused" && event.from == HERE));
}

#[tokio::test]
async fn failures_behind_the_same_address_lock_nobody_out_who_signed_in_there() {
    let world = World::new();
    world.account("a", Role::User);
    world.account("b", Role::User);
    let accounts = &world.auth.accounts;
    accounts.verify_password("a", PASSWORD, HERE).await.unwrap();
    // Somebody behind the same address tries passwords of this account, and of others.
    for n in 0..25 {
        for email in ["a", "nobody", &n.to_string()] {
            accounts.inner.attempts.failed(email, HERE, Instant::now());
        }
    }
    accounts.verify_password("a", PASSWORD, HERE).await.unwrap();
    // One that has not signed in there waits, and so does one that does not exist.
    for email in ["b", "nobody"] {
        let refused = accounts.verify_password(email, PASSWORD, HERE).await.unwrap_err();
        assert!(matches!(refused, Refusal::TooMany(_)), "{email}: {refused}");
    }
    // Whoever does not know the password cannot tell the one that is known from the others.
    for email in ["a", "nobody"] {
        let before = accounts.inner.attempts.wait(email, HERE, Instant::now());
        let refused = accounts.verify_password(email, "wrong", HERE).await.unwrap_err();
        assert!(matches!(refused, Refusal::TooMany(_)), "{email}: {refused}");
        assert!(accounts.inner.attempts.wait(email, HERE, Instant::now()) < before, "{email}");
    }
}

#[tokio::test]
async fn an_own_password_is_set_so_often_and_no_more() {
    let world = World::new();
    let (ada, boss) = (world.account("ada", Role::User), world.account("boss", Role::Admin));
    let hash = Hash::of(PASSWORD).unwrap();
    let set = |by: &Caller| world.auth.accounts.set_password(by, &ada.id, hash.clone());
    let refused = (0..1000).find_map(|_| set(&caller(&ada)).err());
    assert!(matches!(refused.unwrap().kind, Kind::TooMany(_)));
    set(&caller(&boss)).unwrap();
}

#[tokio::test]
async fn a_hash_of_other_parameters_is_renewed_at_the_next_sign_in() {
    let world = World::new();
    let account = world.account("a", Role::User);
    let params = argon2::Params::new(8 * 1024, 1, 1, None).unwrap();
    let argon2 = argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params);
    let old = Hash::with(&argon2, PASSWORD).unwrap();
    world.auth.accounts.set_password(&Caller::local(), "a", old.clone()).unwrap();
    assert!(!old.is_current());
    assert!(signs_in(&world, "a", PASSWORD).await);
    let renewed = world.auth.accounts.get(&account.id).unwrap().password.clone().unwrap();
    assert!(renewed.is_current());
    assert!(signs_in(&world.restarted(&[]), "a", PASSWORD).await);
}

#[test]
fn names_and_emails_that_deceive_are_refused() {
    for member in ["givenName", "familyName", "organization", "email"] {
        let body = serde_json::json!({member: "ada\u{202e}nimda", "roles": ["User"]}).to_string();
        let fault = Edit::read(body.as_bytes()).unwrap_err();
        assert_eq!(fault.errors[0].place, Place::Pointer(format!("/{member}")));
        assert!(fault.errors[0].message.contains("U+202E"), "{fault:?}");
    }
    let body =
        |member: &str| serde_json::json!({member: "a\u{200c}b", "roles": ["User"]}).to_string();
    assert!(Edit::read(body("givenName").as_bytes()).is_ok());
    assert!(Edit::read(body("email").as_bytes()).is_err());
}

#[test]
fn bodies_are_read_with_every_finding() {
    let pointers = |fault: Fault| -> Vec<String> {
        assert_eq!(fault.kind, Kind::Invalid);
        let places = fault.errors.into_iter().map(|finding| match finding.place {
            Place::Pointer(pointer) => pointer,
            other => panic!("{other:?}"),
        });
        places.collect()
    };
    let new = |body: &str| pointers(New::read(body.as_bytes()).unwrap_err());
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
    let read = New::read(
        br#"{"email": " Ada@plant.example ", "roles": ["admin"], "givenName": "", "password": "correct horse battery"}"#,
    );
    let read = read.unwrap();
    assert_eq!((read.email.as_str(), read.role), ("Ada@plant.example", Role::Admin));
    assert_eq!((read.given_name, read.enabled), (None, true));
    let edit = Edit::read(br#"{"password": "x"}"#).unwrap_err();
    assert_eq!(pointers(edit), ["/password"]);
    let long = format!(r#"{{"givenName": "{}"}}"#, "x".repeat(300));
    assert_eq!(pointers(Edit::read(long.as_bytes()).unwrap_err()), ["/givenName"]);
    let password = NewPassword::read(br#"{"password": "Ada"}"#, "a").unwrap_err();
    assert_eq!(pointers(password), ["/password"]);
}

#[tokio::test]
async fn an_account_that_cannot_be_read_is_left_out_and_stays() {
    let world = World::new();
    let lost = world.account("lost", Role::User);
    world.account("kept", Role::User);
    let newer = b"{\"id\": \"x\", \"role\": \"Emperor\"}";
    let put =
        |t: &mut Transaction<'_>| Ok::<_, Fault>(t.put(COLLECTION, lost.id.as_bytes(), newer)?);
    world.store.transact(put).unwrap();
    let world = world.restarted(&[]);
    assert!(!signs_in(&world, "lost", PASSWORD).await);
    assert!(signs_in(&world, "kept", PASSWORD).await);
    let document = world.store.read().document(COLLECTION, lost.id.as_bytes()).unwrap();
    assert_eq!(document.as_deref(), Some(newer.as_slice()));
}

#[test]
fn a_change_tells_who_made_it() {
    let world = World::new();
    let (ada, bob) = (world.account("ada", Role::Admin), world.account("bob", Role::User));
    let accounts = &world.auth.accounts;
    let edit = Edit { role: Some(Role::Contributor), enabled: Some(false), ..Edit::of(&bob) };
    accounts.change(&caller(&ada), &bob.id, IfMatch::Any, edit).unwrap();
    let edit = Edit { given_name: Some("Ada".into()), ..Edit::of(&ada) };
    accounts.change(&caller(&ada), &ada.id, IfMatch::Any, edit).unwrap();
    let events = world.auth.audit.list(&audit::Filter::default(), None, 3).unwrap();
    let told: Vec<_> =
        events.iter().map(|e| (e.what.as_str(), e.account.clone(), e.by.clone())).collect();
    let (of_ada, of_bob) = (Some(ada.id.clone()), Some(bob.id.clone()));
    assert_eq!(told[0], ("account.changed", of_ada.clone(), None));
    assert_eq!(told[1], ("account.disabled", of_bob.clone(), of_ada.clone()));
    assert_eq!(told[2], ("role.changed", of_bob, of_ada));
    // The same again is no change.
    let same = accounts.change(&caller(&ada), &bob.id, IfMatch::Any, Edit::of(&bob)).unwrap();
    assert_eq!(same.version, 2);
}
