//! The benches whose instruction counts gate. Each file here covers one part of the centre; this one lists them.

mod digest;

use std::path::Path;
use std::process::ExitCode;

use holdfast_benches::counted::{self, Bench};

const BENCHES: &[Bench] = &[Bench::new("content_digest", 1_000, digest::content_digest)];

fn main() -> ExitCode {
    counted::main(BENCHES, &Path::new(env!("CARGO_MANIFEST_DIR")).join("budgets.json"))
}
