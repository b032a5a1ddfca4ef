//! `holdfast questions …`: the approvals and questions that wait for a person, in any session, and answering them from here.

use holdfast_contract::ids::{Seq, StreamId};
use holdfast_contract::problem::{Code, Problem};
use holdfast_contract::session_frames::{TurnOutcome, UiQuestion};
use holdfast_rpc::{
    ApprovalAnswer, ApprovalChoice, ApprovalShow, NoParams, QuestionInfo, SessionMethod, SessionOpen,
    SessionParams, UiAnswer,
};
use serde_json::{Value, json};

use crate::arguments::Questions;
use crate::chat::{Prompt, PromptKind, QuestionReply};
use crate::client::link::Link;
use crate::client::questions::ask_now;
use crate::client::turn::{attended, exit, text, told};
use crate::exit::Exit;
use crate::output::{Output, report, table};
use crate::time::moment;

pub(crate) async fn questions(output: &Output, link: &mut Link, command: Questions) -> Result<Exit, Problem> {
    match command {
        Questions::List => list(output, link).await,
        Questions::Answer { id, answer } => self::answer(output, link, &id, &answer.join(" ")).await,
    }
}

async fn all(link: &Link) -> Result<Vec<QuestionInfo>, Problem> {
    link.client.ask(&SessionMethod::Questions(NoParams {})).await
}

async fn list(output: &Output, link: &Link) -> Result<Exit, Problem> {
    let waiting = all(link).await?;
    if output.json {
        return output.documents(&waiting);
    }
    let rows = waiting.into_iter().map(|question| {
        let from = match question.user {
            Some(user) => format!("{} {user}", question.channel),
            None => question.channel,
        };
        let asks = question.extension.map(|id| id.to_string()).unwrap_or_default();
        let about = match (question.tool, question.question) {
            (Some(tool), _) => format!("run {tool} {}", question.arguments.unwrap_or_default()),
            (None, Some(asked)) => asked.prompt().to_owned(),
            (None, None) => String::new(),
        };
        [question.id, from, moment(question.since), asks, about]
    });
    let head = ["question", "session of", "since", "extension", "asks"];
    output.lines(table(head, rows, "no question waits for an answer"))?;
    Ok(Exit::Done)
}

async fn answer(output: &Output, link: &mut Link, id: &str, words: &str) -> Result<Exit, Problem> {
    let found = all(link).await?.into_iter().find(|question| question.id == id);
    let missing = || {
        let problem = Problem::new(Code::StoreMissing, format!("no question `{id}` waits for an answer"));
        problem.help("`holdfast questions list` shows what waits. It may have been answered elsewhere.")
    };
    let question = found.ok_or_else(missing)?;
    let (session, request) = (question.session.clone(), question.request);
    // The command that owns the home goes on with the turn to its end, and asks what it asks next.
    let own = link.welcome.process == std::process::id() && session.is_session();
    if own {
        let answers = attended();
        link.open_session(SessionOpen { session: Some(session.clone()), answers, ..SessionOpen::default() })
            .await?;
    }
    let reply =
        if words.trim().is_empty() { ask_person(link, question).await? } else { read(&question, words)? };
    let Some(sent) = request_of(&session, request, reply) else {
        return Err(Problem::new(Code::TurnCancelled, "the question was not answered; it still waits"));
    };
    link.client.ask::<Value>(&sent).await?;
    if output.json {
        output.document(&json!({ "question": id, "answered": true }))?;
    } else {
        output.line(format!("{id} is answered"))?;
    }
    if own { end_of_turn(output, link, session).await } else { Ok(Exit::Done) }
}

fn request_of(session: &StreamId, request: Seq, reply: QuestionReply) -> Option<SessionMethod> {
    let session = session.clone();
    match reply {
        QuestionReply::Approval(answer) => {
            Some(SessionMethod::ApprovalAnswer(ApprovalAnswer { session, approval: request, answer }))
        }
        QuestionReply::Extension(answer) => {
            Some(SessionMethod::UiAnswer(UiAnswer { session, request, answer }))
        }
        QuestionReply::Interrupt | QuestionReply::End | QuestionReply::Withdrawn => None,
    }
}

/// Asks the person at the terminal, as the chat does.
async fn ask_person(link: &Link, question: QuestionInfo) -> Result<QuestionReply, Problem> {
    let QuestionInfo { session, request, extension, question, .. } = question;
    let question = match (question, extension) {
        (Some(question), Some(extension)) => PromptKind::Extension { extension, question },
        _ => {
            let show = SessionMethod::ApprovalShow(ApprovalShow { session, approval: request });
            PromptKind::Approval(link.client.ask(&show).await?)
        }
    };
    let nobody = || {
        let problem = Problem::new(Code::UsageInvalid, "there is no terminal to ask on");
        problem.help("Give the answer as an argument: `holdfast questions answer ID yes`.")
    };
    let prompt = Prompt { request, question };
    let asked = tokio::task::spawn_blocking(move || ask_now(&prompt)).await;
    asked.map_err(|error| Problem::new(Code::Internal, error.to_string()))?.ok_or_else(nobody)
}

/// What was given as arguments.
fn read(question: &QuestionInfo, words: &str) -> Result<QuestionReply, Problem> {
    let (first, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    let invalid = |offered: &str| {
        let problem =
            Problem::new(Code::UsageInvalid, format!("`{words}` is not an answer to `{}`", question.id));
        Err(problem.help(format!("It takes {offered}.")))
    };
    let Some(asked) = &question.question else {
        let choice = match (first, rest) {
            ("yes", "") => ApprovalChoice::Once,
            ("session", "") => ApprovalChoice::Session,
            ("always", "") => ApprovalChoice::Always,
            ("no", "") => ApprovalChoice::Deny { reason: "the user denied it".to_owned() },
            ("no", reason) => ApprovalChoice::Deny { reason: reason.to_owned() },
            _ => return invalid("`yes`, `session`, `always` or `no`, which may be followed by a reason"),
        };
        return Ok(QuestionReply::Approval(choice));
    };
    let value = match asked {
        UiQuestion::Confirm { .. } => match words {
            "yes" => json!(true),
            "no" => json!(false),
            _ => return invalid("`yes` or `no`"),
        },
        UiQuestion::Select { options, .. } => {
            let number = words.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            let chosen = number.and_then(|place| options.get(place));
            match chosen.or_else(|| options.iter().find(|option| *option == words)) {
                Some(option) => json!(option),
                None => return invalid(&format!("one of: {}", options.join(", "))),
            }
        }
        UiQuestion::Input { secret: true, .. } => {
            let problem = Problem::new(Code::UsageInvalid, "a secret is not given as an argument");
            return Err(problem.help("Leave the answer out: it is asked for, and not shown."));
        }
        UiQuestion::Input { .. } | UiQuestion::Custom { .. } => json!(words),
    };
    Ok(QuestionReply::Extension(Some(value)))
}

/// Goes on with the turn to its end, and shows the answer.
async fn end_of_turn(output: &Output, link: &mut Link, session: StreamId) -> Result<Exit, Problem> {
    let wait = SessionMethod::Wait(SessionParams { session: session.clone() });
    let end = match link.follow(&session, wait, |_| Ok(())).await {
        Err(problem) if problem.code == Code::TurnUnexpected => return Ok(Exit::Done),
        end => end?,
    };
    if end.outcome != TurnOutcome::Answered {
        report(&told(&end));
    } else if !output.json {
        output.foreign(&text(end.answer.as_ref()))?;
    }
    Ok(exit(&end.outcome))
}
