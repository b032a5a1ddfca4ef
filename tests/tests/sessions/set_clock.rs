//! The machine's clock is set while a turn runs: limits on time count what has passed.

use holdfast_contract::ids::Millis;
use holdfast_contract::message::Limits;
use holdfast_contract::session_frames::TurnOutcome;
use holdfast_testkit::{Lab, ScriptStep};

const A_DAY_AND_AN_HOUR: i64 = 25 * 3_600_000;

// Finding D12: a laptop that slept ended its turns by their time budgets, and a clock that was put back gave them a day more.
#[tokio::test]
async fn a_clock_that_is_set_neither_ends_a_turn_nor_prolongs_it() {
    for by in [A_DAY_AND_AN_HOUR, -A_DAY_AND_AN_HOUR] {
        let fails = ScriptStep::Fails { times: 1, retryable: true, then: Box::new(ScriptStep::says("late")) };
        let limits = Limits { time_budget: Millis(60_000), ..Limits::default() };
        let lab = Lab::build().limits(limits).script([fails]).start().await;
        let turn = lab.begin("go");
        lab.until_kind("model.failed").await;
        lab.clock.set(by);
        lab.pass(Millis(5_000), 2).await;
        assert_eq!(turn.await.unwrap().outcome, TurnOutcome::Answered, "set by {by}");
        let frames = lab.frames();
        let times: Vec<_> = frames.iter().map(|frame| frame.envelope.at).collect();
        assert!(times.is_sorted(), "within a turn time passes: {times:?}");
        assert_eq!(times.last().unwrap().since(times[0]), Millis(5_000));
        assert!(lab.replay("s1").identical);
        lab.stop().await;
    }
}
