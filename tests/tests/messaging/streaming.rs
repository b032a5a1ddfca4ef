//! Answers on a channel while they are written: in order, complete, without holding up anybody else, and delivered whatever becomes of the
//! stream.

use std::sync::Arc;

use holdfast_bus::NewEvent;
use holdfast_contract::body::{Body, FrameKind};
use holdfast_contract::content::Content;
use holdfast_contract::digest::{Digest, canonical};
use holdfast_contract::ids::CallId;
use holdfast_contract::manifest::{Grants, HandlerSpec};
use holdfast_contract::message::{Limits, TurnView};
use holdfast_contract::problem::Fault;
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_contract::session_frames::StreamShown;
use holdfast_contract::tool::{EffectClass, ToolSpec};
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::{NativeExtension, Tool};
use holdfast_model::script::Script;
use holdfast_runtime::secrets::{Chain, Digester, SecretName, SecretString, Secrets};
use holdfast_secrets::{EncryptedFile, SecretStore, StoreKind};
use holdfast_store::Retention;
use holdfast_testkit::pieces::{agent, echo, failing_tool, spec};
use holdfast_testkit::story::bodies;
use holdfast_testkit::wasm::{MapVault, lane, manifest, streamer};
use holdfast_testkit::{Lab, ScriptStep};
use serde_json::{Value, json};

use crate::fixtures::{Takes, bus_story, inputs, later};
use crate::messages::process;
use crate::streaming_fixtures::{Does, Screen, Writer, message};

async fn lab(screen: &Screen, steps: impl IntoIterator<Item = ScriptStep>) -> Lab {
    Lab::build().script(steps).extension(screen.extension()).start().await
}

/// What the session recorded of its streams: none where the channel took the end, or what went wrong.
fn reported(lab: &Lab, session: &str) -> Vec<Option<String>> {
    let frames = lab.frames_of(session);
    let bodies = frames.iter().map(|frame| lab.runtime.store().body(frame).unwrap());
    let reports = bodies.filter_map(|body| match body {
        Body::DeliveryReported(fact) => Some(fact.fault.map(|fault| fault.message)),
        _ => None,
    });
    reports.collect()
}

#[tokio::test]
async fn an_answer_is_shown_while_it_is_written_and_counts_once_it_is_whole() {
    let screen = Screen::default();
    let lab = lab(&screen, [ScriptStep::says("hello, Ada, and all the others")]).await;
    lab.runtime.publish(message("ada", "hello")).await.unwrap();
    lab.until("the report", |lab| !reported(lab, "chat.ada").is_empty()).await;
    let all = screen.all();
    assert_eq!(all.first().unwrap(), "ada start ");
    assert_eq!(all.last().unwrap(), "ada end hello, Ada, and all the others");
    assert_eq!(screen.text("ada"), "hello, Ada, and all the others");
    assert!(screen.told("ada", "whole").is_empty());
    // Both the session and the bus have it.
    assert_eq!(reported(&lab, "chat.ada"), [None]);
    lab.until("the delivery", |lab| {
        bus_story(&lab.runtime)
            .iter()
            .filter(|line| **line == "event.delivered router.deliveries/chat")
            .count()
            == 1
    })
    .await;
    let frames = lab.frames_of("chat.ada");
    let place = |kind: &str| frames.iter().position(|frame| frame.envelope.kind.as_str() == kind).unwrap();
    assert!(place("turn.ended") < place("stream.shown"));
    assert!(place("stream.shown") < place("delivery.reported"));
    assert_eq!(lab.findings(), Vec::new());
    assert!(lab.replay("chat.ada").identical);
    lab.stop().await;
}

/// What the session recorded of the chunks that channels were shown.
fn stream_shown(lab: &Lab, session: &str) -> Vec<StreamShown> {
    let frames = lab.frames_of(session);
    let bodies = frames.iter().map(|frame| lab.runtime.store().body(frame).unwrap());
    let shown = bodies.filter_map(|body| match body {
        Body::StreamShown(fact) => Some(fact),
        _ => None,
    });
    shown.collect()
}

/// The digest of everything that a screen was given for a user before the end, as `stream.shown` has it.
fn shown_digest(screen: &Screen, user: &str) -> Digest {
    let mut bytes = Vec::new();
    for line in screen.all() {
        let Some(line) = line.strip_prefix(&format!("{user} ")) else { continue };
        let (function, text) = line.split_once(' ').unwrap();
        if ["start", "chunk", "status"].contains(&function) {
            bytes.extend(format!("stream-{function}\0{text}\0").into_bytes());
        }
    }
    Digest::of(&bytes)
}

// Row E15.
#[tokio::test]
async fn the_chunks_that_a_channel_was_shown_are_one_frame_with_counts_and_digests() {
    let screen = Screen::default();
    let words: Vec<String> = (0..300).map(|number| format!("{number} ")).collect();
    let writer = Writer::new().writes(["I look. "]).calls("echo").writes(words.clone());
    let kit = NativeExtension::new("kit", "1.0.0").tool(echo());
    let lab = Lab::build().model("script", writer).extension(screen.extension()).extension(kit).start().await;
    lab.runtime.publish(message("ada", "count")).await.unwrap();
    lab.until("the report", |lab| !reported(lab, "chat.ada").is_empty()).await;
    let all = stream_shown(&lab, "chat.ada");
    let [shown] = all.as_slice() else { panic!("{all:?}") };
    let chunks = screen.told("ada", "chunk");
    assert_eq!(shown.channel.as_str(), "chat");
    assert_eq!(
        (shown.chunks, shown.statuses),
        (chunks.len() as u64, screen.told("ada", "status").len() as u64)
    );
    assert!(shown.statuses >= 2, "the call was shown");
    let lengths: Vec<u32> = chunks.iter().map(|chunk| chunk.len() as u32).take(64).collect();
    assert_eq!(shown.lengths, lengths);
    assert_eq!(shown.text, Digest::of(screen.text("ada").as_bytes()));
    assert_eq!(shown.shown, shown_digest(&screen, "ada"));
    assert_eq!(shown.fault, None);
    // What a stream of any length adds to the log is bounded.
    let frame = lab.frames_of("chat.ada").into_iter().find(|it| it.envelope.kind == FrameKind::StreamShown);
    let bytes = canonical(&frame.unwrap()).unwrap().len();
    println!("a stream of {} chunks: {bytes} bytes", shown.chunks);
    assert!(bytes < 1_500, "{bytes} bytes");
    assert_eq!(lab.findings(), Vec::new());
    assert!(lab.replay("chat.ada").identical);
    // It is collected like any other frame.
    let retention = Retention { max_frames: Some(1), ..Retention::default() };
    assert!(lab.runtime.collect(&"chat.ada".into(), retention).await.unwrap().unwrap().frames > 10);
    let checkpoint = bodies(&lab.frames_of("system"), FrameKind::LogCheckpointed);
    assert_eq!(checkpoint[0]["stream"], "chat.ada");
    assert_eq!(lab.findings(), Vec::new());
    lab.stop().await;
}

// Row E15.
#[tokio::test]
async fn a_channel_that_fails_in_a_stream_is_recorded_with_what_it_was_shown() {
    let screen = Screen::odd("chunk", None, Does::Fails);
    let lab = lab(&screen, [ScriptStep::says("hello")]).await;
    lab.runtime.publish(message("ada", "hello")).await.unwrap();
    lab.until("the report", |lab| !reported(lab, "chat.ada").is_empty()).await;
    let all = stream_shown(&lab, "chat.ada");
    let [shown] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((shown.chunks, shown.shown), (1, shown_digest(&screen, "ada")));
    assert!(shown.fault.as_ref().unwrap().message.contains("the screen is dark"), "{shown:?}");
    assert_eq!(lab.findings(), Vec::new());
    assert!(lab.replay("chat.ada").identical);
    lab.stop().await;
}

#[tokio::test]
async fn a_slow_channel_gets_everything_in_order_in_fewer_pieces() {
    let screen = Screen::odd("chunk", None, Does::Waits);
    let words: Vec<String> = (0..2_000).map(|number| format!("{number} ")).collect();
    let writer = Writer::new().writes(words.clone());
    let lab = Lab::build().model("script", writer.clone()).extension(screen.extension()).start().await;
    lab.runtime.publish(message("ada", "count")).await.unwrap();
    lab.until("all is written", |_| *writer.written.lock().unwrap() == words.len()).await;
    assert_eq!(screen.told("ada", "chunk").len(), 1, "the channel is still at its first piece");
    screen.lets.add_permits(words.len());
    lab.until("the end", |_| screen.told("ada", "end").len() == 1).await;
    assert_eq!(screen.text("ada"), words.concat());
    assert_eq!(screen.told("ada", "end"), [words.concat()]);
    assert!(screen.told("ada", "chunk").len() < 100, "{}", screen.told("ada", "chunk").len());
    lab.stop().await;
}

#[tokio::test]
async fn backpressure_stops_reading_a_model_and_others_go_on() {
    let screen = Screen::odd("chunk", Some("ada"), Does::Waits);
    let pieces: Vec<String> = (0..512).map(|number| format!("{number:>1023} ")).collect();
    let writer = Writer::new().writes(pieces.clone()).writes(["good ", "day"]);
    let lab = Lab::build().model("script", writer.clone()).extension(screen.extension()).start().await;
    lab.runtime.publish(message("ada", "tell me everything")).await.unwrap();
    lab.until("it has stopped reading", |_| *writer.written.lock().unwrap() >= 64).await;
    // Somebody else's answer comes and ends meanwhile.
    lab.runtime.publish(message("bob", "hello")).await.unwrap();
    lab.until("his answer", |_| screen.told("bob", "end") == ["good day"]).await;
    let read = *writer.written.lock().unwrap() - 2;
    assert!(read <= 70, "{read} KiB were read for a channel that takes none");
    screen.lets.add_permits(pieces.len());
    lab.until("the end", |_| screen.told("ada", "end").len() == 1).await;
    assert_eq!(screen.text("ada"), pieces.concat());
    lab.stop().await;
}

#[tokio::test]
async fn streams_to_one_user_follow_each_other() {
    let screen = Screen::odd("end", None, Does::Waits);
    let lab = lab(&screen, ["one", "two", "three", "four"].map(ScriptStep::says)).await;
    for text in ["a", "b", "c"] {
        lab.runtime.publish(message("ada", text)).await.unwrap();
    }
    lab.until("the first end", |_| screen.told("ada", "end").len() == 1).await;
    // Another user's stream comes to its end meanwhile.
    lab.runtime.publish(message("bob", "d")).await.unwrap();
    lab.until("the other end", |_| screen.told("bob", "end").len() == 1).await;
    assert_eq!(screen.told("ada", "start").len(), 1, "the next stream waits for the end of the one before");
    screen.lets.add_permits(4);
    lab.until("all ends", |_| screen.told("ada", "end").len() == 3).await;
    let order: Vec<String> = screen
        .all()
        .iter()
        .filter_map(|line| line.strip_prefix("ada ")?.split(' ').next().map(str::to_owned))
        .collect();
    assert_eq!(order, ["start", "chunk", "end", "start", "chunk", "end", "start", "chunk", "end"]);
    lab.stop().await;
}

/// A tool that reports its progress, and then waits or answers at once.
struct Reports {
    name: &'static str,
    waits: bool,
}

impl Tool for Reports {
    fn spec(&self) -> ToolSpec {
        spec(self.name, EffectClass::Pure)
    }

    fn call(&self, _: CallId, _: Content, _: TurnView, host: Arc<dyn Host>) -> Later<Result<Content, Fault>> {
        let waits = self.waits;
        Box::pin(async move {
            host.progress("half way\nthere");
            if waits {
                tokio::task::yield_now().await;
            }
            Ok(Content::text("found"))
        })
    }
}

/// An answer that is ready when its call is polled for the first time does not pass the actor's inbox.
#[tokio::test]
async fn progress_is_shown_before_an_answer_that_is_ready_at_once() {
    let screen = Screen::default();
    let kit = NativeExtension::new("kit", "1.0.0").tool(Reports { name: "glance", waits: false });
    let lab = Lab::build()
        .script([ScriptStep::calls([("glance", json!({}))]), ScriptStep::says("done")])
        .extension(screen.extension())
        .extension(kit)
        .start()
        .await;
    lab.runtime.publish(message("ada", "go")).await.unwrap();
    lab.until("the end", |_| screen.told("ada", "end") == ["done"]).await;
    assert_eq!(screen.told("ada", "status"), ["glance: started", "half way there", "glance: done"]);
    lab.stop().await;
}

#[tokio::test]
async fn a_waiting_user_sees_status_lines() {
    let screen = Screen::default();
    let kit = NativeExtension::new("kit", "1.0.0")
        .tool(echo())
        .tool(failing_tool("break", "no"))
        .tool(Reports { name: "look", waits: true })
        .agent(agent("poet", "verses"));
    let lab = Lab::build()
        .script([
            ScriptStep::calls([("echo", json!({}))]),
            ScriptStep::calls([("break", json!({}))]),
            ScriptStep::calls([("look", json!({}))]),
            ScriptStep::calls([("poet", json!({ "task": "an ode" }))]),
            ScriptStep::calls([("nothing", json!({}))]),
            ScriptStep::says("done"),
        ])
        .model("verses", Script::new([ScriptStep::says("roses")]))
        .extension(screen.extension())
        .extension(kit)
        .start()
        .await;
    lab.runtime.publish(message("ada", "go")).await.unwrap();
    lab.until("the end", |_| screen.told("ada", "end") == ["done"]).await;
    assert_eq!(
        screen.told("ada", "status"),
        [
            "echo: started",
            "echo: done",
            "break: started",
            "break: failed",
            "look: started",
            "half way there",
            "look: done",
            "poet: started",
            "poet: done",
            "nothing: failed",
        ]
    );
    assert_eq!(screen.text("ada"), "done", "what an agent writes for its caller is not the answer");
    assert!(lab.replay("chat.ada").identical);
    lab.stop().await;
}

#[tokio::test]
async fn a_turn_that_is_cancelled_ends_its_stream_and_says_so() {
    let screen = Screen::default();
    let lab = lab(&screen, [ScriptStep::Stalls("half of ".to_owned())]).await;
    lab.runtime.publish(message("ada", "go")).await.unwrap();
    lab.until("some text", |_| screen.text("ada") == "half of ").await;
    lab.runtime.resume(&"chat.ada".into()).unwrap().cancel("enough").await.unwrap();
    lab.until("the end", |_| screen.told("ada", "end") == ["This was cancelled: enough"]).await;
    assert!(screen.told("ada", "whole").is_empty());
    lab.stop().await;
}

#[tokio::test]
async fn a_turn_that_a_limit_or_a_failure_ends_ends_its_stream_and_says_so() {
    let screen = Screen::default();
    let limited = Lab::build()
        .script([ScriptStep::calls([("echo", json!({}))]), ScriptStep::says("never")])
        .limits(Limits { max_turns: 1, ..Limits::default() })
        .extension(screen.extension())
        .extension(NativeExtension::new("kit", "1.0.0").tool(echo()))
        .start()
        .await;
    limited.runtime.publish(message("ada", "go")).await.unwrap();
    limited.until("the end", |_| screen.told("ada", "end").len() == 1).await;
    assert!(screen.told("ada", "end")[0].starts_with("This was ended by a limit"), "{:?}", screen.all());
    limited.stop().await;

    let screen = Screen::default();
    let writer = Writer::new().writes(["half ", "of"]).breaks_off();
    let failed = Lab::build().model("script", writer).extension(screen.extension()).start().await;
    failed.runtime.publish(message("ada", "go")).await.unwrap();
    failed.until("the end", |_| screen.told("ada", "end").len() == 1).await;
    assert!(screen.told("ada", "end")[0].starts_with("This could not be answered"), "{:?}", screen.all());
    failed.stop().await;
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_restarted_and_the_status_says_so() {
    let screen = Screen::default();
    let broken = Writer::new().writes(["It is ", "half"]).breaks_off();
    let whole = Writer::new().writes(["It is ", "noon"]);
    let lab = Lab::build()
        .model("script", broken)
        .model("second", whole)
        .settings(|settings| settings.models.push("second".into()))
        .extension(screen.extension())
        .start()
        .await;
    lab.runtime.publish(message("ada", "what time is it?")).await.unwrap();
    lab.until("the end", |_| screen.told("ada", "end") == ["It is noon"]).await;
    assert_eq!(screen.told("ada", "status"), ["the answer broke off and starts over"]);
    assert_eq!(screen.text("ada"), "It is half\n\nIt is noon");
    assert!(lab.replay("chat.ada").identical);
    lab.stop().await;
}

#[tokio::test]
async fn a_channel_whose_stream_fails_has_the_whole_text() {
    for function in ["start", "chunk", "status", "end"] {
        for does in [Does::Fails, Does::Panics] {
            let screen = Screen::odd(function, None, does);
            let kit = NativeExtension::new("kit", "1.0.0").tool(echo());
            let steps = [ScriptStep::calls([("echo", json!({}))]), ScriptStep::says("hello")];
            let lab = Lab::build().script(steps).extension(screen.extension()).extension(kit).start().await;
            lab.runtime.publish(message("ada", "go")).await.unwrap();
            lab.until("the whole text", |_| screen.told("ada", "whole") == ["hello"]).await;
            let last = screen.all().iter().rposition(|line| !line.contains(" whole ")).unwrap();
            assert!(
                screen.all()[last].starts_with(&format!("ada {function} ")),
                "nothing came after: {:?}",
                screen.all()
            );
            lab.until("the report", |lab| reported(lab, "chat.ada").len() == 1).await;
            let fault = reported(&lab, "chat.ada")[0].clone().unwrap();
            assert!(fault.contains("the screen is"), "{function}: {fault}");
            assert_eq!(lab.findings(), Vec::new());
            assert!(lab.replay("chat.ada").identical);
            lab.stop().await;
        }
    }
}

#[tokio::test]
async fn a_channel_whose_stream_hangs_has_the_whole_text_in_the_end() {
    for function in ["start", "chunk", "end"] {
        let screen = Screen::odd(function, None, Does::Hangs);
        let lab = lab(&screen, [ScriptStep::says("hello")]).await;
        lab.runtime.publish(message("ada", "go")).await.unwrap();
        later(&lab, "the whole text", |_| screen.told("ada", "whole") == ["hello"]).await;
        lab.until("the report", |lab| reported(lab, "chat.ada").len() == 1).await;
        let fault = reported(&lab, "chat.ada")[0].clone().unwrap();
        assert!(fault.contains("did not answer"), "{fault}");
        lab.stop().await;
    }
}

#[tokio::test]
async fn an_empty_answer_ends_its_stream_too() {
    let screen = Screen::default();
    let lab = lab(&screen, [ScriptStep::says("")]).await;
    lab.runtime.publish(message("ada", "go")).await.unwrap();
    lab.until("the end", |_| screen.told("ada", "end") == [""]).await;
    assert!(screen.told("ada", "whole").is_empty());
    lab.stop().await;
}

#[test]
fn a_process_that_ends_before_the_end_is_acknowledged_has_the_text_sent_again_and_marked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("holdfast.db");
    let before = Screen::odd("end", None, Does::Hangs);
    process(async {
        let lab = Lab::build().script([ScriptStep::says("hello, Ada")]).on(&path, Default::default());
        let lab = lab.extension(before.extension()).start().await;
        lab.runtime.publish(message("ada", "hello")).await.unwrap();
        lab.until("the end", |_| before.told("ada", "end") == ["hello, Ada"]).await;
    });
    let after = Screen::default();
    process(async {
        let lab = Lab::build().script([]).on(&path, Default::default());
        let lab = lab.extension(after.extension()).start().await;
        later(&lab, "the answer again", |_| !after.all().is_empty()).await;
        assert_eq!(after.all(), ["ada whole hello, Ada (repeat)"]);
        assert_eq!(inputs(&lab, "chat.ada"), ["hello"]);
        assert_eq!(stream_shown(&lab, "chat.ada").len(), 1, "what was shown is known");
        assert!(bodies(&lab.frames_of("chat.ada"), FrameKind::StreamLost).is_empty());
        assert_eq!(lab.findings(), Vec::new());
        assert!(lab.replay("chat.ada").identical);
        lab.stop().await;
    });
}

#[test]
fn a_process_that_ends_in_the_middle_of_a_stream_leaves_a_whole_answer_to_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("holdfast.db");
    let before = Screen::default();
    process(async {
        let lab =
            Lab::build().script([ScriptStep::Stalls("half of".to_owned())]).on(&path, Default::default());
        let lab = lab.extension(before.extension()).start().await;
        lab.runtime.publish(message("ada", "hello")).await.unwrap();
        lab.until("some text", |_| before.text("ada") == "half of").await;
    });
    let after = Screen::default();
    process(async {
        let lab = Lab::build().script([ScriptStep::says("all of it")]).on(&path, Default::default());
        let lab = lab.extension(after.extension()).start().await;
        later(&lab, "the answer", |_| !after.all().is_empty()).await;
        assert_eq!(after.all(), ["ada whole all of it"]);
        assert_eq!(inputs(&lab, "chat.ada"), ["hello"], "the turn was taken up, not begun again");
        // What was shown before is not known, and the log says so.
        lab.until("the frame", |lab| !bodies(&lab.frames_of("chat.ada"), FrameKind::StreamLost).is_empty())
            .await;
        let frames = lab.frames_of("chat.ada");
        let lost = bodies(&frames, FrameKind::StreamLost);
        let message = bodies(&frames, FrameKind::InputReceived)[0]["message_id"].clone();
        assert_eq!(lost, [json!({ "channel": "chat", "id": message })]);
        assert!(stream_shown(&lab, "chat.ada").is_empty());
        assert_eq!(lab.findings(), Vec::new());
        assert!(lab.replay("chat.ada").identical);
        lab.stop().await;
    });
}

/// Secrets with one value.
fn secrets(folder: &std::path::Path, value: &str) -> Arc<Secrets> {
    let stores: Vec<Box<dyn SecretStore>> = vec![Box::new(EncryptedFile::new(folder, None))];
    let chain = Chain::new(stores, StoreKind::File).unwrap();
    let secrets = Secrets::new(chain, Digester::open(folder).unwrap(), Vec::new()).unwrap();
    let name = SecretName::global("TOKEN").unwrap();
    secrets.keep(&name, &SecretString::from(value.to_owned())).unwrap();
    Arc::new(secrets)
}

#[tokio::test]
async fn a_secret_that_comes_in_pieces_reaches_no_channel() {
    let folder = tempfile::tempdir().unwrap();
    let screen = Screen::default();
    let writer = Writer::new().writes(["the token is swor", "dfish-", "4711-", "ab and that is all"]);
    let lab = Lab::build()
        .model("script", writer)
        .secrets(secrets(folder.path(), "swordfish-4711-ab"))
        .extension(screen.extension())
        .start()
        .await;
    lab.runtime.publish(message("ada", "tell me")).await.unwrap();
    lab.until("the end", |_| screen.told("ada", "end").len() == 1).await;
    let all = screen.all().join("\n");
    assert!(!all.contains("swor") && !all.contains("4711"), "{all}");
    assert_eq!(screen.text("ada"), screen.told("ada", "end")[0]);
    assert!(screen.text("ada").ends_with("and that is all"), "{all}");
    lab.stop().await;
}

fn component_lab(
    traps: bool,
    takes: &Takes,
    steps: impl IntoIterator<Item = ScriptStep>,
) -> holdfast_testkit::LabBuilder {
    let vault = Arc::new(MapVault::default());
    let grants = Grants { interfaces: vec!["events".to_owned()], ..Grants::default() };
    let found = vault.add_granted(&manifest("chat", ""), streamer(traps), &SandboxOptions::small(), grants);
    let probe = NativeExtension::new("probe", "1.0.0")
        .subscribes("relay", HandlerSpec::Custom)
        .subscriber(takes.clone());
    let kit = NativeExtension::new("kit", "1.0.0").tool(echo());
    Lab::build().script(steps).extension(probe).extension(kit).lane(lane(&vault), [found])
}

fn said(takes: &Takes) -> Vec<Value> {
    takes.all().iter().map(|event| event["payload"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_shows_answers_as_they_are_written() {
    let takes = Takes::default();
    let steps = [ScriptStep::calls([("echo", json!({}))]), ScriptStep::says("good evening, Ada")];
    let lab = component_lab(false, &takes, steps).start().await;
    lab.runtime.publish(message("ada", "hello")).await.unwrap();
    let end = json!(["end", "ada", "good evening, Ada"]);
    lab.until("the end", |_| said(&takes).contains(&end)).await;
    let all = said(&takes);
    assert_eq!(
        all[..3],
        [
            json!(["start", "ada"]),
            json!(["status", "ada", "echo: started"]),
            json!(["status", "ada", "echo: done"])
        ]
    );
    let chunks: Vec<&str> =
        all.iter().filter(|it| it[0] == "chunk").map(|it| it[2].as_str().unwrap()).collect();
    assert_eq!(chunks.concat(), "good evening, Ada");
    assert_eq!(all.last().unwrap(), &end);
    lab.until("the report", |lab| reported(lab, "chat.ada") == [None]).await;
    assert_eq!(lab.findings(), Vec::new());
    assert!(lab.replay("chat.ada").identical);
    lab.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_component_that_traps_in_a_stream_has_the_whole_text_in_a_new_instance() {
    let takes = Takes::default();
    let lab = component_lab(true, &takes, [ScriptStep::says("good evening")]).start().await;
    lab.runtime.publish(message("ada", "hello")).await.unwrap();
    lab.until("the whole text", |_| said(&takes).contains(&json!(["whole", "ada", "good evening"]))).await;
    lab.until("the report", |lab| reported(lab, "chat.ada").len() == 1).await;
    assert!(reported(&lab, "chat.ada")[0].is_some());
    let faults = lab.runtime.recent_faults(Some(&"chat".into())).unwrap();
    assert!(faults.iter().any(|it| it.phase == "stream-chunk"), "{faults:#?}");
    lab.stop().await;
}

#[tokio::test]
async fn a_channel_that_shows_nothing_has_answers_whole() {
    let mailbox = crate::fixtures::Mailbox::default();
    let chat = NativeExtension::new("chat", "1.0.0").channel(mailbox.clone());
    let lab = Lab::build().script([ScriptStep::says("hello")]).extension(chat).start().await;
    let said = NewEvent::new("user.message", json!({ "text": "hi", "user_id": "ada", "channel_id": "chat" }));
    lab.runtime.publish(said).await.unwrap();
    lab.until("the answer", |_| mailbox.all() == ["ada: hello"]).await;
    assert!(reported(&lab, "chat.ada").is_empty());
    lab.stop().await;
}
