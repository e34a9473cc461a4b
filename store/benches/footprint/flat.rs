//! The baseline: each quad as flat keys in sled, with default settings and a flush after each commit.
use crate::process::{self, Measurement};
use crate::work::{OBJECTS_PER_COMMIT, Order, QUADS_PER_OBJECT, Workload, shared_value};
use oxrdf::Term;
use sled::Db;
use std::path::Path;

const NAME: u8 = 0;
const ID: u8 = 1;
const ORDERS: [[usize; 4]; 3] = [[0, 1, 2, 3], [1, 2, 0, 3], [2, 0, 1, 3]];

fn build_key(tree: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut key = vec![tree];
    key.extend(parts.iter().flat_map(|part| part.iter()));
    key
}

fn find_id(db: &Db, term: &str) -> Option<[u8; 8]> {
    let found = db.get(build_key(NAME, &[term.as_bytes()])).expect("sled reads");
    found.and_then(|id| id.as_ref().try_into().ok())
}

fn find_or_add_id(db: &Db, term: &str, next: &mut u64) -> [u8; 8] {
    if let Some(id) = find_id(db, term) {
        return id;
    }
    *next += 1;
    let id = next.to_be_bytes();
    db.insert(build_key(NAME, &[term.as_bytes()]), &id).expect("sled writes");
    db.insert(build_key(ID, &[&id]), term).expect("sled writes");
    id
}

pub(crate) fn load_objects(dir: &Path, quads: u64) {
    let db = sled::open(dir).expect("sled opens");
    let work = Workload::new(Order::Minted);
    let objects = (quads / QUADS_PER_OBJECT / OBJECTS_PER_COMMIT).max(1) * OBJECTS_PER_COMMIT;
    let quads = objects * QUADS_PER_OBJECT;
    let mut next = 0;
    let whole = Measurement::begin();
    for n in 0..objects {
        for quad in work.object_quads(n) {
            let terms = [
                quad.subject.to_string(),
                quad.predicate.to_string(),
                quad.object.to_string(),
                quad.graph_name.to_string(),
            ];
            let ids = terms.map(|term| find_or_add_id(&db, &term, &mut next));
            for (tree, order) in (2..).zip(ORDERS) {
                let parts = order.map(|at| ids.get(at).map_or(&[][..], |id| &id[..]));
                db.insert(build_key(tree, &parts), &[]).expect("sled writes");
            }
        }
        if (n + 1).is_multiple_of(OBJECTS_PER_COMMIT) {
            db.flush().expect("sled flushes");
        }
    }
    whole.report_rate("quads committed", quads);
    process::report_peak_memory();
    process::report_memory("loaded");
    let stop = Measurement::begin();
    drop(db);
    stop.report_seconds("stop");
    process::report_bytes_per_quad(
        "B a quad written to the device",
        process::bytes_written(),
        quads,
    );
    process::report_bytes_per_quad("B a quad on disk in all", process::folder_bytes(dir), quads);
}

pub(crate) fn read_objects(dir: &Path, quads: u64) {
    let opening = Measurement::begin();
    let db = sled::open(dir).expect("sled opens");
    opening.report_seconds("open after a clean stop");
    process::report_memory("opened");
    let work = Workload::new(Order::Minted);
    let objects = quads / QUADS_PER_OBJECT;
    let stretch = Measurement::begin();
    for n in 0..objects {
        let subject = work.subject(n.wrapping_mul(7_919_999) % objects.max(1));
        let id = find_id(&db, &subject.to_string()).expect("a subject");
        let terms = db.scan_prefix(build_key(2, &[&id])).flatten().map(|(key, _)| {
            let ids = key.get(9..).unwrap_or_default().chunks(8);
            ids.filter_map(|id| db.get(build_key(ID, &[id])).expect("sled reads")).count()
        });
        assert_eq!(terms.sum::<usize>() as u64, QUADS_PER_OBJECT * 3);
    }
    stretch.report_rate("subjects read", objects);
    process::report_memory("subjects read");
    let stretch = Measurement::begin();
    let (mut scans, mut found) = (0, 0);
    for (n, predicate) in (0..1_024).zip(work.predicates.iter().take(5).cycle()) {
        let object = Term::from(shared_value(n)).to_string();
        if let (Some(predicate), Some(object)) =
            (find_id(&db, &predicate.to_string()), find_id(&db, &object))
        {
            let keys = db.scan_prefix(build_key(3, &[&predicate, &object])).flatten();
            found += keys
                .filter_map(|(key, _)| {
                    db.get(build_key(ID, &[key.get(17..25)?])).expect("sled reads")
                })
                .count() as u64;
            scans += 1;
        }
    }
    stretch.report_rate("scans by predicate and object", scans);
    stretch.report_rate("quads scanned", found);
}
