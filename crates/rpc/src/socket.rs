//! The control socket of a home: its owner listens, clients connect. Only the same user may.

use std::fs;
use std::path::Path;

use holdfast_contract::problem::{Code, Problem};
use tokio::net::{UnixListener, UnixStream};

use crate::server::Server;

/// Listens on a path for as long as the task lives. The caller owns the home, so a socket that is there is a stale one.
pub fn listen(path: &Path, server: Server) -> Result<tokio::task::JoinHandle<()>, Problem> {
    let refused = |error: std::io::Error| {
        Problem::new(Code::StoreUnavailable, format!("{} cannot be listened on: {error}", path.display()))
    };
    if path.exists() {
        fs::remove_file(path).map_err(refused)?;
    }
    let listener = UnixListener::bind(path).map_err(refused)?;
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).map_err(refused)?;
    let own =
        fs::metadata(path).map(|socket| std::os::unix::fs::MetadataExt::uid(&socket)).map_err(refused)?;
    Ok(tokio::spawn(async move {
        loop {
            let Ok((connection, _)) = listener.accept().await else { continue };
            let same_user = connection.peer_cred().is_ok_and(|peer| peer.uid() == own);
            if same_user {
                tokio::spawn(server.clone().serve_process(connection));
            }
        }
    }))
}

/// Connects to an owner.
pub async fn connect(path: &Path) -> Result<UnixStream, Problem> {
    UnixStream::connect(path).await.map_err(|error| {
        Problem::new(
            Code::ConnectionLost,
            format!("the owner of the home does not answer at {}: {error}", path.display()),
        )
        .help("If that process hangs, end it; its work is safe in the log.")
    })
}
