// The floating-point environment of every compute thread: round to nearest, denormals kept (FTZ and DAZ off).
// Part of the arithmetic contract (docs/numerics.md): a library may have switched denormals off in this process.
#pragma once

namespace ridge {

void set_float_environment();

}  // namespace ridge
