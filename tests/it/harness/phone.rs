//! Phone of the household as a channel of a [`World`].

use std::sync::Arc;

use dialarr::app::AppBlueprint;
use dialarr::clock::Clock;
use dialarr::conversation::channel_list;
use dialarr::conversation::routing::senders::Senders;
use dialarr::conversation::transcript::{Address, PhoneNumber};
use dialarr::http::HttpClient;
use dialarr::messaging::smsgate::fake::{FakePhone, FakePhoneAccount};
use dialarr::messaging::smsgate::{GatewayCredentials, SmsGate, SmsGateAccount};
use dialarr::simulation::OUR_NUMBER;

use super::ANN;
use super::world::World;

/// Number of the SIM in the phone.
pub(crate) const PHONE_NUMBER: &str = "+15550100077";
const PHONE_URL: &str = "http://phone.invalid:8080";

/// Channels of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channels {
    Twilio,
    Phone,
    Both,
}

/// Phone of a world, which the program uses if its channels include it.
pub(crate) struct HousePhone {
    pub(crate) phone: FakePhone,
    pub(crate) channels: Channels,
    pub(crate) sim: Option<u8>,
    /// Access token that the program uses in place of the password.
    pub(crate) token: Option<&'static str>,
}

impl HousePhone {
    pub(crate) fn new(clock: Clock) -> Self {
        let account = FakePhoneAccount {
            number: PhoneNumber::parse(PHONE_NUMBER).unwrap(),
            user: "sms".to_owned(),
            password: "0123abcd".into(),
            signing_key: "a-long-random-word".into(),
        };
        Self { phone: FakePhone::new(account, clock), channels: Channels::Twilio, sim: None, token: None }
    }

    /// Returns a port of the phone.
    pub(crate) fn port(&self) -> SmsGate {
        let usual = self.phone.client_account(PHONE_URL);
        let token = self.token.map(|token| GatewayCredentials::Token(token.into()));
        let credentials = token.unwrap_or_else(|| usual.credentials.clone());
        let account = SmsGateAccount { sim: self.sim, credentials, ..usual };
        SmsGate::new(account, HttpClient::in_process(self.phone.in_process()))
    }

    pub(crate) fn apply(&self, blueprint: &mut AppBlueprint) {
        if self.channels == Channels::Twilio {
            if blueprint.channels.get(channel_list::SMSGATE).is_some() {
                blueprint.channels.remove(channel_list::SMSGATE);
                blueprint.settings.senders = Senders::from_addresses(vec![Address::new(OUR_NUMBER)]);
            }
            return;
        }
        let port = self.port();
        let mut addresses = vec![port.address()];
        blueprint.channels = blueprint.channels.clone().with(Arc::new(port));
        match self.channels {
            Channels::Twilio | Channels::Phone => blueprint.channels.remove(channel_list::TWILIO),
            Channels::Both => addresses.insert(0, Address::new(OUR_NUMBER)),
        }
        blueprint.settings.senders = Senders::from_addresses(addresses);
    }
}

impl World {
    /// Starts a program with these channels.
    pub(crate) async fn start_with_channels(channels: Channels) -> Self {
        let mut world = Self::start().await;
        world.use_channels(channels).await;
        world
    }

    /// Starts a program that receives the texts to one SIM of the phone.
    pub(crate) async fn start_with_sim(sim: u8) -> Self {
        let mut world = Self::start().await;
        world.house_phone_mut().sim = Some(sim);
        world.use_channels(Channels::Phone).await;
        world
    }

    /// Starts a program that signs in at the phone with an access token.
    pub(crate) async fn start_with_token(token: &'static str) -> Self {
        let mut world = Self::start().await;
        world.house_phone_mut().token = Some(token);
        world.use_channels(Channels::Phone).await;
        world
    }

    /// Changes the channels of the running program.
    pub(crate) async fn use_channels(&mut self, channels: Channels) {
        self.house_phone_mut().channels = channels;
        self.apply_channels().await;
        self.pass(20).await;
    }

    pub(crate) fn phone(&self) -> &FakePhone {
        &self.house_phone().phone
    }

    /// Sends a text from Ann to the phone, and returns all texts that the phone has sent so far twenty seconds later.
    pub(crate) async fn text_to_phone(&self, body: &str) -> Vec<String> {
        self.phone().receive_text(ANN, body);
        self.pass(20).await;
        self.phone_texts()
    }

    /// Returns the texts that the phone has sent.
    pub(crate) fn phone_texts(&self) -> Vec<String> {
        self.phone().radioed_texts().into_iter().map(|text| text.body).collect()
    }
}
