//! Tests across the workspace live in `tests/`: scenarios, replay, tampering, crashes, architecture. This crate is their home and
//! has no code of its own.
