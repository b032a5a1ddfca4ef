//! The capability `conversations`: what extensions are told of conversations and projects, and what they change there.

use std::sync::Arc;

use holdfast_contract::content::Content;
use holdfast_contract::host_call::arguments::{
    ProjectUpdateArguments, ThreadListArguments, ThreadUpdateArguments,
};
use holdfast_contract::ids::{ExtensionId, StreamId};
use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::wire::Later;
use serde::Serialize;

use super::conversations::{check_thread, history};
use crate::runtime::Inner;

/// The session of a home whose channels share one.
const MAIN: &str = "main";

impl Inner {
    pub(crate) fn thread_list(self: &Arc<Self>, asked: ThreadListArguments) -> Later<Result<Content, Fault>> {
        self.on_log(move |inner| inner.conversations.list(&inner.store, &asked))
    }

    pub(crate) fn thread_update(
        self: &Arc<Self>,
        asked: ThreadUpdateArguments,
    ) -> Later<Result<Content, Fault>> {
        self.on_log(move |inner| inner.conversations.update(&inner.store, asked, inner.clock.now()))
    }

    pub(crate) fn thread_history(self: &Arc<Self>, thread: String) -> Later<Result<Content, Fault>> {
        self.on_log(move |inner| history(&inner.store, &thread.as_str().into()))
    }

    pub(crate) fn project_list(self: &Arc<Self>) -> Later<Result<Content, Fault>> {
        self.on_log(|inner| inner.conversations.projects())
    }

    pub(crate) fn project_update(
        self: &Arc<Self>,
        asked: ProjectUpdateArguments,
    ) -> Later<Result<Content, Fault>> {
        self.on_log(move |inner| {
            let drawn: String = inner.entropy.draw(8).iter().map(|byte| format!("{byte:02x}")).collect();
            inner.conversations.update_project(asked, format!("project-{drawn}"), inner.clock.now())
        })
    }

    pub(crate) fn project_remove(self: &Arc<Self>, project: String) -> Later<Result<Content, Fault>> {
        self.on_log(move |inner| inner.conversations.remove_project(&project))
    }

    /// The session of a message that names its thread.
    pub(crate) async fn session_of_thread(
        self: &Arc<Self>,
        thread: &str,
        channel: &ExtensionId,
    ) -> Result<StreamId, Fault> {
        let (thread, channel) = (StreamId::from(thread), channel.clone());
        let session = thread.clone();
        let checked = self.on_log(move |inner| {
            let taken = |id: &str| id == MAIN || inner.extensions.active(&id.into()).is_some();
            check_thread(&inner.store, &thread, &channel, taken)
        });
        checked.await.map(|_| session)
    }

    /// Runs work that reads the log to its end on a blocking thread.
    fn on_log<T: Serialize + Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Arc<Self>) -> Result<T, Problem> + Send + 'static,
    ) -> Later<Result<Content, Fault>> {
        let inner = self.clone();
        Box::pin(async move {
            let done = tokio::task::spawn_blocking(move || {
                inner.store.flush()?;
                work(&inner)
            });
            let done = done.await.map_err(|error| Fault::new(Code::Internal, error.to_string()))?;
            done.map(|it| Content::of(&it)).map_err(|problem| problem.to_fault())
        })
    }
}
