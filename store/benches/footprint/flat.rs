//! The baseline: each quad as flat keys in sled, with default settings and a flush after each commit.
use crate::process::{self, Stretch};
use crate::work::{IN_COMMIT, OF_OBJECT, Order, Work, shared};
use oxrdf::Term;
use sled::Db;
use std::path::Path;

const NAME: u8 = 0;
const ID: u8 = 1;
const ORDERS: [[usize; 4]; 3] = [[0, 1, 2, 3], [1, 2, 0, 3], [2, 0, 1, 3]];

fn keyed(tree: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut key = vec![tree];
    key.extend(parts.iter().flat_map(|part| part.iter()));
    key
}

fn id_of(db: &Db, term: &str) -> Option<[u8; 8]> {
    let found = db.get(keyed(NAME, &[term.as_bytes()])).expect("sled reads");
    found.and_then(|id| id.as_ref().try_into().ok())
}

fn enter(db: &Db, term: &str, next: &mut u64) -> [u8; 8] {
    if let Some(id) = id_of(db, term) {
        return id;
    }
    *next += 1;
    let id = next.to_be_bytes();
    db.insert(keyed(NAME, &[term.as_bytes()]), &id).expect("sled writes");
    db.insert(keyed(ID, &[&id]), term).expect("sled writes");
    id
}

pub(crate) fn load(dir: &Path, quads: u64) {
    let db = sled::open(dir).expect("sled opens");
    let work = Work::new(Order::Minted);
    let objects = (quads / OF_OBJECT / IN_COMMIT).max(1) * IN_COMMIT;
    let quads = objects * OF_OBJECT;
    let mut next = 0;
    let whole = Stretch::begin();
    for n in 0..objects {
        for quad in work.object(n) {
            let terms = [
                quad.subject.to_string(),
                quad.predicate.to_string(),
                quad.object.to_string(),
                quad.graph_name.to_string(),
            ];
            let ids = terms.map(|term| enter(&db, &term, &mut next));
            for (tree, order) in (2..).zip(ORDERS) {
                let parts = order.map(|at| ids.get(at).map_or(&[][..], |id| &id[..]));
                db.insert(keyed(tree, &parts), &[]).expect("sled writes");
            }
        }
        if (n + 1).is_multiple_of(IN_COMMIT) {
            db.flush().expect("sled flushes");
        }
    }
    whole.tell_rate("quads committed", quads);
    process::tell_peak();
    process::tell_memory("loaded");
    let stop = Stretch::begin();
    drop(db);
    stop.tell_seconds("stop");
    process::tell_bytes("B a quad written to the device", process::written(), quads);
    process::tell_bytes("B a quad on disk in all", process::bytes_of(dir), quads);
}

pub(crate) fn read(dir: &Path, quads: u64) {
    let opening = Stretch::begin();
    let db = sled::open(dir).expect("sled opens");
    opening.tell_seconds("open after a clean stop");
    process::tell_memory("opened");
    let work = Work::new(Order::Minted);
    let objects = quads / OF_OBJECT;
    let stretch = Stretch::begin();
    for n in 0..objects {
        let subject = work.subject(n.wrapping_mul(7_919_999) % objects.max(1));
        let id = id_of(&db, &subject.to_string()).expect("a subject");
        let terms = db.scan_prefix(keyed(2, &[&id])).flatten().map(|(key, _)| {
            let ids = key.get(9..).unwrap_or_default().chunks(8);
            ids.filter_map(|id| db.get(keyed(ID, &[id])).expect("sled reads")).count()
        });
        assert_eq!(terms.sum::<usize>() as u64, OF_OBJECT * 3);
    }
    stretch.tell_rate("subjects read", objects);
    process::tell_memory("subjects read");
    let stretch = Stretch::begin();
    let (mut scans, mut found) = (0, 0);
    for (n, predicate) in (0..1_024).zip(work.predicates.iter().take(5).cycle()) {
        let object = Term::from(shared(n)).to_string();
        if let (Some(predicate), Some(object)) =
            (id_of(&db, &predicate.to_string()), id_of(&db, &object))
        {
            let keys = db.scan_prefix(keyed(3, &[&predicate, &object])).flatten();
            found += keys
                .filter_map(|(key, _)| db.get(keyed(ID, &[key.get(17..25)?])).expect("sled reads"))
                .count() as u64;
            scans += 1;
        }
    }
    stretch.tell_rate("scans by predicate and object", scans);
    stretch.tell_rate("quads scanned", found);
}
