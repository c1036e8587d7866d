#include "transport/rdma/device_rule.h"

#include <algorithm>
#include <charconv>

namespace weir::transport::rdma {

DeviceRule::DeviceRule(std::string_view text) {
  if (text.starts_with('^')) {
    exclude_ = true;
    text.remove_prefix(1);
  }
  if (text.starts_with('=')) {
    whole_ = true;
    text.remove_prefix(1);
  }
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view entry = text.substr(0, end);
    const std::size_t colon = std::min(entry.find(':'), entry.size());
    int port = 0;
    if (colon < entry.size()) std::from_chars(entry.data() + colon + 1, entry.data() + entry.size(), port);
    if (colon > 0) entries_.push_back({std::string(entry.substr(0, colon)), port});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

bool DeviceRule::Takes(std::string_view device, int port) const {
  if (entries_.empty()) return true;
  const bool named = std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return (whole_ ? device == entry.name : device.starts_with(entry.name)) && (entry.port == 0 || entry.port == port);
  });
  return named != exclude_;
}

}  // namespace weir::transport::rdma
