//! x
#![allow(dead_code)]
mod files;
pub mod wit;
