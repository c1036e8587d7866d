#include "tests/scheduler/live/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

namespace weir::scheduler {
namespace {

/// A flow that can have something, while its coflow is filled.
struct Open {
  const Model::Flow* flow;
  WholeRate rate = 0;
  bool closed = false;
};

WholeRate RoomOf(const Model::Flow& flow, const std::vector<WholeRate>& room) {
  WholeRate least = kMaxLiveCapacity;
  for (const LinkIndex link : flow.path) {
    least = std::min(least, room[link]);
  }
  return least;
}

void Give(Open* open, WholeRate rate, std::vector<WholeRate>* room) {
  open->rate += rate;
  for (const LinkIndex link : open->flow->path) {
    (*room)[link] -= rate;
  }
}

bool Crosses(const Open& open, LinkIndex link) {
  return std::ranges::find(open.flow->path, link) != open.flow->path.end();
}

/// The link with the least room for each flow that is not closed; the number of links if all are closed.
LinkIndex Narrowest(const std::vector<Open>& open, const std::vector<WholeRate>& room) {
  auto best = static_cast<LinkIndex>(room.size());
  double best_share = 0;
  for (LinkIndex link = 0; link < room.size(); ++link) {
    const auto claimants = std::ranges::count_if(open, [&](const Open& o) { return !o.closed && Crosses(o, link); });
    const double share = static_cast<double>(room[link]) / static_cast<double>(claimants);
    if (claimants > 0 && (best == room.size() || share < best_share)) {
      best = link;
      best_share = share;
    }
  }
  return best;
}

void FillMaxMin(std::vector<Open>* open, std::vector<WholeRate>* room) {
  for (LinkIndex link = Narrowest(*open, *room); link < room->size(); link = Narrowest(*open, *room)) {
    auto claimants = std::ranges::count_if(*open, [&](const Open& o) { return !o.closed && Crosses(o, link); });
    for (Open& o : *open) {
      if (!o.closed && Crosses(o, link)) {
        const WholeRate share = ((*room)[link] + claimants - 1) / claimants;
        Give(&o, std::min(share, RoomOf(*o.flow, *room)), room);
        o.closed = true;
        --claimants;
      }
    }
  }
}

std::string CompareRates(const Model& model, const LiveScheduler& scheduler) {
  const auto expected = model.Allocate();
  std::vector<WholeRate> left = model.capacity;
  for (const auto& [id, coflow] : model.coflows) {
    for (const Model::Flow& flow : coflow.flows) {
      const WholeRate rate = scheduler.fabric().rate[flow.index];
      if (scheduler.fabric().Remaining(flow.index) != flow.bytes) {
        return fmt::format("coflow {} flow {} has {} bytes left, expected {}", id, flow.index,
                           scheduler.fabric().Remaining(flow.index), flow.bytes);
      }
      if (rate != expected.at(flow.index)) {
        return fmt::format("coflow {} flow {} has rate {}, expected {}", id, flow.index, rate, expected.at(flow.index));
      }
      for (const LinkIndex link : flow.path) {
        left[link] -= rate;
      }
    }
  }
  for (LinkIndex link = 0; link < left.size(); ++link) {
    if (left[link] < 0) {
      return fmt::format("link {} carries {} bytes/s too much", link, -left[link]);
    }
  }
  for (const auto& [id, coflow] : model.coflows) {
    for (const Model::Flow& flow : coflow.flows) {
      if (RoomOf(flow, left) > 0) {
        return fmt::format("coflow {} flow {} could have {} bytes/s more", id, flow.index, RoomOf(flow, left));
      }
    }
  }
  return {};
}

/// Whether those in front of the label leave something on all links of the flow.
bool CanRun(const LiveScheduler& scheduler, FlowIndex flow, std::uint64_t label) {
  return std::ranges::all_of(scheduler.fabric().Path(flow), [&](const LiveFabric::Hop& hop) {
    return scheduler.queues().full_from(hop.link) >= label;
  });
}

/// `expected`, in order, are the flows of the link's queue, and its head is in order.
std::string CompareQueue(const LiveScheduler& scheduler, LinkIndex link, std::vector<LinkQueues::Entry> expected) {
  const auto queue = scheduler.queues().Entries(link);
  const auto head = scheduler.queues().Head(link);
  std::vector<LinkQueues::Entry> entries(queue.begin(), queue.end());
  if (head.size() > expected.size() || !std::ranges::equal(head, std::span(expected).first(head.size()), {},
                                                           &LinkQueues::Entry::slot, &LinkQueues::Entry::slot)) {
    return fmt::format("the head of the queue of link {} is not in order", link);
  }
  std::ranges::sort(entries, {}, &LinkQueues::Entry::flow);
  std::ranges::sort(expected, {}, &LinkQueues::Entry::flow);
  if (!std::ranges::equal(entries, expected,
                          [](const auto& a, const auto& b) { return a.slot == b.slot && a.flow == b.flow; })) {
    return fmt::format("the queue of link {} misses a flow or has one too many", link);
  }
  return {};
}

/// What the queues of a link say is what the rates say.
std::string CompareLink(const LiveScheduler& scheduler, LiveRates how, LinkIndex link) {
  const LiveFabric& fabric = scheduler.fabric();
  WholeRate left = fabric.capacity[link];
  std::uint64_t full_from = left == 0 ? 0 : LinkQueues::kNowhere;
  std::vector<LinkQueues::Entry> expected;
  std::size_t user = 0;
  const auto users = scheduler.queues().Users(link);
  for (std::size_t rank = 0; rank < scheduler.order().size(); ++rank) {
    const CoflowSlot slot = scheduler.order()[rank];
    WholeRate rate = 0;
    bool takes_part = false;
    for (const FlowIndex flow : fabric.Flows(slot)) {
      if (std::ranges::find(fabric.Path(flow), link, &LiveFabric::Hop::link) == fabric.Path(flow).end()) {
        continue;
      }
      rate += fabric.rate[flow];
      takes_part |= how == LiveRates::kMaxMin && CanRun(scheduler, flow, scheduler.queues().LabelOf(slot));
      expected.push_back({slot, flow});
    }
    if ((rate > 0 || takes_part) && (user == users.size() || users[user].slot != slot || users[user++].rate != rate)) {
      return fmt::format("link {} does not know that slot {} uses {}", link, slot, rate);
    }
    left -= rate;
    if (left == 0 && full_from == LinkQueues::kNowhere) {
      full_from = scheduler.queues().LabelOf(slot);
    }
  }
  if (user != users.size() || full_from != scheduler.queues().full_from(link)) {
    return fmt::format("link {} has a user too many, or is full elsewhere", link);
  }
  return CompareQueue(scheduler, link, std::move(expected));
}

}  // namespace

double Model::KeyOf(const Coflow& coflow) const {
  if (key == LiveKey::kGiven) {
    return coflow.key;
  }
  if (key == LiveKey::kFifo) {
    return 0;
  }
  std::int64_t total = 0;
  std::map<LinkIndex, std::int64_t> load;
  for (const Flow& flow : coflow.flows) {
    total += flow.bytes;
    for (const LinkIndex link : flow.path) {
      load[link] += flow.bytes;
    }
  }
  if (key == LiveKey::kScf) {
    return static_cast<double>(total);
  }
  double longest = 0;
  for (const auto& [link, bytes] : load) {
    const double seconds_per_byte = capacity[link] > 0 ? 1.0 / static_cast<double>(capacity[link]) : 1e100;
    longest = std::max(longest, static_cast<double>(bytes) * seconds_per_byte);
  }
  return longest;
}

std::vector<std::uint64_t> Model::Order() const {
  std::vector<std::tuple<double, Nanoseconds, std::uint64_t>> ranked;
  for (const auto& [id, coflow] : coflows) {
    ranked.emplace_back(KeyOf(coflow), coflow.arrival, id);
  }
  std::ranges::sort(ranked);
  std::vector<std::uint64_t> order;
  for (const auto& entry : ranked) {
    order.push_back(std::get<2>(entry));
  }
  return order;
}

std::map<FlowIndex, WholeRate> Model::Allocate() const {
  std::map<FlowIndex, WholeRate> result;
  std::vector<WholeRate> room = capacity;
  for (const std::uint64_t id : Order()) {
    std::vector<Open> open;
    for (const Flow& flow : coflows.at(id).flows) {
      result[flow.index] = 0;
      if (RoomOf(flow, room) > 0) {
        open.push_back({&flow});
      }
    }
    if (rates == LiveRates::kMaxMin) {
      FillMaxMin(&open, &room);
    }
    for (Open& o : open) {
      Give(&o, RoomOf(*o.flow, room), &room);
      result[o.flow->index] = o.rate;
    }
  }
  return result;
}

std::string Compare(const Model& model, const LiveScheduler& scheduler) {
  const LiveFabric& fabric = scheduler.fabric();
  std::vector<std::uint64_t> order;
  for (const CoflowSlot slot : scheduler.order()) {
    order.push_back(fabric.id[slot].value);
  }
  if (order != model.Order()) {
    return fmt::format("the order is {}, expected {}", fmt::join(order, " "), fmt::join(model.Order(), " "));
  }
  for (LinkIndex link = 0; link < fabric.links(); ++link) {
    if (std::string wrong = CompareLink(scheduler, model.rates, link); !wrong.empty()) {
      return wrong;
    }
  }
  return CompareRates(model, scheduler);
}

RandomRun::RandomRun(std::uint64_t seed) : random_(seed) {
  constexpr WholeRate kLargest[] = {1, 7, 1000, 12'500'000'000, kMaxLiveCapacity};
  largest_capacity_ = kLargest[Below(std::size(kLargest))];
  const std::uint64_t links = 1 + Below(24);
  for (std::uint64_t i = 0; i < links; ++i) {
    model_.capacity.push_back(RandomCapacity());
  }
  longest_path_ = 1 + Below(std::min<std::uint64_t>(links, 4));
  widest_ = 1 + Below(12);
  target_ = 1 + Below(40);
  model_.key = static_cast<LiveKey>(Below(4));
  model_.rates = static_cast<LiveRates>(Below(2));
  LiveOptions options{.key = model_.key, .rates = model_.rates, .limits = {.coflows = 128, .flows = 2048, .hops = 4}};
  scheduler_ = LiveScheduler::Make(model_.capacity, options).value();
}

WholeRate RandomRun::RandomCapacity() {
  return Below(8) == 0 ? 0 : 1 + static_cast<WholeRate>(Below(static_cast<std::uint64_t>(largest_capacity_)));
}

std::map<std::uint64_t, Model::Coflow>::iterator RandomRun::AnyCoflow() {
  return std::next(model_.coflows.begin(), static_cast<std::ptrdiff_t>(Below(model_.coflows.size())));
}

std::string RandomRun::Step() {
  for (std::uint64_t events = 1 + Below(4); events > 0; --events) {
    Event();
  }
  scheduler_->Update();
  return Compare(model_, *scheduler_);
}

void RandomRun::Event() {
  if (model_.coflows.size() < 1 + Below(2 * target_)) {
    return Add();
  }
  switch (Below(8)) {
    case 0:
    case 1:
      return Remove();
    case 2:
    case 3:
      return EndFlow();
    case 4:
      return ChangeCapacity();
    case 5:
      return ChangeRemaining();
    case 6:
      return ChangeKey();
    default:
      return Advance();
  }
}

void RandomRun::Add() {
  Model::Coflow coflow;
  coflow.arrival = static_cast<Nanoseconds>(Below(4));
  coflow.key = static_cast<double>(Below(6));
  std::vector<LinkIndex> all(model_.capacity.size());
  std::iota(all.begin(), all.end(), 0u);
  for (std::uint64_t flows = 1 + Below(widest_); flows > 0; --flows) {
    std::ranges::shuffle(all, random_);
    Model::Flow flow{.bytes = static_cast<std::int64_t>(Below(50)), .path = all};
    flow.path.resize(1 + Below(longest_path_));
    coflow.flows.push_back(std::move(flow));
  }
  std::vector<LiveFlow> flows;
  for (const Model::Flow& flow : coflow.flows) {
    flows.push_back({flow.bytes, flow.path});
  }
  const std::uint64_t id = next_id_++;
  coflow.slot = scheduler_->AddCoflow({CoflowId(id), coflow.arrival, coflow.key, flows}).value();
  for (std::size_t i = 0; i < coflow.flows.size(); ++i) {
    coflow.flows[i].index = scheduler_->fabric().Flows(coflow.slot)[i];
  }
  model_.coflows[id] = std::move(coflow);
}

void RandomRun::Remove() {
  const auto coflow = AnyCoflow();
  static_cast<void>(scheduler_->RemoveCoflow(coflow->second.slot).ok());
  model_.coflows.erase(coflow);
}

void RandomRun::EndFlow() {
  auto& flows = AnyCoflow()->second.flows;
  if (!flows.empty()) {
    const auto flow = flows.begin() + static_cast<std::ptrdiff_t>(Below(flows.size()));
    static_cast<void>(scheduler_->EndFlow(flow->index).ok());
    flows.erase(flow);
  }
}

void RandomRun::ChangeCapacity() {
  const auto link = static_cast<LinkIndex>(Below(model_.capacity.size()));
  model_.capacity[link] = RandomCapacity();
  static_cast<void>(scheduler_->SetCapacity(link, model_.capacity[link]).ok());
}

void RandomRun::ChangeRemaining() {
  auto& flows = AnyCoflow()->second.flows;
  if (!flows.empty()) {
    Model::Flow& flow = flows[Below(flows.size())];
    flow.bytes = static_cast<std::int64_t>(Below(50));
    flow.moved_part = 0;
    static_cast<void>(scheduler_->SetRemaining(flow.index, flow.bytes).ok());
  }
}

void RandomRun::ChangeKey() {
  Model::Coflow& coflow = AnyCoflow()->second;
  coflow.key = static_cast<double>(Below(6));
  static_cast<void>(scheduler_->SetKey(coflow.slot, coflow.key).ok());
}

void RandomRun::Advance() {
  const auto duration =
      static_cast<Nanoseconds>(Below(kSecond) * 20 / (1 + Below(1000)) / static_cast<std::uint64_t>(largest_capacity_));
  scheduler_->Advance(duration);
  for (auto& [id, coflow] : model_.coflows) {
    for (Model::Flow& flow : coflow.flows) {
      flow.moved_part += scheduler_->fabric().rate[flow.index] * duration;  // 2e10 at most.
      flow.bytes = std::max<std::int64_t>(0, flow.bytes - flow.moved_part / kSecond);
      flow.moved_part %= kSecond;
    }
  }
}

}  // namespace weir::scheduler
