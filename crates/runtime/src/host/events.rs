//! The capabilities `events`, `subscriptions` and `channels`: what extensions publish, subscribe to, and send to the user.

use std::sync::Arc;

use holdfast_bus::topics::USER_NOTIFY;
use holdfast_bus::{NewEvent, topics as known};
use holdfast_contract::content::Content;
use holdfast_contract::frame::FrameSource;
use holdfast_contract::host_call::arguments::{NotifyArguments, PublishArguments, TopicArguments};
use holdfast_contract::ids::{ExtensionId, StreamId};
use holdfast_contract::problem::Fault;
use holdfast_contract::wire::Later;

use super::{Caller, failed};
use crate::messaging::UserNotice;
use crate::parts::SessionEvent;
use crate::runtime::Inner;

impl Inner {
    /// Publishes an event; the answer is its id, once the event is on disk.
    pub(super) fn event_publish(
        self: &Arc<Self>,
        caller: &Caller,
        arguments: PublishArguments,
    ) -> Later<Result<Content, Fault>> {
        let PublishArguments { topic, mut payload, key, correlation, idempotency } = arguments;
        let source = FrameSource::Extension(caller.extension.clone());
        if let (known::AGENT_TASK | known::AGENT_BACKGROUND, Some(fields)) =
            (topic.as_str(), payload.as_object_mut())
        {
            match self.nested(caller) {
                Ok((_, depth)) => drop(fields.insert("depth".to_owned(), depth.into())),
                Err(fault) => return failed(fault),
            }
        }
        let payload = Content::new(payload);
        self.published(NewEvent { topic, payload, key, correlation, idempotency, source })
    }

    pub(super) fn published(self: &Arc<Self>, event: NewEvent) -> Later<Result<Content, Fault>> {
        let inner = self.clone();
        Box::pin(async move {
            let published = inner.publish(event).await.map_err(|problem| problem.to_fault())?;
            Ok(Content::text(published.id.to_string()))
        })
    }

    pub(super) fn event_subscribe(
        self: &Arc<Self>,
        caller: Caller,
        arguments: TopicArguments,
        subscribes: bool,
    ) -> Later<Result<Content, Fault>> {
        let inner = self.clone();
        Box::pin(async move {
            let done = inner.asked_for(&caller.extension, arguments.topic, subscribes).await;
            done.map(|()| Content::default()).map_err(|problem| problem.to_fault())
        })
    }

    pub(super) fn user_notify(
        self: &Arc<Self>,
        caller: &Caller,
        arguments: NotifyArguments,
    ) -> Later<Result<Content, Fault>> {
        let NotifyArguments { text, channel: channel_id, user: user_id } = arguments;
        let session = caller.session.clone();
        let notice = UserNotice { text, channel_id, user_id, session, extension: None };
        let event = NewEvent::new(USER_NOTIFY, Content::of(&notice));
        self.published(event.source(FrameSource::Extension(caller.extension.clone())))
    }

    /// Sends the user a message that belongs to no conversation, wherever they can be reached. A message with the same key is sent once.
    /// If it cannot be published, the chats that are open show it.
    pub(crate) async fn notify_user(&self, extension: ExtensionId, text: &str, key: String) {
        let text = self.home.redact_text(text.to_owned());
        let notice = UserNotice { extension: Some(extension.clone()), ..UserNotice::text(text.clone()) };
        let event = NewEvent::new(USER_NOTIFY, Content::of(&notice)).idempotency(key);
        if self.publish(event).await.is_err() {
            self.surface.show(&StreamId::system(), SessionEvent::Notice { extension, text });
        }
    }
}
