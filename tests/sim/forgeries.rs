//! Messages reassembled from a recorded one: the signature covers the same characters, read as other fields.

use std::time::Duration;

use bytes::Bytes;
use dialarr::messaging::twilio::fake::FakeTwilio;
use dialarr::messaging::twilio::signature::SIGNATURE_HEADER;
use http::Request;

use crate::plan::{ANN, BOB};
use crate::world::{World, pass};

type Pairs = Vec<(String, String)>;

/// Records a message of Bob's, and delivers it as a message of Ann's with the text `body`, with an unused id.
pub(crate) fn bring(world: &World, body: &str) {
    let sid = format!("SMf{:031x}", world.now().as_millisecond());
    world.journal.note(format!("a text of {BOB} is brought as {body:?} of {ANN}: {sid}"));
    // The genuine message is never delivered: the carrier's list has it.
    let number = world.sent_in.lock().unwrap().len();
    let genuine = format!("SM{number:032x}");
    world.sent_in.lock().unwrap().insert(genuine.clone());
    let request = forged(&world.peers.twilio, body, &genuine, &sid);
    let world = world.clone();
    world.clone().later(async move {
        pass(Duration::from_millis(120)).await;
        // No caller waits for the response.
        let _ = world.bring(request).await;
    });
}

fn forged(twilio: &FakeTwilio, body: &str, genuine: &str, sid: &str) -> Request<Bytes> {
    let added = [("From", ANN), ("MessageSid", sid), ("NumMedia", "0")];
    let words: String = added.iter().flat_map(|(name, value)| [*name, *value]).collect();
    let genuine = twilio
        .inbound_form(BOB, &format!("{body}{words}ProfileName"))
        .with_sid(genuine)
        .into_signed_request()
        .unwrap();
    let mut all: Pairs = serde_urlencoded::from_bytes(genuine.body()).unwrap();
    all.sort();
    let hidden = all.iter().filter(|(name, _)| ("From".."To").contains(&name.as_str()));
    let hidden: String = hidden.flat_map(|(name, value)| [name.as_str(), value]).collect();
    let mut fields: Pairs = all.iter().filter(|(name, _)| name.as_str() < "Body").cloned().collect();
    fields.push(("Body".to_owned(), body.to_owned()));
    fields.extend(added.map(|(name, value)| (name.to_owned(), value.to_owned())));
    fields.push(("ProfileName".to_owned(), hidden));
    fields.extend(all.into_iter().filter(|(name, _)| name.as_str() >= "To"));
    Request::post(genuine.uri().clone())
        .header(SIGNATURE_HEADER, &genuine.headers()[SIGNATURE_HEADER])
        .body(serde_urlencoded::to_string(fields).unwrap().into())
        .unwrap()
}
