//! Which tool a text speaks of: BM25 over the tools' names, descriptions and parameters.

use std::collections::BTreeSet;
use std::sync::Arc;

use holdfast_contract::tool::ToolSpec;

use super::fill::Parameter;
use super::words::stems;

/// How often a name counts against a word of the description.
const NAME_WEIGHT: usize = 3;
/// How far the best must be ahead of the next.
const AHEAD: f64 = 1.15;
/// BM25's usual constants.
const K1: f64 = 1.2;
const B: f64 = 0.75;

struct Scored<'r> {
    tool: &'r ToolSpec,
    name: BTreeSet<String>,
    words: Vec<String>,
}

/// The tool that fits clearly, if one does: it is ahead of the others, and shares its name or two words with the text.
pub(super) fn tool<'r>(text: &str, tools: &'r [Arc<ToolSpec>]) -> Option<&'r ToolSpec> {
    let asked: BTreeSet<String> = stems(text).into_iter().collect();
    let tools: Vec<Scored<'r>> = tools.iter().map(|tool| Scored::of(tool)).collect();
    let mut ranked: Vec<(f64, &Scored<'r>)> =
        tools.iter().map(|tool| (score(&asked, tool, &tools), tool)).collect();
    // Equal scores stay in the order of the tools, which is the same everywhere.
    ranked.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let (best, first) = *ranked.first()?;
    let next = ranked.get(1).map_or(0.0, |(next, _)| *next);
    let shared = asked.iter().filter(|word| first.words.contains(word)).count();
    let named = asked.iter().any(|word| first.name.contains(word));
    (best > 0.0 && best >= next * AHEAD && (named || shared >= 2)).then_some(first.tool)
}

impl<'r> Scored<'r> {
    fn of(tool: &'r ToolSpec) -> Self {
        let name = stems(tool.name.as_str());
        let mut words: Vec<String> =
            std::iter::repeat_n(name.iter().cloned(), NAME_WEIGHT).flatten().collect();
        words.extend(stems(&tool.description));
        for parameter in Parameter::all(tool) {
            words.extend(stems(&parameter.name));
            words.extend(stems(&parameter.description));
        }
        Self { tool, name: name.into_iter().collect(), words }
    }

    fn count(&self, word: &str) -> f64 {
        self.words.iter().filter(|own| *own == word).count() as f64
    }
}

fn score(asked: &BTreeSet<String>, tool: &Scored<'_>, all: &[Scored<'_>]) -> f64 {
    let number = all.len() as f64;
    let average = all.iter().map(|tool| tool.words.len()).sum::<usize>() as f64 / number;
    let length = K1 * (1.0 - B + B * tool.words.len() as f64 / average.max(1.0));
    let of_word = |word: &String| {
        let holding = all.iter().filter(|tool| tool.words.contains(word)).count() as f64;
        let rarity = (1.0 + (number - holding + 0.5) / (holding + 0.5)).ln();
        let count = tool.count(word);
        rarity * count * (K1 + 1.0) / (count + length)
    };
    asked.iter().map(of_word).sum()
}
