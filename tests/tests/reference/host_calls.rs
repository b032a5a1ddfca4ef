//! `docs/reference/host-calls.md`: the host calls, from the table that the lanes and the runtime use, which is compared with `wit/`, the
//! Python worker and the pages that name host calls.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use holdfast_authoring::wit::{self, ComponentKind};
use holdfast_contract::hook::HookPoint;
use holdfast_contract::host_call::topic::TopicRule;
use holdfast_contract::host_call::{Capability, GrantRule, HostCallKind, Redaction};
use holdfast_contract::manifest::{LaneKind, Profile};
use holdfast_policy::HeldInterfaces;

/// Functions of `wit/host.wit` that the lane serves itself, without a host call.
const SERVED_BY_THE_LANE: &[&str] = &["log.log", "config.get", "config.all", "session.current"];

/// Host calls that no component can make, and why.
pub const NOT_FOR_COMPONENTS: &[(HostCallKind, &str)] = &[
    (HostCallKind::NetworkConnect, "made by the gateway of the process lanes; a component has `http.send`"),
    (HostCallKind::NetworkConnected, "made by the gateway of the process lanes"),
    (HostCallKind::NetworkListen, "a component has no ports"),
    (HostCallKind::SystemShutdown, "nobody holds it"),
];

/// The lanes of the table of what is held by default.
const LANES: &[LaneKind] = &[
    LaneKind::Native,
    LaneKind::Python,
    LaneKind::Process,
    LaneKind::Wasm,
    LaneKind::Plugin,
    LaneKind::Mcp,
    LaneKind::Declarative,
];

/// The page.
pub fn page() -> String {
    let mut text = String::from(
        "# Host calls\n\nWhat an extension may call on the host while it is being called. The list is the same in every lane:\n\
         a native extension and a program make a call by its name, a Python class with `context.ask` or a\n\
         method of its own, a component through the function shown. Each call and its answer is a frame,\n\
         without what is marked as redacted. Two are not recorded outside of a session, where a loop makes\n\
         them all the time and nothing is replayed: `clock`, and `schedule.wait`.\n\n\
         A call belongs to an interface, and an extension may make it if it holds the interface. A call\n\
         without the grant is refused with `HF-4103`, in every lane; a component that imports an interface\n\
         without the grant is not loaded, with the same code. A built-in extension holds what it is\n\
         registered with; no privilege follows from its id.\n\n\
         | interface | held by |\n|---|---|\n",
    );
    for capability in Capability::ALL {
        writeln!(text, "| `{capability}` | {} |", held_by(capability.grant())).unwrap();
    }
    text.push_str(
        "\nThe manifest asks for interfaces under `grants: { interfaces: [...] }`, and the user's policy gives\n\
         them: `holdfast ext grant ID --interface NAME`.\n\n\
         | host call | interface | what it does | side effects | component function | redacted |\n|---|---|---|---|---|---|\n",
    );
    for kind in HostCallKind::ALL {
        let effects = if kind.has_side_effects() { "yes" } else { "" };
        let functions: Vec<String> = kind.wit_functions().iter().map(|name| format!("`{name}`")).collect();
        let redacted = match kind.redaction() {
            Redaction::Nothing => "",
            Redaction::ValueArgument => "the argument `value`",
            Redaction::Answer => "the answer",
        };
        let (capability, summary) = (kind.capability(), kind.summary());
        let none = NOT_FOR_COMPONENTS.iter().find(|(other, _)| other == kind);
        let functions = none.map_or_else(|| functions.join(" "), |(_, why)| format!("none: {why}"));
        writeln!(text, "| `{kind}` | `{capability}` | {summary} | {effects} | {functions} | {redacted} |")
            .unwrap();
    }
    text.push_str(
        "\nTopics of the program itself need more than `events` and `subscriptions`. A subscription names them\n\
         in full: a pattern that would include one of them beside other topics, such as `>` or `system.*`,\n\
         is refused (`HF-8010`).\n\n\
         | topic | publishing needs | subscribing needs |\n|---|---|---|\n",
    );
    let topics = holdfast_bus::topics::ALL.iter().copied().chain(["channel.out.*"]);
    for topic in topics {
        let (publish, subscribe) =
            (needs(TopicRule::to_publish(topic)), needs(TopicRule::to_subscribe(topic)));
        writeln!(text, "| `{topic}` | {publish} | {subscribe} |").unwrap();
    }
    text.push_str(
        "\nEvery other topic is open: no extension owns a topic, and each may publish on it and subscribe to it\n\
         with `events` and `subscriptions`. [ADR 0034](../adr/0034-topics-have-no-owners.md) says why. What a\n\
         manifest subscribes to follows the same table, and needs no `subscriptions`.\n",
    );
    let allowed = |point: HookPoint| {
        HostCallKind::ALL.iter().filter(move |kind| kind.is_for_hooks(point)).map(|kind| format!("`{kind}`"))
    };
    let all: Vec<String> = allowed(HookPoint::ToolGate).collect();
    let more: Vec<String> = allowed(HookPoint::Context).filter(|kind| !all.contains(kind)).collect();
    writeln!(
        text,
        "\nWhat a hook asks of the host changes nothing outside of its session and does no I/O, in every lane. It\n\
         may make {}; a\n\
         context provider also {}. Another call is refused with `HF-3206` and recorded, whatever is granted; a\n\
         component gets the failure `denied`. So is what a hook of a Python class would connect to, write or\n\
         start by itself; a program that is started is recorded as `program.start`. A renderer may make the\n\
         same calls as a hook. [ADR 0028](../adr/0028-hooks-have-no-side-effects.md) says what this does not\n\
         cover: the files that the confinement of a program lets it write.",
        all.join(", "),
        more.join(", ")
    )
    .unwrap();
    text.push_str(
        "\nWithout a grant, and beside what every extension holds, an extension holds by its lane:\n\n\
         | lane | under `safe` | under every other profile |\n|---|---|---|\n",
    );
    for lane in LANES {
        let held = |profile| {
            let names = HeldInterfaces::new(lane.as_str(), profile, Vec::new()).by_default();
            names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" ")
        };
        let (safe, others) = (held(Profile::Safe), held(Profile::Standard));
        let others = if safe == others { "the same" } else { others.as_str() };
        let safe = if safe.is_empty() { "nothing" } else { safe.as_str() };
        writeln!(text, "| `{lane}` | {safe} | {others} |", lane = lane.as_str()).unwrap();
    }
    text.push_str(
        "\n`holdfast ext check` and `holdfast ext show` list what an extension holds, what of it by default, and\n\
         what it asks for and lacks. [ADR 0032](../adr/0032-default-interfaces.md) says why nobody is asked about\n\
         the default ones.\n\n\
         `http.request` takes `url`, and may take `method`, `headers` as a list of pairs, `body` and\n\
         `timeout_ms`; its answer has `status`, `headers` and `body`. `file.read`, `file.list`, `file.stat`,\n\
         `file.remove` and `file.make_folder` take `path`, and `file.write` also `content`. A path is relative\n\
         to the extension's data folder, or absolute, or begins with `~/`; no link leads out of a granted\n\
         folder, and none includes the home. A body, a content and an answer are text, or\n\
         `{ \"base64\": \"…\" }` where they are not UTF-8, with 4 MiB at most.\n\n\
         A reference from `secret.reference` in a header, in the path, in the query or in a body of text of a\n\
         request is replaced by the secret's value on the way out: only for a host that a grant covers, and\n\
         only over `https` or to this machine. Values of secrets are redacted in the answer. Redirects are\n\
         followed within what is granted, and never to another host with a secret; others are the answer.\n",
    );
    text.push_str(
        "\nThe arguments of the other calls are described in\n[the extension protocol](../protocol.md#host-calls),\n\
         [native extensions](../native-extensions.md#other-extensions) and\n\
         [the bus](../bus.md#extensions-on-the-bus).\n",
    );
    text
}

fn held_by(grant: GrantRule) -> &'static str {
    match grant {
        GrantRule::Everyone => "every extension",
        GrantRule::Components => "programs, Python and native extensions; components with the grant",
        GrantRule::ComponentsAndPrograms => {
            "native extensions, and Python except under the profile `safe`; programs and components with the grant"
        }
        GrantRule::Nobody => "no extension",
        GrantRule::Explicit => "extensions with the grant, in every lane",
        GrantRule::EachSecret => "every extension for its own secrets; others are granted by name",
        GrantRule::EachHost => "extensions for the hosts that they are granted, or that the user allows",
        GrantRule::EachFolder => "every extension for its own data folder; other folders are granted by path",
        GrantRule::EachVariable => "extensions for the variables that they are granted by name",
    }
}

fn needs(rule: TopicRule) -> String {
    match rule {
        TopicRule::Open => String::new(),
        TopicRule::Needs(capability) => format!("`{capability}`"),
        TopicRule::Channel => "the `channel` role; a channel publishes for itself".to_owned(),
        TopicRule::Program | TopicRule::TooWide => "no extension".to_owned(),
    }
}

/// The table of SECURITY.md: what an extension of each lane holds although nobody granted it, beside what every extension holds.
pub fn default_grants() -> String {
    let lanes = [
        LaneKind::Wasm,
        LaneKind::Declarative,
        LaneKind::Mcp,
        LaneKind::Process,
        LaneKind::Python,
        LaneKind::Plugin,
        LaneKind::Native,
    ];
    let held = |lane: LaneKind, profile: Profile| {
        let names = HeldInterfaces::new(lane.as_str(), profile, Vec::new()).by_default();
        names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>()
    };
    let mut text = String::from("| lane | under `safe` | and under the other profiles |\n|---|---|---|\n");
    for lane in lanes {
        let safe = held(lane, Profile::Safe);
        let mut others = Profile::ALL.iter().skip(1).map(|profile| held(lane, *profile));
        let first = others.next().unwrap();
        assert!(others.all(|other| other == first), "{lane}: the profiles but `safe` differ");
        assert!(safe.iter().all(|name| first.contains(name)), "{lane}: `safe` gives more");
        let more: Vec<String> = first.into_iter().filter(|name| !safe.contains(name)).collect();
        writeln!(text, "| {lane} | {} | {} |", safe.join(", "), more.join(", ")).unwrap();
    }
    text
}

/// The functions of `wit/host.wit`, as `interface.function`.
pub fn in_the_interface() -> BTreeSet<String> {
    let (resolve, package) = wit::package().unwrap();
    let imported = wit::interfaces().unwrap().into_iter().filter(|it| it.kind == ComponentKind::Host);
    let names = imported.flat_map(|it| {
        let id = resolve.packages[package].interfaces[&it.name];
        // The functions of a resource belong to the one that makes it.
        let functions = resolve.interfaces[id].functions.keys().filter(|function| !function.starts_with('['));
        functions.map(|function| format!("{}.{function}", it.name)).collect::<Vec<_>>()
    });
    names.collect()
}

/// The functions that host calls serve, and those that the lane serves itself.
pub fn in_the_table() -> BTreeSet<String> {
    let served = HostCallKind::ALL.iter().flat_map(|kind| kind.wit_functions());
    served.chain(SERVED_BY_THE_LANE).map(|function| (*function).to_owned()).collect()
}

/// The host calls that a source file of the Python worker makes, with its path.
pub fn of_the_python_worker() -> Vec<(String, String)> {
    let worker = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/lane-process/src/python");
    let mut folders = vec![worker];
    let mut made = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension() {
                None if path.is_dir() => folders.push(path),
                Some(ending) if ending == "py" => {
                    let text = std::fs::read_to_string(&path).unwrap();
                    made.extend(calls_in(&text).into_iter().map(|name| (path.display().to_string(), name)));
                }
                _ => {}
            }
        }
    }
    made
}

/// The names that are passed to the functions that make host calls.
pub fn calls_in(python: &str) -> Vec<String> {
    let functions = ["ask(\"", "ask_later(\"", "ask_and_wait(\"", "tell(\"", "_wish(\""];
    let made = functions.iter().flat_map(|function| python.split(function).skip(1));
    made.filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
}

/// The host calls that the tables of a page name: those whose first column is `host call`, or `name` under "Host calls".
pub fn named_in(page: &str) -> Vec<String> {
    let mut names = Vec::new();
    let (mut heading, mut within) = ("", false);
    for line in page.lines() {
        if line.starts_with('#') {
            heading = line.trim_start_matches('#').trim();
        }
        let first = line.strip_prefix("| ").and_then(|row| row.split(" |").next());
        match first {
            Some("host call") => within = true,
            Some("name") if heading == "Host calls" => within = true,
            Some(cell) if within => names.extend(cell.split('`').skip(1).step_by(2).map(str::to_owned)),
            Some(_) => {}
            None => within &= line.starts_with('|'),
        }
    }
    names
}
