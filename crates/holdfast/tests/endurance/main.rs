//! A home in use, killed again and again, and a home in use for a long time. The short form runs with the other tests; `just endure`
//! runs both for as long as `HOLDFAST_KILLS` and `HOLDFAST_SOAK_MINUTES` say; zero leaves one out.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop loudly"
)]

mod examination;
mod extensions;
mod kills;
mod model_server;
#[path = "../shared/mod.rs"]
mod shared;
mod soak;
mod traffic;
