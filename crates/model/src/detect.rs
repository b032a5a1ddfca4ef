//! Detects what a machine offers: keys in the environment and local model servers.
//!
//! The environment is a function, so that tests need not change the real one. Keys themselves are never returned, only where they
//! are.

#[cfg(test)]
mod detect_tests;

use std::time::Duration;

use serde_json::Value;

use crate::provider::prepare_tls;

/// How long a local server may take to accept a connection.
const CONNECT: Duration = Duration::from_millis(200);
/// How long it may take to list its models.
const ANSWER: Duration = Duration::from_secs(1);

/// A model that can be used without further setup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetectedProvider {
    /// The provider, as [`crate::provider::ProviderSettings::provider`] has it.
    pub provider: &'static str,
    /// A sensible model of it; empty where a server runs that has none yet.
    pub model: String,
    /// What else a local server has.
    pub models: Vec<String>,
    /// Its address, if not the default.
    pub base_url: Option<String>,
    /// The variable that holds its key.
    pub key_env: Option<&'static str>,
}

/// A provider that is known by its key.
struct Known {
    provider: &'static str,
    keys: &'static [&'static str],
    model: &'static str,
    base_url: Option<&'static str>,
}

/// Providers in the order in which they are proposed. The models are those that the library which speaks to the providers shows
/// as examples, or aliases of the latest version.
const KNOWN: &[Known] = &[
    Known::new("anthropic", &["ANTHROPIC_API_KEY"], "claude-haiku-5-5").at("ANTHROPIC_BASE_URL"),
    Known::new("openai", &["OPENAI_API_KEY"], "gpt-6-luna").at("OPENAI_BASE_URL"),
    Known::new("gemini", &["GEMINI_API_KEY", "GOOGLE_API_KEY"], "gemini-flash-latest"),
    Known::new("openrouter", &["OPENROUTER_API_KEY", "OPEN_ROUTER_API_KEY"], "openrouter/auto"),
    Known::new("groq", &["GROQ_API_KEY"], "openai/gpt-oss-20b"),
    Known::new("deepseek", &["DEEPSEEK_API_KEY"], "deepseek-flash"),
    Known::new("mistral", &["MISTRAL_API_KEY"], "mistral-large-latest"),
    Known::new("xai", &["XAI_API_KEY"], "grok-4.7"),
    Known::new("together", &["TOGETHER_API_KEY"], "openai/gpt-oss-120b"),
    Known::new("fireworks", &["FIREWORKS_API_KEY"], "gpt-oss-120b"),
    Known::new("zai", &["ZAI_API_KEY"], "glm-5.3-flash"),
    Known::new("aliyun", &["ALIYUN_API_KEY"], "qwen-plus"),
];

impl Known {
    const fn new(provider: &'static str, keys: &'static [&'static str], model: &'static str) -> Self {
        Self { provider, keys, model, base_url: None }
    }

    const fn at(mut self, variable: &'static str) -> Self {
        self.base_url = Some(variable);
        self
    }
}

/// What there is: providers with a key first, then servers on this machine that answer.
pub async fn detect(env: impl Fn(&str) -> Option<String>) -> Vec<DetectedProvider> {
    let set = |name: &str| env(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
    let mut found: Vec<DetectedProvider> = KNOWN
        .iter()
        .filter_map(|known| {
            let key = known.keys.iter().copied().find(|key| set(key).is_some())?;
            let base_url = known.base_url.and_then(set);
            Some(DetectedProvider {
                provider: known.provider,
                model: known.model.to_owned(),
                models: Vec::new(),
                base_url,
                key_env: Some(key),
            })
        })
        .collect();
    let ollama = ollama_address(set("OLLAMA_HOST").as_deref());
    let llama_cpp = format!("http://127.0.0.1:{}", set("LLAMA_ARG_PORT").as_deref().unwrap_or("8080"));
    let (ollama, llama_cpp) = futures_util::join!(
        probe("ollama", ollama.clone(), format!("{ollama}/api/tags"), "/models", "name"),
        probe(
            "openai_compatible",
            format!("{llama_cpp}/v1"),
            format!("{llama_cpp}/v1/models"),
            "/data",
            "id"
        ),
    );
    found.extend(ollama);
    found.extend(llama_cpp);
    found
}

/// The address in the forms that the variable may have: a host, a host and a port, or a whole address.
fn ollama_address(host: Option<&str>) -> String {
    let host = host.unwrap_or("127.0.0.1");
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let rest = rest.trim_end_matches('/').replacen("0.0.0.0", "127.0.0.1", 1);
    let has_port = rest.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if has_port || host.contains("://") {
        format!("{scheme}://{rest}")
    } else {
        format!("{scheme}://{rest}:11434")
    }
}

/// A server that lists its models here, if one does.
async fn probe(
    provider: &'static str,
    base_url: String,
    list: String,
    place: &'static str,
    name: &'static str,
) -> Option<DetectedProvider> {
    prepare_tls();
    let client = reqwest::Client::builder()
        .connect_timeout(CONNECT)
        .timeout(ANSWER)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
        .ok()?;
    let answer: Value = client.get(list).send().await.ok()?.error_for_status().ok()?.json().await.ok()?;
    let listed = answer.pointer(place)?.as_array()?.iter();
    let models: Vec<String> =
        listed.filter_map(|model| model.get(name)?.as_str().map(str::to_owned)).collect();
    let model = models.first().cloned().unwrap_or_default();
    Some(DetectedProvider { provider, model, models, base_url: Some(base_url), key_env: None })
}
