//! Carriers of a schedule: Twilio, a phone of the household, or both; or a bot at Telegram alone. The users write to the one
//! that wrote to them last.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use dialarr::clock::Clock;
use dialarr::conversation::routing::senders::Senders;
use dialarr::conversation::transcript::{Address, PhoneNumber};
use dialarr::http::{HttpClient, InProcess};
use dialarr::messaging::channel_ports::ChannelPorts;
use dialarr::messaging::smsgate::SmsGate;
use dialarr::messaging::smsgate::fake::{FakePhone, FakePhoneAccount};
use dialarr::simulation::OUR_NUMBER;
use http::{Method, Request};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::house_bot::HouseBot;
use crate::phone_plan::{Carriers, PhoneAct};
use crate::plan::Plan;
use crate::records::Records;
use crate::rng::Rng;
use crate::world::World;

/// Number of the SIM in the phone.
const PHONE_NUMBER: &str = "+15550100077";
const PHONE_URL: &str = "http://phone.invalid:8080";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carrier {
    Twilio,
    Phone,
}

impl Carrier {
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Twilio => Self::Phone,
            Self::Phone => Self::Twilio,
        }
    }
}

impl Carriers {
    pub(crate) fn include(self, carrier: Carrier) -> bool {
        match carrier {
            Carrier::Twilio => self != Self::Phone,
            Carrier::Phone => self != Self::Twilio,
        }
    }
}

/// Entry in the inbox of the phone.
#[derive(Debug, Clone)]
pub(crate) struct PhoneText {
    pub from: String,
    pub body: String,
    pub sent_at: Timestamp,
    /// Time when the entry was stored.
    pub arrived_at: Timestamp,
}

impl PhoneText {
    /// Returns the id under which the program admits the entry.
    pub(crate) fn external_id(&self) -> String {
        let fields = format!("{}|{}|{}", self.from, self.sent_at.as_millisecond(), self.body);
        Sha256::digest(fields.as_bytes()).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns whether the entries count as one message, because the app may store a text twice.
    pub(crate) fn is_same_message(&self, other: &Self) -> bool {
        let apart = self.sent_at.duration_since(other.sent_at).abs();
        self.from == other.from && self.body == other.body && apart <= SignedDuration::from_secs(10)
    }
}

/// Phone of the household, with the texts that were sent to it.
pub(crate) struct HousePhone {
    pub fake: FakePhone,
    pub texts: Mutex<Vec<PhoneText>>,
    /// Ids under which another program stored a message.
    pub occupied: Mutex<BTreeSet<String>>,
    /// Number of the next ids that another program occupies.
    to_occupy: AtomicU32,
    known_ids: Mutex<BTreeSet<String>>,
}

impl HousePhone {
    fn new(clock: Clock) -> Self {
        let account = FakePhoneAccount {
            number: PhoneNumber::parse(PHONE_NUMBER).unwrap(),
            user: "sms".to_owned(),
            password: "0123abcd".into(),
            signing_key: "a-long-random-word".into(),
        };
        Self {
            fake: FakePhone::new(account, clock),
            texts: Mutex::default(),
            occupied: Mutex::default(),
            to_occupy: AtomicU32::new(0),
            known_ids: Mutex::default(),
        }
    }

    /// Returns the phone as a server, at which another program may occupy the id of a message before it arrives.
    fn server(self: Arc<Self>) -> InProcess {
        let server = self.fake.in_process();
        Arc::new(move |request: Request<Bytes>| {
            if *request.method() == Method::POST && request.uri().path() == "/messages" {
                self.occupy_id(request.body());
            }
            server(request)
        })
    }

    fn occupy_id(&self, body: &[u8]) {
        let message: Value = serde_json::from_slice(body).unwrap();
        let id = message["id"].as_str().unwrap();
        let is_new = self.known_ids.lock().unwrap().insert(id.to_owned());
        let waits = |count: u32| count.checked_sub(1);
        if is_new && self.to_occupy.fetch_update(Ordering::SeqCst, Ordering::SeqCst, waits).is_ok() {
            self.fake.occupy_id(id, "+15550100999", "A text of another program.");
            self.occupied.lock().unwrap().insert(id.to_owned());
        }
    }

    /// Makes the phone work as usual.
    fn calm_down(&self) {
        self.to_occupy.store(0, Ordering::SeqCst);
        self.fake.set_sleeping(false);
        self.fake.set_signal(true);
        self.fake.fail_sends(0);
        self.fake.set_clock_skew(SignedDuration::ZERO);
    }
}

/// Carriers of a world.
pub(crate) struct WorldCarriers {
    pub phone: Arc<HousePhone>,
    pub bot: Arc<HouseBot>,
    configured: Mutex<Carriers>,
    /// Carrier that last wrote to each user.
    habits: Mutex<BTreeMap<String, Carrier>>,
    /// Lists of received messages whose position was stored. Everything that arrives later must be found.
    known_sources: Mutex<BTreeSet<String>>,
}

impl WorldCarriers {
    pub(crate) fn new(plan: &Plan, clock: Clock, true_clock: Clock) -> Self {
        let configured = plan.phone.as_ref().map_or(Carriers::Twilio, |phone| phone.first);
        Self {
            bot: Arc::new(HouseBot::new(true_clock)),
            phone: Arc::new(HousePhone::new(clock)),
            configured: Mutex::new(configured),
            habits: Mutex::default(),
            known_sources: Mutex::default(),
        }
    }

    pub(crate) fn configured(&self) -> Carriers {
        *self.configured.lock().unwrap()
    }

    pub(crate) fn note_habit(&self, user: &str, carrier: Carrier) {
        self.habits.lock().unwrap().insert(user.to_owned(), carrier);
    }

    pub(crate) fn calm_down(&self) {
        self.phone.calm_down();
        self.bot.calm_down();
        *self.configured.lock().unwrap() = Carriers::Both;
    }
}

impl World {
    pub(crate) fn change_carriers(&self, carriers: Carriers) {
        self.journal.note(format!("the carriers are now: {carriers:?}"));
        *self.carriers.configured.lock().unwrap() = carriers;
    }

    pub(crate) fn disturb_phone(&self, act: PhoneAct) {
        self.journal.note(format!("the phone: {act:?}"));
        let (phone, fake) = (&self.carriers.phone, &self.carriers.phone.fake);
        match act {
            PhoneAct::Sleeps => fake.set_sleeping(true),
            PhoneAct::Wakes => fake.set_sleeping(false),
            PhoneAct::LosesSignal => fake.set_signal(false),
            PhoneAct::FindsSignal => fake.set_signal(true),
            PhoneAct::FailsSends(count) => fake.fail_sends(count),
            PhoneAct::DiesAfterRadio => fake.kill_after_radio(),
            PhoneAct::ClockIsAhead(by) => fake.set_clock_skew(by),
            PhoneAct::IdIsOccupied => {
                phone.to_occupy.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    /// Returns the ports of the configured carriers, and our addresses.
    pub(crate) fn carrier_ports(&self) -> (ChannelPorts, Senders) {
        if let Some(bot) = &self.plan.bot {
            return self.bot_ports(bot.storm);
        }
        let (mut ports, mut addresses) = (ChannelPorts::local(), Vec::new());
        let configured = self.carriers.configured();
        if configured.include(Carrier::Twilio) {
            let server =
                self.network_faults("twilio", self.plan.twilio).before(self.peers.twilio.in_process());
            ports = ports.with(Arc::new(self.peers.twilio_port(server)));
            addresses.push(Address::new(OUR_NUMBER));
        }
        if configured.include(Carrier::Phone) {
            let storm = self.plan.phone.as_ref().map_or(0, |phone| phone.storm);
            let server = self.network_faults("phone", storm).before(self.carriers.phone.clone().server());
            let account = self.carriers.phone.fake.client_account(PHONE_URL);
            let port = SmsGate::new(account, HttpClient::in_process(server));
            addresses.push(port.address());
            ports = ports.with(Arc::new(port));
        }
        (ports, Senders::from_addresses(addresses))
    }

    /// Chooses the carrier for a user's message: the one of the last message to the user, as a rule. `None` if the
    /// program knows no list of received messages yet, in which case the first poll skips what is there.
    pub(crate) fn choose_carrier(&self, user: &str) -> Option<Carrier> {
        if self.plan.phone.is_none() {
            return Some(Carrier::Twilio);
        }
        let mut rng = Rng::of(self.plan.seed, &format!("carrier of {user} at {}", self.true_clock.now()));
        let habit = self.carriers.habits.lock().unwrap().get(user).copied();
        let usual = habit.unwrap_or(if rng.percent(60) { Carrier::Phone } else { Carrier::Twilio });
        let is_configured = self.carriers.configured().include(usual);
        let changes = rng.percent(if is_configured { 8 } else { 75 });
        let wanted = if changes { usual.other() } else { usual };
        [wanted, wanted.other()].into_iter().find(|carrier| self.is_known(*carrier))
    }

    fn is_known(&self, carrier: Carrier) -> bool {
        let prefix = if carrier == Carrier::Phone { "smsgate:" } else { "twilio:" };
        let mut known = self.carriers.known_sources.lock().unwrap();
        if !known.iter().any(|source| source.starts_with(prefix)) {
            known.extend(Records::sources(&self.database));
        }
        known.iter().any(|source| source.starts_with(prefix))
    }
}
