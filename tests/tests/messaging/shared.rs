//! Services that extensions share: made once, made again after a failure, gone in the reverse order, and never stale.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use holdfast_contract::content::Content;
use holdfast_contract::host_call::HostCall;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::{Api, Lifecycle, NativeExtension, now};
use holdfast_testkit::{Lab, LabBuilder, ScriptStep};
use serde_json::{Value, json};

use crate::fixtures::{Asking, outcomes};

/// Makes services and notes what becomes of them.
#[derive(Clone, Default)]
pub struct Pool {
    version: &'static str,
    notes: Arc<Mutex<Vec<String>>>,
    failures: Arc<AtomicUsize>,
    /// How long it takes to make one.
    create_takes: Duration,
}

impl Pool {
    pub fn new(version: &'static str) -> Self {
        Self { version, ..Self::default() }
    }

    /// One that takes so long to make a service that all who ask at once are there before it is made.
    fn slow(version: &'static str) -> Self {
        Self { create_takes: Duration::from_millis(500), ..Self::new(version) }
    }

    fn note(&self, what: String) {
        self.notes.lock().unwrap().push(what);
    }

    pub fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap().clone()
    }

    pub fn extension(&self) -> NativeExtension {
        NativeExtension::new("pool", self.version).api(self.clone())
    }

    fn fails(&self) -> bool {
        let fails =
            self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        fails.is_ok()
    }
}

impl Api for Pool {
    fn call(&self, method: String, arguments: Content, _: Arc<dyn Host>) -> Later<Result<Content, Fault>> {
        let (pool, asked) = (self.clone(), arguments.value().clone());
        let name = asked["name"].as_str().unwrap().to_owned();
        Box::pin(async move {
            let version = pool.version;
            match method.as_str() {
                "service:create" => {
                    pool.note(format!("create {name} {version}"));
                    tokio::time::sleep(pool.create_takes).await;
                    if pool.fails() {
                        Err(Fault::new(Code::ToolFailed, "no connection"))
                    } else {
                        Ok(json!({ "name": name, "with": asked["arguments"] }).into())
                    }
                }
                "service:call" if asked["method"] == "crash" => panic!("it fell over"),
                "service:call" => {
                    let method = asked["method"].as_str().unwrap();
                    Ok(Content::text(format!("{method} by {name} {version}")))
                }
                "echo" => Ok(asked.into()),
                _ => {
                    pool.note(format!("dispose {name} {version}"));
                    Ok(Content::default())
                }
            }
        })
    }
}

impl Lifecycle for Pool {
    fn stop(&self) -> Later<Result<(), Fault>> {
        self.note(format!("stop {}", self.version));
        now(Ok(()))
    }
}

fn app() -> NativeExtension {
    NativeExtension::new("app", "1.0.0")
        .depends_on(&["pool"])
        .tool(Asking("get", "service.get"))
        .tool(Asking("use", "service.call"))
        .tool(Asking("call", "api.call"))
}

fn lab(pool: &Pool, steps: impl IntoIterator<Item = ScriptStep>) -> LabBuilder {
    Lab::build().script(steps).extension(pool.extension().lifecycle(pool.clone())).extension(app())
}

fn get(name: &str) -> (&'static str, Value) {
    ("get", json!({ "key": format!("pool/{name}"), "arguments": { "size": 3 } }))
}

fn calls(name: &str, method: &str) -> ScriptStep {
    ScriptStep::calls([("use", json!({ "key": format!("pool/{name}"), "method": method }))])
}

#[tokio::test]
async fn twenty_concurrent_requests_create_a_service_once() {
    let pool = Pool::slow("1.0.0");
    let all = ScriptStep::calls((0..20).map(|_| get("db")));
    let lab = lab(&pool, [all, calls("db", "query"), ScriptStep::says("done")]).start().await;
    lab.say("go").await;
    let told = outcomes(&lab);
    assert_eq!(told.len(), 21);
    let expected = json!({ "name": "db", "with": { "size": 3 } });
    assert!(told[..20].iter().all(|told| *told == Ok(expected.clone())), "{told:#?}");
    assert_eq!(told[20], Ok(json!("query by db 1.0.0")));
    assert_eq!(pool.notes(), ["create db 1.0.0"]);
    assert!(lab.replay("s1").identical);
    lab.stop().await;
}

#[tokio::test]
async fn a_service_that_cannot_be_created_fails_for_those_who_wait_and_is_retried() {
    let pool = Pool::slow("1.0.0");
    pool.failures.store(1, Ordering::SeqCst);
    let three = || ScriptStep::calls((0..3).map(|_| get("db")));
    let lab = lab(&pool, [three(), three(), ScriptStep::says("done")]).start().await;
    lab.say("go").await;
    let told = outcomes(&lab);
    assert!(told[..3].iter().all(|told| told.as_ref().unwrap_err().message == "no connection"), "{told:#?}");
    assert!(told[3..].iter().all(Result::is_ok), "{told:#?}");
    assert_eq!(pool.notes(), ["create db 1.0.0", "create db 1.0.0"]);
    lab.stop().await;
}

#[tokio::test]
async fn they_go_in_the_reverse_order_and_before_their_owner() {
    let pool = Pool::new("1.0.0");
    let steps = ["b", "a", "c"].map(|name| ScriptStep::calls([get(name)]));
    let lab = lab(&pool, steps.into_iter().chain([ScriptStep::says("done")])).start().await;
    lab.say("go").await;
    lab.stop().await;
    let made = ["create b 1.0.0", "create a 1.0.0", "create c 1.0.0"];
    let gone = ["dispose c 1.0.0", "dispose a 1.0.0", "dispose b 1.0.0", "stop 1.0.0"];
    assert_eq!(pool.notes(), [&made[..], &gone[..]].concat());
}

#[tokio::test]
async fn a_reload_of_the_owner_leaves_nothing_stale() {
    for lives in [true, false] {
        let pool = Pool::new("1.0.0");
        let next = Pool { version: "2.0.0", ..pool.clone() };
        let with =
            |pool: &Pool| if lives { pool.extension().lifecycle(pool.clone()) } else { pool.extension() };
        let steps = [ScriptStep::calls([get("db")]), calls("db", "query"), ScriptStep::says("once")];
        let steps = steps.into_iter().chain([calls("db", "query"), ScriptStep::says("twice")]);
        let lab = Lab::build().script(steps).extension(with(&pool)).extension(app()).start().await;
        lab.say("go").await;
        lab.runtime.found(vec![lab.lane.add(with(&next))]);
        lab.runtime.settled().await.unwrap();
        lab.until("the old one to go", |_| pool.notes().contains(&"dispose db 1.0.0".to_owned())).await;
        lab.say("again").await;
        let told: Vec<_> = outcomes(&lab).into_iter().skip(1).collect();
        assert_eq!(told, [Ok(json!("query by db 1.0.0")), Ok(json!("query by db 2.0.0"))]);
        lab.stop().await;
        let mut expected = vec!["create db 1.0.0", "dispose db 1.0.0", "create db 2.0.0", "dispose db 2.0.0"];
        if lives {
            expected.insert(2, "stop 1.0.0");
            expected.push("stop 2.0.0");
        }
        assert_eq!(pool.notes(), expected);
    }
}

#[tokio::test]
async fn a_service_that_crashes_is_created_again() {
    let pool = Pool::new("1.0.0");
    let lab =
        lab(&pool, [calls("db", "crash"), calls("db", "query"), ScriptStep::says("done")]).start().await;
    lab.say("go").await;
    let told = outcomes(&lab);
    assert_eq!(told[0].as_ref().unwrap_err().code, Code::ExtensionFault);
    assert_eq!(told[1], Ok(json!("query by db 1.0.0")));
    assert_eq!(pool.notes(), ["create db 1.0.0", "dispose db 1.0.0", "create db 1.0.0"]);
    lab.stop().await;
}

#[tokio::test]
async fn only_those_who_depend_on_the_owner_get_at_it_and_only_through_the_host() {
    let pool = Pool::new("1.0.0");
    let stranger = NativeExtension::new("stranger", "1.0.0").tool(Asking("reach", "service.get"));
    let around = json!({ "extension": "pool", "method": "service:create" });
    let steps = [
        ScriptStep::calls([
            ("reach", json!({ "key": "pool/db" })),
            ("get", json!({ "key": "db" })),
            ("call", around),
        ]),
        ScriptStep::says("done"),
    ];
    let lab = lab(&pool, steps).extension(stranger).start().await;
    lab.say("go").await;
    let told: Vec<String> = outcomes(&lab).into_iter().map(|told| told.unwrap_err().message).collect();
    let parts = ["does not depend on `pool`", "invalid key `db`", "only the host calls"];
    assert!(told.iter().zip(parts).all(|(told, part)| told.contains(part)), "{told:#?}");
    assert!(pool.notes().is_empty());
    lab.stop().await;
}

#[tokio::test]
async fn a_method_of_another_extension_is_called_with_plain_values() {
    let pool = Pool::new("1.0.0");
    let echo = json!({ "extension": "pool", "method": "echo", "arguments": { "name": "db", "n": 7 } });
    let lab = lab(&pool, [ScriptStep::calls([("call", echo)]), ScriptStep::says("done")]).start().await;
    lab.say("go").await;
    assert_eq!(outcomes(&lab), [Ok(json!({ "name": "db", "n": 7 }))]);
    lab.stop().await;
}

/// Makes services that stand on those of another.
#[derive(Clone, Default)]
struct Leaning(Arc<Mutex<Vec<String>>>);

impl Api for Leaning {
    fn call(&self, method: String, _: Content, host: Arc<dyn Host>) -> Later<Result<Content, Fault>> {
        let notes = self.0.clone();
        Box::pin(async move {
            let key = json!({ "key": "pool/db", "method": method });
            let ask = HostCall::named("service.call", key);
            let answer = host.call(ask).await?;
            notes.lock().unwrap().push(answer.to_text());
            Ok(answer)
        })
    }
}

#[tokio::test]
async fn one_that_goes_can_still_use_what_it_stands_on() {
    let (pool, leaning) = (Pool::new("1.0.0"), Leaning::default());
    let upper = NativeExtension::new("upper", "1.0.0").depends_on(&["pool"]).api(leaning.clone());
    let user =
        NativeExtension::new("user", "1.0.0").depends_on(&["upper"]).tool(Asking("reach", "service.get"));
    let steps = [ScriptStep::calls([("reach", json!({ "key": "upper/any" }))]), ScriptStep::says("done")];
    let lab = lab(&pool, steps).extension(upper).extension(user).start().await;
    lab.say("go").await;
    lab.stop().await;
    let notes = leaning.0.lock().unwrap().clone();
    assert_eq!(notes, ["service:create by db 1.0.0", "service:dispose by db 1.0.0"]);
    assert_eq!(pool.notes(), ["create db 1.0.0", "dispose db 1.0.0", "stop 1.0.0"]);
}
