//! Work on a thread of its own.

use holdfast_contract::problem::{Code, Fault};

use crate::on_thread;

#[tokio::test]
async fn work_answers_or_says_why_not() {
    assert_eq!(on_thread(|| Ok(1)).await, Ok(1));
    let failing = on_thread(|| Err::<(), _>(Fault::new(Code::ToolFailed, "no"))).await;
    assert_eq!(failing, Err(Fault::new(Code::ToolFailed, "no")));
    let panicking: Result<(), Fault> = on_thread(|| panic!("on purpose")).await;
    assert_eq!(panicking.unwrap_err().code, Code::Internal);
}

#[tokio::test]
async fn the_callers_thread_goes_on() {
    let (release, wait) = std::sync::mpsc::channel::<()>();
    let blocked = on_thread(move || Ok(wait.recv().is_ok()));
    release.send(()).unwrap();
    assert_eq!(blocked.await, Ok(true));
}
