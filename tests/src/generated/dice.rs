//! Seeded choices: the same words give the same choices on every machine and in every run. Choices can also be read from bytes, so that
//! a fuzzer makes them.

use std::collections::VecDeque;

use holdfast_contract::digest::Digest;

/// A source of choices: first the given bytes, if there are any, and then SplitMix64.
#[derive(Clone, Debug)]
pub struct Dice {
    bytes: VecDeque<u8>,
    state: u64,
}

impl Dice {
    /// The dice that these words stand for.
    pub fn of(words: &str) -> Self {
        let digest = Digest::of(words.as_bytes());
        let state = digest.as_bytes().iter().take(8).fold(0, |seed, byte| (seed << 8) | u64::from(*byte));
        Self { bytes: VecDeque::new(), state }
    }

    /// Dice whose first choices are these bytes, one byte for each.
    pub fn reading(bytes: &[u8]) -> Self {
        Self { bytes: bytes.iter().copied().collect(), state: 0 }
    }

    fn next(&mut self) -> u64 {
        if let Some(byte) = self.bytes.pop_front() {
            return u64::from(byte);
        }
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below the bound, which must not be zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True once in so many times.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of these.
    pub fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize].clone()
    }

    /// Takes one out.
    pub fn take<T>(&mut self, items: &mut Vec<T>) -> Option<T> {
        let count = items.len() as u64;
        (count > 0).then(|| items.swap_remove(self.below(count) as usize))
    }
}
