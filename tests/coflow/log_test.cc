#include "coflow/log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

namespace weir::log {
namespace {

TEST(LogLine, FieldsFollowTheEventAsKeyAndValue) {
  EXPECT_EQ(FormatLine("started", {}), "started");
  EXPECT_EQ(FormatLine("agent_connected", {{"host", "d0h0"}, {"lanes", 3}, {"known", true}, {"gone", false}}),
            "agent_connected host=d0h0 lanes=3 known=true gone=false");
}

TEST(LogLine, ValuesThatWouldBreakTheLineAreQuoted) {
  EXPECT_EQ(FormatLine("e", {{"a", "two words"}, {"b", ""}, {"c", "k=v"}}), "e a=\"two words\" b=\"\" c=\"k=v\"");
  EXPECT_EQ(FormatLine("e", {{"a", "say \"hi\""}, {"b", "c:\\x"}}), "e a=\"say \\\"hi\\\"\" b=\"c:\\\\x\"");
}

TEST(LogLine, OneEventIsOneLineWhateverTheValueHolds) {
  EXPECT_EQ(FormatLine("e", {{"a", "one\ntwo\tthree"}}), "e a=\"one two three\"");
  EXPECT_EQ(FormatLine("e", {{"a", "\x1b[31mred\r\x7f"}}), "e a=\" [31mred  \"");
}

class LogOutput : public testing::Test {
 protected:
  void TearDown() override { SetLevel(Level::kInfo); }
};

TEST_F(LogOutput, LinesGoToStandardErrorWithTimeAndLevel) {
  testing::internal::CaptureStderr();
  Warn("link_down", {{"link", "east-west"}});
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(text.ends_with("Z warning link_down link=east-west\n")) << text;
  EXPECT_EQ(text.find('T'), 10u) << text;
}

TEST_F(LogOutput, LevelSilencesWhatIsBelowIt) {
  testing::internal::CaptureStderr();
  EXPECT_TRUE(SetLevel("warn"));
  Debug("a");
  Info("b");
  Warn("c");
  Error("d");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
  EXPECT_NE(text.find("error d"), std::string::npos) << text;
}

TEST_F(LogOutput, EveryLevelNameIsKnownAndOthersAreNot) {
  for (const char* name : {"debug", "info", "warn", "error", "off"}) EXPECT_TRUE(SetLevel(name)) << name;
  testing::internal::CaptureStderr();
  Error("unheard");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_FALSE(SetLevel("loud"));
  EXPECT_TRUE(SetLevel("debug"));
  testing::internal::CaptureStderr();
  Debug("heard");
  EXPECT_NE(testing::internal::GetCapturedStderr().find("debug heard"), std::string::npos);
}

TEST_F(LogOutput, LinesOfManyThreadsDoNotMix) {
  testing::internal::CaptureStderr();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 100; ++i) Info("tick", {{"text", std::string(64, 'x')}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string text = testing::internal::GetCapturedStderr();
  const std::string line_end = "info tick text=" + std::string(64, 'x') + "\n";
  std::size_t whole = 0;
  for (std::size_t at = text.find(line_end); at != std::string::npos; at = text.find(line_end, at + 1)) ++whole;
  EXPECT_EQ(whole, 400u);
}

}  // namespace
}  // namespace weir::log
