//! `budgets.json`: how many instructions each bench may take, and the ratchet on it.
//!
//! A budget only falls by [`Budgets::lower`]. Raising one is an edit of the file, which a reviewer sees. Nothing here runs a bench.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};

/// The tolerance of a budget that is written for the first time.
const DEFAULT_TOLERANCE: f64 = 2.0;

/// What one bench may take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Instructions per round.
    pub instructions: u64,
    /// How far above that a count may be before it fails.
    pub tolerance_percent: f64,
}

/// Every bench's budget, by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Budgets(BTreeMap<String, Budget>);

/// How a count stands to its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Within the tolerance, above or below.
    Within,
    /// Below the budget by more than the tolerance.
    WellBelow,
    /// Above the budget by more than the tolerance.
    Over,
    /// Nobody has set a budget.
    NoBudget,
    /// A budget without a bench.
    NoBench,
}

impl Verdict {
    /// Whether the gate stays open.
    pub fn passes(self) -> bool {
        matches!(self, Verdict::Within | Verdict::WellBelow)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Within => "ok",
            Verdict::WellBelow => "ok: the budget can be lowered (`just bench-accept`)",
            Verdict::Over => "OVER BUDGET: make it cheaper, or raise the budget by hand and say why",
            Verdict::NoBudget => "NO BUDGET: `just bench-accept` writes one",
            Verdict::NoBench => "NO BENCH: take the budget out of budgets.json, or bring the bench back",
        })
    }
}

impl Budget {
    fn judge(&self, count: u64) -> Verdict {
        let (count, budget) = (count as f64, self.instructions as f64);
        let slack = budget * self.tolerance_percent / 100.0;
        if count > budget + slack {
            Verdict::Over
        } else if count < budget - slack {
            Verdict::WellBelow
        } else {
            Verdict::Within
        }
    }
}

impl Budgets {
    /// Reads the file's text.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The file's text.
    pub fn write(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Each bench and each budget with its verdict. Only names that `asked` accepts are judged.
    pub fn judge(&self, counts: &BTreeMap<String, u64>, asked: impl Fn(&str) -> bool) -> Vec<Line> {
        let mut lines: Vec<Line> = counts
            .iter()
            .map(|(name, &count)| {
                let budget = self.0.get(name);
                Line {
                    name: name.clone(),
                    count: Some(count),
                    budget: budget.map(|budget| budget.instructions),
                    verdict: budget.map_or(Verdict::NoBudget, |budget| budget.judge(count)),
                }
            })
            .collect();
        lines.extend(self.0.iter().filter(|(name, _)| asked(name) && !counts.contains_key(*name)).map(
            |(name, budget)| Line {
                name: name.clone(),
                count: None,
                budget: Some(budget.instructions),
                verdict: Verdict::NoBench,
            },
        ));
        lines
    }

    /// Takes over every count that is below its budget, and sets a budget where there is none. Never raises one.
    pub fn lower(&mut self, counts: &BTreeMap<String, u64>) {
        for (name, &count) in counts {
            self.0
                .entry(name.clone())
                .and_modify(|budget| budget.instructions = budget.instructions.min(count))
                .or_insert(Budget { instructions: count, tolerance_percent: DEFAULT_TOLERANCE });
        }
    }
}

/// One line of the report.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The bench.
    pub name: String,
    /// Instructions per round, if it ran.
    pub count: Option<u64>,
    /// What it may take, if that is set.
    pub budget: Option<u64>,
    /// The verdict.
    pub verdict: Verdict,
}

/// The report as a table.
pub fn table(lines: &[Line]) -> String {
    let width = lines.iter().map(|line| line.name.len()).max().unwrap_or(0).max("bench".len());
    let mut text =
        format!("{:width$}  {:>15}  {:>15}  {:>8}  verdict\n", "bench", "instructions", "budget", "change");
    for line in lines {
        let change = match (line.count, line.budget) {
            (Some(count), Some(budget)) if budget > 0 => {
                format!("{:+.2}%", (count as f64 / budget as f64 - 1.0) * 100.0)
            }
            _ => "-".to_owned(),
        };
        // Writing to a text cannot fail.
        let _ = writeln!(
            text,
            "{:width$}  {:>15}  {:>15}  {change:>8}  {}",
            line.name,
            line.count.map_or_else(|| "-".to_owned(), grouped),
            line.budget.map_or_else(|| "-".to_owned(), grouped),
            line.verdict
        );
    }
    text
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
