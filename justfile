# The developer's commands. `just` alone lists them.

set shell := ["bash", "-euo", "pipefail", "-c"]

_list:
    @just --list --unsorted

# Everything that a change must pass: format, lints, dependencies, tests, docs, instruction counts
verify *stages:
    ./scripts/test {{ stages }}

# Tests whose name contains the words
test *words:
    cargo nextest run --workspace {{ words }}

# Format, and apply automatic lint fixes
fix:
    cargo fmt --all
    cargo clippy --workspace --all-targets --fix --allow-dirty --allow-staged

# Layers, purity and size of the kernel, file sizes, names, wording and links of the docs
architecture:
    cargo nextest run -p holdfast-tests --test architecture

# Power loss and kill -9, including slow tests
crash *words:
    cargo nextest run --workspace -E 'binary(/^crash/) + binary(kill)' --run-ignored all {{ words }}

# A home in use, killed so many times at any moment, and then in steady use for so many minutes
endure kills="250" minutes="30":
    HOLDFAST_KILLS={{ kills }} HOLDFAST_SOAK_MINUTES={{ minutes }} \
        cargo test --workspace --test endurance -- --nocapture --test-threads 1

# Fuzz a target of fuzz/fuzz_targets: with cargo-fuzz if it is installed, otherwise its corpus and many mutations
fuzz target *arguments:
    ./scripts/fuzz {{ target }} {{ arguments }}

# Instruction counts against benches/budgets.json; all, or those whose name contains a word
bench *words:
    ./scripts/bench {{ words }}

# Write lower counts into benches/budgets.json; raising one is a manual edit
bench-accept *words:
    ./scripts/bench --accept {{ words }}

# Times on this machine: published, not checked by CI
bench-times:
    cargo bench -p holdfast-benches --bench timed

# Write golden files again; review the difference before you commit it
golden *words:
    INSTA_UPDATE=always cargo nextest run --workspace {{ words }}
    git status --short

# Record a small session, show its frames, verify and replay it
demo:
    cargo run -q -p holdfast -- --home target/demo demo

# The API documentation
docs:
    cargo doc --workspace --no-deps

# Install what the tests need
setup:
    ./scripts/setup
