//! An erratum of some processors that makes jumps slow.

use std::arch::x86_64::__cpuid;
use std::sync::OnceLock;

/// Whether this processor keeps no jump in its cache of decoded instructions, nor what is beside it, if the jump crosses a multiple of 32
/// bytes or ends at one. Families and steppings are of Intel's "Mitigations for Jump Conditional Code Erratum" (document 341810).
pub(crate) fn avoids_boundaries() -> bool {
    static AVOIDS: OnceLock<bool> = OnceLock::new();
    *AVOIDS.get_or_init(|| {
        let vendor = __cpuid(0);
        let intel = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes);
        intel.as_flattened() == b"GenuineIntel" && has_erratum(__cpuid(1).eax)
    })
}

/// By the processor's signature.
fn has_erratum(signature: u32) -> bool {
    let family = signature >> 8 & 0xf;
    let model = signature >> 12 & 0xf0 | signature >> 4 & 0xf;
    let stepping = signature & 0xf;
    family == 6
        && match model {
            0x4e | 0x5e => stepping == 3,
            0x55 => matches!(stepping, 4 | 7),
            0x8e => (9..=0xc).contains(&stepping),
            0x9e => matches!(stepping, 9..=0xb | 0xd),
            // Comet Lake S and H: OpenJDK has them (`VM_Version::compute_has_intel_jcc_erratum`), and Intel's document does not.
            0xa5 => true,
            0xa6 => stepping == 0,
            0xae => stepping == 0xa,
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::has_erratum;

    #[test]
    fn processors_with_the_erratum_are_known_by_their_signatures() {
        // Skylake and Cascade Lake servers, and Cooper Lake after them; Ice Lake; a Core of the tenth generation; an EPYC.
        assert!(has_erratum(0x50654) && has_erratum(0x50657));
        assert!(!has_erratum(0x5065b));
        assert!(!has_erratum(0x606a6));
        assert!(has_erratum(0xa0660) && has_erratum(0xa0653));
        assert!(!has_erratum(0x830f10));
    }
}
