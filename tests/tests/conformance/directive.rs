//! What the conformance extension is told to do, and how it does the part that needs the host.
//!
//! A directive is a line `WHERE [HOST-VERB … |]… VERB TEXT`: WHERE is a hook point or a role. It stands in what is judged, in the
//! call's argument `do`, or in the configuration's `do`, whichever has one first. In TEXT a `%` stands for what the host answered
//! last. `host NAME JSON` makes any host call, and answers `served` or `refused`. `tests/conformance/guest/directive.h` is the same in C.

use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::host_call::HostCall;
use holdfast_contract::message::TurnView;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::session_frames::UiQuestion;
use holdfast_contract::wire::Host;
use serde_json::{Value, json};

/// What is left to do once the host has been asked: a verb and its text. Without a directive the verb is empty.
#[derive(Default)]
pub struct Deed {
    pub verb: String,
    pub text: String,
}

/// Where a directive may stand, and who can be asked.
pub struct Place<'a> {
    pub where_: &'a str,
    pub subject: Option<&'a Content>,
    pub arguments: Option<&'a Content>,
    pub config: &'a Value,
    pub turn: Option<&'a TurnView>,
    pub host: Option<&'a Arc<dyn Host>>,
}

impl Place<'_> {
    /// Finds the directive and does it up to its last verb.
    pub async fn directive(&self) -> Result<Deed, Fault> {
        let Some(mut line) = self.line() else { return Ok(Deed::default()) };
        let mut received = String::new();
        loop {
            let (stage, rest) = split(&line, " | ");
            let (verb, text) = split(&stage, " ");
            match self.ask_host(&verb, &text).await? {
                Some(_) if rest.is_empty() => return Ok(Deed::default()),
                Some(answer) => (received, line) = (answer, rest),
                None => return Ok(Deed { verb, text: text.replace('%', &received) }),
            }
        }
    }

    fn line(&self) -> Option<String> {
        let judged = self.subject.map(Content::value).and_then(Value::as_str);
        let told = self.arguments.map(Content::value).and_then(|it| it["do"].as_str());
        let lines = [judged, told, self.config["do"].as_str()].into_iter().flatten();
        let mut found = lines.filter_map(|lines| {
            lines.split('\n').map(|line| split(line, " ")).find(|(place, _)| place == self.where_)
        });
        found.next().map(|(_, line)| line)
    }

    /// Asks the host; nothing if the host has no such verb.
    async fn ask_host(&self, verb: &str, rest: &str) -> Result<Option<String>, Fault> {
        let answer = match verb {
            "clock" => self.ask(HostCall::Clock).await?.to_text(),
            "random" => self.ask(HostCall::Random { bytes: rest.parse().unwrap() }).await?.to_text(),
            "remember" => {
                let (key, value) = split(rest, " ");
                let value = Some(Content::new(serde_json::from_str(&value).unwrap()));
                self.ask(HostCall::StateSet { key, value }).await?;
                String::new()
            }
            "forget" => {
                self.ask(HostCall::StateSet { key: rest.to_owned(), value: None }).await?;
                String::new()
            }
            "recall" => match self.ask(HostCall::StateGet { key: rest.to_owned() }).await? {
                nothing if nothing == Content::default() => "nothing".to_owned(),
                value => value.json().to_owned(),
            },
            "tell" => {
                self.ask(HostCall::Inject { text: Content::text(rest) }).await?;
                String::new()
            }
            "host" => {
                let (name, arguments) = split(rest, " ");
                let arguments: Value = serde_json::from_str(&arguments).unwrap();
                let answer = self.ask(HostCall::named(&name, arguments)).await;
                if answer.is_ok() { "served" } else { "refused" }.to_owned()
            }
            "log" => String::new(),
            "config" => match self.config.get(rest) {
                Some(value) => Content::new(value.clone()).json().to_owned(),
                None => "nothing".to_owned(),
            },
            "session" => self.turn.map_or_else(
                || "outside".to_owned(),
                |turn| {
                    let user = turn.origin.user.as_deref().unwrap_or("nobody");
                    format!("{}/{}/{}/{}/{user}", turn.session, turn.turn, turn.agent, turn.origin.channel)
                },
            ),
            "select" => {
                let (prompt, options) = split(rest, ": ");
                let options = options.split(", ").map(str::to_owned).collect();
                self.question(UiQuestion::Select { prompt, options }).await?.to_text()
            }
            "confirm" => {
                let answer = self.question(UiQuestion::Confirm { prompt: rest.to_owned() }).await?;
                match answer.value().as_bool() {
                    Some(true) => "yes".to_owned(),
                    Some(false) => "no".to_owned(),
                    None => "nothing".to_owned(),
                }
            }
            "input" => {
                let question = UiQuestion::Input { prompt: rest.to_owned(), secret: false };
                self.question(question).await?.to_text()
            }
            "custom" => {
                let (kind, rest) = split(rest, " ");
                let (prompt, payload) = split(&rest, ": ");
                let payload: Value = serde_json::from_str(&payload).unwrap();
                let view = json!({ "kind": kind, "payload": payload }).into();
                match self.question(UiQuestion::Custom { prompt, view }).await? {
                    nothing if nothing == Content::text("nothing") => nothing.to_text(),
                    answer => answer.json().to_owned(),
                }
            }
            _ => return Ok(None),
        };
        Ok(Some(answer))
    }

    /// Asks the user; a question that is dismissed has the answer `nothing`.
    async fn question(&self, question: UiQuestion) -> Result<Content, Fault> {
        let answer = self.ask(HostCall::Ui(question)).await?;
        Ok(if answer == Content::default() { Content::text("nothing") } else { answer })
    }

    async fn ask(&self, call: HostCall) -> Result<Content, Fault> {
        match self.host {
            Some(host) => host.call(call).await,
            None => Err(Fault::new(Code::ExtensionFault, "there is nobody to ask")),
        }
    }
}

/// What stands before a separator and after it; all of it and nothing where there is none.
pub fn split(text: &str, separator: &str) -> (String, String) {
    let (before, after) = text.split_once(separator).unwrap_or((text, ""));
    (before.to_owned(), after.to_owned())
}

impl Deed {
    /// The kind of its failure in its own words, if it is one.
    pub fn failing(&self) -> bool {
        ["invalid", "refused", "missing", "failed"].contains(&self.verb.as_str())
    }
}
