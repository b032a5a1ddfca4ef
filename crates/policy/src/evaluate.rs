//! Which rule decides about a call.
//!
//! All rules of the user's that count under the profile are looked at. `deny` wins over `ask`, `ask` over `allow`, and
//! among equals the first in the file gives its name. Where none applies, the profile's own rule decides.

use holdfast_contract::hook::Decision;
use holdfast_contract::ids::{ExtensionId, RuleName, ToolName};
use holdfast_contract::manifest::Profile;
use holdfast_contract::tool::EffectClass;

use crate::policy::{Policy, PolicyRequest, PolicyVerdict};
use crate::profile::{self, Unattended};
use crate::rules::matching::{Classes, MatchFinding, Subject, Truth, applies};
use crate::rules::rule::{Condition, Examples, Rule, Ruling};

impl Policy {
    /// Decides about a call. Where the call is allowed and no rule looks at its arguments, nothing is allocated.
    pub fn evaluate(&self, request: &PolicyRequest<'_>) -> PolicyVerdict {
        let (classes, profile) = (self.classes(request), self.profile_of(request.turn));
        let mut best: Option<(&Rule, MatchFinding<'_>)> = None;
        if !self.document.rules.is_empty() {
            let subject = subject(request, classes);
            for rule in &self.document.rules {
                if best.is_some_and(|(best, _)| best.decision >= rule.decision) || !counts(rule, profile) {
                    continue;
                }
                let finding = applies(rule, &subject);
                if takes_effect(rule, &finding) {
                    best = Some((rule, finding));
                }
            }
        }
        match best {
            Some((rule, finding)) => by_rule(rule, finding.truth),
            None => self.by_profile(request, classes),
        }
    }

    /// The verdict when no user can be asked.
    pub fn without_approver(&self, verdict: PolicyVerdict) -> PolicyVerdict {
        let PolicyVerdict { decision, rule } = verdict;
        let decision = match decision {
            Decision::Ask { reason } if self.document.unattended == Unattended::Deny => {
                Decision::Deny { reason: format!("{reason}; nobody is there to be asked") }
            }
            decision => decision,
        };
        PolicyVerdict { decision, rule }
    }

    /// The profile's verdict.
    pub(crate) fn by_profile(&self, request: &PolicyRequest<'_>, classes: Classes) -> PolicyVerdict {
        let (profile, class) = (self.profile_of(request.turn), classes.first());
        let reason = || {
            let (tool, name) = (&request.tool.name, profile::name(profile));
            if request.tool.effects == class {
                return format!("`{tool}` {}, and the {name} profile asks first", does(class));
            }
            let (extension, declared) = (&request.extension.id, profile::class_name(request.tool.effects));
            let held = held(class);
            format!(
                "`{tool}` is declared `{declared}`, but `{extension}` {held}, and the {name} profile asks first"
            )
        };
        let decision = match profile::ruling(profile, class) {
            // The author's advice makes the profile stricter. A rule of the user's comes before both.
            Ruling::Allow if request.tool.asks => Decision::Ask {
                reason: format!(
                    "the manifest of `{}` wants a person to be asked about `{}`",
                    request.extension.id, request.tool.name
                ),
            },
            Ruling::Allow => Decision::Allow,
            Ruling::Ask => Decision::Ask { reason: reason() },
            Ruling::Deny => Decision::Deny { reason: reason() },
        };
        PolicyVerdict { decision, rule: self.own_rule(profile, class) }
    }

    /// The name of a profile's own rule about a class.
    pub(crate) fn own_rule(&self, profile: Profile, class: EffectClass) -> RuleName {
        if profile == self.document.profile {
            self.names[class as usize].clone()
        } else {
            profile::rule_name(profile, class)
        }
    }
}

/// Whether a rule counts under a profile.
pub(crate) fn counts(rule: &Rule, profile: Profile) -> bool {
    if rule.profiles.is_empty() {
        rule.decision.narrows() || profile != Profile::Safe
    } else {
        rule.profiles.contains(&profile)
    }
}

/// How the names of rules begin that answers of "always" wrote.
const ALWAYS: &str = "always/";

impl Rule {
    /// Whether an answer of "always" wrote it, by its name.
    pub fn is_answer(&self) -> bool {
        self.name.as_str().starts_with(ALWAYS)
    }

    /// The rule that an answer of "always" to a call writes: this tool of this extension with any arguments. None for
    /// a tool or an extension whose name would be read as a glob.
    pub fn always(tool: &ToolName, extension: &ExtensionId) -> Option<Self> {
        let (tool, extension) = (tool.as_str(), extension.as_str());
        let exact = |name: &str| !name.contains(['*', '?']);
        (exact(tool) && exact(extension)).then(|| Self {
            name: format!("{ALWAYS}{extension}/{tool}").into(),
            decision: Ruling::Allow,
            condition: Condition {
                tools: vec![tool.to_owned()],
                extensions: vec![extension.to_owned()],
                ..Condition::default()
            },
            unless: Vec::new(),
            profiles: Vec::new(),
            reason: "The user answered that it is always allowed.".to_owned(),
            examples: Examples::default(),
        })
    }
}

/// Whether a finding makes a rule count: in doubt, one that denies or asks does, and one that allows does not.
pub(crate) fn takes_effect(rule: &Rule, finding: &MatchFinding<'_>) -> bool {
    finding.truth == Truth::Yes || (finding.truth == Truth::Unknown && rule.decision.narrows())
}

/// A call as rules see it.
pub(crate) fn subject<'a>(request: &PolicyRequest<'a>, classes: Classes) -> Subject<'a> {
    Subject {
        tool: request.tool.name.as_str(),
        arguments: Some(request.arguments.value()),
        origin: Some(&request.turn.origin.channel),
        user: Some(request.turn.origin.user.as_deref().unwrap_or_default()),
        agent: Some(request.turn.agent.as_str()),
        extension: Some(request.extension.id.as_str()),
        classes: Some(classes),
    }
}

fn by_rule(rule: &Rule, truth: Truth) -> PolicyVerdict {
    let reason = || {
        let mut reason = if rule.reason.is_empty() {
            format!("the rule `{}` says so", rule.name)
        } else {
            rule.reason.clone()
        };
        if truth == Truth::Unknown {
            reason += " (the arguments are not available, so the rule counts)";
        }
        reason
    };
    let decision = match rule.decision {
        Ruling::Allow => Decision::Allow,
        Ruling::Ask => Decision::Ask { reason: reason() },
        Ruling::Deny => Decision::Deny { reason: reason() },
    };
    PolicyVerdict { decision, rule: rule.name.clone() }
}

fn does(class: EffectClass) -> &'static str {
    match class {
        EffectClass::Pure => "computes",
        EffectClass::Read => "reads",
        EffectClass::Write => "changes files or records",
        EffectClass::Exec => "runs programs",
        EffectClass::Network => "sends something over a network",
        EffectClass::Unknown => "does not say what it does to the world",
    }
}

fn held(class: EffectClass) -> &'static str {
    match class {
        EffectClass::Pure | EffectClass::Read => "reads",
        EffectClass::Write => "holds a grant to write files",
        EffectClass::Exec => "holds a grant to run programs",
        EffectClass::Network => "holds a grant to use the network",
        EffectClass::Unknown => "holds a grant to use a secret",
    }
}
