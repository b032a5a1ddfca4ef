//! One delivery: a task that calls the handler. Its end is reported in every case, also if it is dropped or panics.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use holdfast_contract::problem::{Code, Fault, Problem};
use holdfast_contract::wire::Later;

use crate::bus::BusInner;
use crate::event::{BusEvent, Delivery};
use crate::state::{DeliveryVerdict, InterruptedDelivery, Start, Ticket};
use crate::stored::load;
use crate::subscription::EventHandler;

/// The outcome of one delivery.
pub(crate) struct DeliveryReport {
    pub(crate) ticket: Ticket,
    pub(crate) verdict: DeliveryVerdict,
    pub(crate) event: Option<Arc<BusEvent>>,
}

/// Sends the report when it is dropped, also when no verdict was set.
struct ReportOnDrop {
    inner: Arc<BusInner>,
    report: Option<DeliveryReport>,
}

impl ReportOnDrop {
    fn new(inner: Arc<BusInner>, ticket: Ticket) -> Self {
        let fault = Fault::new(Code::HandlerInterrupted, "the handler was dropped before it ended");
        let report = DeliveryReport { ticket, verdict: DeliveryVerdict::Interrupted(fault), event: None };
        Self { inner, report: Some(report) }
    }

    fn send(mut self, verdict: DeliveryVerdict, event: Option<Arc<BusEvent>>) {
        if let Some(report) = &mut self.report {
            (report.verdict, report.event) = (verdict, event);
        }
    }
}

impl Drop for ReportOnDrop {
    fn drop(&mut self) {
        if let Some(report) = self.report.take() {
            self.inner.report(report);
        }
    }
}

/// Delivers one event to its handler and reports the outcome.
pub(crate) async fn deliver(inner: Arc<BusInner>, start: Start) {
    let Start { ticket, id, event, attempt, repeat, handler, .. } = start;
    let reporting = ReportOnDrop::new(Arc::clone(&inner), ticket);
    let event = match event {
        Some(event) => event,
        None => match inner.blocking(move |store| load::event(store, id)).await {
            Ok(event) => Arc::new(event),
            Err(problem) => return reporting.send(unreadable(&problem), None),
        },
    };
    fail::fail_point!("bus::before_handler");
    let delivery = Delivery { event: Arc::clone(&event), attempt, repeat };
    let outcome = handle(&*handler, delivery).await;
    fail::fail_point!("bus::after_handler");
    let verdict = match outcome {
        Ok(()) => DeliveryVerdict::Done,
        Err(fault) if fault.code == Code::SubscriberDown => DeliveryVerdict::Postponed(fault),
        Err(fault) => DeliveryVerdict::Failed(fault),
    };
    reporting.send(verdict, Some(event));
}

/// Reports a delivery that an earlier process did not finish. The event is read if it was the last attempt, for the dead letter.
pub(crate) async fn report_interrupted(inner: Arc<BusInner>, account: InterruptedDelivery) {
    let InterruptedDelivery { ticket, id, spent } = account;
    let reporting = ReportOnDrop::new(Arc::clone(&inner), ticket);
    let event = if spent {
        inner.blocking(move |store| load::event(store, id)).await.ok().map(Arc::new)
    } else {
        None
    };
    let fault = Fault::new(Code::HandlerInterrupted, "the process ended while the handler was at work");
    reporting.send(DeliveryVerdict::Interrupted(fault), event);
}

/// Erased or missing content is a permanent failure; other read errors are retried.
fn unreadable(problem: &Problem) -> DeliveryVerdict {
    match problem.code {
        Code::StoreErased | Code::StoreMissing => DeliveryVerdict::Permanent(problem.to_fault()),
        _ => DeliveryVerdict::Failed(problem.to_fault()),
    }
}

/// Calls a handler; a panic becomes a fault of this delivery.
async fn handle(handler: &dyn EventHandler, delivery: Delivery) -> Result<(), Fault> {
    let mut running: Later<Result<(), Fault>> =
        catch_unwind(AssertUnwindSafe(|| handler.handle(delivery))).map_err(|panic| panicked(&*panic))?;
    poll_fn(move |context| match catch_unwind(AssertUnwindSafe(|| Pin::new(&mut running).poll(context))) {
        Ok(poll) => poll,
        Err(panic) => Poll::Ready(Err(panicked(&*panic))),
    })
    .await
}

fn panicked(panic: &(dyn Any + Send)) -> Fault {
    Fault::panicked(Code::HandlerBroke, panic)
}
