"""Nouns in -ing that have a meaning of their own: a stemmer would make `parking` a kind of `park`.

They are the nouns of one word in -ing that WordNet 3.0 has found in texts. With them kept whole, `parking` is nearer
to `garage` than to `energy` [000 sec 3.1]; otherwise a wind park, which makes energy, speaks for parking.
"""

from __future__ import annotations

_WORDS = """
    accenting accounting acting advertising alerting appalling assigning awakening awarding backing banging
    bargaining bathing batting batwing bearing beating bedding beginning belching bickering bidding binding
    blackening blaring blending blessing blooming blowing bluestocking boarding boating bodybuilding boiling bombing
    booking bootlegging borrowing bouncing bowstring bracing breaking breathing breeding bricklaying briefing
    bringing broadcasting broadening brooding brushing building burning buying calving camping caning carping
    carving catching ceiling centering chattering cheering christening clamoring clangoring clapping cleaning
    cleansing clearing clerking clocking closing clothing clowning coaching coating coming communicating commuting
    compiling composing compounding conditioning cooking cooling coping counseling counting coupling cowling
    cracking creaking croaking crossing cushioning cutting dancing daring darling dawning dealing debunking
    deepening defining desynchronizing detecting diagnosing diving dodging doweling drafting drawing drinking
    drugging ducking dwelling dyeing eating ebbing embracing ending engineering equipping evening exclaiming
    exercising facing faltering farming feeding feeling fencing fielding fighting figuring filing filling filming
    financing finding fingering fingerprinting finishing firing fishing fixing flashing fledgling flooring flowering
    flowing focusing following footing foraging foreboding forecasting forwarding fostering founding framing
    freezing gambling gardening gassing gathering gelding giving gleaming golfing grading graining grappling
    grasping grating greeting grinding grinning grouping growing growling grumbling guessing gulping hamming
    handling handshaking handwriting happening hatching heading healing hearing heating heaving hiding hissing
    holding hollering housebreaking housekeeping housing howling hugging humming hunting imaging impinging indexing
    inkling inning integrating interpreting investigating jabbing jerking journeying keeping killing kipling kissing
    knocking landing landscaping lashing launching laundering laying leaping learning leavening leaving lecturing
    lending lengthening lessening lettering licking lighting lightning liking living loading lodging logging longing
    looking making malingering manufacturing marbleizing marching marketing marking masking mating matting meaning
    measuring meddling meeting melting merchandising merging merrymaking microphoning mingling mining misgiving
    mistaking misunderstanding mixing molding moneymaking monitoring morning murmuring musing muttering narrowing
    nestling nothing numbering nursing offering offspring opening ordering outing overeating pacing packaging
    packing paging painting paneling panting parking parting passing pealing pelting petting philosophizing phrasing
    picturing pinning pitching planning planting playacting playing plodding plowing plumbing popping pounding
    preaching pressing pricing priming primping printing proceeding processing programming publishing pulling
    purging pushing quadrupling questioning quickening racing railing raising rallying rating rationing rattling
    reading rearing reasoning rebuilding reckoning reclining recording reducing refocusing refueling rehearing
    rejoicing reliving rendering replacing reporting retailing retraining ringing ripening roaring roleplaying
    rooting ruling running rushing rustling sailing sampling sapling sassing saving schooling scoffing scouring
    scouting scraping screaming screeching scrubbing sealing seedling selling sending sensing setting severing
    sewing shading shaking shaping shaving shielding shining shipbuilding shipping shirking shivering shoestring
    shooting shopping shouting showing shrieking shuffling siding sightseeing signaling singing sinking sinning
    sitting skimming skulking sleeping slinging sloganeering slowing smiling smoking sniveling snoring soaking
    softening soldiering somersaulting spacing speaking spelling spending splicing sprawling spraying spring
    sprinkling sputtering squatting staining standing starting stealing stewing stiffening stirring stocking
    straining stretching string striving stumping suffering supporting surveying swathing swearing sweeping swelling
    swimming switching talking tampering tapping teaching teasing tending tenting testing thanksgiving thawing
    thieving thinking threshing throbbing thumping tightening timing toweling tracing trading training trampling
    transmitting trapping trembling trimming trucking tubing tumbling tuning turning twinkling twisting typewriting
    typing underling understanding undertaking undoing unfolding unloading uplifting uprising urging vacationing
    vaccinating vending vomiting voting wailing waiting waning warehousing warmongering warning washing watching
    waterproofing waxing weakening weaning wedding weeping weighting wetting whipping whirring whistling willing
    winning wishing withholding woodgraining wording wrestling writing wrongdoing wyoming yearning yelling yelping
    zoning
"""

ING_NOUNS = frozenset(_WORDS.split())
