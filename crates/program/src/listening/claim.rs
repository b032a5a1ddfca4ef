//! Which extension of this process listens on which port.

use std::collections::BTreeMap;
use std::time::Duration;

use holdfast_contract::ids::ExtensionId;
use holdfast_contract::manifest::ListenPort;
use holdfast_contract::problem::{Code, Fault};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// How long a port is waited for that another extension, or an earlier generation of the same one, has. It may be about to stop.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(5);

static HOLDERS: Mutex<BTreeMap<ListenPort, ExtensionId>> = Mutex::new(BTreeMap::new());
static RELEASED: Notify = Notify::const_new();

/// A port that an extension has. Dropping it gives the port to the next one.
pub(crate) struct PortClaim(ListenPort);

impl PortClaim {
    /// Claims a port for an extension.
    pub(crate) async fn take(id: &ExtensionId, port: ListenPort) -> Result<Self, Fault> {
        let free = async {
            loop {
                let mut released = std::pin::pin!(RELEASED.notified());
                released.as_mut().enable();
                if Self::take_now(id, port).is_ok() {
                    return;
                }
                released.await;
            }
        };
        if tokio::time::timeout(CLAIM_TIMEOUT, free).await.is_ok() {
            return Ok(Self(port));
        }
        Self::take_now(id, port).map(|()| Self(port)).map_err(|holder| {
            let message = format!(
                "`{id}` cannot listen on {}: `{holder}` listens there; set another port for one of the two and grant it, or disable one",
                port.address()
            );
            Fault::new(Code::PortUnavailable, message)
        })
    }

    /// Enters the extension, or says who has the port.
    fn take_now(id: &ExtensionId, port: ListenPort) -> Result<(), ExtensionId> {
        let mut holders = HOLDERS.lock();
        match holders.get(&port) {
            Some(holder) => Err(holder.clone()),
            None => {
                holders.insert(port, id.clone());
                Ok(())
            }
        }
    }

    /// The port.
    pub(crate) fn port(&self) -> ListenPort {
        self.0
    }
}

impl Drop for PortClaim {
    fn drop(&mut self) {
        HOLDERS.lock().remove(&self.0);
        RELEASED.notify_waiters();
    }
}
