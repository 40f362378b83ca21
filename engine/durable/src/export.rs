//! A region as JSON lines: roots, then objects, each once.

use crate::inspect::Inspection;
use crate::layout::*;
use crate::types::{Kind, Storage};
use serde_json::{Map, Value, json};
use std::collections::{HashSet, VecDeque};
use std::io::{self, Write};
use varve_heap::layout::*;
use varve_heap::{Header, Ref};

impl Inspection {
    /// Writes roots and the objects that they reach; of one root if it is named.
    ///
    /// ```text
    /// {"root":"accounts","object":1310720}
    /// {"id":1310720,"type":"java.util.HashMap","fields":{"elementCount":3,"elementData":{"ref":1310784}}}
    /// {"id":1310784,"type":"Array","elements":[null,{"ref":1310848}]}
    /// {"id":1310900,"type":"Array<&C>","text":"Ada"}
    /// ```
    ///
    /// # Errors
    /// Of the writer.
    pub fn export(&self, root: Option<&str>, out: &mut dyn Write) -> io::Result<()> {
        let mut pending = VecDeque::new();
        for r in self
            .roots
            .iter()
            .filter(|r| root.is_none_or(|name| name == r.name))
        {
            writeln!(
                out,
                "{}",
                json!({"root": r.name, "object": self.value(r.object)})
            )?;
            pending.push_back(r.object);
        }
        let mut seen = HashSet::new();
        while let Some(r) = pending.pop_front() {
            let Place::File(at) = Addresses(self.align).place(r) else {
                continue;
            };
            if !r.is_object() || !seen.insert(at) {
                continue;
            }
            writeln!(out, "{}", self.object(at, &mut pending))?;
        }
        Ok(())
    }

    fn object(&self, at: u64, pending: &mut VecDeque<Ref>) -> Value {
        let ty = Header(self.image.u64(at)).type_index();
        let mut line = Map::new();
        line.insert("id".into(), at.into());
        line.insert("type".into(), self.tables.name(ty).into());
        match &self.tables.types[ty as usize].kind {
            Kind::Struct { fields, .. } => {
                let mut all = Map::new();
                for (i, f) in fields.iter().enumerate() {
                    let name = match f.name.is_empty() {
                        true => format!("field {i}"),
                        false => f.name.clone(),
                    };
                    all.insert(
                        name,
                        self.field(at + u64::from(f.offset), &f.storage, pending),
                    );
                }
                line.insert("fields".into(), all.into());
            }
            Kind::Array(storage) => {
                let length = u64::from(self.image.u32(at + ARRAY_LENGTH as u64));
                let bytes = u64::from(storage.bytes());
                let first = at + u64::from(array_base(storage.bytes()));
                let text = (*storage == Storage::I16).then(|| {
                    let unit =
                        |i| self.image.u32((first + 2 * i) & !3) >> (8 * ((first + 2 * i) % 4));
                    let units: Vec<u16> = (0..length).map(|i| unit(i) as u16).collect();
                    String::from_utf16(&units).ok()
                });
                match text.flatten() {
                    Some(text) => line.insert("text".into(), text.into()),
                    None => {
                        let all =
                            (0..length).map(|i| self.field(first + bytes * i, storage, pending));
                        line.insert("elements".into(), all.collect())
                    }
                };
            }
            Kind::Opaque => {}
        }
        line.into()
    }

    fn field(&self, at: u64, storage: &Storage, pending: &mut VecDeque<Ref>) -> Value {
        let mut bytes = [0; 8];
        self.image.read(at, &mut bytes[..storage.bytes() as usize]);
        let bits = u64::from_le_bytes(bytes);
        match storage {
            Storage::I8 => (bits as i8).into(),
            Storage::I16 => (bits as i16).into(),
            Storage::U16 => (bits as u16).into(),
            Storage::I32 => (bits as i32).into(),
            Storage::I64 => (bits as i64).into(),
            Storage::F32 => f64::from(f32::from_bits(bits as u32)).into(),
            Storage::F64 => f64::from_bits(bits).into(),
            Storage::Func => Value::Null,
            Storage::Ref(_) => {
                let r = Ref(bits as u32);
                if matches!(Addresses(self.align).place(r), Place::File(_)) && r.is_object() {
                    pending.push_back(r);
                }
                self.value(r)
            }
        }
    }

    fn value(&self, r: Ref) -> Value {
        match Addresses(self.align).place(r) {
            _ if r.is_null() => Value::Null,
            _ if r.is_i31() => json!({"integer": r.as_i31()}),
            Place::File(at) => json!({"ref": at}),
            Place::Constant(offset) => {
                let named = self
                    .tables
                    .constants
                    .iter()
                    .find(|c| u64::from(c.offset) == offset);
                match named {
                    Some(c) => json!({"constant": c.name}),
                    None => json!({"constant": offset}),
                }
            }
            Place::Outside => json!({"outside": r.0}),
        }
    }
}
