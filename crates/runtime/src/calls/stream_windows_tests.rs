//! Cutting a text: the same wherever its pieces were cut, nothing lost, borders that a split word does not get past.

use super::{releasable_until, window_end, window_with_overlap, windows};

fn cut(text: &str) -> Vec<&str> {
    windows(text).map(|window| &text[window]).collect()
}

#[test]
fn windows_are_the_whole_text_in_order() {
    for text in ["", "short", &"word ".repeat(200), &"x".repeat(1_000), &"é ü 漢字 ".repeat(90)] {
        assert_eq!(cut(text).concat(), text);
        assert!(cut(text).iter().all(|window| window.chars().count() <= 400));
    }
    assert_eq!(cut(&"word ".repeat(100)).iter().map(|it| it.len()).collect::<Vec<_>>(), [200, 200, 100]);
    assert_eq!(cut(&"x".repeat(900)).iter().map(|it| it.len()).collect::<Vec<_>>(), [400, 400, 100]);
}

#[test]
fn a_window_does_not_change_when_more_comes() {
    let text = format!("{}{}{}", "some words and ".repeat(30), "x".repeat(500), " the end ".repeat(50));
    let whole: Vec<_> = windows(&text).collect();
    for (place, _) in text.char_indices() {
        let so_far: Vec<_> =
            windows(&text[..place]).filter(|it| window_end(&text[..place], it.start).is_some()).collect();
        assert!(whole.starts_with(&so_far), "cut at {place}");
    }
    for window in &whole {
        let again: Vec<_> = windows(&text[..window.end]).collect();
        assert!(whole.starts_with(&again), "what was judged is cut in the same places again");
    }
}

#[test]
fn what_is_split_over_a_border_is_seen_whole_and_was_not_shown() {
    let text = format!("{}the secret plan is ready {}", "word ".repeat(38), "word ".repeat(60));
    let border = windows(&text).next().unwrap().end;
    let (start, end) = (text.find("the secret").unwrap(), text.find(" is ready").unwrap());
    assert!(start < border && border < end, "the words are split");
    let second = windows(&text).nth(1).unwrap();
    assert!(window_with_overlap(&text, second).contains("the secret plan"));
    assert!(releasable_until(&text, border) <= start);
    assert_eq!(releasable_until("short", 5), 0);
    assert_eq!(releasable_until("", 0), 0);
}
