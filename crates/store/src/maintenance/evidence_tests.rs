//! Evidence is found through its index, not by reading the whole system stream.

use super::*;
use crate::store::StoreOptions;

#[test]
fn evidence_is_found_through_its_index() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("holdfast.db"), StoreOptions::default()).unwrap();
    let plan = store.inner.readers.with(|connection| {
        let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {}", query())).unwrap();
        let plan = explain.query_map(params![1, "log.erased", 0], |row| row.get::<_, String>(3)).unwrap();
        Ok(plan.map(Result::unwrap).collect::<Vec<_>>().join("; "))
    });
    let plan = plan.unwrap();
    assert!(plan.contains("USING INDEX evidence") && !plan.contains("TEMP B-TREE"), "{plan}");
}
