// The public header (include/ridge/ridge.h) over the engine.
#include "engine/generate.h"
#include "engine/prompt.h"
#include "ridge/ridge.h"

namespace ridge::api {
namespace {

Failure failure(const Error& error) { return {static_cast<int>(error.code), error.message}; }

}  // namespace

struct Model::Impl {
  std::unique_ptr<Engine> engine;

  Expected<std::string> generate(std::string_view text, PromptKind kind, const GenerateOptions& options,
                                 const OnText& on_text) {
    auto prompt = Prompt::create(*engine, kind);
    if (!prompt.ok()) return failure(prompt.error());
    auto ids = prompt.value().conversation({{"user", std::string(text)}});
    if (!ids.ok()) return failure(ids.error());
    SamplerOptions sampling{.temperature = options.temperature, .logit_bias = {}, .seed = options.seed};
    if (auto good = check(sampling); !good.ok()) return failure(good.error());
    Sampler sampler(sampling, engine->model().config().vocabulary);
    auto done = ridge::generate(*engine, ids.value(), {.max_tokens = options.max_tokens, .stops = options.stops},
                                sampler, [&](std::string_view piece) { return !on_text || on_text(piece); });
    if (!done.ok()) return failure(done.error());
    return std::move(done).value().text;
  }
};

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

Expected<Model> Model::open(const OpenOptions& options) {
  EngineOptions o{.path = options.path, .context = options.context, .threads = options.threads};
  if (options.memory_bytes != 0) o.memory = options.memory_bytes;
  auto engine = Engine::open(o);
  if (!engine.ok()) return failure(engine.error());
  auto impl = std::make_unique<Impl>();
  impl->engine = std::move(engine).value();
  return Model(std::move(impl));
}

Expected<std::string> Model::chat(std::string_view question, const GenerateOptions& options, const OnText& on_text) {
  return impl_->generate(question, PromptKind::automatic, options, on_text);
}

Expected<std::string> Model::complete(std::string_view text, const GenerateOptions& options, const OnText& on_text) {
  return impl_->generate(text, PromptKind::raw, options, on_text);
}

Expected<std::vector<float>> Model::logits(std::span<const int32_t> tokens) {
  impl_->engine->rewind(0);
  auto row = impl_->engine->evaluate(tokens);
  if (!row.ok()) return failure(row.error());
  return std::vector<float>(row.value().begin(), row.value().end());
}

std::vector<int32_t> Model::tokenize(std::string_view text) const {
  return impl_->engine->tokenizer()->encode(text, {});
}

size_t Model::vocabulary() const { return impl_->engine->model().config().vocabulary; }

}  // namespace ridge::api
