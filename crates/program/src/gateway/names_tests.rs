//! Tests of looking up names.

use std::net::Ipv4Addr;

use super::names::LookedUpNames;

/// A request for a name, of this type.
fn request(name: &str, kind: u8) -> Vec<u8> {
    let mut request = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        request.push(label.len() as u8);
        request.extend(label.as_bytes());
    }
    request.extend([0, 0, kind, 0, 1]);
    request
}

fn address(response: &[u8]) -> Ipv4Addr {
    let [.., a, b, c, d] = response else { panic!("{response:?}") };
    Ipv4Addr::new(*a, *b, *c, *d)
}

#[test]
fn every_name_has_an_address_of_its_own() {
    let mut names = LookedUpNames::default();
    let first = address(&names.answer(&request("api.example.com", 1)).unwrap());
    let other = address(&names.answer(&request("imap.example.com", 1)).unwrap());
    assert_ne!(first, other);
    assert_eq!(address(&names.answer(&request("API.Example.com", 1)).unwrap()), first);
    assert_eq!((names.host(first), names.host(other)), ("api.example.com".into(), "imap.example.com".into()));
    assert_eq!(names.host(Ipv4Addr::new(10, 0, 0, 1)), "10.0.0.1");
    for number in 0..300 {
        names.answer(&request(&format!("n{number}.example.com"), 1)).unwrap();
    }
    assert_ne!(names.host(first), "api.example.com", "addresses are used again");
}

#[test]
fn other_types_have_no_answer_and_broken_requests_no_effect() {
    let mut names = LookedUpNames::default();
    let six = names.answer(&request("api.example.com", 28)).unwrap();
    assert_eq!((six[3] & 0xf, six[7]), (0, 0), "no error, and no answer");
    for name in
        ["a b.example", "exa\u{e9}mple.com", "*.example.com", &format!("{0}.{0}.{0}.{0}.{0}", "x".repeat(60))]
    {
        let refused = names.answer(&request(name, 1)).unwrap();
        assert_eq!((refused[3] & 0xf, refused[7]), (1, 0), "{name}");
    }
    let whole = request("api.example.com", 1);
    for length in 0..whole.len() {
        let answer = names.answer(&whole[..length]);
        assert!(answer.is_none_or(|answer| answer[7] == 0), "{length}");
    }
    let mut compressed = request("api.example.com", 1);
    compressed[12] = 0xc0;
    assert_eq!(names.answer(&compressed).unwrap()[3] & 0xf, 1);
}
