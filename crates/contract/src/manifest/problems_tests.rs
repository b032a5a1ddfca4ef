//! What people see when a manifest is wrong: the exact text, for every sort of mistake.

use std::path::Path;

use super::parse;

/// Errors first, then warnings, as they are printed.
fn printed(text: &str) -> String {
    match parse(Path::new("m.yaml"), text) {
        Err(rejected) => rejected.to_string(),
        Ok(parsed) => parsed.warnings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
    }
}

fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(printed(text), *expected, "\n{text}\n");
    }
}

/// The same for lines that follow a good beginning of three.
fn check_lines(cases: &[(&str, &str)]) {
    for (lines, expected) in cases {
        assert_eq!(printed(&format!("id: a\nname: A\nagent: {{}}\n{lines}")), *expected, "\n{lines}\n");
    }
}

#[test]
fn text_that_is_no_yaml() {
    check(&[
        (
            "id: a\nname: \"A\nagent: {}\n",
            "error[HF-1002]: the file is not valid YAML: invalid indentation in multiline quoted scalar
  --> m.yaml:3:1
  help: Close the quote that begins here or above.",
        ),
        (
            "id: a\n\tname: A\n",
            "error[HF-1002]: the file is not valid YAML: while scanning a plain scalar, found a tab
  --> m.yaml:2:1
  help: Indent with spaces; YAML allows no tabs there.",
        ),
        (
            "id: a\nname: one: two\n",
            "error[HF-1002]: the file is not valid YAML: mapping values are not allowed in this context
  --> m.yaml:2:10
  help: A text that has `: ` in it must be quoted; otherwise check the indentation of this line.",
        ),
        (
            "id: a\ndepends_on: [kv, clock\n",
            "error[HF-1002]: the file is not valid YAML: unclosed bracket '['
  --> m.yaml:2:13
  help: Close the bracket that opens above, and put commas between its items.",
        ),
        (
            "id: a\nname: @me\n",
            "error[HF-1002]: the file is not valid YAML: unexpected character: `@'
  --> m.yaml:2:7
  help: A value that begins with this character must be quoted.",
        ),
        (
            "id: a\nname\nagent: {}\n",
            "error[HF-1002]: the file is not valid YAML: simple key expected ':'
  --> m.yaml:2:1
  help: Every line here must be `key: value`, indented like its neighbours.",
        ),
        (
            "id: a\nname: A\n  agent: {}\n",
            "error[HF-1002]: the file is not valid YAML: mapping values are not allowed in this context
  --> m.yaml:3:8
  help: A text that has `: ` in it must be quoted; otherwise check the indentation of this line.",
        ),
        (
            "id: a\nschedules: [{name: n, cron: */5 * * * *}]\n",
            "error[HF-1002]: the file is not valid YAML: while scanning an anchor or alias, did not find expected alphabetic or numeric character
  --> m.yaml:2:33
  help: A value that begins with `*` or `&` must be quoted, such as `cron: \"*/5 * * * *\"`.",
        ),
        (
            "id: a\n---\nid: b\n",
            "error[HF-1002]: the file has a second document
  --> m.yaml:2:1
  help: Remove the `---` in the middle and what follows it.",
        ),
    ]);
}

#[test]
fn ports_that_cannot_be_listened_on() {
    let help = "help: Write a port from 1024 to 65535, such as `8080` or `127.0.0.1:8080`.";
    for (port, why) in [
        ("80", "ports below 1024 are reserved for the system"),
        ("3128", "port 3128 is that of the gateway to the network"),
        ("65536", "a port is a number from 1024 to 65535"),
        ("+8080", "a port is a number from 1024 to 65535"),
        ("0.0.0.0:8080", "`0.0.0.0` is not 127.0.0.1, and nothing else can be listened on"),
        ("'[::1]:8080'", "`[::1]` is not 127.0.0.1, and nothing else can be listened on"),
    ] {
        let all = printed(&format!("id: a\nname: A\ncommand: ./a\ngrants: {{ listen: [{port}] }}\n"));
        let shown = port.trim_matches('\'');
        assert!(
            all.contains("HF-1007") && all.contains(&format!("`{shown}` cannot be listened on: {why}")),
            "{all}"
        );
        assert!(all.contains(help), "{all}");
    }
    let text = "id: a\nname: A\ncommand: ./a\ngrants: { listen: [8080, \"8081\", 127.0.0.1:8082, localhost:8083] }\n";
    let listen = parse(Path::new("m.yaml"), text).unwrap().manifest.grants.listen;
    let numbers: Vec<u16> = listen.into_iter().map(super::ListenPort::number).collect();
    assert_eq!(numbers, [8080, 8081, 8082, 8083]);
}

#[test]
fn text_that_is_no_mapping() {
    check(&[
        (
            "",
            "error[HF-1006]: the file is empty
  --> m.yaml:1:1
  help: Write `key: value` lines; `holdfast schema manifest` prints what is allowed.",
        ),
        (
            "# nothing yet\n",
            "error[HF-1006]: the file is empty
  --> m.yaml:1:1
  help: Write `key: value` lines; `holdfast schema manifest` prints what is allowed.",
        ),
        (
            "- id: a\n",
            "error[HF-1003]: the file should be a mapping, but is a list
  --> m.yaml:1:1
  help: Write `key: value` lines; `holdfast schema manifest` prints what is allowed.",
        ),
        (
            "manifest\n",
            "error[HF-1003]: the file should be a mapping, but is the text `manifest`
  --> m.yaml:1:1
  help: Write `key: value` lines; `holdfast schema manifest` prints what is allowed.",
        ),
    ]);
}

#[test]
fn fields_that_are_missing() {
    check(&[
        (
            "agent: {}\n",
            "error[HF-1006]: `id` is missing
  --> m.yaml:1:1 (id)
  help: Add `id: my_extension`.
error[HF-1006]: `name` is missing
  --> m.yaml:1:1 (name)
  help: Add `name: My Extension`.",
        ),
        (
            "id: a\nname:\nagent: {}\n",
            "error[HF-1006]: `name` is empty
  --> m.yaml:2:1 (name)
  help: Add `name: My Extension`.",
        ),
    ]);
}

#[test]
fn fields_that_are_missing_further_down() {
    check_lines(&[
        (
            "events: {subscribes: [{topic: a.b}, {handler: custom}]}\n",
            "error[HF-1006]: `events.subscribes[1].topic` is missing
  --> m.yaml:4:37 (events.subscribes[1].topic)
  help: Add `topic: alert.urgent`.",
        ),
        (
            "schedules:\n  - cron: \"0 3 * * *\"\n",
            "error[HF-1006]: `schedules[0].name` is missing
  --> m.yaml:5:5 (schedules[0].name)
  help: Add `name: nightly`.",
        ),
        (
            "secrets: [{optional: true}]\n",
            "error[HF-1006]: `secrets[0].id` is missing
  --> m.yaml:4:11 (secrets[0].id)
  help: Add `id: API_KEY`.",
        ),
        (
            "mcp: {}\n",
            "error[HF-1006]: `mcp.command` is missing
  --> m.yaml:4:6 (mcp.command)
  help: Add `command: npx some-server` to start a server, or `url: https://…` to reach one.",
        ),
        (
            "hooks: [{priority: 1}]\n",
            "error[HF-1006]: `hooks[0].point` is missing
  --> m.yaml:4:9 (hooks[0].point)
  help: Add `point: tool_gate`.",
        ),
    ]);
}

#[test]
fn fields_that_there_are_not() {
    check_lines(&[
        (
            "depend_on: [kv]\n",
            "warning[HF-1004]: unknown field `depend_on`
  --> m.yaml:4:1 (depend_on)
  help: Did you mean `depends_on`?",
        ),
        (
            "dependsOn: [kv]\n",
            "warning[HF-1004]: unknown field `dependsOn`
  --> m.yaml:4:1 (dependsOn)
  help: Did you mean `depends_on`?",
        ),
        (
            "type: channel\n",
            "warning[HF-1004]: unknown field `type`
  --> m.yaml:4:1 (type)
  help: Remove it: roles are found by what the extension exports, not declared.",
        ),
        (
            "permissions: [network]\n",
            "warning[HF-1004]: unknown field `permissions`
  --> m.yaml:4:1 (permissions)
  help: Did you mean `grants`?",
        ),
        (
            "limits: {max_turns: 3}\n",
            "warning[HF-1004]: unknown field `limits`
  --> m.yaml:4:1 (limits)
  help: Move it below `agent:`.",
        ),
        (
            "favourite_colour: red\n",
            "warning[HF-1004]: unknown field `favourite_colour`
  --> m.yaml:4:1 (favourite_colour)
  help: Remove it; `holdfast schema manifest` lists the fields.",
        ),
        (
            "grants: {hosts: [a.com], color: red}\n",
            "warning[HF-1004]: unknown field `hosts` in `grants`
  --> m.yaml:4:10 (grants.hosts)
  help: Did you mean `network`?
warning[HF-1004]: unknown field `color` in `grants`
  --> m.yaml:4:26 (grants.color)
  help: Remove it; the fields are: `network`, `listen`, `files`, `secrets`, `environment`, `extensions`, `interfaces`.",
        ),
        (
            "tools: {search: {timeout: 5}}\n",
            "warning[HF-1004]: unknown field `timeout` in `tools.search`
  --> m.yaml:4:18 (tools.search.timeout)
  help: Did you mean `timeout_ms`?",
        ),
        (
            "mcp: {url: 'https://a.com', args: [x]}\n",
            "warning[HF-1004]: `args` is not used without `command`
  --> m.yaml:4:29 (mcp.args)
  help: Remove it.",
        ),
        (
            "entrypoint: a.wasm\ncommand: ./run\n",
            "warning[HF-1004]: `command` is not used, because `entrypoint` says what to start
  --> m.yaml:5:1 (command)
  help: Remove `entrypoint` or `command`.",
        ),
    ]);
}

#[test]
fn keys_that_stand_twice() {
    check_lines(&[
        (
            "priority: 1\npriority: 2\n",
            "warning[HF-1005]: duplicate key `priority`, first at line 4
  --> m.yaml:5:1 (priority)
  help: The last value counts; remove the others.",
        ),
        (
            "config:\n  a: {b: 1, b: 2}\n",
            "warning[HF-1005]: duplicate key `b`, first at line 5
  --> m.yaml:5:13 (config.a.b)
  help: The last value counts; remove the others.",
        ),
        (
            "enabled: true\nenabled: true\nenabled: false\n",
            "warning[HF-1005]: duplicate key `enabled`, first at line 4
  --> m.yaml:5:1 (enabled)
  help: The last value counts; remove the others.
warning[HF-1005]: duplicate key `enabled`, first at line 5
  --> m.yaml:6:1 (enabled)
  help: The last value counts; remove the others.",
        ),
    ]);
}

#[test]
fn values_of_the_wrong_type() {
    check_lines(&[
        (
            "depends_on: kv\n",
            "error[HF-1003]: `depends_on` should be a list, but is the text `kv`
  --> m.yaml:4:13 (depends_on)
  help: Write `depends_on: [kv]`.",
        ),
        (
            "depends_on: {kv: true}\n",
            "error[HF-1003]: `depends_on` should be a list, but is a mapping
  --> m.yaml:4:13 (depends_on)
  help: Write one `- item` per line below `depends_on:`.",
        ),
        (
            "description: true\n",
            "error[HF-1003]: `description` should be text, but is `true`
  --> m.yaml:4:14 (description)
  help: Put it in quotes: `description: \"true\"`.",
        ),
        (
            "description: [a, b]\n",
            "error[HF-1003]: `description` should be text, but is a list
  --> m.yaml:4:14 (description)
  help: Write `description: some text`.",
        ),
        (
            "package: [one]\n",
            "error[HF-1003]: `package` should be text, but is a list
  --> m.yaml:4:10 (package)
  help: Write `package: one`.",
        ),
        (
            "enabled: 1\n",
            "error[HF-1003]: `enabled` should be `true` or `false`, but is `1`
  --> m.yaml:4:10 (enabled)
  help: Write `enabled: true` or `enabled: false`.",
        ),
        (
            "enabled: \"true\"\n",
            "error[HF-1003]: `enabled` should be `true` or `false`, but is the text `true`
  --> m.yaml:4:10 (enabled)
  help: Write `enabled: true` or `enabled: false`.",
        ),
        (
            "priority: \"10\"\n",
            "error[HF-1003]: `priority` should be a whole number, but is the text `10`
  --> m.yaml:4:11 (priority)
  help: Write `priority: 10`, without quotes.",
        ),
        (
            "priority: high\n",
            "error[HF-1003]: `priority` should be a whole number, but is the text `high`
  --> m.yaml:4:11 (priority)
  help: Write a whole number from -2147483648 to 2147483647.",
        ),
        (
            "priority: 1.5\n",
            "error[HF-1003]: `priority` should be a whole number, but is `1.5`
  --> m.yaml:4:11 (priority)
  help: Write a whole number from -2147483648 to 2147483647.",
        ),
        (
            "config: none\n",
            "error[HF-1003]: `config` should be a mapping, but is the text `none`
  --> m.yaml:4:9 (config)
  help: Write indented `key: value` lines below `config:`.",
        ),
        (
            "schedules: nightly\n",
            "error[HF-1003]: `schedules` should be a list, but is the text `nightly`
  --> m.yaml:4:12 (schedules)
  help: Write `- key: value` items below `schedules:`.",
        ),
        (
            "schedules: [nightly]\n",
            "error[HF-1003]: `schedules[0]` should be a mapping, but is the text `nightly`
  --> m.yaml:4:13 (schedules[0])
  help: Write `- key: value` there.",
        ),
        (
            "schedules:\n  name: nightly\n",
            "error[HF-1003]: `schedules` should be a list, but is a mapping
  --> m.yaml:5:3 (schedules)
  help: Put `- ` before its first line, and indent the others like it.",
        ),
        (
            "events: [a.b]\n",
            "error[HF-1003]: `events` should be a mapping, but is a list
  --> m.yaml:4:9 (events)
  help: Write indented `key: value` lines below `events:`.",
        ),
        (
            "scope: [turn]\n",
            "error[HF-1003]: `scope` should be text, but is a list
  --> m.yaml:4:8 (scope)
  help: Use one of `turn`, `call`, `shared`.",
        ),
        (
            "? [a, b]\n: c\n",
            "error[HF-1003]: a list or a mapping cannot be a key
  --> m.yaml:4:3
  help: Use text as the key; a value that begins with `[`, `{` or `?` must be quoted.",
        ),
        (
            "config: {<<: 4}\n",
            "error[HF-1003]: `<<` merges the entries of a mapping, but this is not a mapping
  --> m.yaml:4:14 (config.<<)
  help: Write `<<: *name`, with `&name` before a mapping.",
        ),
        (
            "secrets: [true]\n",
            "error[HF-1003]: `secrets[0]` should be text, but is `true`
  --> m.yaml:4:11 (secrets[0])
  help: Put it in quotes: `- \"true\"`.",
        ),
    ]);
}

#[test]
fn fields_of_other_programs() {
    check(&[
        (
            "id: a\nname: A\nagent: {parallel_tool_calls: true, instructions_file: a.md}\n",
            "warning[HF-1004]: unknown field `parallel_tool_calls` in `agent`
  --> m.yaml:3:9 (agent.parallel_tool_calls)
  help: Remove it: the calls of one answer run together, within the `concurrency` of each tool.
warning[HF-1004]: unknown field `instructions_file` in `agent`
  --> m.yaml:3:36 (agent.instructions_file)
  help: Write `instructions`, or rename the file to `prompt.jinja2`, which is found without a field.",
        ),
        // An agent of the code alone has the model of its extension.
        (
            "id: a\nname: A\nagent: {}\nagent_config: {namer: {model: small}}\n",
            "warning[HF-1009]: `agent_config.namer` is not available in this version, and is ignored
  --> m.yaml:4:23 (agent_config.namer)
  help: Remove it, or leave it for a later version.",
        ),
    ]);
}

#[test]
fn values_that_cannot_be() {
    check_lines(&[
        (
            "scope: turns\n",
            "error[HF-1007]: `turns` is not a value of `scope`
  --> m.yaml:4:8 (scope)
  help: Did you mean `turn`? Use one of `turn`, `call`, `shared`.",
        ),
        (
            "scope: forever\n",
            "error[HF-1007]: `forever` is not a value of `scope`
  --> m.yaml:4:8 (scope)
  help: Use one of `turn`, `call`, `shared`.",
        ),
        (
            "policy: {profile: full-auto}\n",
            "error[HF-1009]: `policy.profile` is not available in this version
  --> m.yaml:4:19 (policy.profile)
  help: Remove it.",
        ),
        (
            "events: {subscribes: [{topic: a, handler: notify}]}\n",
            "error[HF-1007]: `notify` is not a value of `events.subscribes[0].handler`
  --> m.yaml:4:43 (events.subscribes[0].handler)
  help: Did you mean `notify_user`? Use one of `notify_user`, `invoke_agent`, `custom`.",
        ),
        (
            "depends_on: [KV Store, a]\n",
            "error[HF-1007]: `KV Store` cannot be an extension's id
  --> m.yaml:4:14 (depends_on[0])
  help: An id has at most 64 small letters, digits, `_` and `-`, and begins with a letter: write `- kv_store`.
error[HF-1007]: `a` depends on itself
  --> m.yaml:4:24 (depends_on[1])
  help: Remove it from the list.",
        ),
        (
            "grants:\n  network: ['https://api.example.com/v1']\n  files: [../secrets]\n  environment: [A=1]\n  interfaces: [event, shutdown]\n",
            "error[HF-1007]: `https://api.example.com/v1` is more than a host
  --> m.yaml:5:13 (grants.network[0])
  help: Write `- api.example.com`.
error[HF-1007]: `../secrets` has `..` in it
  --> m.yaml:6:11 (grants.files[0])
  help: Write the folder that is meant.
error[HF-1007]: `A=1` is not the name of an environment variable
  --> m.yaml:7:17 (grants.environment[0])
  help: Write each name in full: letters, digits and `_`, such as `LANG`.
error[HF-1007]: `event` is not an interface of the host that can be granted
  --> m.yaml:8:16 (grants.interfaces[0])
  help: Did you mean `events`? The interfaces are: clock, random, state, messages, timers, ui, events, subscriptions, channels, extensions, services, agents, context, system, conversations, user-messages, answers, system-events, secrets, network, http, files, environment, results, discovery, setup.
error[HF-1007]: `shutdown` is not an interface of the host that can be granted
  --> m.yaml:8:23 (grants.interfaces[1])
  help: The interfaces are: clock, random, state, messages, timers, ui, events, subscriptions, channels, extensions, services, agents, context, system, conversations, user-messages, answers, system-events, secrets, network, http, files, environment, results, discovery, setup.",
        ),
        (
            "entrypoint: ../other/main.wasm\n",
            "error[HF-1007]: `../other/main.wasm` lies outside of the extension's folder
  --> m.yaml:4:13 (entrypoint)
  help: Name a file in the folder, or `module:Class`.",
        ),
        (
            "schedules: [{name: n, cron: '* * * * *'}, {name: n, cron: '0 * * * *'}]\n",
            "error[HF-1007]: there are two schedules with the name `n`
  --> m.yaml:4:43 (schedules[1])
  help: Give each schedule a name of its own; `task` may be the same.",
        ),
        (
            "command: run 'it\n",
            "error[HF-1007]: `command` has a quote or a backslash with nothing to go with it
  --> m.yaml:4:10 (command)
  help: Write the words as a list: `command: [program, argument]`.",
        ),
        (
            "command: []\n",
            "error[HF-1007]: `command` names no program
  --> m.yaml:4:10 (command)
  help: Write the program and its arguments: `command: [program, argument]`.",
        ),
        (
            "mcp: {command: a, url: 'https://b'}\n",
            "error[HF-1007]: `mcp` has both `command` and `url`
  --> m.yaml:4:6 (mcp)
  help: Keep `command` to start a server, or `url` to reach one.",
        ),
        (
            "mcp: {url: localhost}\n",
            "error[HF-1007]: `localhost` is not an address
  --> m.yaml:4:12 (mcp.url)
  help: Write one that begins with `https://` or `http://`.",
        ),
        (
            "hooks: [{point: tool_gate, matcher: {arguments: {command: rm}}}]\n",
            "error[HF-1007]: `command` is not a JSON pointer
  --> m.yaml:4:59 (hooks[0].matcher.arguments.command)
  help: Write `/command: pattern`.",
        ),
        (
            "config: {a: .nan}\n",
            "error[HF-1007]: `config.a` is `.nan`, a number that JSON cannot represent
  --> m.yaml:4:13 (config.a)
  help: Put it in quotes: `a: \".nan\"`.",
        ),
        (
            "config: {a: !env HOME}\n",
            "error[HF-1007]: unsupported tag `!env`
  --> m.yaml:4:18 (config.a)
  help: Remove the tag and write the value itself; a text that begins with `!` must be quoted.",
        ),
        (
            "version: v2\n",
            "warning[HF-1007]: `v2` is not a semantic version
  --> m.yaml:4:10 (version)
  help: Write three numbers: `version: \"1.0.0\"`.",
        ),
        (
            "tools: {a: {timeout_ms: 0, concurrency: -1}}\n",
            "error[HF-1007]: `tools.a.timeout_ms` is 0, which is out of range
  --> m.yaml:4:25 (tools.a.timeout_ms)
  help: Use a whole number from 1 to 4294967295.
error[HF-1007]: `tools.a.concurrency` is -1, which is out of range
  --> m.yaml:4:41 (tools.a.concurrency)
  help: Use a whole number from 1 to 4294967295.",
        ),
        (
            "config: &a {b: *a}\n",
            "error[HF-1002]: the file is not valid YAML: an alias refers to a node that contains it
  --> m.yaml:4:16 (config.b)
  help: Write the value out.",
        ),
    ]);
}

#[test]
fn ids_that_cannot_be() {
    check(&[
        (
            "{id: tools, name: A, agent: {}}",
            "error[HF-1007]: the id `tools` is reserved
  --> m.yaml:1:6 (id)
  help: Choose another, such as `id: my_tools`.",
        ),
        (
            "{id: channels, name: A, agent: {}}",
            "error[HF-1007]: the id `channels` is reserved
  --> m.yaml:1:6 (id)
  help: Choose another, such as `id: my_channels`.",
        ),
        (
            "{id: My Extension!, name: A, agent: {}}",
            "error[HF-1007]: `My Extension!` cannot be an extension's id
  --> m.yaml:1:6 (id)
  help: An id has at most 64 small letters, digits, `_` and `-`, and begins with a letter: write `id: my_extension`.",
        ),
        (
            "{id: 42, name: A, agent: {}}",
            "error[HF-1007]: `42` cannot be an extension's id
  --> m.yaml:1:6 (id)
  help: An id has at most 64 small letters, digits, `_` and `-`, and begins with a letter.",
        ),
        (
            "{id: ../up, name: ' ', agent: {}}",
            "error[HF-1007]: `../up` cannot be an extension's id
  --> m.yaml:1:6 (id)
  help: An id has at most 64 small letters, digits, `_` and `-`, and begins with a letter: write `id: up`.
error[HF-1007]: `name` is blank
  --> m.yaml:1:19 (name)
  help: Write something there, or leave the field out.",
        ),
    ]);
}

#[test]
fn everything_at_once() {
    check(&[(
        "id: Bad Id\nnmae: A\ndepends_on: kv\nagent:\n  integration_mode: handof\n  limits: {max_turns: 0, max_tokens: 5}\nenabled: maybe\ntype: agent\n",
        "error[HF-1006]: `name` is missing
  --> m.yaml:1:1 (name)
  help: Add `name: My Extension`.
error[HF-1007]: `Bad Id` cannot be an extension's id
  --> m.yaml:1:5 (id)
  help: An id has at most 64 small letters, digits, `_` and `-`, and begins with a letter: write `id: bad_id`.
error[HF-1003]: `depends_on` should be a list, but is the text `kv`
  --> m.yaml:3:13 (depends_on)
  help: Write `depends_on: [kv]`.
error[HF-1007]: `handof` is not a value of `agent.integration_mode`
  --> m.yaml:5:21 (agent.integration_mode)
  help: Did you mean `handoff`? Use one of `tool`, `handoff`.
error[HF-1007]: `agent.limits.max_turns` is 0, which is out of range
  --> m.yaml:6:23 (agent.limits.max_turns)
  help: Use a whole number from 1 to 4294967295.
error[HF-1003]: `enabled` should be `true` or `false`, but is the text `maybe`
  --> m.yaml:7:10 (enabled)
  help: Write `enabled: true` or `enabled: false`.
warning[HF-1004]: unknown field `nmae`
  --> m.yaml:2:1 (nmae)
  help: Did you mean `name`?
warning[HF-1004]: unknown field `max_tokens` in `agent.limits`
  --> m.yaml:6:26 (agent.limits.max_tokens)
  help: Did you mean `max_turns`?
warning[HF-1004]: unknown field `type`
  --> m.yaml:8:1 (type)
  help: Remove it: roles are found by what the extension exports, not declared.",
    )]);
}
