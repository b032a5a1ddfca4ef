//! The link between a command and the owner of its home: this process itself, or another one.

use holdfast_contract::problem::Problem;
use holdfast_rpc::{Client, Notice, Welcome};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

/// A conversation with the owner of a home.
pub(crate) struct Link {
    /// To ask.
    pub client: Client,
    /// What happens in the sessions that were opened; ends when the owner has gone.
    pub notices: mpsc::UnboundedReceiver<Notice>,
    /// Who the owner is.
    pub welcome: Welcome,
}

impl Link {
    /// A link over a connection.
    pub(crate) async fn over(
        connection: impl AsyncRead + AsyncWrite + Send + 'static,
    ) -> Result<Self, Problem> {
        let (client, notices) = Client::new(connection);
        let welcome = client.hello("cli").await?;
        Ok(Self { client, notices, welcome })
    }
}
