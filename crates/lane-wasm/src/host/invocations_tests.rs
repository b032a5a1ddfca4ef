use std::sync::atomic::{AtomicUsize, Ordering};

use holdfast_contract::ids::Millis;

use super::*;

/// An agent that says ten things and then answers, and how many of them it was rid of.
#[derive(Clone, Default)]
struct Talkative(Arc<AtomicUsize>);

impl Host for Talkative {
    fn call_within(&self, _: HostCall, _: Option<Millis>) -> Later<Result<Content, Fault>> {
        Box::pin(std::future::pending())
    }

    fn call_streamed(
        &self,
        _: HostCall,
        _: Option<Millis>,
        updates: Arc<dyn UpdateSink>,
    ) -> Later<Result<Content, Fault>> {
        let sent = self.0.clone();
        Box::pin(async move {
            for word in 0..10 {
                tokio::select! {
                    biased;
                    () = updates.cancelled() => return Err(over()),
                    () = updates.send(CallUpdate::Text(Content::text(word.to_string()))) => {}
                }
                sent.fetch_add(1, Ordering::SeqCst);
            }
            Ok(Content::text("all of it"))
        })
    }
}

fn begun(agent: &Talkative) -> FollowedAgent {
    let host: Arc<dyn Host> = Arc::new(agent.clone());
    FollowedAgent::begin(&host, HostCall::of(HostCallKind::AgentInvoke, json!({ "task": "talk" })))
}

#[tokio::test]
async fn an_agent_is_not_read_faster_than_the_guest_listens() {
    let agent = Talkative::default();
    let mut followed = begun(&agent);
    for received in 0..5 {
        assert_eq!(followed.next().await, Some(CallUpdate::Text(Content::text(received.to_string()))));
        assert!(agent.0.load(Ordering::SeqCst) <= received + 2, "one is in the queue and one on its way");
    }
    assert_eq!(followed.finish().await, Ok(Content::text("all of it")), "the rest is skipped");
    assert_eq!(followed.next().await, None);
    assert_eq!(followed.finish().await, Ok(Content::text("all of it")), "it can be asked for again");
}

#[tokio::test]
async fn nothing_of_an_invocation_is_left_after_its_call() {
    let agent = Talkative::default();
    let mut all = Invocations::default();
    let handle = all.add(begun(&agent));
    let followed = all.open.get_mut(&handle).unwrap();
    followed.next().await;
    all.settle().await;
    let followed = all.open.get_mut(&handle).unwrap();
    assert_eq!(followed.next().await, None);
    assert_eq!(followed.finish().await, Err(over()));
    assert!(agent.0.load(Ordering::SeqCst) < 10, "it was cancelled");
}
