//! Zip archives without compression: the container of an FMU.

/// CRC-32 of the archive format (polynomial 0xEDB88320).
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

/// The day that every entry bears: 1 January 1980, so that the same model gives the same bytes.
const DATE: u16 = 0x21;

/// An archive of files by name.
pub(crate) fn archive(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, bytes) in files {
        let (crc, size, offset) = (crc32(bytes), bytes.len() as u32, out.len() as u32);
        // Version 2.0, names in UTF-8, stored, time, date, checksum, sizes, lengths of name and extra field.
        let mut common = Vec::new();
        common.extend(20u16.to_le_bytes());
        common.extend(0x800u16.to_le_bytes());
        common.extend([0u8; 4]);
        common.extend(DATE.to_le_bytes());
        common.extend(crc.to_le_bytes());
        common.extend(size.to_le_bytes());
        common.extend(size.to_le_bytes());
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0u8; 2]);
        out.extend(b"PK\x03\x04");
        out.extend(&common);
        out.extend(name.as_bytes());
        out.extend(bytes);
        directory.extend(b"PK\x01\x02");
        // Made by version 2.0.
        directory.extend(20u16.to_le_bytes());
        directory.extend(&common);
        // Comment, disk, attributes.
        directory.extend([0u8; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let (n, start, length) = (files.len() as u16, out.len() as u32, directory.len() as u32);
    out.extend(directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend(n.to_le_bytes());
    out.extend(n.to_le_bytes());
    out.extend(length.to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0u8; 2]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check value of this checksum.
    #[test]
    fn checksums_are_those_of_the_format() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    }
}
