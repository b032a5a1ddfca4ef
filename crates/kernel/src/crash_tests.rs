//! Plugins that are not kept: one whose code ended the process is quarantined after one crash, because there is no doubt whose code it
//! was, and one that the profile refuses is stopped.

use holdfast_contract::problem::{Code, Fault};
use holdfast_contract::system_frames::ExtensionRejected;

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

#[test]
fn a_plugin_that_the_profile_refuses_stops_and_its_last_good_content_does_not_replace_it() {
    let mut scene = Scene::up([ext("plugin", &[]), ext("other", &[])]);
    let fault = Fault::new(Code::PluginRefused, "the profile is `standard`");
    let refused = || ExtensionRejected { id: "plugin".into(), fault: fault.clone() };
    let down = "plugin Error: the profile is `standard`";
    assert_eq!(scene.tell(refused())[0], "plugin@1 Error: HF-4401 the profile is `standard`");
    scene.settle();
    assert_eq!(scene.states(), ["other@1 Active", down]);
    // The next process finds the same.
    scene.stop();
    scene.settle();
    scene.start_after(&[]);
    scene.find([ext("other", &[])]);
    scene.tell(refused());
    scene.settle();
    assert_eq!(scene.states(), ["other@2 Active", down]);
    // Under a profile that allows it, it is found again.
    scene.find([ext("plugin", &[])]);
    scene.settle();
    assert_eq!(scene.states(), ["other@2 Active", "plugin@2 Active"]);
}
