//! Responses of Sonarr and Radarr with any status: every list is parsed or refused, in order and within its limits, and
//! each refusal message is one line.
#![no_main]

use bytes::Bytes;
use dialarr::arr::radarr::Radarr;
use dialarr::arr::sonarr::Sonarr;
use dialarr_fuzz::arr_reads::{Clients, READS, check_refusal};
use dialarr_fuzz::peer::{answering, run};
use libfuzzer_sys::fuzz_target;
use url::Url;

const STATUSES: [u16; 11] = [200, 200, 200, 200, 302, 400, 401, 404, 409, 500, 503];
const MAX_REQUESTS: usize = 2;

fuzz_target!(|data: &[u8]| {
    let [which, status, body @ ..] = data else { return };
    let status = STATUSES[usize::from(*status) % STATUSES.len()];
    let (http, asked) = answering(status, vec![Bytes::copy_from_slice(body)]);
    let base = Url::parse("http://library.invalid/base").expect("a URL");
    let clients = Clients {
        radarr: Radarr::new(http.clone(), base.clone(), "key".into()),
        sonarr: Sonarr::new(http, base, "key".into()),
    };
    let (name, read) = READS[usize::from(*which) % READS.len()];
    let outcome = run(read(&clients));
    assert!((1..=MAX_REQUESTS).contains(&asked.take().len()));
    match outcome {
        Ok(()) => {
            assert!(status == 200 || status == 404, "{name}: a response of status {status} was accepted")
        }
        Err(refusal) => check_refusal(&refusal),
    }
});
