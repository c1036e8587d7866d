// Runs every file of a directory through a fuzz target once: what a fuzzer found stays found, with any compiler.
// Usage: TARGET DIRECTORY. Exit 0 done, 1 a file could not be read, 2 no directory or nothing in it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::vector<std::filesystem::path> FilesOf(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.is_regular_file(error)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool Replay(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return false;
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::vector<std::uint8_t> input(bytes.begin(), bytes.end());
  std::printf("%s\n", path.c_str());
  std::fflush(stdout);  // So that the last line names the file that crashed.
  LLVMFuzzerTestOneInput(input.data(), input.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
    return 2;
  }
  const auto files = FilesOf(argv[1]);
  if (files.empty()) {
    std::fprintf(stderr, "%s: no such directory, or no file in it\n", argv[1]);
    return 2;
  }
  for (const auto& file : files) {
    if (!Replay(file)) {
      std::fprintf(stderr, "%s: cannot be read\n", file.c_str());
      return 1;
    }
  }
  return 0;
}
