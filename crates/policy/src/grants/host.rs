//! A host in a grant: `api.example.com`, `*.example.com`, `*`, each with a port if only that one is meant.
//!
//! A `*` matches whole labels at the front only, so that `*.example.com` does not match
//! `example.com.evil.org`, and two patterns always have an exact intersection.

use std::fmt;
use std::net::Ipv6Addr;

/// A set of hosts and ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    name: Name,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Name {
    Any,
    /// Everything below this domain, without the domain itself.
    Below(String),
    Exact(String),
}

impl Host {
    /// Reads a pattern; the error says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let (name, port) = split_port(text)?;
        let name = plain(name);
        if name == "*" {
            return Ok(Self { name: Name::Any, port });
        }
        let name = match name.strip_prefix("*.") {
            Some(domain) if domain.ends_with(|last: char| last.is_ascii_digit()) => {
                return Err("an address has no subdomains");
            }
            Some(domain) => Name::Below(checked(domain)?.to_owned()),
            None => Name::Exact(checked(&name)?.to_owned()),
        };
        Ok(Self { name, port })
    }

    /// What both match, if there is anything.
    pub(crate) fn meet(&self, other: &Self) -> Option<Self> {
        let name = if self.name.covers(&other.name) {
            &other.name
        } else if other.name.covers(&self.name) {
            &self.name
        } else {
            return None;
        };
        let port = match (self.port, other.port) {
            (Some(one), Some(two)) if one != two => return None,
            (one, two) => one.or(two),
        };
        Some(Self { name: name.clone(), port })
    }

    /// Whether it names one host.
    pub(crate) fn is_exact(&self) -> bool {
        matches!(self.name, Name::Exact(_))
    }

    /// Whether a host, given without its port, is in the set.
    pub(crate) fn admits(&self, host: &str, port: u16) -> bool {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        !bare.is_empty()
            && !bare.contains('*')
            && self.port.is_none_or(|only| only == port)
            && self.name.covers(&Name::Exact(plain(bare)))
    }
}

impl Name {
    fn covers(&self, other: &Name) -> bool {
        match (self, other) {
            (Name::Any, _) => true,
            (_, Name::Any) => false,
            (Name::Below(domain), Name::Exact(name)) => is_below(name, domain),
            (Name::Below(domain), Name::Below(other)) => domain == other || is_below(other, domain),
            (Name::Exact(name), Name::Exact(other)) => name == other,
            (Name::Exact(_), Name::Below(_)) => false,
        }
    }
}

fn is_below(name: &str, domain: &str) -> bool {
    name.strip_suffix(domain).and_then(|front| front.strip_suffix('.')).is_some_and(|front| !front.is_empty())
}

/// The one form of a name or an address: case, a dot at the end and the ways to write an address do not count.
fn plain(name: &str) -> String {
    match name.parse::<Ipv6Addr>() {
        Ok(address) => address.to_string(),
        Err(_) => name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase(),
    }
}

/// An IPv6 address is written in brackets where a port may follow.
fn split_port(text: &str) -> Result<(&str, Option<u16>), &'static str> {
    let (name, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, "")) => (address, None),
        Some((address, rest)) => {
            (address, Some(rest.strip_prefix(':').ok_or("unexpected text after the `]`")?))
        }
        None => match text.split_once(':') {
            Some((_, rest)) if rest.contains(':') => (text, None),
            Some((name, port)) => (name, Some(port)),
            None => (text, None),
        },
    };
    let Some(port) = port else { return Ok((name, None)) };
    match port.parse() {
        Ok(number @ 1..) if port.bytes().all(|byte| byte.is_ascii_digit()) => Ok((name, Some(number))),
        _ => Err("a port is a number from 1 to 65535"),
    }
}

fn checked(name: &str) -> Result<&str, &'static str> {
    if name.parse::<Ipv6Addr>().is_ok() {
        return Ok(name);
    }
    if name.contains('*') {
        return Err("`*` is allowed only for whole labels at the front, as in `*.example.com`");
    }
    if !name.is_ascii() {
        return Err("a host is written in ASCII; use its `xn--` form");
    }
    let label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    if name.len() <= 253 && name.split('.').all(label) {
        Ok(name)
    } else {
        Err("it is not a host; write a name or an address, with a port if need be")
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (front, name) = match &self.name {
            Name::Any => ("*", ""),
            Name::Below(domain) => ("*.", domain.as_str()),
            Name::Exact(name) => ("", name.as_str()),
        };
        match self.port {
            Some(port) if name.contains(':') => write!(f, "[{name}]:{port}"),
            Some(port) => write!(f, "{front}{name}:{port}"),
            None => write!(f, "{front}{name}"),
        }
    }
}
