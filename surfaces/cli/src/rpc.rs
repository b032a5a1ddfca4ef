//! `holdfast rpc`: the protocol over standard input and output, for automation.

use holdfast_contract::problem::{Code, Problem};
use tokio::io::{AsyncRead, AsyncWrite, copy, stdin, stdout};

use crate::exit::Exit;

/// Carries lines between this process's own input and output and the owner, until the input ends.
pub(crate) async fn rpc(owner: impl AsyncRead + AsyncWrite + Send + 'static) -> Result<Exit, Problem> {
    let (mut answers, mut requests) = tokio::io::split(owner);
    let (mut input, mut output) = (stdin(), stdout());
    let broken =
        |error: std::io::Error| Problem::new(Code::ConnectionLost, format!("the connection broke: {error}"));
    tokio::select! {
        taken = copy(&mut input, &mut requests) => { taken.map_err(broken)?; }
        given = copy(&mut answers, &mut output) => { given.map_err(broken)?; }
    }
    Ok(Exit::Done)
}
