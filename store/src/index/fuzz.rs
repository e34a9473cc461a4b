//! Fuzz tests of the index: its decoders get arbitrary and mutated bytes; see `crate::fuzz`.
use super::block::Block;
use super::key::{self, Shape, tree};
use super::note::Note;
use super::packing::{Packer, Unpacker};
use super::quad_scan::CodedRow;
use super::{Row, documents};
use crate::fuzz::run;
use crate::varint::Input;
use std::ops::ControlFlow;

const TREES: [u8; 3] = [tree::SPOG, tree::DOCUMENT, tree::ID_NAME];

fn blocks() -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for tree in TREES {
        let mut block = Block::new(Shape::of_tree(tree));
        for n in 0..40_u8 {
            block.insert(
                &[tree, n / 8, n % 8, 7],
                if block_is_valued(tree) { b"value" } else { b"" },
            );
        }
        for block in [block.split_off_upper(false).map(|(_, right)| right), Some(block)]
            .into_iter()
            .flatten()
        {
            let mut bytes = Vec::new();
            block.encode(&mut bytes);
            found.push(bytes);
        }
    }
    found
}

fn block_is_valued(tree: u8) -> bool {
    Shape::of_tree(tree).has_values
}

#[test]
fn blocks_and_what_is_done_with_them() {
    run(&blocks(), &mut |random, bytes| {
        let tree = TREES[random.below(TREES.len())];
        let Some(mut block) = Block::decode(Shape::of_tree(tree), bytes.to_vec()) else {
            return;
        };
        let entries = block.to_vec();
        for (key, _) in entries.iter().take(3) {
            let _ = block.get(key);
        }
        let _ = block.scan(&[tree, 1], &mut |_, _| Ok(ControlFlow::Continue(()))).unwrap();
        let key = [tree, 2, u8::try_from(random.below(256)).unwrap()];
        block.insert(&key, b"");
        block.remove(&key);
        let _ = block.is_small();
        let mut again = Vec::new();
        block.encode(&mut again);
        if let Some((_, right)) = block.split_off_upper(random.below(2) == 0)
            && block.fits_with(&right)
        {
            block.append_block(&right);
        }
    });
}

#[test]
fn packed_blocks() {
    let (unpacker, mut packer) = (Unpacker::default(), Packer::new());
    let mut valid = Vec::new();
    for raw in [vec![7; 900], (0..=255).collect(), blocks().concat()] {
        let mut packed = Vec::new();
        packer.pack_block(&raw, &mut packed);
        valid.push(packed);
    }
    run(&valid, &mut |_, bytes| {
        let _ = unpacker.unpack_block(bytes);
    });
}

#[test]
fn keys_and_notes() {
    let mut note = Note::new([3; 16], true);
    note.sequence = 4_711;
    let row = Row { subject: &[5], predicate: &[6], object: &[0, 7], graph: &[0] };
    let documents = documents::document_key("collection", b"k\0ey");
    let valid = [note.encode(), row.spog_key(), row.posg_key(), documents];
    run(&valid, &mut |_, bytes| {
        let _ = Note::decode(bytes);
        let _ = documents::split_document_key(bytes);
        let _ = CodedRow::from_key(bytes);
        let mut input = Input::new(bytes);
        while key::read_number_bytes(&mut input).is_some()
            && key::read_code_bytes(&mut input).is_some()
        {}
    });
}
