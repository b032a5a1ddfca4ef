//! `holdfast rpc`: the protocol over standard input and output, for automation.

use std::collections::BTreeSet;

use holdfast_contract::problem::{Code, Problem};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, split, stdin, stdout};

use crate::exit::Exit;

/// What is still to come once the input has ended.
#[derive(Default)]
struct Outstanding {
    /// Requests without an answer.
    requests: u64,
    /// Questions to a person, by session and frame, which nobody can answer any more.
    questions: BTreeSet<(String, u64)>,
}

/// Carries lines between this process's own input and output and the owner. When the input ends, what was asked is answered first, as
/// far as nobody has to be asked for it.
pub(crate) async fn rpc(owner: impl AsyncRead + AsyncWrite + Send + 'static) -> Result<Exit, Problem> {
    let broken =
        |error: std::io::Error| Problem::new(Code::ConnectionLost, format!("the connection broke: {error}"));
    let (answers, mut requests) = split(owner);
    let (mut input, mut answers, mut output) = (BufReader::new(stdin()), BufReader::new(answers), stdout());
    let (mut asked, mut answered) = (Vec::new(), Vec::new());
    let mut outstanding = Outstanding::default();
    let mut open = true;
    while open || (outstanding.requests > 0 && outstanding.questions.is_empty()) {
        tokio::select! {
            read = input.read_until(b'\n', &mut asked), if open => {
                open = read.map_err(broken)? > 0;
                if !asked.trim_ascii().is_empty() {
                    let end: &[u8] = if asked.ends_with(b"\n") { b"" } else { b"\n" };
                    asked.extend_from_slice(end);
                    requests.write_all(&asked).await.map_err(broken)?;
                    requests.flush().await.map_err(broken)?;
                    outstanding.requests += 1;
                }
                asked.clear();
            }
            read = answers.read_until(b'\n', &mut answered) => {
                if read.map_err(broken)? == 0 {
                    return Err(Problem::new(Code::ConnectionLost, "the process that owns the home has gone"));
                }
                output.write_all(&answered).await.map_err(broken)?;
                output.flush().await.map_err(broken)?;
                outstanding.note(&serde_json::from_slice(&answered).unwrap_or_default());
                answered.clear();
            }
        }
    }
    Ok(Exit::Done)
}

impl Outstanding {
    fn note(&mut self, message: &Value) {
        let params = &message["params"];
        let session = || params["session"].as_str().unwrap_or_default().to_owned();
        let frame = |field: &str| params[field].as_u64().unwrap_or_default();
        match message["method"].as_str() {
            Some("approval") => drop(self.questions.insert((session(), frame("approval")))),
            Some("question") => drop(self.questions.insert((session(), frame("request")))),
            Some("answered") => drop(self.questions.remove(&(session(), frame("request")))),
            Some("ended") => self.questions.retain(|(of, _)| *of != session()),
            Some(_) => {}
            None => {
                self.requests = self.requests.saturating_sub(1);
                let waiting = message["result"]["waiting"].as_array();
                waiting.into_iter().flatten().for_each(|notice| self.note(notice));
            }
        }
    }
}
