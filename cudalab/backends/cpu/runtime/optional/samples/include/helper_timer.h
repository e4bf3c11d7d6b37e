// The stopwatches of NVIDIA's samples, in milliseconds.
#pragma once
#include <chrono>

class StopWatchInterface {
  public:
    virtual ~StopWatchInterface() {}
    virtual void start() = 0;
    virtual void stop() = 0;
    virtual void reset() = 0;
    virtual float getTime() = 0;         // of all times that it ran
    virtual float getAverageTime() = 0;  // of one time
};

class StopWatchLinux : public StopWatchInterface {
  public:
    void start() override { begin = Clock::now(), runs = true; }
    void stop() override {
        if (runs) total += passed(), ++times;
        runs = false;
    }
    void reset() override { total = 0, times = 0, begin = Clock::now(); }
    float getTime() override { return (float)(runs ? total + passed() : total); }
    float getAverageTime() override { return times ? (float)(total / times) : 0.f; }

  private:
    using Clock = std::chrono::steady_clock;
    double passed() const {
        return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    }
    Clock::time_point begin = Clock::now();
    double total = 0;
    int times = 0;
    bool runs = false;
};

inline bool sdkCreateTimer(StopWatchInterface** timer) {
    *timer = new StopWatchLinux;
    return true;
}
inline bool sdkDeleteTimer(StopWatchInterface** timer) {
    delete *timer;
    *timer = nullptr;
    return true;
}
inline bool sdkStartTimer(StopWatchInterface** timer) {
    if (*timer) (*timer)->start();
    return true;
}
inline bool sdkStopTimer(StopWatchInterface** timer) {
    if (*timer) (*timer)->stop();
    return true;
}
inline bool sdkResetTimer(StopWatchInterface** timer) {
    if (*timer) (*timer)->reset();
    return true;
}
inline float sdkGetTimerValue(StopWatchInterface** timer) {
    return *timer ? (*timer)->getTime() : 0.f;
}
inline float sdkGetAverageTimerValue(StopWatchInterface** timer) {
    return *timer ? (*timer)->getAverageTime() : 0.f;
}
