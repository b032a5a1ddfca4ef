//! Redaction: known values are replaced in text, in all common encodings, also in streamed text.

mod forms;
mod stream;
mod views;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::AhoCorasick;
use secrecy::{ExposeSecret, SecretString};

use crate::name::SecretName;
pub use stream::RedactedStream;

/// Values with fewer bytes are not redacted: they occur in every text.
pub const SHORTEST: usize = 4;

/// Replaces values by `[secret NAME]`. One pass over a text, however many values there are.
#[derive(Default)]
pub struct Redactor {
    finder: Option<AhoCorasick>,
    /// The forms in order, each with what it is a form of.
    forms: Vec<(String, usize)>,
    names: Vec<SecretName>,
    unprotected: Vec<SecretName>,
    longest: usize,
}

impl Redactor {
    /// Looks for these values.
    pub fn new(secrets: impl IntoIterator<Item = (SecretName, SecretString)>) -> Self {
        let mut redactor = Self::default();
        let mut forms = BTreeMap::new();
        for (name, value) in secrets {
            if value.expose_secret().len() < SHORTEST {
                redactor.unprotected.push(name);
                continue;
            }
            let place = redactor.names.len();
            redactor.names.push(name);
            for form in forms::of(value.expose_secret()) {
                forms.entry(form).or_insert(place);
            }
        }
        redactor.forms = forms.into_iter().collect();
        redactor.longest = redactor.forms.iter().map(|(form, _)| form.len()).max().unwrap_or_default();
        // Too many forms for a finder are more than memory holds; then nothing is let through, see `ranges`.
        redactor.finder = AhoCorasick::new(redactor.forms.iter().map(|(form, _)| form)).ok();
        redactor
    }

    /// The text without the values.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let ranges = self.ranges(text);
        if ranges.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(self.replace(text, &ranges)) }
    }

    /// For a text that comes in pieces.
    pub fn stream(self: &Arc<Self>) -> RedactedStream {
        RedactedStream::new(self.clone())
    }

    /// Those whose values are too short to be looked for.
    pub fn unprotected(&self) -> &[SecretName] {
        &self.unprotected
    }

    /// The ranges of values. Overlapping values are one range with several names, so that no part of either remains.
    fn ranges(&self, text: &str) -> Vec<Place> {
        let Some(finder) = &self.finder else {
            let all = Place { range: 0..text.len(), secrets: (0..self.names.len()).collect() };
            return if self.names.is_empty() || text.is_empty() { Vec::new() } else { vec![all] };
        };
        let mut found: Vec<_> = finder
            .find_overlapping_iter(text)
            .filter_map(|found| Some((found.range(), self.forms.get(found.pattern().as_usize())?.1)))
            .collect();
        if !self.names.is_empty() {
            for view in views::of(text) {
                let within = finder.find_overlapping_iter(&view.text);
                found.extend(within.filter(|found| found.len() >= view.shortest).filter_map(|found| {
                    let secret = self.forms.get(found.pattern().as_usize())?.1;
                    Some((view.place(found.range()), secret))
                }));
            }
        }
        found.sort_by_key(|(range, _)| (range.start, range.end));
        let mut places: Vec<Place> = Vec::new();
        for (range, secret) in found {
            match places.last_mut().filter(|last| range.start < last.range.end) {
                Some(last) => {
                    last.range.end = last.range.end.max(range.end);
                    last.secrets.insert(secret);
                }
                None => places.push(Place { range, secrets: BTreeSet::from([secret]) }),
            }
        }
        places
    }

    fn replace(&self, text: &str, places: &[Place]) -> String {
        let mut out = String::with_capacity(text.len());
        let mut from = 0;
        for Place { range, secrets } in places {
            out.push_str(&text[from..range.start]);
            let mut names: Vec<_> = secrets.iter().filter_map(|secret| self.names.get(*secret)).collect();
            names.dedup();
            out.extend(names.into_iter().map(|name| format!("[secret {name}]")));
            from = range.end;
        }
        out.push_str(&text[from..]);
        out
    }
}

/// A part of a text that is a value, or several that overlap.
struct Place {
    range: Range<usize>,
    secrets: BTreeSet<usize>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} secrets)", self.names.len())
    }
}
