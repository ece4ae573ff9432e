// PowerLog: a meter that is read by a thread of its own, so that a caller who wants the energy used
// since the last call never waits for a driver.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "machine/consumption.h"

namespace assay::machine {

class PowerLog {
 public:
  explicit PowerLog(std::unique_ptr<Meter> meter,
                    std::chrono::milliseconds every = std::chrono::milliseconds(100));
  PowerLog(const PowerLog&) = delete;
  PowerLog& operator=(const PowerLog&) = delete;
  ~PowerLog();

  // Since the last call, or since it was made.
  Used take();

 private:
  void work(std::chrono::milliseconds every);
  void read();

  const base::Clock& clock_ = base::system_clock();
  const std::unique_ptr<Meter> meter_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  Consumption consumption_;
  std::thread thread_;
};

}  // namespace assay::machine
