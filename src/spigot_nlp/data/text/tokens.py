r"""English words as the treebanks have them: the text between two spaces, taken apart.

The manner is that of the English Web Treebank in Universal Dependencies, which follows the Penn Treebank but for
hyphens: `don't` is `do n't`, `cannot` is `can not`, `15-year` is `15 - year` while `e-mail` and `anti-war` stay whole.
Numbers, dates, addresses, file names, emoticons and emoji are one token each; so is a run of `!`, `?` and `.`, or of
one other sign. Text in other scripts is cut at spaces and punctuation, and Chinese characters stand alone. A combining
mark is never parted from what it sits on.

Nothing is ever changed, added or left out: the tokens of a stretch, joined, are the stretch.

References:
    Marcus, Santorini and Marcinkiewicz (1993), Building a large annotated corpus of English: the Penn Treebank.
    Silveira et al. (2014), A gold standard dependency corpus for English, §2.
"""

import re
import unicodedata
from functools import lru_cache


def words(text: str) -> frozenset[str]:
    """The words of a text, as a set.

    Example:
        >>> sorted(words("no nos"))
        ['no', 'nos']
    """
    return frozenset(text.split())


TITLES = words(
    """adm asst atty brig capt cdr cmdr col cpl cpt dr drs ens fr gen gov hon insp lt maj messrs mgr mlle mme mr mrs ms
    mx pfc pres prof pvt rep reps rev rt sen sens sgt sr sra srta st ste supt treas"""
)
"""They stand before a name, so that the capital after them opens no sentence."""

NUMBERED = words("app art arts c cap ch chap cl eq eqs ex fig figs no nos nr op p para pp pt sc sec sect tab vol vols")
"""They stand before a number, and are words of another kind, or the end of a sentence, before anything else."""

MONTHS = words("jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed weds thu thur thurs fri sat sun")
"""Months and days; before a number, or inside a sentence."""

OTHERS = words(
    """abbr acad al approx apt assn assoc attn ave avg bldg blvd bros ca cent cf cie co conf cont corp ctr dept dist
    div ed eds eg ent esp esq est etc ext ff fl ft gal govt hrs hwy ibid ie illus inc incl int intl jr jun lb lbs
    llc ltd max mfg mfr min mins misc mt mtn mts natl obs orig oz phd pkwy pl plc ppl prev prob ps pseud pty pub qt
    quot rd recd ref resp rte sq sts tbsp tel temp tr trans tsp univ usu va viz vs yr yrs ala ariz ark calif colo conn
    fla ga ill ind kan kans ky la mass mich minn miss mo mont neb nev okla ont penn penna que tenn tex vt wash wis
    wyo"""
)
"""Everything else; a sentence may end in any of them, if what follows looks like another one."""

WORDS = words(
    """al am art ent ex fig fl gal gen hon ill ind ins int la mar mass max min mins miss mo no oz p pub ref sat sec sun
    wash"""
)
"""Abbreviations that are words too, or plain ends: only a capital or a number near makes them abbreviations."""

PREFIXES = words(
    """aero ambi ante anti arch audio auto bi bio centi co contra counter cross cyber de di e electro em ex extra geo
    hyper i inter intra macro mega meta micro mid mini mis mono multi neo neuro non omni over pan para photo poly
    post pre pro proto pseudo psycho quasi re semi socio step sub super supra techno tele trans tri ultra un under
    uni"""
)
"""Before a hyphen they are no words, and the hyphen stays: anti-war, e-mail."""

STARTERS = words(
    """a after all although an and any are as at because before but by can could did do does each even every finally
    for from further had has have he hence her here his how however i if in is it its just last later let maybe
    meanwhile moreover most my no none nor not nothing now of on once one only or our perhaps please she should
    since so some soon still such thanks that the their then there therefore these they this those though thus to
    today tomorrow under unfortunately unless until upon was we well were what when where whether which while who
    whoever why will with without would yes yesterday yet you your"""
)
"""With a capital, they open a sentence even after an abbreviation that is not a title."""

HOSTS = words(
    """ae ai ar arpa au biz blog br ca ch cl cn co com coop cz de dev dk edu ee es eu fi fm fr gov gr hk hr hu ie il
    info io ir jobs jp kr li lu lv mil mobi museum mx net nl nu nz org pe ph pl pt ro rs ru sa se sg si sk th tr tv
    tw ua uk uy ve vn wiki xyz za"""
)
"""The ends of the names of hosts, without those that are English words, as in `look at it.is that so`."""

FILES = words(
    """asp aspx avi bak bmp bz2 cfg cpp css csv dat dll dmg doc docx eps exe flv gif gz hpp htm html ico ini iso jar
    java jpeg jpg js json jsp lua m4a md mkv mov mp3 mp4 mpeg mpg msg odt ogg pdf php png pps ppt pptx psd pst py
    rar rb rpm rtf sh sql svg swf tar tex tgz tif tiff toml ts txt url vsd wav webm wma wmv wpd xhtml xls xlsx xml
    yaml yml zip"""
)
"""The ends of the names of files, again without words."""


SPACE = r"\s\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff"
"""What stands between words, as the inside of a character class: white space, and signs that print nothing."""

CLOSERS = "\"'\u2019\u201d\u00bb)]}\u300d\u300f\uff09\u3011\u300b\u3009"
"""What may follow the end of a sentence and still belongs to it."""

_MARK, _HAN = "\u00aa", "\ue000"  # how `_Shadow` writes marks (a letter) and Chinese characters (no letter)
_MODIFIERS = "\ufe0e\ufe0f\u200d\u20e3"
_APOSTROPHE = "['\u2019\u2018`\u00b4]"
_LETTER, _ALNUM = r"[^\W\d_]", r"[^\W_]"
_NUMBER = r"\d+(?:[.,:/]\d+)*+"
EMOJI = "[\u203c\u2049\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001fbff]"
_UNITS = (
    "[ap]m|k|m|b|bn|mm|cm|km|kg|mg|ml|ft|lbs?|k?hz|[mg]hz|[kmgt]b|[km]w|mph|sqft|x|yrs?|hrs?|mins?|secs?|days?|weeks?"
    "|months?|years?|hours?|minutes?"
)


def _any_of(words: frozenset[str]) -> str:
    return "|".join(sorted(words, key=lambda word: (-len(word), word)))


# The rest of an address: with brackets that close, and not with one that closes something before it.
_CLOSED = r"\((?:[^\s()]|\([^\s()]*+\))*+\)"
_REST = rf"(?:{_CLOSED}|[^\s()])*(?:{_CLOSED}|[\w/=&#])"

# In the order in which they are tried. What looks far ahead begins only where its characters begin, or else a long
# run of them would be looked through again from each.
_KINDS = (
    rf"(?<!\w)(?:https?|ftps?|file|mailto|ymsgr):{_REST}",  # addresses
    rf"(?<!\w)www\d?\.{_REST}",
    r"(?<![\w.+%-])[\w.+%-]++@\w[\w-]*+(?:\.\w[\w-]*+)*+",
    rf"(?<![\w.-])(?:\w[\w-]*+\.)+(?:{_any_of(HOSTS)})(?![\w@])(?:/{_REST})?",
    rf"(?<![\w#%&~+.-])[\w#%!&~+-]++(?:\.[\w#%!&~+-]++)*?\.(?:{_any_of(FILES)})(?!\w)",
    r"(?<![\w/.])~?/\w[\w.+~-]*+/\S*[\w/]|(?<!\w)[a-z]:\\\S*[\w\\]",  # paths
    rf"(?<![\w.])\.(?:{_any_of(FILES)})(?!\w)",
    r"(?<![\w.])[a-z]{2,}(?:\.[a-z]+(?:-[a-z]+)*+){2,}(?![\w.])",  # newsgroups
    rf"(?<![\w@])@(?:\w[\w-]*+\.)+(?:{_any_of(HOSTS)})(?![\w@])|(?<![\w@])@(?=[^\W\d])\w+",  # handles
    r"(?<![\w&#])#(?=[^\W\d_])\w+",  # hashtags
    r"[0-9#*]\ufe0f?\u20e3",  # keycaps
    r"[\U0001f1e6-\U0001f1ff]{2}",  # flags
    rf"{EMOJI}(?:[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]|\u200d{EMOJI})*",
    r"(?<![\w:;=])[<>]?[:;=][-o^'*]?(?:[)(\]\[}{|/\\*]+|[DPpOo3Xx](?!\w))(?![\w/])",  # emoticons
    rf"(?<!\S)[:;=]-?[)(]+(?={_LETTER})",
    r"(?<!\w)xD+(?!\w)|</?3+(?!\d)|(?<!\w)\^[_.-]*\^|(?<!\w)-_+-|(?<!\w)\([-o^']?[:;=](?!\w)",
    r"(?<![\w.-])\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?(?!\w)|(?<!\w)v\d+(?:\.\d+)++(?!\w)",
    rf"(?<![\w.-])\d{{1,2}}-(?:may|{_any_of(MONTHS)})-\d{{2}}(?:\d{{2}})?(?![\w-])",  # 01-Feb-02
    r"(?<![\w.-])\+?\d{1,4}(?:-\d{2,4}){2,}(?![\w-])|(?<![\w.-])\d{1,2}(?:-\d{1,2})-\d{2,4}(?![\w-])",  # dates,
    r"(?<![\w.-])x?(?:\d|\d{3})-\d{4}(?![\w-])|(?<![\w.-])\d{3}/\d{3}-\d{4}(?![\w-])",  # telephones,
    r"(?<![\w.-])\d{5}-\d{4}(?![\w-])",  # postcodes
    rf"(?<![\w.])\+?{_NUMBER}(?:st|nd|rd|th|s|{_APOSTROPHE}s)?(?!\w)",  # numbers
    rf"(?<!\w){_APOSTROPHE}\d\ds?(?!\w)|(?<!\w)\.\d+(?!\w)",
    rf"(?<![\w.]){_NUMBER}(?=(?:{_UNITS})(?!\w))",
    rf"(?<![\w.])\d+(?:[.,]\d+)++(?={_LETTER})",
    rf"(?<!\w)(?:{_LETTER}\.)+{_LETTER}(?![\w.])|(?<!\w)(?:{_LETTER}\.){{2,}}(?!\w)",  # U.S.
    r"(?<!\w)ph\.d\.?(?!\w)",
    rf"(?<!\w){_LETTER}{{1,4}}+(?:&{_LETTER}{{1,3}}(?!\w))+",  # R&D
    r"(?<!\w)w/(?:o|out)?(?!\w)|(?<![\w/])[a-z]/[a-z](?![\w/])",
    r"(?<!\w)U[SK]?\$",
    rf"(?<!\w){_APOSTROPHE}n{_APOSTROPHE}(?!\w)",  # rock 'n' roll
    rf"{_APOSTROPHE}(?:tis|twas|em|til|cause|bout|n)(?!\w)|{_APOSTROPHE}(?:s|m|d|re|ve|ll)(?!\w)",  # 'em, AT&T's
    rf"(?<![\w*]){_LETTER}++\*++{_LETTER}++(?![\w*])",  # d*mn
    rf"{_ALNUM}(?:[\w\u00ad\u200c\u200d]|{_APOSTROPHE}(?={_ALNUM})|\$(?={_LETTER}))*+",  # words
    r"[-=_~*+|<>#]{4,}+",  # rules, and what else is drawn
    r"[.\u2026]{2,}|[!?\u061f]{2,}|\.[!?\u061f]+",  # runs of signs
    r"-+>|<-+|=+>|<=+|>=|__+",
    rf'(?P<sign>[^\w\s"()\[\]{{}}{_HAN}])(?P=sign)+',
    r".",
)
_TOKEN = re.compile("|".join(_KINDS), re.DOTALL | re.IGNORECASE)

_CLITIC = re.compile(rf"(?<=[^\W\d_])(?:n{_APOSTROPHE}t|{_APOSTROPHE}(?:s|m|d|re|ve|ll))$", re.IGNORECASE)
_LONE_CLITIC = re.compile(rf"n{_APOSTROPHE}t|{_APOSTROPHE}(?:s|m|d|re|ve|ll)", re.IGNORECASE)
_NEGATED = "ai are ca could did do does had has have is should was were wo would"
_WHOLE = {
    **{f"{verb}nt": len(verb) for verb in _NEGATED.split()},
    **{word: len(word) - 1 for word in ("im", "thats", "whats", "theres", "heres", "hes", "shes", "lets", "wheres")},
    **{word: len(word) - 2 for word in ("ive", "youre", "theyre", "youve", "weve", "theyve", "youll", "theyll")},
    **dict.fromkeys(("cannot", "gonna", "wanna", "gotta", "outta", "gimme", "lemme"), 3),
    "'tis": 2,
    "'twas": 2,
}
"""Words that are two, with the length of the first."""
_ABBREVIATIONS = (TITLES | MONTHS | OTHERS) - WORDS
_CAPITALISED = TITLES | MONTHS
_BEFORE_NUMBERS = words("anti mid non post pre sub")


class _Shadow(dict[int, str]):
    """Writes marks as a letter and Chinese characters as no letter, so that one pattern serves for all scripts."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        shown = character
        if unicodedata.category(character)[0] == "M" and character not in _MODIFIERS:
            shown = _MARK
        elif code >= 0x2E80 and unicodedata.name(character, "").startswith(("CJK UNIFIED", "CJK COMPAT", "KANGXI")):
            shown = _HAN
        elif character in (_MARK, _HAN):
            shown = "x" if character == _MARK else "\ue001"
        if len(self) < 1 << 16:
            self[code] = shown
        return shown


_SHADOW = _Shadow()


def tokenise(text: str, *, hyphens: bool = True, cannot: bool = True) -> tuple[str, ...]:
    """The words of a text, in order, without the space between them.

    The text is taken as one sentence or a part of one; `spigot_nlp.data.text.raw.sentences` finds where sentences end.

    Args:
        text: Any text.
        hyphens: Whether words are cut at hyphens, as in Universal Dependencies and not in the Penn Treebank.
        cannot: Whether `cannot` is two words.

    Example:
        >>> tokenise("Mr. O'Neil can't e-mail the 15-year-old's mother (yet)...")
        ('Mr.', "O'Neil", 'ca', "n't", 'e-mail', 'the', '15', '-', 'year', '-', 'old', "'s", 'mother', '(', 'yet', \
')', '...')
    """
    return tuple(
        form for stretch in re.split(f"[{SPACE}]+", text) if stretch for form in split(stretch, hyphens, cannot)
    )


@lru_cache(maxsize=1 << 16)
def split(stretch: str, hyphens: bool = True, cannot: bool = True) -> tuple[str, ...]:
    """The tokens of a stretch of text without space in it.

    Words repeat, so remembering them saves most of the work.

    Args:
        stretch: What stands between two spaces.
        hyphens: Whether words are cut at hyphens.
        cannot: Whether `cannot` is two words.

    Example:
        >>> split("(U.S.-made,"), split("well-made", hyphens=False), split("cannot", cannot=False)
        (('(', 'U.S.', '-', 'made', ','), ('well-made',), ('cannot',))
    """
    if stretch.isascii() and stretch.isalpha():
        return tuple(_word(stretch, cannot))
    shadow = stretch if stretch.isascii() else stretch.translate(_SHADOW)
    found: list[str] = []
    for match in _TOKEN.finditer(shadow):
        start, end = match.span()
        form = stretch[start:end]
        first = shadow[start]
        if found and (first in _MODIFIERS or (first == _MARK and not shadow[start - 1].isalnum())):
            # A mark on what is no letter, or a sign that changes the one before it.
            found[-1] += form
        elif form == "." and found and is_abbreviation(found[-1]):
            found[-1] += form
        elif form[0].isalnum() or form[0] in "'\u2019":
            found += _word(form, cannot)
        else:
            found.append(form)
    return tuple(_hyphenated(found, hyphens) if "-" in found else found)


def is_abbreviation(word: str) -> bool:
    """Whether a full stop right after a word belongs to it: an initial, or one of the known abbreviations.

    Example:
        >>> is_abbreviation("Corp"), is_abbreviation("J"), is_abbreviation("corpus")
        (True, True, False)
    """
    low = word.lower()
    if low in _ABBREVIATIONS or (len(word) == 1 and word.isalpha() and word.isupper()):
        return True
    return word[:1].isupper() and low in _CAPITALISED


def is_contraction(first: str, second: str) -> bool:
    """Whether two words, written as one, were one until they were taken apart: a word and its clitic.

    Example:
        >>> [is_contraction(*pair) for pair in (("did", "n't"), ("can", "not"), ("over", "."), ("5", "km"))]
        [True, True, False, False]
    """
    if _LONE_CLITIC.fullmatch(second):
        return first[-1:].isalnum()
    return _WHOLE.get(f"{first}{second}".lower().replace("\u2019", "'")) == len(first)


def _word(form: str, cannot: bool) -> list[str]:
    """A word without its clitics, and these."""
    low = form.lower().replace("\u2019", "'")
    if low in _WHOLE and (cannot or low != "cannot"):
        cut = _WHOLE[low]
        return [form[:cut], form[cut:]]
    rest: list[str] = []
    while match := _CLITIC.search(form):
        if not match.start():
            break
        rest.insert(0, form[match.start() :])
        form = form[: match.start()]
    return [form, *rest]


def _hyphenated(tokens: list[str], hyphens: bool) -> list[str]:
    """Hyphens put back into the words that keep them."""
    joined: list[str] = []
    k = 0
    while k < len(tokens):
        form = tokens[k]
        between = (
            form == "-" and joined and k + 1 < len(tokens) and joined[-1][-1].isalnum() and tokens[k + 1][0].isalnum()
        )
        if between and (not hyphens or _is_prefix(joined[-1].lower(), tokens[k + 1])):
            joined[-1] += form + tokens[k + 1]
            k += 2
        else:
            joined.append(form)
            k += 1
    return joined


def _is_prefix(word: str, following: str) -> bool:
    return word in (PREFIXES if following[0].isalpha() else _BEFORE_NUMBERS)
