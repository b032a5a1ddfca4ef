//! Asking the user about what an extension uses and was not granted: a host, or a secret. The answer holds as long as the activation is
//! active, or becomes a grant. Where nobody can be asked, the use is refused with the command that would grant it. Outside a conversation a
//! question waits then, which `waiting.rs` has.

mod waiting;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::content::Content;
use holdfast_contract::digest::Digest;
use holdfast_contract::ids::ExtensionId;
use holdfast_contract::manifest::{Grants, Profile};
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::session_frames::UiQuestion;
use holdfast_contract::wire::Bundle;
use holdfast_policy::{Grant, Tie, granted_to};
use parking_lot::Mutex;

use self::waiting::WaitingGrants;
use crate::host::Caller;
use crate::runtime::Inner;

/// How long a user has to answer.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(300);

/// About how many uses outside a conversation the user is asked, for each content of an extension.
const MAX_ASKED_LATER: usize = 3;

const ONCE: &str = "once";
const ALWAYS: &str = "always";
const NO: &str = "no";

/// An activation, and what it was asked about; outside a conversation a content, which other activations may have, too.
type Key = (Digest, String);

/// The users' answers, for as long as an activation is active.
#[derive(Default)]
pub(crate) struct ConsentAnswers {
    said: Mutex<HashMap<Key, bool>>,
    /// One question at a time for each activation: the answer for one use counts for the next.
    turns: Mutex<HashMap<Digest, Arc<tokio::sync::Mutex<()>>>>,
    /// The uses outside a conversation that the user was asked about.
    asked_later: Mutex<HashMap<Digest, BTreeSet<String>>>,
    waiting: WaitingGrants,
}

impl ConsentAnswers {
    fn get(&self, key: &Key) -> Option<bool> {
        self.said.lock().get(key).copied()
    }

    fn keep(&self, key: Key, answer: bool) {
        self.said.lock().insert(key, answer);
    }

    /// Whether the user is to be asked about a use outside a conversation: once, and about no more than a few.
    pub(super) fn asks_later(&self, (content, option): &Key) -> bool {
        let mut asked = self.asked_later.lock();
        let asked = asked.entry(*content).or_default();
        asked.len() < MAX_ASKED_LATER && asked.insert(option.clone())
    }

    fn turn(&self, digest: Digest) -> Arc<tokio::sync::Mutex<()>> {
        self.turns.lock().entry(digest).or_default().clone()
    }
}

/// What an extension wants to use without a grant.
pub(in crate::host) struct UngrantedUse {
    /// The grant that would give it: one host, or one secret.
    pub wanted: Grants,
    /// What it wants to do, after "wants to" and "may not".
    pub action: String,
    /// The option of `holdfast ext grant` that gives it.
    pub option: String,
}

impl Inner {
    /// Asks the user whether an extension may use what it was not granted. An error is the refusal, with what to do about it.
    pub(in crate::host) async fn consent(
        &self,
        caller: &Caller,
        bundle: &Bundle,
        asked: UngrantedUse,
    ) -> Result<(), Fault> {
        let (id, digest) = (caller.extension.id.clone(), caller.extension.digest);
        let UngrantedUse { wanted, action, option } = asked;
        let lasting = can_last(bundle, &wanted);
        let refused = |why: &str| {
            let help = how_to_grant(&id, bundle, &wanted, &option);
            Fault::new(Code::ToolDenied, format!("`{id}` may not {action}: {why}; {help}"))
        };
        if self.policy_for(caller.session.as_ref()).is_ok_and(|policy| policy.profile_name() == Profile::Safe)
        {
            return Err(refused("under `safe` nobody is asked"));
        }
        let key = (digest, option.to_ascii_lowercase());
        let settled = || {
            let said = self.answers.get(&key)?;
            Some(if said { Ok(()) } else { Err(refused("the user said no")) })
        };
        if let Some(settled) = settled() {
            return settled;
        }
        let Some(user) = &caller.user else {
            let content = (bundle.content(), key.1);
            if self.answers.get(&content) == Some(false) {
                return Err(refused("the user said no"));
            }
            let refusal = refused("the user cannot be asked outside a conversation");
            if lasting && can_be_typed(&option) && self.answers.asks_later(&content) {
                self.ask_for_grant(&id, content.0, UngrantedUse { wanted, action, option }).await;
            }
            return Err(refusal);
        };
        let turn = self.answers.turn(digest);
        let _turn = turn.lock().await;
        if let Some(settled) = settled() {
            return settled;
        }
        let mut options = vec![ONCE.to_owned(), NO.to_owned()];
        if lasting {
            options.insert(1, ALWAYS.to_owned());
        }
        let prompt = format!("`{id}` wants to {action}, which it was not granted. May it?");
        let asked = user.ask(UiQuestion::Select { prompt, options });
        let answer = tokio::time::timeout(QUESTION_TIMEOUT, asked).await;
        let answer = answer.unwrap_or_else(|_| Ok(Content::default()))?;
        let allowed = match answer.value().as_str() {
            Some(ONCE) => true,
            Some(ALWAYS) if lasting => {
                let tied_to = Tie::Digest(bundle.content());
                self.remember_grant(Grant { extension: id.clone(), tied_to, give: wanted.clone() }).await?;
                true
            }
            Some(NO) => false,
            _ => return Err(refused("nobody answered")),
        };
        self.answers.keep(key, allowed);
        if allowed { Ok(()) } else { Err(refused("the user said no")) }
    }

    /// How an extension gets a grant: by this option of `holdfast ext grant`, or else by its manifest, which has to ask for it.
    pub(in crate::host) fn how_to_grant(
        &self,
        extension: &ExtensionRef,
        wanted: &Grants,
        option: &str,
    ) -> String {
        match self.activation(extension.digest) {
            Ok(bundle) => how_to_grant(&extension.id, &bundle, wanted, option),
            Err(_) => format!("`holdfast ext grant {} {option}` grants it", extension.id),
        }
    }

    /// What an activation of the home consists of. An error for built-in extensions, which the user is not asked about.
    pub(crate) fn activation(&self, digest: Digest) -> Result<Bundle, Fault> {
        let none = || {
            Fault::new(
                Code::ToolDenied,
                "only extensions of the home have grants for hosts, folders and variables",
            )
        };
        let bytes = self.store.object(digest).map_err(|problem| problem.to_fault())?.ok_or_else(none)?;
        serde_json::from_slice(&bytes).map_err(|_| none())
    }

    /// Stores a grant, as `holdfast ext grant` does.
    async fn remember_grant(&self, grant: Grant) -> Result<(), Fault> {
        let none = || Fault::new(Code::SettingsInvalid, "this system keeps no settings");
        let configuration = self.home.configuration().cloned().ok_or_else(none)?;
        let written = tokio::task::spawn_blocking(move || configuration.grant(&grant)).await;
        let broken = |error| Fault::new(Code::Internal, format!("the grant was not written: {error}"));
        written.map_err(broken)?.map_err(|problem| problem.to_fault())
    }
}

/// How an extension gets a grant that it asks for by this option.
fn how_to_grant(id: &ExtensionId, bundle: &Bundle, wanted: &Grants, option: &str) -> String {
    if can_last(bundle, wanted) {
        format!("`holdfast ext grant {id} {option}` grants it")
    } else {
        format!("its manifest does not ask for it: `grants: {}` would", serde_json::json!(wanted))
    }
}

/// Whether an option, which has what the extension named, is safe to copy into a shell as it is.
fn can_be_typed(option: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || " -._:[]".contains(c);
    option.len() <= 300 && option.chars().all(plain) && option.split(' ').count() == 2
}

/// Whether a lasting grant would have an effect: a manifest with `grants` must ask for it, and a single file has no manifest.
pub(super) fn can_last(bundle: &Bundle, wanted: &Grants) -> bool {
    let single = bundle.entrypoint.starts_with("tools/") || bundle.entrypoint.starts_with("channels/");
    single || bundle.parsed().is_ok_and(|manifest| !granted_to(&manifest, wanted).is_empty())
}

#[cfg(test)]
#[path = "consent_tests.rs"]
mod consent_tests;
