// Vector clocks: what has been done when a piece of work begins. Part of order.cpp.
#pragma once

#include "list.h"

namespace cudalab {

// For each sequence of work, such as a stream, how much of it is done.
class Clock {
  public:
    unsigned operator[](unsigned sequence) const {
        return sequence < ticks.size() ? ticks[sequence] : 0;
    }
    void raise(unsigned sequence, unsigned tick) {
        while (ticks.size() <= sequence) ticks.add(0);
        if (ticks[sequence] < tick) ticks[sequence] = tick;
    }
    void join(const Clock& other) {
        for (unsigned i = 0; i < other.ticks.size(); ++i)
            if (other.ticks[i]) raise(i, other.ticks[i]);
    }
    void become(const Clock& other) {
        ticks.clear();
        ticks.append(other.ticks);
    }
    bool covers(const Clock& other) const {
        for (unsigned i = 0; i < other.ticks.size(); ++i)
            if ((*this)[i] < other.ticks[i]) return false;
        return true;
    }

  private:
    List<unsigned> ticks;
};

// The numbers of sequences.
class Sequences {
  public:
    unsigned add() {
        if (!unused.size()) return count++;
        const unsigned sequence = unused[unused.size() - 1];
        unused.remove_last();
        return sequence;
    }
    // `sequence` has no more work, and all that it had is done.
    void remove(unsigned sequence) { unused.add(sequence); }
    // The next tick of a sequence in whose clock the last one is.
    unsigned tick(Clock& clock, unsigned sequence) {
        const unsigned next = newest[sequence] + 1;
        newest.raise(sequence, next);
        clock.raise(sequence, next);
        return next;
    }
    Clock newest;  // of each sequence the work that was given to it last

  private:
    unsigned count = 0;
    List<unsigned> unused;
};

}  // namespace cudalab
