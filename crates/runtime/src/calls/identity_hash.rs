//! Maps whose keys need no hashing to speak of: digests, which are as good as random, and addresses.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map with such keys.
pub(crate) type IdentityMap<K, V> = HashMap<K, V, BuildHasherDefault<IdentityHasher>>;

/// Takes the first bytes of a key, or the key itself, for its hash.
#[derive(Default)]
pub(crate) struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(first) = bytes.first_chunk() {
            self.0 = self.0.rotate_left(32) ^ u64::from_le_bytes(*first);
        }
    }

    /// An address ends in zeros; multiplied, all of it tells.
    fn write_usize(&mut self, number: usize) {
        self.0 = (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
