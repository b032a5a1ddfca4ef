//! Tests of blocking work on its own thread.

use holdfast_contract::problem::{Code, Fault};

use crate::on_thread;

#[tokio::test]
async fn results_faults_and_panics_are_returned() {
    assert_eq!(on_thread(|| Ok(1)).await, Ok(1));
    let failing = on_thread(|| Err::<(), _>(Fault::new(Code::ToolFailed, "no"))).await;
    assert_eq!(failing, Err(Fault::new(Code::ToolFailed, "no")));
    let panicking: Result<(), Fault> = on_thread(|| panic!("on purpose")).await;
    assert_eq!(panicking.unwrap_err().code, Code::Internal);
}

#[tokio::test]
async fn the_callers_thread_is_not_blocked() {
    let (release, wait) = std::sync::mpsc::channel::<()>();
    let blocked = on_thread(move || Ok(wait.recv().is_ok()));
    release.send(()).unwrap();
    assert_eq!(blocked.await, Ok(true));
}
