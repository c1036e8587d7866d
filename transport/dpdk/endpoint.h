#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "transport/clock.h"
#include "transport/dpdk/congestion.h"
#include "transport/dpdk/frame.h"
#include "transport/dpdk/neighbour.h"
#include "transport/dpdk/options.h"
#include "transport/dpdk/packet_port.h"
#include "transport/dpdk/wire.h"
#include "transport/pacer/timing_wheel.h"

namespace weir::transport::dpdk {

class ChannelEnd;
class Endpoint;
class PacketListener;

/// A time at which an end is called again.
struct EndTimer : TimingWheel::Timer {
  explicit EndTimer(ChannelEnd* whose) : end(whose) {}
  ChannelEnd* end;
  std::uint64_t thread = 0;  ///< Which one is to do it; 0: whoever comes.
};

/// The other end of a channel.
struct Peer {
  std::uint64_t channel = 0;   ///< Its number there; 0: not known yet.
  FramePath path;              ///< From us to it.
  IpAddress next_hop;          ///< Who has the MAC address in it.
  std::size_t packet_max = 0;  ///< Payload of a frame to it.
  std::string name;            ///< Identity and address.
};

/// One end of a channel, as its endpoint knows it: a number, a peer, and whether that is alive. The classes below it
/// say what a packet means. Registered with the endpoint from its first to its last moment; called under the endpoint's
/// guard.
///
/// A peer is dead when nothing came from it although it was asked fifteen times, a sixteenth of dead_after apart; so
/// that is told within dead_after, and an interruption of three quarters of it passes. Only time in which our own
/// endpoint was served counts (Endpoint::served). So a process that gets no core does not take its peer's answers,
/// which wait in a queue, for silence.
class ChannelEnd {
 public:
  ChannelEnd(Endpoint* endpoint, Peer peer, const char* doing, std::uint64_t channel);
  virtual ~ChannelEnd();
  ChannelEnd(const ChannelEnd&) = delete;
  ChannelEnd& operator=(const ChannelEnd&) = delete;

  virtual void OnPacket(const Header& header, const Datagram& datagram, Nanoseconds now) noexcept = 0;
  /// All packets of a burst were told: answer them together.
  virtual void AfterBurst(Nanoseconds now) noexcept = 0;
  /// At the time that WakeAt said, or the last call. Returns when it wants the next one; kNever: not at all.
  virtual Nanoseconds OnTick(Nanoseconds now) noexcept = 0;
  /// At the time that PaceAt said, in a call of the thread that said it.
  virtual void OnPaced(Nanoseconds) noexcept {}
  /// The answer to our hello is of another version.
  virtual void OnOtherVersion() noexcept {}
  /// A hello that came again: true if it was ours, and answered.
  virtual bool OnHello(const Greeting&) noexcept { return false; }

  /// The next hop is elsewhere now.
  void Redirect(const MacAddress& mac) noexcept { peer_.path.destination_mac = mac; }
  std::uint64_t channel() const { return channel_; }
  const Peer& peer() const { return peer_; }
  void Heard(Nanoseconds now) noexcept;
  /// The peer does not know the channel, or no longer.
  void OnReset() noexcept { Fail(StatusCode::kUnavailable, "the peer closed the channel"); }

 protected:
  virtual void Beat() noexcept = 0;   ///< Says something that wants an answer.
  virtual void Leave() noexcept = 0;  ///< Says that this end is closed.
  /// Returns when to look again.
  Nanoseconds CheckLife(Nanoseconds now) noexcept;
  /// The last act under the guard; nothing is called any more.
  void Unregister() noexcept;
  /// The channel has failed, and stays so; the peer is told.
  void Fail(StatusCode code, const std::string& what) noexcept;

  Endpoint& endpoint_;
  Peer peer_;
  Status failure_;

 private:
  friend class Endpoint;

  const char* doing_;  ///< "sending to"
  std::uint64_t channel_;
  bool registered_ = true;
  Nanoseconds heard_at_;
  Nanoseconds heard_served_;  ///< The endpoint's time served when something came last.
  Nanoseconds beat_at_;
  EndTimer tick_{this};
  EndTimer pace_{this};
};

/// Counted, never reset.
struct EndpointCounters {
  std::uint64_t frames_sent = 0;
  std::uint64_t frames_received = 0;
  std::uint64_t port_full = 0;     ///< Times that the port took no frame.
  std::uint64_t not_ours = 0;      ///< Frames for others, or of other protocols,
  std::uint64_t bad_checksum = 0;  ///< damaged ones,
  std::uint64_t malformed = 0;     ///< and those that say what cannot be.
  std::uint64_t other_version = 0;
  std::uint64_t unknown_channel = 0;
  std::uint64_t refused = 0;     ///< Hellos.
  std::uint64_t repeated = 0;    ///< Segments that were sent again.
  std::uint64_t duplicates = 0;  ///< Segments that came again.
  std::uint64_t timeouts = 0;
  std::uint64_t neighbours_answered = 0;  ///< Questions for our address.
};

/// All channels over one port: tells packets apart, and serves heartbeats. No DPDK in here: frames come from and go to
/// a PacketPort, time comes from a Clock, so all of it runs on a simulated wire in virtual time.
///
/// Whoever calls a channel serves all channels of the endpoint as far as receiving goes. What a channel sends, it sends
/// in calls of its own thread, since its lane belongs to that. One that waits for its rate or its gate waits in a
/// timing wheel, and sends in any call of its thread after its time has come, so thousands of paced channels need not
/// be asked one by one. Heartbeats and what is told again are timers there, too.
///
/// Threads: channels of several threads take turns by Guard, for some microseconds each. Outlived by port and clock;
/// outlives its channels. At most kChannelsMax of those.
///
/// Setup in endpoint.cc, what runs for each packet in endpoint_datapath.cc.
class Endpoint {
 public:
  static constexpr std::size_t kChannelsMax = 16'384;
  static constexpr Nanoseconds kNever = INT64_MAX;
  /// Heartbeats in dead_after.
  static constexpr int kBeats = 16;

  /// `random` gives numbers that nobody can guess.
  Endpoint(EndpointOptions options, PacketPort* port, const Clock* clock, std::function<std::uint64_t()> random);

  /// Held during every call that touches the endpoint.
  class Guard {
   public:
    explicit Guard(Endpoint* endpoint) noexcept;
    ~Guard() { endpoint_.busy_.store(false, std::memory_order_release); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    Endpoint& endpoint_;
  };

  /// Takes what came, answers it, and sends heartbeats that are due. Under a guard. No allocation for data.
  void Serve(Nanoseconds now) noexcept;
  void Flush() noexcept { port_.Flush(); }

  /// Memory for a packet to `path`, or null when the port is full. Followed by Send.
  std::byte* Reserve(const FramePath& path) noexcept;
  void Send(const FramePath& path, std::size_t packet_bytes) noexcept;
  /// The burst had something for this channel: AfterBurst will be called.
  void Touch(ChannelEnd* end) noexcept;
  /// OnTick is called at `at`, or before that if it was to be called before.
  void WakeAt(ChannelEnd* end, Nanoseconds at) noexcept;
  /// OnPaced is called at `at`, or within kPaceMax if that is later, when this thread calls the endpoint.
  void PaceAt(ChannelEnd* end, Nanoseconds at) noexcept;
  /// Whether OnPaced is to come, in a call of this thread.
  bool Paced(const ChannelEnd& end) const noexcept;
  void StopPacing(ChannelEnd* end) noexcept { end->pace_.Unlink(); }
  /// Whether Serve has just been called, so that a channel that waits for its time need not.
  bool Fresh(Nanoseconds now) const noexcept { return now - served_at_ < TimingWheel::kTick; }

  // Setup.
  std::uint64_t NewChannel();
  Nonce NewNonce();
  void Add(ChannelEnd* end);
  void Remove(ChannelEnd* end);
  void AddListener(const Nonce& nonce, PacketListener* listener);
  void RemoveListener(const Nonce& nonce);
  void Refuse(const Datagram& datagram, std::uint64_t to, const Nonce& channel, Verdict verdict) noexcept;
  /// A hello that was answered before: whose channel it is answers again.
  bool Repeat(const Greeting& hello) noexcept;
  /// A receiver that has closed: what it had is told to a sender that asks later.
  void Bury(std::uint64_t channel, const Peer& peer, const Ack& last);
  /// To an address of the same family, by a next hop at `mac`.
  FramePath PathTo(const IpAddress& address, const MacAddress& mac, std::uint16_t port) const;
  /// Who frames to `address` go to.
  IpAddress NextHop(const IpAddress& address) const noexcept;
  /// Whether the MAC address of that next hop has to be asked for; false: `*mac` is it, or stays as it is.
  bool MustAsk(const IpAddress& next_hop, const IpAddress& address, MacAddress* mac) const noexcept;
  /// Asks all on the segment.
  void AskFor(const IpAddress& neighbour) noexcept;
  NeighbourTable& neighbours() { return neighbours_; }
  std::size_t PacketMax() const;
  /// What the channels to `peer` know together. Allocates.
  std::shared_ptr<RoundTripFloor> FloorTo(const IpAddress& peer);

  const EndpointOptions& options() const { return options_; }
  const Clock& clock() const { return clock_; }
  std::size_t channels() const { return ends_.size(); }
  /// What came with this burst may have waited for us, so the time it took says nothing of the path.
  bool late() const { return late_; }
  MacAddress mac() const { return port_.mac(); }
  EndpointCounters& counters() { return counters_; }
  /// Time in which somebody served the endpoint: of a span between two calls, kLookMax or a heartbeat's at most.
  Nanoseconds served() const { return served_; }
  Nanoseconds beat() const { return options_.dead_after / kBeats; }

 private:
  friend class Guard;
  static constexpr std::size_t kBurst = 64;
  static constexpr std::size_t kBurstsAtOnce = 4;
  static constexpr std::size_t kAhead = 4;  ///< Frames whose headers are on their way from memory.
  static constexpr std::size_t kGraves = 256;
  static constexpr Nanoseconds kLateShare = 4;  ///< Of queue_target.
  static constexpr Nanoseconds kLookMax = 5 * kMillisecond;
  /// A channel that waits for its time looks at its directive so often, if nobody asks it meanwhile.
  static constexpr Nanoseconds kPaceMax = 5 * kMillisecond;
  /// Channels that send in one call because their time has come, so that a call stays short.
  static constexpr int kPacedAtOnce = 32;
  static constexpr std::size_t kThreads = 64;

  struct Grave {
    std::uint64_t channel = 0;
    std::uint64_t peer_channel = 0;
    Ack last;
  };

  /// Channels whose time has come, and who is to send for them.
  struct Thread {
    std::uint64_t id = 0;
    Link due;
  };

  static std::uint64_t ThisThread() noexcept;
  Thread* ThreadOf(std::uint64_t id) noexcept;
  void RunTimers(Nanoseconds now) noexcept;
  void Dispatch(std::span<const std::byte> frame, Nanoseconds now) noexcept;
  void OnOtherVersion(const Header& header, const Datagram& datagram) noexcept;
  void OnHello(const Datagram& datagram, Nanoseconds now) noexcept;
  void OnUnknown(const Header& header, const Datagram& datagram) noexcept;
  void OnReset(const Datagram& datagram) noexcept;
  bool OnNeighbour(std::span<const std::byte> frame) noexcept;
  FramePath Reverse(const FramePath& path) const noexcept;

  EndpointOptions options_;
  PacketPort& port_;
  const Clock& clock_;
  std::function<std::uint64_t()> random_;
  std::atomic<bool> busy_{false};
  EndpointCounters counters_;
  std::unordered_map<std::uint64_t, ChannelEnd*> ends_;
  std::map<Nonce, PacketListener*> listeners_;
  NeighbourTable neighbours_;
  std::map<IpAddress, std::weak_ptr<RoundTripFloor>> floors_;  ///< Of peers that have channels, and had.
  std::vector<ChannelEnd*> touched_;                           ///< In this burst.
  std::array<std::span<const std::byte>, kBurst> frames_{};
  std::byte* reserved_ = nullptr;
  TimingWheel wheel_;
  std::array<Thread, kThreads> threads_;  ///< One with nothing due is anybody's.
  std::size_t thread_count_ = 0;          ///< The first so many have been used.
  Nanoseconds served_at_ = 0;
  Nanoseconds served_ = 0;
  bool late_ = false;
  bool drained_ = true;        ///< After the last time that we were late.
  std::vector<Grave> graves_;  ///< A ring.
  std::size_t next_grave_ = 0;
};

inline void ChannelEnd::Heard(Nanoseconds now) noexcept {
  heard_at_ = now;
  heard_served_ = endpoint_.served();
}

}  // namespace weir::transport::dpdk
