//! How a streamed text is cut for the guardrails that judge it, and how much of it may be shown when.
//!
//! Where it is cut follows from the text alone and not from the pieces in which a provider sent it, so that a replay cuts it in the same
//! places. A window ends as soon as it is complete: what comes after it changes nothing about it.

use std::ops::Range;

/// Characters after which a window ends with the next white space.
const WINDOW: usize = 200;
/// Characters after which it ends in any case.
const MAX_WINDOW_CHARS: usize = 400;
/// Characters before a window that are shown to a guardrail with it, and that are not shown to the user before that window is judged: what is
/// split over a border is seen whole, and its first half was not shown.
const OVERLAP: usize = 100;

/// Where the window ends that begins at this place; none where it is not complete.
pub(crate) fn window_end(text: &str, start: usize) -> Option<usize> {
    let rest = text.get(start..)?;
    let ends = |(count, (_, character)): &(usize, (usize, char))| {
        count + 1 >= MAX_WINDOW_CHARS || (count + 1 >= WINDOW && character.is_whitespace())
    };
    let (_, (place, last)) = rest.char_indices().enumerate().find(ends)?;
    Some(start + place + last.len_utf8())
}

/// The windows of a whole text. The last one has the rest.
pub fn windows(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let end = window_end(text, start).or_else(|| (start < text.len()).then_some(text.len()))?;
        let window = start..end;
        start = end;
        Some(window)
    })
}

/// What a guardrail is shown of a window: the end of what came before it, and itself.
pub fn window_with_overlap(text: &str, window: Range<usize>) -> &str {
    text.get(releasable_until(text, window.start)..window.end).unwrap_or_default()
}

/// Up to where a text may be shown that was judged this far and goes on.
pub(crate) fn releasable_until(text: &str, judged: usize) -> usize {
    let before = text.get(..judged).unwrap_or_default();
    before.char_indices().rev().take(OVERLAP).last().map_or(judged, |(place, _)| place)
}

/// Characters at the end of a text that more text may still change for a sanitizer that works on streams.
const UNSETTLED_CHARS: usize = 64;

/// Up to where a text that goes on is settled for sanitizers that work on streams: before its last characters, and before the run of
/// printable ASCII characters that they begin in, because a credential has no white space in it and may be long.
pub(crate) fn settled_until(text: &str) -> usize {
    let Some((end, _)) = text.char_indices().rev().take(UNSETTLED_CHARS).last() else { return 0 };
    let before = text.get(..end).unwrap_or_default();
    before.trim_end_matches(|it: char| it.is_ascii_graphic()).len()
}

#[cfg(test)]
#[path = "stream_windows_tests.rs"]
mod tests;
