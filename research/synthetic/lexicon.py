"""The words of the built-in corpus, with what the grammar has to know about each of them.

A word is written as its lemma and marks: `write/wrote/written` gives irregular forms, `wife/wives` an irregular plural,
`film:about,by` the prepositions of a noun's complements, `+` and `-` the sentiment (doubled where it is strong).
Which site a prepositional phrase attaches to is a property of the words here, not of chance, so it can be learnt.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from research.synthetic.morphology import past, plural


class Word(NamedTuple):
    """A lemma, its irregular forms, what it governs and how it sounds.

    Example:
        >>> parse("write/wrote/written")
        Word(lemma='write', forms=('wrote', 'written'), governs=(), sentiment=0)
        >>> parse("fear:of--")
        Word(lemma='fear', forms=(), governs=('of',), sentiment=-2)
    """

    lemma: str
    forms: tuple[str, ...] = ()
    governs: tuple[str, ...] = ()
    sentiment: int = 0

    @property
    def plural(self) -> str:
        """The plural, of a noun."""
        return self.forms[0] if self.forms else plural(self.lemma)

    @property
    def past(self) -> str:
        """The past tense, of a verb."""
        return self.forms[0] if self.forms else past(self.lemma)

    @property
    def participle(self) -> str:
        """The past participle, of a verb."""
        return self.forms[-1] if self.forms else past(self.lemma)


def parse(text: str) -> Word:
    """One word in the notation of this file.

    Example:
        >>> parse("wife/wives").plural
        'wives'
    """
    bare = text.rstrip("+-")
    sentiment = text.count("+", len(bare)) - text.count("-", len(bare))
    forms, _, governs = bare.partition(":")
    lemma, *irregular = forms.split("/")
    return Word(lemma, tuple(irregular), tuple(governs.split(",")) if governs else (), sentiment)


def words(text: str) -> tuple[Word, ...]:
    """Several of them, between blanks.

    Example:
        >>> [word.lemma for word in words("hope- fear/feared/feared")]
        ['hope', 'fear']
    """
    return tuple(parse(word) for word in text.split())


_NOUNS = {
    "person": """teacher doctor lawyer nurse student singer painter farmer baker judge guard guide cook pilot sailor
        child/children man/men woman/women neighbour:of friend:of brother:of sister:of cousin:of uncle aunt
        author:of owner:of member:of critic:of rival:of leader:of editor:of waiter tailor dancer writer
        actor director:of journalist scientist tourist visitor clerk porter soldier captain:of mayor:of
        minister poet assistant hero/heroes+ genius+ expert:on+ liar- thief/thieves- fool- coward- bully-
        champion+""",
    "group": """committee council company team family crowd jury orchestra ministry union club:of board government
        department crew""",
    "work": """book:about,by film:about,by story:about report:on,by article:on,by song:about,by play:about,by
        letter:from,to novel:about,by poem:about,by review:of,by answer:to speech:on lecture:on essay:on,by
        documentary:on plan:for proposal:for account:of theory:about summary:of translation:of,by guide:to""",
    "thing": """car key:to lamp chair table box door bicycle boat coat watch ring knife/knives cake suitcase clock
        camera piano ladder basket bottle picture:of window phone machine bag ship train bus parcel:from cup
        mirror carpet drum painting:of,by photo:of map:of portrait:of,by""",
    "place": """garden village city kitchen park harbour museum station library office school church market street
        castle forest island hotel restaurant farm square theatre valley factory town""",
    "event": """meeting:with party:for wedding:of concert visit:to trip:to attack:on debate:on war festival
        dinner:with election strike lesson ceremony show race journey:to interview:with argument:with march""",
    "idea": """interest:in belief:in fear:of desire:for doubt:about hope:for reason:for cause:of solution:to
        problem:with love:of opinion:of claim decision duty rumour:about""",
    "quality": """charm+ talent+ wit+ style+ skill+ warmth+ depth+ grace+ energy+ humour+""",
    "crime": "theft fraud murder treason arson robbery",
    "part_person": "beard scar hat limp smile stick cane telescope",
    "part_thing": "handle cover lid label stripe wheel",
    "part_place": "gate tower fountain wall",
    "tool": """hammer brush key spoon telescope knife/knives camera rope pencil stick sponge shovel""",
    "home": "village city town island valley coast mountain",
    "time": "Monday Tuesday Thursday Friday Sunday",
    "with_work": "war history family science school music",
    "with_event": "family school summer winter music city village",
    "with_place": "",
    "with_thing": "glass stone kitchen garden train school",
    "with_group": "city school town village army music",
    "with_person": "school city village army",
    "verdict": "disaster-- triumph++ masterpiece++ failure- joy+ mess- delight+ disgrace- success+ surprise mystery",
}
_NEW_NOUNS = {
    "person": """plumber juggler tenant:of barber sculptor archivist:of goalkeeper wrestler violinist:of
        translator:of hermit beekeeper locksmith weaver astronaut chemist:of librarian:of referee
        gardener:of puppeteer tutor:of jockey navigator:of butcher florist carpenter umpire banker patron:of
        curator:of""",
    "group": """senate brigade choir fleet parish guild:of tribunal cabinet squad cooperative""",
    "work": """ballad:about,by memoir:about,by pamphlet:on,by sonnet:about,by cartoon:about,by manual:for
        opera:about,by diary:about fable:about telegram:from,to blueprint:for sermon:on biography:of,by
        petition:for catalogue:of""",
    "thing": """kettle wagon lantern violin sofa anchor helmet barrel tractor carriage pillow saddle trumpet canoe
        umbrella wallet typewriter cradle kite rug sketch:of,by engraving:of,by""",
    "place": """lighthouse canyon bakery monastery orchard tavern quarry vineyard stadium meadow cellar chapel
        prison courtyard dock airport clinic temple""",
    "event": """banquet:for parade rehearsal:with auction tournament pilgrimage:to raid:on carnival picnic:with
        excursion:to inauguration:of siege:of seminar:on quarrel:with""",
    "idea": """passion:for suspicion:about faith:in explanation:for remedy:for dread:of curiosity:about excuse:for""",
    "quality": "",
    "crime": "blackmail smuggling perjury",
    "part_person": "moustache tattoo ribbon stammer wig",
    "part_thing": "hinge crest stain collar antenna",
    "part_place": "chimney balcony moat terrace",
    "tool": """chisel ladle crowbar needle razor wrench mallet torch""",
    "home": "desert province suburb county",
    "time": "Wednesday Saturday",
    "with_work": "mountain theatre college",
    "with_event": "river college harbour",
    "with_place": "mountain desert college",
    "with_thing": "brass leather copper silk",
    "with_group": "college railway harbour",
    "with_person": "railway college theatre",
    "verdict": "spectacle",
}

_VERBS = {
    # Without an object.
    "alone": """laugh smile sleep/slept/slept arrive wait cry- dance sing/sang/sung work travel complain- succeed+
        fail- suffer- struggle- listen rest swim/swam/swum leave/left/left return wander shout move plan
        paint cook""",
    "happen": "collapse- vanish improve+ grow/grew/grown fade- shine/shone/shone+ change continue crumble- flourish+",
    # With an object of the kind named. A phrase of place after it belongs to the verb ...
    "person": """meet/met/met visit help+ thank+ greet follow call watch interview hire hug cheat- annoy- welcome+
        betray- comfort+ insult- find/found/found photograph teach/taught/taught""",
    "work": """read/read/read write/wrote/written finish publish translate study edit ruin- print copy discuss
        record present read/read/read review plan""",
    "thing": """buy/bought/bought sell/sold/sold find/found/found lose/lost/lost- carry wash paint repair+ clean use
        hide/hid/hidden break/broke/broken- steal/stole/stolen- open close drop burn- wreck- polish+
        build/built/built order""",
    "place": "clean guard paint close rent decorate+ wreck- photograph open burn-",
    "event": "attend plan organise+ cancel- ruin- watch film interrupt- hold/held/held discuss",
    # ... and after these, which are states, to the object.
    "person@": """know/knew/known admire+ trust+ hate- love+ remember respect+ fear- envy- like+ despise-
        forget/forgot/forgotten""",
    "work@": """praise+ love+ hate- enjoy+ remember mention need like+ dislike- admire+
        understand/understood/understood know/knew/known""",
    "thing@": "own need love+ hate- want like+ remember admire+ describe",
    "place@": "love+ hate- know/knew/known remember like+ own miss describe admire+ avoid-",
    "event@": "enjoy+ hate- remember love+ dread- describe miss mention support+",
    "idea@": "share understand/understood/understood mention describe question explain have/had/had",
    # With an object and a phrase whose preposition the verb chooses.
    "person_prep": """accuse:of- suspect:of- thank:for+ blame:for- remind:of ask:about tell/told/told:about warn:about
        congratulate:on+ compare:with protect:from+ invite:to praise:for+ criticise:for- question:about
        teach/taught/taught:about""",
    "thing_prep": """put/put/put:on place:in borrow:from steal/stole/stolen:from- hide/hid/hidden:behind
        take/took/taken:from compare:with exchange:for send/sent/sent:to sell/sold/sold:to
        show/showed/shown:to carry:to throw/threw/thrown:at- base:on keep/kept/kept:in deliver:to
        remove:from leave/left/left:with""",
    "work_prep": """explain:to send/sent/sent:to show/showed/shown:to read/read/read:to compare:with describe:to
        borrow:from sell/sold/sold:to give/gave/given:to dedicate:to base:on remove:from""",
    "prep": """rely:on look:at listen:to talk:about think/thought/thought:about wait:for laugh:at believe:in
        depend:on apologise:for deal/dealt/dealt:with argue:with agree:with worry:about- dream:of
        complain:about- care:for+ hope:for learn:about work:for shout:at- write/wrote/written:about
        smile:at+""",
    "give": """give/gave/given send/sent/sent show/showed/shown offer lend/lent/lent sell/sold/sold
        teach/taught/taught bring/brought/brought promise buy/bought/bought""",
    "particle": """pick:up throw/threw/thrown:away put/put/put:down take/took/taken:back fix:up give/gave/given:up
        write/wrote/written:down""",
    # With a clause.
    "that": """say/said/said think/thought/thought believe know/knew/known claim hope fear report announce notice
        remember promise admit/admitted/admitted suspect understand/understood/understood""",
    "that-": "doubt deny",
    "to": "try want hope decide plan promise need begin/began/begun learn manage agree expect",
    "to-": "fail refuse forget/forgot/forgotten decline",
    "object_to": "persuade ask tell/told/told order force teach/taught/taught help allow advise urge",
    "object_to-": "forbid/forbade/forbidden",
    "subject_to": "promise",
    "raise_to": "expect want need like",
    "seem": "seem appear happen tend",
    "ing": "enjoy start finish keep/kept/kept consider",
    "ing-": "avoid stop",
    "see": "see/saw/seen hear/heard/heard watch notice catch/caught/caught",
    # What things do to people.
    "move": """please+ bore- surprise impress+ annoy- delight+ disappoint- inspire+ confuse- amuse+ puzzle shock-
        charm+ attract move offend- interest worry- frighten-""",
}
_NEW_VERBS = {
    "alone": "stumble yawn wrestle giggle hesitate juggle stroll whisper vote kneel/knelt/knelt",
    "happen": "drift tremble vibrate evolve",
    "person": "tutor rescue accompany recruit overtake/overtook/overtaken escort summon applaud tickle",
    "work": "revise illustrate memorise annotate rehearse recite distribute transcribe",
    "thing": "mend fold rent varnish assemble weigh donate bury polish scratch",
    "place": "inspect renovate patrol flood photograph map survey",
    "event": "postpone televise host sponsor schedule",
    "person@": "resemble recall mistrust- adore+ pity",
    "work@": "adore+ quote cite recommend+ recall",
    "thing@": "possess covet adore+ require",
    "place@": "adore+ recall prefer/preferred/preferred inhabit",
    "event@": "recall detest- adore+ mention",
    "idea@": "grasp express voice concede",
    "person_prep": "convict:of- acquit/acquitted/acquitted:of+ alert:to interrogate:about shield:from+",
    "thing_prep": "attach:to lift:from donate:to fasten:to lower:into conceal:behind",
    "work_prep": "attribute:to lend/lent/lent:to forward:to adapt:for recite:to",
    "prep": "stare:at reflect:on yearn:for insist:on quarrel:with boast:about gossip:about glance:at",
    "give": "hand mail grant loan",
    "particle": "fold:up lock:away hand:over",
    "that": "insist predict conclude sense reveal whisper",
    "that-": "",
    "to": "aim vow hesitate prepare attempt",
    "to-": "neglect",
    "object_to": "compel coax instruct remind",
    "object_to-": "",
    "subject_to": "",
    "raise_to": "intend",
    "seem": "",
    "ing": "resume practise",
    "ing-": "",
    "see": "observe spot overhear/overheard/overheard",
    "move": "startle comfort+ intrigue irritate- soothe+",
}

_ADJECTIVES = {
    "person": """kind+ clever+ charming+ honest+ brilliant++ generous+ friendly+ talented+ wonderful++ rude- lazy-
        cruel-- dull- dishonest- horrible-- arrogant- clumsy- foolish- young old tall Spanish French famous
        quiet busy local retired foreign""",
    "work": """funny+ moving+ brilliant++ delightful++ original+ gripping+ clever+ elegant+ boring- tedious-
        dreadful-- predictable- awful-- confusing- clumsy- shallow- long short recent early foreign French
        old famous secret""",
    "thing": """useful+ beautiful+ reliable+ splendid++ elegant+ handy+ ugly- useless- worthless-- hideous-- flimsy-
        faulty- red wooden small large heavy round new old green plain""",
    "place": """lovely+ peaceful+ charming+ magnificent++ pleasant+ dirty- noisy- gloomy- dreadful-- ugly- shabby-
        large ancient distant northern small empty modern local""",
    "event": """exciting+ pleasant+ memorable+ wonderful++ dull- disastrous-- chaotic- tedious- pointless- annual
        brief public recent private""",
    "idea": "sincere+ noble+ admirable+ absurd- silly- common sudden strange recent",
    "part": "long short red small white strange",
    "of": """proud:of+ fond:of+ afraid:of- tired:of- aware:of jealous:of- ashamed:of- similar:to worried:about-
        grateful:for+""",
    "tough": "easy hard difficult impossible simple",
    "eager": "eager ready free able likely happy+ reluctant- proud+ unable-",
    "obvious": "obvious clear strange true possible wonderful++ sad- terrible--",
}
_NEW_ADJECTIVES = {
    "person": "elderly bearded Norwegian solemn talkative Brazilian pale curly-haired muscular nervous",
    "work": "lengthy handwritten Norwegian satirical unfinished anonymous illustrated medieval",
    "thing": "rusty oval crimson portable hollow striped enormous antique",
    "place": "coastal remote deserted medieval sandy snowy rural tiny",
    "event": "weekly lengthy nocturnal official rural",
    "idea": "peculiar widespread gradual",
    "part": "crooked narrow curly crimson",
    "of": "weary:of- envious:of- devoted:to+",
    "tough": "tricky",
    "eager": "keen willing prone",
    "obvious": "apparent plausible",
}


@dataclass(frozen=True)
class Lexicon:
    """Content words by class, each a tuple to draw from.

    Example:
        >>> sorted(LEXICONS)
        ['in', 'out']
        >>> LEXICONS["in"].adjectives["tough"][0].lemma
        'easy'
    """

    nouns: dict[str, tuple[Word, ...]]
    verbs: dict[str, tuple[Word, ...]]
    adjectives: dict[str, tuple[Word, ...]]


def _mixed(known: dict[str, str], new: dict[str, str]) -> dict[str, tuple[Word, ...]]:
    """The new words first, that is most often: every other word of a sentence should be one."""
    return {name: words(new[name] + " " + text) for name, text in known.items()}


LEXICONS = {
    "in": Lexicon(*({name: words(text) for name, text in table.items()} for table in (_NOUNS, _VERBS, _ADJECTIVES))),
    "out": Lexicon(_mixed(_NOUNS, _NEW_NOUNS), _mixed(_VERBS, _NEW_VERBS), _mixed(_ADJECTIVES, _NEW_ADJECTIVES)),
}
"""The words of either domain. Out of domain there are new ones beside the known; hardly any of the new ones has a
sentiment, for nothing in the training data could tell it."""

NOUN_KINDS = {
    "of": "place person", "by": "person", "about": "place event person", "on": "event group", "from": "person",
    "to": "place", "for": "event place", "with": "person group", "in": "work event", "friend:of": "person",
    "neighbour:of": "person", "brother:of": "person", "sister:of": "person", "cousin:of": "person",
    "author:of": "work", "owner:of": "thing place", "member:of": "group", "critic:of": "group work",
    "rival:of": "person", "leader:of": "group", "editor:of": "work", "director:of": "work group",
    "captain:of": "group", "mayor:of": "place", "club:of": "person", "guild:of": "person",
    "review:of": "work event", "summary:of": "work", "translation:of": "work", "account:of": "event",
    "map:of": "place", "letter:to": "person group", "telegram:to": "person group", "answer:to": "person work",
    "solution:to": "idea", "key:to": "place thing", "wedding:of": "person", "party:for": "person",
    "banquet:for": "person group", "attack:on": "place group", "raid:on": "place", "expert:on": "work event",
    "fear:of": "person event", "dread:of": "event", "cause:of": "event", "love:of": "place event",
    "opinion:of": "person work", "problem:with": "thing event", "manual:for": "thing", "translator:of": "work",
    "tenant:of": "place", "archivist:of": "place group", "gardener:of": "place", "navigator:of": "group",
    "violinist:of": "group", "chemist:of": "group", "tutor:of": "person", "patron:of": "group",
    "curator:of": "place", "librarian:of": "place", "biography:of": "person", "catalogue:of": "work thing",
    "siege:of": "place", "inauguration:of": "place",
}  # fmt: skip
"""What follows a preposition that a noun governs, by the preposition alone or by both."""

VERB_KINDS = {
    "of": "crime", "for": "work event", "about": "event work person place", "with": "person",
    "from": "person place", "to": "person", "on": "work event", "at": "person", "in": "place", "behind": "thing",
    "into": "thing", "remind:of": "person event", "dream:of": "place event", "put:on": "thing",
    "rely:on": "person thing group", "depend:on": "person group", "believe:in": "person", "place:in": "thing place",
    "invite:to": "event", "listen:to": "person work", "attach:to": "thing", "fasten:to": "thing",
    "carry:to": "place", "deliver:to": "place person", "alert:to": "event", "wait:for": "person event thing",
    "care:for": "person place", "hope:for": "event", "work:for": "person group", "exchange:for": "thing",
    "adapt:for": "group", "take:from": "place", "remove:from": "place", "lift:from": "place",
    "borrow:from": "person", "steal:from": "person place", "protect:from": "person group", "shield:from": "person",
    "look:at": "person work place thing", "laugh:at": "person work", "throw:at": "person thing",
    "stare:at": "person thing work", "glance:at": "person thing work", "yearn:for": "event place",
    "deal:with": "person thing group", "agree:with": "person group", "learn:about": "event place",
    "teach:about": "event place", "compare:with": "same",
}  # fmt: skip
"""The same for verbs; `same` is the kind of the object."""

NAMES = {
    "3f": ("Mary", "Anna", "Helen", "Julia", "Clara", "Rosa", "Emma", "Ingrid"),
    "3m": ("John", "Peter", "Thomas", "Hugo", "Victor", "Oscar", "Samuel", "Ivan"),
    "last": ("Smith", "Keller", "Novak", "Brown", "Rossi", "Lindgren", "Moreau", "Hill"),
}
MANNER = words(
    """quickly slowly quietly carefully suddenly loudly eagerly beautifully+ brilliantly+ skilfully+ gracefully+
    badly- poorly- clumsily- terribly-"""
)
DEGREES = {"very": 2.0, "extremely": 3.0, "really": 2.0, "slightly": 0.5, "somewhat": 0.5, "rather": 1.0}
"""What an adverb of degree does to the sentiment of its adjective."""

SHIFTERS = frozenset(
    word.lemma
    for name in ("that-", "to-", "object_to-", "ing-")
    for word in words(_VERBS[name] + " " + _NEW_VERBS[name])
) | {"lack"}
"""Verbs that turn round the sentiment of their complement, as a negation does."""


def _sentiments() -> Iterable[tuple[tuple[str, str], int]]:
    for initial, tables in (
        ("N", (_NOUNS, _NEW_NOUNS)),
        ("V", (_VERBS, _NEW_VERBS)),
        ("J", (_ADJECTIVES, _NEW_ADJECTIVES)),
    ):
        for table in tables:
            for text in table.values():
                for word in words(text):
                    if word.sentiment:
                        yield (word.lemma, initial), word.sentiment
    yield from (((word.lemma, "R"), word.sentiment) for word in MANNER if word.sentiment)


SENTIMENTS = dict(_sentiments())
"""The sentiment of a lemma whose tag begins with the letter given: 1 or 2 for good, negative for bad."""
