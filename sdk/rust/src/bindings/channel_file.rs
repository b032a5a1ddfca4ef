pub mod exports { pub mod holdfast { pub mod extension { pub mod channel_file {
pub struct Delivery { pub id: String, pub repeat: bool }
pub struct File { pub name: String, pub media_type: String, pub content: Vec<u8> }
} } } }
