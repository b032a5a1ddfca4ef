use super::path::{Path, PathStep};

#[test]
fn paths_render_with_dots_and_indices_and_are_truncated() {
    let key = |path: &Path, key: &str| path.to(PathStep::Key(key.into()));
    let schedules = key(&Path::default(), "schedules");
    let cron = key(&schedules.to(PathStep::Item(0)), "cron");
    assert_eq!(cron.render(), "schedules[0].cron");
    assert_eq!((cron.key(), schedules.to(PathStep::Item(3)).key()), ("cron", "schedules"));
    let deep = (0..64).fold(Path::default(), |path, _| key(&path, &"k".repeat(1000)));
    assert!(deep.render().len() < 200 && deep.render().ends_with('…'));
}
