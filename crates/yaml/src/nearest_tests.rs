use super::nearest::nearest;

#[test]
fn nearest_suggests_names_within_the_edit_distance() {
    let names = ["depends_on", "description", "id", "enabled"];
    for (word, expected) in [
        ("depend_on", Some("depends_on")),
        ("dependsOn", Some("depends_on")),
        ("DEPENDS-ON", Some("depends_on")),
        ("desciption", Some("description")),
        ("di", Some("id")),
        ("depnedson", Some("depends_on")),
        ("enable", Some("enabled")),
        ("descr", Some("description")),
        ("dep", None),
        ("color", None),
        ("", None),
    ] {
        assert_eq!(nearest(word, names), expected, "{word}");
    }
}
