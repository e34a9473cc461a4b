//! Buckets that somebody changed: `penstock restore` and `penstock offsite-backup check` name what is wrong, and
//! overwrite no data.
use penstock_test_support::backup::{
    BackupKey, Place, Site, add_well, define_wells, head_key, until_shipped,
};
use penstock_test_support::exports::prelude::files;
use penstock_test_support::prelude::*;

/// What is wrong with a bucket, the object that the refusal names, and the change of the bucket.
type Attack<'a> = (&'static str, String, Box<dyn Fn(&Place) + 'a>);

/// Creates a backup of two eras. Returns a segment of the first era, and those of the second one, which counts, that a
/// restore reads.
fn back_up(site: &Site) -> (String, Vec<String>) {
    let server = site.start("old");
    define_wells(server.client);
    ship_segments(site, server.client);
    server.kill();
    let first = list_read_segments(&site.place).remove(0);
    site.restore("new", &[]).success();
    let server = site.start("new");
    ship_segments(site, server.client);
    server.kill();
    (first, list_read_segments(&site.place))
}

/// Commits until a restore reads three segments.
fn ship_segments(site: &Site, client: Client) {
    let mut level = 0;
    until_shipped(client);
    wait_for("there are three segments", || {
        level += 1;
        add_well(client, level);
        until_shipped(client);
        list_read_segments(&site.place).len() >= 3
    });
}

/// Returns the keys of the segments after the newest base.
fn list_read_segments(place: &Place) -> Vec<String> {
    let head = place.head();
    let base = head["base"]["sequence"].as_u64().unwrap();
    let era = head["era"].text();
    let mut keys = place.keys_with(".segment.age");
    keys.retain(|key| key.contains(era) && name(key)[..20].parse::<u64>().unwrap() > base);
    keys
}

/// Returns the name of an object, without its era.
fn name(key: &str) -> String {
    key.rsplit('/').next().unwrap().to_owned()
}

fn change(place: &Place, key: &str, change: impl Fn(&mut Vec<u8>)) {
    let mut bytes = place.read(key);
    change(&mut bytes);
    place.write(key, &bytes);
}

#[test]
fn a_changed_bucket_is_refused_by_name() {
    let mut site = Site::with_directory();
    let (of_era_before, segments) = back_up(&site);
    let whole = site.place.content();
    let bases = site.place.keys_with(".base.age");
    let (older_base, base) = (bases.first().unwrap(), bases.last().unwrap());
    // The objects of another backup, with another key.
    let foreign = Site::with_directory();
    let (_, foreign_segments) = back_up(&foreign);
    let foreign_base = foreign.place.keys_with(".base.age").pop().unwrap();
    let (foreign_segment, foreign_base) =
        (foreign.place.read(&foreign_segments[0]), foreign.place.read(&foreign_base));

    let (a, b) = (&segments[0], &segments[1]);
    let copy = |place: &Place, from: &str, to: &str| place.write(to, &place.read(from));
    let mut attacks: Vec<Attack<'_>> = vec![
        (
            "a segment is cut",
            name(a),
            Box::new(|place: &Place| change(place, a, |bytes| bytes.truncate(bytes.len() / 2))),
        ),
        ("a segment is empty", name(a), Box::new(|place: &Place| place.write(a, b""))),
        (
            "a bit of a segment is changed",
            name(a),
            Box::new(|place: &Place| {
                change(place, a, |bytes| {
                    let last = bytes.len() - 1;
                    bytes[last] ^= 1;
                });
            }),
        ),
        (
            "a segment is longer",
            name(a),
            Box::new(|place: &Place| change(place, a, |bytes| bytes.push(0))),
        ),
        (
            "two segments are swapped",
            name(a),
            Box::new(|place: &Place| {
                let bytes = place.read(a);
                copy(place, b, a);
                place.write(b, &bytes);
            }),
        ),
        (
            "a segment is of another era",
            name(a),
            Box::new(|place: &Place| copy(place, &of_era_before, a)),
        ),
        (
            "a segment is encrypted for another key",
            name(a),
            Box::new(|place: &Place| place.write(a, &foreign_segment)),
        ),
        (
            "the base is cut",
            name(base),
            Box::new(|place: &Place| change(place, base, |bytes| bytes.truncate(bytes.len() - 1))),
        ),
        (
            "the base is of another backup",
            name(base),
            Box::new(|place: &Place| place.write(base, &foreign_base)),
        ),
        (
            "the base is that of the era before",
            name(base),
            Box::new(|place: &Place| copy(place, older_base, base)),
        ),
        (
            "the last segment is missing",
            // The first of the frames that no segment has.
            name(segments.last().unwrap())[..20].trim_start_matches('0').to_owned(),
            Box::new(|place: &Place| place.remove(segments.last().unwrap())),
        ),
        (
            "the head is missing",
            "head.json".to_owned(),
            Box::new(|place: &Place| place.remove(&head_key())),
        ),
    ];
    let whole_head = &whole[&head_key()];
    let edit = |change: &dyn Fn(&mut Value)| {
        let mut head: Value = serde_json::from_slice(whole_head).unwrap();
        change(&mut head);
        head.to_string().into_bytes()
    };
    let head = site.place.head();
    let sequence = head["last"]["sequence"].as_u64().unwrap();
    let heads = [
        ("the head is cut", "head.json", whole_head[..100].to_vec()),
        ("the head is no JSON", "head.json", b"<html>".to_vec()),
        (
            "the head has another sequence",
            "head.json",
            edit(&|head: &mut Value| head["last"]["sequence"] = (sequence - 1).into()),
        ),
        (
            "the head has another checksum",
            "head.json",
            edit(&|head: &mut Value| head["last"]["checksum"] = "0".repeat(64).into()),
        ),
        (
            "the head has another base",
            "head.json",
            edit(&|head: &mut Value| head["base"]["sha256"] = "0".repeat(64).into()),
        ),
        (
            "the head has a newer version",
            "head.json",
            edit(&|head: &mut Value| head["version"] = 99.into()),
        ),
        (
            "the store has a newer format",
            "head.json",
            edit(&|head: &mut Value| head["storeFormat"] = 99.into()),
        ),
    ];
    for (what, words, bytes) in heads {
        let write = move |place: &Place| place.write(&head_key(), &bytes);
        attacks.push((what, words.to_owned(), Box::new(write)));
    }
    let repair = || {
        for (key, bytes) in &whole {
            site.place.write(key, bytes);
        }
    };
    for (number, (what, words, attack)) in attacks.iter().enumerate() {
        repair();
        attack(&site.place);
        let before = site.place.content();
        let machine = format!("machine-{number}");
        let refused = site.restore(&machine, &[]);
        assert_eq!(refused.status.code(), Some(1), "{what}: {}", refused.err());
        assert!(refused.err().contains(words), "{what}: no {words}: {}", refused.err());
        assert!(!site.has_store(&machine), "{what}: there is a store");
        assert!(site.place.content() == before, "{what}: the bucket was changed");
        let check = ["offsite-backup", "check", "--from", "backups"];
        let checked = site.command("reader", &check).output().unwrap();
        let said = checked.out() + &checked.err();
        assert!(!checked.status.success() && said.contains(words), "{what}: {said}");
    }
    repair();
    let own = site.key.clone();
    site.key = BackupKey::new(site.dir()).identity;
    site.restore("other-key", &[]).fails(1, "is encrypted for the key with the fingerprint");
    site.key = own;

    // Data that exists stays as it is.
    let content = |machine: &str| -> Vec<(String, Option<Vec<u8>>)> {
        let data = site.data(machine);
        let read = |name: String| (name.clone(), std::fs::read(data.join(name)).ok());
        files(&data).into_iter().map(read).collect()
    };
    let before = content("old");
    site.restore("old", &[]).fails(1, "is not empty");
    assert!(content("old") == before, "the restore changed existing data");
    site.restore("last", &[]).success();
}
