//! A file's bytes as shared pages: a copy costs a pointer per page, and a change copies only the pages it touches.

use std::sync::Arc;

const PAGE: usize = 4096;

type Page = [u8; PAGE];

/// The bytes of a file at one moment. A page that was never written is absent and reads as zeros.
#[derive(Clone, Default)]
pub(super) struct Image {
    pages: Vec<Option<Arc<Page>>>,
    length: u64,
}

impl Image {
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Copies bytes out and says how many there were; the rest of the buffer is unchanged.
    pub(super) fn read(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let available = usize::try_from(self.length.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(available);
        for (page, within, range) in pieces(offset, wanted) {
            let target = &mut buffer[range];
            match self.pages.get(page).and_then(Option::as_ref) {
                Some(bytes) => target.copy_from_slice(&bytes[within..within + target.len()]),
                None => target.fill(0),
            }
        }
        wanted
    }

    /// Puts bytes in, growing the file where they reach past its end.
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset + bytes.len() as u64;
        if end > self.length {
            self.resize(end);
        }
        for (page, within, range) in pieces(offset, bytes.len()) {
            let source = &bytes[range];
            let held = self.pages[page].get_or_insert_with(|| Arc::new([0; PAGE]));
            Arc::make_mut(held)[within..within + source.len()].copy_from_slice(source);
        }
    }

    /// Cuts the file, or grows it with zeros.
    pub(super) fn resize(&mut self, length: u64) {
        self.pages.resize(page_count(length), None);
        let kept = (length % PAGE as u64) as usize;
        if length < self.length
            && kept > 0
            && let Some(Some(last)) = self.pages.last_mut()
        {
            Arc::make_mut(last)[kept..].fill(0);
        }
        self.length = length;
    }
}

fn page_count(length: u64) -> usize {
    usize::try_from(length.div_ceil(PAGE as u64)).unwrap_or(usize::MAX)
}

/// The pages that a range touches: the page, where in it, and which part of the caller's buffer that is.
fn pieces(offset: u64, length: usize) -> impl Iterator<Item = (usize, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done >= length {
            return None;
        }
        let place = offset + done as u64;
        let within = (place % PAGE as u64) as usize;
        let count = (PAGE - within).min(length - done);
        let piece = ((place / PAGE as u64) as usize, within, done..done + count);
        done += count;
        Some(piece)
    })
}
