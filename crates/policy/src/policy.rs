//! The policy in force: a checked document, its digest, and what the runtime asks of it besides decisions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::digest::{Digest, canonical};
use holdfast_contract::hook::Decision;
use holdfast_contract::ids::{ExtensionId, Millis, RuleName};
use holdfast_contract::manifest::{Grants, Profile};
use holdfast_contract::message::{Origin, TurnContext};
use holdfast_contract::problem::{Code, Location, Problem};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::tool::ToolSpec;
use serde::Serialize;

use crate::caps::Caps;
use crate::document::{Document, OwnerIdentity};
use crate::grants::{Grant, Tie, implied_effects, join, same_folder};
use crate::profile::{self, Routing, Unattended};
use crate::rules::matching::Classes;
use crate::rules::rule::Rule;

/// How long a question waits where no user is present and the policy does not say.
const ANSWER_WITHIN: Millis = Millis(86_400_000);

/// A policy, loaded and checked.
#[derive(Clone, Debug)]
pub struct Policy {
    pub(crate) document: Document,
    /// The names of the profile's own rules, by class.
    pub(crate) names: [RuleName; 6],
    /// What extensions can do by their grants, regardless of what their tools declare.
    held: BTreeMap<ExtensionId, Classes>,
    bytes: Arc<[u8]>,
    digest: Digest,
}

/// A tool call on its final arguments.
#[derive(Clone, Copy, Debug)]
pub struct PolicyRequest<'a> {
    /// The tool.
    pub tool: &'a ToolSpec,
    /// Whose implementation would run.
    pub extension: &'a ExtensionRef,
    /// The arguments.
    pub arguments: &'a Content,
    /// The turn it belongs to.
    pub turn: &'a TurnContext,
}

/// What the policy decided about a call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PolicyVerdict {
    /// `Allow`, `Deny` or `Ask`, and nothing else.
    pub decision: Decision,
    /// The rule that decided: the user's, or a profile's own such as `standard/exec`.
    pub rule: RuleName,
}

impl Policy {
    /// A built-in profile without any rules of the user's.
    pub fn profile(profile: Profile) -> Self {
        Self::assemble(Document::of(profile))
    }

    /// Reads a `policy.yaml` and checks every rule against its examples. The file's name is for messages; nothing is opened.
    pub fn parse(file: &Path, text: &str) -> Result<Self, Vec<Problem>> {
        let document = crate::read::parse(file, text)?;
        Self::new(document).map_err(|problem| vec![problem])
    }

    /// Where each rule of a `policy.yaml` is written, in their order; empty for a text that is not a policy.
    pub fn rule_locations(file: &Path, text: &str) -> Vec<Location> {
        crate::read::rule_locations(file, text)
    }

    /// Reads back what [`Policy::document`] gave. Examples held when the policy was loaded and are not checked again.
    pub fn from_document(bytes: &[u8]) -> Result<Self, Problem> {
        let document = serde_json::from_slice(bytes).map_err(|error| {
            Problem::new(Code::PolicyInvalid, format!("the stored policy cannot be read: {error}"))
        })?;
        Self::new(document)
    }

    /// A policy from its data. Only [`Policy::parse`] checks examples.
    pub fn new(document: Document) -> Result<Self, Problem> {
        let mut names = BTreeSet::new();
        for rule in &document.rules {
            if profile::is_reserved(rule.name.as_str()) {
                let what =
                    format!("the rule `{}` has a name that is kept for a profile's own rules", rule.name);
                return Err(Problem::new(Code::PolicyInvalid, what).help("Give the rule another name."));
            }
            if !names.insert(&rule.name) {
                let what = format!("two rules have the name `{}`", rule.name);
                return Err(Problem::new(Code::PolicyInvalid, what).help("Rename one of them."));
            }
        }
        canonical(&document).map_err(|error| Problem::new(Code::PolicyInvalid, error.to_string()))?;
        Ok(Self::assemble(document))
    }

    fn assemble(document: Document) -> Self {
        // That there is a canonical form was checked, or is clear from a profile alone.
        let bytes = canonical(&document).unwrap_or_default();
        let mut held: BTreeMap<ExtensionId, Classes> = BTreeMap::new();
        for grant in &document.grants {
            let classes = Classes::of(&implied_effects(&grant.give));
            let all = held.entry(grant.extension.clone()).or_insert(classes);
            *all = all.with(classes);
        }
        let names = profile::rule_names(document.profile);
        Self { names, held, digest: Digest::of(&bytes), bytes: bytes.into(), document }
    }

    /// The canonical JSON of everything the policy says.
    pub fn document(&self) -> &[u8] {
        &self.bytes
    }

    /// The digest of [`Policy::document`], and its key in the store.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The same policy in another profile, as `--profile` asks for.
    pub fn with_profile(self, profile: Profile) -> Self {
        Self::assemble(Document { profile, ..self.document })
    }

    /// The same policy with one more rule, as an answer that counts for always asks for.
    pub fn with_rule(mut self, rule: Rule) -> Result<Self, Problem> {
        self.document.rules.push(rule);
        Self::new(self.document)
    }

    /// The same policy with other rules.
    pub fn with_rules(mut self, change: impl FnOnce(&mut Vec<Rule>)) -> Result<Self, Problem> {
        change(&mut self.document.rules);
        Self::new(self.document)
    }

    /// The same policy with other grants.
    pub fn with_grants(mut self, change: impl FnOnce(&mut Vec<Grant>)) -> Result<Self, Problem> {
        change(&mut self.document.grants);
        Self::new(self.document)
    }

    /// What is given to extensions.
    pub fn grants(&self) -> &[Grant] {
        &self.document.grants
    }

    /// The profile it is in.
    pub fn profile_name(&self) -> Profile {
        self.document.profile
    }

    /// The same policy as it counts for a session whose client asked for another profile.
    pub fn under(self: &Arc<Self>, asked: Option<Profile>) -> Arc<Self> {
        match asked.filter(|asked| *asked != self.document.profile) {
            Some(asked) => Arc::new(Self::clone(self).with_profile(asked)),
            None => self.clone(),
        }
    }

    /// The profile under which a call is judged: the one that the session's client asked for, else the policy's.
    pub(crate) fn profile_of(&self, turn: &TurnContext) -> Profile {
        turn.profile.unwrap_or(self.document.profile)
    }

    /// The user's rules, in the order of the file.
    pub fn rules(&self) -> &[Rule] {
        &self.document.rules
    }

    /// What happens to a question when no user is present.
    pub fn unattended(&self) -> Unattended {
        self.document.unattended
    }

    /// How long a question waits for an answer where no user is present.
    pub fn answer_within(&self) -> Millis {
        self.document.answer_within_ms.unwrap_or(ANSWER_WITHIN)
    }

    /// The users of channels who are the owner of the home.
    pub fn owners(&self) -> &[OwnerIdentity] {
        &self.document.owners
    }

    /// The owner of the home whose sessions come from there, if it is one.
    pub fn owner_at(&self, origin: &Origin) -> Option<&OwnerIdentity> {
        self.document.owners.iter().find(|owner| owner.origin() == *origin)
    }

    /// What a router's decision is worth.
    pub fn routing(&self) -> Routing {
        self.document.routing.unwrap_or(Routing::of(self.document.profile))
    }

    /// Whether native plugins may be loaded.
    pub fn allows_native_plugins(&self) -> bool {
        self.document.profile == Profile::Trusted
    }

    /// Whether extensions may listen on ports that they were granted.
    pub fn may_listen(&self) -> bool {
        self.document.profile != Profile::Safe
    }

    /// Whether an answer may count for more than the call it was given for.
    pub fn remembers_answers(&self) -> bool {
        self.document.profile != Profile::Safe
    }

    /// What may be spent in a day, if that is bounded.
    pub fn spending(&self) -> Option<&Caps> {
        let caps = &self.document.caps;
        Some(caps).filter(|caps| !caps.day.is_open() || !caps.extensions.is_empty())
    }

    /// What may be spent, with the bounds that the profile adds.
    pub fn caps(&self) -> Caps {
        self.document.caps.under(self.document.profile)
    }

    /// Whether the user caps money: of a session, of a day, or of an extension.
    pub fn caps_money(&self) -> bool {
        let Caps { session, day, extensions } = &self.document.caps;
        [session, day].into_iter().chain(extensions.values()).any(|cap| cap.dollars.is_some())
    }

    /// What the user gives to this content of an extension. Its folder, as an absolute path, is named only while the extension
    /// is being written.
    pub fn given(&self, extension: &ExtensionId, content: &Digest, folder: Option<&str>) -> Grants {
        let fits = |tie: &Tie| match tie {
            Tie::Digest(digest) => digest == content,
            Tie::Path(path) => folder.is_some_and(|folder| same_folder(path, folder)),
        };
        let grants =
            self.document.grants.iter().filter(|grant| grant.extension == *extension && fits(&grant.tied_to));
        let given = grants.fold(Grants::default(), |all, grant| join(&all, &grant.give));
        if self.may_listen() { given } else { Grants { listen: Vec::new(), ..given } }
    }

    /// The classes of effects by which a call is judged: what the tool declares, and what its extension was given grants for. One
    /// that is tied to content that has changed since still counts here: it gives nothing any more, but costs a question.
    pub(crate) fn classes(&self, request: &PolicyRequest<'_>) -> Classes {
        let declared = Classes::only(request.tool.effects);
        let held = self.held.get(&request.extension.id);
        held.map_or(declared, |held| declared.with(*held))
    }
}
