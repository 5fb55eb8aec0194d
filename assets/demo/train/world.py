"""Questions about the world, to which the guide's answer is that it does not know: many kinds, so
that what is not about the app is told from what is."""

from __future__ import annotations

import random

from .phrasing import written

WRITTEN = 0.3  # the share of questions.toml

SLOTS: dict[str, tuple[str, ...]] = {
    "country": tuple("France Italy Spain Japan China India Brazil Canada Egypt Kenya Norway Poland Greece "
                     "Turkey Mexico Chile Cuba Ireland Russia Sweden Austria Portugal Peru Iran Nepal".split()),
    "city": tuple("Berlin Lagos Lima Oslo Cairo Delhi Quito Tokyo Paris Rome Seoul Accra Madrid Perth London "
                  "Vienna Boston Sydney Moscow Prague Athens Dublin Bern Milan Lyon Chicago".split()),
    "person": ("Einstein", "Napoleon", "Mozart", "Shakespeare", "Cleopatra", "Newton", "Picasso", "Gandhi",
               "Marie Curie", "Beethoven", "Caesar", "Lincoln", "Darwin", "Bach", "Elvis", "Madonna", "Messi",
               "the pope", "the queen", "the president", "my neighbour", "Columbus", "Plato", "Goethe"),
    "animal": tuple("dog cat horse cow lion tiger elephant whale shark eagle snake spider frog bee ant wolf "
                    "rabbit mouse camel giraffe penguin owl dolphin crocodile".split()),
    "animals": tuple("dogs cats horses cows lions tigers elephants whales sharks eagles snakes spiders frogs "
                     "bees ants wolves rabbits camels penguins owls dolphins birds fish".split()),
    "food": ("pizza", "soup", "bread", "rice", "pasta", "a cake", "apple pie", "curry", "pancakes", "sushi",
             "a salad", "eggs", "fish", "potatoes", "a steak", "jam", "cheese", "chocolate", "tea", "noodles"),
    "thing": ("a car", "a bicycle", "a house", "a phone", "a washing machine", "a camera", "a guitar", "a piano",
              "a lamp", "a boat", "a plane", "a rocket", "a watch", "a fridge", "a television", "an umbrella",
              "a chair", "a printer", "a tent", "a train", "a bridge", "a telescope", "a radio", "a sofa"),
    "science": ("gravity", "photosynthesis", "evolution", "quantum physics", "electricity", "magnetism", "DNA",
                "relativity", "black holes", "volcanoes", "earthquakes", "rainbows", "tides", "lightning",
                "atoms", "the big bang", "inflation", "democracy", "climate change", "the brain", "sleep",
                "vaccines", "antibiotics", "nuclear power", "the stock market", "philosophy", "calculus"),
    "place": ("the moon", "the sun", "Mars", "Mount Everest", "the Nile", "the Eiffel tower", "the Great Wall",
              "the ocean", "the north pole", "the Amazon", "Venus", "the Alps", "the Sahara", "Jupiter"),
    "event": ("the French revolution", "the first world war", "the moon landing", "the Olympics", "the world cup",
              "the fall of the Berlin wall", "the last election", "the battle of Waterloo", "Christmas", "Ramadan",
              "the next full moon", "summer", "the plague", "the cold war"),
    "body": ("my back", "my head", "my tooth", "a cold", "the flu", "a fever", "my knee", "a cough", "my stomach",
             "high blood pressure", "an allergy", "a burn", "my eyes", "hay fever"),
    "program": ("Word", "Excel", "Windows", "Linux", "Photoshop", "Chrome", "Firefox", "WhatsApp", "Gmail", "Outlook",
                "my phone", "an iPhone", "Android", "Facebook", "YouTube", "Zoom", "PowerPoint", "my TV", "Spotify",
                "Instagram", "a Mac", "vim", "git", "Netflix", "my router", "Acrobat", "Blender", "Teams"),
    "work": ("delete a file", "make a backup", "turn on dark mode", "change the language", "make a table", "undo a change",
             "copy a text", "print a page", "search for a word", "open the settings", "export a file", "reset my password",
             "install an update", "record a video", "change the font size", "share a picture", "block a person",
             "mute a chat", "delete a message", "stop a video", "start a new document", "add a user", "find my files",
             "use shortcuts", "free memory", "speed it up", "turn off the sound", "log out", "make a chart"),
    "job": ("a doctor", "a pilot", "a lawyer", "a teacher", "a nurse", "a chef", "an actor", "a programmer", "a judge"),
    "sport": ("football", "tennis", "chess", "golf", "rugby", "boxing", "hockey", "poker", "cricket", "skiing"),
    "tongue": ("French", "Latin", "Russian", "Arabic", "Italian", "Greek", "Hindi", "Korean", "Dutch", "Turkish"),
    "word": ("love", "house", "freedom", "water", "friend", "tree", "night", "happiness", "window", "bread", "good morning"),
    "work_of_art": ("Faust", "the Odyssey", "the Bible", "Star Wars", "Titanic", "Macbeth", "Moby Dick", "Don Quixote",
                    "Yesterday", "the ninth symphony", "the Matrix", "Dracula", "Frankenstein", "Carmen"),
    "money": ("gold", "shares", "bitcoin", "a house", "bonds", "oil", "dollars", "euros", "a fund", "land"),
    "noun": tuple("apple river stone mirror garden castle needle pencil ladder rabbit ticket candle desert feather "
                  "hammer jungle marble pillow tunnel bottle carpet button kettle jacket mango walnut basket "
                  "dragon rocket violin cloud pepper glass shoe spoon king wizard poem sonnet comet galaxy lawyer "
                  "tax bank law visa mortgage virus vitamin muscle engineer island harbour market school".split()),
    "year": tuple(str(year) for year in range(1000, 2035, 7)),
    "unit": ("miles", "kilograms", "pounds", "inches", "litres", "degrees", "hours", "acres"),
    "made": ("the telephone", "the light bulb", "the wheel", "paper money", "the radio", "the internet", "the computer",
             "penicillin", "the steam engine", "the zip", "television", "the bicycle", "glass", "gunpowder"),
}  # fmt: skip
NEAR = (
    "what is the temperature of {thing}", "what temperature has {place}", "at what temperature do I cook {food}", "which temperature is right for {food}",
    "how do I get a passport in {country}", "my passport is lost in {city}", "renew a passport", "do I need a passport for {country}",
    "a recipe for {food} please", "which recipe uses {food}", "the best recipe of {country}", "how do I sow a seed", "when do I plant seeds",
    "how good is the memory of {animals}", "how do I train my memory", "I lost my memory", "memory games for children", "I lost the key of my house",
    "which key opens {thing}", "what key is {work_of_art} in", "what is the theme of {work_of_art}", "theme park in {city}", "the menu of a restaurant in {city}",
    "what is on the menu today", "a record by {person}", "the world record in {sport}", "who holds the record", "a pair of shoes", "how many pairs of shoes do I need",
    "a round of {sport}", "how many rounds has a fight", "a block of ice", "how heavy is a block of stone", "name a {animal}", "what should I call my {animal}",
    "what is the name of the king of {country}", "name the president of {country}", "name three cities in {country}", "what does the name {person} mean",
    "what does the word {word} mean", "define {word}", "what is the meaning of {word}", "spell {word}", "the language of {country}", "which language is spoken in {city}",
    "a paper on {science}", "who wrote about {science}", "who wrote the book about {person}", "who made {thing}", "who made the world", "who built {place}",
    "the context of {event}", "how long did {event} take", "the search for {place}", "search for gold", "where do I copy a key", "copy my {animal}",
    "a token for the bus", "free museums in {city}", "is the museum in {city} free", "a license to drive", "how do I get a driving license in {country}",
    "the engine of {thing}", "what engine has {thing}", "how do I clean a window", "the web of spiders", "crash of the stock market", "why did the plane crash",
    "the speed of a {animal}", "how fast is {thing}", "how many tokens do I need for the casino", "draft a law", "draft beer in {city}", "hidden treasures",
    "the target of {event}", "hit the target in {sport}", "sample a wine", "greedy people", "why are people greedy", "settings of my {noun}", "switch off {thing}",
    "how do I stop {animals}", "how do I stop smoking", "stop the rain", "new shoes", "open a bank account", "open the door", "close the window in my room",
    "how do I delete my account at {program}", "how do I attach {thing} to a wall", "export goods to {country}", "import {food} from {country}", "print money",
    "share my car", "save money", "how do I save water", "a copy of {work_of_art}", "edit a film", "who sings {work_of_art}", "dark chocolate", "light bulbs",
    "how large is a {animal}", "how small is an atom", "zoom lens", "the font of a church", "download a film", "how do I download music from {program}",
    "how much memory has {program}", "how much disk space has {program}", "which graphics card is best for games", "which computer should I buy",
    "is {program} open source", "who invented {program}", "how do I write an API in Java", "which server should I rent", "what is a mutex",
    "how do I center a div", "explain pointers in C", "what is the best programming language", "fix my code", "what is Kubernetes", "write a website",
    "is {person} a human", "who is talking to {person}", "what can {person} do", "help my {animal}", "help me with my taxes", "help me lose weight",
)  # fmt: skip
"""With words that the guide uses too, about something else."""
FORMS = (
    "what is a {noun}", "explain what a {noun} is", "tell me about the {noun}", "where do I get a {noun}", "what is {thing}",
    "what colour is a {noun}", "how do I make a {noun}", "why is a {noun} called that", "who has the best {noun}", "what is {food}",
    "who is the president of {country}", "what is the capital of {country}", "what is the population of {city}",
    "what is the weather in {city}", "will it rain in {city}", "how far is it to {city}", "how do I get to {city}",
    "where is {city}", "where is {country}", "what language do they speak in {country}", "what time is it in {city}",
    "what is the best hotel in {city}", "book a flight to {city}", "is {city} bigger than {city}", "what should I see in {city}",
    "who rules {country}", "who is the king of {country}", "which money do they use in {country}", "how big is {country}",
    "how old is {person}", "who was {person}", "who is {person}", "when was {person} born", "when did {person} die",
    "where does {person} live", "how tall is {person}", "is {person} married", "what did {person} do", "tell me about {person}",
    "why do {animals} sleep", "what do {animals} eat", "how long do {animals} live", "how fast is a {animal}",
    "can {animals} swim", "do {animals} bite", "what is the largest {animal}", "how do I keep a {animal}", "my {animal} is ill",
    "are {animals} clever", "why do {animals} make noise", "how many legs has a {animal}", "what is a {animal}",
    "how do I cook {food}", "how do I make {food}", "a recipe for {food}", "is {food} healthy", "how many calories has {food}",
    "what goes with {food}", "where does {food} come from", "how long does {food} keep", "give me a recipe with {food}",
    "how do I repair {thing}", "how does {thing} work", "where can I buy {thing}", "what is the price of {thing}",
    "who invented {made}", "when was {made} invented", "which {sport} team is the best", "how much is {thing}",
    "how do I clean {thing}", "should I buy {thing}", "how heavy is {thing}", "what is the best brand of {thing}",
    "explain {science}", "what is {science}", "how does {science} work", "why is there {science}", "tell me about {science}",
    "who discovered {science}", "is {science} dangerous", "write an essay about {science}", "summarise {science}",
    "how far is {place}", "how old is {place}", "how hot is it on {place}", "how high is {place}", "what is {place} made of",
    "is there life on {place}", "who was the first on {place}", "how big is {place}", "what is the distance to {place}",
    "when was {event}", "who won {event}", "what happened at {event}", "why was there {event}", "when is {event}",
    "how do I cure {body}", "what helps with {body}", "should I see a doctor for {body}", "why do I have {body}",
    "what is wrong with {body}", "which medicine is good for {body}", "give me medical advice about {body}",
    "how do I {work} in {program}", "how can I {work} with {program}", "where do I {work} in {program}", "{program}: {work}",
    "is {program} free", "how do I install {program}", "why is {program} so slow", "who made {program}", "{work} in {program}",
    "my {program} does not start", "where are the settings of {program}", "what does {program} cost", "how do I close {program}",
    "how do I become {job}", "how much does {job} earn", "what does {job} do", "I need {job}", "is it hard to be {job}",
    "what are the rules of {sport}", "who is the best at {sport}", "how do I learn {sport}", "who won in {sport} yesterday",
    "how do I say {word} in {tongue}", "translate {word} into {tongue}", "what does {word} mean in {tongue}", "teach me {tongue}",
    "is {tongue} hard to learn", "what is the plural of {word}", "what rhymes with {word}", "what is the opposite of {word}",
    "who wrote {work_of_art}", "what is {work_of_art} about", "is {work_of_art} good", "quote {work_of_art}",
    "summarise {work_of_art}", "should I invest in {money}", "what is the price of {money}", "will {money} go up",
    "how do I buy {money}", "what happened in {year}", "who won the cup in {year}", "who ruled in {year}", "what was invented in {year}",
    "convert {unit} to {unit}", "how many {unit} is that", "what day is it today", "what time is it", "what is the date",
    "what is the meaning of life", "recommend a book", "recommend a film", "which film should I watch", "what is in the news",
    "what is love", "is there a god", "am I ugly", "should I marry", "why is the sky blue", "why is the sea salty",
    "how do planes fly", "how do I lose weight", "how do I get rich", "how do I sleep better", "what is my horoscope",
    "do my homework", "write my CV", "write a speech for a wedding", "write a business plan", "plan my holiday",
    "give me legal advice", "how do I pay less tax", "how do I find a job", "how do I make friends", "what should I wear",
    "what should I eat today", "who should I vote for", "what is the best car", "what is the fastest car", "who is the richest man",
    "what is the longest river", "what is the highest mountain", "what is the smallest country", "which planet is the largest",
    "how many people live on earth", "how many stars are there", "how old is the earth", "what is the speed of sound",
    "what is pi", "what is the square root of {year}", "solve x^2 = {year}", "what is a prime number", "prove the theorem of Pythagoras",
    "what is {year} times {year}", "calculate the area of a circle", "how do I calculate interest", "what is a good gift",
    "how do I grow tomatoes", "how do I train my {animal}", "when do {animals} sleep", "how do I fix a leak", "how do I paint a wall",
    "how do I change a tyre", "how do I play {sport}", "play some music", "set an alarm", "call my mother", "send an email to {person}",
    "turn on the light", "order {food}", "find a restaurant in {city}", "navigate to {city}", "what is on television",
    "open {program}", "who is your favourite singer", "what is your favourite {animal}", "do you like {food}", "do you love me",
    "can I marry you", "do you have feelings", "do you dream", "do you believe in god", "are you alive",
)  # fmt: skip
FOREIGN: dict[str, tuple[str, ...]] = {
    "de": ("Wer ist {person}?", "Was ist die Hauptstadt von {country}?", "Wie ist das Wetter in {city}?", "Wie spät ist es?",
           "Wie koche ich {food}?", "Wer hat {work_of_art} geschrieben?", "Wie weit ist es nach {city}?", "Was passierte im Jahr {year}?",
           "Wie alt ist {person}?", "Was ist der Sinn des Lebens?", "Wo liegt {country}?", "Erzähl mir etwas über {person}",
           "Wie viele Menschen leben in {city}?", "Wer regiert {country}?", "Was soll ich heute essen?", "Warum ist der Himmel blau?",
           "Was kostet ein Auto?", "Wie backe ich Brot?", "Regnet es morgen?", "Wie groß ist der Mond?"),
    "es": ("¿Quién es {person}?", "¿Cuál es la capital de {country}?", "¿Qué tiempo hace en {city}?", "¿Qué hora es?",
           "¿Cómo cocino {food}?", "¿Quién escribió {work_of_art}?", "¿A qué distancia está {city}?", "¿Qué pasó en {year}?",
           "¿Qué edad tiene {person}?", "¿Cuál es el sentido de la vida?", "¿Dónde está {country}?", "Háblame de {person}",
           "¿Cuánta gente vive en {city}?", "¿Quién gobierna {country}?", "¿Qué como hoy?", "¿Por qué es azul el cielo?",
           "¿Cuánto cuesta un coche?", "¿Cómo hago pan?", "¿Llueve mañana?", "¿Qué tamaño tiene la Luna?"),
    "fr": ("Qui est {person} ?", "Quelle est la capitale de {country} ?", "Quel temps fait-il à {city} ?", "Quelle heure est-il ?",
           "Comment cuisiner {food} ?", "Qui a écrit {work_of_art} ?", "À quelle distance est {city} ?", "Que s'est-il passé en {year} ?",
           "Quel âge a {person} ?", "Quel est le sens de la vie ?", "Où est {country} ?", "Parle-moi de {person}",
           "Combien de gens vivent à {city} ?", "Qui dirige {country} ?", "Que manger aujourd'hui ?", "Pourquoi le ciel est-il bleu ?",
           "Combien coûte une voiture ?", "Comment faire du pain ?", "Va-t-il pleuvoir demain ?", "Quelle est la taille de la Lune ?"),
    "zh": ("{person}是谁？", "{country}的首都是哪里？", "{city}的天气怎么样？", "现在几点？", "怎么做{food}？", "谁写了{work_of_art}？",
           "到{city}有多远？", "{year}年发生了什么？", "{person}多少岁？", "人生的意义是什么？", "{country}在哪里？", "告诉我{person}的事",
           "{city}有多少人？", "谁统治{country}？", "今天吃什么？", "天为什么是蓝色的？", "汽车多少钱？", "怎么做面包？", "明天下雨吗？", "月亮有多大？"),
}  # fmt: skip


ITEMS = tuple(
    "airport alarm apartment apron army artist attic aunt avocado axe baby bakery balcony balloon bandage barn bath beach beard bed beer "
    "belt bill birthday blanket blood bone boots boss bowl boy brush bucket bug burger bus butter cafe cake calendar camel camp candy cap "
    "carrot cat cattle ceiling cellar cheese child choir church cigar cinema circus class clinic clothes coach coat coffee coin college comb "
    "concert cook corn couch cousin cow crown cup cupboard curtain daughter dentist desk diet dinner dish doctor doll donkey drum duck dust "
    "ear egg elbow engineer essay exam factory family farm fashion father fence festival field finger fire fireplace flag flat flower fog "
    "fork fridge friend frog fruit funeral fur garage garlic gate ghost gift girl glove goat goose grape grass guest gun hair ham hand hat "
    "hay heart heating helmet hill holiday honey hose hospital hotel husband ice iron jeans jelly job judge juice jungle kitchen kite knee "
    "knife knot lake lamb lamp lawn leaf leg lemon letter library lion lip lips luggage lunch magazine maid mail marriage meal meat medicine "
    "milk miller mirror mud museum mushroom nail neck nest nose nurse nut oak oil onion orchestra oven owner paint palace pan pants parcel park "
    "party pear pen penguin pension petrol pharmacy phone piano picnic pie pig pillow pine pipe plane planet plant plate plumber pocket police "
    "pond pool potato pottery priest prince prison pub puppy queen rain raincoat razor rent rice ring river roof rope rose rug sail salad salary "
    "salt sandwich sauce scarf scissors sea shampoo sheep shelf ship shirt shoe shower silk sister skin skirt sky sleeve snow soap sock sofa soil "
    "soldier son soup spice spider sponge stairs stamp star statue stomach stove straw sugar suit sun swan sweater sword table tail tailor taxi "
    "teacher tent theatre throat tiger toast toe toilet tomato tongue tooth towel toy tractor traffic train tree truck uncle uniform vase village "
    "vinegar wall wallet wardrobe wasp watch waterfall wedding whale wheat wife wind wine wing winter wolf wood wool yacht yogurt zebra zoo".split()
)
DEEDS = tuple(
    "adopt apologise bake bathe bite bleed boil borrow brush bury buy carve catch celebrate chop climb comb cook cough cross cut dance decorate dig "
    "dive divorce draw dress drink drive dry dye eat embroider exercise fall farm feed fight fish fly fold forgive fry greet grill grow hang harvest "
    "heal heat hide hike hire hunt invite iron jog juggle jump kiss knit laugh lift marry massage melt milk mix mow negotiate paint park peel pick plant "
    "plaster play pour pray quarrel raise rent repair ride roast row sail saw sell sew shave shoot sing skate ski sketch sleep smell smile smoke sneeze "
    "spend stitch swim tailor tame taste thank tie trade train travel trim vote walk wash wear weave weigh whistle win wrap yawn".split()
)
KINDS = tuple(
    "big cheap cold cute dangerous dirty dry empty expensive famous fat fresh funny golden green happy healthy heavy hungry little lonely loud "
    "lovely married narrow nervous noisy old pink poor pretty purple rich rotten round rusty sad salty sharp shiny sick sleepy soft sour strange "
    "strong sweet tall thick thin tired ugly used warm weak wet white wild wooden yellow young".split()
)
FREE = (
    "how do I {deed} a {item}", "how do I {deed} {the} {item}", "where can I {deed} a {item}", "can I {deed} {the} {item}", "why does {the} {item} {deed}",
    "what is {the} best {item}", "what is a {kind} {item}", "is {the} {item} {kind}", "why is {the} {item} so {kind}", "who has {the} {kind} {item}",
    "which {item} is {kind}", "{the} {item} is {kind}", "I want to {deed} a {item}", "I like {the} {kind} {item}", "{the} {kind} {item}", "{deed} {the} {item}",
    "show me a {kind} {item}", "tell me about {the} {item}", "explain {the} {item}", "what does {the} {item} do", "how does a {item} work", "how {kind} is {the} {item}",
    "when should I {deed}", "when do I {deed} {the} {item}", "how often should I {deed}", "should I {deed} or {deed}", "do you {deed}", "can you {deed} a {item}",
    "do you have a {item}", "do you like {kind} {item}s", "what costs a {item}", "how many {item}s are there", "where is {the} {item}", "where does {the} {item} come from",
    "is it good to {deed}", "is it legal to {deed} a {item}", "help me {deed} {the} {item}", "my {item} is {kind}", "my {item} does not {deed}", "what if I {deed} {the} {item}",
    "what happens when I {deed}", "why do people {deed}", "why did my {item} {deed}", "who should {deed} {the} {item}", "I need a {kind} {item}", "I lost my {item}",
    "{item} or {item}", "{item}", "{kind} {item}", "{item} and {item}", "{deed}ing", "the difference between a {item} and a {item}", "what is a {item} made of",
    "are {item}s {kind}", "how long does it take to {deed}", "how long does a {item} last", "how big is a {item}", "how old is {the} {item}", "what colour is {the} {item}",
    "did you {deed} today", "let us {deed}", "I will {deed} tomorrow", "I would like to {deed} with my {item}", "please {deed} {the} {item}", "write about {the} {item}",
    "is there a {item} near me", "who invented {the} {item}", "a good way to {deed}", "best {item} for a {item}", "the {item} of {person}", "{item} in {city}", "{item} from {country}",
    "can a {animal} {deed}", "why does my {animal} {deed}", "what is {city} like", "the {item} of my {item}", "where do I get a {kind} {item} in {city}", "{person} and the {item}",
    "turn on {the} {item}", "switch off {the} {item}", "open {the} {item}", "close {the} {item}", "delete {the} {item}", "stop {the} {item}", "start {the} {item}", "change {the} {item}",
    "make {the} {item} bigger", "make {the} {item} {kind}", "download a {item}", "copy {the} {item}", "search {the} {item}", "find a {item}", "save {the} {item}", "move {the} {item}",
    "how much memory has a {item}", "how fast is {the} {item}", "how do I stop {the} {item}", "where is {the} {item} stored", "is {the} {item} free", "does {the} {item} work offline",
    "why is {the} {item} slow", "which {item} should I take", "what does {the} {item} mean", "what does {kind} mean", "what is {deed}ing", "translate {item}", "draw a {item}", "play {item}",
)  # fmt: skip
"""Everyday words put together by chance: what is like nothing that the guide knows is not known."""


FOREIGN_ITEMS: dict[str, tuple[str, ...]] = {
    "de": tuple("Katze Hund Auto Haus Fahrrad Kuchen Garten Schule Lehrer Arzt Zug Flugzeug Berg Fluss Meer Wein Bier Brot Käse Suppe Uhr Lampe Tisch "
                "Stuhl Bett Küche Schuh Jacke Hose Freund Bruder Mutter Kind Vogel Pferd Fußball Musik Film Buch Gedicht Steuer Miete Urlaub Wetter Mond "
                "Sonne Planet Baum Blume Medizin Zahn Rücken Geld Bank Gold Krieg König Papst Kirche Museum Restaurant Hotel Rezept Nudeln Apfel".split()),
    "es": tuple("gato perro coche casa bicicleta tarta jardín escuela profesor médico tren avión montaña río mar vino cerveza pan queso sopa reloj lámpara "
                "mesa silla cama cocina zapato chaqueta pantalón amigo hermano madre niño pájaro caballo fútbol música película libro poema impuesto alquiler "
                "viaje tiempo luna sol planeta árbol flor medicina diente espalda dinero banco oro guerra rey papa iglesia museo restaurante hotel receta".split()),
    "fr": tuple("chat chien voiture maison vélo gâteau jardin école professeur médecin train avion montagne rivière mer vin bière pain fromage soupe montre "
                "lampe table chaise lit cuisine chaussure veste pantalon ami frère mère enfant oiseau cheval football musique film livre poème impôt loyer "
                "voyage temps lune soleil planète arbre fleur médicament dent dos argent banque or guerre roi pape église musée restaurant hôtel recette".split()),
    "zh": tuple("猫 狗 汽车 房子 自行车 蛋糕 花园 学校 老师 医生 火车 飞机 山 河 海 酒 啤酒 面包 奶酪 汤 手表 灯 桌子 椅子 床 厨房 鞋 夹克 裤子 朋友 哥哥 妈妈 "
                "孩子 鸟 马 足球 音乐 电影 书 诗 税 房租 旅行 天气 月亮 太阳 行星 树 花 药 牙 背 钱 银行 黄金 战争 国王 教堂 博物馆 餐厅 酒店 食谱".split()),
}  # fmt: skip
FOREIGN_FREE: dict[str, tuple[str, ...]] = {
    "de": ("Wo finde ich {item}?", "Was kostet {item}?", "Wie funktioniert {item}?", "Was ist {item}?", "Wo kaufe ich {item}?", "Welche Farbe hat {item}?", "Ich mag {item}",
           "Erzähl mir etwas über {item}", "Warum ist {item} so teuer?", "Wie alt ist {item}?", "Wie groß ist {item}?", "{item}", "{item} und {item}", "Wer hat {item} erfunden?",
           "Wie mache ich {item}?", "Brauche ich {item}?", "Mein {item} ist kaputt", "Wie repariere ich {item}?", "Schreib etwas über {item}", "Gibt es {item} in {city}?",
           "Wie komme ich nach {city}?", "Was bedeutet {item}?", "Ist {item} gesund?", "Wann beginnt {item}?", "Wer ist der beste {item}?", "Hilf mir mit {item}", "Kannst du {item}?"),
    "es": ("¿Dónde encuentro {item}?", "¿Cuánto cuesta {item}?", "¿Cómo funciona {item}?", "¿Qué es {item}?", "¿Dónde compro {item}?", "¿De qué color es {item}?", "Me gusta {item}",
           "Cuéntame algo sobre {item}", "¿Por qué es tan caro {item}?", "¿Qué edad tiene {item}?", "¿Qué tamaño tiene {item}?", "{item}", "{item} y {item}", "¿Quién inventó {item}?",
           "¿Cómo hago {item}?", "¿Necesito {item}?", "Mi {item} está roto", "¿Cómo reparo {item}?", "Escribe algo sobre {item}", "¿Hay {item} en {city}?",
           "¿Cómo llego a {city}?", "¿Qué significa {item}?", "¿Es sano {item}?", "¿Cuándo empieza {item}?", "¿Quién es el mejor {item}?", "Ayúdame con {item}", "¿Puedes {item}?"),
    "fr": ("Où trouver {item} ?", "Combien coûte {item} ?", "Comment fonctionne {item} ?", "C'est quoi {item} ?", "Où acheter {item} ?", "De quelle couleur est {item} ?", "J'aime {item}",
           "Parle-moi de {item}", "Pourquoi {item} est si cher ?", "Quel âge a {item} ?", "Quelle taille a {item} ?", "{item}", "{item} et {item}", "Qui a inventé {item} ?",
           "Comment faire {item} ?", "Ai-je besoin de {item} ?", "Mon {item} est cassé", "Comment réparer {item} ?", "Écris quelque chose sur {item}", "Y a-t-il {item} à {city} ?",
           "Comment aller à {city} ?", "Que veut dire {item} ?", "Est-ce que {item} est bon ?", "Quand commence {item} ?", "Qui est le meilleur {item} ?", "Aide-moi avec {item}", "Peux-tu {item} ?"),
    "zh": ("哪里有{item}？", "{item}多少钱？", "{item}怎么工作？", "{item}是什么？", "哪里买{item}？", "{item}是什么颜色？", "我喜欢{item}", "说说{item}", "{item}为什么这么贵？", "{item}几岁？",
           "{item}有多大？", "{item}", "{item}和{item}", "谁发明了{item}？", "怎么做{item}？", "我需要{item}吗？", "我的{item}坏了", "怎么修{item}？", "写一点关于{item}的", "{city}有{item}吗？",
           "怎么去{city}？", "{item}什么意思？", "{item}好吗？", "{item}什么时候开始？", "谁的{item}最好？", "帮我{item}", "你会{item}吗？"),
}  # fmt: skip


def pseudo(rng: random.Random) -> str:
    """A word that there is not."""
    begin, middle = (
        "b c d f g k l m n p r s t v w z br cr fl gr kl pl st tr sch".split(),
        "a e i o u ai ou".split(),
    )
    end = " l n r s t m k x ck nd lp sk".split(" ")
    return "".join(
        rng.choice(begin) + rng.choice(middle) for _ in range(rng.randint(1, 3))
    ) + rng.choice(end)


def thing(rng: random.Random) -> str:
    """A thing that is not of the app."""
    word = pseudo(rng) if rng.random() < 0.06 else rng.choice(ITEMS)
    word = rng.choice(("{}", "the {}", "my {}", "a {}", "the {}")).format(word)
    return word if rng.random() < 0.7 else rng.choice(SLOTS[rng.choice(list(SLOTS))])


def deed(rng: random.Random) -> str:
    """Something to do that is not of the app."""
    return f"{rng.choice(DEEDS)} {thing(rng)}" if rng.random() < 0.7 else rng.choice(SLOTS["work"])


def free(rng: random.Random) -> str:
    """A question or remark of everyday words, now and then with a word that nobody knows."""
    text = _filled(
        rng, rng.choice(FREE).replace("{the}", rng.choice(("the", "my", "a", "the", "this", "our")))
    )
    for slot, words in (("item", ITEMS), ("deed", DEEDS), ("kind", KINDS)):
        while f"{{{slot}}}" in text:
            word = pseudo(rng) if rng.random() < 0.08 else rng.choice(words)
            text = text.replace(f"{{{slot}}}", word, 1)
    return text


def _filled(rng: random.Random, form: str) -> str:
    for slot, values in SLOTS.items():
        while f"{{{slot}}}" in form:
            form = form.replace(f"{{{slot}}}", rng.choice(values), 1)
    return form


def question(rng: random.Random) -> str:
    """A question about the world, not yet varied."""
    if rng.random() < WRITTEN:
        return rng.choice(written()["unknown"]["en"])
    kind = rng.random()
    if kind < 0.3:
        return free(rng)
    return _filled(rng, rng.choice(NEAR if kind < 0.55 else FORMS))


def foreign_question(rng: random.Random, language: str) -> str:
    """The same in German, Spanish, French or Chinese."""
    if rng.random() < WRITTEN:
        return rng.choice(written()["unknown"][language])
    if rng.random() < 0.5:
        return _filled(rng, rng.choice(FOREIGN[language]))
    text = rng.choice(FOREIGN_FREE[language])
    while "{item}" in text:
        text = text.replace("{item}", rng.choice(FOREIGN_ITEMS[language]), 1)
    return _filled(rng, text)
