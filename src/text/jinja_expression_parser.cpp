#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

#include "text/jinja_parser.h"

namespace ridge::jinja {
namespace {

using Row = std::pair<std::string_view, Operator>;
constexpr std::array<Row, 2> kSums = {{{"+", Operator::add}, {"-", Operator::subtract}}};
constexpr std::array<Row, 4> kProducts = {
    {{"*", Operator::multiply}, {"/", Operator::divide}, {"//", Operator::floor_divide}, {"%", Operator::modulo}}};
constexpr std::array<Row, 1> kPowers = {{{"**", Operator::power}}};
constexpr std::array<Row, 6> kComparisons = {{{"==", Operator::equal},
                                              {"!=", Operator::not_equal},
                                              {"<", Operator::less},
                                              {"<=", Operator::less_equal},
                                              {">", Operator::greater},
                                              {">=", Operator::greater_equal}}};

const Operator* find_operator(const Token& token, std::span<const Row> rows) {
  if (token.kind != Token::Kind::op) return nullptr;
  for (const Row& row : rows) {
    if (row.first == token.text) return &row.second;
  }
  return nullptr;
}

}  // namespace

ExpressionPointer ExpressionParser::make(Expression::Kind kind, uint32_t at) const {
  auto node = std::make_unique<Expression>();
  node->kind = kind;
  node->at = at;
  return node;
}

Result<ExpressionPointer> ExpressionParser::finish(ExpressionPointer node) const {
  int deepest = 0;
  for (const ExpressionPointer& child : node->children) deepest = std::max(deepest, child ? child->depth : 0);
  for (const Argument& argument : node->arguments) deepest = std::max(deepest, argument.value->depth);
  node->depth = deepest + 1;
  if (node->depth > kMaxExpressionDepth) {
    return fail_at(node->at, fmt::format("this expression is more than {} operations deep", kMaxExpressionDepth));
  }
  return node;
}

bool ExpressionParser::at_tuple_end() const {
  const Token::Kind kind = current().kind;
  return kind == Token::Kind::variable_end || kind == Token::Kind::block_end || at_op(")");
}

Result<ExpressionPointer> ExpressionParser::parse_tuple(Conditional conditional) {
  const uint32_t at = current().at;
  ExpressionPointer first = RIDGE_TRY(parse_expression(conditional));
  if (!at_op(",")) return first;
  ExpressionPointer tuple = make(Expression::Kind::tuple, at);
  tuple->children.push_back(std::move(first));
  while (skip_op(",") && !at_tuple_end()) tuple->children.push_back(RIDGE_TRY(parse_expression(conditional)));
  return finish(std::move(tuple));
}

Result<ExpressionPointer> ExpressionParser::parse_expression(Conditional conditional) {
  if (++depth_ > kMaxParseDepth) return fail(fmt::format("more than {} levels of nesting", kMaxParseDepth));
  ExpressionPointer node = RIDGE_TRY(parse_or());
  while (conditional == Conditional::allowed && at_name("if")) {
    ExpressionPointer choice = make(Expression::Kind::conditional, current().at);
    advance();
    choice->children.push_back(std::move(node));
    choice->children.push_back(RIDGE_TRY(parse_or()));
    choice->children.push_back(skip_name("else") ? RIDGE_TRY(parse_expression()) : nullptr);
    node = RIDGE_TRY(finish(std::move(choice)));
  }
  --depth_;
  return node;
}

Result<ExpressionPointer> ExpressionParser::parse_chain(Expression::Kind kind, Level next,
                                                        bool (ExpressionParser::*skip)()) {
  ExpressionPointer first = RIDGE_TRY((this->*next)());
  const uint32_t at = current().at;
  if (!(this->*skip)()) return first;
  ExpressionPointer chain = make(kind, at);
  chain->children.push_back(std::move(first));
  do {
    chain->children.push_back(RIDGE_TRY((this->*next)()));
  } while ((this->*skip)());
  return finish(std::move(chain));
}

Result<ExpressionPointer> ExpressionParser::parse_binary(Level next, std::span<const Row> operators) {
  ExpressionPointer left = RIDGE_TRY((this->*next)());
  while (const Operator* found = find_operator(current(), operators)) {
    ExpressionPointer node = make(Expression::Kind::binary, current().at);
    node->operators.push_back(*found);
    advance();
    node->children.push_back(std::move(left));
    node->children.push_back(RIDGE_TRY((this->*next)()));
    left = RIDGE_TRY(finish(std::move(node)));
  }
  return left;
}

Result<ExpressionPointer> ExpressionParser::parse_or() {
  return parse_chain(Expression::Kind::any_of, &ExpressionParser::parse_and, &ExpressionParser::skip_or);
}

Result<ExpressionPointer> ExpressionParser::parse_and() {
  return parse_chain(Expression::Kind::all_of, &ExpressionParser::parse_not, &ExpressionParser::skip_and);
}

Result<ExpressionPointer> ExpressionParser::parse_not() {
  if (!at_name("not")) return parse_compare();
  if (++depth_ > kMaxParseDepth) return fail(fmt::format("more than {} levels of nesting", kMaxParseDepth));
  ExpressionPointer node = make(Expression::Kind::negation, current().at);
  advance();
  node->children.push_back(RIDGE_TRY(parse_not()));
  --depth_;
  return finish(std::move(node));
}

Result<ExpressionPointer> ExpressionParser::parse_compare() {
  ExpressionPointer first = RIDGE_TRY(parse_sum());
  ExpressionPointer node = make(Expression::Kind::compare, current().at);
  node->children.push_back(std::move(first));
  while (true) {
    if (const Operator* found = find_operator(current(), kComparisons)) {
      node->operators.push_back(*found);
      advance();
    } else if (skip_name("in")) {
      node->operators.push_back(Operator::in);
    } else if (at_name("not") && following().is(Token::Kind::name, "in")) {
      node->operators.push_back(Operator::not_in);
      advance();
      advance();
    } else {
      break;
    }
    node->children.push_back(RIDGE_TRY(parse_sum()));
  }
  if (node->operators.empty()) return std::move(node->children.front());
  return finish(std::move(node));
}

Result<ExpressionPointer> ExpressionParser::parse_sum() { return parse_binary(&ExpressionParser::parse_concat, kSums); }

Result<ExpressionPointer> ExpressionParser::parse_concat() {
  return parse_chain(Expression::Kind::concat, &ExpressionParser::parse_product, &ExpressionParser::skip_tilde);
}

Result<ExpressionPointer> ExpressionParser::parse_product() {
  return parse_binary(&ExpressionParser::parse_power, kProducts);
}

Result<ExpressionPointer> ExpressionParser::parse_power() {
  return parse_binary(&ExpressionParser::parse_operand, kPowers);
}

Result<ExpressionPointer> ExpressionParser::parse_unary(bool with_filter) {
  ExpressionPointer node;
  if (at_op("-") || at_op("+")) {
    if (++depth_ > kMaxParseDepth) return fail(fmt::format("more than {} levels of nesting", kMaxParseDepth));
    node = make(Expression::Kind::unary, current().at);
    node->operators.push_back(at_op("-") ? Operator::negate : Operator::plus);
    advance();
    node->children.push_back(RIDGE_TRY(parse_unary(false)));
    --depth_;
    node = RIDGE_TRY(finish(std::move(node)));
  } else {
    node = RIDGE_TRY(parse_primary());
  }
  node = RIDGE_TRY(parse_postfix(std::move(node)));
  return with_filter ? parse_filter_chain(std::move(node)) : Result<ExpressionPointer>(std::move(node));
}

Result<ExpressionPointer> ExpressionParser::parse_primary() {
  const Token& token = current();
  if (token.kind == Token::Kind::name) return parse_name();
  if (at_op("(")) return parse_parenthesized();
  if (at_op("[")) return parse_list();
  if (at_op("{")) return parse_dict();
  ExpressionPointer node = make(Expression::Kind::constant, token.at);
  if (token.kind == Token::Kind::string) {
    std::string joined;
    for (; current().kind == Token::Kind::string; advance()) joined += current().text;  // 'a' 'b' is 'ab'
    node->constant = Value::text(std::move(joined));
    return node;
  }
  if (token.kind == Token::Kind::integer) {
    node->constant = Value::integer(token.integer);
  } else if (token.kind == Token::Kind::real) {
    node->constant = Value::real(token.real);
  } else {
    return fail(fmt::format("expected an expression, not {}", seen()));
  }
  advance();
  return node;
}

Result<ExpressionPointer> ExpressionParser::parse_name() {
  const Token& token = current();
  ExpressionPointer node = make(Expression::Kind::constant, token.at);
  const std::string& name = token.text;
  if (name == "true" || name == "True" || name == "false" || name == "False") {
    node->constant = Value::boolean(name == "true" || name == "True");
  } else if (name == "none" || name == "None") {
    node->constant = Value::none();
  } else {
    node->kind = Expression::Kind::name;
    node->name = name;
    names_.caller |= name == "caller";
    names_.varargs |= name == "varargs";
    names_.kwargs |= name == "kwargs";
  }
  advance();
  return node;
}

Result<ExpressionPointer> ExpressionParser::parse_parenthesized() {
  const uint32_t at = current().at;
  advance();
  if (skip_op(")")) return make(Expression::Kind::tuple, at);
  ExpressionPointer node = RIDGE_TRY(parse_tuple());
  RIDGE_TRY(expect_op(")"));
  return node;
}

Result<ExpressionPointer> ExpressionParser::parse_list() {
  ExpressionPointer node = make(Expression::Kind::list, current().at);
  advance();
  while (!at_op("]")) {
    node->children.push_back(RIDGE_TRY(parse_expression()));
    if (!skip_op(",")) break;
  }
  RIDGE_TRY(expect_op("]"));
  return finish(std::move(node));
}

Result<ExpressionPointer> ExpressionParser::parse_dict() {
  ExpressionPointer node = make(Expression::Kind::dict, current().at);
  advance();
  while (!at_op("}")) {
    node->children.push_back(RIDGE_TRY(parse_expression()));
    RIDGE_TRY(expect_op(":"));
    node->children.push_back(RIDGE_TRY(parse_expression()));
    if (!skip_op(",")) break;
  }
  RIDGE_TRY(expect_op("}"));
  return finish(std::move(node));
}

Result<ExpressionPointer> ExpressionParser::parse_postfix(ExpressionPointer node) {
  while (true) {
    if (at_op(".")) {
      node = RIDGE_TRY(parse_attribute(std::move(node)));
    } else if (at_op("[")) {
      node = RIDGE_TRY(parse_subscript(std::move(node)));
    } else if (at_op("(")) {
      node = RIDGE_TRY(parse_call(std::move(node)));
    } else {
      return node;
    }
  }
}

Result<ExpressionPointer> ExpressionParser::parse_attribute(ExpressionPointer object) {
  ExpressionPointer node = make(Expression::Kind::attribute, current().at);
  advance();
  node->children.push_back(std::move(object));
  if (current().kind == Token::Kind::integer) {  // a.0 is a[0]
    node->kind = Expression::Kind::item;
    ExpressionPointer index = make(Expression::Kind::constant, current().at);
    index->constant = Value::integer(current().integer);
    node->children.push_back(std::move(index));
    advance();
  } else {
    node->name = RIDGE_TRY(expect_identifier("the name of an attribute"));
  }
  return finish(std::move(node));
}

Result<ExpressionPointer> ExpressionParser::parse_subscript(ExpressionPointer object) {
  ExpressionPointer node = make(Expression::Kind::item, current().at);
  advance();
  node->children.push_back(std::move(object));
  if (at_op("]")) return fail("expected an index or a slice between the brackets");
  node->children.push_back(at_op(":") ? nullptr : RIDGE_TRY(parse_expression()));
  if (at_op(":")) {
    node->kind = Expression::Kind::slice;
    for (int bound = 0; bound < 2; ++bound) {
      const bool present = skip_op(":") && !at_op("]") && !at_op(":");
      node->children.push_back(present ? RIDGE_TRY(parse_expression()) : nullptr);
    }
  }
  RIDGE_TRY(expect_op("]"));
  return finish(std::move(node));
}

Result<ExpressionPointer> ExpressionParser::parse_filter_chain(ExpressionPointer node) {
  while (true) {
    if (at_op("|")) {
      node = RIDGE_TRY(parse_filters(std::move(node), false));
    } else if (at_name("is")) {
      node = RIDGE_TRY(parse_test(std::move(node)));
    } else if (at_op("(")) {
      node = RIDGE_TRY(parse_call(std::move(node)));
    } else {
      return node;
    }
  }
}

Result<ExpressionPointer> ExpressionParser::parse_filters(ExpressionPointer subject, bool first_has_no_pipe) {
  while (first_has_no_pipe || skip_op("|")) {
    first_has_no_pipe = false;
    ExpressionPointer node = make(Expression::Kind::filter, current().at);
    node->name = RIDGE_TRY(expect_identifier("the name of a filter"));
    node->children.push_back(std::move(subject));
    if (at_op("(")) node->arguments = RIDGE_TRY(parse_arguments());
    subject = RIDGE_TRY(finish(std::move(node)));
  }
  return subject;
}

Result<ExpressionPointer> ExpressionParser::parse_test(ExpressionPointer subject) {
  advance();
  const uint32_t at = current().at;
  const bool negated = skip_name("not");
  ExpressionPointer node = make(Expression::Kind::test, current().at);
  node->name = RIDGE_TRY(expect_identifier("the name of a test"));
  node->children.push_back(std::move(subject));
  const Token::Kind kind = current().kind;
  const bool literal = kind == Token::Kind::string || kind == Token::Kind::integer || kind == Token::Kind::real;
  const bool word = kind == Token::Kind::name && !at_name("else") && !at_name("or") && !at_name("and");
  if (at_op("(")) {
    node->arguments = RIDGE_TRY(parse_arguments());
  } else if (literal || word || at_op("[") || at_op("{")) {
    if (at_name("is")) return fail("tests cannot follow each other; put the first one in brackets");
    ExpressionPointer value = RIDGE_TRY(parse_primary());
    value = RIDGE_TRY(parse_postfix(std::move(value)));
    node->arguments.push_back({.value = std::move(value)});
  }
  node = RIDGE_TRY(finish(std::move(node)));
  if (!negated) return node;
  ExpressionPointer negation = make(Expression::Kind::negation, at);
  negation->children.push_back(std::move(node));
  return finish(std::move(negation));
}

Result<ExpressionPointer> ExpressionParser::parse_call(ExpressionPointer callee) {
  ExpressionPointer node = make(Expression::Kind::call, current().at);
  node->children.push_back(std::move(callee));
  node->arguments = RIDGE_TRY(parse_arguments());
  return finish(std::move(node));
}

Result<std::vector<Argument>> ExpressionParser::parse_arguments() {
  advance();  // (
  std::vector<Argument> arguments;
  while (!at_op(")")) {
    const Argument::Kind last = arguments.empty() ? Argument::Kind::positional : arguments.back().kind;
    arguments.push_back(RIDGE_TRY(parse_argument(last)));
    if (!skip_op(",")) break;
  }
  RIDGE_TRY(expect_op(")"));
  return arguments;
}

Result<Argument> ExpressionParser::parse_argument(Argument::Kind last) {
  Argument argument;
  if (skip_op("*")) {
    argument.kind = Argument::Kind::spread;
  } else if (skip_op("**")) {
    argument.kind = Argument::Kind::spread_named;
  } else if (current().kind == Token::Kind::name && following().is(Token::Kind::op, "=")) {
    argument.kind = Argument::Kind::named;
    argument.name = current().text;
    advance();
    advance();
  } else if (last != Argument::Kind::positional) {
    return fail("an argument without a name cannot follow one with a name");
  }
  argument.value = RIDGE_TRY(parse_expression());
  return argument;
}

}  // namespace ridge::jinja
