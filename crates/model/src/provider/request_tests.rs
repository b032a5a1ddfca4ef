//! What a provider is sent, and which settings are refused.

use genai::adapter::AdapterKind;
use holdfast_contract::content::Content;
use holdfast_contract::message::Message;
use serde_json::{Value, json};

use super::request::{Names, build};
use super::{Provider, ProviderSettings, providers, usual_key, with_usual_path};
use crate::testing::{ask, calls, result, tool, user};

fn sent(kind: AdapterKind, messages: Vec<Message>) -> Value {
    let tools =
        vec![tool("fs.read", "Reads.", json!({ "$schema": "x" })), tool("fs/read", "Reads too.", json!({}))];
    let mut ask = ask(messages, tools);
    ask.context = vec![Content::text("It is Sunday."), Content::text(" ")].into();
    serde_json::to_value(build(&ask, kind, &Names::of(&ask.tool_names))).unwrap()
}

#[test]
fn instructions_context_and_tools_are_told() {
    let request = sent(AdapterKind::OpenAI, vec![user("hello")]);
    assert_eq!(request["system"], "Be brief.\n\n---\n\nIt is Sunday.");
    let names: Vec<&str> =
        request["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["fs_read", "fs_read_2"],
        "a name that providers refuse is changed, and stays one tool's own"
    );
    assert_eq!(request["tools"][0]["schema"], json!({ "type": "object", "properties": {} }));
}

#[test]
fn a_call_that_comes_back_finds_its_tool() {
    let ask = ask(vec![], vec![tool("fs.read", "", json!({})), tool("fs/read", "", json!({}))]);
    let names = Names::of(&ask.tool_names);
    let back = ["fs_read", "fs_read_2", "made_up"].map(|name| names.back(name).to_string());
    assert_eq!(back, ["fs.read", "fs/read", "made_up"]);
}

#[test]
fn a_tool_that_is_not_shown_keeps_its_wire_name() {
    let mut ask = ask(vec![], vec![tool("fs.read", "", json!({})), tool("fs/read", "", json!({}))]);
    ask.tools.remove(0);
    let request = build(&ask, AdapterKind::Anthropic, &Names::of(&ask.tool_names));
    let names: Vec<String> = request.tools.unwrap().iter().map(|tool| tool.name.to_string()).collect();
    assert_eq!(names, ["fs_read_2"], "the name does not depend on which tools are shown");
}

#[test]
fn results_follow_their_calls_and_notes_follow_results() {
    let conversation = || {
        vec![
            user("read both"),
            calls(&[("a", "fs.read", json!({ "n": 1 })), ("b", "fs.read", Value::Null)]),
            Message::Note { text: "be quick".into() },
            result("a", "one", false),
            result("b", "two", false),
        ]
    };
    let roles = |kind| -> Vec<String> {
        let request = sent(kind, conversation());
        request["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| message["role"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(roles(AdapterKind::Anthropic), ["User", "Assistant", "Tool", "User"]);
    assert_eq!(roles(AdapterKind::Ollama), ["User", "Assistant", "Tool", "Tool", "User"]);
    let request = sent(AdapterKind::Anthropic, conversation());
    assert!(request["messages"][3].to_string().contains("<note>"), "{request:#}");
    assert!(request["messages"][2].to_string().contains("\"fn_name\":\"fs_read\""), "{request:#}");
}

#[test]
fn arguments_that_were_no_object_go_back_as_one() {
    let request = sent(AdapterKind::Anthropic, vec![user("go"), calls(&[("a", "fs.read", json!("{\"pa"))])]);
    let call = &request["messages"][1]["content"][0]["ToolCall"];
    assert_eq!(call["fn_arguments"], json!({ "not_understood": "{\"pa" }), "{request:#}");
}

#[test]
fn without_tools_calls_are_told_in_words() {
    let conversation = vec![
        user("read it"),
        calls(&[("a", "fs.read", json!({ "path": "a" }))]),
        result("a", "the text", false),
        user("Summarise."),
    ];
    let ask = ask(conversation, vec![]);
    let request =
        serde_json::to_value(build(&ask, AdapterKind::Anthropic, &Names::of(&ask.tool_names))).unwrap();
    let text = request["messages"].to_string();
    assert!(!text.contains("ToolCall") && !text.contains("ToolResponse"), "{text}");
    assert!(text.contains("called fs.read with") && text.contains("the text"), "{text}");
    assert_eq!(request.get("tools"), None);
}

#[test]
fn settings_that_cannot_be_are_refused_with_help() {
    let base = || ProviderSettings {
        name: "default".to_owned(),
        provider: "openai".to_owned(),
        model: "gpt-4o".to_owned(),
        key: Some("sk-planted".into()),
        ..ProviderSettings::default()
    };
    let table = [
        (ProviderSettings { provider: "opnai".to_owned(), ..base() }, "HF-5008", "Did you mean `openai`?"),
        (
            ProviderSettings { provider: "openai_compatible".to_owned(), ..base() },
            "HF-5009",
            "models.default.base_url",
        ),
        (ProviderSettings { model: " ".to_owned(), ..base() }, "HF-5009", "models.default.model"),
        (ProviderSettings { key: None, ..base() }, "HF-5003", "export OPENAI_API_KEY="),
        (ProviderSettings { base_url: Some("ftp://x".to_owned()), ..base() }, "HF-5009", "base_url"),
        (ProviderSettings { base_url: Some("http://me:pw@x".to_owned()), ..base() }, "HF-5009", "base_url"),
        (ProviderSettings { price_in: Some(-1.0), ..base() }, "HF-5009", "price_in"),
        (ProviderSettings { reasoning: Some("much".to_owned()), ..base() }, "HF-5009", "reasoning"),
    ];
    for (settings, code, help) in table {
        let shown = format!("{settings:?}");
        let said = Provider::new(settings).unwrap_err().to_string();
        assert!(said.contains(code) && said.contains(help), "{said}");
        assert!(!said.contains("planted") && !shown.contains("planted"), "{said} {shown}");
    }
    assert!(Provider::new(base()).is_ok());
}

#[test]
fn a_base_without_a_path_gets_the_usual_one() {
    let table = [
        ("http://gateway", "https://api.anthropic.com/v1/", "http://gateway/v1/"),
        ("http://gateway/llm", "https://api.anthropic.com/v1/", "http://gateway/llm/"),
        ("http://box:11434/", "http://localhost:11434/", "http://box:11434/"),
    ];
    for (base, usual, expected) in table {
        assert_eq!(with_usual_path(&base.parse().unwrap(), usual), expected);
    }
}

#[test]
fn providers_are_listed_with_their_keys() {
    let all = providers();
    for name in ["openai", "anthropic", "gemini", "ollama", "openai_compatible", "openrouter"] {
        assert!(all.contains(&name), "{name}");
    }
    assert_eq!(usual_key("anthropic"), Some("ANTHROPIC_API_KEY"));
    assert_eq!(usual_key("ollama"), None);
}

// Finding B7.
#[test]
fn a_model_is_told_with_which_arguments_a_call_ran_that_the_user_changed() {
    let edited = |text: &str| {
        let mut message = result("a", text, false);
        if let Message::Tool { edited, .. } = &mut message {
            *edited = Some(Content::new(json!({ "command": "echo edited" })));
        }
        message
    };
    let conversation =
        || vec![user("go"), calls(&[("a", "fs.read", json!({ "command": "echo one" }))]), edited("edited")];
    let told = "[The user changed the arguments of this call before it ran. \
                It ran with: {\\\"command\\\":\\\"echo edited\\\"}]\\nedited";
    for kind in [
        AdapterKind::OpenAI,
        AdapterKind::OpenAIResp,
        AdapterKind::Anthropic,
        AdapterKind::Gemini,
        AdapterKind::Ollama,
    ] {
        let request = sent(kind, conversation()).to_string();
        assert!(request.contains(told), "{kind:?}: {request}");
        assert!(request.contains("echo one"), "{kind:?}: its own call stays as it was: {request}");
    }
    // A request without tools tells of calls in words.
    let ask = ask(conversation(), Vec::new());
    let request =
        serde_json::to_string(&build(&ask, AdapterKind::OpenAI, &Names::of(&ask.tool_names))).unwrap();
    assert!(request.contains(told), "{request}");
}

// Finding A3.
#[test]
fn the_parameters_of_an_agent_reach_the_provider() {
    let mut ask = ask(vec![user("hello")], Vec::new());
    let usual = genai::chat::ChatOptions::default().with_capture_usage(true);
    assert_eq!(super::request::options(&ask, &usual).temperature, None);
    let parameters =
        json!({ "temperature": 0.2, "top_p": 0.9, "max_tokens": 300, "seed": 7, "stop": ["END"] });
    ask.parameters = parameters.as_object().unwrap().clone();
    let options = super::request::options(&ask, &usual);
    assert_eq!((options.temperature, options.top_p, options.max_tokens), (Some(0.2), Some(0.9), Some(300)));
    assert_eq!((options.seed, options.stop_sequences.clone()), (Some(7), vec!["END".to_owned()]));
    assert_eq!(options.capture_usage, Some(true), "the model's own stay");
}
