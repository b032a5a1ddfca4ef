//! Writes RFC 8785 JSON in one go: a formatter for `serde_json` that puts the fields of an object in order when the object ends.
//!
//! [`crate::digest::canonical`] is the way in. Every frame is written with this, so it counts what it costs. The tests beside this file
//! compare it with an implementation of others.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter, Serializer};

/// The largest integer that every JSON reader represents exactly (I-JSON, RFC 7493). Larger ones are written as the nearest double.
pub const MAX_EXACT_INTEGER: u64 = (1 << 53) - 1;
/// Room for most bodies.
const INITIAL_CAPACITY: usize = 256;

/// A value's canonical JSON.
pub(crate) fn write<T: Serialize>(value: &T) -> serde_json::Result<Vec<u8>> {
    let mut out = Vec::with_capacity(INITIAL_CAPACITY);
    let ordered = Ordered { out: &mut out, fields: Vec::new(), objects: Vec::new() };
    value.serialize(&mut Serializer::with_formatter(io::sink(), ordered))?;
    Ok(out)
}

/// What was written so far, and what has to be put in order yet. It needs to look back, so `serde_json`'s own writer stays unused.
struct Ordered<'a> {
    out: &'a mut Vec<u8>,
    /// The fields of all objects that are open, those of the innermost last.
    fields: Vec<Field>,
    /// Where among them the fields of each open object begin.
    objects: Vec<usize>,
}

/// Where a field stands.
#[derive(Clone, Copy)]
struct Field {
    start: usize,
    /// Where its name ends, quotes included.
    name_end: usize,
    end: usize,
}

impl Field {
    /// Its name as it is written, without the quotes.
    fn name(self, out: &[u8]) -> &[u8] {
        &out[self.start + 1..self.name_end - 1]
    }

    /// Its name in the units that RFC 8785 sorts by.
    fn units(self, out: &[u8]) -> Vec<u16> {
        let name: String = serde_json::from_slice(&out[self.start..self.name_end]).unwrap_or_default();
        name.encode_utf16().collect()
    }
}

impl Ordered<'_> {
    fn text(&mut self, text: &[u8]) -> io::Result<()> {
        self.out.extend_from_slice(text);
        Ok(())
    }

    fn natural(&mut self, value: u64) -> io::Result<()> {
        if value <= MAX_EXACT_INTEGER {
            CompactFormatter.write_u64(self.out, value)
        } else {
            self.double(value as f64)
        }
    }

    fn integer(&mut self, value: i64) -> io::Result<()> {
        if value.unsigned_abs() <= MAX_EXACT_INTEGER {
            CompactFormatter.write_i64(self.out, value)
        } else {
            self.double(value as f64)
        }
    }

    fn double(&mut self, value: f64) -> io::Result<()> {
        if !value.is_finite() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "JSON has finite numbers only"));
        }
        self.text(ryu_js::Buffer::new().format_finite(value).as_bytes())
    }

    /// Puts the fields from this one on in the order of their names.
    fn put_in_order(&mut self, first: usize) -> io::Result<()> {
        let (out, fields) = (&mut *self.out, &mut self.fields[first..]);
        // Plain names sort by their bytes as they do by their units.
        let plain = |name: &[u8]| name.iter().all(|byte| byte.is_ascii() && *byte != b'\\');
        if fields.iter().all(|field| plain(field.name(out))) {
            if fields.is_sorted_by(|a, b| a.name(out) < b.name(out)) {
                return Ok(());
            }
            fields.sort_by(|a, b| a.name(out).cmp(b.name(out)));
        } else {
            fields.sort_by_cached_key(|field| field.units(out));
        }
        if fields.windows(2).any(|pair| pair[0].name(out) == pair[1].name(out)) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "an object has a field twice"));
        }
        let start = fields.iter().map(|field| field.start).min().unwrap_or(out.len());
        let mut ordered = Vec::with_capacity(out.len() - start);
        for field in fields {
            if !ordered.is_empty() {
                ordered.push(b',');
            }
            ordered.extend_from_slice(&out[field.start..field.end]);
        }
        out.truncate(start);
        out.extend_from_slice(&ordered);
        Ok(())
    }
}

/// Numbers, and how each type of them is written.
macro_rules! numbers {
    ($($name:ident $type:ty: $how:ident($value:ident => $written:expr);)+) => {
        $(fn $name<W: ?Sized + Write>(&mut self, _: &mut W, $value: $type) -> io::Result<()> {
            self.$how($written)
        })+
    };
}

/// Texts that are always the same.
macro_rules! texts {
    ($($name:ident $text:literal),+) => {
        $(fn $name<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
            self.text($text)
        })+
    };
}

impl Formatter for Ordered<'_> {
    numbers! {
        write_i8 i8: integer(value => value.into());
        write_i16 i16: integer(value => value.into());
        write_i32 i32: integer(value => value.into());
        write_i64 i64: integer(value => value);
        write_i128 i128: double(value => value as f64);
        write_u8 u8: natural(value => value.into());
        write_u16 u16: natural(value => value.into());
        write_u32 u32: natural(value => value.into());
        write_u64 u64: natural(value => value);
        write_u128 u128: double(value => value as f64);
        write_f32 f32: double(value => value.into());
        write_f64 f64: double(value => value);
    }

    texts! {
        write_null b"null", begin_string b"\"", end_string b"\"", begin_array b"[", end_array b"]",
        begin_object_value b":"
    }

    fn write_bool<W: ?Sized + Write>(&mut self, _: &mut W, value: bool) -> io::Result<()> {
        self.text(if value { b"true" } else { b"false" })
    }

    fn write_number_str<W: ?Sized + Write>(&mut self, _: &mut W, value: &str) -> io::Result<()> {
        let number = value.parse().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error));
        self.double(number?)
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, _: &mut W, fragment: &str) -> io::Result<()> {
        self.text(fragment.as_bytes())
    }

    /// A string is escaped alike in serde_json and in RFC 8785.
    fn write_char_escape<W: ?Sized + Write>(&mut self, _: &mut W, escape: CharEscape) -> io::Result<()> {
        CompactFormatter.write_char_escape(self.out, escape)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, _: &mut W, first: bool) -> io::Result<()> {
        self.text(if first { b"" } else { b"," })
    }

    fn begin_object<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.objects.push(self.fields.len());
        self.text(b"{")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, _: &mut W, first: bool) -> io::Result<()> {
        self.text(if first { b"" } else { b"," })?;
        let start = self.out.len();
        self.fields.push(Field { start, name_end: start, end: start });
        Ok(())
    }

    fn end_object_key<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        if let Some(field) = self.fields.last_mut() {
            field.name_end = self.out.len();
        }
        Ok(())
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        if let Some(field) = self.fields.last_mut() {
            field.end = self.out.len();
        }
        Ok(())
    }

    fn end_object<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        let first = self.objects.pop().unwrap_or_default();
        self.put_in_order(first)?;
        self.fields.truncate(first);
        self.text(b"}")
    }

    /// What is written already cannot be known to be canonical.
    fn write_raw_fragment<W: ?Sized + Write>(&mut self, _: &mut W, _: &str) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "raw JSON has no canonical form"))
    }
}

#[cfg(test)]
#[path = "canonical_tests.rs"]
mod tests;
