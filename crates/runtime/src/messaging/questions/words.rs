//! Questions on a channel in words: how one is put, how it is answered, and what the words of an answer mean.

use holdfast_contract::content::Content;
use holdfast_contract::session_frames::{Answer, ApprovalScope, UiQuestion};
use holdfast_contract::text::is_invisible;
use serde_json::json;

use super::{QuestionReply, QuestionSubject, WaitingQuestion};

/// The letters and digits of a code: none that is read as another.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Letters and digits of a code.
const CODE_LENGTH: usize = 6;

/// The most characters of a call's arguments that are shown on a channel. What is longer is approved in the terminal, where all of it
/// can be read.
const MAX_SHOWN_ARGUMENTS: usize = 3_000;

/// The most characters of an extension's own words.
const MAX_SHOWN_PROMPT: usize = 2_000;

/// The code that these bytes give; none if they give one that could be a word or a number.
pub(super) fn code_of(bytes: &[u8]) -> Option<String> {
    let letter = |byte: &u8| ALPHABET.get(usize::from(byte % 32)).copied().map(char::from);
    let code: String = bytes.iter().take(CODE_LENGTH).filter_map(letter).collect();
    is_code(&code).then_some(code)
}

fn is_code(word: &str) -> bool {
    let in_alphabet = |letter: char| ALPHABET.contains(&(letter.to_ascii_uppercase() as u8));
    word.is_ascii()
        && word.len() == CODE_LENGTH
        && word.chars().all(in_alphabet)
        && word.contains(|letter: char| letter.is_ascii_digit())
        && word.contains(|letter: char| letter.is_ascii_alphabetic())
}

/// A text as the words of an answer and a code, if it ends with one.
pub(super) fn split(text: &str) -> Option<(&str, String)> {
    let text = text.trim();
    let (words, code) = text.rsplit_once(char::is_whitespace)?;
    is_code(code).then(|| (words.trim(), code.to_ascii_uppercase()))
}

/// Whether these words are an answer and nothing else, whatever was asked.
pub(super) fn is_plain_answer(words: &str) -> bool {
    matches!(words.to_lowercase().as_str(), "yes" | "no" | "session" | "y" | "n")
        || words.parse::<usize>().is_ok()
}

/// What is asked, for somebody who sees nothing else of the session.
pub(super) fn asked(question: &WaitingQuestion) -> String {
    let session = &question.session;
    match &question.subject {
        QuestionSubject::Approval { tool, extension, arguments, reasons } => {
            let whose = extension.as_ref().map(|id| format!(" of `{id}`")).unwrap_or_default();
            let reasons: Vec<String> =
                reasons.iter().map(|it| format!("\n{}: {}", it.hook, visible(&it.reason))).collect();
            let shown = match shown_arguments(arguments) {
                Some(shown) => shown,
                None => format!(
                    "Its arguments are too long to be shown here. Read and approve them in the terminal: `holdfast questions answer {}`.",
                    question.id()
                ),
            };
            format!("? `{tool}`{whose} wants to run (session {session})\n{shown}{}", reasons.concat())
        }
        QuestionSubject::Extension { extension, question: asked } => {
            let prompt: String = asked.prompt().chars().take(MAX_SHOWN_PROMPT).collect();
            let lines: Vec<String> = prompt.lines().map(|line| format!("\n> {}", visible(line))).collect();
            let secret = match asked {
                UiQuestion::Input { secret: true, .. } => format!(
                    "\nIt asks for a secret, which is not sent over a channel. Answer in the terminal: `holdfast questions answer {}`.",
                    question.id()
                ),
                _ => String::new(),
            };
            format!("? `{extension}` asks (session {session}):{}{secret}", lines.concat())
        }
    }
}

/// The arguments of a call on one line; none if they are too long.
fn shown_arguments(arguments: &Content) -> Option<String> {
    let text = visible(arguments.json());
    (text.chars().count() <= MAX_SHOWN_ARGUMENTS).then_some(text)
}

/// A text on one line, with everything that could not be seen replaced.
fn visible(text: &str) -> String {
    let shown = |letter: char| match letter {
        '\n' => '⏎',
        letter if letter.is_control() || is_invisible(letter) => '�',
        letter => letter,
    };
    text.chars().map(shown).collect()
}

/// What can be chosen, as the user reads it and as it is said.
pub(super) fn choices(question: &WaitingQuestion, remembers: bool) -> Vec<(String, String)> {
    let same = |word: &str| (word.to_owned(), word.to_owned());
    match &question.subject {
        QuestionSubject::Approval { arguments, .. } if shown_arguments(arguments).is_none() => {
            vec![same("no")]
        }
        QuestionSubject::Approval { .. } if remembers => vec![same("yes"), same("session"), same("no")],
        QuestionSubject::Approval { .. } => vec![same("yes"), same("no")],
        QuestionSubject::Extension { question: UiQuestion::Confirm { .. }, .. } => {
            vec![same("yes"), same("no")]
        }
        QuestionSubject::Extension { question: UiQuestion::Select { options, .. }, .. } => {
            let numbered = options.iter().enumerate();
            numbered.map(|(place, option)| (visible(option), (place + 1).to_string())).collect()
        }
        QuestionSubject::Extension { .. } => Vec::new(),
    }
}

/// How a question is answered with a code; empty if it cannot be answered on a channel.
pub(super) fn how(question: &WaitingQuestion, choices: &[(String, String)], code: &str) -> String {
    if is_secret(question) {
        return String::new();
    }
    if choices.is_empty() {
        return format!("Answer with your text and then the code: `… {code}`");
    }
    let line = |(label, word): &(String, String)| {
        if label == word { format!("`{word} {code}`") } else { format!("`{word} {code}` for {label}") }
    };
    format!("Answer with {}", choices.iter().map(line).collect::<Vec<_>>().join(", "))
}

fn is_secret(question: &WaitingQuestion) -> bool {
    let QuestionSubject::Extension { question, .. } = &question.subject else { return false };
    matches!(question, UiQuestion::Input { secret: true, .. })
}

/// What these words answer; `None` if they do not answer this question. Only what was offered counts.
pub(super) fn reply(question: &WaitingQuestion, words: &str, remembers: bool) -> Option<QuestionReply> {
    let offered = choices(question, remembers);
    let (first, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    let word = match first.to_lowercase().as_str() {
        "y" => "yes".to_owned(),
        "n" => "no".to_owned(),
        word => word.to_owned(),
    };
    let is_offered = offered.iter().any(|(_, said)| *said == word);
    match &question.subject {
        QuestionSubject::Approval { .. } => {
            let scope = match word.as_str() {
                "no" => {
                    let reason = if rest.trim().is_empty() { "the user denied it" } else { rest.trim() };
                    return Some(QuestionReply::Approval(Answer::Deny { reason: reason.to_owned() }));
                }
                "session" => ApprovalScope::Session,
                _ => ApprovalScope::Once,
            };
            (is_offered && rest.is_empty()).then_some(QuestionReply::Approval(Answer::Approve { scope }))
        }
        QuestionSubject::Extension { question: asked, .. } => {
            let answer = match asked {
                UiQuestion::Confirm { .. } if is_offered && rest.is_empty() => json!(word == "yes"),
                UiQuestion::Select { options, .. } => {
                    let number = words.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
                    let by_number = number.and_then(|place| options.get(place));
                    json!(by_number.or_else(|| options.iter().find(|option| *option == words))?)
                }
                UiQuestion::Input { secret: false, .. } | UiQuestion::Custom { .. } => json!(words),
                UiQuestion::Confirm { .. } | UiQuestion::Input { secret: true, .. } => return None,
            };
            Some(QuestionReply::Extension(Content::new(answer)))
        }
    }
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
