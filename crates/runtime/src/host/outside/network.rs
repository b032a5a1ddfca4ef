//! The capability `network`: whether an extension may connect to a host, and to which addresses. The user is asked about a host that is not
//! granted, where there is one to ask; everything else is denied. The name is resolved here, and the answer has the addresses that were
//! checked, so that it is not resolved again.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::content::Content;
use holdfast_contract::host_call::arguments::ConnectArguments;
use holdfast_contract::manifest::Grants;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::Later;
use holdfast_policy::GrantedAccess;
use serde_json::json;

use super::consent::UngrantedUse;
use crate::host::Caller;
use crate::runtime::Inner;

/// How long resolving a name may take.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a host may be connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Granted {
    /// By its own name, or by its address.
    Named,
    /// By a pattern.
    Matched,
}

pub(super) fn denied(message: String) -> Fault {
    Fault::new(Code::ToolDenied, message)
}

impl Inner {
    /// Whether a connection may be made, and to which addresses.
    pub(in crate::host) fn network_connect(
        self: &Arc<Self>,
        caller: Caller,
        target: ConnectArguments,
    ) -> Later<Result<Content, Fault>> {
        let inner = self.clone();
        Box::pin(async move {
            let addresses = inner.connect(&caller, &target).await?;
            Ok(Content::new(json!({ "addresses": addresses })))
        })
    }

    /// The addresses of a host that may be connected to. The user is asked where that is possible.
    pub(super) async fn connect(
        &self,
        caller: &Caller,
        target: &ConnectArguments,
    ) -> Result<Vec<SocketAddr>, Fault> {
        let granted = self.granted(caller, target).await?;
        resolve(target, granted).await
    }

    /// The addresses of a host that is granted; nothing where it is not. Nobody is asked.
    pub(super) async fn connect_if_granted(
        &self,
        caller: &Caller,
        target: &ConnectArguments,
    ) -> Result<Option<Vec<SocketAddr>>, Fault> {
        match self.by_grant(caller, target)? {
            Some(granted) => resolve(target, granted).await.map(Some),
            None => Ok(None),
        }
    }

    /// Whether a grant covers the host.
    fn by_grant(&self, caller: &Caller, target: &ConnectArguments) -> Result<Option<Granted>, Fault> {
        let bundle = self.activation(caller.extension.digest)?;
        let reach = GrantedAccess::of(&bundle.grants);
        let ConnectArguments { host, port } = target;
        Ok(if reach.names_host(host, *port) {
            Some(Granted::Named)
        } else {
            reach.host(host, *port).then_some(Granted::Matched)
        })
    }

    /// Whether secrets may be sent to a host: a grant covers it. The user's answer to a question is not enough.
    pub(super) fn takes_secrets(&self, caller: &Caller, target: &ConnectArguments) -> Result<bool, Fault> {
        Ok(self.by_grant(caller, target)?.is_some())
    }

    /// Why the host may be connected to: by a grant, or by the user's answer.
    async fn granted(&self, caller: &Caller, target: &ConnectArguments) -> Result<Granted, Fault> {
        let ConnectArguments { host, port } = target;
        if let Some(granted) = self.by_grant(caller, target)? {
            return Ok(granted);
        }
        let bundle = self.activation(caller.extension.digest)?;
        let at = place(host, *port);
        let asked = UngrantedUse {
            wanted: Grants { network: vec![at.clone()], ..Grants::default() },
            action: format!("reach {at}"),
            option: format!("--network {at}"),
        };
        self.consent(caller, &bundle, asked).await.map(|()| Granted::Named)
    }
}

/// The addresses of a host, as far as it may have them.
async fn resolve(target: &ConnectArguments, granted: Granted) -> Result<Vec<SocketAddr>, Fault> {
    let ConnectArguments { host, port } = target;
    let looked_up =
        tokio::time::timeout(LOOKUP_TIMEOUT, tokio::net::lookup_host((host.as_str(), *port))).await;
    let missing = |why: String| Fault::new(Code::ToolFailed, format!("`{host}` has no address: {why}"));
    let found =
        looked_up.map_err(|late| missing(late.to_string()))?.map_err(|error| missing(error.to_string()))?;
    let (open, closed): (Vec<SocketAddr>, Vec<SocketAddr>) =
        found.partition(|address| may_be(address.ip(), host, granted));
    if !open.is_empty() {
        return Ok(open);
    }
    let Some(address) = closed.first() else { return Err(missing("none was found".to_owned())) };
    let message = format!(
        "`{host}` is {}, which is not an address of the public network: only a grant that names it reaches it",
        address.ip()
    );
    Err(denied(message))
}

/// A host and port as a grant has them.
fn place(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Whether a host that may be connected to may have this address. The owner of a name chooses its addresses, so loopback, link-local and
/// metadata addresses need a grant of the address itself or of `localhost`, and private networks need a grant that names the host.
fn may_be(address: IpAddr, host: &str, granted: Granted) -> bool {
    let literal = host.parse::<IpAddr>().is_ok() || host.eq_ignore_ascii_case("localhost");
    match place_of(address) {
        AddressClass::Public => true,
        AddressClass::Private => granted == Granted::Named,
        AddressClass::Near => granted == Granted::Named && literal,
    }
}

/// What kind of address it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddressClass {
    Public,
    /// A private network.
    Private,
    /// Loopback, link-local, multicast and reserved addresses.
    Near,
}

fn place_of(address: IpAddr) -> AddressClass {
    match address {
        IpAddr::V4(address) => place_of_four(address),
        IpAddr::V6(address) => place_of_six(address),
    }
}

fn place_of_four(address: Ipv4Addr) -> AddressClass {
    let [a, b, c, _] = address.octets();
    let near = address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || matches!((a, b, c), (0, ..) | (240.., ..) | (192, 0, 0) | (168, 63, 129) | (198, 18 | 19, _));
    if near {
        AddressClass::Near
    } else if address.is_private() || (a == 100 && (64..128).contains(&b)) {
        AddressClass::Private
    } else {
        AddressClass::Public
    }
}

fn place_of_six(address: Ipv6Addr) -> AddressClass {
    let [a, b, c, d, .., g, h] = address.segments();
    let inner = |high: u16, low: u16| place_of_four(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    if let Some(four) = address.to_ipv4_mapped() {
        return place_of_four(four);
    }
    match (a, b, c, d) {
        // An address with an IPv4 address in it counts as that one.
        (0x64, 0xff9b, _, _) | (0, 0, 0, 0) if h > 1 || g > 0 => inner(g, h),
        (0x2002, high, low, _) => inner(high, low),
        // The metadata service of clouds, as 169.254.169.254 is.
        (0xfd00, 0x0ec2, 0, 0) => AddressClass::Near,
        (0xfc00..=0xfdff, ..) => AddressClass::Private,
        (0x2000..=0x3fff, second, ..) if (a, second) != (0x2001, 0x0db8) && (a, second) != (0x2001, 0) => {
            AddressClass::Public
        }
        _ => AddressClass::Near,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_the_public_network_alone() {
        let leads = |address: &str| address.parse().map(place_of);
        for public in ["93.184.216.34", "1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"] {
            assert_eq!(leads(public), Ok(AddressClass::Public), "{public}");
        }
        for private in [
            "10.0.0.1",
            "172.16.3.4",
            "192.168.1.1",
            "100.64.0.1",
            "fd12::1",
            "::ffff:10.0.0.1",
            "2002:0a00:0001::",
        ] {
            assert_eq!(leads(private), Ok(AddressClass::Private), "{private}");
        }
        for near in [
            "127.0.0.1",
            "127.8.8.8",
            "0.0.0.0",
            "169.254.169.254",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "2002:7f00:0001::",
            "fd00:ec2::254",
            "168.63.129.16",
            "2001:db8::1",
            "::127.0.0.1",
        ] {
            assert_eq!(leads(near), Ok(AddressClass::Near), "{near}");
        }
    }

    #[test]
    fn a_granted_name_does_not_lead_to_this_machine() {
        let may = |address: &str, host: &str, granted| {
            address.parse().map(|address| may_be(address, host, granted))
        };
        assert_eq!(may("127.0.0.1", "evil.example", Granted::Named), Ok(false));
        assert_eq!(may("127.0.0.1", "127.0.0.1", Granted::Named), Ok(true));
        assert_eq!(may("127.0.0.1", "127.0.0.1", Granted::Matched), Ok(false));
        assert_eq!(may("::1", "localhost", Granted::Named), Ok(true));
        assert_eq!(may("10.0.0.1", "nas.home.example", Granted::Named), Ok(true));
        assert_eq!(may("10.0.0.1", "nas.home.example", Granted::Matched), Ok(false));
        assert_eq!(may("1.1.1.1", "a.example", Granted::Matched), Ok(true));
    }
}
