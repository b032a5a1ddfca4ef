//! Redaction of facts.

use holdfast_contract::ids::Seq;
use holdfast_contract::session_frames::{DeliveryReported, ModelFailed};
use holdfast_contract::system_frames::ExtensionRejected;

use super::*;

#[test]
fn a_secret_in_the_fault_of_a_fact_is_redacted() {
    let name = SecretName::global("PROVIDER_KEY").unwrap();
    let redactor = Redactor::new([(name, SecretString::from("sk-planted-0123456789"))]);
    let fault = || Fault::new(Code::ModelKey, "invalid key sk-planted-0123456789");
    let facts: [Body; 3] = [
        ModelFailed::new(fault(), false).into(),
        ExtensionRejected { id: "planted".into(), fault: fault() }.into(),
        DeliveryReported { delivery: Seq(1), fault: Some(fault()) }.into(),
    ];
    for mut fact in facts {
        redact(&redactor, &mut fact);
        let message = &fault_in(&mut fact).unwrap().message;
        assert_eq!(message, "invalid key [secret PROVIDER_KEY]");
    }
}
