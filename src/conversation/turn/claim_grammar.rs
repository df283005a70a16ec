//! Words with which a sentence claims that a title was deleted, added or requested, by language: verbs with their
//! endings, and the words that accompany them. All words are lower-case without accents; lists are separated by spaces.

use std::collections::HashSet;
use std::sync::OnceLock;

/// List of words, which is split when it is first searched.
pub(super) struct WordList {
    text: &'static str,
    words: OnceLock<HashSet<&'static str>>,
}

/// Creates the list of the words in `text`.
pub(super) const fn word_list(text: &'static str) -> WordList {
    WordList { text, words: OnceLock::new() }
}

impl WordList {
    pub(super) fn contains(&self, word: &str) -> bool {
        self.words.get_or_init(|| self.text.split_whitespace().collect()).contains(word)
    }
}

/// Effect on a title that a sentence claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClaimedEffect {
    Removal,
    /// An addition, or another change of the library.
    Change,
    /// The title was requested or queued.
    Request,
}

/// Position of the auxiliary relative to the participle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VerbOrder {
    /// Directly before: English.
    Adjacent,
    /// Anywhere before: Romance languages.
    Before,
    /// Before or after: German, Dutch.
    Anywhere,
}

/// Grammar of one language.
pub(super) struct ClaimGrammar {
    pub order: VerbOrder,
    pub verbs: [(ClaimedEffect, VerbStems); 3],
    /// Participles that claim an effect only in a clause with one of the following words: `put` and `list`.
    pub phrases: &'static [(ClaimedEffect, &'static [&'static str], &'static [&'static str])],
    /// Endings of participles.
    pub participle: WordList,
    /// Endings that count only with their accent, because without it they are a different form: `ajoute`, `quite`.
    pub accented: WordList,
    /// Endings of the progressive form.
    pub progressive: WordList,
    /// Endings of the past tense of the first person.
    pub past: WordList,
    /// Endings of the past tense of the third person.
    pub third_person_past: WordList,
    /// Endings of an infinitive that follows `just_words`; `-` for none.
    pub infinitive: WordList,
    /// Words for "have just" before an infinitive.
    pub just_words: WordList,
    /// Auxiliaries of the passive and of states: "was", "is", "got".
    pub passive: WordList,
    /// Auxiliaries of the perfect.
    pub perfect: WordList,
    /// Subjects and auxiliaries of the first and the second person.
    pub person_words: WordList,
    pub negations: WordList,
    /// Words before a verb that mark an event as hypothetical: conditions, wishes, the future.
    pub hypothetical: WordList,
    /// Other words that are not part of a title: adverbs, articles, interjections, times.
    pub function_words: WordList,
    /// Reporting verbs, which precede a claim: "I can confirm".
    pub reporting: WordList,
}

/// Forms of the verbs that claim one effect.
pub(super) struct VerbStems {
    /// Stems that take the endings.
    pub stems: &'static [&'static str],
    /// Complete participles and irregular past forms.
    pub full_forms: WordList,
}

/// Names of programs that act on our behalf.
pub(super) static PROGRAM_NAMES: WordList = word_list("radarr sonarr dialarr");

/// Words that mark a sentence as being about a source other than the library.
pub(super) static OTHER_SOURCE_WORDS: WordList = word_list(
    "netflix hulu disney prime amazon hbo peacock paramount apple youtube \
    imdb theaters theatrical cinemas cinema cine kinofassung kino bioscoopversie bioscoop montage montaje \
    cast scene scenes escena cena scena szene catalog streaming",
);

/// Words that mark a sentence as being about the library nevertheless.
pub(super) static LIBRARY_WORDS: WordList = word_list(
    "library radarr sonarr server disk biblioteca bibliotheque bibliothek \
    bibliotheek libreria servidor serveur disco disque festplatte schijf",
);

/// Objects that negate a verb: "removed nothing".
pub(super) static NOTHING_WORDS: WordList = word_list("nothing none nada rien nichts niente nulla niets");

/// Words for times before this turn.
pub(super) static EARLIER_TIME_WORDS: WordList = word_list(
    "yesterday earlier ago last previously back morning ayer anoche hier \
    gestern vorhin ontem ieri gisteren eerder january february march april june july august september \
    october november december jan feb mar apr jun jul aug sep oct nov dec marzo enero febrero mars janvier \
    marz januar februar marco janeiro maart januari monday tuesday wednesday thursday friday saturday",
);

/// Common words that may be capitalized, without being a title.
pub(super) static COMMON_WORDS: WordList = word_list(
    "gb go mb tb tv i ok yes si oui ja sim january february march april may \
    june july august september october november december jan feb mar apr jun jul aug sep oct nov dec \
    monday tuesday wednesday thursday friday saturday sunday marz maerz blu ray sd hd uhd movie movies \
    film filme series show shows season seasons episode episodes file files folder title request titel \
    datei dateien serie staffel staffeln folge folgen liste sammlung vorschlag kopie platz bestand \
    bestanden seizoen seizoenen",
);

pub(super) static LANGUAGES: [&ClaimGrammar; 7] =
    [&ENGLISH, &SPANISH, &FRENCH, &GERMAN, &PORTUGUESE, &ITALIAN, &DUTCH];

static ENGLISH: ClaimGrammar = ClaimGrammar {
    order: VerbOrder::Adjacent,
    verbs: [
        (
            ClaimedEffect::Removal,
            VerbStems {
                stems: &[
                    "delet", "remov", "eras", "trash", "wip", "purg", "nuk", "toss", "discard", "ditch",
                    "scrapp", "clear", "dump",
                ],
                full_forms: word_list("dropped binned gone rid thrown"),
            },
        ),
        (
            ClaimedEffect::Change,
            VerbStems {
                stems: &[
                    "add",
                    "download",
                    "grabb",
                    "monitor",
                    "unmonitor",
                    "import",
                    "restor",
                    "install",
                    "re-add",
                    "readd",
                    "replac",
                    "upgrad",
                ],
                full_forms: word_list(""),
            },
        ),
        (
            ClaimedEffect::Request,
            VerbStems {
                stems: &["queu", "request", "enqueu", "order", "schedul"],
                full_forms: word_list(""),
            },
        ),
    ],
    phrases: &[
        (ClaimedEffect::Removal, &["took", "taken"], &["off", "out", "down"]),
        (ClaimedEffect::Request, &["put", "placed"], &["list", "queue", "watchlist"]),
        (ClaimedEffect::Change, &["put", "placed"], &["library", "radarr", "sonarr", "server"]),
        (
            ClaimedEffect::Removal,
            &["deletion", "removal"],
            &["complete", "completed", "done", "successful", "finished", "through"],
        ),
    ],
    participle: word_list("ed"),
    accented: word_list(""),
    progressive: word_list("ing"),
    past: word_list(""),
    third_person_past: word_list(""),
    infinitive: word_list("e -"),
    just_words: word_list("did managed"),
    passive: word_list("is are was were been being got gotten gets s re m am"),
    perfect: word_list("has have had ve d"),
    person_words: word_list("i we you"),
    negations: word_list(
        "not no never nothing none nobody neither cannot without unable hardly failed yet unless",
    ),
    hypothetical: word_list(
        "be if once when whenever until unless before after will ll would wont can could should may might \
        must shall to whether want wants like let need needs going please",
    ),
    function_words: word_list(
        "successfully now just already also all both completely permanently fully finally the a an it \
        this that these they he she them its and then so as has have okay ok sure done great good news yes \
        yeah yep perfect alright earlier today yesterday last on in for your my our you been done gone \
        went ahead recently fine right thanks sorry to up out did managed consider rid got new old two \
        three",
    ),
    reporting: word_list("confirm say tell report inform announce happy glad pleased wondering know hear"),
};

static SPANISH: ClaimGrammar = ClaimGrammar {
    order: VerbOrder::Before,
    verbs: [
        (
            ClaimedEffect::Removal,
            VerbStems {
                stems: &["elimin", "borr", "quit", "suprim", "retir", "descart", "sac", "desech"],
                full_forms: word_list("deshice deshecho"),
            },
        ),
        (
            ClaimedEffect::Change,
            VerbStems {
                stems: &["anad", "agreg", "descarg", "incorpor", "import", "instal", "reemplaz"],
                full_forms: word_list(""),
            },
        ),
        (
            ClaimedEffect::Request,
            VerbStems { stems: &["solicit", "ped", "encol"], full_forms: word_list("") },
        ),
    ],
    phrases: &[(
        ClaimedEffect::Change,
        &["puse", "puesto", "pusimos"],
        &["biblioteca", "lista", "cola", "radarr", "sonarr"],
    )],
    participle: word_list("ado ada ados adas ido ida idos idas"),
    accented: word_list("e ue"),
    progressive: word_list(""),
    past: word_list("e i ue amos imos"),
    third_person_past: word_list("o aron io ieron"),
    infinitive: word_list("ar ir er arla arlo irla irlo arlas arlos"),
    just_words: word_list("acabo acabamos acaba acaban"),
    passive: word_list("fue fueron sido esta estan quedo quedaron es son se"),
    perfect: word_list("ha han"),
    person_words: word_list(
        "yo nosotros he hemos tu usted has borraste eliminaste quitaste anadiste agregaste pediste",
    ),
    negations: word_list("no nunca nada nadie ningun ninguna ni tampoco sin"),
    hypothetical: word_list(
        "si cuando hasta puedo puede pueden podria podrian debo debe quieres quiere quiera haya hayan \
        hubiera sera seran vaya seria tendria antes para",
    ),
    function_words: word_list(
        "la el los las lo un una ya todavia aun hoy ayer antes ahora listo hecho perfecto todo bien te \
        me que y de del en tus tu tres dos como acabo correctamente",
    ),
    reporting: word_list("confirmo confirmar informo informar decirte contarte digo"),
};

static FRENCH: ClaimGrammar = ClaimGrammar {
    order: VerbOrder::Before,
    verbs: [
        (
            ClaimedEffect::Removal,
            VerbStems {
                stems: &["supprim", "effac", "retir", "enlev", "vir", "jet", "debarrass", "elimin"],
                full_forms: word_list(""),
            },
        ),
        (
            ClaimedEffect::Change,
            VerbStems {
                stems: &["ajout", "rajout", "telecharg", "import", "install", "remplac"],
                full_forms: word_list(""),
            },
        ),
        (ClaimedEffect::Request, VerbStems { stems: &["demand", "command"], full_forms: word_list("") }),
    ],
    phrases: &[(ClaimedEffect::Change, &["mis"], &["bibliotheque", "liste", "file", "radarr", "sonarr"])],
    participle: word_list("e ee es ees"),
    accented: word_list("e ee es ees"),
    progressive: word_list(""),
    past: word_list("ai ames"),
    third_person_past: word_list(""),
    infinitive: word_list("er"),
    just_words: word_list("viens venons vient viennent"),
    passive: word_list("ete est sont etait etaient etre"),
    perfect: word_list("a ont"),
    person_words: word_list("j ai je suis nous avons on tu as vous avez"),
    negations: word_list("n ne pas rien jamais aucun aucune personne sans"),
    hypothetical: word_list(
        "si quand lorsque des peux peut pourrait pourrais veux veut voudrais sera seront aura auront \
        soit faudrait avant pour doit",
    ),
    function_words: word_list(
        "le la les l un une c d t est fait voila bon bien tout toute oui comme deja encore ce cet cette \
        hier aujourd hui maintenant ton ta tes votre vos de du des et ses deux trois",
    ),
    reporting: word_list("confirme confirmer informe informer dire annoncer"),
};

static GERMAN: ClaimGrammar = ClaimGrammar {
    order: VerbOrder::Anywhere,
    verbs: [
        (
            ClaimedEffect::Removal,
            VerbStems {
                stems: &[],
                full_forms: word_list(
                    "geloscht entfernt weggeworfen rausgeworfen herausgenommen rausgenommen beseitigt \
                    getilgt geloescht loschte entfernte verschoben",
                ),
            },
        ),
        (
            ClaimedEffect::Change,
            VerbStems {
                stems: &[],
                full_forms: word_list(
                    "hinzugefugt heruntergeladen aufgenommen eingetragen importiert installiert ersetzt \
                    geladen hinzugefuegt",
                ),
            },
        ),
        (
            ClaimedEffect::Request,
            VerbStems {
                stems: &[],
                full_forms: word_list("angefordert angefragt bestellt eingereiht vorgemerkt"),
            },
        ),
    ],
    phrases: &[
        (ClaimedEffect::Removal, &["genommen"], &["server", "platte", "festplatte", "bibliothek"]),
        (ClaimedEffect::Change, &["gesetzt", "gestellt"], &["liste", "bibliothek"]),
    ],
    participle: word_list(""),
    accented: word_list(""),
    progressive: word_list(""),
    past: word_list(""),
    third_person_past: word_list(""),
    infinitive: word_list(""),
    just_words: word_list(""),
    passive: word_list("wurde wurden wird ist sind worden war waren"),
    perfect: word_list("hat"),
    person_words: word_list("ich habe hab wir du hast ihr habt sie"),
    negations: word_list("nicht nichts nie niemals kein keine keinen ohne niemand"),
    hypothetical: word_list(
        "wenn falls sobald bevor bis kann konnte konnten konnten soll sollte sollen mochte will wollen \
        darf muss musste wurdest damit ob",
    ),
    function_words: word_list(
        "der die das den dem ein eine jetzt gerade soeben schon heute gestern vorhin erledigt fertig \
        gut ok alles alle beide wie zwei drei ja nein es er erfolgreich endgultig und aus zu vom am im den \
        sonst",
    ),
    reporting: word_list("bestatige bestatigen mitteilen sagen melde melden"),
};

static PORTUGUESE: ClaimGrammar = ClaimGrammar {
    order: VerbOrder::Before,
    verbs: [
        (
            ClaimedEffect::Removal,
            VerbStems {
                stems: &["apag", "exclu", "remov", "delet", "elimin", "tir", "retir", "descart"],
                full_forms: word_list("livrei livrado"),
            },
        ),
        (
            ClaimedEffect::Change,
            VerbStems {
                stems: &["adicion", "baix", "import", "instal", "acrescent", "substitu"],
                full_forms: word_list(""),
            },
        ),
        (ClaimedEffect::Request, VerbStems { stems: &["solicit", "ped"], full_forms: word_list("") }),
    ],
    phrases: &[(
        ClaimedEffect::Change,
        &["coloquei", "colocamos", "posto"],
        &["biblioteca", "lista", "fila", "radarr", "sonarr"],
    )],
    participle: word_list("ado ada ados adas ido ida idos idas"),
    accented: word_list(""),
    progressive: word_list(""),
    past: word_list("ei i uei amos emos imos"),
    third_person_past: word_list("ou aram iu iram eu eram"),
    infinitive: word_list("ar ir er"),
    just_words: word_list("acabei acabamos acaba acabam"),
    passive: word_list("foi foram sido esta estao ser"),
    perfect: word_list("tem"),
    person_words: word_list("eu nos voce apagaste"),
    negations: word_list("nao nunca nada ninguem nenhum nenhuma sem"),
    hypothetical: word_list(
        "se quando ate posso pode podem poderia devo deve quer quiser queira for sera serao seja antes teria assim",
    ),
    function_words: word_list(
        "o a os as um uma ja ainda hoje ontem agora pronto feito certo sim e do da no na dos das seu \
        sua teu tudo tres dois como",
    ),
    reporting: word_list("confirmo confirmar informo informar dizer contar"),
};

static ITALIAN: ClaimGrammar = ClaimGrammar {
    order: VerbOrder::Before,
    verbs: [
        (
            ClaimedEffect::Removal,
            VerbStems {
                stems: &["elimin", "cancell", "scart", "sbarazz"],
                full_forms: word_list("rimosso rimossa rimossi rimosse tolto tolta tolti tolte"),
            },
        ),
        (
            ClaimedEffect::Change,
            VerbStems {
                stems: &["scaric", "import", "install"],
                full_forms: word_list("aggiunto aggiunta aggiunti aggiunte sostituito aggiunsi"),
            },
        ),
        (
            ClaimedEffect::Request,
            VerbStems {
                stems: &["prenot"],
                full_forms: word_list("richiesto richiesta richiesti richieste"),
            },
        ),
    ],
    phrases: &[(
        ClaimedEffect::Change,
        &["messo", "messa", "messi", "messe"],
        &["libreria", "lista", "coda", "radarr", "sonarr"],
    )],
    participle: word_list("ato ata ati ate"),
    accented: word_list(""),
    progressive: word_list(""),
    past: word_list("ai ammo"),
    third_person_past: word_list("o arono i irono"),
    infinitive: word_list(""),
    just_words: word_list(""),
    passive: word_list("e stato stata stati state sono viene"),
    perfect: word_list("ha hanno"),
    person_words: word_list("io ho noi abbiamo mi hai tu avete"),
    negations: word_list("non niente nulla nessun nessuna nessuno mai senza"),
    hypothetical: word_list(
        "se quando finche posso puo possono potrebbe potrei devo deve dovrei vuoi venga sara saranno prima per",
    ),
    function_words: word_list(
        "appena il la lo gli le i un una l ho gia ancora ieri oggi ora adesso fatto bene tutto posto si \
        ti d dal dalla due tre come",
    ),
    reporting: word_list("confermo confermare informo informare dirti comunicarti"),
};

static DUTCH: ClaimGrammar = ClaimGrammar {
    order: VerbOrder::Anywhere,
    verbs: [
        (
            ClaimedEffect::Removal,
            VerbStems {
                stems: &[],
                full_forms: word_list(
                    "verwijderd verwijderde gewist wiste weggegooid weggehaald opgeruimd gedelete",
                ),
            },
        ),
        (
            ClaimedEffect::Change,
            VerbStems {
                stems: &[],
                full_forms: word_list("toegevoegd gedownload geimporteerd geinstalleerd opgehaald vervangen"),
            },
        ),
        (
            ClaimedEffect::Request,
            VerbStems { stems: &[], full_forms: word_list("aangevraagd besteld ingepland") },
        ),
    ],
    phrases: &[
        (ClaimedEffect::Removal, &["gehaald"], &["server", "schijf", "bibliotheek"]),
        (ClaimedEffect::Change, &["gezet"], &["lijst", "bibliotheek"]),
    ],
    participle: word_list(""),
    accented: word_list(""),
    progressive: word_list(""),
    past: word_list(""),
    third_person_past: word_list(""),
    infinitive: word_list(""),
    just_words: word_list(""),
    passive: word_list("is zijn werd werden wordt worden was"),
    perfect: word_list("heeft"),
    person_words: word_list("ik heb we wij hebben je jij hebt u"),
    negations: word_list("niet niets nooit geen niemand zonder"),
    hypothetical: word_list("als zodra wanneer tot voordat kan kon kunnen zou zal wil wilt moet mag of"),
    function_words: word_list(
        "de het een aan van voor je nu al zojuist net vandaag gisteren klaar gedaan goed ok alles alle \
        beide zoals en uit met hij hem dat er drie twee ja nee inmiddels definitief nog",
    ),
    reporting: word_list("bevestig bevestigen melden zeggen laten"),
};
