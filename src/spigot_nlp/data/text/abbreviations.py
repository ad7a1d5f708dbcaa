"""Words whose full stop belongs to them, and prefixes whose hyphen does: what English tokenisers must know by heart.

All entries are lower case and without the last full stop.
"""


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
