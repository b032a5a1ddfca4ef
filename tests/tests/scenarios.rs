//! Scenarios: what goes in, and the frames that come out. Each is kept as a golden file in `tests/golden/`, verifies, and replays
//! strictly, in this process and in another one.
//!
//! To accept changed frames: `INSTA_UPDATE=always cargo test -p holdfast-tests --test scenarios`, then read the difference.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should stop loudly"
)]

mod scenarios {
    pub mod approvals;
    pub mod calls;
    pub mod cancels;
    pub mod children;
    pub mod handoffs;
    pub mod harness;
    pub mod limits;
    pub mod registry;
    pub mod turns;
}

use scenarios::harness::{replay_for_parent, run};

macro_rules! scenarios {
    ($($module:ident: $($name:ident),+ $(,)?);+ $(;)?) => {
        $($(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                run(stringify!($name), scenarios::$module::$name).await;
            }
        )+)+

        /// The scenario of this name, for the process that only replays.
        fn lab_of(name: &str) -> Option<holdfast_testkit::LabBuilder> {
            match name {
                $($(stringify!($name) => Some(scenarios::$module::$name().lab),)+)+
                _ => None,
            }
        }
    };
}

scenarios! {
    turns: plain_answer, every_hook_of_a_turn, guardrails_block_and_flag, model_fails_and_falls_back, state_clock_and_random,
        compaction,
        compaction_has_a_deadline;
    calls: three_parallel_calls, denied_call, two_modifiers_three_gates, tool_timeout, five_mebibyte_result, broken_gates_deny,
        unknown_tool_and_bad_arguments;
    approvals: approval_edits_arguments, approval_across_restart, approval_for_the_session, approval_denied,
        approval_unattended;
    cancels: cancelled_in_input_hook, cancelled_in_model, cancelled_in_modifier, cancelled_in_gate, cancelled_in_approval,
        cancelled_in_tool, cancelled_in_after_hook, cancelled_in_output_guard;
    limits: limit_of_turns, limit_of_tokens, limit_of_time, limit_of_cost, limit_of_tool_calls, limit_of_session_tokens,
        limit_of_session_cost, limit_of_session_tool_calls, limit_of_session_time,
        limit_of_cost_between_attempts;
    children: nested_to_the_depth_cap, child_pays_from_the_parents_budget,
        parallel_children_share_what_is_left;
    handoffs: handed_over_and_back, an_agent_has_the_tools_it_names, an_agent_that_takes_over_has_limits_of_its_own;
    registry: registry_changes_between_turns, stack_uncovers_and_overrides;
}

/// Not a scenario: what [`run`] starts in another process.
#[test]
#[ignore = "started by the scenarios themselves"]
fn replays_for_its_parent() {
    replay_for_parent(lab_of);
}
