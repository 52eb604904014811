#include "text/jinja_template.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include "text/jinja_lexer.h"

namespace ridge::jinja {
namespace {

const nlohmann::json& expected() {
  static const nlohmann::json json = [] {
    std::ifstream file(std::string(RIDGE_TEST_DATA) + "/templates/expected.json");
    return nlohmann::json::parse(file);
  }();
  return json;
}

// The moment that make_expected.py uses.
Settings settings() {
  std::tm now = {};
  now.tm_year = 125;
  now.tm_mon = 2;
  now.tm_mday = 9;
  now.tm_hour = 14;
  now.tm_min = 5;
  now.tm_sec = 7;
  now.tm_yday = 67;
  return {.now = now};
}

Result<std::string> render(std::string_view source, const Settings& with = settings()) {
  const Template parsed = RIDGE_TRY(Template::parse(source));
  return parsed.render({}, with);
}

std::string message(std::string_view source, const Settings& with = settings()) {
  const Result<std::string> result = render(source, with);
  return result.ok() ? "no error: " + result.value() : result.error().message;
}

TEST(Jinja, ExpressionsAgreeWithJinja2) {
  ASSERT_GE(expected()["expressions"].size(), 150u);
  for (const auto& row : expected()["expressions"]) {
    const std::string source = row[0];
    const Result<std::string> text = render(source);
    ASSERT_TRUE(text.ok()) << source << "\n" << text.error().message;
    EXPECT_EQ(text.value(), row[1].get<std::string>()) << source;
  }
}

TEST(Jinja, RefusesWhatJinja2Refuses) {
  for (const auto& row : expected()["refused"]) {
    const Result<std::string> text = render(row.get<std::string>());
    ASSERT_FALSE(text.ok()) << row << " gave " << text.value();
    EXPECT_EQ(text.error().code, ErrorCode::bad_input);
    EXPECT_TRUE(text.error().message.starts_with("chat template, line ")) << text.error().message;
  }
}

std::string repeated(std::string_view piece, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += piece;
  return out;
}

bool mentions(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

Settings tight() {
  Settings settings;
  settings.limits.steps = 100'000;
  settings.limits.bytes = 4 << 20;
  return settings;
}

TEST(JinjaLexer, TokensKnowTheirPlaces) {
  const std::vector<Token> tokens = tokenize("a\n{{ b | c(1.5) }}").value();
  ASSERT_EQ(tokens.size(), 10u);
  EXPECT_EQ(tokens[0].kind, Token::Kind::data);
  EXPECT_EQ(tokens[1].kind, Token::Kind::variable_begin);
  EXPECT_TRUE(tokens[2].is(Token::Kind::name, "b"));
  EXPECT_EQ(tokens[2].at, 5u);
  EXPECT_TRUE(tokens[3].is(Token::Kind::op, "|"));
  EXPECT_EQ(tokens[6].kind, Token::Kind::real);
  EXPECT_EQ(tokens[6].real, 1.5);
  EXPECT_EQ(tokens[9].kind, Token::Kind::end);
}

TEST(JinjaLexer, NewlinesAreNormalized) {
  EXPECT_EQ(normalize_newlines("a\r\nb\rc\n"), "a\nb\nc");
  EXPECT_EQ(normalize_newlines("a\n\n"), "a\n");
  EXPECT_EQ(normalize_newlines(""), "");
}

TEST(JinjaLexer, ErrorsCountCharactersNotBytes) {
  EXPECT_EQ(error_at("\u00e9\u4e16x", 5, "here").message, "chat template, line 1, column 3: here");
  EXPECT_EQ(error_at("a\nbc", 3, "here").offset, 3u);
}

TEST(JinjaErrors, SayWhatWasExpected) {
  EXPECT_EQ(message("{{ (1 }}"), "chat template, line 1, column 7: unexpected '}', expected ')'");
  EXPECT_EQ(message("{{ 1 2 }}"), "chat template, line 1, column 6: expected '}}', not '2'");
  EXPECT_EQ(message("{% if x"), "chat template, line 1, column 1: this tag has no end; close it with %}");
  EXPECT_EQ(message("{{ 'abc"), "chat template, line 1, column 4: this string has no end; close it with '");
  EXPECT_EQ(message("{{ $ }}"), "chat template, line 1, column 4: unexpected character '$'");
  EXPECT_EQ(message("{% break %}"), "chat template, line 1, column 4: 'break' stands outside a loop");
  EXPECT_EQ(message("{% for x in [1] recursive %}{% endfor %}"),
            "chat template, line 1, column 17: recursive loops are not supported; use a macro that calls itself");
}

TEST(JinjaErrors, SayWhichValueWasWrong) {
  EXPECT_EQ(message("{{ 1 + 'a' }}"), "chat template, line 1, column 6: '+' does not work on an integer and a string");
  EXPECT_EQ(message("{{ x.y + 1 }}"), "chat template, line 1, column 5: 'x' is undefined; it has no attribute 'y'");
  EXPECT_EQ(message("{{ f(1) }}"), "chat template, line 1, column 5: 'f' is undefined, so it cannot be called");
  EXPECT_EQ(
      message("{{ [1].append(2) }}"),
      "chat template, line 1, column 14: a template cannot change a list; build a new one with + or use a namespace");
  EXPECT_EQ(message("{{ 'a' | replace('b') }}"),
            "chat template, line 1, column 10: 'replace' needs the argument 'new'");
  EXPECT_EQ(message("{{ 'a' | upper(1) }}"),
            "chat template, line 1, column 10: 'upper' takes at most 0 arguments, not 1");
  EXPECT_EQ(message("{{ 9223372036854775807 + 1 }}"),
            "chat template, line 1, column 24: the result does not fit into a 64-bit integer");
  EXPECT_EQ(message("{% set x = 1 %}{% set x.y = 2 %}"),
            "chat template, line 1, column 23: 'x' is an integer; only attributes of a namespace can be set");
}

TEST(JinjaLimits, NestedSource) {
  for (const char* piece : {"(", "[", "{1:", "not ", "- ", "f(", "a[", "1 if ", "x|f("}) {
    EXPECT_TRUE(message("{{ " + repeated(piece, 100'000) + "1 }}").starts_with("chat template, ")) << piece;
  }
  EXPECT_TRUE(mentions(message(repeated("{% if x %}", 1000)), "levels of nesting"));
  EXPECT_TRUE(
      mentions(message("{% set " + repeated("(", 1000) + "a" + repeated(")", 1000) + " = 1 %}"), "levels of nesting"));
  EXPECT_TRUE(mentions(message("{{ 1" + repeated(" + 1", 1000) + " }}"), "200 operations deep"));
  EXPECT_TRUE(mentions(message("{{ x" + repeated("|upper", 1000) + " }}"), "200 operations deep"));
  EXPECT_TRUE(mentions(message("{{ x" + repeated(".a", 1000) + " }}"), "200 operations deep"));
}

TEST(JinjaLimits, LongFlatSourceIsNoNesting) {
  EXPECT_EQ(render("{{ 1" + repeated(" ~ 1", 5000) + " }}").value().size(), 5001u);
  EXPECT_EQ(render("{{ 1" + repeated(" and 1", 5000) + " }}").value(), "1");
  EXPECT_EQ(render("{% if 0 %}" + repeated("{% elif 0 %}", 5000) + "{% else %}x{% endif %}").value(), "x");
  EXPECT_EQ(render(repeated("{% if 1 %}x{% endif %}", 5000)).value().size(), 5000u);
}

TEST(JinjaLimits, SourceSize) { EXPECT_TRUE(mentions(message(std::string(2 << 20, ' ')), "at most 1048576")); }

TEST(JinjaLimits, EndlessMacros) {
  EXPECT_TRUE(mentions(message("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"), "nested too deep"));
  EXPECT_TRUE(mentions(
      message(
          "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{% call a() %}{% endcall %}{% endmacro %}{{ b() }}"),
      "caller"));
  EXPECT_TRUE(mentions(message("{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{{ caller }}{% endmacro %}{% "
                               "call m() %}{% endcall %}"),
                       "nested too deep"));
  EXPECT_TRUE(mentions(message("{{ 'a' | map(" + repeated("'map', ", 5000) + "'upper') }}"), "nested too deep"));
}

TEST(JinjaLimits, Steps) {
  const std::string loops = "{% for a in range(999) %}{% for b in range(999) %}{% set x = a %}{% endfor %}{% endfor %}";
  EXPECT_TRUE(mentions(message(loops, tight()), "more than 100000 steps"));
  EXPECT_TRUE(mentions(
      message("{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(25) }}", tight()),
      "more than 100000 steps"));
  // A list in itself, twice each time: 2^40 comparisons if nobody counts.
  const std::string twins =
      "{% set n = namespace(a=[], b=[]) %}{% for i in range(40) %}{% set n.a = [n.a, n.a] %}"
      "{% set n.b = [n.b, n.b] %}{% endfor %}";
  EXPECT_TRUE(mentions(message(twins + "{{ n.a == n.b }}", tight()), "more than 100000 steps"));
  EXPECT_TRUE(message(twins + "{{ n.a }}", tight()).starts_with("chat template, "));
  EXPECT_TRUE(message(twins + "{{ n.a | tojson }}", tight()).starts_with("chat template, "));
  const std::string hay = "{% set h = 'a' * 1000000 %}{% set n = 'a' * 500000 ~ 'b' %}";
  EXPECT_TRUE(mentions(message(hay + "{{ n in h }}", tight()), "steps"));
  EXPECT_TRUE(mentions(message(hay + "{{ h.split(n) }}", tight()), "steps"));
  EXPECT_TRUE(mentions(message(hay + "{{ h.rfind(n) }}", tight()), "steps"));
  EXPECT_TRUE(mentions(message(hay + "{{ h.replace(n, '') }}", tight()), "steps"));
}

// Work that grows with the text must be counted by its length, or a short loop could run for hours.
TEST(JinjaLimits, ReadingLongText) {
  for (const char* operation :
       {"s.isdigit()",  "s.find('b')",   "s.rfind('b')", "s.count('b')",  "s.count('')",       "s | length",
        "s[5]",         "s == t",        "s < t",        "s.endswith(t)", "s.startswith(t)",   "s in t",
        "s.split()",    "s.rsplit('b')", "s.strip('b')", "s[1:2]",        "s.removesuffix(t)", "s.partition('b')",
        "[s].index(t)", "{s: 1}[t]"}) {
    const std::string source = std::string(
                                   "{% set s = '1' * 1000000 %}{% set t = '1' * 999999 ~ '2' %}"
                                   "{% for i in range(99999) %}{% set x = ") +
                               operation + " %}{% endfor %}";
    const std::string text = message(source, tight());
    EXPECT_TRUE(mentions(text, "100000 steps") || mentions(text, "4194304 bytes") || mentions(text, "not in the list"))
        << operation << ": " << text.substr(0, 200);
  }
  EXPECT_TRUE(mentions(message("{{ " + std::string(300, 'a') + " }}"), "a name of more than 256 bytes"));
}

TEST(JinjaLimits, Bytes) {
  for (const char* source : {
           "{% set n = namespace(s='ab') %}{% for i in range(60) %}{% set n.s = n.s + n.s %}{% endfor %}",
           "{% set n = namespace(s=['ab']) %}{% for i in range(60) %}{% set n.s = n.s + n.s %}{% endfor %}",
           "{% set n = namespace(s='ab') %}{% for i in range(60) %}{% set n.s = n.s ~ n.s %}{% endfor %}",
           "{{ 'a' * 1000000000000 }}",
           "{{ [1] * 1000000000000 }}",
           "{{ 'a' | center(1000000000000) }}",
           "{{ 'a' | indent(1000000000000) }}",
           "{{ ('a' * 1000000).replace('a', 'b' * 1000000) }}",
           "{{ ('a' * 1000000).replace('', 'b' * 1000) }}",
           "{{ (('a' * 1000) | list) | join('b' * 1000000) }}",
           "{{ ('b' * 1000000).join('a' * 1000) }}",
           "{{ ('\x01' * 2000000) | tojson }}",
           "{{ ('<' * 2000000) | e }}",
           "{{ ['\x01' * 2000000] }}",
           "{{ ('a ' * 1000000).split() }}",
           "{{ ('a' * 1000000) | list }}",
           "{{ range(100000) | map('string') | list }}{{ range(100000) | list }}",
           "{% set x = 'a' * 1000000 %}{% for i in range(99) %}{{ x }}{% endfor %}",
           "{% macro m() %}{{ 'a' * 100000 }}{% endmacro %}{% for i in range(99) %}{% set x = m() %}{% endfor %}",
           "{% for i in range(99999) %}{% set x = namespace(a=1, b=2, c=3) %}{% endfor %}",
       }) {
    Settings settings = tight();
    settings.limits.steps = 10'000'000;
    EXPECT_TRUE(mentions(message(source, settings), "more than 4194304 bytes"))
        << source << "\n"
        << message(source, settings).substr(0, 200);
  }
}

TEST(JinjaLimits, RangesAndWidths) {
  EXPECT_TRUE(mentions(message("{{ range(1000000000) }}"), "at most 100000"));
  EXPECT_TRUE(mentions(message("{{ range(-9223372036854775807, 9223372036854775807) }}"), "at most 100000"));
  EXPECT_EQ(
      render("{{ range(-9223372036854775807, 9223372036854775807, 9223372036854775807) | list | length }}").value(),
      "2");
  EXPECT_TRUE(mentions(message("{{ '%999999999d' % 1 }}"), "above 10000"));
  EXPECT_TRUE(mentions(message("{{ '%.999999999f' % 1 }}"), "above 10000"));
  EXPECT_TRUE(mentions(message("{{ [1] | batch(1000000000000, 0) }}"), "positive"));
}

TEST(JinjaLimits, NestedValues) {
  EXPECT_TRUE(
      mentions(message("{% set n = namespace(a=[]) %}{% for i in range(1000) %}{% set n.a = [n.a] %}{% endfor %}"),
               "nested too deep"));
  EXPECT_TRUE(
      mentions(message("{% set n = namespace(a={}) %}{% for i in range(1000) %}{% set n.a = {'a': n.a} %}{% endfor %}"),
               "nested too deep"));
}

TEST(JinjaLimits, ThingsThatPointAtThemselves) {
  EXPECT_EQ(render("{% set n = namespace() %}{% set n.n = n %}{{ n.n.n.n == n }}{{ [n] }}").value(),
            "True[<Namespace>]");
  // Loops that keep the loops before them alive would free each other recursively.
  EXPECT_EQ(render("{% set n = namespace(l=1) %}{% for i in range(50000) %}{% for j in [n.l] %}{% set n.l = loop %}"
                   "{% endfor %}{% endfor %}{{ n.l.index }}{{ n.l.previtem }}")
                .value(),
            "2");
  EXPECT_EQ(render("{% for i in [1, 2] %}{{ loop.changed(loop) }}{% endfor %}").value(), "TrueFalse");
}

TEST(JinjaScopes, AMacroOutlivesItsBlock) {
  EXPECT_EQ(render("{% set n = namespace() %}{% for i in [1, 2, 3] %}{% set k = i * 10 %}{% macro m() %}{{ i }}:{{ k "
                   "}}{% endmacro %}"
                   "{% if i == 2 %}{% set n.m = m %}{% endif %}{% endfor %}{{ n.m() }}")
                .value(),
            "2:20");
}

TEST(JinjaValues, LazyFiltersOnNoneAreEmpty) {
  EXPECT_EQ(render("{{ none | selectattr('x') | list | length }}{{ none | map('upper') | join }}").value(), "0");
}

}  // namespace
}  // namespace ridge::jinja
