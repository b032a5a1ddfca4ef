use crate::counted::total;

#[test]
fn a_profile_has_one_total() {
    let profile = "version: 1\npart: 2\nevents: Ir\nsummary: 7\n\nfn=(1) step\n0 7\n\ntotals: 2079742\n";
    assert_eq!(total(profile), Some(2_079_742));
}

#[test]
fn a_profile_that_counts_something_else_is_refused() {
    assert_eq!(total("events: Ir Dr Dw\ntotals: 1 2 3\n"), None);
    assert_eq!(total("events: Ir\n"), None);
}
