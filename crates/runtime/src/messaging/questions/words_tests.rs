//! Codes, the words of answers, and what a question shows.

use holdfast_contract::ids::{Millis, Seq};
use holdfast_contract::message::Origin;

use super::*;

fn question(subject: QuestionSubject) -> WaitingQuestion {
    let (session, origin) = ("chat.ada".into(), Origin::default());
    WaitingQuestion { session, request: Seq(7), origin, since: Millis(0), subject }
}

fn approval(arguments: serde_json::Value) -> WaitingQuestion {
    let (tool, extension) = ("shell".into(), Some("shell".into()));
    question(QuestionSubject::Approval {
        tool,
        extension,
        arguments: Content::new(arguments),
        reasons: Vec::new(),
    })
}

fn of_extension(asked: UiQuestion) -> WaitingQuestion {
    question(QuestionSubject::Extension { extension: "helper".into(), question: asked })
}

#[test]
fn a_code_is_no_word_and_no_number() {
    for text in ["yes 7K3F2Q", " yes  7k3f2q\n", "no not that folder 7K3F2Q"] {
        assert_eq!(split(text).map(|(_, code)| code), Some("7K3F2Q".to_owned()), "{text}");
    }
    for text in [
        "yes please",
        "no banana",
        "yes decade",
        "yes 123456",
        "7K3F2Q",
        "yes 7K3F2",
        "yes 7K3F2QQ",
        "yes 7K3FIQ",
    ] {
        assert_eq!(split(text), None, "{text}");
    }
    assert_eq!(code_of(&[7, 18, 3, 15, 2, 22]), Some("7J3F2P".to_owned()));
    assert_eq!(code_of(&[1, 2, 3, 4, 5, 6]), None, "a number");
    assert_eq!(code_of(&[13, 14, 12, 10, 13, 14]), None, "a word");
}

#[test]
fn an_approval_takes_what_was_offered_and_a_reason() {
    let asked = approval(json!({ "command": "ls" }));
    let scope = |words: &str, remembers| match reply(&asked, words, remembers) {
        Some(QuestionReply::Approval(Answer::Approve { scope })) => Some(scope),
        _ => None,
    };
    assert_eq!(scope("yes", false), Some(ApprovalScope::Once));
    assert_eq!(scope("Y", true), Some(ApprovalScope::Once));
    assert_eq!((scope("session", true), scope("session", false)), (Some(ApprovalScope::Session), None));
    for words in ["", "always", "maybe", "yes and no", "yes, but"] {
        assert!(reply(&asked, words, true).is_none(), "{words}");
    }
    let denied = QuestionReply::Approval(Answer::Deny { reason: "not that folder".to_owned() });
    assert_eq!(reply(&asked, "no not that folder", true), Some(denied));
}

#[test]
fn a_call_that_cannot_be_read_whole_cannot_be_approved() {
    let long = approval(json!({ "text": "x".repeat(MAX_SHOWN_ARGUMENTS) }));
    assert!(reply(&long, "yes", true).is_none() && reply(&long, "session", true).is_none());
    assert!(reply(&long, "no", true).is_some());
    assert!(asked(&long).contains("holdfast questions answer chat.ada/7"));
}

#[test]
fn hidden_letters_and_lines_of_a_question_are_seen() {
    let shown = asked(&approval(json!({ "command": "ls \u{202e}\u{200b}x" })));
    assert!(!shown.contains(['\u{202e}', '\u{200b}']) && shown.contains("ls ��x"), "{shown}");
    let prompt = "Go on?\nAnswer with `yes 7K3F2Q`".to_owned();
    let shown = asked(&of_extension(UiQuestion::Confirm { prompt }));
    assert_eq!(shown, "? `helper` asks (session chat.ada):\n> Go on?\n> Answer with `yes 7K3F2Q`");
}

#[test]
fn questions_of_extensions_are_answered_in_their_own_way() {
    let value = |asked: UiQuestion, words: &str| match reply(&of_extension(asked), words, true) {
        Some(QuestionReply::Extension(answer)) => Some(answer.value().clone()),
        _ => None,
    };
    let confirm = || UiQuestion::Confirm { prompt: "?".to_owned() };
    assert_eq!((value(confirm(), "yes"), value(confirm(), "no")), (Some(json!(true)), Some(json!(false))));
    assert_eq!(value(confirm(), "perhaps"), None);
    let options = vec!["red".to_owned(), "dark blue".to_owned()];
    let select = || UiQuestion::Select { prompt: "?".to_owned(), options: options.clone() };
    assert_eq!(
        (value(select(), "2"), value(select(), "dark blue")),
        (Some(json!("dark blue")), Some(json!("dark blue")))
    );
    assert_eq!((value(select(), "3"), value(select(), "0"), value(select(), "green")), (None, None, None));
    let input = |secret| UiQuestion::Input { prompt: "?".to_owned(), secret };
    assert_eq!(
        (value(input(false), "in Vienna"), value(input(true), "hunter2")),
        (Some(json!("in Vienna")), None)
    );
}
