//! Content whose code ended the process: it is quarantined after one crash, because there is no doubt whose code it was.

use crate::system_tests::{Scene, edited, ext};

#[test]
fn content_whose_code_ended_the_process_is_quarantined_at_once() {
    let all = || [edited(ext("bad", &[]), "bad"), edited(ext("fine", &[]), "fine")];
    let mut scene = Scene::started();
    scene.start_after(&[]);
    scene.find(all());
    scene.settle();
    // Both are up when the process dies, in a call.
    scene.start_after_crash_of("bad");
    let lines = scene.find(all());
    assert!(lines.concat().contains("HF-4006 its code ended the process"), "{lines:?}");
    scene.settle();
    assert_eq!(scene.states()[1], "fine@2 Active");
    // It stays down in later processes, and other content is tried.
    scene.stop();
    scene.settle();
    scene.start_after(&[]);
    assert!(scene.find(all()).concat().contains("HF-4006"), "{:?}", scene.states());
    scene.settle();
    let lines = scene.find([edited(ext("bad", &[]), "better")]);
    assert!(lines.concat().contains("load bad@"), "{lines:?}");
    // A process that stopped properly was not ended by anybody's code.
    scene.settle();
    scene.stop();
    scene.settle();
    scene.start_after_crash_of("better");
    let lines = scene.find([edited(ext("bad", &[]), "better")]);
    assert!(lines.concat().contains("load bad@"), "{lines:?}");
}
