// An array that grows. (std::vector needs a C++ library at link time.)
#pragma once

#include <stdlib.h>
#include <string.h>

namespace cudalab {

// The items are moved as bytes. Copying a list is explicit: `append(other)`.
template <class T>
class List {
  public:
    List() = default;
    List(const List&) = delete;
    List& operator=(const List&) = delete;
    ~List() { free((void*)items); }

    T* begin() const { return items; }
    T* end() const { return items + count; }
    size_t size() const { return count; }
    T& operator[](size_t i) const { return items[i]; }

    void add(const T& item) {
        if (count == capacity) {
            capacity = capacity ? 2 * capacity : 4;
            T* larger = (T*)realloc((void*)items, capacity * sizeof(T));
            if (!larger) abort();  // as little memory as that: nothing else would work either
            items = larger;
        }
        memcpy((void*)(items + count++), (const void*)&item, sizeof item);
    }
    void append(const List& other) {
        for (const T& each : other) add(each);
    }
    bool has(const T& item) const {
        for (const T& each : *this)
            if (each == item) return true;
        return false;
    }
    void add_new(const T& item) {
        if (!has(item)) add(item);
    }
    void remove_at(size_t i) {
        memmove((void*)(items + i), (void*)(items + i + 1), (--count - i) * sizeof(T));
    }
    bool remove(const T& item) {
        for (T& each : *this)
            if (each == item) {
                remove_at((size_t)(&each - items));
                return true;
            }
        return false;
    }
    void remove_last() { --count; }
    void clear() { count = 0; }

  private:
    T* items = nullptr;
    size_t count = 0, capacity = 0;
};

}  // namespace cudalab
