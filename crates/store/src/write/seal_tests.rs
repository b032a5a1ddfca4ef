//! The sealer's own way to an envelope's hash must be the contract's way.

use holdfast_contract::body::Body;
use holdfast_contract::ids::{Generation, Millis, Seq};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::session_frames::SessionEnded;

use super::*;

fn sources() -> Vec<FrameSource> {
    let extension = ExtensionRef {
        id: "höök \" \\ \u{7} \n".into(),
        version: "1.0.0-β".into(),
        digest: Digest::of(b"code"),
        generation: Generation(3),
    };
    vec![
        FrameSource::Kernel,
        FrameSource::Host,
        FrameSource::Policy(Digest::of(b"policy")),
        FrameSource::Surface("cli\u{1f}".into()),
        FrameSource::Model("vendor/model".into()),
        FrameSource::Extension(Arc::new(extension)),
    ]
}

#[test]
fn every_kind_of_envelope_hashes_as_the_contract_says() {
    let names = ["system", "s", "with \"quotes\" \\ and \t\r\n\u{8}\u{c}\u{0}\u{1f}\u{7f}", "ünï/🪢"];
    let numbers = [
        0,
        1,
        42,
        1_763_000_000_000,
        MAX_EXACT_INTEGER,
        MAX_EXACT_INTEGER + 1,
        MAX_EXACT_INTEGER + 2,
        u64::MAX,
    ];
    let mut sealer = Sealer::default();
    for name in names {
        for source in sources() {
            for number in numbers {
                for cause in [None, Some(Seq(number))] {
                    let frame = Prepared {
                        seq: Seq(number),
                        at: Millis(number),
                        source: source.clone(),
                        cause,
                        body: PreparedBody::of(&mut Body::from(SessionEnded { reason: "done".to_owned() }))
                            .unwrap(),
                    };
                    let sealed = sealer.seal(&StreamId::from(name), Digest::of(b"prev"), frame).unwrap();
                    assert_eq!(sealed.hash, sealed.envelope.hash().unwrap(), "{:?}", sealed.envelope);
                    assert_eq!(sealed.source.as_bytes(), canonical(&source).unwrap());
                }
            }
        }
    }
}

#[test]
fn more_sources_than_are_remembered_are_still_told_apart() {
    let mut sealer = Sealer::default();
    for round in 0..3 {
        for number in 0..40 {
            let source = FrameSource::Surface(format!("surface-{number}").into());
            let json = sealer.source(&source).unwrap();
            assert_eq!(&*json, format!(r#"{{"surface":"surface-{number}"}}"#), "round {round}");
        }
    }
}
