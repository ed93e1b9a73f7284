//! Slots and their checksums.

use super::*;

/// Member 1 of 2 with a shard of `len` bytes and the blocks of stripes 3 and 0.
fn filled(slot: &mut Slot, epoch: u32, len: usize) {
    slot.begin(epoch);
    let shard = slot.shard_mut();
    shard.clear();
    shard.extend((0..len).map(|i| (i as u8).wrapping_mul(epoch as u8)));
    slot.begin_blocks([(3, len / 2), (0, len / 3)]);
    slot.redundancy_mut().fill(epoch as u8);
    let own = ShardMeta::of(slot.shard());
    slot.seal(&[ShardMeta::of(b"other"), own]).expect("seal");
}

#[test]
fn a_sealed_slot_verifies_and_every_flipped_byte_is_found() {
    let mut store = Store::new(1);
    let slot = store.variable_mut(1);
    assert_eq!(slot.verify(), Err(StoreError::NotSealed));
    filled(slot, 1, 60);
    assert!(slot.is_sealed());
    assert_eq!((slot.verify(), slot.epoch(), slot.members().len()), (Ok(()), 1, 2));
    for at in 0..slot.shard.len() {
        let mut broken = slot.clone();
        broken.memory_mut().0[at] ^= 1;
        let error = StoreError::Shard { member: 1, bytes: 60, recorded: 60 };
        assert_eq!((broken.verify(), broken.verify_shard()), (Err(error), Err(error)));
    }
    for at in 0..30 {
        let mut broken = slot.clone();
        broken.redundancy[at] ^= 0x80;
        assert_eq!(broken.verify(), Err(StoreError::Block { stripe: 3, bytes: 30 }));
        assert_eq!(broken.verify_shard(), Ok(()));
    }
}

#[test]
fn metadata_travels_in_little_endian_words() {
    let meta = ShardMeta { kind: 0x0102, ..ShardMeta::of(b"shard") };
    let bytes = meta.to_bytes();
    assert_eq!((bytes[..8].to_vec(), ShardMeta::from_bytes(bytes)), (vec![5, 0, 0, 0, 0, 0, 0, 0], meta));
    assert_eq!(bytes[16..], [2, 1, 0, 0, 0, 0, 0, 0]);
    assert!(meta.fits(b"shard") && !meta.fits(b"share") && !meta.fits(b"shar"));
    // The check value of the standard.
    assert_eq!(ShardMeta::of(b"123456789").crc, 0xae8b_1486_0a79_9888);
    let two = [meta, ShardMeta::of(b"")];
    let bytes: Vec<u8> = two.iter().flat_map(|meta| meta.to_bytes()).collect();
    assert_eq!(ShardMeta::read_all(&bytes).collect::<Vec<_>>(), two);
}

#[test]
fn blocks_are_found_by_stripe() {
    let mut slot = Slot::new(0, Memory::default());
    slot.begin(1);
    slot.begin_blocks([(5, 4), (2, 3), (9, 0)]);
    for (stripe, byte) in [(5, 8), (2, 9)] {
        let range = slot.block_range(stripe).unwrap();
        slot.redundancy_mut()[range].fill(byte);
    }
    assert_eq!((slot.block(5), slot.block(2)), (Some(&[8; 4][..]), Some(&[9; 3][..])));
    assert_eq!((slot.block(9), slot.block(0)), (Some(&[][..]), None));
    let lens: Vec<_> = slot.blocks().map(|(stripe, bytes)| (stripe, bytes.len())).collect();
    assert_eq!((lens, slot.bytes_used()), (vec![(5, 4), (2, 3), (9, 0)], 7));
    slot.begin(3);
    assert_eq!((slot.blocks().count(), slot.block(5)), (0, None));
}

#[test]
fn what_is_taken_is_put_back() {
    let mut slot = Slot::new(1, Memory::default());
    filled(&mut slot, 1, 9);
    let taken = slot.take();
    assert_eq!((slot.shard().len(), slot.verify()), (0, Err(StoreError::NotSealed)));
    slot.put_back(taken);
    let own = ShardMeta::of(slot.shard());
    slot.seal(&[own, own]).expect("seal");
    assert_eq!(slot.verify(), Ok(()));
}

#[test]
fn what_is_lent_behind_the_redundancy_comes_back() {
    let mut slot = Slot::new(1, Memory::default());
    filled(&mut slot, 1, 9);
    let (reserved, end) = (slot.bytes_reserved(), slot.memory_mut().1.len());
    let work = |shard: &[u8], buffer: &mut [u8]| {
        assert_eq!((shard.len(), buffer.len()), (9, end + 5));
        buffer[end..].copy_from_slice(&shard[..5]);
        Ok::<(), ()>(())
    };
    assert_eq!(slot.with_more(vec![3; 5], work), Ok((0..5).collect()));
    assert_eq!(slot.with_more(vec![3; 5], |_, _| Err("it failed")), Err("it failed"));
    assert_eq!((slot.bytes_reserved(), slot.verify()), (reserved, Ok(())));
}

#[test]
fn two_epochs_are_kept_and_their_buffers_reused() {
    let mut store = Store::new(1);
    for epoch in 1..=2 {
        filled(store.variable_mut(epoch), epoch, 100);
    }
    filled(store.constant_mut(), 1, 10);
    assert_eq!((store.variable(1).epoch(), store.variable(2).epoch()), (1, 2));
    assert_eq!(store.bytes_used(), 2 * (100 + 50 + 33) + 10 + 5 + 3);
    let reserved = store.bytes_reserved();
    assert!(reserved >= store.bytes_used());
    let start = store.variable(1).shard().as_ptr();
    for epoch in 3..=9 {
        filled(store.variable_mut(epoch), epoch, 100 - epoch as usize);
        assert_eq!(store.variable(epoch).verify(), Ok(()));
        assert_eq!(store.variable(epoch - 1).verify(), Ok(()), "the other slot is untouched");
    }
    assert_eq!((store.bytes_reserved(), store.variable(9).shard().as_ptr()), (reserved, start));
}

#[test]
fn seal_refuses_metadata_that_cannot_be_right() {
    let mut slot = Slot::new(1, Memory::default());
    slot.begin(1);
    slot.shard_mut().extend([1, 2, 3]);
    let error = slot.seal(&[ShardMeta::of(b"")]).expect_err("too short");
    assert_eq!(error.to_string(), "metadata of 1 members, member 1 is not among them");
    let error = slot.seal(&[ShardMeta::of(b""), ShardMeta::of(b"12")]).expect_err("wrong length");
    let text = "the shard of member 1 does not match its checksum (3 bytes, 2 recorded)";
    assert_eq!(error.to_string(), text);
    assert_eq!((slot.is_sealed(), slot.members().len()), (false, 0));
}

#[test]
fn a_parity_rank_has_blocks_and_no_shard() {
    let mut slot = Slot::new(4, Memory::default());
    slot.begin(1);
    slot.begin_blocks([(0, 8)]);
    slot.seal(&[ShardMeta::of(b"a"); 4]).expect("seal");
    assert_eq!((slot.verify(), slot.bytes_used()), (Ok(()), 8));
}

#[test]
fn a_copy_has_the_checksum_of_its_original() {
    let mut slot = Slot::new(0, Memory::default());
    slot.begin(1);
    slot.begin_blocks([(7, 5), (8, 5)]);
    for stripe in [7, 8] {
        let range = slot.block_range(stripe).unwrap();
        slot.redundancy_mut()[range].copy_from_slice(b"shard");
    }
    let members = [ShardMeta::of(b""), ShardMeta::of(b"shard"), ShardMeta::of(b"other")];
    let known = |member: usize| move |stripe| (stripe == 7).then_some(members[member].crc);
    slot.seal_with(&members, known(1)).expect("seal");
    assert_eq!(slot.verify(), Ok(()));
    slot.seal_with(&members, known(2)).expect("seal");
    assert_eq!(slot.verify(), Err(StoreError::Block { stripe: 7, bytes: 5 }), "it is no copy of that");
}

#[test]
fn writing_breaks_the_seal() {
    let mut slot = Slot::new(1, Memory::default());
    filled(&mut slot, 1, 9);
    slot.shard_mut();
    assert_eq!(slot.verify(), Err(StoreError::NotSealed));
    filled(&mut slot, 1, 9);
    slot.redundancy_mut();
    assert_eq!(slot.verify(), Err(StoreError::NotSealed));
}

#[test]
fn only_what_is_whole_alone_and_as_long_is_renewed() {
    let mut slot = Slot::new(1, Memory::default());
    filled(&mut slot, 1, 9);
    let is_renewed = |slot: &mut Slot, len: usize| slot.renew(3, len);
    assert_eq!(is_renewed(&mut slot, 8), None, "another length");
    let shared = slot.shared();
    assert_eq!(is_renewed(&mut slot, 9), None, "somebody reads it");
    drop(shared);
    assert!(slot.is_sealed(), "nothing was done");
    let blocks = [slot.block_crc(3), slot.block_crc(0)];
    assert_eq!((is_renewed(&mut slot, 9), slot.epoch(), slot.is_sealed()), (Some(1), 3, false));
    assert_eq!(is_renewed(&mut slot, 9), None, "it was begun and not sealed");
    // What nobody has changed has the checksum that it had.
    let own = ShardMeta::of(slot.shard());
    slot.seal_renewed(&[own, own], |stripe| (stripe == 0).then_some(7)).expect("seal");
    assert_eq!([slot.block_crc(3), slot.block_crc(0)], [blocks[0], Some(7)]);
}

#[test]
fn a_shard_that_somebody_reads_stays_as_it_is() {
    let mut slot = Slot::new(1, Memory::default());
    filled(&mut slot, 1, 9);
    let (before, shared) = (slot.shard().to_vec(), slot.shared());
    filled(&mut slot, 2, 9);
    slot.memory_mut().0.fill(7);
    let (shard, redundancy) = slot.take();
    slot.put_back((shard, redundancy));
    assert_ne!(slot.shard(), before);
    assert_eq!(shared[..], before);
    // What is shared when it is taken or changed in place is copied.
    let again = slot.shared();
    slot.memory_mut().0.fill(8);
    assert_eq!((again[0], slot.shard()[0]), (7, 8));
}
