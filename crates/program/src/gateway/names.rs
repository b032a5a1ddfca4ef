//! Names that a program looks up. None is resolved here: each gets an address of its own, which leads to the gateway, and when the program
//! connects to it, the host is asked about the name.

use std::collections::{HashMap, VecDeque};
use std::net::Ipv4Addr;

/// The range of the addresses: once reserved for relays (RFC 7526) and used by nobody. Programs that refuse to connect to private addresses
/// take them for public ones.
const RANGE: [u8; 3] = [192, 88, 99];
/// Addresses in use at once. The name that was looked up first gives its address to the next.
const MAX_NAMES: usize = 250;
/// How long a program may keep an answer, in seconds.
const TIME_TO_LIVE: u32 = 60;

const HEADER_BYTES: usize = 12;
const ADDRESS_TYPE: u16 = 1;
const INTERNET_CLASS: u16 = 1;
/// A response that is final, with recursion available.
const RESPONSE_FLAGS: u16 = 0x8180;
/// That the request is not understood, and that it is of a kind that is not answered.
const FORMAT_ERROR: u16 = 1;
const NOT_IMPLEMENTED: u16 = 4;

/// The names that a program has looked up, and their addresses.
#[derive(Default)]
pub(super) struct LookedUpNames {
    addresses: HashMap<String, Ipv4Addr>,
    /// In the order in which they were looked up first.
    order: VecDeque<String>,
}

impl LookedUpNames {
    /// The address of a name.
    fn address(&mut self, name: &str) -> Ipv4Addr {
        if let Some(address) = self.addresses.get(name) {
            return *address;
        }
        let free = if self.order.len() < MAX_NAMES {
            let [a, b, c] = RANGE;
            Ipv4Addr::new(a, b, c, self.order.len() as u8 + 1)
        } else {
            let oldest = self.order.pop_front().and_then(|oldest| self.addresses.remove(&oldest));
            oldest.unwrap_or(Ipv4Addr::LOCALHOST)
        };
        self.order.push_back(name.to_owned());
        self.addresses.insert(name.to_owned(), free);
        free
    }

    /// What a program means by an address that it connects to: the name that has it, or the address itself.
    pub(super) fn host(&self, address: Ipv4Addr) -> String {
        let named = self.addresses.iter().find(|(_, it)| **it == address);
        named.map_or_else(|| address.to_string(), |(name, _)| name.clone())
    }

    /// The response to a request of DNS; none where it is too broken for one.
    pub(super) fn answer(&mut self, request: &[u8]) -> Option<Vec<u8>> {
        let header = request.get(..HEADER_BYTES)?;
        let number = |at: usize| Some(u16::from_be_bytes([*request.get(at)?, *request.get(at + 1)?]));
        let is_query = number(2)? & 0xf800 == 0;
        let question = (number(4)? == 1).then(|| question(request)).flatten();
        let (code, question, address) = match question {
            _ if !is_query => (NOT_IMPLEMENTED, None, None),
            None => (FORMAT_ERROR, None, None),
            Some(found) => {
                let wanted = (found.kind, found.class) == (ADDRESS_TYPE, INTERNET_CLASS);
                let address = wanted.then(|| self.address(&found.name));
                (0, Some(found), address)
            }
        };
        let mut response = header.get(..2)?.to_vec();
        for field in [RESPONSE_FLAGS | code, question.is_some().into(), address.is_some().into(), 0, 0] {
            response.extend(u16::to_be_bytes(field));
        }
        if let Some(question) = &question {
            response.extend(request.get(HEADER_BYTES..question.end)?);
        }
        if let Some(address) = address {
            // The name is the question's, at the end of the header.
            response.extend([0xc0, HEADER_BYTES as u8]);
            response.extend(ADDRESS_TYPE.to_be_bytes());
            response.extend(INTERNET_CLASS.to_be_bytes());
            response.extend(TIME_TO_LIVE.to_be_bytes());
            response.extend(4u16.to_be_bytes());
            response.extend(address.octets());
        }
        Some(response)
    }
}

struct Question {
    name: String,
    kind: u16,
    class: u16,
    /// Where it ends in the request.
    end: usize,
}

/// The question of a request. `None` for a name with characters that no host name has.
fn question(request: &[u8]) -> Option<Question> {
    let (mut at, mut labels) = (HEADER_BYTES, Vec::new());
    loop {
        let length = usize::from(*request.get(at)?);
        at += 1;
        match length {
            0 => break,
            1..=63 => {
                let label = request.get(at..at + length)?;
                let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
                let label =
                    label.iter().all(is_allowed).then(|| std::str::from_utf8(label).ok()).flatten()?;
                labels.push(label.to_ascii_lowercase());
                at += length;
            }
            // Questions are not compressed.
            _ => return None,
        }
    }
    let name = labels.join(".");
    let number = |at: usize| Some(u16::from_be_bytes([*request.get(at)?, *request.get(at + 1)?]));
    let fits = !name.is_empty() && name.len() <= 253;
    fits.then_some(Question { name, kind: number(at)?, class: number(at + 2)?, end: at + 4 })
}
