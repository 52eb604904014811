// What RooflineBench's code makes of a measurement, and what physics makes of it: plain data (paper_compat.h fills it).
//
//   CompatPoint c = compat_point(row, 1);
//   PhysicalPoint p = physical_point(row, 1);
//   c.oi, p.decode_oi
#pragma once

namespace ridge {

struct CompatPoint {
  double ops = 0;      // W
  double seconds = 0;  // of the whole process
  double peak_bytes = 0;
  double oi = 0;         // W / (peak_bytes · seconds): 1 / (byte · second) per operation
  double ops_per_s = 0;  // W / seconds
  // The paper's (6) and (7), in its units: FLOP/byte and FLOP/s under one root.
  double phi = 0;
  double roof_share = 0;  // performance / (OI · bandwidth) = peak_bytes / bandwidth
};

// Prefill and decode apart.
struct PhysicalPoint {
  double prefill_oi = 0, prefill_ops_per_s = 0;
  double decode_oi = 0, decode_ops_per_s = 0, decode_bytes_per_s = 0;
  double prefill_ops = 0;  // of the whole prompt
};

}  // namespace ridge
