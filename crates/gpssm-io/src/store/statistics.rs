//! What happened in each sweep, as arrays.

use gpssm::mcmc::SweepInfo;

use super::tree::DataType;

/// Name, type and place of a field.
pub(super) struct Field {
    pub name: &'static str,
    pub data_type: DataType,
    /// Little-endian bytes of its value.
    pub get: fn(&SweepInfo) -> [u8; 8],
    /// Takes the value over.
    pub set: fn(&mut SweepInfo, [u8; 8]),
}

macro_rules! field {
    ($field:ident, count) => {
        Field {
            name: stringify!($field),
            data_type: DataType::Int64,
            get: |info| i64::try_from(info.$field).unwrap_or(i64::MAX / 2).to_le_bytes(),
            set: |info, bytes| info.$field = i64::from_le_bytes(bytes).unsigned_abs(),
        }
    };
    ($field:ident, number) => {
        Field {
            name: stringify!($field),
            data_type: DataType::Float64,
            get: |info| info.$field.to_le_bytes(),
            set: |info, bytes| info.$field = f64::from_le_bytes(bytes),
        }
    };
}

/// All fields of [`SweepInfo`].
pub(super) const FIELDS: [Field; 11] = [
    field!(log_joint, number),
    field!(log_likelihood_total, number),
    field!(density_evaluations, count),
    field!(density_failures, count),
    field!(slice_failures, count),
    field!(slice_capped, count),
    field!(filter_failures, count),
    field!(clamped, count),
    field!(refreshed, count),
    field!(breakdowns, count),
    field!(relative_jitter, number),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_comes_back() {
        // A field that is added to the sampler must be added here.
        let info = SweepInfo {
            density_evaluations: 1,
            density_failures: 2,
            slice_failures: 3,
            slice_capped: 4,
            filter_failures: 5,
            clamped: 6,
            refreshed: 7,
            breakdowns: 8,
            relative_jitter: 1e-10,
            log_joint: -7.5,
            log_likelihood_total: f64::NEG_INFINITY,
        };
        let mut back = SweepInfo::default();
        FIELDS.iter().for_each(|field| (field.set)(&mut back, (field.get)(&info)));
        assert_eq!(back, info);
    }
}
