#include "text/jinja_parser.h"

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "text/jinja_text.h"

namespace ridge::jinja {

bool ParserBase::skip_op(std::string_view text) {
  const bool found = at_op(text);
  if (found) advance();
  return found;
}

bool ParserBase::skip_name(std::string_view text) {
  const bool found = at_name(text);
  if (found) advance();
  return found;
}

Result<void> ParserBase::expect_op(std::string_view text) {
  if (skip_op(text)) return {};
  return fail(fmt::format("expected '{}', not {}", text, seen()));
}

Result<void> ParserBase::expect_name(std::string_view text) {
  if (skip_name(text)) return {};
  return fail(fmt::format("expected '{}', not {}", text, seen()));
}

Result<std::string> ParserBase::expect_identifier(std::string_view what) {
  if (current().kind != Token::Kind::name) return fail(fmt::format("expected {}, not {}", what, seen()));
  std::string name = current().text;
  advance();
  return name;
}

Result<void> ParserBase::expect_block_end(std::string_view tag) {
  if (current().kind != Token::Kind::block_end) {
    return fail(fmt::format("expected the end of the {} tag (%}}), not {}", tag, seen()));
  }
  advance();
  return {};
}

std::string ParserBase::seen() const {
  switch (current().kind) {
    case Token::Kind::data:
      return "text";
    case Token::Kind::variable_begin:
      return "'{{'";
    case Token::Kind::variable_end:
      return "'}}'";
    case Token::Kind::block_begin:
      return "'{%'";
    case Token::Kind::block_end:
      return "'%}'";
    case Token::Kind::string:
      return "a string";
    case Token::Kind::end:
      return "the end of the template";
    case Token::Kind::name:
    case Token::Kind::integer:
    case Token::Kind::real:
    case Token::Kind::op:
      break;
  }
  return fmt::format("'{}'", current().text);
}

namespace {

class StatementParser : private ExpressionParser {
 public:
  StatementParser(std::string_view source, std::vector<Token> tokens) : ExpressionParser(source, std::move(tokens)) {}

  Result<Block> parse_template() {
    Block block = RIDGE_TRY(parse_body({}, {}, 0));
    return block;
  }

 private:
  using Ends = std::span<const std::string_view>;

  static StatementPointer make(Statement::Kind kind, uint32_t at) {
    auto statement = std::make_unique<Statement>();
    statement->kind = kind;
    statement->at = at;
    return statement;
  }

  bool at_any(Ends ends) const {
    return std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return at_name(end); });
  }

  // Statements up to one of the tags `ends`, whose name is then the current token. No ends: up to the end of the
  // source.
  Result<Block> parse_body(Ends ends, std::string_view tag, uint32_t opened_at) {
    if (++depth_ > kMaxParseDepth) return fail(fmt::format("more than {} levels of nesting", kMaxParseDepth));
    Block block;
    while (current().kind != Token::Kind::end) {
      const uint32_t at = current().at;
      if (current().kind == Token::Kind::data) {
        block.push_back(make(Statement::Kind::text, at));
        block.back()->text = current().text;
        advance();
      } else if (current().kind == Token::Kind::variable_begin) {
        advance();
        block.push_back(make(Statement::Kind::output, at));
        block.back()->value = RIDGE_TRY(parse_tuple());
        if (current().kind != Token::Kind::variable_end) return fail(fmt::format("expected '}}}}', not {}", seen()));
        advance();
      } else {
        advance();  // {%, the lexer makes nothing else here
        if (at_any(ends)) {
          --depth_;
          return block;
        }
        block.push_back(RIDGE_TRY(parse_statement(at)));
      }
    }
    if (!ends.empty()) {
      return fail_at(opened_at, fmt::format("this {} block has no end; close it with {{% {} %}}", tag, ends.back()));
    }
    --depth_;
    return block;
  }

  // The body of a tag that only its end tag closes; reads past that.
  Result<Block> parse_closed_body(std::string_view tag, uint32_t opened_at) {
    const std::string end = fmt::format("end{}", tag);
    const std::array<std::string_view, 1> ends = {end};
    Block body = RIDGE_TRY(parse_body(ends, tag, opened_at));
    advance();
    RIDGE_TRY(expect_block_end(end));
    return body;
  }

  Result<StatementPointer> parse_statement(uint32_t at) {
    struct Row {
      std::string_view tag;
      Result<StatementPointer> (StatementParser::*parse)(uint32_t);
    };
    static constexpr std::array<Row, 10> kRows = {{{"if", &StatementParser::parse_if},
                                                   {"for", &StatementParser::parse_for},
                                                   {"set", &StatementParser::parse_set},
                                                   {"macro", &StatementParser::parse_macro},
                                                   {"call", &StatementParser::parse_call_block},
                                                   {"filter", &StatementParser::parse_filter_block},
                                                   {"with", &StatementParser::parse_with},
                                                   {"generation", &StatementParser::parse_generation},
                                                   {"break", &StatementParser::parse_jump},
                                                   {"continue", &StatementParser::parse_jump}}};
    for (const Row& row : kRows) {
      if (at_name(row.tag)) return (this->*row.parse)(at);
    }
    static constexpr std::array<std::string_view, 8> kUnsupported = {"include", "import",     "from", "extends",
                                                                     "block",   "autoescape", "do",   "trans"};
    const auto known = std::find_if(kUnsupported.begin(), kUnsupported.end(), [&](auto tag) { return at_name(tag); });
    if (known != kUnsupported.end()) {
      return fail(fmt::format("the tag '{}' is not supported: a chat template stands alone", *known));
    }
    return fail(fmt::format("expected a tag that is known here, not {}", seen()));
  }

  Result<StatementPointer> parse_if(uint32_t at) {
    static constexpr std::array<std::string_view, 3> kEnds = {"elif", "else", "endif"};
    StatementPointer node = make(Statement::Kind::condition, at);
    while (at_name("if") || at_name("elif")) {
      advance();
      Branch branch;
      branch.condition = RIDGE_TRY(parse_tuple(Conditional::excluded));
      RIDGE_TRY(expect_block_end("if"));
      branch.body = RIDGE_TRY(parse_body(kEnds, "if", at));
      node->branches.push_back(std::move(branch));
    }
    if (skip_name("else")) {
      RIDGE_TRY(expect_block_end("else"));
      node->otherwise = RIDGE_TRY(parse_body(Ends(kEnds).last(1), "if", at));
    }
    RIDGE_TRY(expect_name("endif"));
    RIDGE_TRY(expect_block_end("endif"));
    return node;
  }

  Result<StatementPointer> parse_for(uint32_t at) {
    static constexpr std::array<std::string_view, 2> kEnds = {"else", "endfor"};
    StatementPointer node = make(Statement::Kind::loop, at);
    advance();
    node->target = RIDGE_TRY(parse_target());
    RIDGE_TRY(expect_name("in"));
    node->value = RIDGE_TRY(parse_tuple(Conditional::excluded));
    if (skip_name("if")) node->filter = RIDGE_TRY(parse_expression());
    if (at_name("recursive")) return fail("recursive loops are not supported; use a macro that calls itself");
    RIDGE_TRY(expect_block_end("for"));
    ++loops_;
    node->body = RIDGE_TRY(parse_body(kEnds, "for", at));
    --loops_;
    if (skip_name("else")) {
      RIDGE_TRY(expect_block_end("else"));
      node->otherwise = RIDGE_TRY(parse_body(Ends(kEnds).last(1), "for", at));
    }
    RIDGE_TRY(expect_name("endfor"));
    RIDGE_TRY(expect_block_end("endfor"));
    return node;
  }

  // name | namespace.attribute | (target, target, …), with or without brackets.
  Result<Target> parse_target() {
    const uint32_t at = current().at;
    Target first = RIDGE_TRY(parse_single_target());
    if (!at_op(",")) return first;
    Target several;
    several.at = at;
    several.parts.push_back(std::move(first));
    while (skip_op(",") && !at_name("in") && !at_op("=") && !at_op(")")) {
      several.parts.push_back(RIDGE_TRY(parse_single_target()));
    }
    return several;
  }

  Result<Target> parse_single_target() {
    if (at_op("(")) {
      if (++depth_ > kMaxParseDepth) return fail(fmt::format("more than {} levels of nesting", kMaxParseDepth));
      advance();
      Target inner = RIDGE_TRY(parse_target());
      RIDGE_TRY(expect_op(")"));
      --depth_;
      return inner;
    }
    static constexpr std::array<std::string_view, 6> kConstants = {"true", "True", "false", "False", "none", "None"};
    if (at_any(kConstants)) return fail(fmt::format("cannot assign to the constant {}", current().text));
    Target target;
    target.at = current().at;
    target.name = RIDGE_TRY(expect_identifier("a name to assign to"));
    if (skip_op(".")) target.attribute = RIDGE_TRY(expect_identifier("the name of an attribute"));
    return target;
  }

  Result<StatementPointer> parse_set(uint32_t at) {
    advance();
    StatementPointer node = make(Statement::Kind::set, at);
    node->target = RIDGE_TRY(parse_target());
    if (skip_op("=")) {
      node->value = RIDGE_TRY(parse_tuple());
      RIDGE_TRY(expect_block_end("set"));
      return node;
    }
    node->kind = Statement::Kind::set_block;
    if (at_op("|")) node->value = RIDGE_TRY(parse_filters(nullptr, false));
    RIDGE_TRY(expect_block_end("set"));
    node->body = RIDGE_TRY(parse_closed_body("set", at));
    return node;
  }

  Result<std::vector<Parameter>> parse_parameters() {
    std::vector<Parameter> parameters;
    while (!at_op(")")) {
      Parameter parameter;
      parameter.name = RIDGE_TRY(expect_identifier("the name of a parameter"));
      if (skip_op("=")) {
        parameter.standard = RIDGE_TRY(parse_expression());
      } else if (!parameters.empty() && parameters.back().standard) {
        return fail("a parameter without a default cannot follow one with a default");
      }
      parameters.push_back(std::move(parameter));
      if (!skip_op(",")) break;
    }
    RIDGE_TRY(expect_op(")"));
    return parameters;
  }

  // The body of a macro or caller, which is a function: it sees no loop to leave.
  Result<void> parse_function_body(Statement& node, std::string_view tag) {
    const NameUse outer_names = names_;
    const int outer_loops = loops_;
    names_ = {};
    loops_ = 0;
    node.body = RIDGE_TRY(parse_closed_body(tag, node.at));
    node.uses_caller = names_.caller;
    node.uses_varargs = names_.varargs;
    node.uses_kwargs = names_.kwargs;
    names_ = {.caller = outer_names.caller || names_.caller,
              .varargs = outer_names.varargs || names_.varargs,
              .kwargs = outer_names.kwargs || names_.kwargs};
    loops_ = outer_loops;
    return {};
  }

  Result<StatementPointer> parse_macro(uint32_t at) {
    advance();
    StatementPointer node = make(Statement::Kind::macro, at);
    node->text = RIDGE_TRY(expect_identifier("the name of a macro"));
    RIDGE_TRY(expect_op("("));
    node->parameters = RIDGE_TRY(parse_parameters());
    RIDGE_TRY(expect_block_end("macro"));
    RIDGE_TRY(parse_function_body(*node, "macro"));
    return node;
  }

  Result<StatementPointer> parse_call_block(uint32_t at) {
    advance();
    StatementPointer node = make(Statement::Kind::call, at);
    node->text = "caller";
    if (skip_op("(")) node->parameters = RIDGE_TRY(parse_parameters());
    node->value = RIDGE_TRY(parse_expression());
    if (node->value->kind != Expression::Kind::call)
      return fail_at(at, "a call block needs a call, as in {% call m() %}");
    RIDGE_TRY(expect_block_end("call"));
    RIDGE_TRY(parse_function_body(*node, "call"));
    return node;
  }

  Result<StatementPointer> parse_filter_block(uint32_t at) {
    advance();
    StatementPointer node = make(Statement::Kind::filter, at);
    node->value = RIDGE_TRY(parse_filters(nullptr, true));
    RIDGE_TRY(expect_block_end("filter"));
    node->body = RIDGE_TRY(parse_closed_body("filter", at));
    return node;
  }

  Result<StatementPointer> parse_with(uint32_t at) {
    advance();
    StatementPointer node = make(Statement::Kind::with, at);
    while (current().kind != Token::Kind::block_end) {
      Target target = RIDGE_TRY(parse_single_target());
      RIDGE_TRY(expect_op("="));
      node->assignments.emplace_back(std::move(target), RIDGE_TRY(parse_expression()));
      if (!skip_op(",")) break;
    }
    RIDGE_TRY(expect_block_end("with"));
    node->body = RIDGE_TRY(parse_closed_body("with", at));
    return node;
  }

  // {% generation %} marks what the model itself says, for training; here it only makes a scope.
  Result<StatementPointer> parse_generation(uint32_t at) {
    advance();
    StatementPointer node = make(Statement::Kind::scope, at);
    RIDGE_TRY(expect_block_end("generation"));
    RIDGE_TRY(parse_function_body(*node, "generation"));
    return node;
  }

  Result<StatementPointer> parse_jump(uint32_t at) {
    const bool leaves = at_name("break");
    const std::string_view tag = leaves ? "break" : "continue";
    if (loops_ == 0) return fail(fmt::format("'{}' stands outside a loop", tag));
    advance();
    RIDGE_TRY(expect_block_end(tag));
    return make(leaves ? Statement::Kind::leave : Statement::Kind::next, at);
  }

  int loops_ = 0;
};

}  // namespace

Result<Block> parse(std::string_view source) {
  if (source.size() > kMaxSourceBytes) {
    return bad_input(fmt::format("chat template: {} bytes long, at most {} are read", source.size(), kMaxSourceBytes));
  }
  return StatementParser(source, RIDGE_TRY(tokenize(source))).parse_template();
}

}  // namespace ridge::jinja
