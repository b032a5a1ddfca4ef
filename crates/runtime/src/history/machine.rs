//! What the kernel's two machines have in common, so that one driver, one refold and one replay serve both.

use holdfast_contract::effect::{Effects, Input};
use holdfast_contract::ids::{Seq, StreamId};
use holdfast_contract::problem::Fault;
use holdfast_contract::registry::RegistryPin;
use holdfast_kernel::{Session, System};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A machine of the kernel.
pub trait Machine: Serialize + DeserializeOwned + Clone + Send + 'static {
    /// The version of the state as a snapshot has it. A snapshot of another version is not read: the log is.
    const STATE_VERSION: u32;

    /// A machine for a stream that has no frames yet.
    fn begin(stream: &StreamId) -> Self;

    /// Takes one fact and says what it leads to, or refuses it.
    fn step(&mut self, input: Input) -> Result<Effects, Fault>;

    /// The number that the next frame gets.
    fn next_seq(&self) -> Seq;

    /// Every registry that the state refers to.
    fn pins(&mut self) -> Vec<&mut RegistryPin>;

    /// Whether something is under way.
    fn is_busy(&self) -> bool;

    /// How large the state is, in pieces that a snapshot has to write.
    fn weight(&self) -> u64;
}

impl Machine for Session {
    const STATE_VERSION: u32 = Session::STATE_VERSION;

    fn begin(stream: &StreamId) -> Self {
        Session::new(stream.clone())
    }

    fn step(&mut self, input: Input) -> Result<Effects, Fault> {
        Session::step(self, input)
    }

    fn next_seq(&self) -> Seq {
        Session::next_seq(self)
    }

    fn pins(&mut self) -> Vec<&mut RegistryPin> {
        Session::pins(self).collect()
    }

    fn is_busy(&self) -> bool {
        Session::is_busy(self)
    }

    fn weight(&self) -> u64 {
        self.transcript().len() as u64
    }
}

impl Machine for System {
    const STATE_VERSION: u32 = System::STATE_VERSION;

    fn begin(_: &StreamId) -> Self {
        System::new()
    }

    fn step(&mut self, input: Input) -> Result<Effects, Fault> {
        System::step(self, input)
    }

    fn next_seq(&self) -> Seq {
        System::next_seq(self)
    }

    fn pins(&mut self) -> Vec<&mut RegistryPin> {
        vec![self.pin()]
    }

    fn is_busy(&self) -> bool {
        true
    }

    fn weight(&self) -> u64 {
        self.extensions().count() as u64
    }
}
