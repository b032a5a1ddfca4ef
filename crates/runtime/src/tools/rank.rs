//! Which tools fit a request: BM25 over a tool's name, description, parameters and extension, without a model and without the network.
//! Scores are whole numbers and equal ones are ordered by name, so that the same registry gives the same answer everywhere.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_contract::registry::{Implementation, ToolEntry};
use serde_json::Value;

use super::words::{meant, telling};

/// How much a word counts by where it stands: name, description, parameters, extension.
const WEIGHTS: [f64; 4] = [3.0, 2.0, 0.7, 0.7];
/// How much a word counts that the request only means.
const MEANT: f64 = 0.5;
/// How soon more of the same word stops to count.
const SATURATION: f64 = 1.2;
/// How much long descriptions are held back.
const LENGTH: f64 = 0.75;
/// Scores are compared in thousandths.
const UNIT: f64 = 1000.0;

/// Tools, ready to be searched.
pub struct Ranker<'r> {
    tools: Vec<Indexed<'r>>,
    /// In how many tools each word occurs.
    spread: BTreeMap<String, f64>,
    /// How long a tool's words are, on average.
    usual: f64,
    everyday: bool,
}

struct Indexed<'r> {
    entry: &'r ToolEntry,
    counts: BTreeMap<String, f64>,
    length: f64,
}

impl<'r> Ranker<'r> {
    /// Reads these tools. The second function says what a tool's extension does.
    pub fn new(
        entries: impl Iterator<Item = &'r ToolEntry>,
        about: impl Fn(&Implementation) -> String,
    ) -> Self {
        let indexed = entries.filter_map(|entry| {
            let active = entry.stack.first()?;
            let mut counts: BTreeMap<String, f64> = BTreeMap::new();
            let texts = [
                entry.name.to_string(),
                active.spec.description.clone(),
                parameters(active).join(" "),
                format!("{} {}", active.extension.id, about(active)),
            ];
            for (text, weight) in texts.iter().zip(WEIGHTS) {
                for word in telling(text) {
                    *counts.entry(word).or_default() += weight;
                }
            }
            let length = counts.values().sum();
            Some(Indexed { entry, counts, length })
        });
        let tools: Vec<Indexed<'r>> = indexed.collect();
        let mut spread: BTreeMap<String, f64> = BTreeMap::new();
        for word in tools.iter().flat_map(|tool| tool.counts.keys()) {
            *spread.entry(word.clone()).or_default() += 1.0;
        }
        let usual = tools.iter().map(|tool| tool.length).sum::<f64>() / (tools.len().max(1) as f64);
        Self { tools, spread, usual, everyday: true }
    }

    /// The same without the table of what people say, to see what it is worth.
    pub fn literal(mut self) -> Self {
        self.everyday = false;
        self
    }

    /// The tools that fit a request, best first.
    pub fn search(&self, request: &str, limit: usize) -> Vec<&'r ToolEntry> {
        let said: BTreeSet<String> = telling(request).collect();
        let mut words: BTreeMap<String, f64> = BTreeMap::new();
        if self.everyday {
            words.extend(meant(request).into_iter().map(|word| (word, MEANT)));
        }
        words.extend(said.into_iter().map(|word| (word, 1.0)));
        let mut scored: Vec<(u64, &'r ToolEntry)> =
            self.tools.iter().map(|tool| (self.score(tool, &words), tool.entry)).collect();
        scored.retain(|(score, _)| *score > 0);
        scored.sort_by(|(a, left), (b, right)| b.cmp(a).then_with(|| left.name.cmp(&right.name)));
        scored.into_iter().take(limit).map(|(_, entry)| entry).collect()
    }

    fn score(&self, tool: &Indexed<'_>, words: &BTreeMap<String, f64>) -> u64 {
        let held_back = SATURATION * (1.0 - LENGTH + LENGTH * tool.length / self.usual);
        let all = self.tools.len() as f64;
        let score: f64 = words
            .iter()
            .filter_map(|(word, weight)| {
                let (count, spread) = (tool.counts.get(word)?, self.spread.get(word)?);
                let rarity = (1.0 + (all - spread + 0.5) / (spread + 0.5)).ln();
                Some(weight * rarity * count * (SATURATION + 1.0) / (count + held_back))
            })
            .sum();
        (score * UNIT).round() as u64
    }
}

/// The names of what a tool takes.
pub(super) fn parameters(implementation: &Implementation) -> Vec<&str> {
    let schema = implementation.spec.input_schema.value();
    let fields = schema.get("properties").and_then(Value::as_object);
    fields.into_iter().flatten().map(|(name, _)| name.as_str()).collect()
}

#[cfg(test)]
#[path = "rank_tests.rs"]
mod tests;
