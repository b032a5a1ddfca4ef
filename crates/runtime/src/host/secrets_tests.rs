//! Redaction of facts.

use holdfast_contract::ids::Seq;
use holdfast_contract::session_frames::{
    ChunkVerdict, CompactionProvided, DeliveryReported, ModelFailed, StreamGuarded,
};
use holdfast_contract::system_frames::ExtensionRejected;

use super::*;

#[test]
fn a_secret_in_the_fault_of_a_fact_is_redacted() {
    let name = SecretName::global("PROVIDER_KEY").unwrap();
    let redactor = Redactor::new([(name, SecretString::from("sk-planted-0123456789"))]);
    let fault = || Fault::new(Code::ModelKey, "invalid key sk-planted-0123456789");
    let guard = ChunkVerdict { window: 0, hook: "planted".into(), said: ChunkSaid::Faulted(fault()) };
    let facts: [Body; 5] = [
        ModelFailed::new(fault(), false).into(),
        ExtensionRejected { id: "planted".into(), fault: fault() }.into(),
        DeliveryReported { delivery: Seq(1), fault: Some(fault()) }.into(),
        CompactionProvided { outcome: ToolOutcome::Failure(fault()), usage: Default::default() }.into(),
        StreamGuarded { hooks: [].into(), text: Content::text(""), windows: 1, words: vec![guard] }.into(),
    ];
    for mut fact in facts {
        redact_body(&redactor, &mut fact);
        let mut messages = Vec::new();
        faults(&mut fact, &mut |fault| messages.push(fault.message.clone()));
        assert_eq!(messages, ["invalid key [secret PROVIDER_KEY]"]);
    }
}
