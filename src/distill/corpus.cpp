#include "distill/corpus.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "text/rng.h"

namespace ridge::distill {
namespace {

using Words = std::span<const std::string_view>;

constexpr std::array<std::string_view, 24> kNames = {"Anna", "Ben",  "Clara", "David", "Ella", "Finn", "Grace", "Henry",
                                                     "Iris", "Jack", "Kate",  "Leo",   "Mia",  "Noah", "Olive", "Paul",
                                                     "Rosa", "Sam",  "Tess",  "Tom",   "Uma",  "Vera", "Will",  "Zoe"};
constexpr std::array<std::string_view, 16> kAnimals = {"cat",  "dog",  "rabbit", "horse", "duck", "goat",
                                                       "fox",  "bear", "mouse",  "frog",  "owl",  "sheep",
                                                       "crow", "pony", "hen",    "turtle"};
constexpr std::array<std::string_view, 20> kAdjectives = {
    "small", "big",   "old",    "young", "happy",  "quiet", "brave", "clever", "tired",   "shy",
    "kind",  "funny", "hungry", "proud", "lonely", "cold",  "busy",  "sleepy", "curious", "gentle"};
constexpr std::array<std::string_view, 12> kColours = {"red",   "blue",   "green", "yellow", "white",  "black",
                                                       "brown", "orange", "grey",  "pink",   "golden", "silver"};
constexpr std::array<std::string_view, 24> kThings = {
    "ball",   "book",    "kite",   "boat", "hat",   "cake",   "key",  "lamp",  "drum",   "bell",  "box",   "cup",
    "basket", "blanket", "ladder", "map",  "stone", "ribbon", "coat", "spoon", "candle", "wagon", "flute", "mirror"};
constexpr std::array<std::string_view, 18> kPlaces = {"garden", "forest",  "kitchen", "village", "river",  "school",
                                                      "market", "barn",    "hill",    "beach",   "bridge", "library",
                                                      "field",  "harbour", "meadow",  "castle",  "mill",   "lake"};
constexpr std::array<std::string_view, 10> kTimes = {"One morning",         "One day",         "On a sunny day",
                                                     "Late in the evening", "After breakfast", "In the winter",
                                                     "One rainy afternoon", "Early in spring", "On her birthday",
                                                     "Before sunset"};
constexpr std::array<std::string_view, 12> kFound = {"found",   "saw",     "picked up", "lost",   "dropped", "hid",
                                                     "painted", "cleaned", "carried",   "wanted", "broke",   "mended"};
constexpr std::array<std::string_view, 10> kFeelings = {"glad",     "sad",     "surprised", "worried", "afraid",
                                                        "thankful", "excited", "angry",     "calm",    "ashamed"};
constexpr std::array<std::string_view, 10> kWeather = {
    "The sun was warm.",           "The wind was strong.",    "It began to rain.",   "Snow covered the ground.",
    "The sky was clear and blue.", "Fog lay over the grass.", "The stars came out.", "The air smelled of bread.",
    "Birds were singing.",         "It was very still."};
constexpr std::array<std::string_view, 10> kLessons = {"It is good to share.",
                                                       "A friend helps when it is hard.",
                                                       "Small steps lead far.",
                                                       "It is never too late to say sorry.",
                                                       "Listening is a kind of gift.",
                                                       "What is lost can be found again.",
                                                       "Being brave does not mean being loud.",
                                                       "Work is lighter with two.",
                                                       "Patience opens many doors.",
                                                       "Home is where someone waits for you."};

class Writer {
 public:
  explicit Writer(uint64_t seed) : rng_(seed) {}

  size_t below(size_t n) { return static_cast<size_t>(rng_.uniform() * static_cast<double>(n)); }
  std::string_view pick(Words words) { return words[below(words.size())]; }
  // The first ones more often, as words of a language are: the smaller of two draws.
  std::string_view likely(Words words) { return words[std::min(below(words.size()), below(words.size()))]; }

  std::string story();
  struct Problem {
    std::string question, steps, answer;
  };
  Problem problem();

 private:
  struct Cast {
    std::string_view hero, friend_name, animal, adjective, colour, thing, place, other_place;
    bool she = true;
    std::string_view subject() const { return she ? "she" : "he"; }
    std::string_view Subject() const { return she ? "She" : "He"; }
    std::string_view object() const { return she ? "her" : "him"; }
    std::string_view own() const { return she ? "her" : "his"; }
  };
  Cast cast();
  std::string opening(const Cast& c);
  std::string middle(const Cast& c);
  std::string talk(const Cast& c);
  std::string ending(const Cast& c);

  Rng rng_;
};

std::string with_article(std::string_view word) {
  constexpr std::string_view kVowels = "aeiou";
  return fmt::format("{} {}", kVowels.find(word.front()) == std::string_view::npos ? "a" : "an", word);
}

Writer::Cast Writer::cast() {
  Cast c;
  const size_t hero = std::min(below(kNames.size()), below(kNames.size()));
  c.hero = kNames[hero];
  c.she = hero % 2 == 0;  // the names stand in pairs
  c.friend_name = kNames[(hero + 1 + below(kNames.size() - 1)) % kNames.size()];
  c.animal = likely(kAnimals);
  c.adjective = likely(kAdjectives);
  c.colour = likely(kColours);
  c.thing = likely(kThings);
  const size_t place = below(kPlaces.size());
  c.place = kPlaces[place];
  c.other_place = kPlaces[(place + 1 + below(kPlaces.size() - 1)) % kPlaces.size()];
  return c;
}

std::string Writer::opening(const Cast& c) {
  switch (below(5)) {
    case 0:
      return fmt::format("{} {} went to the {} with {}.", pick(kTimes), c.hero, c.place, c.friend_name);
    case 1:
      return fmt::format("Once there was {} {} who lived near the {}. The {}'s friend was called {}.",
                         with_article(c.adjective), c.animal, c.place, c.animal, c.hero);
    case 2:
      return fmt::format("{} had {} {}. {} took it to the {} every day.", c.hero, with_article(c.colour), c.thing,
                         c.Subject(), c.place);
    case 3:
      return fmt::format("{} and {} were playing at the {}. {}", c.hero, c.friend_name, c.place, pick(kWeather));
    default:
      return fmt::format("{} {} met {} {} at the {}.", pick(kTimes), c.hero, with_article(c.adjective), c.animal,
                         c.place);
  }
}

std::string Writer::middle(const Cast& c) {
  switch (below(8)) {
    case 0:
      return fmt::format("There {} {} the {} {}.", c.subject(), pick(kFound), c.colour, c.thing);
    case 1:
      return fmt::format("The {} {} looked at {} and did not move.", c.adjective, c.animal, c.object());
    case 2:
      return fmt::format("{} was {}, because the {} was gone.", c.hero, pick(kFeelings), c.thing);
    case 3:
      return fmt::format("Together they walked from the {} to the {}.", c.place, c.other_place);
    case 4:
      return fmt::format("{} {} gave the {} to {}.", pick(kWeather), c.friend_name, c.thing, c.object());
    case 5:
      return fmt::format("{} put the {} under the {} and counted to {}.", c.Subject(), c.thing, pick(kThings),
                         3 + below(17));
    case 6:
      return fmt::format("The {} was {} and {}, but {} liked it.", c.thing, c.colour, pick(kAdjectives), c.hero);
    default:
      return fmt::format("Then the {} ran into the {}, and {} ran after it.", c.animal, c.other_place, c.hero);
  }
}

std::string Writer::talk(const Cast& c) {
  switch (below(5)) {
    case 0:
      return fmt::format("\"Where is my {}?\" asked {}. \"It is in the {},\" said {}.", c.thing, c.hero, c.other_place,
                         c.friend_name);
    case 1:
      return fmt::format("\"I am {},\" said {}. \"Do not worry,\" said {}, \"I will help you.\"", pick(kFeelings),
                         c.hero, c.friend_name);
    case 2:
      return fmt::format("\"Is this {} yours?\" asked the {}. {} said yes.", c.thing, c.animal, c.hero);
    case 3:
      return fmt::format("\"Look!\" said {}. \"There is {} {} at the {}.\"", c.friend_name, with_article(c.colour),
                         pick(kThings), c.other_place);
    default:
      return fmt::format("\"Thank you,\" said {}, and {} gave {} {} {}.", c.hero, c.subject(), c.friend_name,
                         with_article(c.colour), pick(kThings));
  }
}

std::string Writer::ending(const Cast& c) {
  switch (below(4)) {
    case 0:
      return fmt::format("At last {} went home with {} {}. {}", c.hero, c.own(), c.thing, pick(kLessons));
    case 1:
      return fmt::format("In the end they were all {}. {}", pick(kFeelings), pick(kLessons));
    case 2:
      return fmt::format("{} never forgot that day at the {}.", c.hero, c.place);
    default:
      return fmt::format("That night {} told {} about the {} {}, and they both laughed.", c.hero, c.friend_name,
                         c.adjective, c.animal);
  }
}

std::string Writer::story() {
  const Cast c = cast();
  std::string text = opening(c);
  for (size_t i = 2 + below(4); i > 0; --i) text += " " + (below(3) == 0 ? talk(c) : middle(c));
  return text + " " + ending(c);
}

Writer::Problem Writer::problem() {
  const Cast c = cast();
  const size_t a = 2 + below(18), b = 1 + below(a - 1), d = 1 + below(9);
  switch (below(3)) {
    case 0:
      return {fmt::format("{} has {} {}s. {} gives {} {} more. How many {}s has {}?", c.hero, a, c.thing, c.friend_name,
                          c.object(), b, c.thing, c.hero),
              fmt::format("{} + {} = {}.", a, b, a + b), fmt::format("{}", a + b)};
    case 1:
      return {fmt::format("{} has {} {}s and loses {}. Then {} finds {}. How many are there?", c.hero, a, c.thing, b,
                          c.subject(), d),
              fmt::format("{} - {} = {}. {} + {} = {}.", a, b, a - b, a - b, d, a - b + d),
              fmt::format("{}", a - b + d)};
    default:
      return {fmt::format("The {} is in the {}. {} takes it to the {}. Where is the {}?", c.thing, c.place, c.hero,
                          c.other_place, c.thing),
              fmt::format("First it was in the {}. {} took it to the {}.", c.place, c.hero, c.other_place),
              std::string(c.other_place)};
  }
}

}  // namespace

std::string make_corpus(const CorpusOptions& options) {
  constexpr size_t kProblemEvery = 8;
  Writer writer(options.seed);
  std::string text;
  text.reserve(options.bytes + 1024);
  while (text.size() < options.bytes) {
    if (writer.below(kProblemEvery) != 0) {
      text += writer.story();
    } else {
      const auto p = writer.problem();
      text += fmt::format("Question: {}\nSteps: {}\nAnswer: {}", p.question, p.steps, p.answer);
    }
    text += "\n\n";
  }
  return text;
}

std::string make_rationales(const RationaleOptions& options) {
  Writer writer(options.seed);
  std::string text;
  for (uint64_t i = 0; i < options.items; ++i) {
    const auto p = writer.problem();
    const nlohmann::ordered_json item = {{"question", p.question}, {"steps", p.steps}, {"answer", p.answer}};
    text += item.dump() + "\n";
  }
  return text;
}

}  // namespace ridge::distill
