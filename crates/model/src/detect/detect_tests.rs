//! A made-up environment in, what is found out.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::{DetectedProvider, detect, ollama_address};

/// An environment in which no local server is found: nothing listens on port 1.
fn quiet(name: &str) -> Option<String> {
    match name {
        "OLLAMA_HOST" => Some("127.0.0.1:1".to_owned()),
        "LLAMA_ARG_PORT" => Some("1".to_owned()),
        _ => None,
    }
}

/// A server that gives everyone this answer, and its port.
async fn server(body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut asked = [0; 1024];
            drop(stream.read(&mut asked).await);
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
            drop(stream.write_all(answer.as_bytes()).await);
        }
    });
    port.to_string()
}

#[tokio::test]
async fn an_empty_machine_has_nothing() {
    assert_eq!(detect(quiet).await, []);
}

#[tokio::test]
async fn keys_are_found_by_name_and_never_returned() {
    let env = |name: &str| match name {
        "ANTHROPIC_API_KEY" => Some("sk-planted-secret".to_owned()),
        "ANTHROPIC_BASE_URL" => Some("http://gateway.local".to_owned()),
        "OPENAI_API_KEY" => Some("  ".to_owned()),
        "GOOGLE_API_KEY" => Some("sk-planted-secret".to_owned()),
        "OPENROUTER_API_KEY" => Some("sk-planted-secret".to_owned()),
        other => quiet(other),
    };
    let all = detect(env).await;
    let short: Vec<_> =
        all.iter().map(|found| (found.provider, found.key_env, found.base_url.as_deref())).collect();
    let expected = [
        ("anthropic", Some("ANTHROPIC_API_KEY"), Some("http://gateway.local")),
        ("gemini", Some("GOOGLE_API_KEY"), None),
        ("openrouter", Some("OPENROUTER_API_KEY"), None),
    ];
    assert_eq!(short, expected);
    assert!(all.iter().all(|found| !found.model.is_empty()));
    assert!(!format!("{all:?}").contains("planted"));
}

#[tokio::test]
async fn local_servers_say_what_they_have() {
    let ollama = server(r#"{"models":[{"name":"llama3.2:3b"},{"name":"qwen3:8b"}]}"#).await;
    let llama_cpp = server(r#"{"object":"list","data":[{"id":"gemma.gguf"}]}"#).await;
    let env = |name: &str| match name {
        "OLLAMA_HOST" => Some(format!("0.0.0.0:{ollama}")),
        "LLAMA_ARG_PORT" => Some(llama_cpp.clone()),
        _ => None,
    };
    let expected = [
        DetectedProvider {
            provider: "ollama",
            model: "llama3.2:3b".to_owned(),
            models: vec!["llama3.2:3b".to_owned(), "qwen3:8b".to_owned()],
            base_url: Some(format!("http://127.0.0.1:{ollama}")),
            key_env: None,
        },
        DetectedProvider {
            provider: "openai_compatible",
            model: "gemma.gguf".to_owned(),
            models: vec!["gemma.gguf".to_owned()],
            base_url: Some(format!("http://127.0.0.1:{llama_cpp}/v1")),
            key_env: None,
        },
    ];
    assert_eq!(detect(env).await, expected);
}

#[tokio::test]
async fn something_else_on_the_port_is_no_model_server() {
    let other = server("[\"hello\"]").await;
    let env = |name: &str| match name {
        "LLAMA_ARG_PORT" => Some(other.clone()),
        other => quiet(other),
    };
    assert_eq!(detect(env).await, []);
}

#[test]
fn addresses_are_understood_as_people_write_them() {
    let table = [
        (None, "http://127.0.0.1:11434"),
        (Some("0.0.0.0"), "http://127.0.0.1:11434"),
        (Some("box.lan"), "http://box.lan:11434"),
        (Some("box.lan:9"), "http://box.lan:9"),
        (Some("https://box.lan/"), "https://box.lan"),
    ];
    for (host, expected) in table {
        assert_eq!(ollama_address(host), expected);
    }
}
