"""Closed classes of predicates: which of them say what a photo shows, and which need more words than they have."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Verbs that say what something is, not where it is or what it does, and that of being photographed.
STATES = _words("be become seem pose")
#: Prepositions and conjunctions of time, cause, purpose and likeness, and "of", which says what a thing is.
NOWHERE = _words(
    """about after as because before concerning despite during except for if like of per regarding since than though
    unlike until via when where while whilst without"""
)
#: Prepositions that say nothing of a place without their verb: "(looking) at a dog", "(jumping) over a creek".
DIRECTIONS = _words("across at away back down from into off onto out over past through to toward towards up")

#: Verbs of which a preposition says where the subject is, so that it can stand without them: "(sitting) on a bench",
#: but not "(looking) in a mirror", "(working) on a pot".
PLACING = _words(
    """balance bike canoe crouch dance drive float gather graze hang hike huddle jog jump kayak kayake kneel land lay
    lie live march nap paddle park perch perform play race raft relax rest ride rollerblade row run sail sing sit skate
    skateboard ski sled sleep slide snowboard splash squat stand stop stroll sunbathe surf swim swing travel wade wait
    walk wrestle"""
)
#: Verbs that take no object: where one has it, a preposition is missing ("man sits table").
OBJECTLESS = _words(
    """come crouch gather gaze go kneel laugh lay lean lie listen live look peek peer perch pose rest sit sleep smile
    stand stare talk wait work"""
)
#: What a predicate of several words may begin with, besides verbs, and the only ones of these that are mined.
UNVERBS = _words(
    """ahead alone along around at available away back busy by close deep down due far for from full hard in inside
    instead joint near next off on out outside over ready somewhere together up visible"""
)
PHRASES = frozenset({"next to", "in front of", "on top of", "outside of", "inside of", "close to"})
OWNING = _words("with have")
