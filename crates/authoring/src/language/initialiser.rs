//! Removes an export that interpreters leave in a component: the function that initialised them once, when the component was built.
//! The loader refuses exports that are not interfaces of the package, and the function must not run again.
//!
//! An export of a component also defines an item in an index space. So each removed export is replaced by an item of the same kind
//! that is not exported, and no index changes. Other sections are copied.

use std::ops::Range;

use crate::wit::PACKAGE;

const ALIASES: u8 = 6;
const INSTANCES: u8 = 5;
const EXPORTS: u8 = 11;

const FUNCTION: u8 = 1;
const INSTANCE: u8 = 5;

/// A section: its kind, its range, and the start of its content.
struct Section {
    id: u8,
    whole: Range<usize>,
    content: usize,
}

/// The component without its initialiser. Sections that cannot be parsed are copied, and left to the check that follows.
pub(crate) fn removed(bytes: Vec<u8>) -> Vec<u8> {
    let Some(sections) = sections(&bytes) else { return bytes };
    let mut result = bytes[..8].to_vec();
    for (place, section) in sections.iter().enumerate() {
        let before = place.checked_sub(1).map(|before| &sections[before]);
        match filler(&bytes, section, before) {
            Some(filler) => result.extend_from_slice(filler),
            None => result.extend_from_slice(&bytes[section.whole.clone()]),
        }
    }
    result
}

/// The replacement of a section with one export that is not an interface of the package.
fn filler<'a>(bytes: &'a [u8], section: &Section, before: Option<&Section>) -> Option<&'a [u8]> {
    let content = &bytes[section.content..section.whole.end];
    // One export, with a plain name.
    let ([1, 0], rest) = content.split_at_checked(2)? else { return None };
    let (length, at) = number(rest, 0)?;
    let name = rest.get(at..at + length)?;
    if section.id != EXPORTS || name.starts_with(PACKAGE.as_bytes()) {
        return None;
    }
    match *rest.get(at + length)? {
        // One instance, made of no exports.
        INSTANCE => Some(&[INSTANCES, 3, 1, 1, 0]),
        // The alias that was just exported, repeated.
        FUNCTION => {
            let before = before.filter(|before| before.id == ALIASES)?;
            bytes[before.content..].starts_with(&[1, FUNCTION]).then(|| &bytes[before.whole.clone()])
        }
        _ => None,
    }
}

fn sections(bytes: &[u8]) -> Option<Vec<Section>> {
    let mut found = Vec::new();
    let mut at = 8;
    while at < bytes.len() {
        let (length, content) = number(bytes, at + 1)?;
        let end = content.checked_add(length).filter(|end| *end <= bytes.len())?;
        found.push(Section { id: bytes[at], whole: at..end, content });
        at = end;
    }
    Some(found)
}

/// A number in LEB128, and the position after it.
fn number(bytes: &[u8], from: usize) -> Option<(usize, usize)> {
    let mut value = 0usize;
    for (place, byte) in bytes.get(from..)?.iter().take(5).enumerate() {
        value |= usize::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Some((value, from + place + 1));
        }
    }
    None
}
