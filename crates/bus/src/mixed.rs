//! Maps with integer keys that are digests or counters, for which a full hash function would only cost time.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by integers that no outside input chooses, so that collisions cannot be provoked.
pub(crate) type IntegerMap<K, V> = HashMap<K, V, BuildHasherDefault<FibonacciHasher>>;

/// Fibonacci hashing: multiplies the integer, so that all bits of the hash depend on it.
#[derive(Default)]
pub(crate) struct FibonacciHasher(u64);

impl Hasher for FibonacciHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number.cast_unsigned());
    }
}
