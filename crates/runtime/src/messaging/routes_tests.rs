use holdfast_home::SessionRule;

use super::*;

fn session(channel: &str, user: &str) -> String {
    Routes::default().session(&channel.into(), user).to_string()
}

#[test]
fn every_user_has_a_session_on_each_channel() {
    assert_eq!(session("chat", "ada"), "chat.ada");
    assert_eq!(session("chat", "42"), "chat.42");
    assert_eq!(session("chat", "ada@example.org"), "chat.ada@example~2eorg");
    assert_eq!(session("chat", "a/b ü"), "chat.a~2fb~20~c3~bc");
}

#[test]
fn no_two_users_share_a_session_by_their_names() {
    assert_ne!(session("chat", "a.b"), session("chat", "a~2eb"));
    let long = "x".repeat(100);
    assert_ne!(session("chat", &long), session("chat", &format!("{long}y")));
    assert!(session("chat", &long).len() < 80);
}

#[test]
fn a_session_is_never_a_stream_of_the_program() {
    assert_eq!(session("bus", "00"), "bus.00~");
    let channels = Channels {
        sessions: [("system".into(), SessionRule::PerChannel), ("chat".into(), SessionRule::Single)].into(),
        ..Channels::default()
    };
    let routes = Routes { channels, opener: None };
    assert_eq!(routes.session(&"system".into(), "ada").to_string(), "system~");
    assert_eq!(routes.session(&"chat".into(), "ada").to_string(), "main");
}
