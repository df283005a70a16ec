//! Movies in the library and the catalog of the demo.

/// Title, year, TMDB id, gigabytes on disk (zero if missing), overview.
pub(super) type DemoMovie = (&'static str, u16, i64, f64, &'static str);

pub(super) const LIBRARY: [DemoMovie; 38] = [
    ("Alien", 1979, 348, 14.2, "The crew of a freighter lets something aboard that hunts them."),
    ("Aliens", 1986, 679, 17.9, "Ripley goes back with marines to find out why a colony fell silent."),
    ("Amélie", 2001, 194, 9.8, "A shy waitress in Paris sets out to mend the lives around her."),
    ("Arrival", 2016, 329_865, 12.4, "A linguist learns to talk with visitors who see time differently."),
    ("Back to the Future", 1985, 105, 11.3, "A teenager in a fast car must make sure his parents meet."),
    ("Blade Runner", 1982, 78, 13.7, "A tired detective hunts artificial people who want more life."),
    (
        "Blade Runner 2049",
        2017,
        335_984,
        55.6,
        "A young blade runner digs up a secret and looks for Deckard.",
    ),
    ("Casablanca", 1943, 289, 7.4, "A nightclub owner in wartime must choose between love and duty."),
    ("Coco", 2017, 354_912, 8.1, "A boy who loves music strays into the land of the dead."),
    ("Dune", 2021, 438_631, 21.4, "A noble family takes control of a desert planet that everyone wants."),
    (
        "Everything Everywhere All at Once",
        2022,
        545_611,
        16.0,
        "A tax audit turns into a journey across the multiverse.",
    ),
    ("Finding Nemo", 2003, 12, 7.7, "A worried fish crosses the sea to bring back his son."),
    ("Get Out", 2017, 419_430, 8.9, "A weekend with his girlfriend's parents goes terribly wrong."),
    ("Groundhog Day", 1993, 137, 8.2, "A grumpy weatherman lives one day over and over."),
    ("Heat", 1995, 949, 18.2, "A careful thief and a driven detective circle each other."),
    ("Inception", 2010, 27_205, 48.3, "A thief enters dreams to leave an idea behind."),
    (
        "Interstellar",
        2014,
        157_336,
        61.8,
        "A pilot leaves his children to search for a new home for humanity.",
    ),
    ("Jaws", 1975, 578, 9.6, "A police chief, a scientist and a sailor go after a shark."),
    ("Jurassic Park", 1993, 329, 12.1, "A park with living dinosaurs loses its power."),
    ("Knives Out", 2019, 546_554, 10.5, "A polite detective investigates the death of a rich author."),
    ("Mad Max: Fury Road", 2015, 76_341, 44.7, "A long chase through a desert, and back again."),
    ("My Neighbor Totoro", 1988, 8392, 6.9, "Two sisters meet the spirits of the woods near their house."),
    ("Paddington", 2014, 116_149, 6.2, "A small bear from Peru looks for a home in London."),
    ("Paddington 2", 2017, 346_648, 6.8, "The bear wants to buy a book and ends up in prison."),
    ("Parasite", 2019, 496_243, 15.3, "A poor family finds work, one by one, in a rich house."),
    ("Pulp Fiction", 1994, 680, 13.0, "The stories of crooks, a boxer and a briefcase intersect."),
    ("Ratatouille", 2007, 2062, 7.3, "A rat who can cook helps a kitchen boy who cannot."),
    ("Spirited Away", 2001, 129, 8.8, "A girl works in a bathhouse for spirits to free her parents."),
    ("The Godfather", 1972, 238, 16.6, "The youngest son is drawn into the family business."),
    (
        "The Grand Budapest Hotel",
        2014,
        120_467,
        9.1,
        "A concierge and his lobby boy flee with a priceless painting.",
    ),
    ("The Iron Giant", 1999, 10_386, 5.9, "A boy hides a huge robot that fell from the sky."),
    ("The Princess Bride", 1987, 2493, 7.0, "A farm boy turned pirate comes back for his true love."),
    (
        "The Thing",
        1982,
        1091,
        11.8,
        "At an Antarctic research station, a shape-shifting creature takes over the crew.",
    ),
    ("Toy Story", 1995, 862, 6.4, "A toy cowboy is jealous of a toy astronaut."),
    ("Chef", 2014, 212_778, 0.0, "A cook leaves his restaurant and buys a food truck."),
    ("Oppenheimer", 2023, 872_585, 0.0, "The man who built the bomb, and what it cost him."),
    ("Past Lives", 2023, 666_277, 0.0, "Two childhood friends meet again as adults in New York."),
    ("The Wild Robot", 2024, 1_184_918, 0.0, "A stranded robot raises a young goose."),
];

/// Movies of the library with the profile `Ultra-HD`.
pub(super) const ULTRA_HD_TITLES: [&str; 5] =
    ["Blade Runner 2049", "Inception", "Interstellar", "Mad Max: Fury Road", "Oppenheimer"];

pub(super) const CATALOG: [DemoMovie; 24] = [
    ("Barbie", 2023, 346_698, 0.0, "A doll leaves her perfect town to see the real world."),
    ("Dune", 1984, 841, 0.0, "The heir of a noble house leads a rebellion on a desert planet."),
    ("Dune: Part Two", 2024, 693_134, 0.0, "Paul rides with the desert people against the empire."),
    ("Fight Club", 1999, 550, 0.0, "An office worker and a soap seller start a club."),
    ("Ghostbusters", 1984, 620, 0.0, "Unemployed scientists catch ghosts for money."),
    ("Gladiator", 2000, 98, 0.0, "A betrayed general becomes a gladiator."),
    ("Gladiator II", 2024, 558_449, 0.0, "Years later another fighter enters the arena."),
    (
        "Glass Onion: A Knives Out Mystery",
        2022,
        661_374,
        0.0,
        "The detective is invited to a private island.",
    ),
    ("Kiki's Delivery Service", 1989, 16_859, 0.0, "A young witch opens a delivery business by the sea."),
    ("La La Land", 2016, 313_369, 0.0, "An actress and a pianist fall in love and want more."),
    ("Little Women", 1994, 9587, 0.0, "Four sisters grow up while their father is at war."),
    ("Little Women", 2019, 331_482, 0.0, "Four sisters come of age after the Civil War."),
    ("Ocean's Eleven", 2001, 161, 0.0, "Eleven people rob three casinos in one night."),
    ("Princess Mononoke", 1997, 128, 0.0, "A cursed prince stands between a forest and a forge."),
    ("Shrek", 2001, 808, 0.0, "An ogre wants his swamp back and finds a princess."),
    (
        "Spider-Man: Into the Spider-Verse",
        2018,
        324_857,
        0.0,
        "A boy from Brooklyn meets Spider-People from other worlds.",
    ),
    ("The Dark Knight", 2008, 155, 0.0, "A masked vigilante faces a criminal who wants chaos."),
    ("The Lion King", 1994, 8587, 0.0, "A young lion flees his kingdom and returns to claim it."),
    ("The Lion King", 2019, 420_818, 0.0, "A photorealistic remake of the animated classic."),
    ("The Matrix", 1999, 603, 0.0, "A programmer learns that his world is a simulation."),
    ("The Martian", 2015, 286_217, 0.0, "An astronaut who was left behind grows potatoes."),
    ("The Thing", 2011, 60_935, 0.0, "Scientists dig up a creature in the Antarctic ice."),
    ("Up", 2009, 14_160, 0.0, "An old man flies away in his house, lifted by balloons."),
    ("WALL-E", 2008, 10_681, 0.0, "A small robot tidies up an empty Earth."),
];

/// Unreleased movies, in the catalog only.
pub(super) const UNRELEASED: [DemoMovie; 1] =
    [("Dune: Part Three", 2026, 1_170_608, 0.0, "The emperor faces the consequences of his rule.")];
