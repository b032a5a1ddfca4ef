//! `holdfast session …`: the commands that change conversations, which are the owner's.

use holdfast_contract::ids::{Seq, StreamId};
use holdfast_contract::problem::Problem;
use holdfast_rpc::{LogErase, SessionFork, SessionMethod, SessionRename, SystemMethod};
use serde_json::{Value, json};

use crate::arguments::ChangeSession;
use crate::client::link::Link;
use crate::client::typed::confirmed;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) async fn session(output: &Output, link: &Link, command: ChangeSession) -> Result<Exit, Problem> {
    match command {
        ChangeSession::Rename { id, name } => {
            let session = StreamId::from(id.as_str());
            let rename = SessionMethod::Rename(SessionRename { session, name: name.clone() });
            link.client.ask::<Value>(&rename).await?;
            say(output, json!({ "session": id, "name": name }), &format!("{id} is now called {}", name))
        }
        ChangeSession::Delete { id, reason, yes } => {
            if !confirmed(yes, &format!("Erase the content of {id} permanently?"))? {
                say(output, json!({ "session": id, "erased": 0 }), "nothing was erased")?;
                return Ok(Exit::Failed);
            }
            let session = StreamId::from(id.as_str());
            let erase = SystemMethod::LogErase(LogErase { session, reason });
            let answer: Value = link.client.ask(&erase).await?;
            let text =
                format!("erased the content of {} frames of {id}; their tombstones stay", answer["erased"]);
            say(output, answer, &text)
        }
        ChangeSession::Fork { id, at } => {
            let fork = SessionFork { session: StreamId::from(id.as_str()), at: at.map(Seq) };
            let answer: Value = link.client.ask(&SessionMethod::Fork(fork)).await?;
            let new = answer["session"].as_str().unwrap_or_default().to_owned();
            say(output, answer, &format!("{new} goes on from {id}: holdfast chat --session {new}"))
        }
    }
}

fn say(output: &Output, document: Value, text: &str) -> Result<Exit, Problem> {
    if output.json {
        output.document(&document)?
    } else {
        output.line(text)?
    }
    Ok(Exit::Done)
}
