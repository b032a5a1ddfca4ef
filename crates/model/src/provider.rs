//! Models over a network, each through its provider's own API.
//!
//! [`Provider`] is one configured model. How a request is put together is in `request`, what a failure means in `failure`,
//! reasoning that a provider wants to see again in `reasoning`, and what bounds an answer in `relay`. Nothing here tries again: that is the kernel's, and recorded.

mod attached;
mod failure;
mod reasoning;
mod relay;
mod request;
#[cfg(test)]
mod request_tests;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use genai::adapter::AdapterKind;
use genai::chat::{ChatOptions, ChatStreamEvent, ReasoningEffort, StreamEnd};
use genai::resolver::{AuthData, Endpoint, ServiceTargetResolver};
use genai::{Client, ModelIden, ServiceTarget};
use holdfast_contract::content::Content;
use holdfast_contract::message::{AskedCall, Usage};
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::session_frames::{ModelFailed, ModelReturned};
use holdfast_contract::wire::Later;
use holdfast_yaml::nearest;
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};

use self::failure::Failures;
use self::relay::{EventEnd, Relay, RelayFailure, RelayTarget};
pub use self::relay::{MAX_EVENT_BYTES, MAX_STREAM_BYTES};
use self::request::Names;
use crate::{Delta, Deltas, Model, ModelRequest};

/// The provider of a server that has the format of another, at an address of its own.
pub const COMPATIBLE: &str = "openai_compatible";

/// The timeout for connecting.
const CONNECT: Duration = Duration::from_secs(10);
/// The idle timeout in the middle of an answer.
const SILENCE: Duration = Duration::from_secs(120);
/// The most bytes of one answer: text, reasoning and the arguments of calls together.
pub const MAX_ANSWER_BYTES: usize = 16 << 20;
/// Other names of providers.
const ALIASES: &[(&str, AdapterKind)] = &[
    (COMPATIBLE, AdapterKind::OpenAI),
    ("openrouter", AdapterKind::OpenRouter),
    ("google", AdapterKind::Gemini),
];

/// The settings of a model.
#[derive(Clone, Debug, Default)]
pub struct ProviderSettings {
    /// Its name in the settings.
    pub name: String,
    /// The provider: `openai`, `anthropic`, `gemini`, `ollama`, `openai_compatible`, …; see [`providers`].
    pub provider: String,
    /// The model as the provider calls it.
    pub model: String,
    /// Where the provider is, if not where it always is. Without a path, the provider's usual path counts.
    pub base_url: Option<String>,
    /// The key.
    pub key: Option<SecretString>,
    /// Where the key comes from, for messages: `OPENAI_API_KEY`.
    pub key_from: Option<String>,
    /// The reasoning effort: `minimal`, `low`, `medium`, `high` or a budget in tokens. Unset leaves it to the provider.
    pub reasoning: Option<String>,
    /// Dollars per million tokens read.
    pub price_in: Option<f64>,
    /// Dollars per million tokens written.
    pub price_out: Option<f64>,
}

/// The names that [`ProviderSettings::provider`] may have.
pub fn providers() -> Vec<&'static str> {
    let mut names: Vec<_> = ALIASES.iter().map(|(name, _)| *name).collect();
    names.extend(AdapterKind::all().iter().map(AdapterKind::as_lower_str));
    names.sort_unstable();
    names
}

/// The variable that a provider's key is usually in; none for one that needs no key or is unknown.
pub fn usual_key(provider: &str) -> Option<&'static str> {
    match provider {
        "openrouter" | "open_router" => Some("OPENROUTER_API_KEY"),
        COMPATIBLE => None,
        other => kind_of(other)?.default_key_env_name(),
    }
}

/// Installs the TLS provider. Idempotent.
pub fn prepare_tls() {
    // An error means that a default is installed already.
    drop(rustls::crypto::ring::default_provider().install_default());
}

/// A model over a network.
#[derive(Clone)]
pub struct Provider {
    inner: Arc<Inner>,
}

struct Inner {
    /// The client of the library is made for each request, with a relay of its own.
    relay: Arc<RelayTarget>,
    resolver: ServiceTargetResolver,
    target: ModelIden,
    options: ChatOptions,
    failures: Failures,
    prices: (f64, f64),
    price_known: bool,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Provider({})", self.inner.target)
    }
}

impl Provider {
    /// A model with these settings. No connection is made before the first request.
    pub fn new(settings: ProviderSettings) -> Result<Self, Problem> {
        let kind = kind(&settings)?;
        let base = settings.base_url.as_deref().map(|text| base_url(&settings, text)).transpose()?;
        if settings.provider == COMPATIBLE && base.is_none() {
            return Err(wrong(
                &settings,
                "base_url",
                "is missing",
                "Say where the server is: `http://127.0.0.1:8080/v1`.",
            ));
        }
        if settings.model.trim().is_empty() {
            return Err(wrong(
                &settings,
                "model",
                "is missing",
                "Write the model's name as the provider has it.",
            ));
        }
        let auth = auth(&settings, kind)?;
        let prices = (
            price(&settings, "price_in", settings.price_in)?,
            price(&settings, "price_out", settings.price_out)?,
        );
        // A model that runs here costs nothing.
        let price_known =
            kind == AdapterKind::Ollama || settings.price_in.is_some() && settings.price_out.is_some();
        let options = options(&settings, kind)?;
        prepare_tls();
        // No redirects: a key in a header must not travel to another host. No proxies: the environment must not reroute it.
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT)
            .read_timeout(SILENCE)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .tcp_nodelay(true)
            .user_agent(concat!("holdfast/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| {
                wrong(&settings, "provider", &format!("cannot be reached from here: {error}"), "")
            })?;
        let secure = Arc::new(AtomicBool::new(false));
        let by_tls = secure.clone();
        let resolver = ServiceTargetResolver::from_resolver_fn(
            move |target: ServiceTarget| -> Result<ServiceTarget, genai::resolver::Error> {
                let address = match &base {
                    Some(base) => with_usual_path(base, target.endpoint.base_url()),
                    None => target.endpoint.base_url().to_owned(),
                };
                // The relay encrypts what goes to the provider.
                let endpoint = match address.strip_prefix("https://") {
                    Some(rest) => format!("http://{rest}"),
                    None => address.clone(),
                };
                by_tls.store(address.starts_with("https://"), Ordering::Relaxed);
                let endpoint = Endpoint::from_owned(endpoint);
                Ok(ServiceTarget { endpoint, auth: auth.clone(), model: target.model })
            },
        );
        let event_end = match kind {
            AdapterKind::Ollama | AdapterKind::OllamaCloud | AdapterKind::Cohere => EventEnd::Line,
            _ => EventEnd::EmptyLine,
        };
        let relay = Arc::new(RelayTarget { http, secure, event_end });
        let target = ModelIden::new(kind, settings.model.clone());
        let failures = Failures::new(&settings);
        let inner = Inner { relay, resolver, target, options, failures, prices, price_known };
        Ok(Self { inner: Arc::new(inner) })
    }
}

impl Model for Provider {
    fn complete(&self, ask: Box<ModelRequest>, deltas: Deltas) -> Later<Result<ModelReturned, ModelFailed>> {
        let inner = self.inner.clone();
        Box::pin(async move { inner.complete(&ask, &deltas).await })
    }

    fn price_known(&self) -> bool {
        self.inner.price_known
    }
}

impl Inner {
    async fn complete(&self, ask: &ModelRequest, deltas: &Deltas) -> Result<ModelReturned, ModelFailed> {
        let names = Names::of(&ask.tool_names);
        let request = request::build(ask, self.target.adapter_kind, &names);
        let relay = Relay::start(&self.relay).map_err(|error| self.failures.no_relay(&error))?;
        // What the relay knows is the reason; the library only sees a connection that ends.
        let failed = |error| match relay.failure() {
            Some(failure) => self.failed(&failure),
            None => self.failures.of(error),
        };
        let client = Client::builder()
            .with_reqwest(relay.client.clone())
            .with_service_target_resolver(self.resolver.clone())
            .build()
            .map_err(failed)?;
        let options = request::options(ask, &self.options);
        let answer = client.exec_chat_stream(self.target.clone(), request, Some(&options)).await;
        let mut stream = answer.map_err(failed)?.stream;
        let mut size = AnswerSize {
            repeats_calls: self.target.adapter_kind == AdapterKind::Anthropic,
            ..AnswerSize::default()
        };
        while let Some(event) = stream.next().await {
            let event = event.map_err(failed)?;
            size.add(&event);
            if size.bytes > MAX_ANSWER_BYTES {
                return Err(self.failures.too_long(MAX_ANSWER_BYTES));
            }
            match event {
                ChatStreamEvent::Chunk(chunk) => deltas(Delta::Text(&chunk.content)),
                ChatStreamEvent::ReasoningChunk(chunk) => deltas(Delta::Reasoning(&chunk.content)),
                ChatStreamEvent::End(end) => {
                    if let Some(failure) = relay.failure() {
                        return Err(self.failed(&failure));
                    }
                    if self.is_whole(&end) {
                        return Ok(self.returned(end, &names));
                    }
                    break;
                }
                _ => {}
            }
        }
        Err(relay.failure().map_or_else(|| self.failures.broken_off(), |failure| self.failed(&failure)))
    }

    fn failed(&self, failure: &RelayFailure) -> ModelFailed {
        match failure {
            RelayFailure::Transport(error) => self.failures.transport(error),
            RelayFailure::TooLong(limit) => self.failures.too_long(*limit),
        }
    }

    /// Whether the provider itself ended the answer. For some adapters, the end of the stream counts as the end of the answer, and only
    /// what comes with a regular end tells them apart.
    fn is_whole(&self, end: &StreamEnd) -> bool {
        match self.target.adapter_kind {
            AdapterKind::Gemini => end.captured_stop_reason.is_some(),
            AdapterKind::Ollama | AdapterKind::OllamaCloud => end.captured_usage.is_some(),
            AdapterKind::OpenAIResp => end.captured_response_id.is_some(),
            _ => true,
        }
    }

    fn returned(&self, end: StreamEnd, names: &Names) -> ModelReturned {
        let usage = self.usage(&end);
        let reasoning = reasoning::keep(self.target.adapter_kind, &end);
        let parts = end.captured_content.map(|content| content.into_parts()).unwrap_or_default();
        let (mut text, mut calls) = (String::new(), Vec::new());
        for part in parts {
            match part {
                genai::chat::ContentPart::Text(more) => text.push_str(&more),
                genai::chat::ContentPart::ToolCall(call) => calls.push(AskedCall {
                    model_id: call.call_id.into(),
                    tool: names.back(&call.fn_name),
                    arguments: Content::new(request::arguments(call.fn_arguments)),
                }),
                _ => {}
            }
        }
        ModelReturned { text: Content::text(text), reasoning, calls, usage }
    }

    fn usage(&self, end: &StreamEnd) -> Usage {
        let count = |tokens: Option<i32>| tokens.and_then(|tokens| u64::try_from(tokens).ok()).unwrap_or(0);
        let used = end.captured_usage.as_ref();
        let input_tokens = count(used.and_then(|used| used.prompt_tokens));
        let output_tokens = count(used.and_then(|used| used.completion_tokens));
        // A dollar per million tokens is a millionth of a dollar per token.
        let cost = input_tokens as f64 * self.prices.0 + output_tokens as f64 * self.prices.1;
        Usage { input_tokens, output_tokens, cost_micros: cost.ceil() as u64 }
    }
}

/// How large an answer is, counted while it comes in.
#[derive(Default)]
struct AnswerSize {
    bytes: usize,
    /// Whether each piece of a call repeats the pieces before it.
    repeats_calls: bool,
    /// The size of the call that is coming in, where its pieces are repeated.
    call: usize,
}

impl AnswerSize {
    fn add(&mut self, event: &ChatStreamEvent) {
        self.bytes += match event {
            ChatStreamEvent::Chunk(chunk)
            | ChatStreamEvent::ReasoningChunk(chunk)
            | ChatStreamEvent::ThoughtSignatureChunk(chunk) => chunk.content.len(),
            ChatStreamEvent::ToolCallChunk(chunk) => {
                let length = chunk.tool_call.fn_arguments.as_str().map_or(1, str::len);
                if self.repeats_calls {
                    let before = std::mem::replace(&mut self.call, length);
                    length.checked_sub(before).unwrap_or(length)
                } else {
                    length
                }
            }
            _ => 0,
        };
    }
}

fn kind_of(provider: &str) -> Option<AdapterKind> {
    let known = || AdapterKind::all().iter().find(|kind| kind.as_lower_str() == provider).copied();
    ALIASES.iter().find(|(name, _)| *name == provider).map(|(_, kind)| *kind).or_else(known)
}

fn kind(settings: &ProviderSettings) -> Result<AdapterKind, Problem> {
    let name = settings.provider.as_str();
    let Some(kind) = kind_of(name) else {
        let all = providers();
        let what = format!("no provider `{name}` is known, as `models.{}` asks for", settings.name);
        let help = match nearest(name, all.iter().copied()) {
            Some(near) => format!("Did you mean `{near}`? There are {}.", all.join(", ")),
            None => format!("Use one of {}.", all.join(", ")),
        };
        return Err(Problem::new(Code::ProviderUnknown, what).help(help));
    };
    // Newer models are complete only behind the provider's newer API, which compatible servers seldom have.
    let newer = AdapterKind::from_model(&settings.model).ok() == Some(AdapterKind::OpenAIResp);
    if name == "openai" && newer && settings.base_url.is_none() {
        return Ok(AdapterKind::OpenAIResp);
    }
    Ok(kind)
}

fn wrong(settings: &ProviderSettings, field: &str, what: &str, help: &str) -> Problem {
    let problem = Problem::new(Code::ProviderSettings, format!("`models.{}.{field}` {what}", settings.name));
    if help.is_empty() { problem } else { problem.help(help) }
}

fn base_url(settings: &ProviderSettings, text: &str) -> Result<Url, Problem> {
    let help = "Write an address such as `https://api.example.com/v1`; a key belongs in `api_key_env`.";
    let url = Url::parse(text.trim())
        .map_err(|error| wrong(settings, "base_url", &format!("is not a valid URL: {error}"), help))?;
    let plain = url.username().is_empty() && url.password().is_none() && url.query().is_none();
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() || !plain {
        return Err(wrong(settings, "base_url", "is not a plain address of a server", help));
    }
    Ok(url)
}

fn with_usual_path(base: &Url, usual: &str) -> String {
    let mut url = base.clone();
    if matches!(url.path(), "" | "/")
        && let Ok(usual) = Url::parse(usual)
    {
        url.set_path(usual.path());
    }
    let mut text = url.to_string();
    if !text.ends_with('/') {
        text.push('/');
    }
    text
}

fn auth(settings: &ProviderSettings, kind: AdapterKind) -> Result<AuthData, Problem> {
    let key = settings.key.as_ref().map(|key| key.expose_secret().trim()).filter(|key| !key.is_empty());
    match key {
        Some(key) => Ok(AuthData::from_single(key)),
        // The field is required; a server that needs no key ignores it.
        None if settings.provider == COMPATIBLE || kind.default_key_env_name().is_none() => {
            Ok(AuthData::from_single("none"))
        }
        None => {
            let from =
                settings.key_from.as_deref().or(usual_key(&settings.provider)).unwrap_or("its variable");
            let what = format!("`models.{}` has no key for {}", settings.name, settings.provider);
            let help = format!(
                "Set it: `export {from}=…`, or name another variable in `models.{}.api_key_env`.",
                settings.name
            );
            Err(Problem::new(Code::ModelKey, what).help(help))
        }
    }
}

fn price(settings: &ProviderSettings, field: &str, price: Option<f64>) -> Result<f64, Problem> {
    match price {
        Some(price) if !price.is_finite() || price < 0.0 => {
            Err(wrong(settings, field, "is not a price", "Write dollars per million tokens: `0.25`."))
        }
        price => Ok(price.unwrap_or(0.0)),
    }
}

fn options(settings: &ProviderSettings, kind: AdapterKind) -> Result<ChatOptions, Problem> {
    let mut options = ChatOptions::default()
        .with_capture_content(true)
        .with_capture_tool_calls(true)
        .with_capture_usage(true);
    let effort = match settings.reasoning.as_deref() {
        None => None,
        Some(word) => {
            let budget = || word.parse().ok().map(ReasoningEffort::Budget);
            let effort = ReasoningEffort::from_keyword(word).or_else(budget);
            let help = "Use `minimal`, `low`, `medium`, `high` or a number of tokens.";
            Some(effort.ok_or_else(|| wrong(settings, "reasoning", &format!("cannot be `{word}`"), help))?)
        }
    };
    // Asking these for their reasoning is an error where the model has none or the account may not see it, so it is done for those
    // who want it. Signatures on calls come all the same.
    let on_demand =
        [AdapterKind::Gemini, AdapterKind::GeminiIx, AdapterKind::Vertex, AdapterKind::OpenAIResp];
    options = options.with_capture_reasoning_content(effort.is_some() || !on_demand.contains(&kind));
    Ok(match effort {
        Some(effort) => options.with_reasoning_effort(effort),
        None => options,
    })
}
