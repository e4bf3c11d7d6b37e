// A map from addresses to values in one sorted array. (std::map needs a C++ library at link time.)
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

namespace cudalab {

// The values are moved as bytes: a pointer to one is good until the next insertion or removal.
template <class Value>
class SortedMap {
  public:
    struct Entry {
        uintptr_t key;
        Value value;
    };
    Entry* begin() const { return entries; }
    Entry* end() const { return entries + count; }
    bool empty() const { return count == 0; }

    // The first entry whose key is not below `key`, and the first one above it.
    Entry* lower_bound(uintptr_t key) const {
        Entry* first = entries;
        for (size_t left = count; left;) {
            const size_t half = left / 2;
            if (first[half].key < key) {
                first += half + 1;
                left -= half + 1;
            } else {
                left = half;
            }
        }
        return first;
    }
    Entry* upper_bound(uintptr_t key) const {
        Entry* entry = find(key);
        return entry == end() ? lower_bound(key) : entry + 1;
    }
    Entry* find(uintptr_t key) const {
        Entry* entry = lower_bound(key);
        return entry != end() && entry->key == key ? entry : end();
    }
    Value& operator[](uintptr_t key) {
        size_t at = (size_t)(lower_bound(key) - entries);
        if (at == count || entries[at].key != key) {
            if (count == capacity) grow();
            memmove((void*)(entries + at + 1), (void*)(entries + at),
                    (count++ - at) * sizeof(Entry));
            entries[at] = {key, Value()};
        }
        return entries[at].value;
    }
    // Removes the entry; the one after it is then at the same place.
    Entry* erase(Entry* entry) {
        --count;
        memmove((void*)entry, (void*)(entry + 1), (size_t)(end() - entry) * sizeof(Entry));
        return entry;
    }

  private:
    void grow() {
        capacity = capacity ? 2 * capacity : 16;
        Entry* larger = (Entry*)realloc((void*)entries, capacity * sizeof(Entry));
        if (!larger) abort();  // as little memory as that: nothing else would work either
        entries = larger;
    }
    Entry* entries = nullptr;
    size_t count = 0, capacity = 0;
};

}  // namespace cudalab
