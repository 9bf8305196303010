//! Bytes of a chunk: little-endian numbers or length-prefixed texts, then zstd, then CRC-32C.

use std::io::Read;
use std::path::Path;

use super::error::StoreError;

/// Level of the compression; part of the format, because a store must have the same bytes every time.
pub(super) const LEVEL: i32 = 3;

/// What stands in rows of a chunk that no draw has filled yet: a quiet NaN with a payload that no arithmetic makes,
/// which as an integer is a count that no sweep reaches. Zarr never shows these rows, and a row that should
/// have been written is told from one that was.
pub(super) const PADDING: [u8; 8] = 0x7ff8_6770_7373_6d01_u64.to_le_bytes();

/// Chunk file from the bytes of its elements.
pub(super) fn encode(raw: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut bytes = zstd::bulk::compress(raw, LEVEL)?;
    let crc = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    Ok(bytes)
}

/// Bytes of the elements from a chunk file; `limit` is as much as there can be.
pub(super) fn decode(path: &Path, bytes: &[u8], limit: u64) -> Result<Vec<u8>, StoreError> {
    let damaged = |message: &str| StoreError::damaged(path, message);
    let Some((body, crc)) = bytes.split_last_chunk::<4>() else {
        return Err(damaged("the chunk is cut off"));
    };
    if crc32c::crc32c(body) != u32::from_le_bytes(*crc) {
        return Err(damaged("the checksum does not fit"));
    }
    // Read bit by bit: sizes that a file claims are not to be believed before they are seen.
    let mut raw = Vec::new();
    let decoder = zstd::stream::read::Decoder::new(body).map_err(StoreError::io(path))?;
    let read = decoder.take(limit.saturating_add(1)).read_to_end(&mut raw);
    if read.is_err() || raw.len() as u64 > limit {
        return Err(damaged("the chunk cannot be decompressed"));
    }
    Ok(raw)
}

/// Elements of an array of numbers.
pub(super) fn numbers(values: impl IntoIterator<Item = f64>) -> Vec<u8> {
    values.into_iter().flat_map(f64::to_le_bytes).collect()
}

/// Elements of an array of integers.
pub(super) fn integers(values: impl IntoIterator<Item = i64>) -> Vec<u8> {
    values.into_iter().flat_map(i64::to_le_bytes).collect()
}

/// Elements of an array of texts (`vlen-utf8`): their number, then length and bytes of each.
pub(super) fn texts<'a>(values: impl IntoIterator<Item = &'a str>) -> Vec<u8> {
    let mut raw = vec![0; 4];
    let mut n = 0u32;
    for value in values {
        n += 1;
        raw.extend_from_slice(&(value.len() as u32).to_le_bytes());
        raw.extend_from_slice(value.as_bytes());
    }
    raw[..4].copy_from_slice(&n.to_le_bytes());
    raw
}

/// Numbers from their bytes.
pub(super) fn to_numbers(raw: &[u8]) -> Vec<f64> {
    raw.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
}

/// Integers from their bytes.
pub(super) fn to_integers(raw: &[u8]) -> Vec<i64> {
    raw.as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect()
}

/// Texts from their bytes, if they are texts.
pub(super) fn to_texts(raw: &[u8]) -> Option<Vec<String>> {
    let (n, mut rest) = raw.split_first_chunk::<4>()?;
    let mut values = Vec::new();
    for _ in 0..u32::from_le_bytes(*n) {
        let (len, tail) = rest.split_first_chunk::<4>()?;
        let (text, tail) = tail.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        values.push(std::str::from_utf8(text).ok()?.to_owned());
        rest = tail;
    }
    rest.is_empty().then_some(values)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn padding_is_no_number_that_arithmetic_makes() {
        assert!(f64::from_le_bytes(PADDING).is_nan());
        assert_ne!(PADDING, f64::NAN.to_le_bytes());
        assert_ne!(PADDING, (f64::INFINITY - f64::INFINITY).to_le_bytes());
        assert!(i64::from_le_bytes(PADDING) > i64::MAX / 2);
    }

    proptest! {
        #[test]
        fn what_goes_in_comes_out(raw in prop::collection::vec(any::<u8>(), 0..500)) {
            let bytes = encode(&raw).unwrap();
            prop_assert_eq!(decode(Path::new("chunk"), &bytes, raw.len() as u64).unwrap(), raw.clone());
            if !raw.is_empty() {
                prop_assert!(decode(Path::new("chunk"), &bytes, raw.len() as u64 - 1).is_err());
            }
        }

        #[test]
        fn texts_come_back(values in prop::collection::vec(".{0,12}", 0..8)) {
            let raw = texts(values.iter().map(String::as_str));
            prop_assert_eq!(to_texts(&raw), Some(values));
        }

        #[test]
        fn any_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(Path::new("chunk"), &bytes, 1000);
            let _ = to_texts(&bytes);
            let mut sealed = bytes.clone();
            sealed.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
            let _ = decode(Path::new("chunk"), &sealed, 1000);
        }
    }
}
