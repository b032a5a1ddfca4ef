//! How much of what context providers say reaches the model. Each has its portion of what those before it have left, and what is longer
//! is cut, with a notice at its end and the setting that cut it in the frame.

use holdfast_contract::content::Content;
use holdfast_contract::context::{ContextBudget, beginning, room, tokens};
use holdfast_contract::hook::Decision;
use holdfast_contract::ids::{ExtensionId, RuleName};

/// What is left for the providers of one round. They must be served in the order in which they are asked.
pub struct ContextTokenBudget {
    budget: ContextBudget,
    left: u32,
}

impl ContextTokenBudget {
    /// All of it is left.
    pub fn new(budget: &ContextBudget) -> Self {
        Self { budget: budget.clone(), left: budget.total_tokens }
    }

    /// A provider's decision as it counts, and the setting that it was cut by.
    pub fn allocate(
        &mut self,
        extension: &ExtensionId,
        declared: Option<u32>,
        decision: Decision,
    ) -> (Decision, Option<RuleName>) {
        let Decision::Inject { content } = &decision else { return (decision, None) };
        let text = content.to_text();
        let (wanted, own) = (tokens(&text), self.budget.of(extension, declared));
        let rule = match (own.min(self.left), self.left < own) {
            (most, _) if wanted <= most => None,
            (_, true) => Some("context.total_tokens"),
            (_, false) => Some("context.provider_tokens"),
        };
        let Some(rule) = rule else {
            self.left -= wanted;
            return (decision, None);
        };
        let cut = shortened(&text, wanted, own.min(self.left));
        self.left = self.left.saturating_sub(tokens(&cut));
        (Decision::Inject { content: Content::text(cut) }, Some(rule.into()))
    }

    /// Takes what a provider said, as it was recorded, off what is left.
    pub fn charge(&mut self, decision: &Decision) {
        if let Decision::Inject { content } = decision {
            self.left = self.left.saturating_sub(tokens(&content.to_text()));
        }
    }
}

/// As much of a text as there is room for, and what became of the rest. The notice stands even where there is no room for anything else.
fn shortened(text: &str, wanted: u32, most: u32) -> String {
    let notice = format!("[cut here: about {wanted} tokens, of which {most} may be used]");
    let kept = beginning(text, room(most).saturating_sub(notice.len() + 1));
    if kept.is_empty() { notice } else { format!("{kept}\n{notice}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(words: usize) -> Decision {
        Decision::Inject { content: Content::text("word ".repeat(words)) }
    }

    fn text((decision, rule): (Decision, Option<RuleName>)) -> (String, Option<String>) {
        let Decision::Inject { content } = decision else { panic!("{decision:?}") };
        (content.to_text(), rule.map(|rule| rule.to_string()))
    }

    #[test]
    fn what_fits_stays_as_it_is_and_what_does_not_is_cut_within_its_portion() {
        let mut budget =
            ContextTokenBudget::new(&ContextBudget { total_tokens: 160, ..ContextBudget::default() });
        let whole = budget.allocate(&"a".into(), Some(100), said(10));
        assert_eq!(whole, (said(10), None));
        let (cut, rule) = text(budget.allocate(&"b".into(), Some(50), said(100)));
        assert!(
            cut.ends_with("word\n[cut here: about 125 tokens, of which 50 may be used]")
                && tokens(&cut) <= 50,
            "{cut}"
        );
        assert_eq!(rule.as_deref(), Some("context.provider_tokens"));
        let left = budget.left;
        let (cut, rule) = text(budget.allocate(&"c".into(), None, said(1_000)));
        assert!(cut.contains(&format!("of which {left} may be used")) && tokens(&cut) <= left, "{cut}");
        assert_eq!(rule.as_deref(), Some("context.total_tokens"));
        let (nothing, _) = text(budget.allocate(&"d".into(), None, said(1_000)));
        assert!(nothing.starts_with("[cut here: about 1250 tokens"), "{nothing}");
        assert_eq!(budget.allocate(&"e".into(), None, Decision::Continue), (Decision::Continue, None));
    }
}
