//! The figures of streaming: the latency from a model's first delta to a surface, and how evenly many concurrent sessions stream.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_bus::NewEvent;
use holdfast_contract::content::Content;
use holdfast_contract::ids::StreamId;
use holdfast_contract::manifest::Profile;
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::session_frames::{ModelFailed, ModelReturned, SessionSettings};
use holdfast_contract::wire::{Host, Later};
use holdfast_lane_native::{Channel, NativeExtension, NativeLane, StreamingChannel, now};
use holdfast_model::{Delta, Deltas, Model, ModelRequest};
use holdfast_policy::Policy;
use holdfast_store::{Store, StoreOptions};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::mpsc;

use holdfast_runtime::{
    HomeParts, NewSession, OsEntropy, Parts, Routes, Runtime, SessionEvent, SessionFactory, SessionRequest,
    Surface, SystemClock,
};

use crate::timing::Timing;

/// Turns whose first piece is timed, and those before the first one that counts.
const TURNS: usize = 1_000;
const WARM: usize = 20;
/// Sessions that stream at once, how many pieces each writes, and how long it waits between them.
const SESSIONS: usize = 200;
const PIECES: usize = 50;
/// How long a model waits between two pieces where many stream at once.
pub const PACE: Duration = Duration::from_millis(20);
/// How long a turn may take before something is wrong.
const LATE: Duration = Duration::from_secs(120);

/// What streaming costs here.
pub struct Streamed {
    /// From a model's first piece to a surface.
    pub surface: Timing,
    /// From a model's first piece to a channel.
    pub channel: Timing,
    /// The times between two pieces on a channel, of all sessions that stream at once.
    pub gaps: Timing,
    /// Sessions that streamed at once.
    pub sessions: usize,
}

/// Takes the figures, in this empty folder.
pub async fn streamed(folder: &Path) -> Result<Streamed, Problem> {
    let (surface, channel) = first_pieces(folder).await?;
    let gaps = gaps(folder).await?;
    Ok(Streamed { surface, channel, gaps, sessions: SESSIONS })
}

/// A model that writes a short answer at once, or a longer one at a pace.
struct Writer {
    pace: Option<Duration>,
    began: Moments,
}

/// When something happened last, by session.
type Moments = Arc<Mutex<HashMap<String, Vec<Instant>>>>;

fn note(moments: &Moments, whose: &str) {
    let mut moments = moments.lock();
    moments.entry(whose.to_owned()).or_default().push(Instant::now());
}

fn taken(moments: &Moments) -> HashMap<String, Vec<Instant>> {
    std::mem::take(&mut *moments.lock())
}

impl Model for Writer {
    fn complete(&self, ask: Box<ModelRequest>, deltas: Deltas) -> Later<Result<ModelReturned, ModelFailed>> {
        let (pace, began) = (self.pace, self.began.clone());
        Box::pin(async move {
            let count = pace.map_or(1, |_| PIECES);
            for place in 0..count {
                if let Some(pace) = pace.filter(|_| place > 0) {
                    tokio::time::sleep(pace).await;
                }
                if place == 0 {
                    note(&began, ask.turn.origin.user.as_deref().unwrap_or_default());
                }
                deltas(Delta::Text("a few words "));
            }
            let text = Content::text("a few words ".repeat(count));
            Ok(ModelReturned { text, reasoning: None, calls: Vec::new(), usage: Default::default() })
        })
    }
}

/// A channel, and a surface, that note when they are shown something.
#[derive(Clone)]
struct Watch {
    channel: Moments,
    surface: Moments,
    ends: mpsc::UnboundedSender<()>,
}

impl Channel for Watch {
    fn send_to_user(&self, _: String, _: String, _: Content, _: Arc<dyn Host>) -> Later<Result<(), Fault>> {
        now(Err(Fault::new(Code::Internal, "the answer was not streamed")))
    }
}

impl StreamingChannel for Watch {
    fn stream_start(&self, _: String, _: String, _: Arc<dyn Host>) -> Later<Result<(), Fault>> {
        now(Ok(()))
    }

    fn stream_chunk(&self, user: String, _: String, _: String, _: Arc<dyn Host>) -> Later<Result<(), Fault>> {
        note(&self.channel, &user);
        now(Ok(()))
    }

    fn stream_status(&self, _: String, _: String, _: String, _: Arc<dyn Host>) -> Later<Result<(), Fault>> {
        now(Ok(()))
    }

    fn stream_end(
        &self,
        _: String,
        _: String,
        _: String,
        _: Content,
        _: Arc<dyn Host>,
    ) -> Later<Result<(), Fault>> {
        // The figures are read once counting has ended.
        let _ = self.ends.send(());
        now(Ok(()))
    }
}

impl Surface for Watch {
    fn show(&self, session: &StreamId, event: SessionEvent) {
        if let (SessionEvent::Output(_), Some(user)) = (event, session.as_str().strip_prefix("bench.")) {
            note(&self.surface, user);
        }
    }

    fn attended(&self, _: &StreamId) -> bool {
        false
    }
}

/// Makes the sessions.
struct BenchSessionFactory;

impl SessionFactory for BenchSessionFactory {
    fn create_session(&self, _: &Runtime, opening: SessionRequest) -> Result<NewSession, Problem> {
        let SessionRequest { id, origin, .. } = opening;
        let settings = SessionSettings { models: vec!["writer".into()], ..SessionSettings::default() };
        Ok(NewSession { id, origin, agent: "main".into(), instructions: Content::default(), settings })
    }
}

/// A runtime with a channel whose users are answered by the writer.
struct Stage {
    runtime: Runtime,
    watch: Watch,
    began: Moments,
    ends: mpsc::UnboundedReceiver<()>,
}

impl Stage {
    async fn start(file: &Path, pace: Option<Duration>) -> Result<Self, Problem> {
        let (sender, ends) = mpsc::unbounded_channel();
        let watch = Watch { channel: Arc::default(), surface: Arc::default(), ends: sender };
        let began = Moments::default();
        let lane = NativeLane::default();
        let extensions =
            vec![lane.add(NativeExtension::new("bench", "1.0.0").streaming_channel(watch.clone()))];
        let model: Arc<dyn Model> = Arc::new(Writer { pace, began: began.clone() });
        let runtime = Runtime::start(Parts {
            store: Store::open(file, StoreOptions::default())?,
            clock: Arc::new(SystemClock),
            entropy: Arc::new(OsEntropy),
            models: BTreeMap::from([("writer".into(), model)]),
            lanes: vec![Arc::new(lane)],
            extensions,
            policy: Policy::profile(Profile::FullAuto),
            surface: Arc::new(watch.clone()),
            routes: Routes { opener: Some(Arc::new(BenchSessionFactory)), ..Routes::default() },
            home: HomeParts::default(),
        })
        .await?;
        Ok(Self { runtime, watch, began, ends })
    }

    async fn message(&self, user: &str) -> Result<(), Problem> {
        let said = json!({ "text": "go", "user_id": user, "channel_id": "bench" });
        self.runtime.publish(NewEvent::new("user.message", said)).await.map(drop)
    }

    async fn ended(&mut self, streams: usize) -> Result<(), Problem> {
        for _ in 0..streams {
            let late = |_| Problem::new(Code::Internal, "a stream has not come to its end");
            tokio::time::timeout(LATE, self.ends.recv()).await.map_err(late)?;
        }
        Ok(())
    }
}

async fn first_pieces(folder: &Path) -> Result<(Timing, Timing), Problem> {
    let mut stage = Stage::start(&folder.join("first.db"), None).await?;
    let (mut surface, mut channel) = (Vec::new(), Vec::new());
    for turn in 0..WARM + TURNS {
        stage.message("ada").await?;
        stage.ended(1).await?;
        let began = first(&stage.began);
        let shown = (first(&stage.watch.surface), first(&stage.watch.channel));
        if let (Some(began), (Some(seen), Some(had)), true) = (began, shown, turn >= WARM) {
            surface.push(seen.saturating_duration_since(began));
            channel.push(had.saturating_duration_since(began));
        }
    }
    stage.runtime.stop("measured").await?;
    Ok((Timing::new("", surface), Timing::new("", channel)))
}

/// The only session's first moment, after which there is none.
fn first(moments: &Moments) -> Option<Instant> {
    taken(moments).into_values().flatten().next()
}

async fn gaps(folder: &Path) -> Result<Timing, Problem> {
    let mut stage = Stage::start(&folder.join("many.db"), Some(PACE)).await?;
    for user in 0..SESSIONS {
        stage.message(&format!("user{user}")).await?;
    }
    stage.ended(SESSIONS).await?;
    let shown = taken(&stage.watch.channel);
    let gaps = shown.values().flat_map(|times| times.windows(2)).filter_map(|pair| match pair {
        [before, after] => Some(after.duration_since(*before)),
        _ => None,
    });
    let gaps = Timing::new("", gaps.collect());
    stage.runtime.stop("measured").await?;
    Ok(gaps)
}
