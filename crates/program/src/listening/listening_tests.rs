//! Ports without a program: who uses one, and which ports the gateway leaves to the program.

use std::net::TcpListener;

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::manifest::ListenPort;
use holdfast_contract::problem::Code;

use super::claim::PortClaim;
use super::{ProgramPorts, holder, unavailable};
use crate::gateway;

#[test]
fn the_holder_of_a_port_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = ListenPort::try_from(listener.local_addr().unwrap().port()).unwrap();
    let me = format!("process {}", std::process::id());
    assert!(holder::of(port).unwrap().starts_with(&me));
    let fault = unavailable(&"web".into(), port, &std::io::ErrorKind::AddrInUse.into());
    assert_eq!(fault.code, Code::PortUnavailable);
    assert!(fault.message.contains(&me) && fault.message.contains("`web`"), "{fault}");
    drop(listener);
    assert_eq!(holder::of(port), None);
}

#[test]
fn the_gateway_leaves_a_port_to_the_program() {
    let own = [ListenPort::try_from(8080).unwrap()];
    let hosts = ["nas.example:8080".to_owned(), "nas.example:9999".to_owned()];
    assert!(gateway::ports(&hosts, &[]).contains(&8080));
    let left = gateway::ports(&hosts, &own);
    assert!(!left.contains(&8080) && left.contains(&9999) && left.contains(&443), "{left:?}");
}

#[tokio::test]
async fn a_port_is_claimed_by_one_and_waits_for_its_release() {
    let (one, two, port) =
        (ExtensionId::from("one"), ExtensionId::from("two"), ListenPort::try_from(2049).unwrap());
    let held = PortClaim::take(&one, port).await.unwrap();
    let waits = PortClaim::take(&two, port);
    let (taken, ()) = tokio::join!(waits, async { drop(held) });
    assert_eq!(taken.unwrap().port(), port);
}

#[tokio::test]
async fn without_namespaces_nothing_listens() {
    let ports = ProgramPorts::new(Vec::new());
    let wanted = [ListenPort::try_from(2050).unwrap()];
    let fault = ports.open(&"web".into(), &wanted, &Default::default()).await.unwrap_err();
    assert_eq!(fault.code, Code::ListenDenied);
    ports.open(&"web".into(), &[], &Default::default()).await.unwrap();
}
