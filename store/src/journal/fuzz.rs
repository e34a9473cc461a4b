//! Fuzz tests of the journal: its decoders get arbitrary and mutated bytes; see `crate::fuzz`.
use super::base::{self, Base};
use super::packing::unpack_part;
use super::parts::{BaseEnd, PartWriter};
use super::segment::{self, Found, SegmentReader};
use crate::Format;
use crate::frame::{Change, CommitCounts};
use crate::fuzz::{payloads, run};
use std::fs;
use std::path::Path;

/// Returns a complete base.
fn a_base() -> Vec<u8> {
    let mut made = PartWriter::begin(Vec::new(), Path::new("base"), &[1; 16], Format::V3).unwrap();
    for payload in payloads() {
        made.write_commit(&payload, CommitCounts::read(&payload, &mut |_| {}).unwrap()).unwrap();
    }
    made.add_document("c", b"key", &[7; 5_000]);
    made.finish(9, 11).unwrap().1
}

#[test]
fn parts_and_ends() {
    let base = a_base();
    // Payloads follow the base's header (at most 40 bytes) and a frame header of 16 bytes each.
    let valid: Vec<Vec<u8>> =
        (0..base.len()).filter_map(|at| segment::frame_at(&base, at)).map(<[u8]>::to_vec).collect();
    assert!(valid.len() >= 4);
    run(&valid, &mut |_, bytes| {
        let _ = BaseEnd::decode(bytes);
        if let Ok(commit) = unpack_part(bytes, None) {
            let _ = Change::decode(&commit);
        }
        let _ = segment::frame_at(bytes, 0);
    });
}

#[test]
fn segments_and_bases() {
    let dir = tempfile::tempdir().unwrap();
    let (_, path) = segment::create_segment(dir.path(), &[1; 16], 1, Format::V3).unwrap();
    let mut whole = fs::read(&path).unwrap();
    for (sequence, payload) in (1..).zip(payloads()) {
        whole.extend(segment::encode_frame(sequence, &payload).unwrap());
    }
    fs::write(&path, &whole).unwrap();
    let next = 1 + payloads().len() as u64;
    let (_, current) = segment::create_segment(dir.path(), &[1; 16], next, Format::V3).unwrap();
    super::pack_segments(dir.path(), &current, &|| Ok(()), &mut |_, _| {}).unwrap();
    let packed = fs::read(&path).unwrap();
    let headers = [&whole, &packed].map(|segment| segment.get(..40).unwrap().to_vec());
    run(&[whole, packed], &mut |random, bytes| {
        // Files are slow, so only some of the rounds use them. Most inputs have a valid header.
        if random.below(20) != 0 {
            return;
        }
        let mut bytes = bytes.to_vec();
        if random.below(4) != 0 {
            let header = headers.get(random.below(2)).unwrap();
            bytes.splice(..bytes.len().min(40), header.iter().copied());
        }
        fs::write(&path, &bytes).unwrap();
        let Ok(mut segment) = SegmentReader::open(&path) else { return };
        loop {
            match segment.read_next() {
                Ok(Found::Frame(..)) => {}
                Ok(Found::Damage(_)) => {
                    let _ = segment.is_damaged();
                    break;
                }
                Ok(Found::End) | Err(_) => break,
            }
        }
    });
    let path = dir.path().join("00000000000000000009.base");
    run(&[a_base()], &mut |random, bytes| {
        if random.below(20) == 0 {
            fs::write(&path, bytes).unwrap();
            let _ = Base::open(&path);
            let _ = base::read_base_file(&path, &mut |_, _| Ok(Ok(())));
        }
    });
}
