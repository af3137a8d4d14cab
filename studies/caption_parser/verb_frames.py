"""Verbs of the caption grammar with what follows them; many are also plural nouns (*pounces*, *leaps*, *skates*)."""


def _entries(text: str) -> list[list[str]]:
    """The words of each entry; entries are on lines of their own or between bars."""
    return [entry.split() for line in text.strip().splitlines() for entry in line.split("|")]


# Verbs without an object: their prepositions, and "+" before a particle or adverb that may follow.
INTRANSITIVE = _entries(
    """
sit on in at by near beside under next_to in_front_of +down | stand on in by near behind beside next_to in_front_of at
walk on along down across through past in toward +away +by | run through along across on in down toward past +around
jump over off into on in across +up | leap over off into across through +up | pounce on | preach to in at on
lie on in under by +down | lay on in under by +down | sleep on in under by | rest on in under against
nap on in under | lounge on in by at | relax on in by at | recline on in | perch on | crouch on in by behind +down
kneel on in by beside +down | squat on in by +down | lean against on over | pose for in on with by near in_front_of
smile at for | laugh at with in | look at into through over +up +down +on +out | stare at into | gaze at into
peer into through at over | glance at | wave at to from | point at to toward | gesture to toward at
shout at | yell at into | talk to with on in | speak to with into at on | chat with at in | sing on into in with
dance on in with at +around | perform on at in for | play in on with at by +together | practice in on at
fight with in on over | wrestle in on with | race down on along around across past | ride on down along through in
skate on down along in around across | skateboard down on in along | surf on in through | ski down on through across
snowboard down on | sled down on | slide down on into across | swing from on at | climb up on over into
crawl on through under across into | hike on along up through in | jog on along through in past | sprint down across on
stroll along down through on in past | march down in through along | wander through in around on
bike down along on through | cycle along down on through | pedal down along on | drive down along on through past
sail on in across through past | paddle in on down through across | row across on in down | float on in down above
drift on in down | swim in through across under | dive into off for | splash in through | wade in through into
fish on in from off | camp in by near | cook in on over at | work on in at with | shop in at for | wait for at on in
travel down along on through | speed down along around past | fly over through in above across | soar over through above
hover over above in near | land on in at | glide over on across down | flap in over | dash across through down
trot across along through on | gallop across through along on | graze in on near by | roam in through
feed on in at | drink from out_of in | eat from at in on with | chew on | sniff at around | bark at in | howl at
growl at | hop over on across | bounce on off in | tumble down on | flip in over off | spin in on around
roll on in down across | fall off on into down | trip over on | stumble over | step on over into out_of
lunge at toward for | reach for into toward +up +out | grab at | grasp at | cling to | hang from on in over +out
dangle from | balance on | bend over +down +over | stretch on in before | stoop over | study in at | read in on by to
write on in at | draw on | paint on | pray in at before | meditate on in | march along | parade down through
celebrate with in at after | cheer for at in | gather around in on at +together | huddle under around in +together
line along +up | stop at in on by | park in on by at near | turn on around toward +around | move down through along
emerge from | exit from | enter into | arrive at in on | return from to | head to toward down into | wash in at
bathe in | shower in | sunbathe on by | tan on | snack on | feast on | dine at in | sip from at | grill on in
browse in through | skip down along across on | skim across over | tiptoe across | twirl in on | pirouette on
vault over
tackle in | scramble over up | slip on down | crash into on | spray from | shine on through in over
hide behind in under
peek out_of over through around | watch from on in by | listen to in | attend to | focus on | concentrate on
participate in | compete in on at | train in on for | exercise in on | stretch on | rehearse in on | act in
appear on in at | arrive at for | blow on in | drip from on | grow in on near by | bloom in | tower over
"""
)

# Verbs with an object: "what" names a list of nouns here; prepositions that may follow the object.
TRANSITIVE = _entries(
    """
hold THINGS in with | hold FOOD in | carry THINGS on in down across | wear CLOTHES | ride VEHICLES down on along through
ride ANIMALS on in through | eat FOOD at in on with | drink DRINKS from at in | play INSTRUMENTS on in for
play GAMES in on with at | throw THINGS to at into in | toss THINGS to into in | catch THINGS in with
kick THINGS on in
hit THINGS with on | swing THINGS at on | push VEHICLES down on through | pull VEHICLES down through along
push THINGS down | drag THINGS down across through | pet ANIMALS in on | feed ANIMALS in at | walk ANIMALS on down along
hug PEOPLE in on | kiss PEOPLE in at | hold PEOPLE in on | help PEOPLE on with | watch PEOPLE from on in
watch ANIMALS from in | chase ANIMALS through across in on | chase THINGS through across on | herd ANIMALS in across
bite THINGS | chew THINGS on | fetch THINGS in from | lick FOOD | lick PEOPLE on | sniff THINGS on | smell FOOD
read THINGS on in at to | cut FOOD on with | slice FOOD on with | cook FOOD in on | prepare FOOD in on | bake FOOD in
serve FOOD to at on | sell FOOD on at in | buy FOOD at in | wash VEHICLES with in | fix VEHICLES in with
repair VEHICLES in with | drive VEHICLES down on along | sail VEHICLES on in | paddle VEHICLES down in on
row VEHICLES across on in | park VEHICLES in on near | board VEHICLES at | load THINGS onto into | lift THINGS in over
raise BODY in | wave THINGS in at | fly THINGS in on at | paint LANDMARKS with | clean LANDMARKS with
climb LANDMARKS with
cross PLACES | enter LANDMARKS | leave LANDMARKS | pass LANDMARKS on | approach LANDMARKS | face LANDMARKS
photograph PEOPLE in at | photograph ANIMALS in | film PEOPLE with in | paint THINGS on with | draw THINGS on with
use THINGS in at on | hand THINGS to | show THINGS to | offer FOOD to | give FOOD to | take THINGS from
open THINGS with
close THINGS | touch BODY with | shake BODY with | brush BODY in with | scratch BODY with | rub BODY on
cover BODY with
spray PEOPLE with | splash PEOPLE in with | lead ANIMALS through down along | follow PEOPLE down through along
guide ANIMALS through | tackle PEOPLE on during | block THINGS with | guard LANDMARKS | balance THINGS on
juggle THINGS in on | roll THINGS down across | pour DRINKS into from | sip DRINKS from at in | stir FOOD in with
fill CONTAINERS with | decorate FOOD with | light THINGS on with | smoke THINGS on in | check THINGS in
study THINGS at | examine THINGS with | inspect VEHICLES in | display THINGS in on | sport CLOTHES in
model CLOTHES on in at | perform TRICKS on in | do TRICKS on off in | jump THINGS over | grind LANDMARKS on with
attempt TRICKS on | attend EVENTS in with | present EVENTS at | host EVENTS in | celebrate EVENTS with in
greet PEOPLE at in | address PEOPLE at | lead PEOPLE down through | teach PEOPLE in | coach PEOPLE on | train ANIMALS in
tie THINGS around to | hang THINGS on from | place THINGS on in | set THINGS on | pick FOOD from in | dig HOLES in with
shovel STUFF off from | plow PLACES with | mow PLACES in | surf WAVES in on | catch WAVES on in | ride WAVES on in
overlook PLACES | surround LANDMARKS | pack THINGS in | unload THINGS from | operate VEHICLES in on
steer VEHICLES down
strum INSTRUMENTS on | tune INSTRUMENTS in | beat INSTRUMENTS with | sign THINGS for at | promote EVENTS at
race VEHICLES around on down | jump VEHICLES over off | flip THINGS in | peel FOOD with | devour FOOD on in
share FOOD in
clutch THINGS in | grip THINGS with | grasp THINGS in | hurl THINGS at | pitch THINGS to at | bat THINGS
serve THINGS to
dribble THINGS down past | chase PEOPLE around through | frame PLACES | view LANDMARKS from | shade FURNITURE
light PLACES
"""
)
# Participles after a noun or "is", and what follows them.
PASSIVE = _entries(
    """
parked in on by near next_to in_front_of at along | covered in with | filled with | surrounded by | made of from
seated at on in next_to | dressed in as | topped with | loaded with onto | decorated with for in | lined with along
attached to | tied to on around | painted on with | mounted on to | stacked on in next_to | displayed in on
shown in on | pictured in on with | seen through from in | located in on near by | placed on in next_to
perched on | gathered around in at | lined +up along | piled on in | wrapped in around | hung on from | built on in near
placed next_to | docked at in | reflected in | crowded with | lit +up with | set +up on in | laid +out on
stuffed with | sprinkled with | served on with in | arranged on in | strapped to | chained to | bundled +up in
"""
)
BY_AGENT = (
    "carried", "pulled", "pushed", "chased", "led", "ridden", "held", "followed", "watched", "driven", "surrounded",
    "fed", "hugged", "petted", "walked",
)  # fmt: skip
