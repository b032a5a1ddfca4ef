//! Progress that the calls of a session report. Each line passes the sanitizers of answers before it is shown.

use std::sync::{Arc, OnceLock, Weak};

use futures_util::FutureExt;
use holdfast_contract::ids::{ExtensionId, Millis, Seq, StreamId};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};

use super::preview::{AskedTexts, Preview};
use crate::clock::Clock;
use crate::messaging::OutputStream;
use crate::parts::{OutputDelta, OutputKind, SessionEvent};
use crate::runtime::Inner;

/// Lines of progress that may wait for the sanitizers. More are dropped.
const MAX_WAITING_LINES: usize = 256;

/// How long the answer of a call waits for lines of progress that sanitizers have not answered about.
const MAX_SHOW_WAIT: Millis = Millis(2_000);

/// Shows progress on the surfaces and, if the turn is streamed, on its channel.
pub(crate) struct ProgressOutput {
    screen: ProgressScreen,
    /// What the guardrails of the turn mean for it, once something was asked or called. Before that nothing is shown.
    preview: OnceLock<Preview>,
    asked: Arc<Mutex<AskedTexts>>,
    /// To the lines that wait, once a sanitizer did not answer at once.
    waiting: Mutex<Option<mpsc::Sender<ProgressLine>>>,
    /// How many lines wait for a sanitizer, or are with one.
    unshown: watch::Sender<usize>,
    tasks: Handle,
}

/// A line on how a call is getting on.
#[derive(Clone)]
struct ProgressLine {
    extension: ExtensionId,
    under: Seq,
    text: String,
}

/// Where lines are shown.
#[derive(Clone)]
struct ProgressScreen {
    inner: Weak<Inner>,
    session: StreamId,
    output: Option<Arc<OutputStream>>,
}

impl ProgressScreen {
    fn show(&self, line: ProgressLine) {
        let Some(inner) = self.inner.upgrade() else { return };
        let ProgressLine { extension, under, text } = line;
        if let Some(output) = &self.output {
            output.progress(&extension, &text);
        }
        let delta = OutputDelta { after: under, kind: OutputKind::Progress { extension }, text };
        inner.surface.show(&self.session, SessionEvent::Output(delta));
    }
}

impl ProgressOutput {
    pub(super) fn new(
        inner: &Arc<Inner>,
        session: &StreamId,
        output: Option<Arc<OutputStream>>,
    ) -> Arc<Self> {
        let screen = ProgressScreen { inner: Arc::downgrade(inner), session: session.clone(), output };
        let (preview, waiting, unshown) = (OnceLock::new(), Mutex::default(), watch::Sender::new(0));
        Arc::new(Self { screen, preview, asked: Arc::default(), waiting, unshown, tasks: Handle::current() })
    }

    /// Whether it is known what the guardrails mean for it.
    pub(super) fn has_preview(&self) -> bool {
        self.preview.get().is_some()
    }

    /// Where it is counted what the sanitizers of the turn are asked.
    pub(super) fn asked(&self) -> &Arc<Mutex<AskedTexts>> {
        &self.asked
    }

    /// Takes what the guardrails of the turn mean for it. They are the same for the whole turn.
    pub(super) fn set_preview(&self, preview: &Preview) {
        self.preview.get_or_init(|| preview.clone());
    }

    /// Shows a line at once, on the thread that reports it, unless a sanitizer takes its time. It is not a command to the actor: the
    /// actor takes an answer that is ready at once directly, and a command in its inbox would come after it.
    pub(crate) fn show(&self, extension: &ExtensionId, under: Seq, text: &str) {
        let Some(inner) = self.screen.inner.upgrade() else { return };
        let line = |text: String| ProgressLine { extension: extension.clone(), under, text };
        let text = inner.home.redact_text(text.to_owned());
        let sanitizers = match self.preview.get() {
            None | Some(Preview::Hidden) => return,
            Some(Preview::Open) => return self.screen.show(line(text)),
            Some(Preview::Streamed(sanitizers) | Preview::Whole(sanitizers)) => sanitizers.clone(),
        };
        let mut waiting = self.waiting.lock();
        if let Some(waiting) = &*waiting {
            self.unshown.send_modify(|lines| *lines += 1);
            // Where too many wait, a later one says more.
            if waiting.try_send(line(text)).is_err() {
                self.unshown.send_modify(|lines| *lines -= 1);
            }
            return;
        }
        let _runtime = self.tasks.enter();
        let asked = sanitizers.clone();
        let mut first = Box::pin(async move { asked.sanitize_line(&text).await });
        if let Some(sanitized) = (&mut first).now_or_never() {
            sanitized.into_iter().for_each(|text| self.screen.show(line(text)));
            return;
        }
        let (sender, mut lines) = mpsc::channel::<ProgressLine>(MAX_WAITING_LINES);
        *waiting = Some(sender);
        self.unshown.send_modify(|lines| *lines += 1);
        let (screen, unshown, begun) = (self.screen.clone(), self.unshown.clone(), line(String::new()));
        self.tasks.spawn(async move {
            let show = |line: ProgressLine, text: Option<String>| {
                text.into_iter().for_each(|text| screen.show(ProgressLine { text, ..line.clone() }));
                unshown.send_modify(|lines| *lines -= 1);
            };
            show(begun, first.await);
            while let Some(line) = lines.recv().await {
                let text = sanitizers.sanitize_line(&line.text).await;
                show(line, text);
            }
        });
    }

    /// Whether every line that was reported is shown, or never will be.
    pub(super) fn is_shown(&self) -> bool {
        *self.unshown.borrow() == 0
    }

    /// Waits until every line that was reported is shown, so that the answer of a call comes after its progress. A sanitizer that takes
    /// its time does not hold up the call for long.
    pub(super) async fn shown(&self, clock: &dyn Clock) {
        if self.is_shown() {
            return;
        }
        let mut unshown = self.unshown.subscribe();
        tokio::select! {
            biased;
            _shown = unshown.wait_for(|lines| *lines == 0) => {}
            () = clock.sleep(MAX_SHOW_WAIT) => {}
        }
    }
}
