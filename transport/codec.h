#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::transport {

/// What proves that a connection is meant for whom it reaches: 16 random bytes.
using Nonce = std::array<std::byte, 16>;

inline constexpr std::size_t kIdentityBytes = 32;  ///< At most 31 characters, then zeros.

/// Writes fields one after the other, integers little-endian; the caller gave enough room.
class Writer {
 public:
  explicit Writer(std::byte* at) : at_(at) {}
  template <typename T>
  void Put(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      *at_++ = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i));
    }
  }
  template <std::size_t kSize>
  void Put(const std::array<std::byte, kSize>& bytes) {
    at_ = std::copy(bytes.begin(), bytes.end(), at_);
  }
  void PutIdentity(std::string_view text) {
    for (std::size_t i = 0; i < kIdentityBytes; ++i) {
      *at_++ = i < text.size() && i + 1 < kIdentityBytes ? static_cast<std::byte>(text[i]) : std::byte{0};
    }
  }
  std::byte* at() const { return at_; }

 private:
  std::byte* at_;
};

/// Reads what Writer wrote; the caller gave enough bytes.
class Reader {
 public:
  explicit Reader(const std::byte* at) : at_(at) {}
  template <typename T>
  T Get() {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) value |= std::to_integer<std::uint64_t>(*at_++) << (8 * i);
    return static_cast<T>(value);
  }
  template <std::size_t kSize>
  std::array<std::byte, kSize> GetBytes() {
    std::array<std::byte, kSize> bytes;
    std::copy(at_, at_ + kSize, bytes.begin());
    at_ += kSize;
    return bytes;
  }
  Nonce GetNonce() { return GetBytes<16>(); }
  /// What is not printable becomes '?', as it ends in messages to people.
  std::string GetIdentity() {
    std::string text;
    for (std::size_t i = 0; i + 1 < kIdentityBytes && at_[i] != std::byte{0}; ++i) {
      const char c = std::to_integer<char>(at_[i]);
      text += c > ' ' && c < 127 ? c : '?';
    }
    at_ += kIdentityBytes;
    return text;
  }

 private:
  const std::byte* at_;
};

}  // namespace weir::transport
