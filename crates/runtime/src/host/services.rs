//! The capability `services`: services that extensions share. One extension creates something under a key, and those that depend on it
//! use that one instance.
//!
//! Only values cross a sandbox, so a service stays with its owner, and its key is the handle: `<extension>/<name>`. The first call with a
//! key creates the service, and concurrent calls wait for the same creation. A failed creation is not kept; the next call tries again.
//! A service is disposed of with the generation that created it, and created again by the next one.
//!
//! The owner's side is three methods of its `api` role, which only the host may call: [`CREATE`], [`CALL`] and [`DISPOSE`].

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::host_call::arguments::{ServiceCallArguments, ServiceGetArguments, ServiceKey};
use holdfast_contract::ids::Millis;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::system_frames::{ExtensionFaulted, ExtensionState, ExtensionStateChanged};
use holdfast_contract::wire::{Call, Later};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{Caller, SystemHost, content_of, failed};
use crate::calls::{start_call, wait_timeout};
use crate::runtime::Inner;

/// What the owner's methods for its services begin with.
pub(crate) const RESERVED: &str = "service:";
const CREATE: &str = "service:create";
const CALL: &str = "service:call";
const DISPOSE: &str = "service:dispose";

/// How long creating a service may take. A caller that waits for it may have a shorter timeout.
const CREATE_TIMEOUT: Millis = Millis(60_000);

/// How long disposing of a service may take.
const DISPOSE_TIMEOUT: Millis = Millis(10_000);

/// How often an owner may be reloaded in the middle of one call.
const MAX_RELOADS_PER_CALL: usize = 3;

/// A service that exists.
#[derive(Clone)]
struct Service {
    owner: Arc<ExtensionRef>,
    /// Counts up with every service that is created, so that they are disposed of in reverse order.
    number: u64,
    /// What its owner reports about it.
    report: Content,
}

/// The outcome of creating a service; none while it is being created.
type CreationResult = Option<Result<Service, Fault>>;

/// The state of a key.
enum ServiceSlot {
    Creating(watch::Receiver<CreationResult>),
    Ready(Service),
}

/// All services.
#[derive(Default)]
pub(crate) struct SharedServices {
    state: Mutex<State>,
    /// Services are disposed of one after another.
    disposal: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    places: BTreeMap<ServiceKey, ServiceSlot>,
    /// The arguments of the first request for each key, for when it is created again.
    arguments: BTreeMap<ServiceKey, Value>,
    count: u64,
    closed: bool,
}

impl SharedServices {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Removes the one of these services that was created last.
    fn take_last(&self, which: impl Fn(&Service) -> bool) -> Option<(ServiceKey, Service)> {
        let mut state = self.state();
        let of_them = |place: &ServiceSlot| match place {
            ServiceSlot::Ready(service) if which(service) => Some(service.clone()),
            _ => None,
        };
        let found = state.places.iter().filter_map(|(key, place)| Some((key.clone(), of_them(place)?)));
        let last = found.max_by_key(|(_, service)| service.number)?;
        state.places.remove(&last.0);
        Some(last)
    }
}

impl Inner {
    /// What its owner reports about a service, which is created if it does not exist.
    pub(super) fn service_get(
        self: &Arc<Self>,
        caller: &Caller,
        arguments: ServiceGetArguments,
        timeout: Millis,
    ) -> Later<Result<Content, Fault>> {
        let ServiceGetArguments { key, arguments } = arguments;
        if let Err(fault) = self.must_depend(&caller.extension, &key.owner) {
            return failed(fault);
        }
        let inner = self.clone();
        Box::pin(async move {
            Ok(inner.within(&key, timeout, inner.service(&key, Some(arguments))).await?.report)
        })
    }

    /// Calls a method of a service, which is created if it does not exist.
    pub(super) fn service_call(
        self: &Arc<Self>,
        caller: &Caller,
        arguments: ServiceCallArguments,
        timeout: Millis,
    ) -> Later<Result<Content, Fault>> {
        if let Err(fault) = self.must_depend(&caller.extension, &arguments.key.owner) {
            return failed(fault);
        }
        let inner = self.clone();
        Box::pin(async move { inner.call_service(arguments, timeout).await })
    }

    async fn within<T>(
        &self,
        key: &ServiceKey,
        timeout: Millis,
        work: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        tokio::select! {
            biased;
            done = work => done,
            () = self.clock.sleep(timeout) => {
                let message = format!("the service `{}/{}` is not there within {} ms", key.owner, key.name, timeout.0);
                Err(Fault::new(Code::ExtensionFault, message))
            }
        }
    }

    /// The service of a key: the existing one, the one that is being created, or a new one.
    async fn service(self: &Arc<Self>, key: &ServiceKey, arguments: Option<Value>) -> Result<Service, Fault> {
        let mut made = {
            let mut state = self.shared.state();
            if let Some(arguments) = arguments {
                state.arguments.entry(key.clone()).or_insert(arguments);
            }
            match state.places.get(key) {
                Some(ServiceSlot::Ready(service)) if self.serves(&service.owner) => {
                    return Ok(service.clone());
                }
                Some(ServiceSlot::Creating(made)) => made.clone(),
                _ if state.closed => {
                    let message = "the system is stopping, and no service is made any more";
                    return Err(Fault::new(Code::ExtensionUnknown, message));
                }
                // One whose owner was replaced a moment ago is about to be disposed of.
                Some(ServiceSlot::Ready(_)) | None => {
                    let old = state.places.remove(key);
                    let (tell, made) = watch::channel(None);
                    state.places.insert(key.clone(), ServiceSlot::Creating(made.clone()));
                    let arguments = state.arguments.get(key).cloned().unwrap_or_default();
                    let (inner, key) = (self.clone(), key.clone());
                    // In a task of its own: a caller that stops waiting must not cancel it for the others.
                    tokio::spawn(async move {
                        if let Some(ServiceSlot::Ready(old)) = old {
                            inner.dispose_alone(&key, &old).await;
                        }
                        tell.send_replace(Some(inner.create(&key, arguments).await));
                    });
                    made
                }
            }
        };
        let gone = || Fault::new(Code::Internal, "a service has no creator");
        made.wait_for(Option::is_some).await.map_err(|_| gone())?.clone().ok_or_else(gone)?
    }

    fn serves(&self, owner: &ExtensionRef) -> bool {
        self.extensions.active(&owner.id).is_some_and(|serving| serving.generation == owner.generation)
    }

    /// Has a service created by its owner, and keeps it. A failed creation leaves the key as it was.
    async fn create(self: &Arc<Self>, key: &ServiceKey, arguments: Value) -> Result<Service, Fault> {
        let asked = json!({ "name": key.name, "arguments": arguments });
        let made = async {
            // Held until the service is kept, so that an owner that is replaced meanwhile disposes of it.
            let (owner, guard) = self.extensions.enter(&key.owner, CREATE_TIMEOUT).await?;
            let report = self.of_generation(&owner, CREATE, asked.into(), CREATE_TIMEOUT).await?;
            Ok((owner, report, guard))
        };
        let (owner, report, _guard) = match made.await {
            Ok(made) => made,
            Err(fault) => {
                let mut state = self.shared.state();
                state.places.remove(key);
                state.arguments.remove(key);
                return Err(fault);
            }
        };
        let service = {
            let mut state = self.shared.state();
            state.count += 1;
            let service = Service { owner, report, number: state.count };
            if !state.closed && self.serves(&service.owner) {
                state.places.insert(key.clone(), ServiceSlot::Ready(service.clone()));
                return Ok(service);
            }
            state.places.remove(key);
            service
        };
        self.dispose_alone(key, &service).await;
        let message = format!("`{}` was reloaded while it created `{}`; try again", key.owner, key.name);
        Err(Fault::new(Code::ExtensionUnknown, message))
    }

    async fn call_service(
        self: &Arc<Self>,
        call: ServiceCallArguments,
        timeout: Millis,
    ) -> Result<Content, Fault> {
        let ServiceCallArguments { key, method, arguments } = call;
        let asked = Content::from(json!({ "name": key.name, "method": method, "arguments": arguments }));
        for _ in 0..MAX_RELOADS_PER_CALL {
            let service = self.within(&key, timeout, self.service(&key, None)).await?;
            let (serving, _guard) = self.extensions.enter(&key.owner, timeout).await?;
            if serving.generation != service.owner.generation {
                continue;
            }
            let called = self.of_generation(&serving, CALL, asked.clone(), timeout).await;
            if called.as_ref().is_err_and(|fault| fault.code.is_crash()) {
                // What a crash leaves behind is not reliable; in a sandbox nothing is left.
                self.dispose_all(|it| it.number == service.number).await;
            }
            return called;
        }
        Err(Fault::new(Code::ExtensionUnknown, format!("`{}` is being reloaded again and again", key.owner)))
    }

    async fn of_generation(
        self: &Arc<Self>,
        owner: &Arc<ExtensionRef>,
        method: &str,
        arguments: Content,
        timeout: Millis,
    ) -> Result<Content, Fault> {
        let host = Arc::new(SystemHost::new(self, owner.clone(), None));
        let call = Call::Api { method: method.to_owned(), arguments };
        let made = start_call(&self.extensions.instance(owner)?, call, host);
        let reply = wait_timeout(made, timeout, Code::ExtensionFault, self.clock.clone()).await?;
        content_of(reply, &owner.id, method)
    }

    /// Disposes of the services of a generation and waits for that, also for those that are being disposed of already.
    pub(crate) async fn dispose_services(self: &Arc<Self>, owner: &ExtensionRef) {
        let (id, generation) = (owner.id.clone(), owner.generation);
        self.dispose_all(|service| service.owner.id == id && service.owner.generation == generation).await;
    }

    /// Disposes of all services, and creates no more.
    pub(crate) async fn close_services(self: &Arc<Self>) {
        self.shared.state().closed = true;
        self.dispose_all(|_| true).await;
    }

    /// An extension's state has changed: the services of a generation that is no longer active are disposed of. A generation with a
    /// lifecycle waits for that before it stops.
    pub(crate) fn services_follow(self: &Arc<Self>, change: &ExtensionStateChanged) {
        let ExtensionStateChanged { id, generation, state, .. } = change.clone();
        let left = move |service: &Service| {
            let same = service.owner.generation == generation;
            service.owner.id == id && same != (state == ExtensionState::Active)
        };
        let any =
            self.shared.state().places.values().any(|it| matches!(it, ServiceSlot::Ready(it) if left(it)));
        if any {
            let inner = self.clone();
            tokio::spawn(async move { inner.dispose_all(left).await });
        }
    }

    /// Disposes of these services, the last created first: a service may use those that were created before it.
    async fn dispose_all(self: &Arc<Self>, which: impl Fn(&Service) -> bool) {
        let _alone = self.shared.disposal.lock().await;
        while let Some((key, service)) = self.shared.take_last(&which) {
            self.dispose(&key, &service).await;
        }
    }

    async fn dispose_alone(self: &Arc<Self>, key: &ServiceKey, service: &Service) {
        let _alone = self.shared.disposal.lock().await;
        self.dispose(key, service).await;
    }

    /// A fault is recorded, and the next ones are disposed of too.
    async fn dispose(
        self: &Arc<Self>,
        ServiceKey { name, .. }: &ServiceKey,
        Service { owner, .. }: &Service,
    ) {
        let gone = self.of_generation(owner, DISPOSE, json!({ "name": name }).into(), DISPOSE_TIMEOUT).await;
        if let Err(fault) = gone {
            let (id, generation) = (owner.id.clone(), owner.generation);
            let phase = format!("dispose of service {name}");
            self.system.tell(ExtensionFaulted { id, generation, phase, fault });
        }
    }
}
