// Rooflines that are kept: in the SQLite file of `ridge bench`, in the tables `roofline_runs` and `roofline_points`
// (docs/roofline.md lists their columns). A point of every phase and operator, measured or computed.
//
//   RooflineStore store = RIDGE_TRY(RooflineStore::open("results.sqlite"));   // before measuring
//   int64_t number = RIDGE_TRY(store.save(report));
//   std::vector<KeptPoint> points = RIDGE_TRY(store.history({"SmolLM2 135M"}));
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/roofline_points.h"
#include "base/result.h"
#include "report/sqlite_file.h"

namespace ridge {

// A phase as a whole, of one run: what a comparison over machines, dates and versions needs.
struct KeptPoint {
  int64_t run = 0;
  std::string label, measured_at, version, numerics, kv_type;
  uint64_t memory_budget = 0;  // 0: none
  std::string isa;             // empty where nothing ran
  std::string machine;         // where it was measured, or which it was computed for
  std::string model, scenario, phase;
  bool measured = true;
  int threads = 1;
  uint64_t prompt = 0, answer = 0, tokens = 0, depth = 0;
  double tokens_per_s = 0, flops_per_s = 0, bytes_per_s = 0, oi = 0, eta = 0, phi = 0;
  double seconds = 0, seconds_low = 0, seconds_high = 0;
  std::string roof;  // "memory", …
  bool above_roof = false, contended = false;
};

// The columns of a history, once for all: what the query asks for, what a row is read into, and what is printed. visit
// is called with each column, as "r.label" of a run or "p.model" of a point, and the field of the point.
template <class Point, class Visit>
void each_column(Point& p, Visit visit) {
  visit("r.id AS run", p.run);
  visit("r.label", p.label);
  visit("r.measured_at", p.measured_at);
  visit("r.version", p.version);
  visit("p.machine", p.machine);
  visit("r.isa", p.isa);
  visit("r.numerics", p.numerics);
  visit("r.kv_type", p.kv_type);
  visit("r.memory_budget", p.memory_budget);
  visit("p.model", p.model);
  visit("p.scenario", p.scenario);
  visit("p.phase", p.phase);
  visit("p.measured", p.measured);
  visit("p.threads", p.threads);
  visit("p.prompt", p.prompt);
  visit("p.answer", p.answer);
  visit("p.tokens", p.tokens);
  visit("p.depth", p.depth);
  visit("p.tokens_per_s", p.tokens_per_s);
  visit("p.seconds", p.seconds);
  visit("p.seconds_low", p.seconds_low);
  visit("p.seconds_high", p.seconds_high);
  visit("p.flops_per_s", p.flops_per_s);
  visit("p.bytes_per_s", p.bytes_per_s);
  visit("p.oi", p.oi);
  visit("p.roof", p.roof);
  visit("p.eta", p.eta);
  visit("p.phi", p.phi);
  visit("p.above_roof", p.above_roof);
  visit("p.contended", p.contended);
}

class RooflineStore {
 public:
  // Creates the file and the tables where they are absent. I/O error if it cannot be written, bad input if it is no
  // database, or that of another program, or its tables are others.
  static Result<RooflineStore> open(const std::string& path);
  // An existing file, to read from alone; bad input if it holds no rooflines.
  static Result<RooflineStore> open_existing(const std::string& path);

  // All points or none. The number that the run got.
  Result<int64_t> save(const RooflineReport& report);
  // Phases as a whole of these models (all, without a name), so that what can be compared stands together, oldest run
  // first. Bad input names the models that are there, if one is not.
  Result<std::vector<KeptPoint>> history(const std::vector<std::string>& models) const;

 private:
  explicit RooflineStore(SqliteFile file) : file_(std::move(file)) {}
  Result<void> check_model(const std::string& model) const;
  SqliteFile file_;
};

}  // namespace ridge
