use super::{LostFrames, Noted, parse, text};

#[test]
fn a_note_is_read_as_it_was_written_and_no_changed_byte_is_taken_for_another_number() {
    for (frames, lost) in [(0, None), (17, None), (u64::MAX, Some(LostFrames { acknowledged: 20, found: 3 }))]
    {
        let written = text(frames, lost);
        assert_eq!(parse(&written), Some(Noted { frames, lost }));
        for at in 0..written.len() {
            for bit in [1, 2, 4, 8] {
                let mut changed = written.clone().into_bytes();
                changed[at] ^= bit;
                let read = String::from_utf8(changed).ok().and_then(|changed| parse(&changed));
                assert!(read.is_none_or(|read| read == Noted { frames, lost }), "byte {at}: {read:?}");
            }
        }
    }
    assert_eq!(text(1, None).len(), text(u64::MAX, None).len());
}
