//! The layout of objects, as data: which bytes are references, and how many bytes there are.

use crate::align::ObjectAlign;
use crate::layout::*;

/// The kind of an object: the knowledge that the collector needs to copy and to scan it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShapeKind {
    /// Fixed fields.
    Struct {
        /// Bytes including the header. Rounded up to a multiple of the heap's [alignment](ObjectAlign).
        size: u32,
        /// Byte offsets of the fields that are references, ascending.
        refs: Vec<u32>,
    },
    /// A length at offset 8, then that many elements from [`array_base`].
    Array {
        /// Bytes of one element.
        element_size: u32,
        /// Whether elements are references; they take 4 bytes then.
        refs: bool,
    },
    /// A handle into a table of the host at offset 8. The host is notified when the object dies.
    Host,
}

/// A named kind of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// For logs and profiles.
    pub name: String,
    /// The contents of objects of this shape.
    pub kind: ShapeKind,
}

impl Shape {
    /// A struct of `size` bytes, header included, with references at the byte offsets `refs`.
    pub fn structure(name: impl Into<String>, size: u32, refs: impl Into<Vec<u32>>) -> Shape {
        Shape {
            name: name.into(),
            kind: ShapeKind::Struct {
                size,
                refs: refs.into(),
            },
        }
    }

    /// An array of elements that are not references.
    pub fn array(name: impl Into<String>, element_size: u32) -> Shape {
        Shape {
            name: name.into(),
            kind: ShapeKind::Array {
                element_size,
                refs: false,
            },
        }
    }

    /// An array of references.
    pub fn ref_array(name: impl Into<String>) -> Shape {
        Shape {
            name: name.into(),
            kind: ShapeKind::Array {
                element_size: 4,
                refs: true,
            },
        }
    }

    /// A reference to something of the host.
    pub fn host(name: impl Into<String>) -> Shape {
        Shape {
            name: name.into(),
            kind: ShapeKind::Host,
        }
    }
}

/// Why a shape was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// All type numbers are in use.
    #[error("shape {0}: a heap has at most {max} shapes", max = 1 << TYPE_BITS)]
    TooMany(String),
    /// A struct cannot hold its header, or a reference is outside of it, misaligned or out of order.
    #[error(
        "shape {name}: the reference at offset {offset} is misaligned, out of order or outside of the {size} bytes"
    )]
    Reference {
        /// The shape's name.
        name: String,
        /// The offending offset.
        offset: u32,
        /// Bytes of the struct.
        size: u32,
    },
    /// A struct smaller than its header or too large for one object.
    #[error("shape {name}: {size} bytes are not the size of a struct (8 bytes of header up to {max})", max = MAX_STRUCT)]
    Size {
        /// The shape's name.
        name: String,
        /// Bytes of the struct.
        size: u32,
    },
    /// An array of references whose elements are not references' size, or elements of no or too many bytes.
    #[error("shape {name}: elements of {element_size} bytes (references take 4; others 1 to {max})", max = MAX_ELEMENT)]
    Element {
        /// The shape's name.
        name: String,
        /// Bytes of an element.
        element_size: u32,
    },
}

/// Bytes that a struct may take at most.
pub const MAX_STRUCT: u32 = 1 << 24;
/// Bytes that an element of an array may take at most.
pub const MAX_ELEMENT: u32 = 1 << 16;

/// The part of a shape that scanning needs, in half a cache line.
#[derive(Clone, Copy)]
pub(crate) struct Info {
    /// Struct or host: bytes of the object, rounded. Array: offset of the elements.
    pub size: u32,
    /// Bytes of an element; 0 for structs.
    pub element_size: u32,
    /// References of a struct: bit i is the field at `STRUCT_BASE + 4 i`. Unused when there are `listed` ones.
    pub bits: u64,
    /// Where in the table's list the offsets of a large struct begin.
    pub list: u32,
    /// How many offsets the list holds.
    pub listed: u32,
    /// Whether there is any reference to scan.
    pub has_refs: bool,
    pub is_host: bool,
}

impl Info {
    /// Whether an object's size depends on its length field.
    #[inline]
    pub fn is_array(&self) -> bool {
        self.element_size != 0
    }
}

/// The shapes of a heap. An object's type is an index into it. Shapes are added, never removed.
#[derive(Default)]
pub struct Shapes {
    shapes: Vec<Shape>,
    infos: Vec<Info>,
    offsets: Vec<u32>,
    align: ObjectAlign,
}

impl Shapes {
    /// No shapes yet.
    pub fn new() -> Shapes {
        Shapes::default()
    }

    /// Adds a shape and gives it its type number.
    pub fn add(&mut self, shape: Shape) -> Result<u32, ShapeError> {
        let index = self.shapes.len() as u32;
        if index >= 1 << TYPE_BITS {
            return Err(ShapeError::TooMany(shape.name));
        }
        let info = self.info_of(&shape)?;
        self.infos.push(info);
        self.shapes.push(shape);
        Ok(index)
    }

    /// The shape of a type.
    pub fn get(&self, type_index: u32) -> Option<&Shape> {
        self.shapes.get(type_index as usize)
    }

    /// How many shapes there are.
    pub fn len(&self) -> usize {
        self.shapes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.shapes.is_empty()
    }

    /// From now on these are the shapes of a heap with such an alignment.
    pub(crate) fn align(&mut self, align: ObjectAlign) {
        self.align = align;
        for info in self.infos.iter_mut().filter(|info| !info.is_array()) {
            info.size = align.object_size(info.size.into()) as u32;
        }
    }

    /// Bytes of an object of a type, by the alignment of the heap that has the shapes; `length` counts only for arrays.
    ///
    /// Panics if the type does not exist.
    #[inline]
    pub fn object_size(&self, type_index: u32, length: u32) -> u64 {
        let info = self.info(type_index);
        if info.is_array() {
            self.align.array_size(info.element_size, length)
        } else {
            u64::from(info.size)
        }
    }

    #[inline]
    pub(crate) fn info(&self, type_index: u32) -> &Info {
        &self.infos[type_index as usize]
    }

    /// The part of all shapes that scanning needs.
    #[inline]
    pub(crate) fn infos(&self) -> &[Info] {
        &self.infos
    }

    /// Byte offsets of the references of a struct that has too many bytes for a bit set.
    #[inline]
    pub(crate) fn listed(&self, info: &Info) -> &[u32] {
        &self.offsets[info.list as usize..][..info.listed as usize]
    }

    fn info_of(&mut self, shape: &Shape) -> Result<Info, ShapeError> {
        let name = || shape.name.clone();
        let none = Info {
            size: 0,
            element_size: 0,
            bits: 0,
            list: 0,
            listed: 0,
            has_refs: false,
            is_host: false,
        };
        match &shape.kind {
            ShapeKind::Host => Ok(Info {
                size: self.align.object_size(HOST_SIZE.into()) as u32,
                is_host: true,
                ..none
            }),
            &ShapeKind::Array { element_size, refs } => {
                if element_size == 0 || element_size > MAX_ELEMENT || refs && element_size != 4 {
                    return Err(ShapeError::Element {
                        name: name(),
                        element_size,
                    });
                }
                Ok(Info {
                    size: array_base(element_size),
                    element_size,
                    has_refs: refs,
                    ..none
                })
            }
            &ShapeKind::Struct { size, ref refs } => {
                if !(HEADER_SIZE..=MAX_STRUCT).contains(&size) {
                    return Err(ShapeError::Size { name: name(), size });
                }
                let mut free_from = STRUCT_BASE;
                for &offset in refs {
                    if offset % 4 != 0 || offset < free_from || offset > size - 4 {
                        return Err(ShapeError::Reference {
                            name: name(),
                            offset,
                            size,
                        });
                    }
                    free_from = offset + 4;
                }
                let mut info = Info {
                    size: self.align.object_size(size.into()) as u32,
                    has_refs: !refs.is_empty(),
                    ..none
                };
                if refs
                    .last()
                    .is_some_and(|&last| (last - STRUCT_BASE) / 4 >= u64::BITS)
                {
                    info.list = self.offsets.len() as u32;
                    info.listed = refs.len() as u32;
                    self.offsets.extend_from_slice(refs);
                } else {
                    info.bits = refs
                        .iter()
                        .fold(0, |bits, offset| bits | 1 << ((offset - STRUCT_BASE) / 4));
                }
                Ok(info)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_and_follow_the_length() {
        let mut shapes = Shapes::new();
        let pair = shapes.add(Shape::structure("pair", 12, [8])).unwrap();
        let bytes = shapes.add(Shape::array("bytes", 1)).unwrap();
        let longs = shapes.add(Shape::array("longs", 8)).unwrap();
        let host = shapes.add(Shape::host("host")).unwrap();
        assert_eq!(shapes.object_size(pair, 0), 16);
        assert_eq!(shapes.object_size(bytes, 5), 24);
        assert_eq!(shapes.object_size(longs, 3), 40);
        assert_eq!(shapes.object_size(host, 0), 16);
    }

    #[test]
    fn far_references_are_listed_and_near_ones_are_bits() {
        let mut shapes = Shapes::new();
        let near = shapes.add(Shape::structure("near", 264, [8, 260])).unwrap();
        let far = shapes.add(Shape::structure("far", 272, [8, 264])).unwrap();
        assert_eq!(shapes.info(near).bits, 1 | 1 << 63);
        assert_eq!(shapes.listed(shapes.info(far)), [8, 264]);
        assert_eq!(shapes.info(far).bits, 0);
    }

    #[test]
    fn impossible_shapes_are_refused_by_name() {
        let mut shapes = Shapes::new();
        for (shape, says) in [
            (Shape::structure("tiny", 4, []), "shape tiny: 4 bytes"),
            (
                Shape::structure("crossed", 24, [16, 12]),
                "shape crossed: the reference at offset 12",
            ),
            (
                Shape::structure("odd", 24, [10]),
                "shape odd: the reference at offset 10",
            ),
            (
                Shape::structure("out", 16, [16]),
                "shape out: the reference at offset 16",
            ),
            (
                Shape::structure("in the header", 16, [4]),
                "shape in the header: the reference at offset 4",
            ),
            (
                Shape::array("nothing", 0),
                "shape nothing: elements of 0 bytes",
            ),
        ] {
            let error = shapes.add(shape).unwrap_err().to_string();
            assert!(error.starts_with(says), "{error}");
        }
        assert!(shapes.is_empty());
    }
}
