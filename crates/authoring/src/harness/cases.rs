//! The test cases of an extension, in `tests.yaml` beside its manifest: calls with their expected results.

use std::path::Path;
use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::hook::{HookInput, HookPoint};
use holdfast_contract::ids::{CallId, Millis};
use holdfast_contract::manifest::yaml::{self, Codes, Format};
use holdfast_contract::message::{CallView, Limits, Origin, TurnContext};
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::protocol::ProcessTurn;
use holdfast_contract::registry::Payload;
use holdfast_contract::role::Role;
use holdfast_contract::wire::{Call, Reply};
use holdfast_runtime::SystemClock;
use holdfast_runtime::calls::{SchemaChecks, decision_of, result_of, start_call, wait_timeout};
use holdfast_yaml::{Field, Reported};
use serde::Serialize;
use serde_json::{Value, json};

use super::host::CaseHost;
use super::{CALL_TIMEOUT, LoadedExtension};

const FORMAT: Format = Format { name: "tests", max_bytes: 1 << 20, codes: Codes::all(Code::UsageInvalid) };

/// The cases of a file.
pub struct Cases(Vec<Case>);

/// One case.
pub struct Case {
    name: String,
    asked: Asked,
    expected: Expected,
}

enum Asked {
    Tool { name: String, arguments: Value },
    Hook { point: HookPoint, call: Option<(String, Value)>, subject: Option<Value> },
}

enum Expected {
    /// Exactly this result or decision.
    Exactly(Value),
    /// A result whose text, or a decision whose reason, contains this.
    Containing(String),
    /// A decision of this kind, with a reason that contains this.
    Decision(String, Option<String>),
    /// A failure whose message contains this.
    Failing(String),
}

/// The outcome of a case.
#[derive(Clone, Debug, Serialize)]
pub struct CaseOutcome {
    /// The case.
    pub name: String,
    /// Whether it came out as expected.
    pub ok: bool,
    /// What was expected.
    pub expected: Value,
    /// The outcome.
    pub actual: Value,
}

impl Cases {
    /// Reads a `tests.yaml`.
    pub fn read(file: &Path, bytes: &[u8]) -> Result<Self, Problem> {
        let read = yaml::read_bytes(&FORMAT, file, bytes, |root| root.each(case));
        let read = read.map_err(|rejected| {
            Problem::all(rejected.errors)
                .unwrap_or_else(|| Problem::new(Code::Internal, "cases were rejected without a reason"))
        })?;
        Ok(Self(read.value))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

fn case(field: &Field<'_>) -> Result<Case, Reported> {
    let place = field.path();
    field.object(|object| {
        let name = object.optional("name", Field::filled);
        let tool = object.optional("tool", Field::word);
        let hook = object.optional("hook", point);
        let arguments = object.defaulted("arguments", json!({}), Field::json);
        let call = object.optional("call", called);
        let subject = object.optional("subject", Field::json);
        let result = object.optional("result", Field::json);
        let decision = object.optional("decision", Field::json);
        let reason = object.optional("reason", Field::text);
        let contains = object.optional("contains", Field::text);
        let fails = object.optional("fails", Field::text);
        let asked = match (tool?, hook?) {
            (Some(name), None) => Asked::Tool { name, arguments: arguments? },
            (None, Some(point)) => Asked::Hook { point, call: call?, subject: subject? },
            _ => {
                let what = format!("`{place}` must name either a `tool` or a `hook`");
                return Err(
                    field.reject(what, "For example: `- tool: shout`, with `arguments:` and `result:`.")
                );
            }
        };
        let expected = match (result?, decision?, contains?, fails?) {
            (Some(result), None, None, None) => Expected::Exactly(result),
            (None, Some(Value::String(kind)), None, None) => Expected::Decision(kind, reason?),
            (None, Some(decision), None, None) => Expected::Exactly(decision),
            (None, None, Some(part), None) => Expected::Containing(part),
            (None, None, None, Some(part)) => Expected::Failing(part),
            _ => {
                let what = format!("`{place}` must say what is expected, in one way");
                return Err(field.reject(what, "Use one of `result`, `decision`, `contains` and `fails`."));
            }
        };
        let name = name?.unwrap_or_else(|| match &asked {
            Asked::Tool { name, arguments } => format!("{name} {arguments}"),
            Asked::Hook { point, .. } => format!("{point:?}"),
        });
        Ok(Case { name, asked, expected })
    })
}

fn point(field: &Field<'_>) -> Result<HookPoint, Reported> {
    let name = field.word()?.replace('-', "_");
    serde_json::from_value(Value::String(name)).map_err(|_| {
        let what = format!("{} is not a hook point", field.subject());
        field.reject(what, "`holdfast docs hooks` lists them.")
    })
}

fn called(field: &Field<'_>) -> Result<(String, Value), Reported> {
    field.object(|object| {
        let tool = object.required("tool", "shell", Field::word);
        let arguments = object.defaulted("arguments", json!({}), Field::json);
        Ok((tool?, arguments?))
    })
}

impl LoadedExtension {
    /// Runs every case, each on an instance and a state of its own.
    pub async fn test(&self, cases: &Cases) -> Vec<CaseOutcome> {
        let mut outcomes = Vec::new();
        for case in &cases.0 {
            let answer = self.ask(&case.asked).await;
            let (expected, ok) = case.expected.judge(&answer);
            let actual = answer.unwrap_or_else(|fault| json!({ "fails": fault.to_string() }));
            outcomes.push(CaseOutcome { name: case.name.clone(), ok, expected, actual });
        }
        outcomes
    }

    /// Whether its code is an agent that is called by this name.
    fn has_agent(&self, name: &str) -> bool {
        self.descriptors.iter().any(|descriptor| match &descriptor.payload {
            Payload::Agent(agent) => agent.code.is_some() && agent.tool_name().as_str() == name,
            _ => false,
        })
    }

    async fn ask(&self, asked: &Asked) -> Result<Value, Fault> {
        let origin = Origin { channel: "test".to_owned(), user: None };
        let (session, agent) = ("test".into(), "main".into());
        let turn = Arc::new(TurnContext { session, turn: 1, agent, origin, ..TurnContext::default() });
        let instance = self.instance.fresh().unwrap_or_else(|| self.instance.clone());
        let run = async |call: Call, limit: Millis, late: Code| -> Result<Reply, Fault> {
            wait_timeout(
                start_call(&instance, call, Arc::<CaseHost>::default()),
                limit,
                late,
                Arc::new(SystemClock),
            )
            .await
        };
        match asked {
            Asked::Tool { name, arguments } if self.has_agent(name) => {
                let mut arguments = arguments.clone();
                arguments["turn"] = json!(ProcessTurn::from(&turn));
                let (role, function, arguments) = (Role::Agent, "invoke".to_owned(), Content::new(arguments));
                let call = Call::Function { role, function, arguments };
                let limit = Limits::default().time_budget;
                Ok(result_of(run(call, limit, Code::ToolTimeout).await?)?.value().clone())
            }
            Asked::Tool { name, arguments } => {
                let spec = self.descriptors.iter().find_map(|descriptor| match &descriptor.payload {
                    Payload::Tool(spec) if spec.name.as_str() == name => Some(spec.clone()),
                    _ => None,
                });
                let unknown = || Fault::new(Code::ToolUnknown, format!("the extension has no tool `{name}`"));
                let spec = spec.ok_or_else(unknown)?;
                let checks = SchemaChecks::default();
                let arguments = checks.fitting(&spec, Content::new(arguments.clone()))?;
                let call = Call::Tool {
                    call: CallId { turn: 1, index: 1 },
                    tool: spec.name.clone(),
                    arguments,
                    turn,
                };
                let result = result_of(run(call, spec.timeout, Code::ToolTimeout).await?)?;
                match checks.result(&spec, result) {
                    holdfast_contract::tool::ToolOutcome::Result(result) => Ok(result.value().clone()),
                    holdfast_contract::tool::ToolOutcome::Failure(fault) => Err(fault),
                }
            }
            Asked::Hook { point, call, subject } => {
                let hook = self.descriptors.iter().find_map(|descriptor| {
                    let index = descriptor.hooks().iter().position(|spec| spec.point == *point)?;
                    Some(descriptor.hook_id(&self.manifest.id, index))
                });
                let unknown =
                    || Fault::new(Code::ExtensionFault, format!("the extension has no hook at {point:?}"));
                let call = call.as_ref().map(|(tool, arguments)| CallView {
                    id: CallId { turn: 1, index: 1 },
                    tool: tool.as_str().into(),
                    arguments: Content::new(arguments.clone()),
                });
                let subject = match (subject, &call) {
                    (Some(subject), _) => Some(Content::new(subject.clone())),
                    (None, call) => call.as_ref().map(|call| call.arguments.clone()),
                };
                let input = HookInput { hook: hook.ok_or_else(unknown)?, point: *point, call, subject, turn };
                let reply = run(Call::Hook(input), CALL_TIMEOUT, Code::HookTimeout).await?;
                Ok(json!(decision_of(reply, *point)?))
            }
        }
    }
}

impl Expected {
    /// What is expected, in words of the file, and whether the answer is that.
    fn judge(&self, answer: &Result<Value, Fault>) -> (Value, bool) {
        match self {
            Self::Exactly(value) => {
                let ok = answer
                    .as_ref()
                    .is_ok_and(|answer| Content::new(value.clone()) == Content::new(answer.clone()));
                (value.clone(), ok)
            }
            Self::Containing(part) => {
                let ok = answer.as_ref().is_ok_and(|answer| text(answer).contains(part.as_str()));
                (json!({ "contains": part }), ok)
            }
            Self::Decision(kind, reason) => {
                let named = |answer: &Value| match answer {
                    Value::String(name) => name == kind,
                    Value::Object(fields) => fields.contains_key(kind),
                    _ => false,
                };
                let reasoned =
                    |answer: &Value| reason.as_ref().is_none_or(|part| text(answer).contains(part.as_str()));
                let ok = answer.as_ref().is_ok_and(|answer| named(answer) && reasoned(answer));
                (json!({ "decision": kind, "reason": reason }), ok)
            }
            Self::Failing(part) => {
                let ok = answer.as_ref().is_err_and(|fault| fault.to_string().contains(part.as_str()));
                (json!({ "fails": part }), ok)
            }
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
