// Finds libweir-ethdev.so: beside the library or program that this is in, where the programs' libraries are, or where
// the system looks.
#include <dlfcn.h>
#include <fmt/format.h>
#include <limits.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "transport/dpdk/ethdev/ethdev.h"

namespace weir::transport::dpdk {
namespace {

constexpr const char* kLibrary = "libweir-ethdev.so";

/// With the slash; empty: not known.
std::string FolderOf(const std::string& file) {
  return file.substr(0, file.rfind('/') + 1);
}

std::string ProgramFolder() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  return FolderOf(std::string(path.data(), length > 0 ? static_cast<std::size_t>(length) : 0));
}

/// Of the library that this code is in, where it is in one.
std::string OwnFolder() {
  Dl_info info{};
  if (dladdr(&kLibrary, &info) == 0 || info.dli_fname == nullptr) return "";
  std::array<char, PATH_MAX> whole{};
  return realpath(info.dli_fname, whole.data()) == nullptr ? "" : FolderOf(whole.data());
}

/// Stays loaded for good: EAL cannot be started twice.
Result<EthdevOpen> Load() {
  std::string why;
  const std::string here = ProgramFolder();
  for (const std::string& path :
       {OwnFolder() + kLibrary, here + kLibrary, here + "../lib/" + kLibrary, std::string(kLibrary)}) {
    if (path.front() == '/' && access(path.c_str(), F_OK) != 0) continue;
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library != nullptr) {
      if (void* symbol = dlsym(library, kEthdevSymbol)) return reinterpret_cast<EthdevOpen>(symbol);
    }
    const char* problem = dlerror();
    why += fmt::format("{}{}", why.empty() ? "" : "; ", problem == nullptr ? path : problem);
  }
  return Error(StatusCode::kUnsupported,
               fmt::format("no DPDK on this host: {}. Build Weir where libdpdk-dev is installed, and keep {} beside "
                           "the library that wants it, or in ../lib beside the program",
                           why, kLibrary));
}

const Result<EthdevOpen>& Loaded() {
  static const Result<EthdevOpen> open = Load();
  return open;
}

}  // namespace

Result<std::unique_ptr<EthdevPort>> OpenEthdev(const EthdevSettings& settings) {
  if (!Loaded()) return tl::unexpected(Loaded().error());
  return (*Loaded())(settings);
}

Status EthdevAvailable() {
  return Loaded() ? Status::Ok() : Loaded().error();
}

}  // namespace weir::transport::dpdk
