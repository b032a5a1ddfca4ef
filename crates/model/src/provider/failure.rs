//! What a provider's failure means: its code, whether asking again may help, and a message for the user. None of them contains the key.

use genai::{Error, webc};
use holdfast_contract::ids::Millis;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::session_frames::ModelFailed;
use holdfast_contract::text::one_line;
use reqwest::header::HeaderMap;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::{ProviderSettings, usual_key};

/// The maximal length of a provider's own message in an error.
const MAX_EXCERPT_CHARS: usize = 300;

/// Turns failures of one provider into faults.
pub(super) struct Failures {
    provider: String,
    model: String,
    place: String,
    key_from: String,
    key: Option<SecretString>,
}

/// A response with an error status.
struct Answer<'e> {
    status: u16,
    body: &'e str,
    headers: Option<&'e HeaderMap>,
}

impl Failures {
    pub(super) fn new(settings: &ProviderSettings) -> Self {
        let named = settings.key_from.clone().or_else(|| usual_key(&settings.provider).map(str::to_owned));
        Self {
            provider: settings.provider.clone(),
            model: settings.model.clone(),
            place: settings.base_url.clone().unwrap_or_else(|| settings.provider.clone()),
            key_from: named.unwrap_or_else(|| format!("`models.{}.api_key_env`", settings.name)),
            key: settings.key.clone(),
        }
    }

    /// The answer was truncated.
    pub(super) fn broken_off(&self) -> ModelFailed {
        self.failed(
            Code::ModelInterrupted,
            true,
            format!("{} broke off in the middle of its answer", self.provider),
        )
    }

    /// The answer has more than may be kept of one. Asking again would bring the same.
    pub(super) fn too_long(&self, limit: usize) -> ModelFailed {
        let what = format!("the answer of {} has more than {} MiB", self.provider, limit >> 20);
        self.failed(Code::ModelAnswerSize, false, what)
    }

    pub(super) fn of(&self, error: Error) -> ModelFailed {
        if let Some(answer) = answer_in(&error) {
            return self.status(&answer);
        }
        match &error {
            Error::WebStream { error, .. } => self.transport(error.as_ref()),
            Error::WebModelCall { webc_error, .. } | Error::WebAdapterCall { webc_error, .. } => {
                self.transport(webc_error)
            }
            Error::ChatResponse { body, .. } => self.reported(body),
            Error::StreamParse { serde_error, .. } => {
                let what = format!("{} sent something that cannot be read: {serde_error}", self.provider);
                self.failed(Code::ModelInterrupted, true, what)
            }
            Error::ChatResponseGeneration { cause, .. } => {
                let what = format!(
                    "{} sent something that cannot be read: {}",
                    self.provider,
                    excerpt(&self.without_key(cause))
                );
                self.failed(Code::ModelInterrupted, true, what)
            }
            other => self.failed(
                Code::ModelRefused,
                false,
                format!("the request could not be built: {}", excerpt(&self.without_key(&other.to_string()))),
            ),
        }
    }

    fn status(&self, answer: &Answer<'_>) -> ModelFailed {
        let (status, words) = (answer.status, said(&self.without_key(answer.body)));
        let provider = &self.provider;
        match status {
            401 | 403 => {
                let what = format!(
                    "{provider} does not accept the key ({status}: {words}); check the key in {}",
                    self.key_from
                );
                self.failed(Code::ModelKey, false, what)
            }
            404 => {
                let what =
                    format!("{provider} knows no model `{}` at {} (404: {words})", self.model, self.place);
                self.failed(Code::ModelUnknown, false, what)
            }
            429 if answer.body.contains("insufficient_quota") => {
                let what = format!("the account at {provider} has no credit left (429: {words})");
                self.failed(Code::ModelRateLimit, false, what)
            }
            429 => {
                let what = format!("{provider} limits the rate of requests (429: {words})");
                self.for_now(Code::ModelRateLimit, what, answer)
            }
            408 | 409 | 425 | 500.. => {
                let what = format!("{provider} failed ({status}: {words})");
                self.for_now(Code::ModelFailed, what, answer)
            }
            300..=399 => {
                let what =
                    format!("{} answers with a redirect ({status}), which is not followed", self.place);
                self.failed(Code::ModelUnreachable, false, what)
            }
            _ => self.failed(
                Code::ModelRefused,
                false,
                format!("{provider} refused the request ({status}: {words})"),
            ),
        }
    }

    /// An error that a provider reports in the middle of its answer.
    fn reported(&self, body: &Value) -> ModelFailed {
        let text = body.to_string();
        let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
        let words = said(&self.without_key(&text));
        let (code, retryable) = if says(&["authentication_error", "permission_error", "invalid_api_key"]) {
            (Code::ModelKey, false)
        } else if says(&["rate_limit"]) {
            (Code::ModelRateLimit, true)
        } else if says(&["invalid_request", "not_found", "context_length_exceeded"]) {
            (Code::ModelRefused, false)
        } else {
            (Code::ModelFailed, true)
        };
        self.failed(code, retryable, format!("{} reported an error in its answer: {words}", self.provider))
    }

    /// No socket could be made for the request.
    pub(super) fn no_relay(&self, error: &std::io::Error) -> ModelFailed {
        self.failed(Code::Internal, true, format!("no socket for a request can be made: {error}"))
    }

    pub(super) fn transport(&self, error: &Cause) -> ModelFailed {
        let found = chain(error).find_map(|error| error.downcast_ref::<reqwest::Error>());
        let why = chain(error).last().map(ToString::to_string).unwrap_or_default();
        let place = &self.place;
        let (code, what) = match found {
            Some(error) if error.is_connect() => {
                (Code::ModelUnreachable, format!("{place} cannot be reached: {why}"))
            }
            Some(error) if error.is_timeout() => (
                Code::ModelInterrupted,
                format!("{place} was silent for {} seconds", super::SILENCE.as_secs()),
            ),
            Some(error) if error.is_builder() => {
                (Code::ProviderSettings, format!("no request can be made to {place}: {why}"))
            }
            Some(error) if error.is_request() => {
                (Code::ModelUnreachable, format!("{place} broke the connection before it answered: {why}"))
            }
            _ => (Code::ModelInterrupted, format!("{place} broke off in the middle of its answer: {why}")),
        };
        self.failed(code, code != Code::ProviderSettings, what)
    }

    /// A failure that may pass, with how long the provider asks to wait.
    fn for_now(&self, code: Code, what: String, answer: &Answer<'_>) -> ModelFailed {
        let told = retry_after(answer.headers).map(|wait| format!("; it asks to wait {wait}"));
        let failed = self.failed(code, true, format!("{what}{}", told.unwrap_or_default()));
        ModelFailed { retry_after: wait(answer.headers), ..failed }
    }

    fn failed(&self, code: Code, retryable: bool, message: String) -> ModelFailed {
        let fault = Fault::new(code, self.without_key(&message));
        ModelFailed::new(fault, retryable)
    }

    /// Providers often repeat a key that they reject.
    fn without_key(&self, text: &str) -> String {
        match self.key.as_ref().map(|key| key.expose_secret().trim()) {
            Some(key) if !key.is_empty() => text.replace(key, "[key]"),
            _ => text.to_owned(),
        }
    }
}

type Cause = dyn std::error::Error + 'static;

/// An error and its causes, the outermost first.
fn chain(error: &Cause) -> impl Iterator<Item = &Cause> {
    std::iter::successors(Some(error), |&error| cause(error))
}

fn cause(error: &Cause) -> Option<&Cause> {
    match error.downcast_ref::<webc::Error>() {
        // It wraps the error without naming it as its source.
        Some(webc::Error::Reqwest(inner)) => Some(inner),
        _ => error.source(),
    }
}

fn answer_in(error: &Error) -> Option<Answer<'_>> {
    match error {
        Error::HttpError { status, body, headers, .. } => {
            Some(Answer { status: status.as_u16(), body, headers: Some(headers) })
        }
        Error::WebStream { error, .. } => error.downcast_ref::<Error>().and_then(answer_in),
        Error::WebModelCall { webc_error, .. } | Error::WebAdapterCall { webc_error, .. } => match webc_error
        {
            webc::Error::ResponseFailedStatus { status, body, headers } => {
                Some(Answer { status: status.as_u16(), body, headers: Some(headers) })
            }
            _ => None,
        },
        _ => None,
    }
}

/// How long a provider asks to wait, in its own terms.
fn retry_after(headers: Option<&HeaderMap>) -> Option<String> {
    let value = |name| headers?.get(name)?.to_str().ok().map(|text| text.trim().to_owned());
    let seconds = |text: String| {
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            format!("{text} s")
        } else {
            format!("until {text}")
        }
    };
    value("retry-after-ms").map(|text| format!("{text} ms")).or_else(|| value("retry-after").map(seconds))
}

/// The same as a span. A provider that names a moment instead is waited for as long as always.
fn wait(headers: Option<&HeaderMap>) -> Option<Millis> {
    let number = |name| headers?.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let millis =
        number("retry-after-ms").or_else(|| number("retry-after").map(|seconds| seconds * 1000.0))?;
    (millis.is_finite() && millis >= 0.0).then_some(Millis(millis.ceil() as u64))
}

/// The message in an error's body, wherever the provider puts it, or the beginning of the body.
fn said(body: &str) -> String {
    let json: Option<Value> = serde_json::from_str(body).ok();
    let first = |value: &Value| if value.is_array() { value.get(0).cloned() } else { Some(value.clone()) };
    let message = json.as_ref().and_then(first).and_then(|value| {
        let places = ["/error/error/message", "/error/message", "/message", "/error", "/detail"];
        places.iter().find_map(|place| value.pointer(place)?.as_str().map(str::to_owned))
    });
    excerpt(&message.unwrap_or_else(|| body.to_owned()))
}

fn excerpt(text: &str) -> String {
    let line = one_line(text, MAX_EXCERPT_CHARS);
    if line.is_empty() { "no reason given".to_owned() } else { line }
}
