"""The words of the caption grammar: nouns by what can be said of them, verbs with their frames, and prepositions.

Many third-person verbs here are also plural nouns (*pounces*, *leaps*, *skates*), and many heads of compounds are also
verbs (*street lights*, *bus stops*): only their place tells which they are.
"""

from __future__ import annotations


def _entries(text: str) -> list[list[str]]:
    """The words of each entry; entries are on lines of their own or between bars."""
    return [entry.split() for line in text.strip().splitlines() for entry in line.split("|")]


PEOPLE = """
man man man woman woman woman boy boy girl girl child kid baby toddler person person guy lady player skateboarder
surfer skier snowboarder cyclist biker skater runner jogger dancer singer musician guitarist drummer preacher priest
teacher student worker fisherman farmer chef cook waiter waitress bartender vendor officer policeman fireman
firefighter soldier guard climber hiker swimmer diver rider cowboy jockey batter pitcher catcher umpire referee goalie
golfer boxer wrestler gymnast acrobat juggler performer artist painter photographer model bride groom couple family
crowd team band mother father mom dad grandmother grandfather son daughter brother sister friend spectator tourist
shopper customer passenger driver pilot doctor nurse barber carpenter builder mechanic butcher baker gardener athlete
cheerleader coach pedestrian bystander commuter actor actress celebrity politician speaker speech clown magician monk
nun pastor sailor paddler rower kayaker canoeist paraglider skydiver parasailer lifeguard teenager adult gentleman
tennis_player baseball_player basketball_player football_player soccer_player hockey_player pop_artist fashion_model
construction_worker police_officer street_vendor street_performer rock_climber bull_rider bike_rider hip_hop_artist
""".split()
GROUPS = "group crowd couple pair bunch line row team crew class family flock herd pack".split()
ANIMALS = """
dog dog dog puppy cat cat kitten horse pony cow bull calf goat sheep lamb pig bird duck duckling goose swan seagull gull
pigeon eagle hawk owl parrot penguin chicken rooster hen elephant giraffe zebra lion tiger leopard cheetah bear panda
monkey gorilla ape fox wolf coyote deer moose elk rabbit bunny squirrel rat mouse hamster turtle tortoise frog lizard
snake fish shark whale dolphin seal otter beaver crab butterfly bee spider camel donkey llama kangaroo buffalo hound
poodle terrier bulldog labrador retriever greyhound dachshund polar_bear teddy_bear golden_retriever sheep_dog
""".split()
VEHICLES = """
car car truck bus train bicycle bike motorcycle scooter skateboard surfboard snowboard boat sailboat canoe kayak raft
ship ferry airplane plane jet helicopter van taxi cab tractor wagon cart carriage sled tricycle trolley tram jeep fire_truck
dirt_bike mountain_bike jet_ski steam_engine pickup_truck police_car double_decker_bus freight_train race_car
""".split()
THINGS = """
ball stick rope bag backpack box basket book newspaper magazine phone camera cup glass mug bottle plate bowl knife fork
spoon umbrella sign flag banner balloon toy doll kite frisbee racket racquet bat glove helmet towel blanket pillow lamp
clock vase flower bouquet candle gift microphone guitar drum violin trumpet laptop computer keyboard mouse remote
controller suitcase purse wallet bucket shovel broom hammer saw ladder pole fishing_rod hose bubble bone leash
surfboard skateboard paddle oar map poster painting picture ticket cigarette pipe torch sparkler fan net chain tire
tennis_racket tennis_ball baseball_bat soccer_ball cell_phone wine_glass coffee_cup teddy_bear stuffed_animal paper
hot_dog hair_dryer remote_control game_controller water_bottle shopping_bag plastic_bag wooden_spoon soda_can
""".split()
CLOTHES = """
shirt shirt t-shirt jacket coat sweater hoodie vest suit tuxedo dress gown skirt uniform costume robe apron jersey hat
cap helmet hood scarf tie bandana mask headband wetsuit swimsuit bikini kimono kilt turban life_jacket baseball_cap
cowboy_hat hard_hat tank_top wedding_dress leather_jacket sweatshirt bathing_suit
""".split()
CLOTHES_PLURAL = "jeans shorts pants sunglasses glasses goggles gloves boots sandals tights trunks overalls".split()
FURNITURE = """
table table chair bench couch sofa bed desk counter shelf stool blanket rug carpet pillow mat log rock stage platform
ledge roof floor windowsill swing hammock ladder trampoline towel grill stove plate tray cutting_board dining_table
picnic_table coffee_table park_bench wooden_bench rail railing ramp
""".split()
LANDMARKS = """
building house church tower wall fence tree door window gate fountain statue store shop restaurant cafe barn tent
bridge lighthouse fireplace mirror refrigerator oven sink toilet bathtub television car truck bus train boat mountain
waterfall lake river pond pool ocean bush hedge stop_sign street_sign traffic_light parking_meter fire_hydrant clock_tower
brick_wall christmas_tree stone_wall graffiti_wall vending_machine ferris_wheel crosswalk billboard
""".split()
FOOD = """
pizza sandwich burger hamburger cake cupcake cookie donut apple banana orange strawberry carrot salad soup pasta rice
bread cheese meat chicken fish steak egg pancake waffle sandwich popcorn candy chocolate lollipop ice_cream hot_dog
pie taco burrito noodle broccoli vegetable fruit dessert meal breakfast dinner lunch snack bagel watermelon
""".split()
DRINKS = "water coffee tea beer wine juice milk soda lemonade".split()
STUFF = "food fruit vegetables soup water flowers people dirt wood snow sand books milk rice cheese hay".split()
CONTAINERS = "bowl plate cup glass bottle box basket bag tray bucket pile stack bunch slice piece can pot jar".split()
INSTRUMENTS = """
guitar piano drum violin trumpet flute saxophone accordion cello harp banjo keyboard electric_guitar acoustic_guitar
""".split()
GAMES = "tennis baseball basketball football soccer golf volleyball hockey chess cards frisbee catch fetch".split()
BODY = "hand arm leg head foot mouth face shoulder back knee finger eye nose ear tail paw lap neck".split()
FEATURES = "hair beard mustache tattoo smile ponytail braid curl dreadlock mohawk glasses".split()
PARTS = "window door wheel roof tail wing horn stripe spot leaf flower antler handle light letter flag".split()

# Places by the preposition that they are said with.
PLACES = {
    "in": "park field street room kitchen bathroom water snow grass air yard garden pool lake river ocean forest wood "
    "city office restaurant store gym stadium classroom alley desert mud sand bed chair boat car crib cage pen sky rain "
    "backyard living_room parking_lot swimming_pool wheelchair hallway background distance dark sun sunset",
    "on": "beach street sidewalk road grass field court stage bench couch table floor bed track trail path hill "
    "mountain rock dock pier bridge boat bike horse skateboard surfboard wave snow ice slope ramp rail roof porch "
    "balcony swing slide ladder chair trampoline shore dirt_road baseball_field tennis_court train_track city_street",
    "at": "table counter park beach station zoo party wedding event restaurant night market airport desk bar "
    "skate_park train_station bus_stop birthday_party baseball_game red_carpet premiere ceremony",
    "through": "water snow field forest grass tunnel mud sand city park air door wood hoop crowd puddle",
    "across": "street field bridge river snow beach grass stage desert ice lawn finish_line",
    "along": "beach road path trail street river shore sidewalk coast track railroad_track dirt_path",
    "down": "street road hill slope path sidewalk ramp stair slide rail mountain river hallway snowy_hill aisle runway",
    "up": "hill stair mountain ladder tree wall rock rope ramp cliff",
    "over": "hurdle fence obstacle log ramp rail wall bar water mountain city puddle net",
    "into": "water pool lake river air ocean basket hole room building bucket",
    "under": "tree umbrella table bridge tent bed blanket water sky",
    "around": "table track corner fire campfire field yard tree pool room",
    "against": "wall tree fence building railing car door sky",
    "past": "building tree store house wall crowd window",
    "off": "cliff ramp board dock rock ledge diving_board wall",
    "toward": "camera goal ball beach water basket finish_line",
    "inside": "building room house store tent car",
    "outside": "building house store restaurant church window",
    "near": "", "by": "", "beside": "", "behind": "", "next to": "", "in front of": "", "on top of": "",
    "on the side of": "street road building hill mountain pool",
    "in the middle of": "street road field room park forest crowd",
    "at the edge of": "water cliff pool lake forest",
    "from": "tree rope ceiling branch crane bar",
    "above": "water ground city field crowd",
    "between": "", "among": "", "for": "camera picture photo bus train photograph portrait",
    "with": "", "to": "", "of": "",
}  # fmt: skip
NEAR_SOMETHING = ("near", "by", "beside", "behind", "next to", "in front of")

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
browse in through | skip down along across on | skim across over | tiptoe across | twirl in on | pirouette on | vault over
tackle in | scramble over up | slip on down | crash into on | spray from | shine on through in over | hide behind in under
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
play GAMES in on with at | throw THINGS to at into in | toss THINGS to into in | catch THINGS in with | kick THINGS on in
hit THINGS with on | swing THINGS at on | push VEHICLES down on through | pull VEHICLES down through along
push THINGS down | drag THINGS down across through | pet ANIMALS in on | feed ANIMALS in at | walk ANIMALS on down along
hug PEOPLE in on | kiss PEOPLE in at | hold PEOPLE in on | help PEOPLE on with | watch PEOPLE from on in
watch ANIMALS from in | chase ANIMALS through across in on | chase THINGS through across on | herd ANIMALS in across
bite THINGS | chew THINGS on | fetch THINGS in from | lick FOOD | lick PEOPLE on | sniff THINGS on | smell FOOD
read THINGS on in at to | cut FOOD on with | slice FOOD on with | cook FOOD in on | prepare FOOD in on | bake FOOD in
serve FOOD to at on | sell FOOD on at in | buy FOOD at in | wash VEHICLES with in | fix VEHICLES in with
repair VEHICLES in with | drive VEHICLES down on along | sail VEHICLES on in | paddle VEHICLES down in on
row VEHICLES across on in | park VEHICLES in on near | board VEHICLES at | load THINGS onto into | lift THINGS in over
raise BODY in | wave THINGS in at | fly THINGS in on at | paint LANDMARKS with | clean LANDMARKS with | climb LANDMARKS with
cross PLACES | enter LANDMARKS | leave LANDMARKS | pass LANDMARKS on | approach LANDMARKS | face LANDMARKS
photograph PEOPLE in at | photograph ANIMALS in | film PEOPLE with in | paint THINGS on with | draw THINGS on with
use THINGS in at on | hand THINGS to | show THINGS to | offer FOOD to | give FOOD to | take THINGS from | open THINGS with
close THINGS | touch BODY with | shake BODY with | brush BODY in with | scratch BODY with | rub BODY on | cover BODY with
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
overlook PLACES | surround LANDMARKS | pack THINGS in | unload THINGS from | operate VEHICLES in on | steer VEHICLES down
strum INSTRUMENTS on | tune INSTRUMENTS in | beat INSTRUMENTS with | sign THINGS for at | promote EVENTS at
race VEHICLES around on down | jump VEHICLES over off | flip THINGS in | peel FOOD with | devour FOOD on in | share FOOD in
clutch THINGS in | grip THINGS with | grasp THINGS in | hurl THINGS at | pitch THINGS to at | bat THINGS | serve THINGS to
dribble THINGS down past | chase PEOPLE around through | frame PLACES | view LANDMARKS from | shade FURNITURE | light PLACES
"""
)
TRICKS = "trick jump flip stunt handstand backflip somersault cartwheel move wheelie grind".split()
EVENTS = "premiere ceremony party festival event show parade wedding match game birthday awards press_conference".split()
WAVES = "wave wave swell".split()
HOLES = "hole trench tunnel".split()
PLACE_OBJECTS = "street road field river bridge lawn lake valley city beach finish_line track room yard".split()

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
BY_AGENT = "carried pulled pushed chased led ridden held followed watched driven surrounded fed hugged petted walked".split()

# Compounds whose head is also a verb, in the singular.
COMPOUNDS = """
street_light traffic_light city_light christmas_light bus_stop truck_stop fruit_stand food_stand news_stand hot_dog_stand
street_sign road_sign neon_sign parking_lot ski_jump ski_run ski_lift ski_slope water_slide playground_slide tire_swing
porch_swing baseball_bat cricket_bat tea_cup paper_cup wine_bottle power_plant house_plant potted_plant dance_move
dance_floor bird_feeder picture_frame window_frame bed_frame door_frame car_park skate_park amusement_park water_park
book_cover bed_cover boat_dock swim_trunk train_track race_track running_track dirt_track dog_treat paint_brush
tooth_brush hair_brush park_bench work_bench snow_bank river_bank safety_cone ice_cream_cone flower_bed truck_bed
fishing_boat sail_boat ski_pole light_pole telephone_pole metal_pole flag_pole wooden_step stone_step front_step
cell_phone pay_phone wrist_watch fire_place home_plate license_plate dinner_plate paper_plate head_dress ocean_wave
sand_castle snow_fall water_fall hand_rail metal_rail city_block wood_block ice_cube computer_mouse mouse_pad bird_bath
bubble_bath shower_curtain beach_chair lawn_chair rocking_chair dining_room living_room bed_room horse_race car_race
bike_race track_meet boxing_match tennis_match soccer_match football_match card_game video_game board_game ball_game
ice_skate roller_skate bike_ride carnival_ride horse_ride camel_ride dirt_pile rock_climb soccer_kick foot_print
hand_print finger_print stage_show talk_show light_show air_show fashion_show dog_show circus_act roof_top
""".split()

COLOURS = "red blue green yellow white black brown gray grey orange pink purple tan silver gold dark_blue light_blue".split()
ABOUT_PEOPLE = """
young young old older little small tall elderly bald blond blonde beautiful handsome shirtless happy barefoot asian
middle-aged smiling bearded muscular pregnant professional excited topless female male african indian cute pretty
""".split()
ABOUT_ANIMALS = "brown black white big small large little wet spotted furry fluffy wild gray tan light-colored dark-haired".split()
ABOUT_THINGS = """
red blue white black green yellow large small big little old wooden metal plastic colorful open empty long tall broken
new bright striped shiny round stone brick glass dirty clean fresh huge giant tiny antique modern
""".split()
ABOUT_PLACES = "busy snowy grassy sandy crowded wet empty dirt rocky green wooded large small paved city muddy sunny".split()
GERUNDS = "smiling running sleeping jumping laughing crying standing sitting speeding flying growling barking".split()
ADVERBS = "outside outdoors together nearby indoors happily quickly alone overhead ".split()
PICTURES = "picture photo photograph image view portrait painting illustration shot silhouette".split()
