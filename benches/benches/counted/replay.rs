//! Strict replay of the committed history, everything run again.

use holdfast_benches::counted::{Counter, Outcome};
use holdfast_replay::{Mode, replay};
use holdfast_testkit::history;

pub(crate) fn replay_ten_thousand(counter: Counter) -> Outcome {
    let history = history::open();
    let store = history.store();
    let lanes = history::lab().lanes();
    counter.measure(|| {
        let verdict = replay(&store, &history.session.into(), Mode::Strict, &lanes)?;
        if verdict.identical { Ok(verdict.frames) } else { Err("the history differs".into()) }
    })
}
