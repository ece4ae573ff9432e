// PowerLog: reads a meter in its own thread, so that asking for the energy used never waits for the
// driver.
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

  // Consumption since the last call, or since construction.
  PowerUse take();

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
