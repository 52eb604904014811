// Tokens to a syntax tree, by the grammar of Jinja 3. What templates of models do not use (include, import, extends,
// recursive loops, …) is an error that says so.
//
// Not for: evaluation (jinja_runtime.h). Hostile sources are bounded: size, nesting.
//
//   const std::string source = normalize_newlines(file);
//   Block block = RIDGE_TRY(parse(source));
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/jinja_ast.h"
#include "text/jinja_lexer.h"

namespace ridge::jinja {

constexpr size_t kMaxSourceBytes = 1 << 20;
constexpr int kMaxParseDepth = 64;        // brackets, unary operators and blocks inside each other
constexpr int kMaxExpressionDepth = 200;  // of a tree: also a + b + c + …

// `source` as normalize_newlines left it.
Result<Block> parse(std::string_view source);

// The token stream and what both halves of the parser share.
class ParserBase {
 protected:
  ParserBase(std::string_view source, std::vector<Token> tokens) : source_(source), tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[position_]; }
  const Token& following() const { return tokens_[std::min(position_ + 1, tokens_.size() - 1)]; }
  void advance() { position_ += position_ + 1 < tokens_.size() ? 1 : 0; }
  bool at_op(std::string_view text) const { return current().is(Token::Kind::op, text); }
  bool at_name(std::string_view text) const { return current().is(Token::Kind::name, text); }
  bool skip_op(std::string_view text);
  bool skip_name(std::string_view text);
  Result<void> expect_op(std::string_view text);
  Result<void> expect_name(std::string_view text);
  Result<std::string> expect_identifier(std::string_view what);
  Result<void> expect_block_end(std::string_view tag);
  Error fail(std::string_view message) const { return error_at(source_, current().at, message); }
  Error fail_at(uint32_t at, std::string_view message) const { return error_at(source_, at, message); }
  // The current token, for messages.
  std::string seen() const;

  std::string_view source_;
  std::vector<Token> tokens_;
  size_t position_ = 0;
  int depth_ = 0;
};

class ExpressionParser : protected ParserBase {
 protected:
  ExpressionParser(std::string_view source, std::vector<Token> tokens) : ParserBase(source, std::move(tokens)) {}

  struct NameUse {
    bool caller = false, varargs = false, kwargs = false;
  };

  // A tuple without brackets, or one expression. Without `conditional`, `if` ends it (for … in … if …).
  enum class Conditional : uint8_t { allowed, excluded };
  Result<ExpressionPointer> parse_tuple(Conditional conditional = Conditional::allowed);
  Result<ExpressionPointer> parse_expression(Conditional conditional = Conditional::allowed);
  Result<ExpressionPointer> parse_unary(bool with_filter = true);
  // `subject` | name(…) | …; a null subject stands for the text of a block.
  Result<ExpressionPointer> parse_filters(ExpressionPointer subject, bool first_has_no_pipe);

  NameUse names_;  // seen since it was last cleared: whether a macro needs caller, varargs, kwargs

 private:
  using Level = Result<ExpressionPointer> (ExpressionParser::*)();
  Result<ExpressionPointer> parse_or();
  Result<ExpressionPointer> parse_and();
  Result<ExpressionPointer> parse_not();
  Result<ExpressionPointer> parse_compare();
  Result<ExpressionPointer> parse_sum();
  Result<ExpressionPointer> parse_concat();
  Result<ExpressionPointer> parse_product();
  Result<ExpressionPointer> parse_power();
  Result<ExpressionPointer> parse_operand() { return parse_unary(); }
  Result<ExpressionPointer> parse_primary();
  Result<ExpressionPointer> parse_name();
  Result<ExpressionPointer> parse_list();
  Result<ExpressionPointer> parse_dict();
  Result<ExpressionPointer> parse_parenthesized();
  Result<ExpressionPointer> parse_postfix(ExpressionPointer node);
  Result<ExpressionPointer> parse_attribute(ExpressionPointer node);
  Result<ExpressionPointer> parse_subscript(ExpressionPointer node);
  Result<ExpressionPointer> parse_filter_chain(ExpressionPointer node);
  Result<ExpressionPointer> parse_test(ExpressionPointer node);
  Result<ExpressionPointer> parse_call(ExpressionPointer callee);
  Result<std::vector<Argument>> parse_arguments();
  Result<Argument> parse_argument(Argument::Kind last);
  Result<ExpressionPointer> parse_chain(Expression::Kind kind, Level next, bool (ExpressionParser::*skip)());
  Result<ExpressionPointer> parse_binary(Level next, std::span<const std::pair<std::string_view, Operator>> operators);
  bool skip_or() { return skip_name("or"); }
  bool skip_and() { return skip_name("and"); }
  bool skip_tilde() { return skip_op("~"); }
  bool at_tuple_end() const;
  ExpressionPointer make(Expression::Kind kind, uint32_t at) const;
  // Sets the depth from the children; an error if the tree is too deep.
  Result<ExpressionPointer> finish(ExpressionPointer node) const;
};

}  // namespace ridge::jinja
