// Students for `ridge claims`: trained by `ridge distill` in processes of their own, judged by what they report, by
// their visits, and with fewer bits.
//
//   Students students = RIDGE_TRY(train_students({.folder = …, .seeds = 3, …}));
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "claims/evidence.h"
#include "sim/recorded_trace.h"

namespace ridge::cli {

struct StudentPlan {
  std::string folder;  // gets a folder for each training; those that are finished there are not repeated
  uint32_t seeds = 3, steps = 150, teacher_steps = 300;
  uint32_t validation_tokens = 8192;  // that judge a student, and whose visits are replayed
  double l1 = 1.5;
  int threads = 0;
};

struct TrainedStudents {
  std::vector<Student> students;
  std::vector<BitsLoss> bits;
  std::vector<PolicyHits> hits;
  std::vector<sim::RecordedTrace> visits;  // of the students with L1, on text that judges
};
// Errors of the trainer stand on stderr as it says them. I/O error when interrupted; what is finished stays.
Result<TrainedStudents> train_students(const StudentPlan& plan);

}  // namespace ridge::cli
