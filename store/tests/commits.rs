//! Commits: concurrent ones, large ones, refused ones, and access by other processes.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod model;

use model::{Model, add, copy, open, quad, text};
use oxrdf::Literal;
use penstock_store::{Error, Options, Pattern, Read as _, Store, verify_store};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

#[test]
fn a_long_change_reports_progress() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let before = store.step_count();
    store
        .transact::<_, Error>(|change| {
            change.insert(quad("s", "p", text("o")).as_ref())?;
            assert!(store.step_count() > before);
            Ok(())
        })
        .unwrap();
    let after = store.step_count();
    store.transact::<_, Error>(|_| Ok(())).unwrap();
    assert_eq!(store.step_count(), after, "steps without any work");
}

#[test]
fn a_dry_run_sees_its_changes_and_keeps_none() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let new = quad("s", "p", text("o"));
    let seen = store.dry_run::<_, Error>(|change| {
        change.insert(new.as_ref())?;
        change.put_document("c", b"n", b"1")?;
        Ok((change.any(&Pattern::default())?, change.read_document("c", b"n")?))
    });
    assert_eq!(seen.unwrap(), (true, Some(b"1".to_vec())));
    assert_eq!((store.stats().quads, store.stats().sequence), (0, 0));
    assert_eq!(store.read().read_document("c", b"n").unwrap(), None);
    store.transact::<_, Error>(|change| change.insert(new.as_ref())).unwrap();
    assert_eq!((store.stats().quads, store.stats().sequence), (1, 1));
}

#[test]
fn concurrent_commits_are_durable_when_they_return() {
    let [dir, cut] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let options = Options { write_back_bytes: 20_000, segment_bytes: 4_000, ..Options::default() };
    let store = Store::open(dir.path(), options, &mut |_| {}).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let store = &store;
            scope.spawn(move || {
                for n in 0..40 {
                    let (number, commit) = store
                        .transact::<_, Error>(|change| {
                            let old =
                                change.read_document("c", b"n")?.unwrap_or_else(|| b"0".to_vec());
                            let number: u64 = std::str::from_utf8(&old).unwrap().parse().unwrap();
                            change.put_document("c", b"n", (number + 1).to_string().as_bytes())?;
                            change.insert(
                                quad(&format!("{thread}"), "p", text(&format!("{n}"))).as_ref(),
                            )?;
                            Ok(number + 1)
                        })
                        .unwrap();
                    assert_eq!(commit.sequence, number, "a number was assigned twice");
                }
            });
        }
    });
    copy(dir.path(), cut.path());
    let store = open(cut.path());
    assert_eq!((store.stats().quads, store.stats().sequence), (320, 320));
    assert_eq!(store.read().read_document("c", b"n").unwrap(), Some(b"320".to_vec()));
}

#[test]
fn readers_see_only_complete_commits() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { write_back_bytes: 10_000, ..Options::default() };
    let store = Store::open(dir.path(), options, &mut |_| {}).unwrap();
    let quads = |n: u64| (0..20).map(move |s| quad(&format!("s{s}"), "is", text(&n.to_string())));
    add(&store, &quads(0).collect::<Vec<_>>());
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in 1..120 {
                store
                    .transact::<_, Error>(|change| {
                        for quad in quads(n - 1) {
                            change.remove(quad.as_ref())?;
                        }
                        for quad in quads(n) {
                            change.insert(quad.as_ref())?;
                        }
                        Ok(())
                    })
                    .unwrap();
            }
        });
        while !writer.is_finished() {
            let found = model::matching(&store.read(), &Pattern::default());
            assert_eq!(found.len(), 20);
            let first = found.iter().next().unwrap().object.clone();
            assert!(found.iter().all(|quad| quad.object == first));
        }
    });
}

#[test]
fn a_subject_may_have_a_hundred_thousand_values() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let quads: Vec<_> = (0..100_000).map(|n| quad("s", "p", text(&n.to_string()))).collect();
    add(&store, &quads);
    drop(store);
    let store = open(dir.path());
    assert_eq!(store.read().quads_about(&quads[0].subject).unwrap().len(), 100_000);
    store
        .transact::<_, Error>(|change| {
            for quad in quads.iter().skip(1) {
                assert!(change.remove(quad.as_ref())?);
            }
            Ok(())
        })
        .unwrap();
    assert_eq!(Model::of(&store.read(), &[]).quads, quads.into_iter().take(1).collect());
}

#[test]
fn a_commit_too_large_for_a_frame_is_refused_and_the_next_one_succeeds() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let value = Literal::new_simple_literal("x".repeat(256 << 20));
    let quad = quad("s", "p", value);
    let refused = store.transact::<_, Error>(|change| change.insert(quad.as_ref()));
    assert!(matches!(refused, Err(Error::TooLarge { .. })), "{refused:?}");
    assert_eq!(add(&store, &[model::quad("s", "p", text("small"))]), 1);
}

#[test]
fn removing_the_lock_file_does_not_admit_a_second_process() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let path = dir.path().join("lock");
    // Versions that lock only this file must be excluded too.
    let file = std::fs::File::open(&path).unwrap();
    assert!(matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock)));
    std::fs::remove_file(&path).unwrap();
    for _ in 0..2 {
        let again = Store::open(dir.path(), Options::default(), &mut |_| {});
        assert!(matches!(again, Err(Error::InUse { .. })), "{again:?}");
    }
    assert!(matches!(verify_store(dir.path(), &mut |_| {}), Err(Error::InUse { .. })));
    drop(store);
    open(dir.path());
}

#[test]
fn only_one_process_opens_the_store_and_only_its_owner_can_read_it() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("a/b");
    let store = open(&dir);
    let again = Store::open(&dir, Options::default(), &mut |_| {});
    assert!(matches!(again, Err(Error::InUse { .. })));
    add(&store, &[quad("s", "p", text("value"))]);
    let clone = store.clone();
    drop(store);
    assert!(matches!(Store::open(&dir, Options::default(), &mut |_| {}), Err(Error::InUse { .. })));
    drop(clone);
    assert_eq!(open(&dir).stats().quads, 1);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for folder in ["a", "a/b", "a/b/journal", "a/b/index"] {
        assert_eq!(mode(&parent.path().join(folder)), 0o700, "{folder}");
    }
    for file in ["lock".into(), model::newest_segment(&dir), "index/db".into()] {
        assert_eq!(mode(&dir.join(&file)), 0o600, "{}", file.display());
    }
}
