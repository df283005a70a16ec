//! Series in the library and the catalog of the demo.

use DemoSeriesKind::{Anime, Continuing, Daily, Ended};

pub(super) struct DemoSeries {
    pub title: &'static str,
    pub year: u16,
    pub tvdb: i64,
    pub seasons: u32,
    pub episodes: u32,
    pub gigabytes: f64,
    pub kind: DemoSeriesKind,
    pub overview: &'static str,
}

#[derive(Clone, Copy)]
pub(super) enum DemoSeriesKind {
    Ended,
    Continuing,
    Daily,
    Anime,
}

const fn series_row(
    (title, year, tvdb): (&'static str, u16, i64),
    (seasons, episodes, gigabytes): (u32, u32, f64),
    kind: DemoSeriesKind,
    overview: &'static str,
) -> DemoSeries {
    DemoSeries { title, year, tvdb, seasons, episodes, gigabytes, kind, overview }
}

#[rustfmt::skip]
pub(super) const LIBRARY: [DemoSeries; 20] = [
    series_row(("Andor", 2022, 393_189), (2, 24, 96.4), Ended, "A thief joins the rebellion against the Empire."),
    series_row(("Arcane", 2021, 371_028), (2, 18, 38.5), Ended, "Two sisters end up on two sides of a divided city."),
    series_row(("Better Call Saul", 2015, 273_181), (6, 63, 142.0), Ended, "How a small-time lawyer became a crooked one."),
    series_row(("Black Mirror", 2011, 253_463), (7, 33, 71.2), Continuing, "Standalone stories about technology that goes too far."),
    series_row(("Bluey", 2018, 353_546), (3, 154, 33.0), Continuing, "A family of dogs turns every day into a game."),
    series_row(("Chernobyl", 2019, 360_893), (1, 5, 18.7), Ended, "A reactor explodes, and the authorities cover it up."),
    series_row(("Fargo", 2014, 269_613), (5, 51, 118.3), Continuing, "Crime stories set in the snowy Midwest."),
    series_row(("Fleabag", 2016, 314_614), (2, 12, 11.6), Ended, "A young woman in London tries to cope with love and loss."),
    series_row(("Frieren: Beyond Journey's End", 2023, 424_536), (1, 28, 29.4), Anime, "An elf learns too late what her friends meant to her."),
    series_row(("Game of Thrones", 2011, 121_361), (8, 73, 312.0), Ended, "Families fight over a throne while winter comes."),
    series_row(("Last Week Tonight", 2014, 278_518), (12, 353, 154.0), Daily, "A comedian explains one topic of the week at length."),
    series_row(("Only Murders in the Building", 2021, 400_811), (5, 50, 47.9), Continuing, "Three neighbors make a podcast about a murder."),
    series_row(("Planet Earth II", 2016, 318_408), (1, 6, 41.5), Ended, "Animals on islands, in mountains and in cities."),
    series_row(("Severance", 2022, 371_980), (2, 19, 41.0), Continuing, "Office workers have their work and home memories separated."),
    series_row(("Silo", 2023, 403_245), (2, 20, 52.8), Continuing, "The last people on Earth live underground without knowing why."),
    series_row(("Slow Horses", 2022, 370_112), (5, 30, 48.1), Continuing, "Disgraced spies are sent to the worst office in the service."),
    series_row(("Ted Lasso", 2020, 383_203), (3, 34, 58.6), Continuing, "An American football coach takes over an English soccer team."),
    series_row(("The Bear", 2022, 403_294), (4, 38, 44.0), Continuing, "A fine-dining chef takes over his family's sandwich shop."),
    series_row(("The Expanse", 2015, 280_619), (6, 62, 137.5), Ended, "Earth, Mars and the Belt are close to war."),
    series_row(("The Last of Us", 2023, 392_256), (2, 16, 0.0), Continuing, "A smuggler brings a girl across a ruined country."),
];

#[rustfmt::skip]
pub(super) const CATALOG: [DemoSeries; 14] = [
    series_row(("Battlestar Galactica", 1978, 71_173), (1, 24, 0.0), Ended, "A fleet flees from robots and searches for Earth."),
    series_row(("Battlestar Galactica", 2004, 73_545), (4, 74, 0.0), Ended, "The last humans flee from robots who look human."),
    series_row(("Breaking Bad", 2008, 81_189), (5, 62, 0.0), Ended, "A chemistry teacher makes drugs, and is good at it."),
    series_row(("Doctor Who", 1963, 76_107), (26, 695, 0.0), Ended, "A time traveler and his blue box, from the start."),
    series_row(("Doctor Who", 2005, 78_804), (13, 153, 0.0), Ended, "A time traveler and his blue box return."),
    series_row(("How I Met Your Mother", 2005, 75_760), (9, 208, 0.0), Ended, "A father tells a very long story."),
    series_row(("Parks and Recreation", 2009, 84_912), (7, 125, 0.0), Ended, "A cheerful official wants to turn a pit into a park."),
    series_row(("Peaky Blinders", 2013, 270_915), (6, 36, 0.0), Ended, "A Birmingham gang rises after the First World War."),
    series_row(("Seinfeld", 1989, 79_169), (9, 180, 0.0), Ended, "Four friends in New York and nothing in particular."),
    series_row(("Stranger Things", 2016, 305_288), (5, 42, 0.0), Ended, "Children in a small town find a gateway to a dark world."),
    series_row(("The Daily Show", 1996, 71_256), (30, 4000, 0.0), Daily, "The news of the day with jokes."),
    series_row(("The Office (UK)", 2001, 78_107), (2, 14, 0.0), Ended, "A film crew watches a paper company in Slough."),
    series_row(("The Office (US)", 2005, 73_244), (9, 201, 0.0), Ended, "A film crew watches a paper company in Scranton."),
    series_row(("The Wire", 2002, 79_126), (5, 60, 0.0), Ended, "Police, dealers, schools and newspapers in Baltimore."),
];
