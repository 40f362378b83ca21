//! Any bytes behind a region's first are a region, or one line of what is wrong; a region that is opened is whole, can be stored into,
//! copied and exported.
#![no_main]

use libfuzzer_sys::fuzz_target;
use varve_durable::domain::CacheLines;
use varve_durable::layout::{FIRST_SIZE, MAGIC, VERSION};
use varve_durable::{Image, Inspection, Space, rewritten};
use varve_heap::Ref;

fuzz_target!(|bytes: &[u8]| {
    let mut image = MAGIC.to_vec();
    image.extend(VERSION.to_le_bytes());
    // Objects are aligned to 8 bytes.
    image.extend(2u32.to_le_bytes());
    image.resize(4096, 0);
    image.extend(bytes);
    image.resize(image.len().max(FIRST_SIZE as usize), 0);
    let memory = || Image::memory(&image, image.len() as u64 + (1 << 20));
    if let Ok(region) = Inspection::of(memory(), "here.region") {
        region.export(None, &mut std::io::sink()).unwrap();
        if let Ok(whole) = region.whole() {
            rewritten(&whole, &whole.tables).ok();
        }
    }
    let domain = || Box::new(CacheLines::new("memory"));
    // As a large region, of which nothing is followed before it is used.
    if let Ok(mut region) = Space::open_checked("here.region", memory(), domain(), None, 0) {
        region.begin();
        region.set_root("fuzzed", Ref::NULL).ok();
        region.end().ok();
        region.collect(&[]);
        region.close().ok();
    }
    match Space::open("here.region", memory(), domain(), None) {
        Ok(mut region) => {
            assert!(region.check().damages.is_empty());
            region.begin();
            region.set_root("fuzzed", Ref::NULL).ok();
            region.end().unwrap();
        }
        Err(e) => assert!(e.to_string().starts_with("here.region: ")),
    }
});
