//! The control socket of a home: its owner listens, clients connect. Only the same user may.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use holdfast_contract::problem::{Code, Problem};
use tokio::net::{UnixListener, UnixStream};

use crate::server::Server;

/// How often it is checked that the socket is still there.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Listens on a path for as long as the task lives. The caller owns the home, so a socket that is there is a stale one. If the socket
/// is deleted, it is made again.
pub fn listen(path: &Path, server: Server) -> Result<tokio::task::JoinHandle<()>, Problem> {
    let refused = |error: std::io::Error| {
        Problem::new(Code::StoreUnavailable, format!("{} cannot be listened on: {error}", path.display()))
    };
    let mut socket = Socket::bind(path).map_err(refused)?;
    let path = path.to_owned();
    Ok(tokio::spawn(async move {
        loop {
            let connection = tokio::select! {
                accepted = socket.listener.accept() => accepted,
                () = tokio::time::sleep(CHECK_INTERVAL) => {
                    if !socket.is_at(&path) && let Ok(again) = Socket::bind(&path) {
                        socket = again;
                    }
                    continue;
                }
            };
            let Ok((connection, _)) = connection else { continue };
            let same_user = connection.peer_cred().is_ok_and(|peer| peer.uid() == socket.owner);
            if same_user {
                tokio::spawn(server.clone().serve_process(connection));
            }
        }
    }))
}

/// A socket that is listened on.
struct Socket {
    listener: UnixListener,
    inode: u64,
    /// The user whose socket it is.
    owner: u32,
}

impl Socket {
    fn bind(path: &Path) -> std::io::Result<Self> {
        if path.exists() {
            fs::remove_file(path)?;
        }
        let listener = UnixListener::bind(path)?;
        fs::set_permissions(path, PermissionsExt::from_mode(0o600))?;
        let about = fs::metadata(path)?;
        Ok(Self { listener, inode: about.ino(), owner: about.uid() })
    }

    /// Whether clients that connect to this path reach it.
    fn is_at(&self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok_and(|about| about.ino() == self.inode)
    }
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
