//! What a person sees of an answer while it is written, with sanitizers and guardrails on answers: nothing that the answer itself does not
//! have. Each case is judged on what surfaces and a streaming channel were shown, and not on the answer alone.

use std::sync::Arc;

use holdfast_contract::body::FrameKind;
use holdfast_contract::content::Content;
use holdfast_contract::digest::canonical;
use holdfast_contract::hook::{Decision, HookInput, HookPoint, HookSpec};
use holdfast_contract::ids::{CallId, Millis};
use holdfast_contract::message::TurnView;
use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::sandbox::SandboxOptions;
use holdfast_contract::system_frames::FoundExtension;
use holdfast_contract::tool::{EffectClass, ToolSpec};
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::{FnHook, Hook, NativeExtension, Tool};
use holdfast_testkit::pieces::{hook, spec};
use holdfast_testkit::story::bodies;
use holdfast_testkit::wasm::{MapVault, lane};
use holdfast_testkit::{Lab, LabBuilder};
use serde_json::json;

use crate::fixtures::later;
use crate::streaming_fixtures::{Screen, Writer, message};

const GITHUB: &str = "ghp_aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5";
const PASSWORD: &str = "Tr0ub4dor3xK9";

/// A built-in guardrail, as the program carries it.
fn built_in(vault: &MapVault, id: &str) -> FoundExtension {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../extensions").join(id);
    let manifest = std::fs::read_to_string(folder.join("manifest.yaml")).unwrap();
    let component = std::fs::read(folder.join(format!("{id}.wasm"))).unwrap();
    vault.add(&manifest, component, &SandboxOptions::small())
}

/// A home with the guardrails that every home has.
fn as_in_a_home(writer: Writer, screen: &Screen) -> LabBuilder {
    let vault = Arc::new(MapVault::default());
    let found = ["secret-redaction", "length-guard"].map(|id| built_in(&vault, id));
    with(writer, screen).lane(lane(&vault), found)
}

fn with(writer: Writer, screen: &Screen) -> LabBuilder {
    Lab::build().model("script", writer).extension(screen.extension())
}

/// A sanitizer in an extension of its own.
fn sanitizer(id: &str, streams: bool, priority: i32, clean: fn(&str) -> Decision) -> NativeExtension {
    let spec = HookSpec { streams, priority, ..HookSpec::at(HookPoint::SanitizeOutput) };
    let clean = hook(spec, move |input| clean(&input.subject.as_ref().unwrap().to_text()));
    NativeExtension::new(id, "1.0.0").hook(clean).replayable()
}

/// Takes a word out, wherever it is.
fn without_word(text: &str) -> Decision {
    if text.contains("hush") {
        Decision::Replace { content: Content::text(text.replace("hush", "[…]")) }
    } else {
        Decision::Continue
    }
}

fn blocks_word(text: &str) -> Decision {
    if text.contains("hush") {
        Decision::Block { reason: "that is not said".to_owned() }
    } else {
        Decision::Continue
    }
}

/// The text in pieces of so many bytes, or of one character that has more.
fn pieces(text: &str, size: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    for letter in text.chars() {
        if all.last().unwrap().len() + letter.len_utf8() > size && !all.last().unwrap().is_empty() {
            all.push(String::new());
        }
        all.last_mut().unwrap().push(letter);
    }
    all
}

/// Has a user ask, and gives the answer and all that was shown before it, at the surfaces and on the channel.
async fn ask(lab: &Lab, screen: &Screen) -> (String, String) {
    lab.runtime.publish(message("ada", "tell me")).await.unwrap();
    later(lab, "the end", |_| screen.told("ada", "end").len() == 1).await;
    assert_eq!(screen.text("ada"), lab.shown(), "both are shown the same");
    (screen.told("ada", "end").remove(0), lab.shown())
}

// Finding C9.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_credential_is_shown_to_nobody_wherever_the_provider_cut_it() {
    let jwt =
        format!("eyJ{}.eyJ{}.{}", "hbGciOiJI".repeat(60), "zdWIiOiIx".repeat(120), "Qx7bT2mZ9".repeat(5));
    let key = format!(
        "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----",
        "MIIEpAIBAAKC\n".repeat(60)
    );
    let filler = "All is well so far. ".repeat(20);
    let more = "And so it goes on. ".repeat(20);
    let cases: Vec<(&str, String, Vec<&str>)> = vec![
        ("a token alone", GITHUB.to_owned(), vec!["ghp_"]),
        ("at the beginning", format!("{GITHUB} is it. {more}"), vec!["ghp_"]),
        ("at the end", format!("{filler}It is {GITHUB}"), vec!["ghp_"]),
        ("in the middle", format!("{filler}It is {GITHUB}. {more}"), vec!["ghp_"]),
        ("two beside each other", format!("{filler}{GITHUB} {GITHUB} {more}"), vec!["ghp_"]),
        (
            "in Markdown",
            format!("{filler}**Token:** `{GITHUB}`\n\n```sh\nexport T={GITHUB}\n```\n{more}"),
            vec!["ghp_"],
        ),
        (
            "in a Markdown link",
            format!("{filler}[here](https://me:{PASSWORD}@example.com/x) {more}"),
            vec![PASSWORD],
        ),
        ("in a table", format!("{filler}\n| a | b |\n|---|---|\n| key | {GITHUB} |\n{more}"), vec!["ghp_"]),
        ("in JSON", format!("{filler}{{\"password\": \"{PASSWORD}\"}} {more}"), vec![PASSWORD]),
        (
            "in JSON within JSON",
            format!("{filler}\"{{\\\"password\\\": \\\"{PASSWORD}\\\"}}\" {more}"),
            vec![PASSWORD],
        ),
        (
            "a whole answer of JSON",
            json!({ "note": filler, "token": GITHUB, "more": more }).to_string(),
            vec!["ghp_"],
        ),
        ("in a header", format!("{filler}Authorization: Bearer {GITHUB} {more}"), vec!["ghp_"]),
        ("after a name", format!("{filler}API_KEY={PASSWORD}\n{more}"), vec![PASSWORD]),
        ("in a long signed token", format!("{filler}{jwt} {more}"), vec!["hbGci", "zdWIi", "Qx7b"]),
        ("a private key", format!("{filler}{key}\n{more}"), vec!["MIIE"]),
        (
            "a private key that is not closed",
            format!("{filler}-----BEGIN PRIVATE KEY-----\n{}", "MIIEpAIBAAKC\n".repeat(60)),
            vec!["MIIE"],
        ),
        (
            "among characters of many bytes",
            format!("{}Schlüssel → «{GITHUB}» 🔑 {}", "Größe 漢字 🙂 ".repeat(20), "🙂漢ü ".repeat(40)),
            vec!["ghp_"],
        ),
        (
            "among characters without white space",
            format!("{}{GITHUB} {}", "漢字".repeat(200), "漢字".repeat(200)),
            vec!["ghp_"],
        ),
    ];
    for (what, text, hidden) in &cases {
        for size in [1, 7, 64, 100_000] {
            let screen = Screen::default();
            let lab = as_in_a_home(Writer::new().writes(pieces(text, size)), &screen).start().await;
            let (end, shown) = ask(&lab, &screen).await;
            for secret in hidden {
                assert!(!end.contains(secret), "{what}: the case must be one that is redacted: {end}");
                assert!(!shown.contains(secret), "{what}, pieces of {size}: {shown}");
            }
            assert_eq!(shown, end, "{what}, pieces of {size}: what was shown is the answer");
            lab.stop().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_credential_that_is_split_at_any_byte_is_shown_to_nobody() {
    let before = "Look at this, which is it, and keep it well: ".repeat(6);
    let text = format!("{before}{GITHUB} and that is all there is to it. {}", "So it is. ".repeat(30));
    let start = text.find(GITHUB).unwrap();
    for cut in start..=start + GITHUB.len() {
        let screen = Screen::default();
        let writer = Writer::new().writes([&text[..cut], &text[cut..]]);
        let lab = as_in_a_home(writer, &screen).start().await;
        let (end, shown) = ask(&lab, &screen).await;
        assert!(!shown.contains("ghp_") && end.contains("[redacted: GitHub token]"), "cut at {cut}: {shown}");
        assert_eq!(shown, end);
        lab.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_harmless_answer_is_shown_while_it_is_written_and_not_only_at_its_end() {
    let text = "All is well so far. ".repeat(60);
    let screen = Screen::default();
    let lab = as_in_a_home(Writer::new().writes(pieces(&text, 20)), &screen).start().await;
    let (end, shown) = ask(&lab, &screen).await;
    assert_eq!((&end, &shown), (&text, &text));
    assert!(screen.told("ada", "chunk").len() > 3, "{:?}", screen.told("ada", "chunk").len());
    lab.stop().await;
}

/// What is done with the text, what may never be shown of it, and what the answer says.
struct Case {
    what: &'static str,
    guards: Vec<NativeExtension>,
    writes: &'static str,
    /// What was shown before the answer, exactly; none where only what is hidden matters.
    shown: Option<&'static str>,
    end: &'static str,
}

impl Case {
    fn new(
        what: &'static str,
        guards: Vec<NativeExtension>,
        shown: Option<&'static str>,
        end: &'static str,
    ) -> Self {
        Self { what, guards, writes: "so hush it is", shown, end }
    }
}

fn failing(streams: bool) -> NativeExtension {
    let spec = HookSpec { streams, ..HookSpec::at(HookPoint::SanitizeOutput) };
    NativeExtension::new("guard", "1.0.0")
        .hook(FnHook(spec, |_: &HookInput| Err(Fault::new(Code::ExtensionFault, "the list is gone"))))
}

fn panicking() -> NativeExtension {
    let spec = HookSpec { streams: true, ..HookSpec::at(HookPoint::SanitizeOutput) };
    NativeExtension::new("guard", "1.0.0").hook(FnHook(spec, |_: &HookInput| panic!("out of luck")))
}

fn judge(id: &str, points: &[HookPoint]) -> NativeExtension {
    let mut extension = NativeExtension::new(id, "1.0.0");
    for point in points {
        extension = extension.hook(hook(HookSpec::at(*point), |input| {
            if input.subject.as_ref().unwrap().to_text().contains("hush") {
                Decision::Block { reason: "that is not said".to_owned() }
            } else {
                Decision::Allow
            }
        }));
    }
    extension.replayable()
}

/// A sanitizer that never answers.
struct Hangs(bool);

impl Hook for Hangs {
    fn spec(&self) -> HookSpec {
        let timeout = Millis(700);
        HookSpec { streams: self.0, timeout, ..HookSpec::at(HookPoint::SanitizeOutput) }
    }

    fn decide(&self, _: HookInput, _: Arc<dyn Host>) -> Later<Result<Decision, Fault>> {
        Box::pin(std::future::pending())
    }
}

fn hanging(streams: bool) -> NativeExtension {
    NativeExtension::new("guard", "1.0.0").hook(Hangs(streams))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_guards_the_answer_nothing_is_shown_that_it_hides() {
    let flags = |_: &str| Decision::Flag { reason: "odd".to_owned() };
    let upper = |text: &str| Decision::Replace { content: Content::text(text.to_uppercase()) };
    let quiet = |_: &str| Decision::Continue;
    let blocked = "This was blocked: that is not said";
    let cases = [
        Case::new(
            "one that rewrites on streams",
            vec![sanitizer("a", true, 1, without_word)],
            Some("so […] it is"),
            "so […] it is",
        ),
        Case::new(
            "one that rewrites whole texts",
            vec![sanitizer("a", false, 1, without_word)],
            Some(""),
            "so […] it is",
        ),
        Case::new(
            "one that agrees",
            vec![sanitizer("a", true, 1, quiet)],
            Some("so hush it is"),
            "so hush it is",
        ),
        Case::new(
            "one that agrees to whole texts",
            vec![sanitizer("a", false, 1, quiet)],
            Some(""),
            "so hush it is",
        ),
        Case::new(
            "one that flags",
            vec![sanitizer("a", true, 1, flags)],
            Some("so hush it is"),
            "so hush it is",
        ),
        Case::new(
            "one that blocks on streams",
            vec![sanitizer("a", true, 1, blocks_word)],
            Some(""),
            blocked,
        ),
        Case::new(
            "one that blocks whole texts",
            vec![sanitizer("a", false, 1, blocks_word)],
            Some(""),
            blocked,
        ),
        Case::new(
            "two that rewrite, in order",
            vec![sanitizer("a", true, 1, without_word), sanitizer("b", true, 2, upper)],
            Some("SO […] IT IS"),
            "SO […] IT IS",
        ),
        Case::new(
            "two in the other order",
            vec![sanitizer("a", true, 2, without_word), sanitizer("b", true, 1, upper)],
            Some("SO HUSH IT IS"),
            "SO HUSH IT IS",
        ),
        Case::new(
            "one on streams and one on whole texts",
            vec![sanitizer("a", true, 1, upper), sanitizer("b", false, 2, without_word)],
            Some(""),
            "SO HUSH IT IS",
        ),
        Case::new(
            "one that rewrites and one that blocks",
            vec![sanitizer("a", true, 1, quiet), sanitizer("b", true, 2, blocks_word)],
            Some(""),
            blocked,
        ),
        Case::new("one that fails", vec![failing(true)], Some(""), "This was blocked: HF-4003"),
        Case::new(
            "one that fails on whole texts",
            vec![failing(false)],
            Some(""),
            "This was blocked: HF-4003",
        ),
        Case::new("one that panics", vec![panicking()], Some(""), "This was blocked: HF-4003"),
        Case::new("a judge of answers", vec![judge("j", &[HookPoint::GuardOutput])], Some(""), blocked),
        Case::new(
            "a judge of answers and chunks",
            vec![judge("j", &[HookPoint::GuardOutput, HookPoint::GuardChunk])],
            Some(""),
            blocked,
        ),
        Case::new(
            "a judge of chunks and a sanitizer",
            vec![judge("j", &[HookPoint::GuardChunk]), sanitizer("a", true, 1, upper)],
            Some(""),
            blocked,
        ),
        Case::new(
            "a judge of answers whose chunks another one judges",
            vec![judge("j", &[HookPoint::GuardOutput]), judge("k", &[HookPoint::GuardChunk])],
            Some(""),
            blocked,
        ),
        Case {
            writes: "all is well",
            ..Case::new(
                "a judge of answers that agrees",
                vec![judge("j", &[HookPoint::GuardOutput])],
                Some(""),
                "all is well",
            )
        },
        Case {
            writes: "all is well",
            ..Case::new(
                "a judge of answers and chunks that agrees",
                vec![judge("j", &[HookPoint::GuardOutput, HookPoint::GuardChunk])],
                Some("all is well"),
                "all is well",
            )
        },
        Case::new("one that hangs", vec![hanging(true)], Some(""), "This was blocked: HF-3201"),
        Case::new(
            "one that hangs on whole texts",
            vec![hanging(false)],
            Some(""),
            "This was blocked: HF-3201",
        ),
    ];
    for Case { what, guards, writes, shown: expected, end: answer } in cases {
        let screen = Screen::default();
        let lab = with(Writer::new().writes(pieces(writes, 3)), &screen);
        let lab = guards.into_iter().fold(lab, LabBuilder::extension).start().await;
        lab.runtime.publish(message("ada", "tell me")).await.unwrap();
        // Time passes while nothing happens, and so a guardrail that hangs runs into its timeout.
        let the_end = format!("{what}: the end");
        later(&lab, &the_end, |_| screen.told("ada", "end").len() == 1).await;
        let (end, shown) = (screen.told("ada", "end").remove(0), lab.shown());
        assert_eq!(screen.text("ada"), shown, "{what}: both are shown the same");
        assert!(end.starts_with(answer), "{what}: {end}");
        if let Some(expected) = expected {
            assert_eq!(shown, expected, "{what}");
        }
        assert_eq!(lab.findings(), Vec::new(), "{what}");
        lab.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reasoning_is_shown_without_what_the_answer_would_hide() {
    for (streams, expected) in [(true, "I think […], yes"), (false, "")] {
        let screen = Screen::default();
        let writer = Writer::new().writes(["all is well"]).considers(["I think hu", "sh, yes"]);
        let lab = with(writer, &screen).extension(sanitizer("a", streams, 1, without_word)).start().await;
        ask(&lab, &screen).await;
        assert_eq!(lab.reasoning(), expected);
        lab.stop().await;
    }
    // With those that every home has.
    let screen = Screen::default();
    let writer =
        Writer::new().writes(["all is well"]).considers(pieces(&format!("The token is {GITHUB}."), 3));
    let lab = as_in_a_home(writer, &screen).start().await;
    ask(&lab, &screen).await;
    assert_eq!(lab.reasoning(), "The token is [redacted: GitHub token].");
    lab.stop().await;
}

/// A tool that tells how it is getting on.
struct Reports(&'static str);

impl Tool for Reports {
    fn spec(&self) -> ToolSpec {
        spec("look", EffectClass::Pure)
    }

    fn call(&self, _: CallId, _: Content, _: TurnView, host: Arc<dyn Host>) -> Later<Result<Content, Fault>> {
        let text = self.0;
        Box::pin(async move {
            host.progress(text);
            host.progress("nearly there");
            Ok(Content::text("found"))
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_progress_of_a_tool_and_a_text_before_a_call_are_sanitized_too() {
    let text = "the token is hush";
    for (streams, shown) in [(true, "let me see […]all is well"), (false, "let me see […]")] {
        let screen = Screen::default();
        let writer = Writer::new().writes(["let me see hu", "sh"]).calls("look").writes(["all is well"]);
        let kit = NativeExtension::new("kit", "1.0.0").tool(Reports(text));
        let lab = with(writer, &screen)
            .extension(kit)
            .extension(sanitizer("a", streams, 1, without_word))
            .start()
            .await;
        lab.runtime.publish(message("ada", "tell me")).await.unwrap();
        later(&lab, "the end", |_| screen.told("ada", "end").len() == 1).await;
        later(&lab, "the progress", |lab| lab.progress().len() == 2).await;
        assert_eq!(lab.progress(), ["the token is […]", "nearly there"]);
        assert_eq!(lab.shown(), shown);
        assert_eq!(screen.told("ada", "end"), ["all is well"]);
        assert!(!screen.all().concat().contains("hush"), "{:?}", screen.all());
        lab.stop().await;
    }
}

/// A sanitizer that never answers at once.
struct Slow;

impl Hook for Slow {
    fn spec(&self) -> HookSpec {
        HookSpec { streams: true, ..HookSpec::at(HookPoint::SanitizeOutput) }
    }

    fn decide(&self, _: HookInput, _: Arc<dyn Host>) -> Later<Result<Decision, Fault>> {
        Box::pin(async {
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            Ok(Decision::Continue)
        })
    }
}

/// The progress of a call that answers at once waits for the sanitizers, and the answer waits for the progress.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_is_shown_before_the_end_of_its_call_however_slow_a_sanitizer_is() {
    for _ in 0..20 {
        let screen = Screen::default();
        let writer = Writer::new().writes(["let me see"]).calls("look").writes(["all is well"]);
        let kit = NativeExtension::new("kit", "1.0.0").tool(Reports("half way"));
        let guard = NativeExtension::new("guard", "1.0.0").hook(Slow);
        let lab = with(writer, &screen).extension(kit).extension(guard).start().await;
        lab.runtime.publish(message("ada", "tell me")).await.unwrap();
        lab.until("the end", |_| screen.told("ada", "end").len() == 1).await;
        let statuses = screen.told("ada", "status");
        let place = |text: &str| statuses.iter().position(|it| it == text);
        assert!(place("nearly there").is_some(), "{statuses:?}");
        assert!(place("nearly there") < place("look: done"), "{statuses:?}");
        lab.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_breaks_off_shows_no_half_of_a_credential() {
    let screen = Screen::default();
    let half = format!("{}It is {}", "All is well. ".repeat(20), &GITHUB[..30]);
    let lab = as_in_a_home(Writer::new().writes(pieces(&half, 5)).breaks_off(), &screen)
        .model("second", Writer::new().writes(["sorry"]))
        .settings(|settings| settings.models.push("second".into()))
        .start()
        .await;
    lab.runtime.publish(message("ada", "tell me")).await.unwrap();
    later(&lab, "the end", |_| screen.told("ada", "end").len() == 1).await;
    assert_eq!(screen.told("ada", "end"), ["sorry"]);
    for shown in [screen.text("ada"), lab.shown()] {
        assert!(shown.starts_with("All is well.") && !shown.contains("ghp_"), "{shown}");
    }
    lab.stop().await;
}

// Row E15.
#[tokio::test]
async fn what_sanitizers_are_asked_before_an_answer_is_one_frame_with_counts_and_a_digest() {
    let screen = Screen::default();
    let words: Vec<String> = (0..400).map(|number| format!("{number} ")).collect();
    let writer = Writer::new().writes(words).calls("look").writes(["so ", "hush ", "it is"]);
    let kit = NativeExtension::new("kit", "1.0.0").tool(Reports("hush, I look"));
    let lab = Lab::build()
        .model("script", writer)
        .extension(sanitizer("a", true, 1, without_word))
        .extension(screen.extension())
        .extension(kit)
        .start()
        .await;
    lab.runtime.publish(message("ada", "go")).await.unwrap();
    lab.until("the frame", |lab| !bodies(&lab.frames_of("chat.ada"), FrameKind::PreviewAsked).is_empty())
        .await;
    lab.until("the end", |_| screen.told("ada", "end").len() == 1).await;
    let frames = lab.frames_of("chat.ada");
    let asked = bodies(&frames, FrameKind::PreviewAsked);
    let [asked] = asked.as_slice() else { panic!("{asked:?}") };
    let [by] = asked["hooks"].as_array().unwrap().as_slice() else { panic!("{asked}") };
    // Texts before the call and after it, and a line of progress.
    assert!(by["asked"].as_u64().unwrap() > 5 && by["replaced"].as_u64().unwrap() >= 1, "{asked}");
    assert_eq!((&by["blocked"], &by["failed"]), (&json!(0), &json!(0)), "{asked}");
    assert!(asked["digest"].as_str().is_some_and(|digest| digest.len() > 40), "{asked}");
    // However often it is asked, what it adds to the log is bounded.
    let frame = frames.iter().find(|frame| frame.envelope.kind == FrameKind::PreviewAsked).unwrap();
    assert!(canonical(frame).unwrap().len() < 1_500);
    assert!(!frames.iter().any(|frame| frame.envelope.kind == FrameKind::PreviewAsked
        && frame.body.as_ref().unwrap().to_string().contains("hush")));
    assert_eq!(lab.findings(), Vec::new());
    assert!(lab.replay("chat.ada").identical);
    lab.stop().await;
}

// Row E15.
#[tokio::test]
async fn a_sanitizer_that_fails_before_an_answer_is_recorded_with_its_fault() {
    let screen = Screen::default();
    let writer = Writer::new().writes(["I look. "]).calls("look").writes(["done"]);
    let kit = NativeExtension::new("kit", "1.0.0").tool(Reports("hush, I look"));
    let lab = Lab::build()
        .model("script", writer)
        .extension(failing(false))
        .extension(screen.extension())
        .extension(kit)
        .start()
        .await;
    lab.runtime.publish(message("ada", "go")).await.unwrap();
    lab.until("the frame", |lab| !bodies(&lab.frames_of("chat.ada"), FrameKind::PreviewAsked).is_empty())
        .await;
    let asked = bodies(&lab.frames_of("chat.ada"), FrameKind::PreviewAsked).remove(0);
    let by = &asked["hooks"][0];
    assert_eq!(by["asked"], by["failed"]);
    assert!(by["fault"]["message"].as_str().unwrap().contains("the list is gone"), "{asked}");
    assert!(lab.replay("chat.ada").identical);
    lab.stop().await;
}
