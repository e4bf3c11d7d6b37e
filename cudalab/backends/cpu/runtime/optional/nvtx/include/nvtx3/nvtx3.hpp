// NVTX for C++. Nothing is recorded, so only the names and their parameters matter.
#pragma once

#include <string>

#include "nvToolsExt.h"

namespace nvtx3 {
inline namespace v1 {

struct rgb {
    using component_type = uint8_t;
    constexpr rgb(component_type red_, component_type green_, component_type blue_) noexcept
        : red(red_), green(green_), blue(blue_) {}
    component_type red, green, blue;
};
struct argb : rgb {
    constexpr argb(component_type alpha_, component_type red_, component_type green_,
                   component_type blue_) noexcept
        : rgb(red_, green_, blue_), alpha(alpha_) {}
    component_type alpha;
};
class color {
  public:
    using value_type = uint32_t;
    constexpr explicit color(value_type hex) noexcept : value(hex) {}
    constexpr color(argb c) noexcept
        : value((value_type)c.alpha << 24 | (value_type)c.red << 16 | c.green << 8 | c.blue) {}
    constexpr color(rgb c) noexcept : color(argb(255, c.red, c.green, c.blue)) {}
    constexpr value_type get_value() const noexcept { return value; }

  private:
    value_type value;
};
class category {
  public:
    using id_type = uint32_t;
    constexpr explicit category(id_type id_) noexcept : id(id_) {}
    constexpr id_type get_id() const noexcept { return id; }

  private:
    id_type id;
};

// What the program passes is accepted and dropped.
class domain {
  public:
    struct global {};
};
template <class D = domain::global>
class named_category_in : public category {
  public:
    template <class Text>
    named_category_in(id_type id_, const Text&) noexcept : category(id_) {}
    template <class C>
    static const named_category_in& get() noexcept {
        static const named_category_in made(C::id, C::name);
        return made;
    }
};
using named_category = named_category_in<domain::global>;
template <class D = domain::global>
class registered_string_in {
  public:
    template <class Text>
    explicit registered_string_in(const Text&) noexcept {}
    template <class M>
    static const registered_string_in& get() noexcept {
        static const registered_string_in made(M::message);
        return made;
    }
};
using registered_string = registered_string_in<domain::global>;
class message {
  public:
    template <class Text>
    constexpr message(const Text&) noexcept {}
};
class payload {
  public:
    template <class T>
    explicit constexpr payload(const T&) noexcept {}
};
class event_attributes {
  public:
    template <class... Args>
    explicit constexpr event_attributes(const Args&...) noexcept {}
};

template <class D = domain::global>
class [[maybe_unused]] scoped_range_in {
  public:
    template <class... Args>
    explicit scoped_range_in(const Args&...) noexcept {}
    scoped_range_in(const scoped_range_in&) = delete;
    scoped_range_in& operator=(const scoped_range_in&) = delete;
    ~scoped_range_in() {}  // so that an unused one is no mistake
};
using scoped_range = scoped_range_in<domain::global>;

struct range_handle {
    using value_type = nvtxRangeId_t;
    constexpr explicit range_handle(value_type id = 0) noexcept : value(id) {}
    constexpr explicit operator bool() const noexcept { return value != 0; }
    constexpr value_type get_value() const noexcept { return value; }
    value_type value;
};
template <class D = domain::global, class... Args>
inline range_handle start_range_in(const Args&...) noexcept {
    return range_handle();
}
template <class... Args>
inline range_handle start_range(const Args&...) noexcept {
    return range_handle();
}
template <class D = domain::global>
inline void end_range_in(range_handle) noexcept {}
inline void end_range(range_handle) noexcept {}
template <class D = domain::global>
class [[maybe_unused]] unique_range_in {
  public:
    template <class... Args>
    explicit unique_range_in(const Args&...) noexcept {}
    unique_range_in(unique_range_in&&) = default;
    unique_range_in& operator=(unique_range_in&&) = default;
    ~unique_range_in() {}
};
using unique_range = unique_range_in<domain::global>;

template <class D = domain::global, class... Args>
inline void mark_in(const Args&...) noexcept {}
template <class... Args>
inline void mark(const Args&...) noexcept {}

}  // namespace v1
}  // namespace nvtx3

#define NVTX3_FUNC_RANGE() ((void)0)
#define NVTX3_FUNC_RANGE_IN(D) ((void)0)
#define NVTX3_FUNC_RANGE_IF(condition) ((void)(condition))
#define NVTX3_FUNC_RANGE_IF_IN(D, condition) ((void)(condition))
