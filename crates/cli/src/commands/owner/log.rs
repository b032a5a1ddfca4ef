//! `holdfast log …`: the commands that change the log, which is the owner's.

use holdfast_contract::ids::StreamId;
use holdfast_contract::problem::Problem;
use holdfast_rpc::{LogErase, LogGc, SystemMethod};
use serde_json::Value;

use crate::arguments::{ChangeLog, Gc};
use crate::client::link::Link;
use crate::exit::Exit;
use crate::output::Output;

pub(crate) async fn log(output: &Output, link: &Link, command: ChangeLog) -> Result<Exit, Problem> {
    match command {
        ChangeLog::Gc(Gc { id, keep_days, keep_frames }) => {
            let session = id.map(StreamId::from);
            let gc = SystemMethod::LogGc(LogGc { session, keep_days, keep_frames });
            let lines: Vec<Value> = link.client.ask(&gc).await?;
            for line in lines {
                match output.json {
                    true => output.document(&line)?,
                    false => output.line(format!(
                        "{}: {} frames, {} blobs collected",
                        line["stream"].as_str().unwrap_or_default(),
                        line["frames"],
                        line["blobs"]
                    ))?,
                }
            }
        }
        ChangeLog::Erase { id, reason } => {
            let erase = SystemMethod::LogErase(LogErase { session: StreamId::from(id.as_str()), reason });
            let answer: Value = link.client.ask(&erase).await?;
            match output.json {
                true => output.document(&answer)?,
                false => output.line(format!("erased the content of {} frames of {id}", answer["erased"]))?,
            }
        }
    }
    Ok(Exit::Done)
}
