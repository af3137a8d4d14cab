"""Nouns of the caption grammar by what can be said of them, the places that go with prepositions, and adjectives.

Many heads of compounds are also verbs (*street lights*, *bus stops*): only their place tells which they are.
"""


def _words(text: str) -> list[str]:
    return text.split()


PEOPLE = _words("""
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
""")
GROUPS = _words("group crowd couple pair bunch line row team crew class family flock herd pack")
ANIMALS = _words("""
dog dog dog puppy cat cat kitten horse pony cow bull calf goat sheep lamb pig bird duck duckling goose swan seagull gull
pigeon eagle hawk owl parrot penguin chicken rooster hen elephant giraffe zebra lion tiger leopard cheetah bear panda
monkey gorilla ape fox wolf coyote deer moose elk rabbit bunny squirrel rat mouse hamster turtle tortoise frog lizard
snake fish shark whale dolphin seal otter beaver crab butterfly bee spider camel donkey llama kangaroo buffalo hound
poodle terrier bulldog labrador retriever greyhound dachshund polar_bear teddy_bear golden_retriever sheep_dog
""")
VEHICLES = _words("""
car car truck bus train bicycle bike motorcycle scooter skateboard surfboard snowboard boat sailboat canoe kayak raft
ship ferry airplane plane jet helicopter van taxi cab tractor wagon cart carriage sled tricycle trolley tram jeep
fire_truck
dirt_bike mountain_bike jet_ski steam_engine pickup_truck police_car double_decker_bus freight_train race_car
""")
THINGS = _words("""
ball stick rope bag backpack box basket book newspaper magazine phone camera cup glass mug bottle plate bowl knife fork
spoon umbrella sign flag banner balloon toy doll kite frisbee racket racquet bat glove helmet towel blanket pillow lamp
clock vase flower bouquet candle gift microphone guitar drum violin trumpet laptop computer keyboard mouse remote
controller suitcase purse wallet bucket shovel broom hammer saw ladder pole fishing_rod hose bubble bone leash
surfboard skateboard paddle oar map poster painting picture ticket cigarette pipe torch sparkler fan net chain tire
tennis_racket tennis_ball baseball_bat soccer_ball cell_phone wine_glass coffee_cup teddy_bear stuffed_animal paper
hot_dog hair_dryer remote_control game_controller water_bottle shopping_bag plastic_bag wooden_spoon soda_can
""")
CLOTHES = _words("""
shirt shirt t-shirt jacket coat sweater hoodie vest suit tuxedo dress gown skirt uniform costume robe apron jersey hat
cap helmet hood scarf tie bandana mask headband wetsuit swimsuit bikini kimono kilt turban life_jacket baseball_cap
cowboy_hat hard_hat tank_top wedding_dress leather_jacket sweatshirt bathing_suit
""")
CLOTHES_PLURAL = _words("jeans shorts pants sunglasses glasses goggles gloves boots sandals tights trunks overalls")
FURNITURE = _words("""
table table chair bench couch sofa bed desk counter shelf stool blanket rug carpet pillow mat log rock stage platform
ledge roof floor windowsill swing hammock ladder trampoline towel grill stove plate tray cutting_board dining_table
picnic_table coffee_table park_bench wooden_bench rail railing ramp
""")
LANDMARKS = _words("""
building house church tower wall fence tree door window gate fountain statue store shop restaurant cafe barn tent
bridge lighthouse fireplace mirror refrigerator oven sink toilet bathtub television car truck bus train boat mountain
waterfall lake river pond pool ocean bush hedge stop_sign street_sign traffic_light parking_meter fire_hydrant
clock_tower
brick_wall christmas_tree stone_wall graffiti_wall vending_machine ferris_wheel crosswalk billboard
""")
FOOD = _words("""
pizza sandwich burger hamburger cake cupcake cookie donut apple banana orange strawberry carrot salad soup pasta rice
bread cheese meat chicken fish steak egg pancake waffle sandwich popcorn candy chocolate lollipop ice_cream hot_dog
pie taco burrito noodle broccoli vegetable fruit dessert meal breakfast dinner lunch snack bagel watermelon
""")
DRINKS = _words("water coffee tea beer wine juice milk soda lemonade")
STUFF = _words("food fruit vegetables soup water flowers people dirt wood snow sand books milk rice cheese hay")
CONTAINERS = _words("bowl plate cup glass bottle box basket bag tray bucket pile stack bunch slice piece can pot jar")
INSTRUMENTS = _words("""
guitar piano drum violin trumpet flute saxophone accordion cello harp banjo keyboard electric_guitar acoustic_guitar
""")
GAMES = _words("tennis baseball basketball football soccer golf volleyball hockey chess cards frisbee catch fetch")
BODY = _words("hand arm leg head foot mouth face shoulder back knee finger eye nose ear tail paw lap neck")
FEATURES = _words("hair beard mustache tattoo smile ponytail braid curl dreadlock mohawk glasses")
PARTS = _words("window door wheel roof tail wing horn stripe spot leaf flower antler handle light letter flag")

# Places by the preposition that they are said with.
PLACES = {
    "in": "park field street room kitchen bathroom water snow grass air yard garden pool lake river ocean forest wood "
    "city office restaurant store gym stadium classroom alley desert mud sand bed chair boat car crib cage pen sky "
    "rain "
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

TRICKS = _words("trick jump flip stunt handstand backflip somersault cartwheel move wheelie grind")
EVENTS = _words(
    "premiere ceremony party festival event show parade wedding match game birthday awards press_conference"
)
WAVES = _words("wave wave swell")
HOLES = _words("hole trench tunnel")
PLACE_OBJECTS = _words("street road field river bridge lawn lake valley city beach finish_line track room yard")

# Compounds whose head is also a verb, in the singular.
COMPOUNDS = _words("""
street_light traffic_light city_light christmas_light bus_stop truck_stop fruit_stand food_stand news_stand
hot_dog_stand
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
""")

COLOURS = _words(
    "red blue green yellow white black brown gray grey orange pink purple tan silver gold dark_blue light_blue"
)
ABOUT_PEOPLE = _words("""
young young old older little small tall elderly bald blond blonde beautiful handsome shirtless happy barefoot asian
middle-aged smiling bearded muscular pregnant professional excited topless female male african indian cute pretty
""")
ABOUT_ANIMALS = _words(
    "brown black white big small large little wet spotted furry fluffy wild gray tan light-colored dark-haired"
)
ABOUT_THINGS = _words("""
red blue white black green yellow large small big little old wooden metal plastic colorful open empty long tall broken
new bright striped shiny round stone brick glass dirty clean fresh huge giant tiny antique modern
""")
ABOUT_PLACES = _words(
    "busy snowy grassy sandy crowded wet empty dirt rocky green wooded large small paved city muddy sunny"
)
GERUNDS = _words("smiling running sleeping jumping laughing crying standing sitting speeding flying growling barking")
ADVERBS = _words("outside outdoors together nearby indoors happily quickly alone overhead ")
PICTURES = _words("picture photo photograph image view portrait painting illustration shot silhouette")
