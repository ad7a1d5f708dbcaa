"""A small grammar folder, with profiles of sentences of our own."""

from pathlib import Path

RELATIONS = """parse:
  parse-id :integer :key
  i-comment :string
  p-input :string

result:
  parse-id :integer :key
  derivation :string
  mrs :string
"""
PROFILES = (
    *(f"ws{number}" for number in range(201, 215)),
    *("bcs", "tg", "tgk", "ps", "psk", "rondane", "hike", "jhk", "jhu", "rtc000", "rtc001", "cb", "sh-spec"),
)


def token(number: int, start: int, form: str, tag: str) -> str:
    end = start + len(form)
    return f'({number}, {number - 1}, {number}, <{start}:{end}>, 1, "{form}", 0, "null", "{tag}" 0.9 "XX" 0.1)'


def fell(noun: str, full_stop: str = ".") -> tuple[str, str, str]:
    """The words, the derivation and the meaning of "NOUN fell." """
    size = len(noun)
    verb, dot = size + 1, size + 5
    words = [token(1, 0, noun, "NN"), token(2, verb, "fell", "VBD"), token(3, dot, full_stop, "NN")]

    def leaf(number: int, entry: str, form: str, start: int, end: int) -> str:
        tfs = f'token [ +FORM \\"{form}\\" +FROM \\"{start}\\" +TO \\"{end}\\" ]'
        return f'({number} {entry} 0.0 {number - 2} {number - 1} ("{form}" {number} "{tfs}"))'

    subject, predicate = leaf(2, "noun_n1", noun, 0, size), leaf(3, "fall_v1", "fell.", verb, dot + len(full_stop))
    derivation = f"(root_strict (1 sb-hd_mc_c 0.0 0 2 {subject} {predicate}))"
    mrs = (
        f"[ LTOP: h0 INDEX: e2 [ e SF: prop ] RELS: < [ udef_q<0:{size}> LBL: h4 ARG0: x3 RSTR: h5 BODY: h6 ]"
        f" [ _{noun.lower().strip('⌊/⌋')}_n_1<0:{size}> LBL: h7 ARG0: x3 [ x NUM: sg ] ]"
        f" [ _fall_v_1<{verb}:{dot + 1}> LBL: h1 ARG0: e2 ARG1: x3 ] > HCONS: < h0 qeq h1 h5 qeq h7 > ]"
    )
    return " ".join(words), derivation, mrs


def grammar(folder: Path, **profiles: list[tuple[str, str, str]]) -> Path:
    """A clone of the grammar with these items; other profiles are empty."""
    from delphin.tsdb import join

    (folder / "etc").mkdir(parents=True)
    (folder / "etc/rules.hds").write_text("sb-hd_mc_c 2 1\n", encoding="utf-8")
    (folder / "LICENSE").write_text("As you like.\n", encoding="utf-8")
    for profile in PROFILES:
        place = folder / "tsdb/gold" / profile
        place.mkdir(parents=True)
        (place / "relations").write_text(RELATIONS, encoding="utf-8")
        items = list(enumerate(profiles.get(profile.replace("-", "_"), []), 10))
        parses = [join((number, "", words)) for number, (words, _, _) in items]
        results = [join((number, derivation, mrs)) for number, (_, derivation, mrs) in items]
        (place / "parse").write_text("".join(f"{row}\n" for row in parses), encoding="utf-8")
        (place / "result").write_text("".join(f"{row}\n" for row in results), encoding="utf-8")
    return folder
