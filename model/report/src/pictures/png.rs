//! Pictures of up to 256 colours as PNG (ISO/IEC 15948), and the text that such bytes are in an SVG.

use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::io::Write;

/// A picture, row by row: in each pixel the number of its colour.
pub fn write(width: u32, pixels: &[u8], palette: &[[u8; 3]]) -> Vec<u8> {
    let height = pixels.len() as u32 / width.max(1);
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut header = Vec::new();
    header.extend(width.to_be_bytes());
    header.extend(height.to_be_bytes());
    // Eight bits, colours from a palette; the only compression and filters that there are; not interlaced.
    header.extend([8, 3, 0, 0, 0]);
    chunk(&mut png, b"IHDR", &header);
    chunk(&mut png, b"PLTE", palette.as_flattened());
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
    for row in pixels.chunks(width.max(1) as usize) {
        // No filter. Writing to memory does not fail.
        let _ = packed.write_all(&[0]);
        let _ = packed.write_all(row);
    }
    chunk(&mut png, b"IDAT", &packed.finish().unwrap_or_default());
    chunk(&mut png, b"IEND", &[]);
    png
}

fn chunk(png: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    png.extend((data.len() as u32).to_be_bytes());
    let from = png.len();
    png.extend(kind);
    png.extend(data);
    let sum = crc32fast::hash(&png[from..]);
    png.extend(sum.to_be_bytes());
}

/// Bytes as text (RFC 4648, section 4).
pub fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let all = three
            .iter()
            .fold(0u32, |all, &byte| all << 8 | u32::from(byte))
            << (8 * (3 - three.len()));
        for digit in 0..4 {
            text.push(match digit <= three.len() {
                true => DIGITS[(all >> (18 - 6 * digit) & 63) as usize] as char,
                false => '=',
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_the_text_of_the_standard() {
        // RFC 4648, section 10
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
