use std::sync::Arc; use std::time::Instant;
use holdfast_contract::content::{Content, DigestOf};
use holdfast_contract::digest::{Digest,canonical};
use holdfast_contract::frame::{Envelope, Source};
use holdfast_contract::body::Body;
use holdfast_contract::hook::{Decision, HookPoint};
use holdfast_contract::ids::*;
use holdfast_contract::registry::ExtensionRef;
use holdfast_contract::session_frames::HookDecided;
fn main(){
 let source=Source::Extension(Arc::new(ExtensionRef{id:"guard".into(),version:"1.2.3".into(),digest:Digest::of(b"g"),generation:Generation(7)}));
 let body=||->Body{HookDecided{hook:"guard/tool_before/0".into(),point:HookPoint::ToolGate,call:Some(CallId{turn:3,index:1}),subject:Some(DigestOf::Value(Content::text("what was judged"))),decision:Decision::Allow,rule:None}.into()};
 const N:u32=100000;
 for _ in 0..2 {
 let t=Instant::now(); for _ in 0..N {std::hint::black_box(body());} println!("make body {:?}",t.elapsed()/N);
 let t=Instant::now(); let b=body(); for _ in 0..N {std::hint::black_box(b.canonical().unwrap());} println!("body canonical {:?} len {}",t.elapsed()/N, b.canonical().unwrap().len());
 let t=Instant::now(); for _ in 0..N {std::hint::black_box(canonical(&source).unwrap());} println!("source canonical {:?}",t.elapsed()/N);
 let t=Instant::now(); for _ in 0..N {std::hint::black_box(serde_json::to_vec(&source).unwrap());} println!("source plain {:?}",t.elapsed()/N);
 let e=Envelope{stream:"session-12".into(),seq:Seq(123),at:Millis(1763000000000),kind:b.kind(),source:source.clone(),cause:Some(Seq(122)),body_digest:Digest::of(b"x"),prev:Digest::of(b"y")};
 let t=Instant::now(); for _ in 0..N {std::hint::black_box(canonical(&e).unwrap());} println!("envelope canonical {:?}",t.elapsed()/N);
 let c=canonical(&e).unwrap(); let t=Instant::now(); for _ in 0..N {std::hint::black_box(Digest::of(&c));} println!("blake3 {:?} len {}",t.elapsed()/N,c.len());
 let conn=rusqlite::Connection::open("/dev/shm/cost.db").unwrap();
 for (name,ddl) in [("rowid STRICT pk","(stream INTEGER NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, kind TEXT NOT NULL, source TEXT NOT NULL, cause INTEGER, body BLOB, body_digest BLOB NOT NULL, prev BLOB NOT NULL, hash BLOB NOT NULL, erased_at INTEGER, erased_reason TEXT, PRIMARY KEY (stream, seq)) STRICT"),
  ("without rowid","(stream INTEGER NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, kind TEXT NOT NULL, source TEXT NOT NULL, cause INTEGER, body BLOB, body_digest BLOB NOT NULL, prev BLOB NOT NULL, hash BLOB NOT NULL, erased_at INTEGER, erased_reason TEXT, PRIMARY KEY (stream, seq)) STRICT, WITHOUT ROWID")] {
 for partial in 0..5 {
 conn.execute_batch(&format!("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=off; PRAGMA wal_autocheckpoint=0; DROP TABLE IF EXISTS frames; CREATE TABLE frames {ddl};")).unwrap();
 if partial==1 { conn.execute_batch("CREATE INDEX tombstones ON frames (stream, seq) WHERE erased_at IS NOT NULL;").unwrap(); }
 if partial==2 { conn.execute_batch("CREATE INDEX evidence ON frames (stream, seq)
        WHERE kind IN ('head.anchored', 'log.checkpointed', 'log.erased');").unwrap(); }
 if partial==3 { conn.execute_batch("CREATE INDEX evidence ON frames (stream, seq)
        WHERE kind >= 'head.anchored' AND kind <= 'head.b';").unwrap(); }
 if partial==4 { conn.execute_batch("CREATE INDEX evidence ON frames (stream, seq)
        WHERE erased_at IS NOT NULL OR erased_reason IS NOT NULL;").unwrap(); }
 let bb=b.canonical().unwrap(); let src=String::from_utf8(canonical(&source).unwrap()).unwrap();
 for per in [64i64,2048] {
 let t=Instant::now(); let mut n=0i64; let mut commit=std::time::Duration::ZERO;
 conn.execute_batch("DELETE FROM frames").unwrap();
 let mut seq=0; while n<40960 { conn.execute_batch("BEGIN IMMEDIATE").unwrap();
   for i in 0..per { let s= if per==64 {i} else {i/32}; let q = if per==64 {seq} else {seq*32+i%32};
    conn.prepare_cached("INSERT INTO frames (stream, seq, at, kind, source, cause, body, body_digest, prev, hash) VALUES (?,?,?,?,?,?,?,?,?,?)").unwrap()
    .execute(rusqlite::params![s,q,1763000000000i64,"hook.decided",src,122,bb,[1u8;32],[2u8;32],[3u8;32]]).unwrap(); n+=1;}
   seq+=1; let c=Instant::now(); conn.execute_batch("COMMIT").unwrap(); commit+=c.elapsed(); }
 println!("{name} partial={partial} per={per}: {:?}/frame, of it commit {:?}/frame",t.elapsed()/n as u32,commit/n as u32);
 conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)",[],|_|Ok(())).unwrap();
 }}}
 }
 let _=std::fs::remove_file("/dev/shm/cost.db");
}
