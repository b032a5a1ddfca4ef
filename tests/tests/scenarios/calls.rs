//! Tool calls: several at once, changed, judged, refused, late, large.

use holdfast_contract::content::Content;
use holdfast_contract::hook::{Decision, HookPoint, HookSpec};
use holdfast_contract::ids::{ExtensionId, Millis};
use holdfast_contract::matcher::Matcher;
use holdfast_contract::tool::{EffectClass, ToolSpec};
use holdfast_lane_native::{FnTool, NativeExtension};
use holdfast_testkit::pieces::{
    echo, failing_hook, gate, hanging_hook, hanging_tool, hook, set_field, spec, tool, write,
};
use holdfast_testkit::{Lab, ScriptStep};
use serde_json::json;

use super::harness::Scenario;

pub fn three_parallel_calls() -> Scenario {
    let script = [
        ScriptStep::calls([
            ("echo", json!({ "n": 1 })),
            ("write", json!({ "n": 2 })),
            ("echo", json!({ "n": 3 })),
        ]),
        ScriptStep::says("all three are done"),
    ];
    let lab = Lab::build()
        .script(script)
        .extension(NativeExtension::new("kit", "1.0.0").tool(echo()).tool(write()).replayable());
    Scenario::new(lab, |lab| async {
        lab.say("go").await;
        assert_eq!(lab.ledger.count("tool"), 3);
        lab
    })
}

pub fn denied_call() -> Scenario {
    let deny = hook(
        HookSpec {
            matcher: Matcher { tools: vec!["write".into()], ..Matcher::default() },
            ..HookSpec::at(HookPoint::ToolGate)
        },
        |_| Decision::Deny { reason: "not on a Sunday".to_owned() },
    );
    let script = [
        ScriptStep::calls([("write", json!({})), ("echo", json!({}))]),
        ScriptStep::says("I may not write."),
    ];
    let lab = Lab::build()
        .script(script)
        .extension(NativeExtension::new("kit", "1.0.0").tool(echo()).tool(write()))
        .extension(NativeExtension::new("sabbath", "1.0.0").hook(deny).replayable());
    Scenario::new(lab, |lab| async {
        lab.say("write it").await;
        assert_eq!(lab.ledger.count("tool s1 1.1"), 0, "a denied call never runs");
        assert_eq!(lab.ledger.count("tool s1 1.2"), 1);
        lab
    })
}

pub fn two_modifiers_three_gates() -> Scenario {
    let choose = hook(HookSpec { priority: 5, ..HookSpec::at(HookPoint::ToolModify) }, |_| {
        Decision::Modify { arguments: None, implementation: Some(ExtensionId::from("spare")) }
    });
    let checks_final = hook(HookSpec::at(HookPoint::ToolGate), |input| {
        let arguments = input.subject.as_ref().map(Content::value).cloned().unwrap_or_default();
        if arguments["first"] == 1 && arguments["second"] == 2 {
            Decision::Allow
        } else {
            Decision::Deny { reason: "the gate must see the final arguments".to_owned() }
        }
    });
    let script = [ScriptStep::calls([("echo", json!({ "asked": true }))]), ScriptStep::says("done")];
    let lab = Lab::build()
        .script(script)
        .extension(NativeExtension::new("kit", "1.0.0").tool(echo()).priority(1))
        .extension(NativeExtension::new("spare", "1.0.0").tool(tool(
            "echo",
            EffectClass::Pure,
            |it| json!({ "spare": it }),
        )))
        .extension(
            NativeExtension::new("zeta", "1.0.0")
                .hook(set_field(20, "second", json!(2)))
                .hook(gate(Decision::Allow))
                .replayable(),
        )
        .extension(
            NativeExtension::new("alpha", "1.0.0")
                .hook(set_field(10, "first", json!(1)))
                .hook(choose)
                .hook(checks_final)
                .hook(gate(Decision::Allow))
                .replayable(),
        );
    Scenario::new(lab, |lab| async {
        lab.say("go").await;
        assert_eq!(lab.ledger.lines().last().unwrap(), "tool s1 1.1 echo");
        lab
    })
}

pub fn broken_gates_deny() -> Scenario {
    let nonsense = gate(Decision::Continue);
    let panics = hook(HookSpec::at(HookPoint::ToolGate), |input| {
        match input.call.as_ref().map(|call| call.id.index) {
            Some(1) => panic!("out of order"),
            _ => Decision::Allow,
        }
    });
    let only = |index: u32| Matcher {
        arguments: [("/n".to_owned(), index.to_string())].into(),
        ..Matcher::default()
    };
    let late = HookSpec { matcher: only(3), timeout: Millis(50), ..HookSpec::at(HookPoint::ToolGate) };
    let calls = [
        ("write", json!({ "n": 1 })),
        ("write", json!({ "n": 2 })),
        ("write", json!({ "n": 3 })),
        ("write", json!({ "n": 4 })),
    ];
    let lab = Lab::build()
        .script([ScriptStep::calls(calls), ScriptStep::says("nothing was written")])
        .extension(NativeExtension::new("kit", "1.0.0").tool(write()))
        .extension(NativeExtension::new("panics", "1.0.0").hook(panics))
        .extension(NativeExtension::new("nonsense", "1.0.0").hook(Matched(only(2), nonsense)))
        .extension(
            NativeExtension::new("late", "1.0.0")
                .hook(Matched(late.matcher.clone(), hanging_hook(HookPoint::ToolGate, Millis(50)))),
        )
        .extension(
            NativeExtension::new("broken", "1.0.0")
                .hook(Matched(only(4), failing_hook(HookPoint::ToolGate, "no database"))),
        )
        .extension(
            NativeExtension::new("watcher", "1.0.0")
                .hook(failing_hook(HookPoint::TurnEnd, "an observer's fault is noted")),
        );
    Scenario::new(lab, |lab| async {
        let turn = lab.begin("go");
        lab.pass(Millis(50), 2).await;
        turn.await.unwrap();
        assert_eq!(lab.ledger.count("tool"), 0, "a gate that fails, closes");
        lab
    })
}

/// A hook with another matcher.
struct Matched<H>(Matcher, H);

impl<H: holdfast_lane_native::Hook> holdfast_lane_native::Hook for Matched<H> {
    fn spec(&self) -> HookSpec {
        HookSpec { matcher: self.0.clone(), ..self.1.spec() }
    }

    fn decide(
        &self,
        input: holdfast_contract::hook::HookInput,
        host: std::sync::Arc<dyn holdfast_contract::wire::Host>,
    ) -> holdfast_contract::wire::Later<Result<Decision, holdfast_contract::problem::Fault>> {
        self.1.decide(input, host)
    }
}

pub fn tool_timeout() -> Scenario {
    let lab = Lab::build()
        .script([ScriptStep::calls([("slow", json!({}))]), ScriptStep::says("it took too long")])
        .extension(NativeExtension::new("kit", "1.0.0").tool(hanging_tool(
            "slow",
            EffectClass::Network,
            Millis(1_000),
        )));
    Scenario::new(lab, |lab| async {
        let turn = lab.begin("go");
        lab.pass(Millis(1_000), 2).await;
        turn.await.unwrap();
        lab
    })
}

pub fn five_mebibyte_result() -> Scenario {
    let big = tool("big", EffectClass::Pure, |_| json!("0123456789abcdef".repeat(5 * 1024 * 64)));
    let lab = Lab::build()
        .script([
            ScriptStep::calls([("big", json!({})), ("big", json!({}))]),
            ScriptStep::says("that is a lot"),
        ])
        .extension(NativeExtension::new("kit", "1.0.0").tool(big).replayable());
    Scenario::new(lab, |lab| async {
        lab.say("go").await;
        let size = std::fs::metadata(lab.path()).unwrap().len();
        assert!(size < 1024 * 1024, "two results of 5 MiB are one compressed blob, not {size} bytes");
        lab
    })
}

pub fn unknown_tool_and_bad_arguments() -> Scenario {
    let typed = ToolSpec {
        input_schema: Content::new(json!({
            "type": "object",
            "properties": { "count": { "type": "integer" } },
            "required": ["count"],
        })),
        output_schema: Some(Content::new(json!({ "type": "string" }))),
        ..spec("typed", EffectClass::Pure)
    };
    let typed = FnTool(typed, |arguments: &Content| match arguments.value()["count"].as_i64() {
        Some(1) => Ok(Content::text("one")),
        _ => Ok(Content::new(json!(2))),
    });
    let calls = [
        ("missing", json!({})),
        ("typed", json!({ "count": "many" })),
        ("typed", json!({ "count": "1" })),
        ("typed", json!({ "count": 2 })),
        ("typed", json!({ "count": 18_446_744_073_709_551_615u64 })),
    ];
    let lab = Lab::build()
        .script([ScriptStep::calls(calls), ScriptStep::says("done")])
        .extension(NativeExtension::new("kit", "1.0.0").tool(typed).replayable());
    Scenario::new(lab, |lab| async {
        lab.say("go").await;
        assert_eq!(lab.ledger.count("tool"), 2, "only the calls whose arguments fit have run");
        lab
    })
}
