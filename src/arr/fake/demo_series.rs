//! Series of the demo: those in its library, and the others in its catalog.

use ShowRun::{Anime, Continuing, Daily, Ended};

pub(super) struct ShowRow {
    pub title: &'static str,
    pub year: u16,
    pub tvdb: i64,
    pub seasons: u32,
    pub episodes: u32,
    pub gigabytes: f64,
    pub run: ShowRun,
    pub overview: &'static str,
}

#[derive(Clone, Copy)]
pub(super) enum ShowRun {
    Ended,
    Continuing,
    Daily,
    Anime,
}

const fn series_row(
    (title, year, tvdb): (&'static str, u16, i64),
    (seasons, episodes, gigabytes): (u32, u32, f64),
    run: ShowRun,
    overview: &'static str,
) -> ShowRow {
    ShowRow { title, year, tvdb, seasons, episodes, gigabytes, run, overview }
}

#[rustfmt::skip]
pub(super) const LIBRARY: [ShowRow; 20] = [
    series_row(("Andor", 2022, 393_189), (2, 24, 96.4), Ended, "A thief becomes one of those who fight an empire."),
    series_row(("Arcane", 2021, 371_028), (2, 18, 38.5), Ended, "Two sisters end up on two sides of a divided city."),
    series_row(("Better Call Saul", 2015, 273_181), (6, 63, 142.0), Ended, "How a small lawyer became a crooked one."),
    series_row(("Black Mirror", 2011, 253_463), (7, 33, 71.2), Continuing, "Each story shows a machine that goes too far."),
    series_row(("Bluey", 2018, 353_546), (3, 154, 33.0), Continuing, "A family of dogs turns every day into a game."),
    series_row(("Chernobyl", 2019, 360_893), (1, 5, 18.7), Ended, "A reactor explodes and nobody may say so."),
    series_row(("Fargo", 2014, 269_613), (5, 51, 118.3), Continuing, "Ordinary people and crime in the snow."),
    series_row(("Fleabag", 2016, 314_614), (2, 12, 11.6), Ended, "A woman in London tells us more than she tells anyone."),
    series_row(("Frieren: Beyond Journey's End", 2023, 424_536), (1, 28, 29.4), Anime, "An elf learns late what her friends meant to her."),
    series_row(("Game of Thrones", 2011, 121_361), (8, 73, 312.0), Ended, "Families fight over a throne while winter comes."),
    series_row(("Last Week Tonight", 2014, 278_518), (12, 353, 154.0), Daily, "A comedian explains one topic of the week at length."),
    series_row(("Only Murders in the Building", 2021, 400_811), (5, 50, 47.9), Continuing, "Three neighbours make a podcast of a murder."),
    series_row(("Planet Earth II", 2016, 318_408), (1, 6, 41.5), Ended, "Animals on islands, in mountains and in cities."),
    series_row(("Severance", 2022, 371_980), (2, 19, 41.0), Continuing, "Office workers whose work self knows nothing of home."),
    series_row(("Silo", 2023, 403_245), (2, 20, 52.8), Continuing, "The last people live below ground and may not ask why."),
    series_row(("Slow Horses", 2022, 370_112), (5, 30, 48.1), Continuing, "Spies who failed are sent to the worst office there is."),
    series_row(("Ted Lasso", 2020, 383_203), (3, 34, 58.6), Continuing, "A kind coach of the wrong sport goes to London."),
    series_row(("The Bear", 2022, 403_294), (4, 38, 44.0), Continuing, "A fine cook takes over a sandwich shop."),
    series_row(("The Expanse", 2015, 280_619), (6, 62, 137.5), Ended, "Earth, Mars and the Belt are close to war."),
    series_row(("The Last of Us", 2023, 392_256), (2, 16, 0.0), Continuing, "A smuggler brings a girl across a ruined country."),
];

#[rustfmt::skip]
pub(super) const CATALOG: [ShowRow; 14] = [
    series_row(("Battlestar Galactica", 1978, 71_173), (1, 24, 0.0), Ended, "A fleet flees from robots and looks for Earth."),
    series_row(("Battlestar Galactica", 2004, 73_545), (4, 74, 0.0), Ended, "A darker flight from robots who look like us."),
    series_row(("Breaking Bad", 2008, 81_189), (5, 62, 0.0), Ended, "A chemistry teacher makes drugs, and is good at it."),
    series_row(("Doctor Who", 1963, 76_107), (26, 695, 0.0), Ended, "A traveller in time and his blue box, from the start."),
    series_row(("Doctor Who", 2005, 78_804), (13, 153, 0.0), Ended, "A traveller in time and his blue box, back again."),
    series_row(("How I Met Your Mother", 2005, 75_760), (9, 208, 0.0), Ended, "A father tells a very long story."),
    series_row(("Parks and Recreation", 2009, 84_912), (7, 125, 0.0), Ended, "A cheerful official wants to turn a pit into a park."),
    series_row(("Peaky Blinders", 2013, 270_915), (6, 36, 0.0), Ended, "A gang of Birmingham rises after the great war."),
    series_row(("Seinfeld", 1989, 79_169), (9, 180, 0.0), Ended, "Four friends in New York and nothing in particular."),
    series_row(("Stranger Things", 2016, 305_288), (5, 42, 0.0), Ended, "Children of a small town find a door to a dark place."),
    series_row(("The Daily Show", 1996, 71_256), (30, 4000, 0.0), Daily, "The news of the day with jokes."),
    series_row(("The Office (UK)", 2001, 78_107), (2, 14, 0.0), Ended, "A film crew watches a paper company in Slough."),
    series_row(("The Office (US)", 2005, 73_244), (9, 201, 0.0), Ended, "A film crew watches a paper company in Scranton."),
    series_row(("The Wire", 2002, 79_126), (5, 60, 0.0), Ended, "Police, dealers, schools and papers of Baltimore."),
];
