//! The link between a command and the owner of its home: this process itself, or another one. Either way the same protocol is
//! spoken, so a command prints the same.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use holdfast_app::{Application, ApplicationConfig, ClientSession, Purpose};
use holdfast_contract::digest::Digest;
use holdfast_contract::ids::StreamId;
use holdfast_contract::manifest::Profile;
use holdfast_contract::problem::{Code, Problem, Severity};
use holdfast_home::{HomeOwner as Ownership, ServeSettings};
use holdfast_rpc::{
    ActiveClients, Client, ClientHello, Hub, Notification, RemoteService, Server, ServerContext, ServerHello,
    SessionOpen, VERSION, connect, listen, serve_tools,
};
use secrecy::ExposeSecret;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::background;
use crate::output::{Output, report};

/// How long an owner that has just begun may take until it listens.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long an owner may take to say who it is. It does nothing else for that.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);

/// How a chat calls itself. A conversation may last all day; an owner that ends does not wait for it, but for its turns.
pub(crate) const CHAT: &str = "chat";

/// A conversation with the owner of a home.
pub(crate) struct Link {
    /// To ask.
    pub client: Client,
    /// What happens in the sessions that were opened; ends when the owner has gone.
    pub notices: mpsc::UnboundedReceiver<Notification>,
    /// Who the owner is.
    pub welcome: ServerHello,
}

/// Where a client was started, and what it asks for.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientOrigin {
    /// The folder.
    pub folder: Option<PathBuf>,
    /// The policy profile for its sessions, in place of the one in force.
    pub profile: Option<Profile>,
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
    pub application: Arc<Application>,
    server: Server,
    /// None for a home that is only listed.
    listening: Option<JoinHandle<()>>,
    /// Serves tools to other Holdfasts, if the settings list any.
    serving: Option<JoinHandle<()>>,
    socket: PathBuf,
    _ownership: Ownership,
}

impl OwnerConnection {
    /// Owns the home, or finds who does.
    pub(crate) async fn find(plan: &ApplicationConfig, purpose: Purpose) -> Result<Self, Problem> {
        let deadline = tokio::time::Instant::now() + CONNECT_TIMEOUT;
        loop {
            match plan.home.own() {
                Ok(ownership) => {
                    let own = EmbeddedOwner::begin(plan, ownership, purpose).await;
                    return own.map(|own| Self::Own(Box::new(own)));
                }
                // Where the lock cannot be opened, as on a read-only disk, there may be an owner all the same.
                Err(problem) if problem.code != Code::HomeOwned && plan.home.owner().is_none() => {
                    return Err(problem);
                }
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
        purpose: Purpose,
        origin: &ClientOrigin,
    ) -> Result<(Link, Option<Box<EmbeddedOwner>>), Problem> {
        let deadline = tokio::time::Instant::now() + CONNECT_TIMEOUT;
        loop {
            match Self::find(plan, purpose).await? {
                Self::Own(own) => {
                    // A command that gave up would end the preparation with itself, and the next one would begin it again.
                    own.application.runtime.prepared().await;
                    own.ready().await;
                    return Ok((Link::over(own.connection(), client, origin).await?, Some(own)));
                }
                Self::Attached(connection) => {
                    match Link::over(connection, client, origin).await {
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

/// A link to the owner of a home for a chat. If there is none, one is started in the background, so that the chat can end
/// without ending those that came later.
pub(crate) async fn link_chat(
    output: &Output,
    plan: &ApplicationConfig,
    origin: &ClientOrigin,
) -> Result<Link, Problem> {
    let deadline = tokio::time::Instant::now() + CONNECT_TIMEOUT;
    loop {
        if let Ok(connection) = connect(&plan.home.control_socket()).await {
            match Link::over(connection, CHAT, origin).await {
                // It ended between the connection and the welcome.
                Err(problem) if problem.code == Code::ConnectionLost => {}
                link => return link,
            }
        }
        match plan.home.own() {
            Ok(free) => {
                drop(free);
                background::start(output, plan).await?;
            }
            // It has just begun, or is about to end: both pass.
            Err(problem) if problem.code == Code::HomeOwned && tokio::time::Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(problem) => return Err(problem),
        }
        if tokio::time::Instant::now() > deadline {
            return Err(Problem::new(Code::ConnectionLost, "the owner of the home does not answer"));
        }
    }
}

impl EmbeddedOwner {
    async fn begin(
        plan: &ApplicationConfig,
        ownership: Ownership,
        purpose: Purpose,
    ) -> Result<Self, Problem> {
        let hub = Arc::new(Hub::default());
        let application = Arc::new(Application::begin(plan, hub.clone(), purpose).await?);
        for warning in &application.warnings {
            report(warning);
        }
        if purpose == Purpose::Run {
            application.keep_tidy();
        }
        let welcome = ServerHello {
            version: VERSION,
            program: env!("CARGO_PKG_VERSION").to_owned(),
            process: std::process::id(),
            home: plan.home.root().display().to_string(),
            profile: profile(&application)?,
            model: application.model.clone(),
        };
        let (creates, remembers) = (application.clone(), application.clone());
        let server = Server::new(ServerContext {
            runtime: application.runtime.clone(),
            hub,
            welcome,
            create_session: Box::new(move |open: &SessionOpen| {
                let id = open.session.clone().map_or_else(new_id, Ok)?;
                let channel = if open.channel.is_empty() { "rpc" } else { &open.channel };
                let (channel, model) = (channel.to_owned(), open.model.clone());
                let (folder, profile) = (open.folder.as_ref().map(PathBuf::from), open.profile);
                let (new, refused) =
                    creates.client_session(ClientSession { id, channel, model, folder, profile })?;
                Ok((new, refused.into_iter().collect()))
            }),
            remember: Box::new(move |rule| remembers.remember(&rule)),
        });
        let socket = plan.home.control_socket();
        // What only lists a home runs no turns, and so serves nobody else.
        let listening = match purpose {
            Purpose::Run => Some(listen(&socket, server.clone())?),
            Purpose::Inspect => None,
        };
        let serving = match purpose {
            Purpose::Run => serve(&application, &server),
            Purpose::Inspect => None,
        };
        Ok(Self { application, server, listening, serving, socket, _ownership: ownership })
    }

    /// Waits for the extensions as a turn does, and reports what is wrong with them by then.
    pub(crate) fn ready(&self) -> impl Future<Output = ()> + Send + use<> {
        let application = self.application.clone();
        async move {
            application.runtime.ready().await;
            for warning in application.registration_warnings().await.unwrap_or_default() {
                report(&warning);
            }
        }
    }

    /// A connection to itself.
    pub(crate) fn connection(&self) -> DuplexStream {
        let (mine, its) = tokio::io::duplex(1 << 16);
        tokio::spawn(self.server.clone().serve(its));
        mine
    }

    /// The clients of other processes.
    pub(crate) fn clients(&self) -> &ActiveClients {
        self.server.active_clients()
    }

    /// Stops everything in order, once the commands of other processes that are being served are done.
    pub(crate) async fn end(self, reason: &str) -> Result<(), Problem> {
        let clients = self.server.active_clients();
        let say = async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            eprintln!("waiting for {} other command(s) on this home; Ctrl-C ends them", clients.count());
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = clients.gone() => {}
            () = say => {}
            _ = tokio::signal::ctrl_c() => {}
        }
        self.end_now(reason).await
    }

    /// Stops everything in order, also if commands are being served.
    pub(crate) async fn end_now(self, reason: &str) -> Result<(), Problem> {
        for task in [&self.listening, &self.serving].into_iter().flatten() {
            task.abort();
        }
        // The next owner removes it otherwise.
        drop(std::fs::remove_file(&self.socket));
        self.application.runtime.stop(reason).await
    }
}

/// Serves the tools that the settings list to other Holdfasts. A caller whose token cannot be read is not served, and what cannot be
/// listened on is reported: neither prevents the start.
fn serve(application: &Application, server: &Server) -> Option<JoinHandle<()>> {
    let ServeSettings { address, tools, callers, .. } = application.settings.serve.clone()?;
    let mut known = Vec::new();
    for (name, secret) in callers {
        match application.token(&secret) {
            Ok(token) => known.push((name, Digest::of(token.expose_secret().as_bytes()))),
            Err(problem) => report(&problem.with(Severity::Warning)),
        }
    }
    let address: SocketAddr = address.parse().ok()?;
    let offer = RemoteService { tools, callers: known };
    serve_tools(address, server.clone(), offer)
        .map_err(|problem| report(&problem.with(Severity::Warning)))
        .ok()
}

fn profile(application: &Application) -> Result<String, Problem> {
    let name = serde_json::to_value(application.runtime.policy()?.profile_name());
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
        origin: &ClientOrigin,
    ) -> Result<Self, Problem> {
        let (client, notices) = Client::new(connection);
        // A path that is not UTF-8 cannot be said, and would be no workspace either.
        let folder = origin.folder.as_ref().and_then(|folder| folder.to_str().map(str::to_owned));
        let (client_name, profile) = (name.to_owned(), origin.profile);
        let hello = ClientHello { version: VERSION, client: client_name, folder, profile };
        let silent = |_| {
            let what = format!("the owner of the home did not answer within {} s", HELLO_TIMEOUT.as_secs());
            Problem::new(Code::OwnerSilent, what)
        };
        let welcome =
            tokio::time::timeout(HELLO_TIMEOUT, client.introduce(hello)).await.map_err(silent)??;
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
