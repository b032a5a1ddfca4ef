//! Why a call is decided as it is: every rule in the order of the file, and what became of it.

use std::fmt;

use holdfast_contract::digest::Digest;
use holdfast_contract::hook::Decision;
use holdfast_contract::ids::RuleName;
use holdfast_contract::manifest::Profile;
use holdfast_contract::tool::EffectClass;
use serde::Serialize;

use crate::evaluate::{counts, subject, takes_effect};
use crate::policy::{Policy, PolicyRequest, PolicyVerdict};
use crate::profile;
use crate::rules::matching::{Part, applies};
use crate::rules::rule::{Rule, Ruling};

/// How a verdict was reached.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The verdict, the same as [`Policy::evaluate`] gives.
    pub verdict: PolicyVerdict,
    /// The policy.
    pub policy: Digest,
    /// The profile it is in.
    pub profile: Profile,
    /// What the call is judged as: what its tool declares, or what its extension holds grants for.
    pub effects: Vec<EffectClass>,
    /// The user's rules in the order of the file, and the profile's own at the end.
    pub steps: Vec<ExplainStep>,
}

/// One rule that was looked at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExplainStep {
    /// The rule.
    pub rule: RuleName,
    /// What it decides where it applies.
    pub decision: Ruling,
    /// What became of it.
    pub outcome: ExplainOutcome,
}

/// What became of a rule.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ExplainOutcome {
    /// It decided.
    Decided,
    /// It applies, but this rule decided: a stronger one, or an earlier one of the same strength.
    Outweighed {
        /// The rule that decided.
        by: RuleName,
    },
    /// It does not apply.
    DoesNotApply {
        /// The part that does not match.
        because: String,
    },
    /// It does not count under this profile.
    OtherProfile,
}

impl Policy {
    /// Decides about a call and explains the verdict.
    pub fn explain(&self, request: &PolicyRequest<'_>) -> Explanation {
        let verdict = self.evaluate(request);
        let (classes, profile) = (self.classes(request), self.profile_of(request.turn));
        let subject = subject(request, classes);
        let applying = |rule: &RuleName| {
            if *rule == verdict.rule {
                ExplainOutcome::Decided
            } else {
                ExplainOutcome::Outweighed { by: verdict.rule.clone() }
            }
        };
        let outcome = |rule: &Rule| {
            if !counts(rule, profile) {
                return ExplainOutcome::OtherProfile;
            }
            let finding = applies(rule, &subject);
            match finding.part {
                Some(part) if !takes_effect(rule, &finding) => {
                    ExplainOutcome::DoesNotApply { because: because(part) }
                }
                _ => applying(&rule.name),
            }
        };
        let step = |rule: &Rule| ExplainStep {
            rule: rule.name.clone(),
            decision: rule.decision,
            outcome: outcome(rule),
        };
        let mut steps: Vec<ExplainStep> = self.document.rules.iter().map(step).collect();
        let class = classes.first();
        let own = &self.own_rule(profile, class);
        steps.push(ExplainStep {
            rule: own.clone(),
            decision: profile::ruling(profile, class),
            outcome: applying(own),
        });
        Explanation { policy: self.digest(), profile, effects: classes.list(), steps, verdict }
    }
}

fn because(part: Part<'_>) -> String {
    match part {
        Part::Tools => "another tool".to_owned(),
        Part::Extensions => "another extension".to_owned(),
        Part::Effects => "other effects".to_owned(),
        Part::Origins => "another origin".to_owned(),
        Part::Users => "another user".to_owned(),
        Part::Agents => "another agent".to_owned(),
        Part::Arguments => "the arguments are not available".to_owned(),
        Part::Argument("") => "the arguments do not match".to_owned(),
        Part::Argument(pointer) => format!("the argument `{pointer}` does not match"),
        Part::Unless(index) => format!("the exception `unless[{index}]` applies"),
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, reason) = match &self.verdict.decision {
            Decision::Deny { reason } => ("denied", reason.as_str()),
            Decision::Ask { reason } => ("a person is asked", reason.as_str()),
            _ => ("allowed", ""),
        };
        write!(f, "{word} by `{}`", self.verdict.rule)?;
        if !reason.is_empty() {
            write!(f, ": {reason}")?;
        }
        let effects: Vec<_> = self.effects.iter().map(|class| profile::class_name(*class)).collect();
        write!(f, "\nprofile {}, judged as {}", profile::name(self.profile), effects.join(" and "))?;
        let width =
            self.steps.iter().map(|step| step.rule.as_str().chars().count()).max().unwrap_or_default();
        for (index, step) in self.steps.iter().enumerate() {
            let decision = match step.decision {
                Ruling::Allow => "allow",
                Ruling::Ask => "ask",
                Ruling::Deny => "deny",
            };
            write!(f, "\n{:>3}. {:width$}  {decision:5}  ", index + 1, step.rule.as_str())?;
            match &step.outcome {
                ExplainOutcome::Decided => f.write_str("decides")?,
                ExplainOutcome::Outweighed { by } => write!(f, "applies, but `{by}` decides")?,
                ExplainOutcome::DoesNotApply { because } => write!(f, "does not apply: {because}")?,
                ExplainOutcome::OtherProfile => f.write_str("does not count under this profile")?,
            }
        }
        Ok(())
    }
}
