//! Any bytes as the root file of a store whose other files are whole: a run, or one line of error.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use gpssm::Phase;
use gpssm_io::fit::LoadedRun;
use gpssm_io::store::StoredRun;
use libfuzzer_sys::fuzz_target;

/// The store that the script made, copied for this process.
static STORE: LazyLock<PathBuf> = LazyLock::new(|| {
    let store = std::env::var_os("GPSSM_FUZZ_STORE").expect("GPSSM_FUZZ_STORE names a store; see tools/fuzz");
    PathBuf::from(store)
});

/// Puts the checksum of the file where it belongs, so that the rest is looked at.
fn seal(bytes: &mut [u8]) {
    let head = br#"{"zarr_format":3,"node_type":"group","attributes":{"checksum":""#;
    if bytes.starts_with(head) && bytes.len() >= head.len() + 8 {
        let place = head.len()..head.len() + 8;
        bytes[place.clone()].copy_from_slice(b"00000000");
        let checksum = format!("{:08x}", crc32c::crc32c(bytes));
        bytes[place].copy_from_slice(checksum.as_bytes());
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    seal(&mut bytes);
    std::fs::write(STORE.join("zarr.json"), &bytes).expect("a file that can be written");
    match StoredRun::open(&STORE) {
        Err(error) => assert!(!error.to_string().contains('\n')),
        Ok(run) => {
            for index in 0..run.chains().len() {
                for phase in [Phase::Tune, Phase::Sample] {
                    if let Ok(draws) = run.draws(index, phase) {
                        assert!(draws.theta.iter().flatten().all(|value| value.is_finite()));
                    }
                }
                let _ = run.state(index);
            }
            if let Err(error) = LoadedRun::open(&STORE) {
                assert!(!error.to_string().contains('\n'));
            }
        }
    }
});
