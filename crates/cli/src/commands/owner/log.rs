//! `holdfast log …`: the commands that change the log, which is the owner's.

use holdfast_contract::ids::StreamId;
use holdfast_contract::problem::Problem;
use holdfast_rpc::{CollectedLog, CollectedStream, LogErase, LogGc, SystemMethod};
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
            let collected: CollectedLog = link.client.ask(&gc).await?;
            if output.json {
                output.document(&collected)?;
                return Ok(Exit::Done);
            }
            for CollectedStream { stream, frames, blobs, in_use } in collected.streams {
                if in_use {
                    output.line(format!("{stream}: nothing collected, because a turn runs"))?;
                } else {
                    output.line(format!("{stream}: {frames} frames, {blobs} blobs collected"))?;
                }
            }
            let (objects, freed) = (collected.objects, collected.freed_bytes);
            output.line(format!("{objects} objects collected; the database is {freed} bytes smaller"))?;
        }
        ChangeLog::Erase { id, reason } => {
            let erase = SystemMethod::LogErase(LogErase { session: StreamId::from(id.as_str()), reason });
            let answer: Value = link.client.ask(&erase).await?;
            if output.json {
                output.document(&answer)?
            } else {
                output.line(format!("erased the content of {} frames of {id}", answer["erased"]))?
            }
        }
    }
    Ok(Exit::Done)
}
