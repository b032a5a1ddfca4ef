#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    holdfast_tests::fuzz::client_protocol(bytes);
});
