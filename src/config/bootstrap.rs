//! Values that are needed before the database is opened. They come only from the environment and `.env`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use super::reader::VariableReader;
use super::{ConfigProblems, ConfigSources, variables};

/// Addresses of the listeners, and paths of the files. Commands that need no other value also work with an invalid
/// configuration.
#[derive(Debug, Clone)]
pub struct Bootstrap {
    /// Address on which the webhooks listen.
    pub listen: SocketAddr,
    /// Address of the console. `None` turns it off.
    pub console_bind: Option<SocketAddr>,
    pub database: PathBuf,
    /// File of the stored secrets.
    pub secrets_file: PathBuf,
}

impl Bootstrap {
    pub fn from_sources(sources: &ConfigSources) -> Result<Self, ConfigProblems> {
        let mut reader = VariableReader::new(sources);
        let bootstrap = Self::from_reader(&mut reader);
        reader.finish_with(bootstrap)
    }

    pub(super) fn from_reader(reader: &mut VariableReader<'_>) -> Self {
        let host = reader.read_with(variables::HOST, |text| {
            text.parse::<IpAddr>().map_err(|_| "not an IP address".to_owned())
        });
        let port = reader.read_with(variables::PORT, |text| {
            text.parse::<u16>().map_err(|_| "not a port from 0 to 65535".to_owned())
        });
        let database =
            PathBuf::from(reader.read_text(variables::DATABASE_URL).unwrap_or("dialarr.db".to_owned()));
        let secrets_file = reader.read_text(variables::SECRETS_FILE).into_option();
        Self {
            listen: SocketAddr::new(host.unwrap_or(Ipv4Addr::UNSPECIFIED.into()), port.unwrap_or(3000)),
            console_bind: read_console_bind(reader),
            secrets_file: secrets_file.map_or_else(|| default_secrets_file(&database), PathBuf::from),
            database,
        }
    }
}

impl ConfigSources {
    /// Returns the paths of the database and of the secrets file, which are known even if other values are invalid.
    pub fn file_paths(&self) -> (PathBuf, PathBuf) {
        let Bootstrap { database, secrets_file, .. } = Bootstrap::from_reader(&mut VariableReader::new(self));
        (database, secrets_file)
    }
}

/// Returns the path of a file beside the database, such as `dialarr.secrets.json` for `dialarr.db`.
fn default_secrets_file(database: &Path) -> PathBuf {
    database.with_extension("secrets.json")
}

fn read_console_bind(reader: &mut VariableReader<'_>) -> Option<SocketAddr> {
    let is_off = reader.is_set_to_empty(variables::CONSOLE_BIND);
    let bind = reader
        .read_with(variables::CONSOLE_BIND, |text| {
            text.parse::<SocketAddr>().map_err(|_| "not an IP address and a port".to_owned())
        })
        .unwrap_or(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 3001));
    (!is_off).then_some(bind)
}
