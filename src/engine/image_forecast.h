// What `--spectrum` says: which quantity Spectrum forecasts (spectrum.h), and by which settings; as text both ways.
//
//   ForecastOptions f = RIDGE_TRY(parse_forecast("latent,blend=0.3,tail=2"));
//   std::string all = text_of(f);                    // "latent,warmup=4,window=2,…": every setting, for a recipe
//
// Not for: the forecasting itself (spectrum.h), or the passes of the model (image_velocity.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/spectrum.h"

namespace ridge {

enum class ForecastForm : uint8_t {
  latent,  // the denoised latent after guidance: a predicted step runs no network
  hidden,  // the hidden state after the last block, each branch by itself: a predicted step runs the last layer alone
};

struct ForecastOptions {
  ForecastForm form = ForecastForm::latent;
  SpectrumOptions spectrum;
};

// A form's name, settings "name=value", or both, parted by commas; what is not named is as the form's preset has it,
// and without a form it is the latent's. Usage error for what is no setting or out of range.
Result<ForecastOptions> parse_forecast(std::string_view text);
// Every setting, so that parse_forecast() gives the same whatever the presets become.
std::string text_of(const ForecastOptions& options);

// Which steps of a run with these noise levels are computed.
std::vector<bool> forecast_steps(const ForecastOptions& options, std::span<const float> sigmas);

}  // namespace ridge
