// Vectors whose memory is taken from an arena, under the standard's names: on a GPU nothing else hands out memory.
#pragma once
#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <utility>

#include "arena.hpp"

namespace std {

// Grows in the arena of its lane or, where a `Shared` one, in that of its team: all lanes then have the same addresses.
template <class A, bool Shared = false>
class vector {
 public:
  vector() = default;
  explicit vector(size_t size) { resize(size); }
  vector(size_t size, const A& value) { assign(size, value); }
  template <class It>
    requires requires(It it) { *it; }
  vector(It first, It last) {
    assign(first, last);
  }
  vector(initializer_list<A> given) { assign(given.begin(), given.end()); }
  vector(const vector& other) { assign(other.begin(), other.end()); }
  vector(vector&& other) noexcept { swap_with(other); }
  ~vector() { release(); }
  vector& operator=(const vector& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  vector& operator=(vector&& other) noexcept {
    swap_with(other);
    return *this;
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  A* data() { return first_; }
  const A* data() const { return first_; }
  A* begin() { return first_; }
  A* end() { return first_ + size_; }
  const A* begin() const { return first_; }
  const A* end() const { return first_ + size_; }
  A& operator[](size_t i) { return first_[i]; }
  const A& operator[](size_t i) const { return first_[i]; }
  A& front() { return first_[0]; }
  A& back() { return first_[size_ - 1]; }
  const A& back() const { return first_[size_ - 1]; }

  void clear() {
    for (A* at = first_; at != first_ + size_; ++at) at->~A();
    size_ = 0;
  }
  void reserve(size_t room) {
    if (room <= room_) return;
    A* moved = static_cast<A*>(surefoot::gpu::take_room<WHERE>(room * sizeof(A)));
    for (size_t i = 0; i < size_; ++i) {
      ::new (static_cast<void*>(moved + i)) A(std::move(first_[i]));
      first_[i].~A();
    }
    surefoot::gpu::give_back<WHERE>(first_, room_ * sizeof(A));
    first_ = moved;
    room_ = static_cast<unsigned>(room);
  }
  void resize(size_t size) {
    grow_to(size);
    for (; size_ < size; ++size_) ::new (static_cast<void*>(first_ + size_)) A();
    shrink_to(size);
  }
  void resize(size_t size, const A& value) {
    grow_to(size);
    for (; size_ < size; ++size_) ::new (static_cast<void*>(first_ + size_)) A(value);
    shrink_to(size);
  }
  void assign(size_t size, const A& value) {
    clear();
    resize(size, value);
  }
  template <class It>
    requires requires(It it) { *it; }
  void assign(It first, It last) {
    clear();
    insert(end(), first, last);
  }
  void push_back(const A& value) { emplace_back(value); }
  template <class... Given>
  A& emplace_back(Given&&... given) {
    grow_to(size_ + 1);
    return *::new (static_cast<void*>(first_ + size_++)) A(std::forward<Given>(given)...);
  }
  // At the end alone.
  template <class It>
  void insert(const A*, It first, It last) {
    for (; first != last; ++first) emplace_back(*first);
  }

 private:
  static constexpr surefoot::gpu::Room WHERE = Shared ? surefoot::gpu::Room::team : surefoot::gpu::Room::own;
  A* first_ = nullptr;
  unsigned size_ = 0, room_ = 0;  // each takes one register, and not two

  void grow_to(size_t size) {
    if (size > room_) reserve(size > 2 * room_ ? size : 2 * room_);
  }
  void shrink_to(size_t size) {
    while (size_ > size) first_[--size_].~A();
  }
  void release() {
    clear();
    surefoot::gpu::give_back<WHERE>(first_, room_ * sizeof(A));
    first_ = nullptr;
    room_ = 0;
  }
  void swap_with(vector& other) {
    std::swap(first_, other.first_);
    std::swap(size_, other.size_);
    std::swap(room_, other.room_);
  }
};

// What is taken out in front leaves its place; nothing on a GPU waits in one for long.
template <class A>
class deque {
 public:
  bool empty() const { return gone_ == kept_.size(); }
  A& front() { return kept_[gone_]; }
  void push_back(const A& value) { kept_.push_back(value); }
  void pop_front() {
    if (++gone_ < kept_.size()) return;
    kept_.clear();
    gone_ = 0;
  }

 private:
  vector<A> kept_;
  size_t gone_ = 0;
};

}  // namespace std
