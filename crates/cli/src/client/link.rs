//! The link between a command and the owner of its home: this process itself, or another one. Either way the same protocol is
//! spoken, so a command prints the same.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use holdfast_app::{Application, ApplicationConfig};
use holdfast_contract::ids::StreamId;
use holdfast_contract::problem::{Code, Problem};
use holdfast_home::HomeOwner as Ownership;
use holdfast_rpc::{
    Client, Hub, Notification, Server, ServerContext, ServerHello, SessionOpen, VERSION, connect, listen,
};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::output::report;

/// How long an owner that has just begun may take until it listens.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A conversation with the owner of a home.
pub(crate) struct Link {
    /// To ask.
    pub client: Client,
    /// What happens in the sessions that were opened; ends when the owner has gone.
    pub notices: mpsc::UnboundedReceiver<Notification>,
    /// Who the owner is.
    pub welcome: ServerHello,
}

/// The way to the owner of a home.
pub(crate) enum OwnerConnection {
    /// This process owns it.
    Own(Box<EmbeddedOwner>),
    /// Another one does.
    Attached(UnixStream),
}

/// A home that this process owns.
pub(crate) struct EmbeddedOwner {
    pub house: Arc<Application>,
    server: Server,
    listening: JoinHandle<()>,
    socket: PathBuf,
    _ownership: Ownership,
}

impl OwnerConnection {
    /// Owns the home, or finds who does.
    pub(crate) async fn find(plan: &ApplicationConfig) -> Result<Self, Problem> {
        let deadline = tokio::time::Instant::now() + CONNECT_TIMEOUT;
        loop {
            match plan.home.own() {
                Ok(ownership) => {
                    return EmbeddedOwner::begin(plan, ownership).await.map(|own| Self::Own(Box::new(own)));
                }
                Err(problem) if problem.code != Code::HomeOwned => return Err(problem),
                Err(_) => match connect(&plan.home.control_socket()).await {
                    Ok(connection) => return Ok(Self::Attached(connection)),
                    // It has just begun, or is about to end: both pass.
                    Err(problem) if tokio::time::Instant::now() > deadline => return Err(problem),
                    Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                },
            }
        }
    }

    /// A link to the owner, which another process stops being when its own work is done.
    pub(crate) async fn link(
        plan: &ApplicationConfig,
        client: &str,
    ) -> Result<(Link, Option<Box<EmbeddedOwner>>), Problem> {
        let deadline = tokio::time::Instant::now() + CONNECT_TIMEOUT;
        loop {
            match Self::find(plan).await? {
                Self::Own(own) => {
                    return Ok((Link::over(own.connection(), client).await?, Some(own)));
                }
                Self::Attached(connection) => {
                    match Link::over(connection, client).await {
                        // It ended between the lock and the welcome.
                        Err(problem)
                            if problem.code == Code::ConnectionLost
                                && tokio::time::Instant::now() < deadline =>
                        {
                            tokio::time::sleep(Duration::from_millis(20)).await;
                        }
                        link => return link.map(|link| (link, None)),
                    }
                }
            }
        }
    }
}

impl EmbeddedOwner {
    async fn begin(plan: &ApplicationConfig, ownership: Ownership) -> Result<Self, Problem> {
        let hub = Arc::new(Hub::default());
        let house = Arc::new(Application::open(plan, hub.clone()).await?);
        for warning in &house.warnings {
            report(warning);
        }
        let welcome = ServerHello {
            version: VERSION,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            process: std::process::id(),
            home: plan.home.root().display().to_string(),
            profile: profile(&house)?,
            model: house.model.clone(),
        };
        let (founder, remembers) = (house.clone(), house.clone());
        let server = Server::new(ServerContext {
            runtime: house.runtime.clone(),
            hub,
            welcome,
            found: Box::new(move |open: &SessionOpen| {
                let id = open.session.clone().map_or_else(new_id, Ok)?;
                let channel = if open.channel.is_empty() { "rpc" } else { &open.channel };
                founder.session(id, channel, open.model.clone())
            }),
            remember: Box::new(move |rule| remembers.remember(&rule)),
        });
        let socket = plan.home.control_socket();
        let listening = listen(&socket, server.clone())?;
        Ok(Self { house, server, listening, socket, _ownership: ownership })
    }

    /// A connection to itself.
    pub(crate) fn connection(&self) -> DuplexStream {
        let (mine, its) = tokio::io::duplex(1 << 16);
        tokio::spawn(self.server.clone().serve(its));
        mine
    }

    /// Stops everything in order, once the commands of other processes that are being served are done.
    pub(crate) async fn end(self, reason: &str) -> Result<(), Problem> {
        let guests = self.server.guests();
        let say = async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            eprintln!("waiting for {} other command(s) on this home; Ctrl-C ends them", guests.count());
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = guests.gone() => {}
            () = say => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        self.end_now(reason).await
    }

    /// Stops everything in order, whoever is being served.
    pub(crate) async fn end_now(self, reason: &str) -> Result<(), Problem> {
        self.listening.abort();
        // Whoever takes the home next removes it otherwise.
        drop(std::fs::remove_file(&self.socket));
        self.house.runtime.stop(reason).await
    }
}

fn profile(house: &Application) -> Result<String, Problem> {
    let name = serde_json::to_value(house.runtime.policy()?.profile_name());
    Ok(name.ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default())
}

/// A session's id: the moment it began, and eight random digits.
fn new_id() -> Result<StreamId, Problem> {
    let now = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes)
        .map_err(|error| Problem::new(Code::Internal, format!("no random bytes: {error}")))?;
    Ok(format!("{now}-{:08x}", u32::from_be_bytes(bytes)).into())
}

impl Link {
    /// A link over a connection.
    pub(crate) async fn over(
        connection: impl AsyncRead + AsyncWrite + Send + 'static,
        name: &str,
    ) -> Result<Self, Problem> {
        let (client, notices) = Client::new(connection);
        let welcome = client.hello(name).await?;
        Ok(Self { client, notices, welcome })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_of_the_same_moment_have_other_ids() {
        let ids: std::collections::BTreeSet<String> =
            (0..100).map(|_| new_id().unwrap().to_string()).collect();
        assert_eq!(ids.len(), 100);
        let random = ids.first().unwrap().rsplit('-').next().unwrap();
        assert!(random.len() == 8 && random.chars().all(|digit| digit.is_ascii_hexdigit()), "{random}");
    }
}
